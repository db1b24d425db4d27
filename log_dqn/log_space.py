"""The update of logarithmic deep Q-learning (LogDQN), computed in the log space.

Two heads, h in {+, -}, share one network. Of a head, tq_h is the output (the paper's Q-tilde),
q_h its value in the ordinary space and d_h the offset of its mapping (see `log_dqn.mapping`).
A transition leads from s by action a, with an n-step reward r, to s', where the target network's
values are primed. As the paper writes it (section 4 and Appendix C.1; its equations in brackets):

    d_h  = -c ln(max(q_init_h, gamma^k))              q_init_+ = 1, q_init_- = 0            [7]
    q_h  = exp((tq_h - d_h) / c)
    Q    = q_+ - q_-                                  on which the policy is greedy        [12]
    a*   = argmax_a Q'(s', a)                         one action for both heads
    v_h  = clip(q'_h(s', a*), 0, 1 / (1 - gamma))     0 if s' is terminal
    r_+  = max(r, 0),  r_- = max(-r, 0)                                                    [10]
    U_h  = max(r_h + gamma^n v_h, gamma^(n k))        the floor, for the additive gamma^k  [11]
    U^_h = q_h(s, a) + beta_reg (U_h - q_h(s, a))     average in the ordinary space         [8]
    y_h  = c ln(U^_h) + d_h                           and back to the log space             [9]
    loss = mean over the batch of huber(y_+ - tq_+(s, a)) + huber(y_- - tq_-(s, a))

No gradient flows through y_h. The optimizer's learning rate is the step-size beta_log.

So written, the update needs gamma^k: 1e-100 at gamma = 0.1, which float32 cannot hold, and even
float64 loses the small gaps between actions that the method exists for. This module computes the
same from logarithms throughout, for which float32 is enough at any gamma:

    l_h        = (tq_h - d_h) / c                        which is ln q_h
    sign(Q)    = sign(l_+ - l_-)
    ln|Q|      = max(l_+, l_-) + ln(-expm1(-|l_+ - l_-|))
    a*         = argmax_a ln|Q'| among Q' > 0; without one, argmin_a ln|Q'|, -inf where Q' = 0
    ln v_h     = min(l'_h(s', a*), -ln(1 - gamma))       -inf if s' is terminal
    ln U_h     = max(logaddexp(ln r_h, ln gamma^n + ln v_h), n k ln gamma)   ln 0 = -inf
    x          = ln U_h - l_h(s, a)
    y_h - tq_h = c log1p(beta_reg expm1(x))              if |x| <= 1, else
                 c logaddexp(ln(1 - beta_reg), ln(beta_reg) + x)

With `linear_above` the mapping is a line above b, and the lines with d_h, tq_h and y_h go through
`log_dqn.mapping`: l_h = to_log((tq_h - d_h) / c), and y_h - tq_h = c change(l_h, ln U^_h - l_h).

The functions below are these lines, `UpdateRule` puts them together with the numbers of a
`LogUpdate`, whose switches vary them, and `batch_loss` is the whole.

The last axis of an array with actions is the action axis; everything else is elementwise, so any
leading axes will do. A pair is (plus head, minus head). `xp` names the array namespace: `numpy`
(the default), `jax.numpy`, or `log_dqn.tf.namespace.xp`. Arrays are compared with `xp.equal`:
`==` compares identities in TensorFlow 1's graphs.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from log_dqn import mapping
from log_dqn.checks import (
    as_number,
    check,
    check_bool,
    check_count,
    check_not_negative,
    check_one_of,
)
from log_dqn.mapping import Array, LogMapping, Scalar

HEAD_INITS = ("asymmetric", "symmetric")
LOSSES = ("huber", "mse")
DTYPES = ("float32", "float64")
"""Dtypes of the heads and the update."""

PRECISIONS = ("float32", "tf32", "bfloat16")
"""Precisions of a network's torso. With 'tf32', Nvidia's GPUs from 2020 on round the factors of a
float32 product to 10 bits; elsewhere it means float32. 'bfloat16' rounds parameters and activations
to 8 bits. Stored parameters, heads and update are in float32."""

CLIPPED = "Values/Clipped"
"""TensorBoard's tag for the share of transitions with a clipped bootstrapped value."""

Q_PLUS = "Values/QPlus"
"""TensorBoard's tag for the mean of the plus head's values of the actions taken."""

Pair = tuple[Array, Array]  # (plus head, minus head)


def log_reward(reward: Array, xp: Any = np) -> tuple[Array, Array]:
    """Splits rewards into their positive and negative parts (equation 10).

    Args:
        reward: n-step rewards, any shape.
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
    log_gamma_n: Scalar,
    log_floor: Scalar,
    log_v_max: Scalar,
    xp: Any = np,
) -> Array:
    """Returns ln U_h, the update target of one head in the ordinary space (equation 11).

    U_h = max(r_h + gamma^n v_h, gamma^(n k)) with v_h = clip(q_h(s', a*), 0, v_max), and v_h = 0
    after a terminal transition. The floor replaces the additive gamma^k (Appendix C.1).

    Args:
        log_r: ln r_h, shape [...].
        next_l: ln q_h(s', a*) of the target network, shape [...].
        terminal: whether s' is terminal, bool, shape [...].
        log_gamma_n: ln(gamma^n) for an n-step update.
        log_floor: ln(gamma^(n k)), of the mapping's k.
        log_v_max: ln of the largest value that v_h may have; inf for no bound.
        xp: the array namespace.

    Returns:
        ln U_h, shape [...], at least `log_floor`.
    """
    next_l = xp.minimum(next_l, xp.full_like(next_l, log_v_max))
    log_v = xp.where(terminal, -math.inf, next_l + log_gamma_n)
    log_u = xp.logaddexp(log_r, log_v)
    return xp.maximum(log_u, xp.full_like(log_u, log_floor))


class StepSize(NamedTuple):
    """A step-size in the ordinary space, with its logarithms.

    Attributes:
        beta_reg: the step-size, in (0, 1].
        log_beta_reg: ln(beta_reg).
        log_keep: ln(1 - beta_reg).
    """

    beta_reg: Scalar
    log_beta_reg: Scalar
    log_keep: Scalar


def step_size(beta_reg: float) -> StepSize:
    """Returns a step-size in (0, 1] with its logarithms, computed in double precision."""
    log_keep = math.log1p(-beta_reg) if beta_reg < 1 else -math.inf
    return StepSize(beta_reg, math.log(beta_reg), log_keep)


def td_error(
    l: Array,  # noqa: E741
    log_u: Array,
    c: Scalar,
    log_b: Scalar,
    step: StepSize,
    xp: Any = np,
) -> Array:
    """Returns y_h - tq_h, the temporal difference of one head in the log space (equations 8 and 9).

    y_h = f(U^_h) with U^_h = q_h + beta_reg (U_h - q_h), the average in the ordinary space. With
    x = ln U_h - ln q_h, ln U^_h - ln q_h is ln(1 + beta_reg (e^x - 1)).

    Args:
        l: ln q_h(s, a), shape [...].
        log_u: ln U_h, shape [...].
        c: the mapping's c.
        log_b: ln of the mapping's `linear_above`.
        step: step-size beta_reg of the averaging in the ordinary space.
        xp: the array namespace.

    Returns:
        y_h - tq_h, shape [...].
    """
    x = log_u - l
    near = xp.log1p(step.beta_reg * xp.expm1(xp.clip(x, -1.0, 1.0)))
    # Further away expm1 overflows (x >> 0), or loses its digits (x << 0, beta_reg near 1).
    far = xp.logaddexp(xp.full_like(x, step.log_keep), x + step.log_beta_reg)
    return c * mapping.change(l, xp.where(xp.abs(x) <= 1, near, far), log_b, xp)


def log_difference(l_plus: Array, l_minus: Array, xp: Any = np) -> tuple[Array, Array]:
    """Returns the sign and ln|Q| of Q = q_+ - q_- (equation 12).

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
    """Returns numbers whose largest is that of the action with the largest Q = q_+ - q_-.

    Q itself can't be used: values far below 1e-38 are all 0 in float32, and small values vanish
    beside a large q_-.

    Args:
        l_plus: ln q_+, shape [..., num_actions].
        l_minus: ln q_-, shape [..., num_actions].
        xp: the array namespace.

    Returns:
        Keys, shape [..., num_actions], largest where Q is. If some action has a positive Q, the
        others' keys are -inf. An action with Q = 0 has inf where no Q is positive. Values of Q that
        differ by less than a rounding error of Q have the same key.
    """
    sign, log_abs_q = log_difference(l_plus, l_minus, xp)
    # No arithmetic on ln|Q|, so that the best action keeps its digits beside a tiny |Q|.
    has_positive = xp.max(sign, axis=-1, keepdims=True) > 0
    return xp.where(has_positive, xp.where(sign > 0, log_abs_q, -math.inf), -log_abs_q)


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


def loss(td: Array, loss_type: str, xp: Any = np) -> Array:
    """Returns the loss of temporal differences: Huber with delta = 1, or the squared error.

    Args:
        td: y_h - tq_h, any shape.
        loss_type: 'huber' or 'mse'.
        xp: the array namespace.

    Returns:
        The loss of each element, shaped like `td`.

    Raises:
        ValueError: if there is no such loss.
    """
    check_one_of("loss_type", loss_type, LOSSES)
    if loss_type == "mse":
        return td * td
    size = xp.abs(td)
    quadratic = xp.minimum(size, xp.ones_like(size))
    return 0.5 * quadratic * quadratic + (size - quadratic)


class UpdateRule(NamedTuple):
    """The functions above put together with the numbers of a `LogUpdate`.

    Under `jax.vmap` the numbers may be arrays, so that runs with different settings share one
    program.

    Attributes:
        c: scale of the log space.
        ds: pair of the mappings' offsets d.
        log_b: ln of the mappings' `linear_above`.
        step: step-size of the averaging in the ordinary space.
        log_gamma_n: ln(gamma^n).
        log_floor: ln(gamma^(n k)), the floor of targets.
        log_v_max: ln of the bound on bootstrapped values; inf for none.
        u_min: floor of the network's own outputs, as (tq - d) / c; -inf for none.
    """

    c: Scalar
    ds: tuple[Scalar, Scalar]
    log_b: Scalar
    step: StepSize
    log_gamma_n: Scalar
    log_floor: Scalar
    log_v_max: Scalar
    u_min: Scalar

    def raised(self, u: Array, xp: Any = np) -> Array:
        """Returns outputs u = (tq - d) / c, of any shape, raised to their floor."""
        return xp.maximum(u, xp.full_like(u, self.u_min))

    def log_values(self, tqs: Pair, xp: Any = np) -> Pair:
        """Returns the pair ln q_h of a pair of outputs of any shape."""
        plus, minus = (
            mapping.to_log(self.raised((tq - d) / self.c, xp), self.log_b, xp)
            for tq, d in zip(tqs, self.ds, strict=True)
        )
        return plus, minus

    def action_keys(self, tqs: Pair, xp: Any = np) -> Array:
        """Returns `action_keys` of a pair of outputs of shape [..., num_actions]."""
        return action_keys(*self.log_values(tqs, xp), xp=xp)

    def greedy_actions(self, tqs: Pair, xp: Any = np) -> Array:
        """Returns argmax_a Q(s, a) for a pair of outputs of shape [..., num_actions]."""
        return xp.argmax(self.action_keys(tqs, xp), axis=-1)

    def next_log_values(self, next_tqs: Pair, xp: Any = np) -> Pair:
        """Returns the pair ln q'_h(s', a*), neither bounded nor 0 where s' is terminal.

        Args:
            next_tqs: pair of the target network's outputs in s', shape [..., num_actions].
            xp: the array namespace.

        Returns:
            Pair of shape [...].
        """
        next_ls = self.log_values(next_tqs, xp)
        best = xp.argmax(action_keys(*next_ls, xp=xp), axis=-1)
        plus, minus = (select(next_l, best, xp) for next_l in next_ls)
        return plus, minus

    def log_targets(self, next_ls: Pair, reward: Array, terminal: Array, xp: Any = np) -> Pair:
        """Returns the pair ln U_h (equation 11).

        Args:
            next_ls: `next_log_values`.
            reward: n-step rewards, shape [...].
            terminal: whether s' is terminal, bool, shape [...].
            xp: the array namespace.

        Returns:
            Pair of shape [...].
        """
        plus, minus = (
            log_target(
                log_r, next_l, terminal, self.log_gamma_n, self.log_floor, self.log_v_max, xp
            )
            for log_r, next_l in zip(log_reward(reward, xp), next_ls, strict=True)
        )
        return plus, minus

    def td_errors(self, tqs: Pair, ls: Pair, log_targets: Pair, xp: Any = np) -> Pair:
        """Returns the pair y_h - tq_h (equations 8 and 9).

        Args:
            tqs: pair of the chosen action's outputs, shape [...].
            ls: their `log_values`.
            log_targets: pair ln U_h, shape [...].
            xp: the array namespace.

        Returns:
            Pair of shape [...].
        """
        us = [(tq - d) / self.c for tq, d in zip(tqs, self.ds, strict=True)]
        plus, minus = (
            # The last term is not 0 only where the floor has raised u.
            td_error(l, log_u, self.c, self.log_b, self.step, xp)
            + self.c * (self.raised(u, xp) - u)
            for l, log_u, u in zip(ls, log_targets, us, strict=True)  # noqa: E741
        )
        return plus, minus


def batch_loss(
    rule: UpdateRule,
    loss_type: str,
    tqs: Pair,
    next_tqs: Pair,
    actions: Array,
    rewards: Array,
    terminals: Array,
    stop_gradient: Callable[[Array], Array],
    xp: Any = np,
) -> tuple[Array, dict[str, Array]]:
    """Returns the loss of a batch, whose gradient is LogDQN's update, and statistics.

    Args:
        rule: the update rule.
        loss_type: 'huber' or 'mse'.
        tqs: pair of the online network's outputs in s, shape [batch_size, num_actions].
        next_tqs: pair of the target network's outputs in s', of the same shape.
        actions: integers, the actions taken in s, shape [batch_size].
        rewards: n-step rewards, shape [batch_size].
        terminals: whether s' is terminal, bool, shape [batch_size].
        stop_gradient: returns an array as it is, as a constant of the loss.
        xp: the array namespace.

    Returns:
        The mean over the batch of loss(y_+ - tq_+) + loss(y_- - tq_-), a scalar, and scalars by
        their TensorBoard tags, means over the batch: each head's loss and value, the share of
        transitions with a clipped bootstrapped value, and, with more than one action, the
        plus head's gap between the two best actions in the log space (section 4.1, the paper's
        `log plus-only`).
    """
    plus, minus = (select(tq, actions, xp) for tq in tqs)
    ls = rule.log_values((plus, minus), xp)
    next_ls = rule.next_log_values(next_tqs, xp)
    log_targets = rule.log_targets(next_ls, rewards, terminals, xp)
    loss_plus, loss_minus = (
        # The value is y - tq, of which only -tq carries a gradient. y itself is never computed:
        # y - tq would lose the digits of a small difference.
        xp.mean(loss(stop_gradient(td) - (tq - stop_gradient(tq)), loss_type, xp))
        for td, tq in zip(
            rule.td_errors((plus, minus), ls, log_targets, xp), (plus, minus), strict=True
        )
    )
    within = xp.maximum(*next_ls) <= rule.log_v_max
    statistics = {
        "Losses/Plus": loss_plus,
        "Losses/Minus": loss_minus,
        Q_PLUS: xp.mean(xp.exp(ls[0])),
        "Values/QMinus": xp.mean(xp.exp(ls[1])),
        CLIPPED: xp.mean(xp.where(terminals | within, 0.0, xp.ones_like(next_ls[0]))),
    }
    if tqs[0].shape[-1] > 1:
        ordered = xp.sort(stop_gradient(tqs[0]), axis=-1)
        statistics["Values/LogActionGap"] = xp.mean(ordered[..., -1] - ordered[..., -2])
    return loss_plus + loss_minus, statistics


@dataclasses.dataclass(frozen=True)
class LogUpdate:
    """The settings of the two-headed update, checked.

    Attributes:
        gamma: discount factor, in (0, 1).
        k: gamma^k is about the smallest value that can still be represented; positive.
        c: scale of the log space; positive.
        beta_reg: step-size of the averaging in the ordinary space, in (0, 1].
        update_horizon: n of the n-step update, in agent steps; at least 1.
        q_init_plus: ordinary value that an output of 0 stands for in the plus head.
        q_init_minus: ordinary value that an output of 0 stands for in the minus head.
        clip_bootstrap: whether bootstrapped values are bounded by 1 / (1 - gamma), the largest
            return of rewards up to 1.
        clip_inverse: whether an output below the floor counts as the floor gamma^k, the literal
            reading of Appendix C.1. If not, it keeps its value, and greedy actions stay
            distinguishable.
        linear_above: ordinary value b above which the mapping is linear; positive. inf (default)
            is the paper's mapping, and so is None, which gin can write. If b is far below
            q_init_plus, small values lose digits in float32: with b = c = 0.001, their logarithms
            have steps of about 0.0001.

    Raises:
        ValueError: if an attribute is outside its range.
    """

    gamma: float = 0.96
    k: float = 100
    c: float = 0.5
    beta_reg: float = 0.1
    update_horizon: int = 1
    q_init_plus: float = 1.0
    q_init_minus: float = 0.0
    clip_bootstrap: bool = True
    clip_inverse: bool = False
    linear_above: float | None = math.inf

    def __post_init__(self) -> None:
        beta_reg, n = self.beta_reg, self.update_horizon
        check("beta_reg", beta_reg, 0 < as_number(beta_reg) <= 1, "in (0, 1]")
        check_count("update_horizon", n, 1, 10**9)
        for name in ("q_init_plus", "q_init_minus"):
            check_not_negative(name, getattr(self, name))
        for name in ("clip_bootstrap", "clip_inverse"):
            check_bool(name, getattr(self, name))
        plus, minus = self.mappings  # Checks the others.
        with np.errstate(over="ignore"):
            for name in ("beta_reg", "c", "k"):
                value = np.float32(getattr(self, name))
                fits = bool(np.finfo(np.float32).tiny <= value < np.inf)
                check(name, getattr(self, name), fits, "a number that float32 can hold")
            c, largest = self.c, plus.u(-math.log1p(-self.gamma))
            for name, size, allowed in (
                ("k", max(1, c) * n * plus.log_floor, "smaller: max(c, 1) n k ln(gamma)"),
                ("c", c * math.log1p(-self.gamma), "smaller: c ln(1 - gamma)"),
                (
                    "linear_above",
                    max(1, c) * largest,
                    "larger: max(c, 1) / (linear_above (1 - gamma))",
                ),
                *(
                    (name, max(1, 1 / c) * head.d, f"smaller: max(c, 1) {name} / linear_above")
                    for name, head in (("q_init_plus", plus), ("q_init_minus", minus))
                ),
            ):
                fits = bool(np.isfinite(np.float32(size)))
                check(name, getattr(self, name), fits, f"{allowed} is beyond float32")
        gamma_n = self.gamma**n
        check("gamma", self.gamma, gamma_n > 0, f"larger: its power {n}, update_horizon, is 0")

    @property
    def mappings(self) -> tuple[LogMapping, LogMapping]:
        """The clipped mappings of the two heads, which differ in d only."""
        plus, minus = (
            LogMapping(self.gamma, self.k, self.c, q_init, linear_above=self.linear_above)
            for q_init in (self.q_init_plus, self.q_init_minus)
        )
        return plus, minus

    @functools.cached_property
    def rule(self) -> UpdateRule:
        """The update rule, with numbers computed in double precision."""
        n = self.update_horizon
        plus, minus = self.mappings
        return UpdateRule(
            c=self.c,
            ds=(plus.d, minus.d),
            log_b=plus.log_b,
            step=step_size(self.beta_reg),
            log_gamma_n=n * math.log(self.gamma),
            log_floor=n * plus.log_floor,
            log_v_max=-math.log1p(-self.gamma) if self.clip_bootstrap else math.inf,
            u_min=plus.u(plus.log_floor) if self.clip_inverse else -math.inf,
        )
