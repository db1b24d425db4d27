"""Regular and logarithmic Q-learning on the chain task, as functions of the task."""

import dataclasses

import numpy as np

from log_dqn.checks import check, check_gamma
from log_dqn.linear import kernels
from log_dqn.linear.chain import Chain


@dataclasses.dataclass(frozen=True)
class Schedules:
    """Step-sizes by sweep; the last entry of each also holds for every later sweep.

    Attributes:
        beta_log: step-sizes in the log space.
        beta_reg: step-sizes in the ordinary space.
    """

    beta_log: np.ndarray
    beta_reg: np.ndarray


def regular(
    chain: Chain,
    width: int,
    gamma: float,
    alphas: np.ndarray,
    sweeps: int,
    rng: np.random.Generator,
    measure_every: int = 100,
    q_init: float = 0.0,
) -> np.ndarray:
    """Runs regular Q-learning (equation 2), with targets bounded above by `largest_target`.

    Shuffles and slips come from `rng`, and every action-value starts at `q_init`. `alphas` holds
    the step-size of each sweep; the last one is also that of all later sweeps.

    Returns:
        Q at every measurement, shape (sweeps // measure_every, states, 2).

    Raises:
        ValueError: if `gamma` or `width` is outside its range.
    """
    _check(width, gamma)
    measured_q = np.empty((sweeps // measure_every, chain.n_states, 2))
    task = (width, float(gamma), *_task(chain))
    kernels.regular(*task, float(q_init), alphas, measure_every, rng, measured_q)
    return measured_q


def logarithmic(
    chain: Chain,
    width: int,
    gamma: float,
    k: float,
    schedules: Schedules,
    sweeps: int,
    rng: np.random.Generator,
    measure_every: int = 100,
    with_errors: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Runs logarithmic Q-learning (section 4), with arguments and bounds like those of `regular`.

    `k` is the exponent of the mapping; `with_errors` also computes the error terms of Appendix A.

    Returns:
        Q = Q+ - Q- at every measurement, shape (sweeps // measure_every, states, 2), and the
        largest ratio of an error term to its bound (Appendix A) since the measurement before,
        shape (sweeps // measure_every,), empty without `with_errors`.

    Raises:
        ValueError: if `gamma` or `width` is outside its range, or gamma^k too small for a double.
    """
    _check(width, gamma)
    mapping_unit(gamma, k)
    measured_q = np.empty((sweeps // measure_every, chain.n_states, 2))
    error_ratios = np.empty(len(measured_q) if with_errors else 0)
    task = (width, float(gamma), float(k), *_task(chain))
    betas = (schedules.beta_log, schedules.beta_reg)
    kernels.logarithmic(*task, *betas, measure_every, rng, measured_q, error_ratios)
    return measured_q, error_ratios


def mapping_unit(gamma: float, k: float) -> float:
    """Returns gamma^k, about the smallest value that the mapping of equation 6 can represent.

    Raises:
        ValueError: if `gamma` is outside (0, 1), or `k` not positive or too large for a double.
    """
    check_gamma(gamma)
    # Values, in units of gamma^k, must be doubles too.
    largest_k = 300 * np.log(10) / -np.log(gamma)
    if not 0 < k <= largest_k:
        raise ValueError(
            f"k is {k}; at gamma {gamma} it must be above 0 and at most {largest_k:.0f}, "
            "beyond which gamma^k is no double-precision number"
        )
    return gamma**k


def _task(chain: Chain) -> tuple[float, np.ndarray, float]:
    """Returns p, the rewards r_left, r_step and r_right, and the bound on targets."""
    rewards = np.array([chain.r_left, chain.r_step, chain.r_right], dtype=float)
    return float(chain.p), rewards, float(chain.largest_target)


def _check(width: int, gamma: float) -> None:
    check_gamma(gamma)
    check("tile width", width, width >= 1, "1 or more")
