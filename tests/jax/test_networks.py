"""MinAtar's network in flax, in Keras and in the vectorized part: one and the same."""

import jax
import numpy as np
import pytest
import tensorflow as tf

from log_dqn.jax import networks as jax_networks
from log_dqn.tf import networks as tf_networks
from log_dqn.vectorized import networks

NUM_ACTIONS = 6


def boards(channels, number=16):
    shape = (number, 10, 10, channels, 1)
    return np.random.default_rng(0).integers(2, size=shape).astype(np.uint8)


def parameters(channels, num_outputs):
    """Parameters in flax's form, biases too."""
    rng = np.random.default_rng(1)
    shapes = {
        "Conv_0": {"kernel": (3, 3, channels, 16), "bias": (16,)},
        "Dense_0": {"kernel": (1600, num_outputs), "bias": (num_outputs,)},
    }
    return jax.tree.map(
        lambda shape: rng.normal(scale=0.1, size=shape).astype(np.float32),
        shapes,
        is_leaf=lambda x: isinstance(x, tuple),
    )


def in_keras(params, states):
    """Returns the kernels of a new model, and its outputs with these parameters."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        model = tf_networks.RevisitingRainbowNetwork(NUM_ACTIONS)
        outputs = model(tf.constant(states)).q_values
        variables = model.trainable_variables
        session.run(tf.compat.v1.global_variables_initializer())
        initial = session.run(variables)
        values = [params[layer][name] for layer in params for name in ("kernel", "bias")]
        for variable, value in zip(variables, values, strict=True):
            assert variable.shape == value.shape
        session.run([tf.compat.v1.assign(*pair) for pair in zip(variables, values, strict=True)])
        return initial[::2], session.run(outputs)


def plainly(params, states):
    """The outputs in numpy, written out."""
    x = np.pad(states[..., 0].astype(float), [(0, 0), (1, 1), (1, 1), (0, 0)])
    kernel = params["Conv_0"]["kernel"]
    conv = sum(x[:, i : i + 10, j : j + 10] @ kernel[i, j] for i in range(3) for j in range(3))
    hidden = np.maximum(conv + params["Conv_0"]["bias"], 0).reshape(len(states), -1)
    return hidden @ params["Dense_0"]["kernel"] + params["Dense_0"]["bias"]


@pytest.mark.parametrize("channels", [4, 10])
def test_flax_keras_and_ours_are_equal(channels):
    params, states = parameters(channels, NUM_ACTIONS), boards(channels)
    expected = plainly(params, states)
    assert expected.std() > 0.1

    flax = jax_networks.JaxRevisitingRainbowNetwork(num_actions=NUM_ACTIONS)
    initial = flax.init(jax.random.key(0), x=states[0])["params"]
    assert jax.tree.map(np.shape, initial) == jax.tree.map(np.shape, params)
    in_flax = jax.vmap(lambda state: flax.apply({"params": params}, state).q_values)(states)
    np.testing.assert_allclose(in_flax, expected, rtol=1e-4, atol=1e-5)

    kernels, keras = in_keras(params, states)
    np.testing.assert_allclose(keras, expected, rtol=1e-4, atol=1e-5)

    mine, num_features = networks.revisiting_rainbow.init(jax.random.key(0), states.shape[1:])
    assert (jax.tree.map(np.shape, mine), num_features) == (
        {"Conv_0": jax.tree.map(np.shape, params["Conv_0"])},
        1600,
    )
    features = jax.jit(networks.revisiting_rainbow.apply)({"Conv_0": params["Conv_0"]}, states)
    ours = networks.dense(params["Dense_0"], features)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)

    # All begin with Glorot's uniform weights.
    limits = np.sqrt(6 / (9 * channels + 9 * 16)), np.sqrt(6 / (1600 + NUM_ACTIONS))
    in_flax = [initial[layer]["kernel"] for layer in ("Conv_0", "Dense_0")]
    for of_layers in (in_flax, kernels, [mine["Conv_0"]["kernel"]]):
        for kernel, limit in zip(of_layers, limits, strict=False):
            assert 0.95 * limit < np.abs(np.asarray(kernel)).max() <= limit


@pytest.mark.parametrize("name", ["revisiting_rainbow", "minatar"])
@pytest.mark.parametrize("width", [9, 10])
def test_a_state_alone_and_among_others(name, width):
    # A single one's convolution is a product of matrices with every version of JAX.
    network, states = networks.NETWORKS[name], boards(7)[:, :, :width]
    params = jax.jit(lambda key: network.init(key, states.shape[1:])[0])(jax.random.key(1))
    apply = jax.jit(network.apply)
    alone = np.concatenate([apply(params, state[None]) for state in states])
    kernel = params["Conv_0"]["kernel"]
    padding = "SAME" if name == "revisiting_rainbow" else "VALID"
    expected = jax.lax.conv(
        states[..., 0].transpose(0, 3, 1, 2).astype(np.float32),
        np.asarray(kernel).transpose(3, 2, 0, 1),
        (1, 1),
        padding,
    )
    expected = np.maximum(np.asarray(expected).transpose(0, 2, 3, 1), 0).reshape(len(states), -1)
    if name == "minatar":
        expected = np.maximum(expected @ np.asarray(params["Dense_0"]["kernel"]), 0)
    assert expected.std() > 0.01
    for found in (alone, apply(params, states)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
