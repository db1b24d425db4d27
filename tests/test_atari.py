import gymnasium
import numpy as np
import pytest
from dopamine.discrete_domains import atari_lib

from log_dqn import atari, games


def play(environment, actions):
    frames, rewards = [environment.reset()], []
    for action in actions:
        frame, reward, terminal, _ = environment.step(action)
        frames.append(frame)
        rewards.append(reward)
        if terminal:
            frames.append(environment.reset())
    return np.stack(frames), np.array(rewards)


def test_every_game_exists():
    assert len(games.GAMES) == len(set(games.GAMES)) == 60
    for game in games.GAMES:
        gymnasium.spec(f"ALE/{game}-v5")


def test_the_environment_is_the_protocol_s():
    environment = atari.create_environment("Breakout", seed=0)
    assert isinstance(environment, atari_lib.AtariPreprocessing)
    ale = environment.environment.unwrapped.ale
    assert ale.getFloat("repeat_action_probability") == 0.25
    assert ale.getInt("max_num_frames_per_episode") == 108_000
    # Breakout's minimal set: NOOP, FIRE, RIGHT, LEFT.
    assert environment.action_space.n == 4
    assert environment.reset().shape == (84, 84, 1)
    still = atari.create_environment("Breakout", sticky_actions=False)
    assert still.environment.unwrapped.ale.getFloat("repeat_action_probability") == 0.0


def test_frames_equal_those_of_dopamines_own_factory():
    actions = np.random.default_rng(0).integers(6, size=300)
    ours, our_rewards = play(atari.create_environment("Pong", sticky_actions=False), actions)
    host = atari_lib.create_atari_environment("Pong", sticky_actions=False)
    theirs, their_rewards = play(host, actions)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(our_rewards, their_rewards)
    assert our_rewards.min() == -1


def test_the_cap_on_an_episode_counts_emulator_frames():
    # The emulator counts frames. The cap itself (see above) is lowered here to 400 frames, which
    # are 100 agent steps, in a game that a player standing still survives.
    environment = atari.create_environment("Enduro", seed=0)
    environment.environment.unwrapped.ale.setInt("max_num_frames_per_episode", 400)
    environment.environment.unwrapped.load_game()
    environment.reset()
    for step in range(1, 101):
        _, _, terminal, _ = environment.step(0)
        assert terminal == (step == 100)
    assert environment.game_over


def test_a_seed_fixes_the_sticky_actions():
    actions = np.random.default_rng(1).integers(6, size=200)
    first, again, other = (
        play(atari.create_environment("Pong", seed=seed), actions)[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_misspelt_game_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"game is 'SpaceInvader'; .*nearest: SpaceInvaders[,)]"):
        atari.create_environment("SpaceInvader")
    with pytest.raises(ValueError, match="game is None"):
        atari.create_environment()
