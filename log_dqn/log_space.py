"""The update of logarithmic deep Q-learning, computed in the log space.

Written as the paper writes it, the update needs gamma^k: 1e-100 at gamma = 0.1, which float32
cannot hold, and even float64 loses the small gaps between actions that the method exists for.
Here every quantity is the logarithm of the paper's, and float32 is enough at any gamma.

Symbols: `tq` is a head's output (the paper's Q-tilde), `l = (tq - d) / c` is ln of its ordinary
value q, d and c are the mapping's (see `log_dqn.mapping`). The last axis of an array with
actions is the action axis; everything else is elementwise, so any leading (batch) axes will do.
`xp` names the array namespace: `numpy` (the default), `jax.numpy`, or
`log_dqn.tf.namespace.xp`.

Arrays are compared with `xp.equal`: `==` compares identities in TensorFlow 1's graphs.

Nothing here stops gradients; the temporal difference that `td_error` returns is a constant of
the loss (see `loss`).
"""

import math
from typing import Any

import numpy as np

from log_dqn.mapping import Array

LOSSES = ("huber", "mse")


def log_reward(reward: Array, xp: Any = np) -> tuple[Array, Array]:
    """Splits rewards into their positive and negative parts (equation 10).

    Args:
        reward: (n-step) rewards, any shape.
        xp: the array namespace.

    Returns:
        ln r_+ and ln r_-, shaped like `reward`; ln 0 is -inf.
    """

    def log_positive_part(x: Array) -> Array:
        return xp.where(x > 0, xp.log(xp.where(x > 0, x, xp.ones_like(x))), -math.inf)

    return log_positive_part(reward), log_positive_part(-reward)


def log_target(
    log_r: Array,
    next_l: Array,
    terminal: Array,
    gamma_n: float,
    k: float,
    clip_bootstrap: bool = True,
    xp: Any = np,
) -> Array:
    """Returns ln U_h, the update target of one head in the ordinary space (equation 11).

    U_h = max(r_h + gamma_n v_h, gamma_n^k) with v_h = clip(q_h(s', a*), 0, 1 / (1 - gamma_n)),
    and v_h = 0 after a terminal transition. The floor replaces the additive gamma^k
    (Appendix C.1).

    Args:
        log_r: ln r_h, shape [...].
        next_l: ln q_h(s', a*) of the target network, shape [...].
        terminal: whether s' is terminal, bool, shape [...].
        gamma_n: gamma^n for an n-step update.
        k: the mapping's k.
        clip_bootstrap: whether v_h is bounded by 1 / (1 - gamma_n), the largest return that
            rewards in [-1, 1] allow.
        xp: the array namespace.

    Returns:
        ln U_h, shape [...], at least k ln(gamma_n).
    """
    log_gamma_n = math.log(gamma_n)
    if clip_bootstrap:
        next_l = xp.minimum(next_l, xp.full_like(next_l, -math.log1p(-gamma_n)))
    log_v = xp.where(terminal, -math.inf, next_l + log_gamma_n)
    log_u = xp.logaddexp(log_r, log_v)
    return xp.maximum(log_u, xp.full_like(log_u, k * log_gamma_n))


def td_error(l: Array, log_u: Array, c: float, beta_reg: float, xp: Any = np) -> Array:  # noqa: E741
    """y_h - tq_h, the temporal difference of one head in the log space (equations 8 and 9).

    y_h = c ln(U^_h) + d_h with U^_h = q_h + beta_reg (U_h - q_h), the average in the ordinary
    space. With x = ln U_h - ln q_h the difference is c ln(1 + beta_reg (e^x - 1)).

    Args:
        l: ln q_h(s, a), shape [...].
        log_u: ln U_h, shape [...].
        c: the mapping's c.
        beta_reg: step-size of the averaging in the ordinary space, in (0, 1].
        xp: the array namespace.

    Returns:
        y_h - tq_h, shape [...].
    """
    x = log_u - l
    near = c * xp.log1p(beta_reg * xp.expm1(xp.clip(x, -1.0, 1.0)))
    # Further away expm1 overflows (x >> 0), or loses its digits (x << 0, beta_reg near 1).
    log_keep = math.log1p(-beta_reg) if beta_reg < 1 else -math.inf
    far = c * xp.logaddexp(xp.full_like(x, log_keep), x + math.log(beta_reg))
    return xp.where(xp.abs(x) <= 1, near, far)


def log_difference(l_plus: Array, l_minus: Array, xp: Any = np) -> tuple[Array, Array]:
    """Sign and ln|Q| of Q = q_+ - q_- (equation 12).

    Args:
        l_plus: ln q_+, any shape.
        l_minus: ln q_-, shaped like `l_plus`.
        xp: the array namespace.

    Returns:
        sign(Q), which is 0 where the heads are equal, and ln|Q|, which is -inf there.
    """
    gap = l_plus - l_minus
    different = xp.not_equal(gap, 0)
    log_size = xp.log(-xp.expm1(-xp.abs(xp.where(different, gap, xp.ones_like(gap)))))
    log_abs_q = xp.where(different, xp.maximum(l_plus, l_minus) + log_size, -math.inf)
    return xp.sign(gap), log_abs_q


def action_keys(l_plus: Array, l_minus: Array, xp: Any = np) -> Array:
    """Numbers that order actions as Q = q_+ - q_- does, at any size of Q.

    Q itself will not do: values far below 1e-38 are all 0 in float32, and beside one action
    with a large q_- the small values of the others vanish.

    Args:
        l_plus: ln q_+, shape [..., num_actions].
        l_minus: ln q_-, shape [..., num_actions].
        xp: the array namespace.

    Returns:
        Keys, shape [..., num_actions]; only their order within the last axis has a meaning.
    """
    sign, log_abs_q = log_difference(l_plus, l_minus, xp)
    zero = xp.equal(sign, 0)
    smallest = xp.min(xp.where(zero, math.inf, log_abs_q), axis=-1, keepdims=True)
    return xp.where(zero, xp.zeros_like(sign), sign * (log_abs_q - smallest + 1))


def select(values: Array, actions: Array, xp: Any = np) -> Array:
    """Picks one action's value from each row.

    Args:
        values: shape [..., num_actions].
        actions: integers, shape [...].
        xp: the array namespace.

    Returns:
        values[..., actions], shape [...].
    """
    chosen = xp.equal(xp.arange(values.shape[-1]), actions[..., None])
    return xp.sum(xp.where(chosen, values, xp.zeros_like(values)), axis=-1)


def loss(td: Array, kind: str, xp: Any = np) -> Array:
    """The loss of temporal differences: Huber with delta = 1, or the squared error.

    Args:
        td: y_h - tq_h, any shape.
        kind: 'huber' or 'mse'.
        xp: the array namespace.

    Returns:
        The loss of each element, shaped like `td`.
    """
    if kind == "mse":
        return td * td
    size = xp.abs(td)
    quadratic = xp.minimum(size, xp.ones_like(size))
    return 0.5 * quadratic * quadratic + (size - quadratic)
