"""The TensorFlow and the JAX agent are the same algorithm: same weights, same batches."""

import gin
import jax
import numpy as np
import pytest
import tensorflow as tf
from dopamine.discrete_domains import atari_lib, gym_lib
from dopamine.jax import networks
from dopamine.jax.replay_memory import elements

from log_dqn import atari
from log_dqn.jax import compat, update
from log_dqn.jax.log_dqn_agent import JaxLogDQNAgent
from log_dqn.tf.log_dqn_agent import LogDQNAgent

NUM_ACTIONS = 6


def invented_batch(rng, size):
    """Transitions between CartPole's states that have nothing to do with each other."""
    low, high = gym_lib.CARTPOLE_MIN_VALS, gym_lib.CARTPOLE_MAX_VALS
    states, next_states = rng.uniform(low, high, (2, size, 4))[..., None, None]
    return update.Batch(
        states=states.astype(np.float32),
        actions=rng.integers(NUM_ACTIONS, size=size).astype(np.int32),
        next_states=next_states.astype(np.float32),
        rewards=rng.choice([-1, 0, 0, 0.5, 1], size).astype(np.float32),
        terminals=rng.random(size) < 0.1,
    )


def play_at_random(game, steps):
    """Transitions of a random player."""
    rng = np.random.default_rng(0)
    environment = atari.create_environment(game, seed=0)
    accumulate = compat.TransitionAccumulator(4, update_horizon=1, gamma=0.96).accumulate
    transitions = []
    observation = environment.reset()
    for _ in range(steps):
        action = int(rng.integers(NUM_ACTIONS))
        next_observation, reward, terminal, _ = environment.step(action)
        step = elements.TransitionElement(observation[..., 0], action, reward, terminal, terminal)
        transitions += accumulate(step)
        observation = environment.reset() if terminal else next_observation
    return update.Batch(
        states=np.stack([transition.state for transition in transitions]),
        actions=np.array([transition.action for transition in transitions], np.int32),
        next_states=np.stack([transition.next_state for transition in transitions]),
        rewards=np.clip([transition.reward for transition in transitions], -1, 1).astype(
            np.float32
        ),
        terminals=np.array([transition.is_terminal for transition in transitions]),
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


def compare(tf_agent, jax_agent, layers, sample, num_updates=200):
    """Trains both on the same batches; returns the largest relative differences.

    Of a loss, and of a weight after all updates, relative to the largest in its layer. `sample`
    draws the states and next states of a batch.
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
        batch = sample(rng, size)
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
    loss, weight = compare(*agents, ["layers_0", "layers_1", "final_layer"], invented_batch)
    assert loss < 2e-6
    assert weight < 2e-6


@pytest.mark.slow
def test_losses_and_weights_on_the_nature_network():
    # 100 updates: beyond, training this network magnifies rounding errors about tenfold every 20
    # updates.
    transitions = play_at_random("SpaceInvaders", 1500)
    invented = np.random.default_rng(5).choice([-1, 0, 0, 0.5, 1], len(transitions.rewards))
    transitions = transitions._replace(rewards=invented.astype(np.float32))

    def sample(rng, size):
        indices = rng.integers(len(transitions.actions), size=size)
        return update.Batch(*(values[indices] for values in transitions))

    loss, weight = compare(
        *create_agents(32, atari_lib.NatureDQNNetwork, networks.NatureDQNNetwork),
        ["Conv_0", "Conv_1", "Conv_2", "Dense_0", "Dense_1"],
        sample,
        num_updates=100,
    )
    assert loss < 1e-5
    assert weight < 1e-4
