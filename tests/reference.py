"""The update as the paper writes it, in plain form, with any number type.

Independent of the package: it works in the ordinary space, where the package works in the log
space. With Python floats it is a float64 computation; with `mpmath.mpf` it is exact enough at
any gamma and k.
"""

import dataclasses
import math
from typing import Any

import mpmath


@dataclasses.dataclass(frozen=True)
class PlainUpdate:
    """Section 4 and Appendix C.1 of the paper, for one transition; `number` converts to a type."""

    gamma: float = 0.96
    k: float = 100
    c: float = 0.5
    beta_reg: float = 0.1
    update_horizon: int = 1
    clip_bootstrap: bool = True
    clip_inverse: bool = False
    linear_above: float = math.inf
    number: Any = float
    exp: Any = math.exp
    ln: Any = math.log

    @property
    def floor(self):
        return self.number(self.gamma) ** self.k

    def log_linear(self, q):
        """ln q, and above b the line of the same value and slope there."""
        b = self.number(self.linear_above)
        return self.ln(q) if q <= b else self.ln(b) + q / b - 1

    def d(self, q_init):
        return -self.number(self.c) * self.log_linear(max(self.number(q_init), self.floor))

    def f(self, q, q_init):
        return self.number(self.c) * self.log_linear(q) + self.d(q_init)

    def value(self, tq, q_init):
        u = (self.number(tq) - self.d(q_init)) / self.number(self.c)
        b = self.number(self.linear_above)
        q = self.exp(u) if u <= self.ln(b) else b * (1 + u - self.ln(b))
        return max(q, self.floor) if self.clip_inverse else q

    def q(self, tq_plus, tq_minus):
        """Q of each action, and the greedy action."""
        values = [
            self.value(plus, 1) - self.value(minus, 0)
            for plus, minus in zip(tq_plus, tq_minus, strict=True)
        ]
        return values, max(range(len(values)), key=values.__getitem__)

    def update_targets(self, next_tq_plus, next_tq_minus, reward, terminal):
        """(U_+, U_-) of a transition."""
        gn = self.number(self.gamma) ** self.update_horizon
        _, best = self.q(next_tq_plus, next_tq_minus)
        us = []
        for next_tq, q_init, sign in ((next_tq_plus, 1, 1), (next_tq_minus, 0, -1)):
            v = self.value(next_tq[best], q_init)
            if self.clip_bootstrap:
                v = min(v, 1 / (1 - self.number(self.gamma)))
            if terminal:
                v = 0
            us.append(max(self.number(max(sign * reward, 0)) + gn * v, gn**self.k))
        return us

    def targets(self, tq, next_tq_plus, next_tq_minus, reward, terminal):
        """(y_+, y_-) of a transition. `tq` is the chosen action's (plus, minus)."""
        ys = []
        us = self.update_targets(next_tq_plus, next_tq_minus, reward, terminal)
        for output, u, q_init in zip(tq, us, (1, 0), strict=True):
            q = self.value(output, q_init)
            u_hat = q + self.number(self.beta_reg) * (u - q)
            ys.append(self.f(u_hat, q_init))
        return ys


def exact(**settings) -> PlainUpdate:
    """The plain update with digits enough to add the floor to values of order 1."""
    plain = PlainUpdate(
        number=lambda x: mpmath.mpf(float(x)), exp=mpmath.exp, ln=mpmath.log, **settings
    )
    mpmath.mp.dps = 50 - int(plain.update_horizon * plain.k * math.log10(plain.gamma))
    return plain


def plain_loss(td, kind):
    if kind == "mse":
        return td * td
    return td * td / 2 if abs(td) <= 1 else abs(td) - 0.5
