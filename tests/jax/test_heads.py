import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dopamine.jax import networks
from flax import linen as nn

from log_dqn import log_space
from log_dqn.jax import heads

NUM_ACTIONS = 5


def create(network, head_init="asymmetric", update=None):
    return heads.TwoHeadedNetwork(
        network(num_actions=2 * NUM_ACTIONS),
        NUM_ACTIONS,
        head_init,
        update or log_space.LogUpdate(),
    )


NETWORKS = pytest.mark.parametrize(
    ("network", "shape", "output"),
    [
        (networks.NatureDQNNetwork, (84, 84, 4), "Dense_1"),
        (networks.ImpalaDQNNetwork, (84, 84, 4), "Dense_1"),
        (networks.ClassicControlDQNNetwork, (4, 1), "final_layer"),
    ],
)


@NETWORKS
def test_head_initialisation(network, shape, output):
    state = np.random.default_rng(0).integers(256, size=shape)
    limit = math.sqrt(6 / (512 + NUM_ACTIONS))  # Glorot uniform for one head
    for head_init in log_space.HEAD_INITS:
        two_headed = create(network, head_init)
        params = two_headed.init(jax.random.PRNGKey(0), state)
        layer = params["params"][output]
        assert (layer["bias"] == 0).all()
        plus, minus = np.split(np.asarray(layer["kernel"]), 2, axis=-1)
        assert plus.shape == minus.shape == (512, NUM_ACTIONS)
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


def test_seeds_decide_the_weights():
    def kernel(seed):
        params = create(networks.ClassicControlDQNNetwork).init(
            jax.random.PRNGKey(seed), np.zeros((4, 1))
        )
        return params["params"]["final_layer"]["kernel"]

    np.testing.assert_array_equal(kernel(1), kernel(1))
    assert (kernel(1) != kernel(2)).any()


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
    np.testing.assert_array_equal(np.argsort(keys), [4, 2, 3, 0, 1])


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
