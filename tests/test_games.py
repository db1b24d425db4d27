"""Names and sets of games."""

import pytest

from log_dqn import games


def test_sets():
    paper55 = games.select(["paper55"])
    assert len(paper55) == 55
    assert set(paper55) < set(games.GAMES)
    assert not {"Defender", "Surround"} & set(paper55)
    assert games.select(["paper6"]) == list(games.PAPER6)
    assert set(games.PAPER6) | set(games.ATARI5) <= set(paper55)
    assert len(games.ATARI5) == 5
    assert set(games.select(["all60"])) == set(games.GAMES)


def test_select_mixes_sets_and_spellings():
    assert games.select(["atari5", "pong", "space_invaders", "Phoenix"]) == [
        *games.ATARI5,
        "Pong",
        "SpaceInvaders",
    ]


def test_unknown_game_gets_the_nearest_names():
    with pytest.raises(ValueError, match=r"--games: unknown game 'Brakeout'.*Breakout"):
        games.select(["Pong", "Brakeout"])


def test_games_to_train_are_the_60_of_the_baselines():
    assert games.select_to_train(["paper6", "pong"]) == [*games.PAPER6, "Pong"]
    assert set(games.select_to_train(["all60"])) == set(games.GAMES)


@pytest.mark.parametrize("names", [["Pong", "Surround"], []])
def test_other_games_are_refused(names):
    with pytest.raises(ValueError, match=r"--games: (Surround|no game); allowed are the 60 games"):
        games.select_to_train(names)
