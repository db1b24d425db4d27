"""The chain task of section 3.2 and its variations."""

import dataclasses

import numpy as np

from log_dqn.checks import check
from log_dqn.linear import mdp

LEFT, RIGHT = 0, 1


@dataclasses.dataclass(frozen=True)
class Chain:
    """A row of states with a terminal state at either end (paper, figure 2).

    Action a_L moves left with probability 1 - p and right with probability p; a_R the other way
    round. Always taking a_L is optimal for every discount factor if p < 1/2, r_step = 0 and
    r_left > 0 >= r_right.

    Attributes:
        n_states: number of non-terminal states.
        p: probability of a slip.
        r_left: reward upon transitioning to the far-left terminal state.
        r_right: reward upon transitioning to the far-right terminal state.
        r_step: reward upon transitioning to a non-terminal state.
        largest_target: bound on what a learner updates towards, which the published figures were
            made with: Q, or Q+ and Q- each, from above. It must be at least the largest reward
            in absolute value, inf for no bound; below the largest return it biases what is
            learned.

    Raises:
        ValueError: if an attribute is outside its range.
    """

    n_states: int = 50
    p: float = 0.25
    r_left: float = 1.0
    r_right: float = -1.0
    r_step: float = 0.0
    largest_target: float = 1.0

    def __post_init__(self) -> None:
        check("n_states", self.n_states, self.n_states >= 1, "1 or more")
        check("p", self.p, 0 <= self.p <= 1, "between 0 and 1")
        largest = max(abs(self.r_left), abs(self.r_right), abs(self.r_step))
        allowed = f"{largest} or more, the largest reward in absolute value"
        check("largest_target", self.largest_target, self.largest_target >= largest, allowed)

    def split(self) -> tuple["Chain", "Chain"]:
        """Returns the tasks of r+ and of r- (equation 10), both with rewards >= 0."""
        rewards = ("r_left", "r_right", "r_step")
        plus = {name: max(getattr(self, name), 0.0) for name in rewards}
        minus = {name: max(-getattr(self, name), 0.0) for name in rewards}
        return dataclasses.replace(self, **plus), dataclasses.replace(self, **minus)

    def mdp(self) -> mdp.MDP:
        """Returns the task's transition probabilities and expected rewards."""
        n = self.n_states
        p_left = np.broadcast_to(np.array([1 - self.p, self.p]), (n, 2))
        transitions = np.zeros((n, 2, n))
        rewards = np.zeros((n, 2))
        states = np.arange(n)
        for step, p_step, r_end in ((-1, p_left, self.r_left), (1, 1 - p_left, self.r_right)):
            inside = (states + step >= 0) & (states + step < n)
            transitions[states[inside], :, states[inside] + step] = p_step[inside]
            rewards += p_step * np.where(inside, self.r_step, r_end)[:, None]
        return mdp.MDP(transitions, rewards)

    def optimal_heads(self, gamma: float) -> tuple[np.ndarray, np.ndarray]:
        """Returns Q+ and Q- of the optimal policy, each of shape (n_states, 2); Q* = Q+ - Q-.

        Computed apart, since far from a terminal state both are orders of magnitude below the
        rounding error of values near it.

        Raises:
            ValueError: if a_L is not optimal in every state, or `gamma` is outside (0, 1).
        """
        policy = np.full(self.n_states, LEFT)
        plus, minus = (mdp.evaluate_policy(task.mdp(), policy, gamma) for task in self.split())
        # A policy that is greedy for its own values is optimal.
        advantage = (plus[:, LEFT] - plus[:, RIGHT]) + (minus[:, RIGHT] - minus[:, LEFT])
        if np.any(advantage < 0):
            raise ValueError(
                f"r_left is {self.r_left}, r_right {self.r_right}, r_step {self.r_step} and "
                f"p {self.p}; at gamma {gamma} a_L must be optimal in every state, but is not in "
                f"state {np.argmax(advantage < 0)}"
            )
        return plus, minus
