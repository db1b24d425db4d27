"""Regular and logarithmic Q-learning on the chain task, as functions of the task."""

import math

import numpy as np

from log_dqn.checks import check
from log_dqn.linear import kernels
from log_dqn.linear.chain import Chain


def geometric(final: float, n_sweeps: int) -> np.ndarray:
    """Returns step-sizes that fall geometrically from 1 to `final` over `n_sweeps` sweeps.

    Shape (n_sweeps + 1,); the last entry, `final`, also holds for every later sweep.
    """
    return final ** (np.arange(n_sweeps + 1) / n_sweeps)


def constant(value: float) -> np.ndarray:
    """Returns the schedule of a fixed step-size, shape (1,)."""
    return np.array([float(value)])


def polynomial(exponent: float, time_scale: float, n_sweeps: int) -> np.ndarray:
    """Returns (1 + t / time_scale) ** -exponent for the sweeps t = 0, ..., n_sweeps - 1."""
    return (1 + np.arange(n_sweeps) / time_scale) ** -exponent


def regular(
    chain: Chain,
    width: int,
    gamma: float,
    alphas: np.ndarray,
    sweeps: int,
    rng: np.random.Generator,
    measure_every: int,
    q_init: float = 0.0,
) -> np.ndarray:
    """Runs regular Q-learning (equation 2), with targets bounded above by `largest_target`.

    Shuffles and slips come from `rng`, and every action-value starts at `q_init`. `alphas` holds
    the step-size of each sweep; the last one is also that of all later sweeps.

    Returns:
        Q at every measurement, shape (sweeps // measure_every, states, 2).
    """
    measured_q = np.empty((sweeps // measure_every, chain.n_states, 2))
    task = (width, float(gamma), *_task(chain))
    kernels.regular(*task, float(q_init), alphas, measure_every, rng, measured_q)
    return measured_q


def logarithmic(
    chain: Chain,
    width: int,
    gamma: float,
    k: float,
    betas_log: np.ndarray,
    betas_reg: np.ndarray,
    sweeps: int,
    rng: np.random.Generator,
    measure_every: int,
    with_errors: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Runs logarithmic Q-learning (section 4), with arguments and bounds like those of `regular`.

    `k` is the exponent of the mapping. `betas_log` and `betas_reg` are the step-sizes in the log
    space and in the ordinary one. `with_errors` also computes the error terms of Appendix A.

    Returns:
        Q = Q+ - Q- at every measurement, shape (sweeps // measure_every, states, 2), and the
        largest ratio of an error term to its bound (Appendix A) since the measurement before,
        shape (sweeps // measure_every,), empty without `with_errors`.
    """
    measured_q = np.empty((sweeps // measure_every, chain.n_states, 2))
    error_ratios = np.empty(len(measured_q) if with_errors else 0)
    task = (width, float(gamma), float(k), *_task(chain))
    kernels.logarithmic(*task, betas_log, betas_reg, measure_every, rng, measured_q, error_ratios)
    return measured_q, error_ratios


def mapping_unit(gamma: float, k: float) -> float:
    """Returns gamma^k, about the smallest value that the mapping of equation 6 can represent.

    Raises:
        ValueError: if gamma^k is too small for a double.
    """
    # Values, in units of gamma^k, must be doubles too.
    least = 10 ** (-300 / k)
    shown = math.ceil(least * 1e4) / 1e4
    allowed = f"at least {shown} with k = {k:g}, so that gamma^k is a double-precision number"
    check("gamma", gamma, gamma >= least, allowed)
    return gamma**k


def _task(chain: Chain) -> tuple[float, np.ndarray, float]:
    """Returns p, the rewards r_left, r_step and r_right, and the bound on targets."""
    rewards = np.array([chain.r_left, chain.r_step, chain.r_right], dtype=float)
    return float(chain.p), rewards, float(chain.largest_target)
