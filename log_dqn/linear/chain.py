"""The chain task of section 3.2 and its variations, and its action-gap deviation kappa.

Kappa (sections 3.2 and 4) is of exact values, the heads Q+ and Q- (`Chain.optimal_heads`), each of
shape (states, 2) with a_L first and a_L optimal. Gaps have shape (states,). They span up to a
hundred orders of magnitude, so none is computed as a difference of two nearly equal numbers.
"""

import dataclasses

import numpy as np

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
        largest_target: bound on what a learner updates towards: Q, or Q+ and Q- each, from above;
            inf for none, as in the paper's text. The published figures were made with it. It is no
            less than the largest reward in absolute value; below the largest return it biases what
            is learned.
    """

    n_states: int = 50
    p: float = 0.25
    r_left: float = 1.0
    r_right: float = -1.0
    r_step: float = 0.0
    largest_target: float = 1.0

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
        """Returns Q+ and Q- of always taking a_L, each of shape (n_states, 2).

        Where that is optimal, Q* = Q+ - Q-. They are computed apart, since far from a terminal
        state both are orders of magnitude below the rounding error of values near it.
        """
        policy = np.full(self.n_states, LEFT)
        plus, minus = (mdp.evaluate_policy(task.mdp(), policy, gamma) for task in self.split())
        return plus, minus


def deviation(gaps: np.ndarray) -> float:
    """Returns kappa: the standard deviation of log10 of the non-zero gaps."""
    return float(np.std(np.log10(gaps[gaps > 0])))


def regular_gaps(plus: np.ndarray, minus: np.ndarray) -> np.ndarray:
    """Returns the gaps of Q*."""
    return (plus[:, LEFT] - plus[:, RIGHT]) + (minus[:, RIGHT] - minus[:, LEFT])


def log_gaps(head: np.ndarray, unit: float) -> np.ndarray:
    """Returns a head's gaps of ln(q + unit), the better less the worse; `unit` is gamma^k."""
    worse, better = np.sort(head, axis=1).T
    return np.log1p((better - worse) / (worse + unit))


def log_bias_gaps(plus: np.ndarray, minus: np.ndarray, unit: float, bias: float) -> np.ndarray:
    """Returns the gaps of ln(Q* + bias + unit), the naive way with negative rewards.

    `unit` is gamma^k, and `bias` the paper's D, large enough for Q* + D >= 0.
    """
    worse = plus[:, RIGHT] - minus[:, RIGHT]
    return np.log1p(regular_gaps(plus, minus) / (worse + bias + unit))
