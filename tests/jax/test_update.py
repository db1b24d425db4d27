import jax
import jax.numpy as jnp
import numpy as np
import pytest

from log_dqn.jax import update
from tests.programs import python


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
