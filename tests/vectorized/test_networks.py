"""The networks: Nature's against Dopamine's in flax, precisions, and what suits an observation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dopamine.jax import networks as dopamine_networks
from gymnax.environments import spaces

from log_dqn import log_space
from log_dqn.vectorized import agents, networks
from tests.vectorized import toys


def test_nature_equals_dopamines():
    key = jax.random.key(0)
    params, features = networks.nature.init(key, (84, 84, 4))
    params["Dense_1"] = networks.dense_params(jax.random.key(1), features, 6)
    theirs = dopamine_networks.NatureDQNNetwork(num_actions=6)
    state = np.random.default_rng(0).integers(0, 256, (84, 84, 4)).astype(np.uint8)
    in_flax = {**params, "Dense_0": {**params["Dense_0"], "kernel": params["Dense_0"]["kernel"].T}}
    initial = theirs.init(key, state)["params"]
    assert jax.tree.map(jnp.shape, in_flax) == jax.tree.map(jnp.shape, initial)
    for name in initial:
        for statistic in (np.std, np.max):
            ours, expected = (
                statistic(np.asarray(params[name]["kernel"])) for params in (in_flax, initial)
            )
            assert ours == pytest.approx(expected, rel=0.03), name
    expected = theirs.apply({"params": in_flax}, state).q_values
    ours = networks.dense(params["Dense_1"], networks.nature.apply(params, state[None]))[0]
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_precision():
    name, shape = "revisiting_rainbow", (10, 10, 7, 1)
    rng = np.random.default_rng(3)
    states = jnp.asarray(rng.integers(0, 2, (8, *shape), dtype=np.uint8))
    params, _ = networks.NETWORKS[name].init(jax.random.key(4), shape)
    exact = jax.jit(networks.NETWORKS[name].apply)(params, states)
    features, gradients = {}, {}
    for precision in log_space.PRECISIONS:
        apply = jax.jit(networks.create(name, precision).apply)
        features[precision], gradients_of = jax.vjp(lambda p, apply=apply: apply(p, states), params)
        (gradient,) = gradients_of(jnp.ones_like(exact))
        gradients[precision] = gradient["Conv_0"]["kernel"]
        assert features[precision].dtype == gradients[precision].dtype == jnp.float32
    # A CPU has float32 alone.
    np.testing.assert_array_equal(features["float32"], exact)
    np.testing.assert_array_equal(features["tf32"], exact)
    # 8 bits are two to three decimal digits.
    size = float(exact.max())
    error = np.abs(np.asarray(features["bfloat16"] - exact)).max() / size
    assert 1e-4 < error < 2e-2
    wanted = np.asarray(gradients["float32"])
    error = np.abs(np.asarray(gradients["bfloat16"]) - wanted).max() / np.abs(wanted).max()
    assert 1e-4 < error < 5e-2
    assert networks.create(name, "float32") is networks.create(name, "float32")


@pytest.mark.parametrize(("precision", "jaxs"), [("float32", "HIGHEST"), ("tf32", "HIGH")])
def test_precision_of_the_products(precision, jaxs):
    network = networks.create("nature", precision)
    params, _ = network.init(jax.random.key(5), (84, 84, 4))
    states = jnp.zeros((2, 84, 84, 4), jnp.uint8)
    program = str(jax.make_jaxpr(jax.grad(lambda p: network.apply(p, states).sum()))(params))
    # Three convolutions and a dense layer; as many gradients of weights, and three of inputs.
    assert program.count(f"precision=(Precision.{jaxs}, Precision.{jaxs})") == 4 + 4 + 3


def test_the_heads_are_float32_whatever_the_networks_precision():
    network, agent = networks.create("nature", "tf32"), toys.log_dqn()
    params = agents.initial_params(agent.head_inits, network, jax.random.key(6), (84, 84, 4), 3, 3)
    outputs = functools.partial(agent.outputs, network, num_actions=3)
    program = str(jax.make_jaxpr(outputs)(params, jnp.zeros((2, 84, 84, 4), jnp.uint8)))
    assert program.count("precision=(Precision.HIGHEST, Precision.HIGHEST)") == 1


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((), "dense"), ((4,), "dense"), ((10, 5), "revisiting_rainbow"),
        ((12, 12, 5), "revisiting_rainbow"), ((35, 40, 3), "revisiting_rainbow"),
        ((20, 40, 40), "revisiting_rainbow"),
        ((36, 36), "nature"), ((64, 64, 3), "nature"), ((3, 3, 3, 3), "dense"),
    ],
)  # fmt: skip
def test_the_network_by_shape(shape, name):
    assert networks.by_shape("by_shape", shape) == name
    network = networks.create(name, "float32")

    def compute(key, states):
        params, num_features = network.init(key, states.shape[1:])
        assert network.apply(params, states).shape == (3, num_features)

    jax.eval_shape(compute, jax.random.key(0), jnp.zeros((3, *shape, 2)))


@pytest.mark.parametrize("shape", [(4, 84, 84), (3, 210, 160), (84, 4, 84)])
def test_channels_of_pictures_come_last(shape):
    with pytest.raises(
        ValueError, match=r"^network is 'by_shape'; it must be another for .* are moved"
    ):
        networks.by_shape("by_shape", shape)
    assert networks.by_shape("nature", shape) == "nature"


def test_minatars_network_needs_three_fields():
    assert networks.by_shape("minatar", (3, 10, 2)) == "minatar"
    with pytest.raises(ValueError, match=r"network is 'minatar'; it must be another for \(2, 10,"):
        networks.by_shape("minatar", (2, 10, 3))


def test_a_stack_of_boards_is_more_channels():
    states = np.random.default_rng(0).integers(0, 2, (3, 7, 6, 2, 4)).astype(bool)
    network = networks.create("revisiting_rainbow", "float32")
    params, _ = network.init(jax.random.key(0), states.shape[1:])
    assert params["Conv_0"]["kernel"].shape == (3, 3, 8, 16)
    apply = jax.jit(network.apply)
    together = apply(params, states.reshape(3, 7, 6, 8, 1))
    np.testing.assert_array_equal(apply(params, states), together)


def test_what_a_network_sees():
    vector = spaces.Box(jnp.array([-2.0, 0, -jnp.inf, 5]), jnp.array([2.0, 10, 3e38, 5]), (4,))
    prepare = networks.preparation(vector, (4,))
    seen = prepare(jnp.array([[[1.0], [10], [7], [5]]]))
    assert seen[0, :, 0].tolist() == [0.5, 1, 7, 5]
    picture = networks.preparation(spaces.Box(0, 255, (2, 2)), (2, 2))
    assert picture(jnp.full((1, 2, 2, 1), 51, jnp.uint8))[0, 0, 0, 0] == pytest.approx(0.2)
    photo = jnp.full((1, 36, 36, 1), 51, jnp.uint8)
    unbounded = networks.preparation(None, (36, 36), "uint8")(photo)
    np.testing.assert_allclose(unbounded, 0.2, rtol=1e-6)
    board = networks.preparation(None, (6, 6), "uint8")
    assert board(jnp.ones((1, 6, 6, 1), jnp.uint8)).max() == 1
    flags = networks.preparation(spaces.Box(0, 1, (2, 2)), (2, 2))
    assert flags(jnp.ones((1, 2, 2, 1), bool)).max() == 1
    number = networks.preparation(spaces.Discrete(3), ())
    assert number(jnp.array([[2, 0]])).tolist() == [[[0, 1], [0, 0], [1, 0]]]
