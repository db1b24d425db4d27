"""Saving and loading of agents without whole runs, which `tests/dopamine_run` has."""

import gin
import numpy as np
import tensorflow as tf
from dopamine.discrete_domains import gym_lib
from dopamine.tf.agents.rainbow import rainbow_agent

from log_dqn.tf import agent_checkpoint


def small_rainbow():
    gin.parse_config(
        "WrappedPrioritizedReplayBuffer.replay_capacity = 50\n"
        "WrappedPrioritizedReplayBuffer.batch_size = 8"
    )
    return rainbow_agent.RainbowAgent(
        tf.compat.v1.Session(), num_actions=2, observation_shape=(4, 1),
        observation_dtype=tf.float32, stack_size=1, network=gym_lib.CartpoleRainbowNetwork,
        min_replay_history=20,
    )  # fmt: skip


def test_the_priorities_of_a_replay_memory_come_back(tmp_path):
    rng = np.random.default_rng(0)
    trees = []
    for _ in range(2):
        with tf.Graph().as_default():
            tf.compat.v1.set_random_seed(0)
            agent = small_rainbow()
            if not trees:
                agent._sess.run(tf.compat.v1.global_variables_initializer())
                for _ in range(3):
                    agent.begin_episode(rng.normal(size=(4, 1)))
                    for _ in range(14):
                        agent.step(1.0, rng.normal(size=(4, 1)))
                    agent.end_episode(1.0)
                state = agent_checkpoint.save(agent, tmp_path)
            else:
                agent_checkpoint.load(agent, tmp_path, state)
            trees.append(agent._replay.memory.sum_tree)
    saved, loaded = trees
    # By losses, so that they differ, and one is above 1, with which a memory begins.
    assert len(np.unique(saved.nodes[-1])) > 8 and saved.max_recorded_priority > 1
    np.testing.assert_equal(loaded.nodes, saved.nodes)
    assert loaded.max_recorded_priority == saved.max_recorded_priority
