"""Names and sets of games."""

import pytest

from log_dqn import games


def test_sets():
    paper55 = games.select(["paper55"])
    assert len(paper55) == 55 and len(games.ATARI5) == 5
    assert set(paper55) < set(games.GAMES) == set(games.select(["all60"]))
    assert not {"Defender", "Surround"} & set(paper55)
    assert games.select(["paper6"]) == list(games.PAPER6)
    assert set(games.PAPER6) | set(games.ATARI5) <= set(paper55)
    assert games.select(["minatar5"]) == list(games.MINATAR5)


def test_select_mixes_sets_and_spellings():
    names = ["atari5", "pong", "space_invaders", "Phoenix"]
    assert games.select(names) == [*games.ATARI5, "Pong", "SpaceInvaders"]
    # Without baselines.
    assert games.select(["surround", "Defender"]) == ["Surround", "Defender"]


@pytest.mark.parametrize(
    ("name", "game"),
    [
        ("PongNoFrameskip-v0", "Pong"),
        ("SpaceInvadersNoFrameskip-v4", "SpaceInvaders"),
        ("Space Invaders", "SpaceInvaders"),
        ("minatar/space invaders", "MinAtar/SpaceInvaders"),
        ("MinAtar-Breakout", "MinAtar/Breakout"),
        # Another screen than Dopamine's, or another episode.
        ("ALE/Pong-v5", None),
        ("PongNoFrameskip-v1", None),
    ],
)
def test_spellings_of_a_game(name, game):
    assert games.canonical(name) == game


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Brakeout", r"games is 'Brakeout'; it must be .*\(nearest: Breakout"),
        ("MinAtar/Brekout", r"'MinAtar/Brekout'; .*\(nearest: MinAtar/Breakout"),
        ("Defendr", r"or of Defender and Surround \(nearest: Defender"),
    ],
)
def test_an_unknown_game_gets_the_nearest_names(name, message):
    with pytest.raises(ValueError, match=message):
        games.select(["Pong", name])


def test_games_to_train_are_the_60_of_the_baselines():
    assert games.select_to_train(["paper6", "pong"]) == [*games.PAPER6, "Pong"]
    assert set(games.select_to_train(["all60"])) == set(games.GAMES)
    assert games.select_atari(["paper6", "alien"]) == list(games.PAPER6)


@pytest.mark.parametrize("names", [["Pong", "Surround"], ["Pong", "Defender"], [""], []])
def test_other_games_are_refused(names):
    refused = names[-1] if names else ""
    with pytest.raises(ValueError, match=f"games is '{refused}'; it must be one of .* 60") as error:
        games.select_to_train(names)
    allowed = str(error.value).partition(";")[2]
    assert not {"Surround", "Defender"} & set(allowed.replace(",", "").split())
    assert "the sets paper55, paper6, all60, atari5, minatar5" in allowed


@pytest.mark.parametrize(
    ("kinds", "name", "message"),
    [
        ({}, "Pongg", r"Atari games, .*, or of MinAtar's 5, .* \(nearest: Pong"),
        ({}, "MinAtar/Frevay", r"Atari games, .* \(nearest: MinAtar/Freeway"),
        ({"minatar": False}, "MinAtar/Pong", r"one of Dopamine's 60 .*SpaceInvaders \(nearest: P"),
        ({"minatar": False}, "Ms_Pacman", r"nearest: MsPacman[,)]"),
        ({"minatar": False}, "pong", r"nearest: Pong[,)]"),
        ({"atari": False}, "MinAtar/space_invaders", r"nearest: MinAtar/SpaceInvaders[,)]"),
        ({"atari": False}, "Breakout", r"nearest: MinAtar/Breakout[,)]"),
        ({"atari": False}, "Pong", r"one of MinAtar's 5, spelt like MinAtar/Breakout$"),
        ({}, "bsuite/Catch", "Atari games, .*, or of MinAtar's 5"),
    ],
)
def test_a_game_for_dopamines_agents_is_checked(kinds, name, message):
    for game in (*games.GAMES, *games.MINATAR5):
        games.check_game(game)
    with pytest.raises(ValueError, match=rf"game is '{name}'; it must be .*{message}"):
        games.check_game(name, **kinds)


def test_small_games_and_others_do_not_mix():
    assert games.are_jax_games(["MinAtar/Breakout", "bsuite/Catch"])
    assert not games.are_jax_games(["Pong", "Alien"])
    assert games.select_to_train(["minatar5"]) == list(games.MINATAR5)
    message = "games are Pong and MinAtar/Asterix; they must be all of Atari, or all small games"
    with pytest.raises(ValueError, match=message):
        games.select_to_train(["minatar5", "Pong"])
