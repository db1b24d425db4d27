import pathlib

import early_order
import numpy as np
import pandas as pd
import pytest

from log_dqn.games import GAMES
from log_dqn.results import baselines
from log_dqn.results.runs import LearningCurve
from tests.results import synthetic

REAL = pathlib.Path(__file__).parents[3] / "shared" / "dopamine_baselines"
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "atari.md"


def run(agent, seed, early, late, game="Pong"):
    """A curve of 200 iterations: `early` in the first ten, `late` afterwards."""
    return LearningCurve(agent, game, str(seed), np.repeat([early, late], [10, 190]))


def test_leads_are_between_means_over_seeds():
    runs = [run("DQN", 0, 1.0, 7.0), run("DQN", 1, 3.0, 7.0), run("C51", 0, 5.0, 4.0)]
    (first, second) = early_order.leads(runs).to_dict("records")
    steps = dict.fromkeys((500_000, 1_000_000, 2_000_000), 3.0)
    steps |= dict.fromkeys((5_000_000, 12_500_000, 25_000_000, "end"), -3.0)
    assert (
        first
        == {"game": "Pong", "agent": "C51", "other": "DQN (TensorFlow: RMSProp, Huber)"} | steps
    )
    assert second["agent"] == "DQN (TensorFlow: RMSProp, Huber)"
    assert [second[of] for of in steps] == [-lead for lead in steps.values()]


def test_the_part_of_pairs_is_the_mean_over_games():
    # On one game the order stays, on one it turns, on one it turns for two of three pairs.
    runs = [run("DQN", 0, 1.0, 2.0, "Pong"), run("C51", 0, 0.0, 1.0, "Pong")]
    runs += [run("DQN", 0, 1.0, 2.0, "Alien"), run("C51", 0, 0.0, 3.0, "Alien")]
    runs += [run("DQN", 0, 3.0, 1.0, "Amidar"), run("C51", 0, 2.0, 2.0, "Amidar")]
    runs += [run("IQN", 0, 1.0, 1.5, "Amidar")]
    pairs = early_order.leads(runs)
    lines = early_order.as_at_the_end(pairs).splitlines()
    # (1 + 0 + 1/3) / 3 with the early order, and all pairs once it is that of the end.
    assert [line.split(" (")[0] for line in lines[2:]] == [
        "| 500,000 | 44%", "| 1,000,000 | 44%", "| 2,000,000 | 44%",
        "| 5,000,000 | 100%", "| 12,500,000 | 100%", "| 25,000,000 | 100%",
    ]  # fmt: skip
    assert early_order.behind(pairs).splitlines()[2:] == ["| C51 | 3 | 2 |", "| IQN | 1 | 1 |"]


def test_equal_returns_are_nobodys_lead():
    row = dict.fromkeys(early_order.STEPS, 0.0)
    tie = {"agent": "C51", "other": "DQN", "end": 1.0} | row
    ahead = tie | dict.fromkeys(early_order.STEPS, 2.0)
    pairs = pd.DataFrame(
        [{**tie, "game": "Pong"}] + [{**ahead, "game": g} for g in ("Pong", "Alien")]
    )
    assert "| 500,000 | 100%" in early_order.as_at_the_end(pairs)


def test_the_program(tmp_path, capsys):
    levels = {"DQN": 0.2, "C51": 2.0}
    folder = synthetic.write_baselines(tmp_path, GAMES, levels, num_seeds=2, num_iterations=100)
    assert early_order.main([f"--baselines={folder}"]) == 0
    assert "| 25,000,000 | 100% (100% to 100%) |\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("levels", "iterations", "named"),
    [
        ({"DQN": 1.0}, 100, "it must have two agents or more, and 100 iterations or more of each"),
        ({"DQN": 1.0, "C51": 2.0}, 99, "it must have two agents or more, and 100 iterations"),
        ({}, 100, "is not a list of rows {Iteration, Value, Agent}; only the final scores"),
    ],
)
def test_curves_that_will_not_do_are_one_line(tmp_path, capsys, levels, iterations, named):
    folder = synthetic.write_baselines(
        tmp_path, GAMES, levels, num_seeds=1, num_iterations=iterations
    )
    assert early_order.main([f"--baselines={folder}"]) == 2
    captured = capsys.readouterr()
    assert named in captured.err
    assert (captured.err.count("\n"), captured.out) == (1, "")


@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there")
def test_the_page_has_the_tables_of_the_published_curves(capsys):
    assert early_order.main([f"--baselines={REAL}"]) == 0
    for table in capsys.readouterr().out.strip().split("\n\n"):
        assert table in PAGE.read_text()


@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there")
def test_the_page_has_c51s_and_dqns_returns_on_asterix():
    runs = baselines.load(str(REAL), ["Asterix"], pytest.fail)
    for agent, second, end in (("C51", "282", "13,311"), ("DQN", "408", "2,728")):
        curve = np.mean([run.returns for run in runs if run.agent == agent], axis=0)
        assert (f"{curve[1]:.0f}", f"{curve[-20:].mean():,.0f}") == (second, end)
        assert second in PAGE.read_text() and end in PAGE.read_text()
