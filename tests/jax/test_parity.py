"""The TensorFlow and the JAX agent: what they take, and that they are the same algorithm."""

import inspect

import gin
import jax
import numpy as np
import optax
import pytest
import tensorflow as tf
from dopamine.discrete_domains import atari_lib, gym_lib
from dopamine.jax import networks
from dopamine.jax.agents.dqn import dqn_agent as jax_dqn_agent
from dopamine.tf.agents.dqn import dqn_agent

from log_dqn.jax import update
from log_dqn.jax.log_dqn_agent import JaxLogDQNAgent
from log_dqn.tf.log_dqn_agent import LogDQNAgent

NUM_ACTIONS = 6
NATURE = {LogDQNAgent: atari_lib.NatureDQNNetwork, JaxLogDQNAgent: networks.NatureDQNNetwork}


@pytest.mark.parametrize(
    ("ours", "theirs", "changed"),
    [
        (LogDQNAgent, dqn_agent.DQNAgent, {"gamma", "optimizer"}),
        (JaxLogDQNAgent, jax_dqn_agent.JaxDQNAgent, {"gamma", "optimizer", "loss_type"}),
    ],
)
def test_an_agent_takes_and_hands_on_what_dopamines_takes(monkeypatch, ours, theirs, changed):
    """Every parameter, by name and by position, each with a value of its own."""
    known, parameters = (inspect.signature(agent).parameters for agent in (ours, theirs))
    assert {name for name in parameters if known[name].default != parameters[name].default} == (
        changed
    )
    own = {"head_init": "asymmetric", "loss_type": "huber", "precision": "float32", "gamma": 0.96}
    assert {name: known[name].default for name in own} == own
    assert known["network"].default is NATURE[ours]
    handed_on = {}
    monkeypatch.setattr(theirs, "__init__", lambda self, **settings: handed_on.update(settings))
    checked = {
        "gamma": 0.5, "update_horizon": 3, "observation_shape": (4, 1), "loss_type": "mse",
        "network": lambda num_actions: "the given one", "epsilon_fn": print, "preprocess_fn": print,
        "optimizer": tf.compat.v1.train.AdamOptimizer(),
    }  # fmt: skip
    settings = {name: checked.get(name, object()) for name in parameters}
    for args, kwargs in (((), settings), (settings.values(), {})):
        handed_on.clear()
        ours(*args, **kwargs)
        if ours is JaxLogDQNAgent:  # It hands on a network with two heads, around the given one.
            assert handed_on["network"](2).network == "the given one"
            handed_on["network"] = settings["network"]
        assert handed_on == settings


class _NoDense(tf.keras.Model):
    def __init__(self, num_actions, name=None):
        super().__init__(name=name)


@pytest.mark.parametrize(
    ("agent", "settings", "message"),
    [
        *(
            (agent, *wrong)
            for agent in (LogDQNAgent, JaxLogDQNAgent)
            for wrong in (
                ({"gamma": 1.0}, "gamma is 1.0; it must be a number between 0 and 1"),
                ({"loss_type": "l1"}, "loss_type is 'l1'; it must be one of huber, mse"),
                ({"head_init": "x"}, "head_init is 'x'; it must be one of asymmetric, symmetric"),
                ({"precision": "x"}, "precision is 'x'; it must be one of float32, tf32, bfloat16"),
                ({"network": "x"}, "network is 'x'; it must be a network class"),
            )
        ),
        (LogDQNAgent, {"dtype": "int8"}, "dtype is 'int8'; it must be one of float32, float64"),
        (
            LogDQNAgent, {"network": networks.NatureDQNNetwork},
            "network is .*Nature.*; it must be one of Keras",
        ),
        (LogDQNAgent, {"network": _NoDense}, ".*_NoDense.*; its last layer must be a Dense layer"),
        (JaxLogDQNAgent, {"observation_shape": 4}, "observation_shape is 4; it must be a tuple of"),
        (JaxLogDQNAgent, {"epsilon_fn": 1}, "epsilon_fn is 1; it must be a schedule"),
        (JaxLogDQNAgent, {"preprocess_fn": 1}, "preprocess_fn is 1; it must be a function, or No"),
        (JaxLogDQNAgent, {"optimizer": "x"}, "optimizer is 'x'; it must be one of 'adam', 'rmspr"),
    ],
)  # fmt: skip
def test_a_setting_out_of_range_is_named(agent, settings, message):
    first = {LogDQNAgent: (None, 2), JaxLogDQNAgent: (2,)}[agent]
    with pytest.raises(ValueError, match=f"^{message}"):
        agent(*first, **settings)


def test_both_optimizers_are_the_papers():
    optimizer = inspect.signature(LogDQNAgent).parameters["optimizer"].default
    assert isinstance(optimizer, tf.compat.v1.train.RMSPropOptimizer)
    assert (optimizer._learning_rate, optimizer._decay, optimizer._momentum) == (0.0025, 0.95, 0.0)
    assert (optimizer._epsilon, optimizer._centered) == (1e-5, True)
    # The first step is 0.0025 g / sqrt(0.95 + 0.05 g^2 - (0.05 g)^2 + eps).
    optimizer = inspect.signature(JaxLogDQNAgent).parameters["optimizer"].default
    assert isinstance(optimizer, optax.GradientTransformation)
    step, _ = optimizer.update(np.ones(1), optimizer.init(np.zeros(1, np.float32)))
    np.testing.assert_allclose(step, [-0.0025 / np.sqrt(1 - 0.0025 + 1e-5)], rtol=1e-6)


def states_of_cartpole(rng, size):
    low, high = gym_lib.CARTPOLE_MIN_VALS, gym_lib.CARTPOLE_MAX_VALS
    return rng.uniform(low, high, (2, size, 4))[..., None, None].astype(np.float32)


def pictures(rng, size):
    """Stacks of four frames of random patches."""
    patches = rng.integers(256, size=(2, size, 12, 12, 4), dtype=np.uint8)
    return patches.repeat(7, axis=2).repeat(7, axis=3)


def invented_batch(rng, size, draw_states):
    """Transitions between states that have nothing to do with each other."""
    states, next_states = draw_states(rng, size)
    return update.Batch(
        states=states,
        actions=rng.integers(NUM_ACTIONS, size=size).astype(np.int32),
        next_states=next_states,
        rewards=rng.choice([-1, 0, 0, 0.5, 1], size).astype(np.float32),
        terminals=rng.random(size) < 0.1,
    )


def create_agents(batch_size, tf_network, jax_network, **settings):
    gin.parse_config(
        f"""
        WrappedReplayBuffer.replay_capacity = 100
        WrappedReplayBuffer.batch_size = {batch_size}
        ReplayBuffer.max_capacity = 100
        ReplayBuffer.batch_size = {batch_size}
        """
    )
    tf_agent = LogDQNAgent(None, NUM_ACTIONS, network=tf_network, **settings)
    jax_agent = JaxLogDQNAgent(NUM_ACTIONS, network=jax_network, seed=0, **settings)
    return tf_agent, jax_agent


def copy_weights(tf_agent, jax_agent, layers):
    """Gives the JAX agent the TensorFlow agent's weights; `layers` in the order of creation."""
    values = iter(tf_agent._sess.run(tf_agent.online_convnet.trainable_variables))
    params = {"params": {name: {"kernel": next(values), "bias": next(values)} for name in layers}}
    assert jax.tree.map(np.shape, params) == jax.tree.map(np.shape, jax_agent.online_params)
    jax_agent.online_params = jax_agent.target_network_params = jax.tree.map(
        jax.numpy.asarray, params
    )
    jax_agent.optimizer_state = jax_agent.optimizer.init(jax_agent.online_params)
    tf_agent._sess.run(tf_agent._sync_qt_ops)


def compare(tf_agent, jax_agent, layers, draw_states, num_updates=200):
    """Trains both on the same batches; returns the largest relative differences.

    Of a loss, and of a weight after all updates, relative to the largest in its layer.
    """
    copy_weights(tf_agent, jax_agent, layers)
    start = jax_agent.online_params["params"]
    rng = np.random.default_rng(1)
    worst_loss = 0.0
    for number in range(num_updates):
        if number == num_updates // 2:
            tf_agent._sess.run(tf_agent._sync_qt_ops)
            jax_agent._sync_weights()
        size = jax_agent._replay._batch_size
        batch = invented_batch(rng, size, draw_states)
        replay = tf_agent._replay
        tf_loss, _ = tf_agent._sess.run(
            [tf_agent._mean_loss, tf_agent._train_op],
            {
                replay.states: batch.states,
                replay.actions: batch.actions,
                replay.next_states: batch.next_states,
                replay.rewards: batch.rewards,
                replay.terminals: batch.terminals.astype(np.uint8),
            },
        )
        jax_agent.online_params, jax_agent.optimizer_state, statistics = jax_agent._train(
            jax_agent.online_params,
            jax_agent.target_network_params,
            jax_agent.optimizer_state,
            batch,
        )
        jax_loss = float(statistics["Losses/Plus"]) + float(statistics["Losses/Minus"])
        worst_loss = max(worst_loss, abs(jax_loss / tf_loss - 1))

    worst_weight = 0.0
    values = iter(tf_agent._sess.run(tf_agent.online_convnet.trainable_variables))
    for name in layers:
        kernel, bias = next(values), next(values)
        of_jax = jax_agent.online_params["params"][name]
        largest = np.abs(kernel).max()
        # It has been trained: it moved by much more than the two may differ.
        assert np.abs(kernel - start[name]["kernel"]).max() > 1e-3 * largest
        worst_weight = max(
            worst_weight,
            np.abs(of_jax["kernel"] - kernel).max() / largest,
            np.abs(of_jax["bias"] - bias).max() / largest,
        )
    print(f"losses differ by {worst_loss:.1e}, weights by {worst_weight:.1e}")
    return worst_loss, worst_weight


@pytest.mark.parametrize(
    "settings",
    [
        {"gamma": 0.5, "update_horizon": 3},
        pytest.param({}, marks=pytest.mark.slow),
        {"linear_above": 0.1, "c": 0.1, "beta_reg": 1.0},
    ],
)
def test_losses_and_weights_on_a_small_network(settings):
    gin.parse_config(
        """
        ClassicControlDQNNetwork.min_vals = %jax_networks.CARTPOLE_MIN_VALS
        ClassicControlDQNNetwork.max_vals = %jax_networks.CARTPOLE_MAX_VALS
        """
    )
    agents = create_agents(
        16, gym_lib.CartpoleDQNNetwork, networks.ClassicControlDQNNetwork, observation_shape=(4, 1),
        observation_dtype=tf.float32, stack_size=1, **settings,
    )  # fmt: skip
    loss, weight = compare(*agents, ["layers_0", "layers_1", "final_layer"], states_of_cartpole)
    assert loss < 2e-6
    assert weight < 2e-6


@pytest.mark.slow
def test_losses_and_weights_on_the_nature_network():
    # 80 updates: beyond, training this network magnifies rounding errors about tenfold every 20
    # updates.
    loss, weight = compare(
        *create_agents(32, atari_lib.NatureDQNNetwork, networks.NatureDQNNetwork),
        ["Conv_0", "Conv_1", "Conv_2", "Dense_0", "Dense_1"],
        pictures,
        num_updates=80,
    )
    assert loss < 1e-5
    assert weight < 1e-4
