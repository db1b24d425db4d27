"""A run learns a small environment as fast as Dopamine's agent with the same settings."""

import gin
import jax.numpy as jnp
import numpy as np
import pytest
from dopamine.discrete_domains import atari_lib
from dopamine.jax.agents.dqn import dqn_agent
from flax import linen as nn

from log_dqn.jax import log_dqn_agent, optimizers
from log_dqn.vectorized import agents

from . import toys

SEEDS = [1, 2, 3]
STEPS, BLOCKS = 4000, 5
SETTINGS = {
    "gamma": 0.9, "min_replay_history": 100, "update_period": 2, "target_update_period": 50,
    "epsilon_train": 0.02, "epsilon_decay_period": 800,
}  # fmt: skip


class Network(nn.Module):
    """`toys.small_network` in flax."""

    num_actions: int
    inputs_preprocessed: bool = False

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(64, kernel_init=nn.initializers.glorot_uniform())(x.reshape(-1) / 255))
        return atari_lib.DQNNetworkType(
            nn.Dense(self.num_actions, kernel_init=nn.initializers.glorot_uniform())(x)
        )


def curve(returns):
    """Mean return in each fifth of the steps; episodes of Catch take 9 steps."""
    blocks = np.array_split(returns[: STEPS // 9], BLOCKS)
    return [float(np.mean(block)) for block in blocks]


def agents_curve(create, seed):
    agent = create(
        num_actions=toys.Catch.num_actions, observation_shape=(10, 5), observation_dtype=jnp.uint8,
        stack_size=1, network=Network, seed=seed, **SETTINGS,
    )  # fmt: skip
    game = toys.Catch(seed)
    returns = []
    while len(returns) * 9 < STEPS:
        action, ended = agent.begin_episode(game.reset()), False
        while not ended:
            frame, reward, ended = game.step(int(action))
            if not ended:
                action = agent.step(reward, frame)
        agent.end_episode(reward, True)
        returns.append(reward)
    return curve(returns)


def our_curves(tmp_path, agent):
    runner = agents.RunnerSettings(
        num_iterations=1, training_steps=STEPS, evaluation_steps=0, replay_capacity=2000,
        stack_size=1,
    )  # fmt: skip
    trainer = toys.make_trainer(tmp_path, [agent] * len(SEEDS), seeds=SEEDS, runner=runner)
    trainer.train()
    return [curve(log["iteration_0"]["train_episode_returns"]) for log in trainer._logs]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LogDQN", "DQN"])
def test_learns_as_fast_as_the_agent(tmp_path, name):
    gin.parse_config("ReplayBuffer.max_capacity = 2000\nReplayBuffer.batch_size = 32")
    if name == "LogDQN":
        ours = agents.VectorizedLogDQNAgent(c=1.0, beta_log=0.03, **SETTINGS)
        optimizer = optimizers.rmsprop_tf(learning_rate=0.03)

        def create(**settings):
            return log_dqn_agent.JaxLogDQNAgent(c=1.0, optimizer=optimizer, **settings)

    else:
        ours = agents.VectorizedDQNAgent(learning_rate=0.01, **SETTINGS)
        optimizer = optimizers.rmsprop_tf(learning_rate=0.01)

        def create(**settings):
            return dqn_agent.JaxDQNAgent(optimizer=optimizer, loss_type="huber", **settings)

    theirs = np.mean([agents_curve(create, seed) for seed in SEEDS], axis=0)
    gin.clear_config()
    ours = np.mean(our_curves(tmp_path, ours), axis=0)
    # A random policy gets about -0.6.
    for learned in (ours, theirs):
        assert learned[0] < -0.2
        assert learned[-1] > 0.85
    # The mean of a block of 3 x 88 episodes has a standard error of 0.06 from episodes alone, and
    # seeds differ by up to 0.16.
    np.testing.assert_allclose(ours, theirs, atol=0.3)
