import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dopamine.jax import networks
from flax import linen as nn

from log_dqn import log_space
from log_dqn.jax import heads
from log_dqn.jax import networks as jax_networks

NUM_ACTIONS = 5


def create(network, head_init="asymmetric", update=None, precision="float32"):
    return heads.TwoHeadedNetwork(
        network(num_actions=2 * NUM_ACTIONS), NUM_ACTIONS, head_init,
        update or log_space.LogUpdate(), precision,
    )  # fmt: skip


NETWORKS = pytest.mark.parametrize(
    ("network", "shape", "output"),
    [
        (networks.NatureDQNNetwork, (84, 84, 4), "Dense_1"),
        pytest.param(networks.ImpalaDQNNetwork, (84, 84, 4), "Dense_1", marks=pytest.mark.slow),
        (networks.ClassicControlDQNNetwork, (4, 1), "final_layer"),
        (jax_networks.JaxRevisitingRainbowNetwork, (10, 10, 4, 1), "Dense_0"),
    ],
)


@NETWORKS
def test_head_initialisation(network, shape, output):
    state = np.random.default_rng(0).integers(256, size=shape)
    features = 1600 if output == "Dense_0" else 512
    limit = math.sqrt(6 / (features + NUM_ACTIONS))  # Glorot uniform for one head
    for head_init in log_space.HEAD_INITS:
        two_headed = create(network, head_init)
        params = two_headed.init(jax.random.PRNGKey(0), state)
        layer = params["params"][output]
        assert (layer["bias"] == 0).all()
        plus, minus = np.split(np.asarray(layer["kernel"]), 2, axis=-1)
        assert plus.shape == minus.shape == (features, NUM_ACTIONS)
        assert 0.95 * limit < np.abs(plus).max() <= limit
        assert plus.std() == pytest.approx(limit / math.sqrt(3), rel=0.1)
        if head_init == "asymmetric":
            assert (minus == 0).all()
        else:
            assert 0.95 * limit < np.abs(minus).max() <= limit
            assert abs(np.corrcoef(plus.ravel(), minus.ravel())[0, 1]) < 0.1

        outputs = two_headed.apply(params, state)
        direct = two_headed.network.apply(params, state).q_values
        np.testing.assert_array_equal(jnp.concatenate([outputs.plus, outputs.minus]), direct)
        assert (outputs.minus == 0).all() == (head_init == "asymmetric")


@NETWORKS
def test_the_torso_is_the_host_s(network, shape, output):
    state = np.zeros(shape)
    ours = create(network).init(jax.random.PRNGKey(0), state)["params"]
    theirs = network(num_actions=NUM_ACTIONS).init(jax.random.PRNGKey(0), state)["params"]
    assert ours.keys() == theirs.keys()
    for name in set(ours) - {output}:
        assert jax.tree.map(jnp.shape, ours[name]) == jax.tree.map(jnp.shape, theirs[name])


class _Fixed(nn.Module):
    """Outputs its bias."""

    num_actions: int

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.num_actions)(x * 0)
        return heads.TwoHeadedOutput(x, None, None)


def test_the_greedy_action_is_that_of_q_plus_less_q_minus():
    # gamma^k is 1e-100. Q is about (1e-90, 1e-60, -1, -1e-5, -2): the second action is greedy.
    update = log_space.LogUpdate(gamma=0.1)
    ln10 = math.log(10)
    ln_q = np.array([[-90, -60, -80, -90, -80], [-95, -70, 0, -5, 0.3]]) * ln10
    biases = [m.c * q + m.d for m, q in zip(update.mappings, ln_q, strict=True)]
    two_headed = create(_Fixed, update=update)
    params = two_headed.init(jax.random.PRNGKey(0), np.zeros(3, np.float32))
    params["params"]["Dense_0"]["bias"] = jnp.concatenate(biases).astype(jnp.float32)
    keys = two_headed.apply(params, np.zeros(3, np.float32)).q_values
    assert keys.dtype == jnp.float32
    assert keys.argmax() == 1


class _AsWideInside(nn.Module):
    """A network with a hidden layer as wide as its output."""

    num_actions: int

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.num_actions, name="hidden")(x)
        return heads.TwoHeadedOutput(nn.Dense(self.num_actions, name="output")(x), None, None)


def test_the_heads_are_the_last_layer():
    params = create(_AsWideInside).init(jax.random.PRNGKey(0), np.ones(3, np.float32))["params"]
    assert (params["output"]["kernel"][:, NUM_ACTIONS:] == 0).all()
    assert (params["hidden"]["kernel"] != 0).all()


class _NoDense(nn.Module):
    num_actions: int

    def __call__(self, x):
        return heads.TwoHeadedOutput(x, None, None)


def test_a_network_without_an_output_layer_is_named():
    with pytest.raises(ValueError, match=r"^network is _NoDense; its last layer must be a Dense"):
        create(_NoDense).init(jax.random.PRNGKey(0), np.zeros(3))


class _OfOnes(nn.Module):
    """Two layers without biases."""

    num_actions: int

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(1, use_bias=False)(x)
        return heads.TwoHeadedOutput(nn.Dense(self.num_actions, use_bias=False)(x), None, None)


@pytest.mark.parametrize(
    ("precision", "expected"),
    # 1 + 2^-10 is 1 in bfloat16; its square is 1 + 2^-9 + 2^-20.
    [("float32", 1 + 2**-9 + 2**-20), ("bfloat16", 1 + 2**-10)],
)
def test_the_torso_alone_is_rounded(precision, expected):
    two_headed = create(_OfOnes, precision=precision)
    state = np.ones(1, np.float32)
    params = jax.tree.map(
        lambda x: jnp.full_like(x, 1 + 2**-10), two_headed.init(jax.random.PRNGKey(0), state)
    )
    outputs = two_headed.apply(params, state)
    np.testing.assert_array_equal(outputs.plus, np.float32([expected] * NUM_ACTIONS))


@pytest.mark.parametrize("precision", log_space.PRECISIONS)
def test_precision_of_the_products(precision):
    two_headed = create(networks.NatureDQNNetwork, precision=precision)
    states = np.zeros((2, 84, 84, 4))
    params = two_headed.init(jax.random.PRNGKey(0), states[0])
    program = str(
        jax.make_jaxpr(jax.grad(lambda p: two_headed.batch_outputs(p, states)[0].sum()))(params)
    )
    # Of the torso three convolutions and a dense layer; as many gradients of weights, and three of
    # inputs. Of the heads one of each.
    in_tf32 = program.count("precision=(Precision.HIGH, Precision.HIGH)")
    exact = program.count("precision=(Precision.HIGHEST, Precision.HIGHEST)")
    assert (in_tf32, exact) == ((11, 3) if precision == "tf32" else (0, 14))
    in_bfloat16 = re.findall(r"bf16\[[\d,]+\] = (?:conv|dot)_general", program)
    assert len(in_bfloat16) == (11 if precision == "bfloat16" else 0)
