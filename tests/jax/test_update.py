import jax
import jax.numpy as jnp
import numpy as np
import pytest

from log_dqn import log_space
from log_dqn.jax import update
from log_dqn.mapping import from_log
from tests import reference
from tests.programs import python

NUM_ACTIONS = 4
BATCH_SIZE = 48


def batch(settings, seed=0):
    """Outputs as training meets them: targets of every size from the floor to the largest return,
    next-state actions that nearly tie or lie far apart, chosen outputs near their targets."""
    rng = np.random.default_rng(seed)
    mappings = log_space.LogUpdate(**settings).mappings
    largest = -np.log1p(-settings["gamma"])
    next_tqs = []
    for mapping in mappings:
        centre = rng.uniform(mapping.log_floor, largest, (BATCH_SIZE, 1))
        spread = 10.0 ** rng.uniform(-2, 1, (BATCH_SIZE, 1))
        log_q = centre + spread * rng.normal(size=(BATCH_SIZE, NUM_ACTIONS))
        next_tqs.append((mapping.c * log_q + mapping.d).astype(np.float32))
    # Mostly no reward: a reward of order 1 drowns every small value.
    rewards = rng.choice([-1, 0, 0, 0, 0, 1], BATCH_SIZE).astype(np.float32)
    terminals = rng.random(BATCH_SIZE) < 0.2
    exact = reference.exact(**settings)
    us = np.array(
        [
            [float(exact.ln(u)) for u in exact.update_targets(*transition)]
            for transition in zip(*next_tqs, rewards, terminals, strict=True)
        ]
    )
    actions = rng.integers(NUM_ACTIONS, size=BATCH_SIZE)
    tqs = []
    for head, mapping in enumerate(mappings):
        distance = rng.uniform(1, 4, (BATCH_SIZE, 1)) * rng.choice([-1, 1], (BATCH_SIZE, 1))
        log_q = np.tile(us[:, [head]] + distance, NUM_ACTIONS)
        tqs.append((mapping.c * log_q + mapping.d).astype(np.float32))
    return tqs, next_tqs, actions, rewards, terminals


def assert_exact(settings, tqs, next_tqs, *rest, rounding=0.0):
    """Holds loss, gradients and greedy actions in float32 against those with digits enough."""
    rule = log_space.LogUpdate(**settings).rule
    actions, rewards, terminals = rest
    jax_next_tqs = tuple(map(jnp.asarray, next_tqs))

    def loss_fn(tqs):
        return update.batch_loss(rule, "huber", tqs, jax_next_tqs, *rest)[0]

    loss, gradients = jax.value_and_grad(loss_fn)(tuple(map(jnp.asarray, tqs)))
    greedy = rule.greedy_actions(jax_next_tqs, jnp)
    assert loss.dtype == gradients[0].dtype == jnp.float32

    exact = reference.exact(**settings)
    expected_loss, expected = 0.0, np.zeros((2, BATCH_SIZE, NUM_ACTIONS))
    for i, action in enumerate(actions):
        chosen = [tq[i, action] for tq in tqs]
        next_outputs = [next_tq[i] for next_tq in next_tqs]
        ys = exact.targets(chosen, *next_outputs, rewards[i], bool(terminals[i]))
        for head, y in enumerate(ys):
            td = float(y - exact.number(chosen[head]))
            expected_loss += reference.plain_loss(td, "huber") / BATCH_SIZE
            expected[head, i, action] = -np.clip(td, -1, 1) / BATCH_SIZE
        values, best = exact.q(*next_outputs)
        assert float((values[best] - values[greedy[i]]) / abs(values[best])) < 1e-4
    assert loss == pytest.approx(expected_loss, rel=1e-4, abs=rounding)
    np.testing.assert_allclose(gradients, expected, rtol=1e-4, atol=rounding / BATCH_SIZE)


@pytest.mark.parametrize("k", [10, 100, 300])
@pytest.mark.parametrize("gamma", [0.1, 0.3, 0.5, 0.84, 0.96, 0.99, 0.999])
def test_float32_is_enough_at_any_discount_factor(gamma, k):
    settings = {"gamma": gamma, "k": k}
    assert_exact(settings, *batch(settings))


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.96, 0.99])
@pytest.mark.parametrize(("b", "c"), [(1e-6, 1.0), (0.1, 0.1), (1.0, 0.5), (10.0, 10.0)])
def test_loss_and_gradients_with_a_line(gamma, b, c):
    settings = {"gamma": gamma, "c": c, "linear_above": b, "beta_reg": 1.0 if c == b else 0.3}
    rng = np.random.default_rng(0)

    def outputs(head):
        log_qs = rng.uniform(head.log_floor, 3, (BATCH_SIZE, NUM_ACTIONS))
        return (c * from_log(log_qs, head.log_b) + head.d).astype(np.float32)

    mappings = log_space.LogUpdate(**settings).mappings
    tqs, next_tqs = ([outputs(head) for head in mappings] for _ in range(2))
    rewards = rng.choice([-1, 0, 0, 0, 0, 1], BATCH_SIZE).astype(np.float32)
    rest = rng.integers(NUM_ACTIONS, size=BATCH_SIZE), rewards, rng.random(BATCH_SIZE) < 0.2
    # An output of 20 / b is known to seven digits.
    rounding = 2e-7 * max(1, c * 20 / b) * max(1, -np.log(b))
    assert_exact(settings, tqs, next_tqs, *rest, rounding=rounding)


def test_dqn_loss_worked_by_hand():
    # gamma^n = 0.5. Targets 1 + 0.5 * 4 = 3 and, after the end, -1; differences 3 - 0.5 = 2.5 and
    # -1 - (-0.5) = -0.5; Huber losses 2 and 0.125, squares 6.25 and 0.25.
    qs = jnp.array([[0.5, 9.0], [7.0, -0.5]])
    next_qs = jnp.array([[4.0, -1.0], [5.0, 6.0]])
    batch = (qs, next_qs, np.array([0, 1]), np.array([1.0, -1.0]), np.array([False, True]))
    for loss, expected in (("huber", 2.125 / 2), ("mse", 6.5 / 2)):
        value, statistics = update.dqn_batch_loss(0.5, loss, *batch)
        assert value == statistics["Losses/Loss"] == pytest.approx(expected)
        assert statistics["Values/Q"] == pytest.approx(0)
    gradient = jax.grad(lambda qs: update.dqn_batch_loss(0.5, "huber", qs, *batch[1:])[0])(qs)
    np.testing.assert_allclose(gradient, [[-0.5, 0], [0, 0.25]])


def test_update_heads_and_optimizers_need_neither_tensorflow_nor_dopamine():
    code = (
        "import sys, log_dqn.jax.update, log_dqn.jax.heads, log_dqn.jax.optimizers\n"
        "print([name for name in ('tensorflow', 'dopamine') if name in sys.modules])"
    )
    out = python("-c", code)
    assert (out.stdout.strip(), out.stderr) == ("[]", "")
