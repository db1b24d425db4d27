"""The ring gives what a plain memory of whole episodes gives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from log_dqn.vectorized import agents, learner, replay, timeline
from log_dqn.vectorized.timeline import Phase

from . import toys

STACK = 4


class PlainMemory:
    """Episodes as lists, and the transitions that they give."""

    def __init__(self, n, gamma, capacity):
        self.n, self.gamma, self.capacity = n, gamma, capacity
        self.episode, self.transitions = [], []
        # Those that an update at this step can draw: without the ones that the end of an episode
        # has just completed.
        self.drawable = []

    def stack(self, end):
        frames = [step[0] for step in self.episode[max(0, end - STACK + 1) : end + 1]]
        zeros = [np.zeros_like(frames[0])] * (STACK - len(frames))
        return np.stack([*zeros, *frames], axis=-1)

    def transition(self, start, stop, terminal):
        rewards = [np.clip(step[2], -1, 1) for step in self.episode[start:stop]]
        reward = sum(self.gamma**i * r for i, r in enumerate(rewards))
        next_state = None if terminal else self.stack(stop)
        self.transitions.append(
            (self.stack(start), self.episode[start][1], next_state, reward, terminal)
        )

    def add(self, frame, action, reward, ended):
        self.episode.append((frame, action, reward))
        length = len(self.episode)
        if length > self.n:
            self.transition(length - 1 - self.n, length - 1, False)
        self.drawable = self.transitions[-self.capacity :]
        if ended:
            for start in range(max(0, length - self.n), length):
                self.transition(start, length, True)
            self.episode = []
        self.transitions = self.transitions[-self.capacity :]


@pytest.mark.parametrize(
    ("n", "capacity"), [(1, 37), (3, 37), pytest.param(5, 500, marks=pytest.mark.slow)]
)
def test_transitions_equal_those_of_whole_episodes(n, capacity):
    # Two runs with thousands of episodes of 1 to 8 steps, with times of evaluation between,
    # whose steps are not remembered; the ring wraps around many times.
    agent = toys.log_dqn(
        update_horizon=n, min_replay_history=20, gamma=0.9, epsilon_train=1.0, epsilon_eval=1.0
    )
    problem = learner.Problem(toys.small_network, (3,), "uint8", STACK, 8, capacity)
    runner = agents.RunnerSettings(
        training_steps=900, evaluation_steps=100, replay_capacity=capacity, stack_size=STACK
    )
    of_runs = learner.Learner([agent] * 2, problem, runner, [4, 4], [1, 2])
    position = timeline.begin(2)
    environments = toys.Toys(lambda seed: toys.Noise(seed, lengths=(1, 8)), 2)
    plain = [PlainMemory(n, 0.9, capacity) for _ in range(2)]
    before, compared, episodes = None, 0, 0

    for step in range(3750):
        due = timeline.update(of_runs.rules, position, np.False_, np.zeros(2, bool), np)
        available = due.available
        for memory in plain:
            memory.drawable = list(memory.transitions)
        outcome = environments.receive() if step else None
        if outcome is None:
            zeros = np.zeros(2, np.float32)
            frames = np.zeros((2, 3), np.uint8)
            outcome = timeline.Outcome(frames, zeros, zeros > 0, zeros > 0)
        else:
            for run in np.flatnonzero(before["phase"] == Phase.TRAINING):
                ended = outcome.ended[run]
                plain[run].add(
                    before["frames"][run], before["actions"][run], outcome.reward[run], ended
                )
                episodes += ended
        if step % 50 == 49:
            for run in np.flatnonzero([len(memory.drawable) > 0 for memory in plain]):
                assert available[run] == len(plain[run].drawable)
                slots = due.oldest[run] + np.arange(available[run])[:, None]
                slots = (slots + np.arange(1 - STACK, n + 1)) % of_runs.slots
                memory = replay.Memory(*(np.asarray(field)[run] for field in of_runs.memory))
                batch = replay.transitions(replay.read(memory, slots), STACK, 0.9)
                compare(batch, plain[run].drawable)
                compared += available[run]
        starts = timeline.starts(of_runs.rules, position, step) & (position.iteration < 2)
        frames = np.where(
            starts[:, None], environments.reset(starts, np.array([step, step + 1])), outcome.frame
        )
        position, plan = timeline.advance(of_runs.rules, position, outcome, starts, np)
        actions = of_runs.act(frames, outcome.reward, plan.choice)
        if (position.iteration == 2).all():
            break
        environments.send(actions)
        before = {"frames": frames, "actions": actions, "phase": position.phase}
    assert (position.iteration == 2).all()
    assert episodes > 600
    assert compared > 2500


def compare(batch, expected):
    states, actions, next_states, rewards, terminals = zip(*expected, strict=True)
    np.testing.assert_array_equal(batch.states, states)
    np.testing.assert_array_equal(batch.actions, actions)
    np.testing.assert_array_equal(batch.terminals, terminals)
    np.testing.assert_allclose(batch.rewards, rewards, rtol=1e-6, atol=1e-7)
    for ours, theirs in zip(np.asarray(batch.next_states), next_states, strict=True):
        if theirs is not None:
            np.testing.assert_array_equal(ours, theirs)


def test_draws_are_uniform():
    slots = np.asarray(
        jax.vmap(lambda key: replay.draw(key, 17, 10, 20, 32, STACK, 1))(
            jax.random.split(jax.random.key(0), 500)
        )
    ).reshape(-1, STACK + 1)
    first = slots[:, STACK - 1]
    # Ten transitions begin at slots 17, 18, 19, 0, ..., 6.
    numbers, counts = np.unique((first - 17) % 20, return_counts=True)
    np.testing.assert_array_equal(numbers, np.arange(10))
    # 16,000 draws: 1,600 each, with a standard deviation of 38.
    assert np.abs(counts - 1600).max() < 4 * 38
    np.testing.assert_array_equal(slots, (first[:, None] + np.arange(-3, 2)) % 20)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_time_limit_within_n_steps_is_an_end(length):
    # Each transition of 3 steps is cut off: the batch is as drawn, each number once.
    memory = replay.create((13,), (), "uint8", 4)
    for step in range(13):
        memory = replay.add_step(memory, step, jnp.uint8(step), jnp.int32(0), jnp.int32(0))
        cut = replay.CUT * (step % length == length - 1)
        memory = replay.add_result(memory, step, float(step), cut)
    slots = np.arange(10)[::-1, None] + np.arange(4)
    batch = replay.transitions(replay.without_cuts(replay.read(memory, slots), 1), 1, 1.0)
    first = np.arange(10)[::-1]
    assert batch.states[:, 0].tolist() == first.tolist()
    assert batch.terminals.all()
    rewards = [sum(range(i, i + length - i % length)) for i in first]
    assert batch.rewards.tolist() == rewards


def test_a_slot_beyond_the_last_stores_nothing():
    memory = replay.create((5,), (2,), "uint8", 4)
    stored = replay.add_step(memory, 5, jnp.ones(2, jnp.uint8), jnp.int32(3), jnp.int32(1))
    stored = replay.add_result(stored, 5, 1.0, True)
    assert all(not field.any() for field in stored)
    stored = replay.add_step(memory, 4, jnp.ones(2, jnp.uint8), jnp.int32(3), jnp.int32(1))
    stored = replay.add_result(stored, 4, 1.0, True)
    assert all(field[4].any() and not field[:4].any() for field in stored)
