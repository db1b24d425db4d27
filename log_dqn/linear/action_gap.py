"""The action-gap deviation kappa (paper, sections 3.2 and 4), from exact values of the chain task.

Values come as the heads Q+ and Q- (`Chain.optimal_heads`), each of shape (states, 2) with a_L
first and a_L optimal; Q* = Q+ - Q-. Gaps have shape (states,). They span up to a hundred orders of
magnitude, so none is computed as a difference of two nearly equal numbers.
"""

import numpy as np

from log_dqn.linear.chain import LEFT, RIGHT


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
