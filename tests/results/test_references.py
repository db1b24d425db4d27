"""The package's own tables, and that they and the lists of games agree."""

from log_dqn import games
from log_dqn.results import references


def test_references_are_wang_et_al_table_2():
    table = references.references()
    assert len(table) == 57
    assert table["Alien"] == (227.8, 7127.7)
    assert table["Zaxxon"] == (32.5, 9173.3)
    assert table["VideoPinball"] == (16256.9, 17667.9)
    assert all(reference.human > reference.random for reference in table.values())


def test_the_lists_of_games_are_the_tables():
    published = references.read_table("baseline_final_scores.csv")
    assert tuple(dict.fromkeys(row["game"] for row in published)) == games.GAMES
    assert set(games.PAPER55) == set(references.references()) - set(games.WITHOUT_BASELINES)
    assert set(games.GAMES) - set(games.PAPER55) == set(games.WITHOUT_HUMAN_SCORES)
