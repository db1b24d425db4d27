"""MinAtar as Dopamine's agents see it, against the package itself."""

import random
import sys

import numpy as np
import pytest
from gymnasium.utils import seeding as gymnasium_seeding

from log_dqn import games, minatar
from log_dqn.dopamine_run import seeding

original = pytest.importorskip("minatar", reason="the extra minatar is not installed")

CHANNELS = {
    "MinAtar/Asterix": 4, "MinAtar/Breakout": 4, "MinAtar/Freeway": 7, "MinAtar/Seaquest": 10,
    "MinAtar/SpaceInvaders": 6,
}  # fmt: skip


def play(environment, steps, seed=0):
    """Plays at random; returns boards, rewards and ends."""
    rng, boards, rewards, ends = np.random.default_rng(seed), [environment.reset()], [], []
    for action in rng.integers(6, size=steps):
        board, reward, over, _ = environment.step(action)
        assert environment.game_over == over
        boards.append(board)
        rewards.append(reward)
        ends.append(over)
        if over:
            boards.append(environment.reset())
    return np.stack(boards), np.array(rewards), np.array(ends)


@pytest.mark.parametrize("name", games.MINATAR5)
def test_it_is_the_original_with_dopamines_interface(name):
    environment = minatar.create_environment(name, seed=7)
    shape = (10, 10, CHANNELS[name])
    assert environment.observation_space.shape == shape
    assert environment.action_space.n == 6
    boards, rewards, ends = play(environment, 1000)
    assert boards.dtype == bool
    assert boards.shape[1:] == shape

    game = original.Environment(games.rom_name(name.removeprefix("MinAtar/")))
    assert (game.sticky_action_prob, game.num_actions()) == (0.1, 6)
    assert getattr(game.env, "ramping", True) is True
    generator, _ = gymnasium_seeding.np_random(7)
    game.random = game.env.random = np.random.RandomState(generator.bit_generator)
    # Ours has been reset once when it was seeded, and once to begin.
    for _ in range(2):
        game.reset()
    theirs = [game.state()]
    for step, action in enumerate(np.random.default_rng(0).integers(6, size=1000)):
        assert game.act(action) == (rewards[step], ends[step])
        theirs.append(game.state())
        if ends[step]:
            game.reset()
            theirs.append(game.state())
    np.testing.assert_array_equal(boards, theirs)
    assert ends.any() or name == "MinAtar/Freeway"


def test_one_action_in_ten_is_repeated_the_first_one_too():
    environment = minatar.create_environment("MinAtar/Freeway", seed=1)
    game = environment.environment.unwrapped._game
    environment.reset()
    rng, repeated, differs, zeros = np.random.default_rng(0), 0, 0, 0
    for action in rng.integers(6, size=20_000):
        last = game.last_action
        if environment.step(action)[2]:
            environment.reset()
        assert game.last_action in (action, last)
        differs += action != last
        repeated += game.last_action != action
        zeros += game.last_action != action and last == 0
    # Four standard deviations.
    assert repeated / differs == pytest.approx(0.1, abs=4 * (0.09 / differs) ** 0.5)
    assert zeros / repeated == pytest.approx(1 / 6, abs=4 * (5 / 36 / repeated) ** 0.5)


def test_an_episode_ends_where_the_game_does_only():
    environment = minatar.create_environment("MinAtar/Freeway", seed=1)
    _, _, ends = play(environment, 5002)
    np.testing.assert_array_equal(np.flatnonzero(ends) + 1, [2501, 5002])


def test_the_seed_decides_and_no_other_game_disturbs():
    first = play(minatar.create_environment("MinAtar/Asterix", seed=1), 500)
    again, other = (minatar.create_environment("MinAtar/Asterix", seed=seed) for seed in (1, 2))
    play(other, 300)
    np.testing.assert_equal(first, play(again, 500))
    assert not np.array_equal(first[0], play(other, 500)[0])
    # As the runner seeds it.
    reseeded = minatar.create_environment("MinAtar/Asterix")
    play(reseeded, 100)
    seeding.seed_environment(reseeded, 1)
    np.testing.assert_array_equal(play(reseeded, 500)[1], first[1])


@pytest.mark.parametrize("name", games.MINATAR5)
def test_what_follows_an_episode_is_restored_exactly(name):
    environment = minatar.create_environment(name, seed=3)
    play(environment, 77)
    environment.environment.unwrapped._game.last_action = 4
    environment.game_over = True
    state = seeding.random_state(environment)
    assert (state["environment"]["last_action"], state["game_over"]) == (4, True)
    expected, python, numpy = play(environment, 500), random.random(), np.random.rand()
    resumed = minatar.create_environment(name)
    seeding.restore_random_state(resumed, state)
    assert resumed.game_over
    assert resumed.environment.unwrapped._game.last_action == 4
    np.testing.assert_equal(play(resumed, 500), expected)
    assert (random.random(), np.random.rand()) == (python, numpy)


def test_a_game_that_cannot_be_played_is_named(monkeypatch):
    allowed = "one of MinAtar's 5, spelt like MinAtar/Breakout .nearest: MinAtar/Breakout[,)]"
    with pytest.raises(ValueError, match=rf"game is 'MinAtar/Brekout'; it must be {allowed}"):
        minatar.create_environment("MinAtar/Brekout")
    with pytest.raises(ValueError, match="game is None"):
        minatar.create_environment()
    monkeypatch.setitem(sys.modules, "minatar", None)
    with pytest.raises(ValueError, match="MinAtar/Freeway needs minatar: pip"):
        minatar.create_environment("MinAtar/Freeway")
