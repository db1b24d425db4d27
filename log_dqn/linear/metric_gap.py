"""The metric gap of section 3.1, on three grid tasks.

The paper's drawings are not available. These tasks are ours, made to have the properties that the
paper states for its tasks A, B and C.
"""

import dataclasses

import numpy as np

from log_dqn.linear import mdp

HORIZON = 12
# Row and column steps of the actions up, down, left, right.
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
WIND = 2  # The wind's move: left.

Cell = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class GridTask:
    """A grid with objects to collect or avoid; each gives its reward once, upon being entered.

    A move against the border leaves the agent where it is. A state is the agent's cell together
    with the set of objects that are left.

    Attributes:
        name: the task's letter.
        shape: rows and columns.
        start: the agent's first cell.
        objects: reward of the object in each cell that has one.
        wind: probability that the agent moves left whatever its action.
    """

    name: str
    shape: tuple[int, int]
    start: Cell
    objects: dict[Cell, float]
    wind: float = 0.0

    @property
    def start_state(self) -> int:
        """Index of the state in which an episode starts."""
        return self._state(self.start, 2 ** len(self.objects) - 1)

    def _state(self, cell: Cell, left: int) -> int:
        return (cell[0] * self.shape[1] + cell[1]) * 2 ** len(self.objects) + left

    def _enter(self, cell: Cell, left: int, move: int) -> tuple[int, float]:
        """Returns the next state and the reward of a move, with the objects `left` (bits)."""
        target = (cell[0] + MOVES[move][0], cell[1] + MOVES[move][1])
        if not (0 <= target[0] < self.shape[0] and 0 <= target[1] < self.shape[1]):
            target = cell
        for i, (place, reward) in enumerate(self.objects.items()):
            if place == target and left >> i & 1:
                return self._state(target, left & ~(1 << i)), reward
        return self._state(target, left), 0.0

    def mdp(self) -> mdp.MDP:
        """Returns the task's transition probabilities and expected rewards."""
        n_subsets = 2 ** len(self.objects)
        n_states = self.shape[0] * self.shape[1] * n_subsets
        transitions = np.zeros((n_states, len(MOVES), n_states))
        rewards = np.zeros((n_states, len(MOVES)))
        for cell in np.ndindex(self.shape):
            for left in range(n_subsets):
                s = self._state(cell, left)
                for a in range(len(MOVES)):
                    for move, probability in ((a, 1 - self.wind), (WIND, self.wind)):
                        next_state, reward = self._enter(cell, left, move)
                        transitions[s, a, next_state] += probability
                        rewards[s, a] += probability * reward
        return mdp.MDP(transitions, rewards)


TASKS = (
    # A small loss now for a large gain later: low discount factors stay where they are.
    GridTask("A", (1, 9), (0, 0), {(0, 1): -1.0, (0, 8): 5.0}),
    # High discount factors fetch the large object first; then 12 steps are not enough for both.
    GridTask("B", (3, 9), (1, 2), {(1, 0): 1.0, (1, 8): 4.0}),
    # Stepping away from the negative object costs time, passing beside it risks being blown in.
    GridTask("C", (4, 5), (0, 1), {(3, 0): 1.0, (2, 0): -2.0}, wind=0.4),
)


def performance(task: GridTask, gammas: list[float]) -> tuple[float, list[float]]:
    """Returns F(pi*), and F(pi*_l) of each discount factor (equation 1), horizon 12."""
    process = task.mdp()
    best = mdp.finite_horizon_values(process, HORIZON)[task.start_state]
    policies = (mdp.value_iteration(process, g, tolerance=1e-13).argmax(axis=1) for g in gammas)
    learned = [mdp.finite_horizon_return(process, policy, HORIZON) for policy in policies]
    return float(best), [float(f[task.start_state]) for f in learned]
