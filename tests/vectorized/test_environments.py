"""Atari as Dopamine's preprocessing gives it, and environments of gymnasium."""

import dataclasses

import ale_py
import gymnasium
import numpy as np
import pytest
from ale_py import roms
from gymnasium import spaces

from log_dqn import atari
from log_dqn.cli import progress
from log_dqn.games import GAMES, rom_name
from log_dqn.vectorized import environments, learner, training
from tests.cli.faulty_environment import OBSERVATION, Faulty, register

from . import toys

SLOW = ("Pong", "SpaceInvaders")


def test_every_game_has_its_rom():
    assert [game for game in GAMES if roms.get_rom_path(rom_name(game)) is None] == []


@pytest.mark.parametrize(
    "game", ["Breakout", *(pytest.param(game, marks=pytest.mark.slow) for game in SLOW)]
)
def test_frames_are_dopamines(game, monkeypatch):
    # Without sticky actions, whose random numbers the two take from different generators.
    create = environments.AtariVectorEnv

    def create_without(*args, repeat_action_probability, **settings):
        assert repeat_action_probability == 0.25  # Machado et al. (2018)
        return create(*args, repeat_action_probability=0.0, **settings)

    monkeypatch.setattr(environments, "AtariVectorEnv", create_without)
    ours = environments.AtariGames([game], 27000)
    theirs = atari.create_environment(game, sticky_actions=False, seed=0)
    assert ours.num_actions == [theirs.action_space.n]
    rng = np.random.default_rng(0)
    frame = ours.reset(np.ones(1, bool), np.zeros(1, int))[0]
    np.testing.assert_array_equal(frame, theirs.reset()[..., 0])
    episodes = 0
    for _ in range(1200):
        action = int(rng.integers(theirs.action_space.n))
        ours.send(np.array([action]))
        results = ours.receive()
        expected, reward, ended, _ = theirs.step(action)
        assert (results.reward[0], results.ended[0]) == (reward, ended)
        if ended:
            expected = theirs.reset()
            episodes += 1
        np.testing.assert_array_equal(results.frame[0], expected[..., 0])
    assert episodes > 0 or game == "Pong"


def test_actions_stick():
    # With the same actions and other seeds, games differ by their sticky actions alone.
    games = environments.AtariGames(["Pong"] * 3, 27000)
    games.reset(np.ones(3, bool), np.array([1, 2, 1]))
    same = [True, True]
    for step in range(60):
        games.send(np.full(3, step % 6))
        frames = games.receive().frame
        same[0] &= bool((frames[0] == frames[1]).all())
        same[1] &= bool((frames[0] == frames[2]).all())
    assert same == [False, True]


def test_a_game_is_the_same_beside_others_and_after_a_reset():
    together = environments.AtariGames(["Breakout", "Pong", "Breakout"], 27000)
    alone = environments.AtariGames(["Breakout"], 27000)
    assert together.num_actions == [4, 6, 4]
    rng = np.random.default_rng(0)
    seeds = np.array([3, 4, 5])
    expected = alone.reset(np.ones(1, bool), np.array([9]))
    together.reset(np.ones(3, bool), seeds)
    ended, rewards = [], []
    for step in range(600):
        actions = rng.integers(0, 4, 3)
        together.send(actions)
        beside = together.receive()
        if step == 99:  # Only the last game begins anew.
            seeds = np.array([0, 0, 9])
            frames = together.reset(np.array([False, False, True]), seeds)
            np.testing.assert_array_equal(frames[2], expected[0])
            assert (beside.frame[0] != expected[0]).any()
        elif step > 99:
            alone.send(actions[2:])
            results = alone.receive()
            for ours, theirs in zip(beside[:3], results[:3], strict=True):
                np.testing.assert_array_equal(ours[2], theirs[0])
            ended.append(beside.ended)
            rewards.append(beside.reward)
    # The games differ, so that a mix-up would have been seen.
    for of_games in (np.array(ended), np.array(rewards)):
        assert (of_games[:, 0] != of_games[:, 2]).any()


def test_an_episode_ends_at_its_longest():
    games = environments.AtariGames(["Pong", "Pong"], 7)
    games.reset(np.ones(2, bool), np.array([1, 2]))
    ended = []
    for _ in range(21):
        games.send(np.zeros(2, int))
        ended.append(games.receive().ended)
    np.testing.assert_array_equal(np.flatnonzero(np.all(ended, axis=1)), [6, 13, 20])
    assert np.sum(ended) == 6
    assert ale_py.__version__.startswith("0.12")
    environments.AtariGames(["Pong"], 10**9)  # More frames than the emulator counts.


def create(name, max_steps=10**9, bootstraps=True, **settings):
    create_environment = environments.create_gymnasium
    return create_environment(max_steps, f"gymnasium:{name}", bootstraps, settings)


@pytest.mark.parametrize(
    ("space", "observation", "shape", "dtype", "seen"),
    [
        (spaces.Discrete(3), 2, (), "int32", [0, 0, 1]),
        (spaces.Discrete(3, start=5), 6, (3,), "float32", [-1, 1, -1]),
        (spaces.Box(-2.0, 6.0, (2,), float), np.array([0.0, 6.0]), (2,), "float32", [-0.5, 1]),
        (spaces.Box(0, 2**40, (1,), np.int64), np.array([2**39]), (1,), "float32", [2.0**39]),
        (spaces.Box(0, 4, (1, 2), np.uint8), np.uint8([[4, 1]]), (1, 2), "uint8", [1, 0.25]),
        (spaces.MultiBinary(2), np.int8([1, 0]), (2,), "int8", [1, 0]),
        (spaces.MultiDiscrete([2, 2]), np.array([1, 0]), (4,), "float32", [-1, 1, 1, -1]),
        (
            spaces.Dict(a=spaces.Box(-1, 1, (1,)), b=spaces.Discrete(2)),
            {"a": np.float32([0.5]), "b": 1}, (3,), "float32", [0.5, -1, 1],
        ),
    ],
)  # fmt: skip
def test_observations(space, observation, shape, dtype, seen):
    made = create(register("Seen", space=space, good=observation))
    games = environments.GymnasiumGames(made, 1)
    (frame,) = games.reset(np.ones(1, bool), np.ones(1, int))
    assert (made.frame_shape, made.frame_dtype, frame.dtype) == (shape, dtype, dtype)
    np.testing.assert_allclose(np.ravel(made.prepare(frame[None, ..., None])), seen, rtol=1e-6)


def test_an_environment_that_fails_stands_still_until_its_reset():
    failing = create(register("Failing", bad=RuntimeError("boom"), after=7))
    games = environments.GymnasiumGames(failing, 2)
    games.reset(np.array([True, False]), np.array([3, 4]))
    games.send(np.zeros(2, int))
    outcomes = [games.receive() for _ in range(9)]
    rewards, ended, cut = (np.array([x[i] for x in outcomes]) for i in (1, 2, 3))
    np.testing.assert_array_equal(rewards, [[1, np.nan]] * 7 + [[np.nan, np.nan]] * 2)
    np.testing.assert_array_equal(np.flatnonzero(ended[:, 0]), [4])
    np.testing.assert_array_equal(cut, ended)
    assert games.faults[0].startswith("env is 'Failing-v0'; its step failed: boom")
    assert games.faults[1] == "it has not been reset"
    games.reset(np.array([True, False]), np.array([3, 4]))
    assert sorted(games.faults) == [1]


def train_together(folder, made, seeds, replace=None):
    """Trains runs in one trainer, as on a GPU; returns it. `replace` changes their environments."""
    runner = dataclasses.replace(toys.RUNNER, num_iterations=2, training_steps=150)
    problem = learner.Problem(
        toys.small_network, made.frame_shape, made.frame_dtype, 2, 8, 150, made.cuts
    )
    games = environments.GymnasiumGames(made, len(seeds))
    for index, other in (replace or {}).items():
        games._environments[index] = other.make()
    job_runs = toys.make_runs(folder, [toys.log_dqn()] * len(seeds), seeds)
    workload = training.Workload(job_runs, runner, [None] * len(seeds))
    shown = progress.Progress([0] * len(seeds), 2, runner.steps_per_iteration)
    trainer = training.HostTrainer(workload, problem, games, shown, range(len(seeds)))
    trainer.train()
    return trainer


@pytest.mark.slow
def test_runs_in_one_trainer_play_as_alone(tmp_path):
    made = create("CartPole-v1")
    together = train_together(tmp_path / "a", made, [1, 2, 3])
    for index, seed in enumerate([1, 2, 3]):
        alone = train_together(tmp_path / "b", made, [seed])
        lengths = [
            [entry["train_episode_lengths"] for entry in log.values()]
            for log in (together._logs[index], alone._logs[0])
        ]
        assert lengths[0] == lengths[1] and [sum(x) >= 150 for x in lengths[0]] == [True] * 2


@pytest.mark.slow
def test_a_fault_leaves_the_other_runs_alone(tmp_path):
    made = create(register("Good"))
    bad = create(register("Failing", bad=RuntimeError("boom"), after=70))
    trainer = train_together(tmp_path / "a", made, [1, 2, 3], {1: bad})
    where = "log_dqn Catch 2: stopped at step 71, counted from the run's start: env is 'Failing-v0'"
    assert [(run, why.startswith(where)) for run, why in trainer.failures.items()] == [(1, True)]
    assert trainer.position.iteration.tolist() == [2, 0, 2]
    assert all(np.isfinite(leaf).all() for run in (0, 2) for leaf in toys.weights(trainer)[run])


class Single(Faulty):
    """An environment of which there can be one at a time."""

    live = 0

    def __init__(self):
        super().__init__()
        if Single.live:
            raise OSError("port 7000 is in use")
        Single.live += 1

    def close(self):
        Single.live -= 1
        raise AttributeError("a window that was never opened")


def test_the_environment_of_the_check_is_closed():
    gymnasium.register("Single-v0", Single)
    made = create("Single-v0")
    played = environments.GymnasiumGames(made, 1)
    assert played.num_actions == [2]
    with pytest.raises(ValueError, match=r"env is 'Single-v0'; .* made: port 7000 is in use"):
        environments.GymnasiumGames(made, 1)
    # A run that is over leaves it to the next.
    del played
    environments.GymnasiumGames(made, 1)


def test_too_many_actions_and_a_wrong_reset():
    with pytest.raises(ValueError, match="one with 1 to 32767 actions, and not 40000"):
        create(register("Many", action_space=spaces.Discrete(40_000)))
    with pytest.raises(ValueError, match=r"'Moody-v0'; its reset failed: .* got an unexpected"):
        create(register("Moody", reset=lambda: (OBSERVATION, {})))
