"""Saving and loading of agents without a whole run; `tests/jax/test_train.py` has those."""

import gin
import numpy as np
from dopamine.jax import networks
from dopamine.jax.agents.rainbow import rainbow_agent

from log_dqn.jax import agent_checkpoint


def small_rainbow(seed):
    gin.parse_config(
        "PrioritizedSamplingDistribution.max_capacity = 50\n"
        "ReplayBuffer.max_capacity = 50\n"
        "ReplayBuffer.batch_size = 8"
    )
    return rainbow_agent.JaxRainbowAgent(
        2, observation_shape=(4, 1), observation_dtype=np.float32, stack_size=1,
        network=networks.ClassicControlRainbowNetwork, min_replay_history=20, seed=seed,
    )  # fmt: skip


def test_the_priorities_of_a_replay_memory_come_back(tmp_path):
    rng = np.random.default_rng(0)
    agent, other = small_rainbow(0), small_rainbow(1)
    for _ in range(3):
        agent.begin_episode(rng.normal(size=(4, 1)))
        for _ in range(14):
            agent.step(1.0, rng.normal(size=(4, 1)))
        agent.end_episode(1.0)
    agent_checkpoint.load(other, tmp_path, agent_checkpoint.save(agent, tmp_path))
    saved, loaded = (a._replay._sampling_distribution._sum_tree for a in (agent, other))
    # By losses, so that they differ, and one is above 1, with which a memory begins.
    assert len(np.unique(saved._nodes)) > 8 and saved.max_recorded_priority > 1
    np.testing.assert_array_equal(loaded._nodes, saved._nodes)
    assert loaded.max_recorded_priority == saved.max_recorded_priority
