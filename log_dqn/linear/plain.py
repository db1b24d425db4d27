"""Regular and logarithmic Q-learning without compilation, written for reading.

The same methods as `learning`, sample for sample. The tests hold the compiled kernels against
these.
"""

from collections.abc import Iterator

import numpy as np

from log_dqn.linear.chain import Chain
from log_dqn.linear.kernels import LARGEST_TQ


def features(n_states: int, width: int) -> np.ndarray:
    """Returns the features of every state, shape (n_states, n_states + width - 1).

    The tile coding of section 3.2: there are `width` tilings, each shifted by one state, with tiles
    of `width` neighbouring states. Tile i, over all tilings and counted by position, covers the
    states i - width + 1 to i, so that state s activates the tiles s to s + width - 1, one of each
    tiling. An active feature has value 1 / sqrt(width), which makes every feature vector of length
    1. Any value function can be represented.
    """
    state = np.arange(n_states)[:, None]
    tile = np.arange(n_states + width - 1)
    return ((tile >= state) & (tile < state + width)) / np.sqrt(width)


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
    """Does what `learning.regular` does."""
    phi = features(chain.n_states, width)
    theta = np.full((phi.shape[1], 2), q_init / np.sqrt(width))
    order = np.arange(2 * chain.n_states)
    measured_q = []
    for sweep in range(sweeps):
        alpha = alphas[min(sweep, len(alphas) - 1)]
        for s, a, r, s2 in _transitions(chain, order, rng):
            target = r if s2 is None else r + gamma * np.max(phi[s2] @ theta)
            target = min(target, chain.largest_target)
            theta[:, a] += alpha * (target - phi[s] @ theta[:, a]) * phi[s]
        if (sweep + 1) % measure_every == 0:
            measured_q.append(phi @ theta)
    return np.array(measured_q)


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
) -> np.ndarray:
    """Returns the first of the two results of `learning.logarithmic`."""
    unit = gamma**k
    phi = features(chain.n_states, width)
    theta = np.zeros((phi.shape[1], 2, 2))  # By tile, action, head (plus, minus).
    order = np.arange(2 * chain.n_states)
    measured_q = []
    for sweep in range(sweeps):
        beta_log = betas_log[min(sweep, len(betas_log) - 1)]
        beta_reg = betas_reg[min(sweep, len(betas_reg) - 1)]
        for s, a, r, s2 in _transitions(chain, order, rng):
            target = np.array([max(r, 0.0), max(-r, 0.0)])  # Equation 10.
            if s2 is not None:
                q_next = inverse(np.tensordot(phi[s2], theta, 1), unit)
                best = np.argmax(q_next[:, 0] - q_next[:, 1])
                target += gamma * q_next[best]  # Equation 11.
            target = np.minimum(target, chain.largest_target)
            tq = phi[s] @ theta[:, a]
            q = inverse(tq, unit)
            u_hat = (1 - beta_reg) * q + beta_reg * target  # Equation 8.
            theta[:, a] += beta_log * np.outer(phi[s], f(u_hat, unit) - tq)  # Equation 9.
        if (sweep + 1) % measure_every == 0:
            heads = inverse(np.tensordot(phi, theta, 1), unit)
            measured_q.append(heads[..., 0] - heads[..., 1])  # Equation 12.
    return np.array(measured_q)


def f(x: np.ndarray, unit: float) -> np.ndarray:
    """Returns c ln(x + unit) + d (equation 6) with c = 1 and q_init = 0, hence d = -ln(unit).

    Unlike LogMapping it takes values between -unit and 0, to which generalization can lead.
    """
    return np.log1p(x / unit)


def inverse(tq: np.ndarray, unit: float) -> np.ndarray:
    """Returns the inverse of `f`, up to the largest value that the kernels allow."""
    return unit * np.expm1(np.minimum(tq, LARGEST_TQ))


def _transitions(
    chain: Chain, order: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[int, int, float, int | None]]:
    """Yields (s, a, r, s') for every pair once, in random order; s' is None at the end."""
    for left in range(len(order), 0, -1):
        scaled = rng.random() * left
        chosen = int(scaled)
        order[[chosen, left - 1]] = order[[left - 1, chosen]]
        s, a = divmod(int(order[left - 1]), 2)
        slip = scaled - chosen < chain.p
        s2 = s - 1 if (a == 0) != slip else s + 1
        if s2 < 0:
            yield s, a, chain.r_left, None
        elif s2 == chain.n_states:
            yield s, a, chain.r_right, None
        else:
            yield s, a, chain.r_step, s2
