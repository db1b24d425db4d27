"""Regular and logarithmic Q-learning on the chain task, compiled.

Every function here learns by sweeps: a sweep takes one sampled transition for each state-action
pair, in an order shuffled anew. One uniform number a transition decides both: with i + 1 pairs
left, the whole part of (i + 1) * u chooses one of them and the fraction decides the slip.

The action-values are linear in the features of `plain.features`, which the kernels know: state
s activates the tiles s to s + width - 1.

`plain` holds the same two methods without compilation, written for reading.
"""

import math

import numba
import numpy as np

# Values above e^700, in units of gamma^k, are taken for e^700, so that none becomes infinite. No
# return is that large, but with step-sizes near 1 and wide tiles an estimate can overshoot.
LARGEST_TQ = 700.0


@numba.njit(nogil=True, inline="always")
def _draw(left: int, order: np.ndarray, rng: np.random.Generator) -> tuple[int, float]:
    """Moves a random one of the first `left` pairs to their end; returns it and a uniform number.

    Called with left = n, n - 1, ..., 1 this is a shuffle (Fisher and Yates).
    """
    scaled = rng.random() * left
    chosen = int(scaled)
    pair = order[chosen]
    order[chosen] = order[left - 1]
    order[left - 1] = pair
    return pair, scaled - chosen


@numba.njit(nogil=True, inline="always")
def _next_state(state: int, action: int, slip: bool) -> int:
    return state - 1 if (action == 0) != slip else state + 1


@numba.njit(nogil=True, inline="always")
def _reward(next_state: int, n_states: int, rewards: np.ndarray) -> float:
    """Returns r_left, r_step or r_right, which is their order in `rewards`."""
    if next_state < 0:
        return rewards[0]
    return rewards[2] if next_state == n_states else rewards[1]


@numba.njit(nogil=True, inline="always")
def _value(s: int, a: int, theta: np.ndarray, width: int, feature: float) -> float:
    total = 0.0
    for tile in range(s, s + width):
        total += theta[tile, a]
    return feature * total


@numba.njit(nogil=True)
def regular(
    width: int,
    gamma: float,
    p: float,
    rewards: np.ndarray,
    largest_target: float,
    q_init: float,
    alphas: np.ndarray,
    measure_every: int,
    rng: np.random.Generator,
    measured_q: np.ndarray,
) -> None:
    """Runs regular Q-learning (equation 2) and records Q at every measurement.

    Args:
        width: tile width.
        gamma: discount factor.
        p: probability of a slip.
        rewards: r_left, r_step, r_right.
        largest_target: update targets above are reduced to this; may be inf.
        q_init: every first action-value.
        alphas: step-size of each sweep; the last one holds for all later sweeps.
        measure_every: number of sweeps between two measurements.
        rng: source of the shuffles and slips.
        measured_q: the result, shape (measurements, states, 2). Runs for
            measurements * measure_every sweeps.
    """
    n_measurements, n_states, _ = measured_q.shape
    n_sweeps = n_measurements * measure_every
    feature = 1 / math.sqrt(width)
    theta = np.full((n_states + width - 1, 2), feature * q_init)
    order = np.arange(2 * n_states)
    for sweep in range(n_sweeps):
        alpha = alphas[min(sweep, len(alphas) - 1)]
        for left in range(2 * n_states, 0, -1):
            pair, uniform = _draw(left, order, rng)
            s, a = pair >> 1, pair & 1
            s2 = _next_state(s, a, uniform < p)
            target = _reward(s2, n_states, rewards)
            if 0 <= s2 < n_states:
                target += gamma * max(
                    _value(s2, 0, theta, width, feature), _value(s2, 1, theta, width, feature)
                )
            target = min(target, largest_target)
            step = feature * alpha * (target - _value(s, a, theta, width, feature))
            for tile in range(s, s + width):
                theta[tile, a] += step
        if (sweep + 1) % measure_every == 0:
            for s in range(n_states):
                for a in range(2):
                    measured_q[sweep // measure_every, s, a] = _value(s, a, theta, width, feature)


@numba.njit(nogil=True, inline="always")
def _expm1(x: float) -> float:
    # Twice as fast where nothing is lost by it.
    return math.exp(x) - 1 if x > 1 else math.expm1(x)


@numba.njit(nogil=True, inline="always")
def _log1p(x: float) -> float:
    return math.log(1 + x) if x > 1 else math.log1p(x)


@numba.njit(nogil=True, inline="always")
def _refresh(
    s: int,
    a: int,
    theta: np.ndarray,
    width: int,
    feature: float,
    tq: np.ndarray,
    q: np.ndarray,
    stale: np.ndarray,
) -> None:
    """Makes tq and q of (s, a) agree with theta."""
    if stale[a, s]:
        plus = minus = 0.0
        for tile in range(s, s + width):
            plus += theta[tile, a, 0]
            minus += theta[tile, a, 1]
        tq[s, a, 0] = feature * plus
        tq[s, a, 1] = feature * minus
        q[s, a, 0] = _expm1(min(tq[s, a, 0], LARGEST_TQ))
        q[s, a, 1] = _expm1(min(tq[s, a, 1], LARGEST_TQ))
        stale[a, s] = False


@numba.njit(nogil=True, inline="always")
def _error_ratio(q: float, u_hat: float, new_q: float, beta_log: float) -> float:
    """Returns |e_t| of Appendix A divided by its bound, 0 where both are too small to tell.

    The error term is what the update really made of q, Q_{t+1}, less what regular Q-learning with
    step-size beta_log would have, q + beta_log (U^ - q). Where rounding of Q_{t+1} could be
    seen in it, it is taken from the formula of Q_{t+1} instead: with D = ln((U^ + 1) / (q + 1)),
    e = (q + 1) (expm1(beta_log D) - beta_log expm1(D)). Values are in units of gamma^k.
    """
    change = u_hat - q
    # ln of the larger over the smaller, which keeps its digits whichever is larger.
    distance = math.log1p(abs(change) / (1 + min(q, u_hat)))
    if distance < 1e-9:
        return 0.0
    bound = beta_log * abs(change) * distance  # Equation 33.
    rounding = 2.3e-16 * (1 + new_q) * (1 + math.log1p(new_q))
    if rounding < 1e-6 * bound:
        error = new_q - q - beta_log * change
    else:
        log_ratio = math.copysign(distance, change)
        error = (1 + q) * (math.expm1(beta_log * log_ratio) - beta_log * math.expm1(log_ratio))
    return abs(error) / bound


# Longer than a screen: a sixth of it is the docstring, and the parts of a sweep share so many
# arrays that functions of their own would only pass them on.
@numba.njit(nogil=True)
def logarithmic(
    width: int,
    gamma: float,
    k: float,
    p: float,
    rewards: np.ndarray,
    largest_target: float,
    betas_log: np.ndarray,
    betas_reg: np.ndarray,
    measure_every: int,
    rng: np.random.Generator,
    measured_q: np.ndarray,
    error_ratios: np.ndarray,
) -> None:
    """Runs logarithmic Q-learning (equations 8 to 12) and records Q at every measurement.

    The mapping is f(x) = c ln(x + gamma^k) + d with c = 1 and q_init = 0, hence
    d = -ln(gamma^k), f(x) = ln(1 + x / gamma^k). Ordinary values are held in units of gamma^k,
    which leaves f(x) = log1p(x) and its inverse expm1(x). The method's earlier stages are
    special cases: with rewards >= 0, Q- stays 0 and Q+ follows section 4.2; with beta_reg = 1 as
    well, section 4.1 with alpha = beta_log.

    Takes the arguments of `regular`, with a bound on the targets of either head. `k` is the
    mapping's exponent; gamma^k must be a normal double. `betas_log` and `betas_reg` are the step-
    sizes of each sweep in the log space and in the ordinary one; the last ones hold for later
    sweeps. `error_ratios` is a second result, the largest |e_t| / bound (Appendix A) of all updates
    since the measurement before, shape (measurements,), or (0,) not to compute it.
    """
    n_measurements, n_states, _ = measured_q.shape
    n_sweeps = n_measurements * measure_every
    unit = gamma**k
    rewards = rewards / unit
    largest_target = largest_target / unit
    # By tile, action, head (0 is plus, 1 is minus).
    theta = np.zeros((n_states + width - 1, 2, 2))
    # What theta stands for, by state, action, head; computed anew only where it is stale.
    tq = np.zeros((n_states, 2, 2))
    q = np.zeros((n_states, 2, 2))
    stale = np.zeros((2, n_states), dtype=np.bool_)
    feature = 1 / math.sqrt(width)
    order = np.arange(2 * n_states)
    error_ratio = 0.0
    for sweep in range(n_sweeps):
        beta_log = betas_log[min(sweep, len(betas_log) - 1)]
        beta_reg = betas_reg[min(sweep, len(betas_reg) - 1)]
        for left in range(2 * n_states, 0, -1):
            pair, uniform = _draw(left, order, rng)
            s, a = pair >> 1, pair & 1
            s2 = _next_state(s, a, uniform < p)
            reward = _reward(s2, n_states, rewards)
            target_plus, target_minus = max(reward, 0.0), max(-reward, 0.0)
            if 0 <= s2 < n_states:
                _refresh(s2, 0, theta, width, feature, tq, q, stale)
                _refresh(s2, 1, theta, width, feature, tq, q, stale)
                a2 = 0 if q[s2, 0, 0] - q[s2, 0, 1] >= q[s2, 1, 0] - q[s2, 1, 1] else 1
                target_plus += gamma * q[s2, a2, 0]
                target_minus += gamma * q[s2, a2, 1]
            _refresh(s, a, theta, width, feature, tq, q, stale)
            for head in range(2):
                target = min(target_minus if head else target_plus, largest_target)
                # Equation 8, in a form in which nothing cancels however far q is above the target.
                u_hat = (1 - beta_reg) * q[s, a, head] + beta_reg * target
                # Equation 9.
                step = feature * beta_log * (_log1p(u_hat) - tq[s, a, head])
                for tile in range(s, s + width):
                    theta[tile, a, head] += step
                if len(error_ratios):
                    new_tq = 0.0
                    for tile in range(s, s + width):
                        new_tq += theta[tile, a, head]
                    new_q = _expm1(min(feature * new_tq, LARGEST_TQ))
                    error_ratio = max(
                        error_ratio, _error_ratio(q[s, a, head], u_hat, new_q, beta_log)
                    )
            for changed in range(max(s - width + 1, 0), min(s + width, n_states)):
                stale[a, changed] = True
        if (sweep + 1) % measure_every == 0:
            measurement = sweep // measure_every
            for s in range(n_states):
                for a in range(2):
                    _refresh(s, a, theta, width, feature, tq, q, stale)
                    measured_q[measurement, s, a] = unit * (q[s, a, 0] - q[s, a, 1])
            if len(error_ratios):
                error_ratios[measurement] = error_ratio
                error_ratio = 0.0
