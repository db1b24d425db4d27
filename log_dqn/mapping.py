"""The logarithmic mapping between the ordinary value space and the log space (paper, section 4).

Functions take arrays of one array namespace and an argument `xp` that names it: `numpy` (the
default), `jax.numpy`, or `log_dqn.tf.namespace.xp` for TensorFlow.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from log_dqn.checks import check_gamma, check_not_negative, check_positive

Array = Any  # An array or scalar of the namespace `xp`.
Scalar = Any  # A float, or a scalar of the namespace `xp`.


def log_value(tq: Array, c: Scalar, d: Scalar) -> Array:
    """Returns ln of the value that a log-space value `tq` stands for: (tq - d) / c."""
    return (tq - d) / c


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

    Raises:
        ValueError: if an attribute is outside its range.
    """

    gamma: float
    k: float
    c: float
    q_init: float
    additive: bool = False

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        for name in ("k", "c"):
            check_positive(name, getattr(self, name))
        check_not_negative("q_init", self.q_init)

    @property
    def log_floor(self) -> float:
        """ln(gamma^k)."""
        return self.k * math.log(self.gamma)

    @property
    def d(self) -> float:
        """The offset d, which makes f(q_init) = 0 (equation 7)."""
        log_q_init = math.log(self.q_init) if self.q_init else -math.inf
        combine = np.logaddexp if self.additive else max
        return -self.c * float(combine(log_q_init, self.log_floor))

    def log_value(self, tq: Array) -> Array:
        """Returns ln of the value that `tq` stands for, in the additive form of it plus gamma^k."""
        return log_value(tq, self.c, self.d)

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
        return self.c * excess + (self.c * self.log_floor + self.d)

    def inverse(self, tq: Array, xp: Any = np) -> Array:
        """Maps log-space values of any shape back: exp((tq - d) / c) [- gamma^k].

        The clipped form's inverse is not clipped: a value below the floor keeps its size.
        """
        if not self.additive:
            return xp.exp(self.log_value(tq))
        excess = (tq - (self.c * self.log_floor + self.d)) / self.c
        return -xp.exp(excess + self.log_floor) * xp.expm1(-excess)
