"""The vector environment gives what Dopamine's preprocessing gives."""

import ale_py
import numpy as np
import pytest
from ale_py import roms

from log_dqn import atari
from log_dqn.games import GAMES, rom_name
from log_dqn.vectorized import environments

SLOW = ("Pong", "SpaceInvaders")


@pytest.mark.parametrize("game", GAMES)
def test_every_game_has_its_rom(game):
    assert roms.get_rom_path(rom_name(game)) is not None


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
