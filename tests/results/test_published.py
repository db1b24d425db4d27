"""Aggregates of whole baselines, worked out here without the package's code."""

import csv
import json
import pathlib
import statistics

import pytest

from log_dqn import games
from log_dqn.results import baselines, report, request
from tests.results import synthetic
from tests.results.synthetic import PUBLISHED, needs_published


def plainly(folder, game_names, agents, video_pinball_random=16256.9, num_seeds=5):
    """Mean and median human-normalised score of each agent, in plain Python."""
    table = pathlib.Path(baselines.__file__).parent / "data" / "human_random_scores.csv"
    with table.open() as file:
        human_random = {
            r["game"]: (float(r["random"]), float(r["human"])) for r in csv.DictReader(file)
        }
    normalised = {agent: [] for agent in agents}
    for game in game_names:
        random, human = human_random[game]
        if game == "VideoPinball":
            random = video_pinball_random
        rows = json.loads((folder / f"{game.lower()}.json").read_text())
        for agent in agents:
            # The last 20 of 199 iterations of five seeds, in any order.
            values = [r["Value"] for r in rows if r["Agent"] == agent and r["Iteration"] >= 179]
            assert len(values) == 20 * num_seeds
            score = sum(values) / len(values)
            normalised[agent].append((score - random) / (human - random))
    return {a: (sum(v) / len(v), statistics.median(v)) for a, v in normalised.items()}


def through_the_package(folder, game_names, agents):
    settings = {"agents": tuple(agents), "games": tuple(game_names), "repetitions": 2}
    compared, lines = synthetic.compare(folder, **settings)
    aggregates = report.compute(compared).aggregates
    assert not lines
    return {agent: tuple(aggregates[agent].value[:2]) for agent in agents}


def test_made_baselines(tmp_path):
    names = ["VideoPinball", "DoubleDunk", "Pong", "Skiing"]
    agents = {"DQN": 0.4, "IQN": 2.0, "DQN (Adam + MSE in JAX)": 1.0}
    synthetic.write_baselines(tmp_path, names, agents)
    expected = plainly(tmp_path, names, agents)
    result = through_the_package(tmp_path, names, agents)
    for agent in agents:
        assert result[agent] == pytest.approx(expected[agent], rel=1e-9)


@needs_published
def test_published_baselines_over_55_games():
    agents = [*request.AGENTS]
    names = games.PAPER55
    expected = plainly(PUBLISHED, names, agents)
    result = through_the_package(PUBLISHED, ["paper55"], agents)
    for agent in agents:
        assert result[agent] == pytest.approx(expected[agent], rel=1e-9)


FIGURES = {
    # Worked out from the published files: mean and median over 55 games.
    "DQN": (3.048, 0.650),
    "C51": (7.378, 1.086),
    "Rainbow": (8.912, 1.461),
    "IQN": (8.673, 1.248),
}


IQM_AND_GAP = {
    "DQN": (0.746, 0.418),
    "C51": (1.272, 0.279),
    "Rainbow": (1.679, 0.217),
    "IQN": (1.751, 0.208),
}


def test_final_scores_give_the_same_aggregates(tmp_path):
    """The scores that travel with the package, without any file of Dopamine's."""
    compared, _ = synthetic.compare(tmp_path, games=("paper55",), repetitions=2)
    aggregates = report.compute(compared).aggregates
    assert {a: tuple(v.value[:2].round(3)) for a, v in aggregates.items()} == FIGURES
    assert {a: tuple(v.value[2:].round(3)) for a, v in aggregates.items()} == IQM_AND_GAP
