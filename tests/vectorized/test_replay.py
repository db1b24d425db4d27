"""What is stored and learned from, against whole episodes in plain Python."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from log_dqn.cli import progress
from log_dqn.vectorized import (
    agents,
    device_loop,
    environments,
    jax_environments,
    learner,
    replay,
    timeline,
    training,
)
from log_dqn.vectorized.timeline import Phase

from . import own_jax_environment as own
from . import toys

STACK = 4


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def batch_of(memory, slots, stack, gamma, bootstraps=False):
    batch = replay.read(memory, slots)
    return replay.transitions(
        replay.without_cuts(batch, 1, len(slots)) if bootstraps else batch, stack, gamma
    )


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


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 5))])
def test_transitions_equal_those_of_whole_episodes(n):
    capacity = 37
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
                compare(batch_of(memory, slots, STACK, 0.9), plain[run].drawable)
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
    batch = batch_of(memory, slots, 1, 1.0, True)
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


def episodes_of_the_clock(steps, ends, max_steps):
    """Yields (observations, rewards, whether it was cut off) of each episode of so many steps."""
    number = 0
    while steps > 0:
        length = min(own.length_of(number), max_steps)
        is_cut = length < own.length_of(number) or bool(own.is_truncated(number, ends))
        times = range(min(length, steps))
        yield [(number, t) for t in times], [own.reward_of(number, t) for t in times], is_cut
        # One that the program cuts off, the environment hasn't: it begins anew.
        number = 0 if length < own.length_of(number) else number + 1
        steps -= length


def expected_transitions(n, gamma, clips, bootstraps, *clock):
    """Returns (state, rewards, next state or None at an end) of each transition, in their order."""
    found = []
    for observations, rewards, is_cut in episodes_of_the_clock(*clock):
        for first in range(len(observations)):
            later = rewards[first : first + n]
            later = [min(max(r, -1), 1) if clips else r for r in later]
            total = round(sum(gamma**i * r for i, r in enumerate(later)), 5)
            if first + n < len(observations):
                found.append((observations[first], total, observations[first + n]))
            elif is_cut and bootstraps:
                found.append(None)
            else:
                found.append((observations[first], total, None))
    return found


@pytest.mark.parametrize(
    ("where", "n", "ends", "values", "max_steps", "bootstraps"),
    [
        ("device", 3, 2, 6, 4, True),
        pytest.param("device", 2, 3, 6, 99, False, marks=pytest.mark.slow),
        pytest.param("device", 1, 3, 6, 99, True, marks=pytest.mark.slow),
        pytest.param("device", 2, 1, 5, 99, True, marks=pytest.mark.slow),
        ("host", 1, 3, 6, 99, True),
        ("host", 3, 2, 6, 4, True),
        pytest.param("host", 2, 3, 6, 99, False, marks=pytest.mark.slow),
        # An episode that ends at the limit has ended.
        pytest.param("device", 2, 1, 6, 6, True, marks=pytest.mark.slow),
        pytest.param("host", 2, 1, 6, 6, True, marks=pytest.mark.slow),
    ],
)
def test_what_is_learned_from(tmp_path, where, n, ends, values, max_steps, bootstraps):
    clips = n < 3
    trainer = clock_trainer(tmp_path, where, n, max_steps, bootstraps, ends, values)
    while trainer.position.chosen[0] < device_loop.CHUNK_STEPS:
        trainer.step()
    position, of_runs = trainer.position, trainer.learner
    steps = int(position.stored[0])
    assert steps == device_loop.CHUNK_STEPS - 1
    due = timeline.update(of_runs.rules, position, np.False_, np.zeros(1, bool), np)
    # All of the memory's, which has wrapped around twice.
    slots = int(due.oldest[0]) + np.arange(int(due.available[0]))[:, None]
    slots = (slots + np.arange(n + 1)) % of_runs.slots
    memory = replay.Memory(*(np.asarray(field)[0] for field in of_runs.memory))
    batch = batch_of(memory, slots, 1, 0.9, bootstraps)
    batch = jax.tree.map(np.asarray, batch)
    ours = {
        (tuple(s.tolist()), round(float(r), 5), None if end else tuple(s2.tolist()))
        for s, r, s2, end in zip(
            batch.states[..., 0], batch.rewards, batch.next_states[..., 0], batch.terminals,
            strict=True,
        )
    }  # fmt: skip
    first = steps + 1 - min(int(position.episode_steps[0]) + 1, n) - len(slots)
    kept = expected_transitions(n, 0.9, clips, bootstraps, steps + 2, ends, max_steps)
    kept = kept[first : first + len(slots)]
    assert ours == {transition for transition in kept if transition is not None}
    assert (None in kept) == (bootstraps and values == 6 and (ends > 1 or max_steps < 7))


def clock_trainer(folder, where, n, max_steps, bootstraps, ends, values):
    """Makes what trains a run on a clock in JAX, or on gymnasium's, which the host steps."""
    room = "tests.vectorized.own"
    if where == "device":
        made = jax_environments.create_environment(
            max_steps, f"{room}_jax_environment:clock", bootstraps, {"ends": ends, "values": values}
        )
    else:
        env = f"gymnasium:{room}_gymnasium_environment:Clock-v0"
        made = environments.create_gymnasium(max_steps, env, bootstraps, {"ends": ends})
    runner = agents.RunnerSettings(
        num_iterations=1, training_steps=10**6, evaluation_steps=0, replay_capacity=200,
        stack_size=1, clip_rewards=n < 3,
    )  # fmt: skip
    agent = toys.log_dqn(update_horizon=n, gamma=0.9)
    problem = learner.Problem(
        toys.small_network, made.frame_shape, made.frame_dtype, 1, 8, 200, made.cuts,
        runner.clip_rewards,
    )  # fmt: skip
    workload = training.Workload(toys.make_runs(folder, [agent], [1]), runner, [None])
    shown = progress.Progress([0], 1, runner.steps_per_iteration)
    if where == "device":
        return device_loop.DeviceTrainer(workload, problem, made, shown, [0])
    games = environments.GymnasiumGames(made, 1)
    return training.HostTrainer(workload, problem, games, shown, [0])


def steps_with(terminals):
    """Steps of transitions with these ends; the frames number the transitions."""
    terminals = np.array(terminals, np.uint8)
    numbers = np.arange(len(terminals))[:, None].repeat(terminals.shape[1], 1)
    zeros = np.zeros(terminals.shape, np.float32)
    return replay.Memory(numbers, zeros.astype(np.uint8), zeros.astype(np.int8), zeros, terminals)


def test_what_is_cut_off_gives_its_place_to_the_others():
    steps = steps_with([[2, 0, 0], [0, 0, 0], [1, 2, 0], [0, 2, 0], [0, 0, 2], [0, 1, 0]])
    whole = replay.without_cuts(steps, 1, 6)
    assert whole.frames[:, 0].tolist() == [1, 2, 4, 5, 1, 2]
    assert replay.without_cuts(steps, 1, 3).frames[:, 0].tolist() == [1, 2, 4]


@pytest.mark.parametrize("n", [1, 3])
def test_a_batch_of_one_is_of_what_no_time_limit_cuts_off(n):
    """Episodes of five steps, all cut off: 5 - n of 5 transitions can be learned."""
    steps = steps_with(np.tile([[0], [0], [0], [0], [replay.CUT]], (20, 1)))
    memory = replay.Memory(*(jnp.asarray(values[:, 0]) for values in steps))
    problem = learner.Problem(toys.small_network, (), int, 1, 1, 90, cuts=True)
    functions = learner.StepFunctions(toys.log_dqn(update_horizon=n), problem, 100, False)

    def draw(number):
        due = learner.Update(number, 0, 100 - n, True, False)
        return functions._sample(memory, jax.random.PRNGKey(0), due)

    drawn = jax.vmap(draw)(jnp.arange(400))
    assert drawn.frames.shape == (400, 1, 1 + n)
    first = drawn.frames[:, 0, 0] % 5
    assert set(first.tolist()) == set(range(5 - n))


def test_actions_beyond_eight_bits():
    for count, dtype, last in ((128, "int8", 127), (129, "int16", 128), (32767, "int16", 32766)):
        memory = replay.create((3,), (), "bool", count)
        stored = replay.add_step(memory, 1, jnp.bool_(1), jnp.int32(0), jnp.int32(last))
        assert stored.actions.dtype == dtype and stored.actions[1] == last


def test_a_state_is_of_no_more_observations_than_a_byte_counts():
    assert agents.RunnerSettings(stack_size=256).stack_size == 256
    with pytest.raises(ValueError, match=r"stack_size is 257; .* from 1 to 256"):
        agents.RunnerSettings(stack_size=257)
