import functools
import itertools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from log_dqn import log_space, mapping
from log_dqn.jax import update as jax_update
from log_dqn.tf.namespace import xp as tf_xp
from tests import reference

# gamma 0.1 with k 300 has gamma^k = 1e-300; 0.999 with k 1 has a floor just under 1.
# The three ways to clip take turns.
SETTINGS = [
    {"gamma": gamma, "k": k, "c": c, "beta_reg": beta_reg, "update_horizon": n, **clips}
    for ((gamma, k, c), (beta_reg, n)), clips in zip(
        itertools.product(
            [(0.1, 100, 0.5), (0.1, 300, 5), (0.5, 200, 0.1), (0.84, 100, 2), (0.96, 100, 0.5),
             (0.99, 100, 1), (0.999, 300, 0.5), (0.999, 1, 0.5)],
            [(0.1, 1), (0.01, 3), (0.9, 1), (1.0, 3)],
        ),
        itertools.cycle([{}, {"clip_bootstrap": False}, {"clip_inverse": True}]),
        strict=False,
    )
]  # fmt: skip


def run_numpy(fn, *arrays):
    with np.errstate(all="ignore"):
        return fn(*arrays, xp=np)


def run_jax(fn, *arrays):
    return [np.asarray(x) for x in fn(*(jnp.asarray(a) for a in arrays), xp=jnp)]


def run_tf(fn, *arrays):
    # A graph and a session for each would take ten times as long; tests/tf has the agent's.
    with context.eager_mode():
        return [x.numpy() for x in fn(*(tf.constant(a) for a in arrays), xp=tf_xp)]


# c is b, too, as LogLinDQN has them.
LOG_LINEAR = [
    {"gamma": gamma, "k": 100, "c": c, "beta_reg": beta_reg, "linear_above": b}
    for gamma, b in itertools.product((0.1, 0.5, 0.96, 0.99), (1e-6, 0.1, 1.0, 10.0, math.inf))
    for c, beta_reg in [(1.0, 0.3), (0.5, 1.0)] + [(b, 1.0)] * (b < math.inf)
]

NAMESPACES = pytest.mark.parametrize("run", [run_numpy, run_jax, run_tf])


def update(tq, next_tq, reward, terminal, xp, settings):
    """Both heads' y_h - tq_h, and the greedy action in s'."""
    rule = log_space.LogUpdate(**settings).rule
    next_tqs = (next_tq[..., 0, :], next_tq[..., 1, :])
    log_targets = rule.log_targets(rule.next_log_values(next_tqs, xp), reward, terminal, xp)
    tqs = (tq[..., 0], tq[..., 1])
    tds = rule.td_errors(tqs, rule.log_values(tqs, xp), log_targets, xp)
    return *tds, rule.greedy_actions(next_tqs, xp)


def batch(settings, seed, size=16, num_actions=4):
    """Outputs as training meets them: values between the floor and the largest return, and some
    beyond either end; next-state actions that nearly tie."""
    rng = np.random.default_rng(seed)
    heads = log_space.LogUpdate(**settings).mappings
    tq, next_tq = np.empty((size, 2)), np.empty((size, 2, num_actions))
    for i, head in enumerate(heads):
        low, high = head.log_floor - 2, math.log(1 / (1 - head.gamma)) + 1
        log_q, centre = rng.uniform(low, high, size), rng.uniform(low, high, (size, 1))
        spread = 10.0 ** rng.uniform(-3, 1, (size, 1))
        log_next_q = centre + spread * rng.normal(size=(size, num_actions))
        if head.linear_above < math.inf:  # As far as a line leads, not as far as an exponential.
            log_next_q = np.minimum(log_next_q, high)
        tq[:, i] = head.c * mapping.from_log(log_q, head.log_b) + head.d
        next_tq[:, i] = head.c * mapping.from_log(log_next_q, head.log_b) + head.d
    reward = rng.choice([-1, 0, 0.5, 1], size)
    terminal = rng.random(size) < 0.3
    return tq.astype(np.float32), next_tq.astype(np.float32), reward.astype(np.float32), terminal


@functools.lru_cache(maxsize=2)
def at_high_precision(**settings):
    """The plain form, a batch, and of each transition Q in s', its greedy action, and y_h - tq_h.

    The namespaces take their turns with the same settings.
    """
    plain = reference.exact(**settings)
    transitions = batch(settings, seed=0)
    expected = []
    for tq, next_tq, reward, terminal in zip(*transitions, strict=True):
        y = plain.targets(tq, next_tq[0], next_tq[1], reward, terminal)
        tds = [float(y[head] - plain.number(tq[head])) for head in (0, 1)]
        expected.append((*plain.q(next_tq[0], next_tq[1]), tds))
    return plain, transitions, expected


def assert_equals_the_plain_form(settings, run):
    plain, (tq, next_tq, reward, terminal), expected = at_high_precision(**settings)
    fn = functools.partial(update, settings=settings)
    td_plus, td_minus, best = run(fn, tq, next_tq, reward, terminal)
    assert td_plus.dtype == np.float32

    for i, (qs, expected_best, expected_tds) in enumerate(expected):
        # Where float32 outputs nearly tie, another greedy action is right if its Q is as good.
        if best[i] != expected_best:
            size = max(plain.value(next_tq[i, h, a], 1 - h) for h in (0, 1) for a in range(4))
            assert float((qs[expected_best] - qs[best[i]]) / size) < 1e-4
            continue
        for head, td in enumerate((td_plus[i], td_minus[i])):
            # An output of 3000 is itself known to 1e-4 only, and a value far above b to as many
            # digits as the logarithm of their ratio has.
            rounding = 4e-7 * float(abs(tq[i, head]) + abs(next_tq[i, head]).max() + 1)
            rounding *= max(1, -math.log(plain.linear_above))
            rel = 1e-5 if plain.linear_above == math.inf else 2e-5
            assert td == pytest.approx(expected_tds[head], rel=rel, abs=rounding)


@NAMESPACES
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
def test_float32_update_equals_the_plain_form_at_high_precision(settings, run):
    assert_equals_the_plain_form(settings, run)


@NAMESPACES
@pytest.mark.parametrize("settings", LOG_LINEAR, ids=lambda s: "-".join(map(str, s.values())))
def test_the_log_linear_update_equals_the_plain_form_at_high_precision(settings, run):
    assert_equals_the_plain_form(settings, run)
    assert_equals_the_plain_form({**settings, "clip_inverse": True}, run)


@pytest.mark.parametrize(
    "settings",
    [  # Two of five: neither ways to clip nor step-sizes come round in fives.
        pytest.param(settings, marks=pytest.mark.slow if number % 5 > 1 else ())
        for number, settings in enumerate([*SETTINGS, *LOG_LINEAR])
    ],
    ids=lambda s: "-".join(map(str, s.values())),
)
def test_jaxs_loss_and_gradients_are_those_of_the_differences(settings):
    # The differences themselves are held against the plain form above; y carries no gradient.
    tq, next_tq, rewards, terminals = batch(settings, seed=0)
    differences = run_jax(
        functools.partial(update, settings=settings), tq, next_tq, rewards, terminals
    )
    tds = np.stack(differences[:2], axis=-1)
    rule = log_space.LogUpdate(**settings).rule
    next_heads = (jnp.asarray(next_tq[:, 0]), jnp.asarray(next_tq[:, 1]))
    rest = np.zeros(len(tq), int), rewards, terminals

    def loss(tq):  # Of one action.
        heads = (tq[:, :1], tq[:, 1:])
        return jax_update.batch_loss(rule, "huber", heads, next_heads, *rest)[0]

    value, gradient = jax.value_and_grad(loss)(jnp.asarray(tq))
    assert value.dtype == gradient.dtype == jnp.float32
    expected = sum(reference.plain_loss(td, "huber") for td in tds.ravel().tolist())
    assert value * len(tq) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(-gradient * len(tq), np.clip(tds, -1, 1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("run", "dtype", "rounding"),
    [
        (run_numpy, "float64", 1e-12),
        *((run, "float32", 1e-6) for run in (run_numpy, run_jax, run_tf)),
    ],
)
@pytest.mark.parametrize("n", [1, 3])
def test_far_above_b_temporal_differences_are_dqns(run, dtype, rounding, n):
    # With c = b, f(q) = q - q_init there: these outputs stand for DQN's values.
    gamma, b = 0.96, 1e-3
    rng = np.random.default_rng(0)
    qs, next_qs = rng.uniform(0.5, 20, (2, 32, 4)).astype(dtype)
    terminals = rng.random(32) < 0.3
    rewards = np.where(terminals, 1, rng.choice([0, 0.5, 1], 32)).astype(dtype)
    rule = log_space.LogUpdate(gamma, c=b, beta_reg=1.0, linear_above=b, update_horizon=n).rule

    def fn(qs, next_qs, rewards, terminals, xp):
        tqs = (qs[:, 0] - 1, xp.zeros_like(qs[:, 0]))
        next_ls = rule.next_log_values((next_qs - 1, xp.zeros_like(qs)), xp)
        log_targets = rule.log_targets(next_ls, rewards, terminals, xp)
        return rule.td_errors(tqs, rule.log_values(tqs, xp), log_targets, xp)

    td, td_minus = run(fn, qs, next_qs, rewards, terminals)
    targets = rewards + gamma**n * np.where(terminals, 0, next_qs.max(axis=-1))
    np.testing.assert_allclose(td, targets - qs[:, 0], rtol=0, atol=20 * rounding)
    if n == 1:  # Else it sinks from gamma^k to gamma^(nk).
        np.testing.assert_array_equal(td_minus, 0)


def test_without_a_line_the_update_is_the_papers_to_the_bit():
    plain = {"gamma": 0.96, "k": 100, "c": 0.5, "beta_reg": 0.1}
    tq, next_tq, reward, terminal = batch(plain, seed=1, size=1000)
    rule = log_space.LogUpdate(**plain).rule
    next_tqs, tqs = (next_tq[:, 0], next_tq[:, 1]), (tq[:, 0], tq[:, 1])
    ls = rule.log_values(tqs)
    for value, output, d in zip(ls, tqs, rule.ds, strict=True):
        np.testing.assert_array_equal(value, (output - d) / 0.5)
    log_targets = rule.log_targets(rule.next_log_values(next_tqs), reward, terminal)
    tds = rule.td_errors(tqs, ls, log_targets)
    for td, value, log_u in zip(tds, ls, log_targets, strict=True):
        x = log_u - value
        step = rule.step
        near = np.float32(0.5) * np.log1p(step.beta_reg * np.expm1(np.clip(x, -1, 1)))
        far = 0.5 * np.logaddexp(np.full_like(x, step.log_keep), x + step.log_beta_reg)
        np.testing.assert_array_equal(td, np.where(abs(x) <= 1, near, far))


@NAMESPACES
def test_greedy_actions_over_many_orders_of_magnitude(run):
    # ln q_+ and ln q_- of four actions; the greedy one worked out by hand.
    l_plus = np.array(
        [
            # A huge negative Q beside tiny positive ones: 1e-91 beats 1e-92 and -1.
            [-2000.0, -209.5, -211.8, -300.0],
            # All negative: the least bad is -e^-500.
            [-900.0, -900.0, -900.0, -900.0],
            # Zero beats every negative.
            [-3.0, -5.0, -5.0, -5.0],
            # Only a gap in the 6th digit tells the second from the third: e^-50 (e^1e-5 - 1).
            [-60.0, -50.0, -50.0 + 1e-4, -80.0],
        ],
        np.float32,
    )
    l_minus = np.array(
        [
            [0.0, -400.0, -400.0, -310.0],
            [-500.0, -499.0, -300.0, -1.0],
            [-2.0, -5.0, -4.0, -3.0],
            [-50.0, -50.0, -50.0, -79.0],
        ],
        np.float32,
    )

    def keys(plus, minus, xp):
        return (log_space.action_keys(plus, minus, xp),)

    (result,) = run(keys, l_plus, l_minus)
    np.testing.assert_array_equal(np.argmax(result, axis=-1), [1, 0, 1, 2])
    # Computed as written, float32 sees nothing of the first row.
    with np.errstate(all="ignore"):
        assert np.all((np.exp(l_plus) - np.exp(l_minus))[0, 1:] == 0)


@NAMESPACES
def test_equal_heads_give_equal_keys(run):
    flat = np.full((2, 3), -7.25, np.float32)
    (result,) = run(lambda a, b, xp: (log_space.action_keys(a, b, xp),), flat, flat.copy())
    np.testing.assert_array_equal(result, np.full((2, 3), math.inf))


@NAMESPACES
@pytest.mark.parametrize("shift", [0, -2, 2])
def test_the_largest_key_is_that_of_the_largest_q(run, shift):
    # With -2 most rows have no positive Q.
    rng = np.random.default_rng(3)
    l_plus = rng.normal(-1 + shift, 1.5, (500, 6)).astype(np.float32)
    l_minus = rng.normal(-1, 1.5, (500, 6)).astype(np.float32)
    (result,) = run(lambda a, b, xp: (log_space.action_keys(a, b, xp),), l_plus, l_minus)
    q = np.exp(l_plus.astype(np.float64)) - np.exp(l_minus.astype(np.float64))
    np.testing.assert_array_equal(np.argmax(result, axis=-1), np.argmax(q, axis=-1))


@NAMESPACES
@pytest.mark.parametrize("sign", [1, -1])
def test_a_near_tie_keeps_its_digits_beside_a_tiny_value(run, sign):
    # Q is 2 and, one step of float32 in ln q nearer to 0 or further from it, about 2.0000001; the
    # third action's |Q| is e^-80, which without a positive Q is the best.
    near = np.float32(np.log(2.0))
    large = np.array([near, np.nextafter(near, np.float32(1)), np.float32(-80)], np.float32)
    other = np.full(3, -200, np.float32)
    pair = (large, other) if sign > 0 else (other, large)
    keys = lambda a, b, xp: (log_space.action_keys(a, b, xp),)  # noqa: E731
    (result,) = run(keys, pair[0][None], pair[1][None])
    assert np.argsort(result[0])[-1] == (1 if sign > 0 else 2)
    if sign < 0:
        (result,) = run(keys, pair[0][None, :2], pair[1][None, :2])
        assert result.argmax() == 0


def test_td_error_worked_by_hand():
    # q = 1, U = 2, beta_reg = 0.5: U^ = 1.5, so y - tq = c ln(1.5 / 1).
    assert log_space.td_error(
        np.log(1.0), np.log(2.0), 2.0, math.inf, log_space.step_size(0.5)
    ) == pytest.approx(2 * math.log(1.5))
    # q = 1, U = e^-3: U^ = 0.9 + 0.1 e^-3.
    expected = 0.5 * math.log(0.9 + 0.1 * math.exp(-3))
    assert log_space.td_error(
        np.float64(0), np.float64(-3), 0.5, math.inf, log_space.step_size(0.1)
    ) == pytest.approx(expected)
    # beta_reg = 1: U^ = U.
    assert log_space.td_error(
        np.float64(0), np.float64(-3), 0.5, math.inf, log_space.step_size(1.0)
    ) == pytest.approx(-1.5)
    # q = e^-400, U = 1: U^ is 0.1 to 170 digits.
    expected = math.log(0.1) + 400
    assert log_space.td_error(
        np.float32(-400), np.float32(0), 1.0, math.inf, log_space.step_size(0.1)
    ) == pytest.approx(expected)


@NAMESPACES
@pytest.mark.parametrize("beta_reg", [0.01, 0.1, 1.0])
def test_td_error_keeps_the_digits_of_small_differences(run, beta_reg):
    # c ln(1 + beta_reg (e^x - 1)) is about c beta_reg x here; ln(1 - beta_reg + ...) would be
    # off by percents in float32.
    x = np.array([1e-6, -1e-5, 1e-4, -0.01, 0.5, -0.99], np.float32)

    def fn(log_u, xp):
        ell = xp.zeros_like(log_u)
        return (log_space.td_error(ell, log_u, 0.5, math.inf, log_space.step_size(beta_reg), xp),)

    (td,) = run(fn, x)
    expected = [0.5 * math.log1p(beta_reg * math.expm1(float(v))) for v in x]
    np.testing.assert_allclose(td, expected, rtol=1e-6)


def test_target_worked_by_hand():
    # gamma^n = 0.5, k = 4, and the largest value 1 / (1 - 0.5) = 2.
    args = {"log_gamma_n": math.log(0.5), "log_floor": 4 * math.log(0.5)}
    clipped = {**args, "log_v_max": math.log(2)}
    unclipped = {**args, "log_v_max": math.inf}
    # r = 1, v = 0.25: 1 + 0.5 * 0.25 = 1.125.
    u = log_space.log_target(np.float64(0), np.log(0.25), np.bool_(False), **clipped)
    assert math.exp(u) == pytest.approx(1.125)
    # The clip: v = 5 counts as 1 / (1 - 0.5) = 2, so 1 + 0.5 * 2 = 2; without it 3.5.
    assert math.exp(
        log_space.log_target(np.float64(0), np.log(5.0), np.bool_(False), **clipped)
    ) == pytest.approx(2.0)
    assert math.exp(
        log_space.log_target(np.float64(0), np.log(5.0), np.bool_(False), **unclipped)
    ) == pytest.approx(3.5)
    # Terminal: only the reward; and the floor 0.5^4 = 0.0625 where there is none.
    assert log_space.log_target(np.float64(0), np.log(5.0), np.bool_(True), **clipped) == 0
    assert math.exp(
        log_space.log_target(np.float64(-np.inf), np.log(5.0), np.bool_(True), **clipped)
    ) == pytest.approx(0.0625)


@NAMESPACES
def test_log_reward(run):
    plus, minus = run(log_space.log_reward, np.array([-1.0, 0.0, 0.5, 1.0], np.float32))
    np.testing.assert_allclose(plus, [-np.inf, -np.inf, math.log(0.5), 0.0])
    np.testing.assert_allclose(minus, [0.0, -np.inf, -np.inf, -np.inf])


@NAMESPACES
def test_select(run):
    values = np.array([[[1.0, -np.inf, 3.0], [4.0, 5.0, np.inf]]], np.float32)
    actions = np.array([[2, 0]])
    (result,) = run(lambda v, a, xp: (log_space.select(v, a, xp),), values, actions)
    np.testing.assert_array_equal(result, [[3.0, 4.0]])


@NAMESPACES
def test_loss(run):
    td = np.array([-3.0, -1.0, 0.5, 0.0, 2.0], np.float32)
    (huber,) = run(lambda x, xp: (log_space.loss(x, "huber", xp),), td)
    np.testing.assert_allclose(huber, [2.5, 0.5, 0.125, 0.0, 1.5])
    (mse,) = run(lambda x, xp: (log_space.loss(x, "mse", xp),), td)
    np.testing.assert_allclose(mse, [9.0, 1.0, 0.25, 0.0, 4.0])


@NAMESPACES
@pytest.mark.parametrize("loss_type", ["huber", "mse"])
def test_loss_and_statistics_of_a_batch_worked_by_hand(run, loss_type):
    # gamma = 0.5, k = 2, c = 1, beta_reg = 0.5: d_+ = 0 and d_- = ln 4. The second action is
    # chosen: q_+ = (0.5, 2), q_- = (0.25, 1). r = 1: in s', Q = (0.5, 0.25, 0), U_+ = 1 + 0.5,
    # U^_+ = 1; U_- = 0.5 * 0.5, U^_- = 0.25. r = -1 at the end: U_+ is the floor 0.25, U^_+ =
    # 1.125; U_- = U^_- = 1.
    tq_plus = np.log(np.array([[4, 0.5, 1], [1, 2, 2]], np.float32))
    tq_minus = np.log(4 * np.array([[1, 0.25, 1], [1, 1, 1]], np.float32))
    next_tq_plus = np.log(np.array([[1, 2, 0.25]] * 2, np.float32))
    next_tq_minus = np.log(4 * np.array([[0.5, 1.75, 0.25]] * 2, np.float32))
    rule = log_space.LogUpdate(gamma=0.5, k=2, c=1, beta_reg=0.5).rule
    stopped = []

    def fn(tq_plus, tq_minus, *rest, xp):
        *next_tqs, actions, rewards, terminals = rest
        loss, statistics = log_space.batch_loss(
            rule, loss_type, (tq_plus, tq_minus), next_tqs, actions, rewards, terminals,
            lambda x: stopped.append(x) or x, xp,
        )  # fmt: skip
        return loss, *(statistics[tag] for tag in sorted(statistics))

    loss, minus, plus, clipped, gap, q_minus, q_plus = run(
        fn, tq_plus, tq_minus, next_tq_plus, next_tq_minus,
        np.array([1, 1]), np.array([1, -1], np.float32), np.array([False, True]),
    )  # fmt: skip
    expected = (math.log(2) ** 2 + math.log(1.125 / 2) ** 2) / 2
    expected /= 2 if loss_type == "huber" else 1
    assert plus == loss == pytest.approx(expected, rel=1e-5)
    assert minus == pytest.approx(0, abs=1e-9)
    assert (q_plus, q_minus) == (pytest.approx(1.25), pytest.approx(0.625))
    assert clipped == 0
    # ln 4 - ln 1, and the two best of the second row are equal.
    assert gap == pytest.approx(math.log(4) / 2)
    assert len(stopped) == 5  # Each head's difference and output, and the outputs of the gap.


@pytest.mark.parametrize(("num_actions", "gap"), [(1, None), (2, 1.0)])
def test_two_actions_have_a_gap_and_one_has_none(num_actions, gap):
    heads = (np.array([[2.0, 3.0]] * 2)[:, :num_actions],) * 2
    batch = (np.array([0, 0]), np.array([0.0, 1.0]), np.array([False, True]))
    rule = log_space.LogUpdate().rule
    _, statistics = log_space.batch_loss(rule, "huber", heads, heads, *batch, lambda x: x)
    assert statistics.get("Values/LogActionGap") == gap


@NAMESPACES
def test_the_share_of_clipped_values(run):
    # The bound is 1 / (1 - 0.5) = 2. Greedy values: q_+ = 3, clipped; q_+ = 3 at an end, which is
    # not bootstrapped; q_+ = 1.9; and q_- = 4, as there is no better action, clipped.
    rule = log_space.LogUpdate(gamma=0.5, k=2, c=1).rule
    next_tq_plus = np.log(np.float32([[3, 1], [3, 1], [1.9, 1], [1, 1]]))
    next_tq_minus = np.log(4 * np.float32([[1, 1], [1, 1], [1, 1], [4, 5]]))
    ends = np.array([False, True, False, False])
    arrays = (np.zeros((4, 2), np.float32), np.zeros(4, int), np.zeros(4, np.float32), ends)

    def fn(next_plus, next_minus, tq, actions, rewards, terminals, xp):
        _, statistics = log_space.batch_loss(
            rule, "huber", (tq, tq), (next_plus, next_minus), actions, rewards, terminals,
            lambda x: x, xp,
        )  # fmt: skip
        return (statistics[log_space.CLIPPED],)

    (share,) = run(fn, next_tq_plus, next_tq_minus, *arrays)
    assert share == 0.5


@pytest.mark.parametrize(
    ("loss_type", "expected"),
    [("huber", 0.5**100 * 0.3 / (math.exp(-1 / 3) - 0.7)), ("mse", 0.3 / (0.7**-3 - 0.7))],
)
def test_where_a_reward_with_a_probability_of_a_quarter_settles(loss_type, expected):
    # A target is 1 with probability 0.25, else the floor. Upward differences beyond 1 count as 1 in
    # Huber's loss; downward ones are at most -ln(1 - beta_reg) = 0.357, which 3 of 4 have: the
    # value falls until the floor is near. The study's settings at gamma 0.5.
    rule = log_space.LogUpdate(gamma=0.5, k=100, c=1, beta_reg=0.3).rule
    l = np.linspace(rule.log_floor, 0, 100001)  # noqa: E741
    slopes = []
    for log_u in (0.0, rule.log_floor):
        td = log_space.td_error(l, np.full_like(l, log_u), 1.0, math.inf, rule.step)
        step = 1e-6
        slopes.append(log_space.loss(td + step, loss_type) - log_space.loss(td - step, loss_type))
    force = 0.25 * slopes[0] + 0.75 * slopes[1]
    falls = l[force < 0]
    assert np.all(np.diff(force) <= 1e-12)  # One fixed point.
    assert falls[0] == pytest.approx(math.log(expected), abs=0.01)  # 1.4e-29, and 0.135


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gamma", 1.0),
        ("k", 0),
        ("k", 10**400),
        ("k", 1e39),
        ("k", 10**39),
        ("c", 1e39),
        ("c", 1e-40),
        ("c", -0.5),
        ("q_init_minus", -1.0),
        ("q_init_plus", math.inf),
        ("clip_bootstrap", "no"),
        ("update_horizon", 1.5),
        ("update_horizon", 10**400),
        ("linear_above", 1e-39),
        *[("linear_above", v) for v in (0, -1.0, math.nan, "one", True)],
        *[("beta_reg", v) for v in (0, -0.1, 1.5, math.nan, 1e-50)],
        *[("update_horizon", v) for v in (0, -3)],
    ],
)
def test_a_setting_out_of_range_is_named(name, value):
    with pytest.raises(ValueError, match=rf"^{name} is {re.escape(repr(value))}; it must be"):
        log_space.LogUpdate(**{name: value})


def test_a_gamma_whose_power_is_0_is_named():
    # The smallest double above 0 is 2^-1074.
    assert log_space.LogUpdate(0.5, k=1, update_horizon=1074).rule.log_gamma_n < -744
    with pytest.raises(ValueError, match=r"^gamma is 0\.5; it must be larger: its power 1075, "):
        log_space.LogUpdate(0.5, k=1, update_horizon=1075)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"c": 1.2e38, "k": 10}, "c"),
        ({"c": 1e-30, "linear_above": 1e-38}, "linear_above"),
        ({"c": 1e8, "linear_above": 1e-30}, "linear_above"),
        ({"linear_above": 1e-36, "q_init_plus": 1e8}, "q_init_plus"),
        ({"linear_above": 1e-36, "q_init_minus": 1e8}, "q_init_minus"),
        ({"c": 0.1, "linear_above": 1e-20, "q_init_plus": 1e19}, "q_init_plus"),
        *(({"k": 1e38, **other}, "k") for other in ({"gamma": 0.01}, {"c": 90.0})),
        ({"k": 1e38, "update_horizon": 100}, "k"),
        ({"gamma": 0.5, "k": 1e37, "c": 10.0, "update_horizon": 20}, "k"),
    ],
)
def test_a_setting_with_which_float32_does_not_hold_the_update_is_named(settings, name):
    with pytest.raises(ValueError, match=f"^{name} is .* must be .* is beyond float32$"):
        log_space.LogUpdate(**settings)
    if name == "k":
        rule = log_space.LogUpdate(**settings | {"k": 1e36}).rule
        assert np.isfinite(np.array([*rule.ds, rule.log_floor], np.float32)).all()
