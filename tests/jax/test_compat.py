"""What Dopamine's JAX agents get, against Dopamine's own TensorFlow side."""

import gin
import numpy as np
import optax
import pytest
from dopamine.jax.agents.dqn import dqn_agent
from dopamine.jax.agents.full_rainbow import full_rainbow_agent
from dopamine.jax.agents.quantile import quantile_agent
from dopamine.jax.agents.rainbow import rainbow_agent
from dopamine.jax.replay_memory import accumulator, elements, replay_buffer, samplers
from dopamine.tf.replay_memory import circular_replay_buffer

from log_dqn.jax import compat

STACK_SIZE = 4


def episode(rng, length):
    return [
        (rng.integers(1, 256, size=(2, 2), dtype=np.uint8), int(rng.integers(5)), rng.normal())
        for _ in range(length)
    ]


def accumulated(episodes, update_horizon, gamma, cut_off=False):
    replay = accumulator.TransitionAccumulator(STACK_SIZE, update_horizon, gamma)
    result = []
    for steps in episodes:
        for number, (observation, action, reward) in enumerate(steps):
            last = number == len(steps) - 1
            transition = elements.TransitionElement(
                observation, action, reward, last and not cut_off, last
            )
            result += replay.accumulate(transition)
    return result


@pytest.mark.parametrize("update_horizon", [1, 3])
def test_transitions_are_those_of_the_tensorflow_replay_memory(update_horizon):
    rng = np.random.default_rng(0)
    gamma = 0.5
    episodes = [episode(rng, length) for length in (7, 1, 2, 3, 5)]
    of_jax = accumulated(episodes, update_horizon, gamma)

    memory = circular_replay_buffer.OutOfGraphReplayBuffer(
        (2, 2), STACK_SIZE, 100, 1, update_horizon=update_horizon, gamma=gamma
    )
    indices = []
    for steps in episodes:
        for number, step in enumerate(steps):
            if number == 0:
                indices.append(memory.cursor() + STACK_SIZE - 1)  # Past the padding.
            else:
                indices.append(memory.cursor())
            memory.add(*step, number == len(steps) - 1)
    for _ in range(update_horizon):  # The frames after the last step have to exist.
        memory.add(*steps[0], False)
    batch = memory.sample_transition_batch(len(indices), indices)
    states, actions, rewards, next_states, _, _, terminals, _ = batch

    assert len(of_jax) == len(indices) == 18  # Every step of every episode, once.
    for i, element in enumerate(of_jax):
        np.testing.assert_array_equal(element.state, states[i])
        assert (element.action, element.is_terminal) == (actions[i], bool(terminals[i]))
        assert element.episode_end == element.is_terminal
        assert element.reward == pytest.approx(rewards[i], rel=1e-6)
        if not element.is_terminal:
            np.testing.assert_array_equal(element.next_state, next_states[i])
    assert sum(element.is_terminal for element in of_jax) == {1: 5, 3: 12}[update_horizon]


@pytest.mark.parametrize("update_horizon", [1, 3])
def test_an_episode_that_is_cut_off_bootstraps(update_horizon):
    # What follows the step at which it was cut off is unknown: the transitions that need it are
    # left out, as in Dopamine, and none is terminal.
    steps = [(np.full((1,), i + 1, np.uint8), i, float(10**i)) for i in range(6)]
    result = accumulated([steps], update_horizon, 0.5, cut_off=True)
    assert [element.action for element in result] == list(range(6 - update_horizon))
    assert not any(element.is_terminal for element in result)
    np.testing.assert_array_equal(result[-1].next_state, [[3, 4, 5, 6]])
    # r_2 + 0.5 r_3 + 0.25 r_4, or r_4.
    assert result[-1].reward == {1: 10_000, 3: 100 + 500 + 2500}[update_horizon]


@pytest.mark.parametrize("cut_off", [False, True])
def test_nothing_of_an_episode_gets_into_the_next(cut_off):
    rng = np.random.default_rng(1)
    episodes = [episode(rng, length) for length in (5, 4)]
    together = accumulated(episodes, 2, 0.5, cut_off)
    alone = [element for steps in episodes for element in accumulated([steps], 2, 0.5, cut_off)]
    assert len(together) == len(alone) == (5 if cut_off else 9)
    for one, other in zip(together, alone, strict=True):
        for name in ("state", "next_state", "action", "reward", "is_terminal", "episode_end"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_agents_use_it():
    assert accumulator.TransitionAccumulator is compat.TransitionAccumulator
    assert dqn_agent.accumulator is accumulator


@pytest.mark.parametrize("capacity", [4, 5])
def test_a_full_replay_memory_with_priorities_keeps_the_newest(capacity):
    memory = replay_buffer.ReplayBuffer(
        accumulator.TransitionAccumulator(1, 1, 0.9),
        samplers.PrioritizedSamplingDistribution(0, max_capacity=capacity),
        batch_size=300,
        max_capacity=capacity,
    )
    for number in range(21):
        memory.add(elements.TransitionElement(np.array([number]), 0, 0.0, False, False), priority=1)
    drawn = memory.sample().state.ravel()
    assert sorted(set(drawn)) == list(range(20 - capacity, 20))


@pytest.mark.parametrize(
    "agent_class",
    [
        rainbow_agent.JaxRainbowAgent,
        pytest.param(full_rainbow_agent.JaxFullRainbowAgent, marks=pytest.mark.slow),
        quantile_agent.JaxQuantileAgent,
    ],
)
def test_rainbow_keeps_its_replay_scheme(agent_class):
    gin.parse_config(
        """
        ReplayBuffer.max_capacity = 100
        ReplayBuffer.batch_size = 8
        """
    )
    for scheme in ("prioritized", "uniform"):
        assert agent_class(3, seed=0, replay_scheme=scheme)._replay_scheme == scheme
    with pytest.raises(ValueError, match="Invalid replay scheme: x"):
        agent_class(3, seed=0, replay_scheme="x")


def test_an_optimizer_may_be_given_by_itself_or_by_name():
    optimizer = optax.sgd(0.5)
    assert dqn_agent.create_optimizer(optimizer) is optimizer
    by_name = dqn_agent.create_optimizer("sgd")
    updates, _ = by_name.update(np.ones(2), by_name.init(np.ones(2)))
    np.testing.assert_allclose(updates, [-6.25e-5] * 2, rtol=1e-6)
    for wrong in ("x", None, optax.sgd):
        with pytest.raises(ValueError, match=r"^optimizer is .*; it must be one of 'adam', 'rms"):
            dqn_agent.create_optimizer(wrong)
