"""The logarithmic mapping between the ordinary value space and the log space (paper, section 4).

Above a value b, `linear_above`, it may continue as a line with the same slope: the log-linear
mapping of LogLinDQN (Fatemi and Tavakoli, "Orchestrated Value Mapping for Reinforcement
Learning", ICLR 2022, arXiv 2203.07171; theirs has b = 1):

    f(q) = c ln q + d for q <= b,  c (ln b + q / b - 1) + d above

With b = inf it is the paper's. With c = b and beta_reg 1 the update of values that are all far
above b is DQN's, where no reward is negative. (With n-step targets the minus head, which starts at
gamma^k, still sinks to its floor, gamma^(nk).)

Functions take arrays of one array namespace and an argument `xp` that names it: `numpy` (the
default), `jax.numpy`, or `log_dqn.tf.namespace.xp` for TensorFlow.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from log_dqn.checks import as_number, check, check_gamma, check_not_negative, check_positive

Array = Any  # An array or scalar of the namespace `xp`.
Scalar = Any  # A float, or a scalar of the namespace `xp`.


def to_log(u: Array, log_b: Scalar, xp: Any = np) -> Array:
    """Returns ln q of an output u = (tq - d) / c: u itself, or ln(b (1 + u - ln b)) above ln b."""
    bent = xp.maximum(u - log_b, xp.zeros_like(u))
    return xp.minimum(u, xp.full_like(u, log_b)) + xp.log1p(bent)


def from_log(l: Array, log_b: Scalar, xp: Any = np) -> Array:  # noqa: E741
    """Returns the output u of l = ln q; undoes `to_log`."""
    bent = xp.maximum(l - log_b, xp.zeros_like(l))
    return xp.minimum(l, xp.full_like(l, log_b)) + xp.expm1(bent)


def change(l: Array, delta: Array, log_b: Scalar, xp: Any = np) -> Array:  # noqa: E741
    """Returns `from_log(l + delta) - from_log(l)`, with the digits of a small `delta`."""
    zero = xp.zeros_like(l)
    above, below = xp.maximum(l - log_b, zero), xp.minimum(l - log_b, zero)
    in_log = xp.minimum(delta + above, -below)
    return in_log + xp.exp(above) * xp.expm1(xp.maximum(delta + below, -above))


@dataclasses.dataclass(frozen=True)
class LogMapping:
    """The mapping f(x) = c ln(x + gamma^k) + d and its clipped variant.

    The additive form is the main text's: f(x) = c ln(x + gamma^k) + d. The clipped form is the
    one of Appendix C.1, used for Atari: f(x) = c ln(max(x, gamma^k)) + d. In both, d makes
    f(q_init) = 0 (equation 7, d = -c ln(q_init + gamma^k)).

    gamma^k is never computed: at gamma = 0.1 and k = 300 it is 1e-300.

    Attributes:
        gamma: discount factor, in (0, 1).
        k: gamma^k is about the smallest value that can still be represented; positive.
        c: scale of the log space; positive.
        q_init: ordinary value that corresponds to 0 in the log space; not negative.
        additive: whether the additive form is used rather than the clipped one.
        linear_above: ordinary value b above which the mapping is linear; positive; None or inf for
            the paper's mapping. In the additive form it is compared with x + gamma^k.

    Raises:
        ValueError: if an attribute is outside its range.
    """

    gamma: float
    k: float
    c: float
    q_init: float
    additive: bool = False
    linear_above: float | None = math.inf

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        for name in ("k", "c"):
            check_positive(name, getattr(self, name))
        check_not_negative("q_init", self.q_init)
        b = self.linear_above
        is_allowed = b is None or as_number(b) > 0
        check("linear_above", b, is_allowed, "a positive number, or None for no line")

    @property
    def log_b(self) -> float:
        """The logarithm of `linear_above`; inf for no line."""
        return math.inf if self.linear_above is None else math.log(self.linear_above)

    @property
    def log_floor(self) -> float:
        """ln(gamma^k)."""
        return self.k * math.log(self.gamma)

    @property
    def d(self) -> float:
        """The offset d, which makes f(q_init) = 0 (equation 7)."""
        log_q_init = math.log(self.q_init) if self.q_init else -math.inf
        combine = np.logaddexp if self.additive else max
        return -self.c * self.u(combine(log_q_init, self.log_floor))

    def u(self, log_q: Scalar) -> float:
        """Returns (tq - d) / c of the output tq of a value, given its logarithm."""
        return float(from_log(np.float64(log_q), self.log_b))

    def f(self, x: Array, xp: Any = np) -> Array:
        """Maps ordinary values x >= 0 of any shape to the log space (equation 6)."""
        log_x = xp.log(xp.where(x > 0, x, 1))
        log_x = xp.where(x > 0, log_x, -math.inf)
        # Both forms as ln(.) - ln(gamma^k) plus a constant, so that the additive form keeps the
        # digits of an x far below gamma^k.
        excess = log_x - self.log_floor
        if self.additive:
            excess = xp.logaddexp(excess, xp.zeros_like(excess))
        else:
            excess = xp.maximum(excess, xp.zeros_like(excess))
        excess = from_log(excess, self.log_b - self.log_floor, xp)
        return self.c * excess + (self.c * self.log_floor + self.d)

    def inverse(self, tq: Array, xp: Any = np) -> Array:
        """Maps log-space values of any shape back: exp((tq - d) / c) [- gamma^k].

        The clipped form's inverse is not clipped: a value below the floor keeps its size.
        """
        if not self.additive:
            return xp.exp(to_log((tq - self.d) / self.c, self.log_b, xp))
        excess = (tq - (self.c * self.log_floor + self.d)) / self.c
        excess = to_log(excess, self.log_b - self.log_floor, xp)
        # Further below the result is -gamma^k, but one factor may be 0 and the other infinite.
        near = xp.maximum(excess, -40.0)
        found = -xp.exp(near + self.log_floor) * xp.expm1(-near)
        return xp.where(excess < near, -math.exp(self.log_floor), found)
