"""MinAtar's network in flax, in Keras and in the vectorized part: one and the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from log_dqn import log_space
from log_dqn.jax import heads as jax_heads
from log_dqn.jax import networks as jax_networks
from log_dqn.tf import heads as tf_heads
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


def in_keras(create, params, states):
    """Builds a model, sets its weights and returns its outputs."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        model = create()
        outputs = model(tf.constant(states)).q_values
        variables = model.trainable_variables
        values = [params[layer][name] for layer in params for name in ("kernel", "bias")]
        for variable, value in zip(variables, values, strict=True):
            assert variable.shape == value.shape
        session.run([tf.compat.v1.assign(*pair) for pair in zip(variables, values, strict=True)])
        return session.run(outputs)


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

    keras = in_keras(lambda: tf_networks.RevisitingRainbowNetwork(NUM_ACTIONS), params, states)
    np.testing.assert_allclose(keras, expected, rtol=1e-4, atol=1e-5)

    mine, num_features = networks.revisiting_rainbow.init(jax.random.key(0), states.shape[1:])
    assert (jax.tree.map(np.shape, mine), num_features) == (
        {"Conv_0": jax.tree.map(np.shape, params["Conv_0"])},
        1600,
    )
    features = networks.revisiting_rainbow.apply({"Conv_0": params["Conv_0"]}, states)
    ours = networks.dense(params["Dense_0"], features)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["revisiting_rainbow", "minatar"])
@pytest.mark.parametrize("width", [9, 10])
def test_a_state_alone_and_among_others(name, width):
    # A single one's convolution is a product of matrices with every version of JAX.
    network, states = networks.NETWORKS[name], boards(7)[:, :, :width]
    params, _ = network.init(jax.random.key(1), states.shape[1:])
    alone = jnp.concatenate([network.apply(params, state[None]) for state in states])
    kernel = params["Conv_0"]["kernel"]
    padding = "SAME" if name == "revisiting_rainbow" else "VALID"
    expected = jax.lax.conv(
        states[..., 0].transpose(0, 3, 1, 2).astype(jnp.float32),
        kernel.transpose(3, 2, 0, 1),
        (1, 1),
        padding,
    )
    expected = jax.nn.relu(expected.transpose(0, 2, 3, 1)).reshape(len(states), -1)
    if name == "minatar":
        expected = jax.nn.relu(expected @ params["Dense_0"]["kernel"])
    assert expected.std() > 0.01
    for found in (alone, network.apply(params, states)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def two_headed_in_flax():
    return jax_heads.TwoHeadedNetwork(
        jax_networks.JaxRevisitingRainbowNetwork(num_actions=2 * NUM_ACTIONS),
        NUM_ACTIONS,
        "asymmetric",
        log_space.LogUpdate(),
    )


def two_headed_in_keras():
    return tf_heads.create_two_headed_network(
        tf_networks.RevisitingRainbowNetwork, NUM_ACTIONS, "asymmetric", dtype="float32",
        precision="float32", name="Online",
    )  # fmt: skip


def test_both_have_two_heads_on_one_torso():
    channels = 7
    params, states = parameters(channels, 2 * NUM_ACTIONS), boards(channels)
    expected = plainly(params, states)
    two_headed = two_headed_in_flax()
    for outputs, head in zip(
        two_headed.batch_outputs({"params": params}, states), np.split(expected, 2, 1), strict=True
    ):
        np.testing.assert_allclose(outputs, head, rtol=1e-4, atol=1e-5)

    np.testing.assert_allclose(
        in_keras(two_headed_in_keras, params, states), expected, rtol=1e-4, atol=1e-5
    )


def test_the_minus_head_of_both_starts_at_zero():
    state = boards(4, 1)
    limit = np.sqrt(6 / (1600 + NUM_ACTIONS))  # Glorot uniform for one head.
    two_headed = two_headed_in_flax()
    in_flax = two_headed.init(jax.random.PRNGKey(0), state[0])["params"]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        model = two_headed_in_keras()
        model(tf.constant(state))
        session.run(tf.compat.v1.global_variables_initializer())
        conv, _, dense, _ = session.run(model.trainable_variables)
    for kernel in (in_flax["Dense_0"]["kernel"], dense):
        plus, minus = np.split(np.asarray(kernel), 2, axis=-1)
        assert (minus == 0).all()
        assert 0.99 * limit < np.abs(plus).max() <= limit
    conv_limit = np.sqrt(6 / (9 * 4 + 9 * 16))
    for kernel in (in_flax["Conv_0"]["kernel"], conv):
        assert 0.95 * conv_limit < np.abs(np.asarray(kernel)).max() <= conv_limit
