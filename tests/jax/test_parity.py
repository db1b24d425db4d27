"""The TensorFlow and the JAX agent are the same algorithm: same weights, same batches."""

import gin
import jax
import numpy as np
import pytest
import tensorflow as tf
from dopamine.discrete_domains import atari_lib, gym_lib
from dopamine.jax import networks

from log_dqn.jax import optimizers, update
from log_dqn.jax.log_dqn_agent import JaxLogDQNAgent
from log_dqn.tf.log_dqn_agent import LogDQNAgent

NUM_ACTIONS = 6


@pytest.fixture(autouse=True)
def graph():
    gin.clear_config()
    tf.compat.v1.disable_v2_behavior()
    with tf.Graph().as_default():
        tf.compat.v1.set_random_seed(0)
        yield
    gin.clear_config()


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


def compare(tf_agent, jax_agent, layers, states, num_updates=200):
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
        batch = update.Batch(
            states=states(rng, size),
            actions=rng.integers(NUM_ACTIONS, size=size).astype(np.int32),
            next_states=states(rng, size),
            rewards=rng.choice([-1, 0, 0, 0.5, 1], size).astype(np.float32),
            terminals=rng.random(size) < 0.1,
        )
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
        for part in ("kernel", "bias"):
            of_tf, of_jax = next(values), np.asarray(jax_agent.online_params["params"][name][part])
            # It has been trained: it moved by much more than the two may differ.
            assert np.abs(of_tf - start[name][part]).max() > 0.01 * np.abs(of_tf).max()
            worst_weight = max(worst_weight, np.abs(of_jax - of_tf).max() / np.abs(of_tf).max())
    return worst_loss, worst_weight


@pytest.mark.parametrize("settings", [{}, {"gamma": 0.5, "update_horizon": 3}])
def test_losses_and_weights_on_a_small_network(settings):
    gin.parse_config(
        """
        ClassicControlDQNNetwork.min_vals = %jax_networks.CARTPOLE_MIN_VALS
        ClassicControlDQNNetwork.max_vals = %jax_networks.CARTPOLE_MAX_VALS
        """
    )
    agents = create_agents(
        16,
        gym_lib.CartpoleDQNNetwork,
        networks.ClassicControlDQNNetwork,
        observation_shape=(4, 1),
        observation_dtype=tf.float32,
        stack_size=1,
        **settings,
    )
    low, high = gym_lib.CARTPOLE_MIN_VALS, gym_lib.CARTPOLE_MAX_VALS
    loss, weight = compare(
        *agents,
        ["layers_0", "layers_1", "final_layer"],
        lambda rng, size: rng.uniform(low, high, (size, 4))[..., None, None].astype(np.float32),
    )
    print(f"losses differ by {loss:.1e}, weights by {weight:.1e}")
    assert loss < 1e-5
    assert weight < 1e-4


@pytest.mark.slow
def test_losses_and_weights_on_the_nature_network():
    agents = create_agents(32, atari_lib.NatureDQNNetwork, networks.NatureDQNNetwork)
    assert agents[1].optimizer is not optimizers.rmsprop_tf
    loss, weight = compare(
        *agents,
        ["Conv_0", "Conv_1", "Conv_2", "Dense_0", "Dense_1"],
        lambda rng, size: rng.integers(256, size=(size, 84, 84, 4), dtype=np.uint8),
    )
    print(f"losses differ by {loss:.1e}, weights by {weight:.1e}")
    assert loss < 1e-5
    assert weight < 1e-4
