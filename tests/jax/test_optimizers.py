import gin
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tensorflow as tf

from log_dqn.jax import optimizers


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.0025},
        {"learning_rate": 0.00025, "momentum": 0.9},
        {"learning_rate": 0.001, "decay": 0.9, "epsilon": 0.01, "centered": False},
    ],
)
def test_it_steps_as_tensorflow_1_does_over_1000_steps(settings):
    rng = np.random.default_rng(0)
    # Gradients of many sizes: at 1e-3 epsilon rules the root, at 10 it is nothing.
    scales = 10.0 ** rng.uniform(-3, 1, 40).astype(np.float32)
    start = rng.normal(size=40).astype(np.float32)
    gradients = (scales * rng.normal(0.3, 1, (1000, 40))).astype(np.float32)

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        weights = tf.compat.v1.get_variable("w", initializer=start)
        gradient = tf.compat.v1.placeholder(tf.float32, [40])
        step = tf.compat.v1.train.RMSPropOptimizer(
            **{"decay": 0.95, "epsilon": 1e-5, "centered": True, **settings}
        ).apply_gradients([(gradient, weights)])
        session.run(tf.compat.v1.global_variables_initializer())
        of_tf = []
        for row in gradients:
            session.run(step, {gradient: row})
            of_tf.append(session.run(weights))

    optimizer = optimizers.rmsprop_tf(**settings)

    def update(carry, row):
        params, state = carry
        updates, state = optimizer.update(row, state, params)
        params = optax.apply_updates(params, updates)
        return (params, state), params

    _, of_jax = jax.lax.scan(update, (jnp.asarray(start), optimizer.init(start)), gradients)
    np.testing.assert_allclose(of_jax, of_tf, rtol=1e-6, atol=1e-6)
    # Weights have moved, by more than a thousand times the tolerance.
    assert np.abs(of_tf[-1] - start).min() > 1e-3


def test_two_steps_of_adam_worked_by_hand():
    # Gradients 1 and 0. Means: 0.1 and 0.001, then 0.09 and 0.000999; 1 - beta^2: 0.19, 0.001999.
    expected = [1 / (1 + 0.01), 0.09 / 0.19 / (np.sqrt(0.000999 / 0.001999) + 0.01)]
    optimizer = optimizers.adam(learning_rate=0.5, epsilon=0.01)
    state = optimizer.init(jnp.zeros(1))
    for gradient, step in zip((1.0, 0.0), expected, strict=True):
        updates, state = optimizer.update(jnp.full(1, gradient), state)
        np.testing.assert_allclose(updates, [-0.5 * step], rtol=1e-4)


def test_defaults_and_gin():
    # The first step for g = 1: ms = 0.95 + 0.05, mg = 0.05.
    for rate, epsilon in ((0.00025, 1e-5), (0.5, 3.0)):
        optimizer = optimizers.rmsprop_tf()
        updates, _ = optimizer.update(jnp.ones(1), optimizer.init(jnp.zeros(1)))
        np.testing.assert_allclose(updates, [-rate / np.sqrt(1 - 0.0025 + epsilon)], rtol=1e-6)
        gin.parse_config("rmsprop_tf.learning_rate = 0.5\nrmsprop_tf.epsilon = 3.0")
