import json
import pathlib

import early_order
import numpy as np
import pytest

from log_dqn.games import GAMES
from log_dqn.results.runs import LearningCurve
from tests.results import synthetic

REAL = pathlib.Path(__file__).parents[3] / "shared" / "dopamine_baselines"
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "early_order.md"


def run(agent, game, early, late, seed=0):
    """A curve of 199 iterations: `early` in the first ten, `late` afterwards."""
    return LearningCurve(agent, game, str(seed), np.repeat([early, late], [10, 189]))


def test_leads_are_between_means_over_seeds_and_between_seeds():
    runs = [run("DQN", "Pong", 1.0, 7.0), run("DQN", "Pong", 3.0, 7.0, seed=1)]
    runs += [run("C51", "Pong", 5.0, 4.0)]
    first, second = early_order.leads(runs).to_dict("records")
    early = dict.fromkeys((500_000, 1_000_000, 2_000_000), 3.0)
    late = dict.fromkeys((5_000_000, 12_500_000, 25_000_000, "end"), -3.0)
    # C51's 5 is 2 above DQN's greatest seed, whose least is 4 below.
    clear = dict.fromkeys(("500,000", "1,000,000", "2,000,000"), 2.0)
    clear |= dict.fromkeys(("5,000,000", "12,500,000", "25,000,000"), -3.0)
    assert first == {"game": "Pong", "agent": "C51", "other": "DQN"} | early | late | clear
    assert (second["agent"], second["other"]) == ("DQN", "C51")
    assert (second[500_000], second["500,000"], second["end"]) == (-3.0, -4.0, 3.0)


def three_games():
    """The order stays on Pong, turns on Alien, and turns for two of three pairs on Amidar."""
    runs = [run("DQN", "Pong", 1, 2), run("C51", "Pong", 0, 1), run("IQN", "Pong", -1, 0)]
    runs += [run("DQN", "Alien", 1, 2), run("C51", "Alien", 0, 3), run("IQN", "Alien", -1, 4)]
    runs += [run("DQN", "Amidar", 3, 1), run("C51", "Amidar", 2, 2), run("IQN", "Amidar", 1, 1.5)]
    return early_order.leads(runs)


def test_a_guess_is_right_in_the_mean_over_games_of_its_share():
    lines = early_order.guesses(three_games()).splitlines()[2:]
    # Of (1 + 0 + 1/3) / 3, resampled: the least and the greatest of three games have 1/27 each, so
    # that 2.5% lie at either end. By pair, DQN before C51 or IQN is right in 1 of 3, C51 before
    # IQN in 2 of 3. Later the early order is that of the end.
    early = "44% (0% to 100%) | 33% to 67% | 44% (0% to 100%) |"
    late = "100% (100% to 100%) | 100% to 100% | 100% (100% to 100%) |"
    for line, steps in zip(lines[1:], early_order.STEPS, strict=True):
        expected = early if steps <= 2_000_000 else late
        assert line == f"| who is ahead at {steps:,} agent steps | {expected}"


def test_what_the_other_games_say():
    pairs = three_games()
    found = early_order.ahead_elsewhere(pairs).groupby(
        [pairs["game"], pairs["agent"], pairs["other"]]
    )
    of = found.first()
    # DQN is ahead of C51 on Pong only, and so behind it on the other two.
    assert of["Pong", "DQN", "C51"] == -2
    assert of["Alien", "DQN", "C51"] == 0
    assert of["Amidar", "C51", "IQN"] == 0
    # Alien: C51 is ahead of IQN on the two others, and ends behind. Pong: all guesses but C51's
    # of DQN and IQN's of DQN are ties, and both are wrong. Amidar: those are ties, too.
    line = early_order.guesses(pairs).splitlines()[2]
    assert line == "| who ends ahead on most other games | 0% (0% to 0%) | - | - |"


def test_agents_beside_dqn():
    assert early_order.beside_dqn(three_games()).splitlines()[2:] == [
        "| behind DQN | in 4 of 6 cases |", "| ahead of DQN | in 0 of 0 cases |",
    ]  # fmt: skip


def test_equal_returns_are_nobodys_lead():
    runs = [run("DQN", "Pong", 1, 2), run("C51", "Pong", 1, 1)]
    runs += [run("DQN", "Alien", 2, 2), run("C51", "Alien", 1, 1)]
    line = early_order.guesses(early_order.leads(runs)).splitlines()[3]
    assert line == "| who is ahead at 500,000 agent steps | - | - | - |"


def test_the_program(tmp_path, capsys):
    folder = synthetic.write_baselines(tmp_path, GAMES, {"DQN": 0.2, "C51": 2.0}, num_seeds=2)
    assert early_order.main([f"--baselines={folder}"]) == 0
    out = capsys.readouterr().out
    assert "| who is ahead at 25,000,000 agent steps | 100% (100% to 100%) | 100% to 100% |" in out
    assert "| who ends ahead on most other games | 100% (100% to 100%) | - | - |" in out


@pytest.mark.parametrize(
    ("levels", "iterations", "named"),
    [
        (["DQN"], 199, "agents on AirRaid is ['DQN']; it must be DQN and others, the same on all"),
        (["C51", "IQN"], 199, "agents on AirRaid is ['C51', 'IQN']; it must be DQN and others"),
        (["DQN", "C51"], 198, "iterations of DQN on AirRaid is 198; it must be 199"),
        ([], 199, "is not a list of rows {Iteration, Value, Agent}; only the final scores"),
    ],
)
def test_curves_that_will_not_do_are_one_line(tmp_path, capsys, levels, iterations, named):
    agents = dict.fromkeys(levels, 1.0)
    folder = synthetic.write_baselines(
        tmp_path, GAMES, agents, num_seeds=1, num_iterations=iterations
    )
    assert_one_line([f"--baselines={folder}"], capsys, named)


def test_a_game_with_other_agents_is_one_line(tmp_path, capsys):
    folder = synthetic.write_baselines(tmp_path, GAMES, {"DQN": 1.0, "C51": 1.0}, num_seeds=1)
    (folder / "pong.json").write_text(json.dumps(synthetic.baseline_rows("Pong", {"C51": 1.0}, 1)))
    assert_one_line([f"--baselines={folder}"], capsys, "agents on Pong is ['C51']; it must be DQN")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--baselines="], "baselines is ''; it must be a folder or an http(s) address"),
        (["--baselines=no\nwhere"], "baselines is 'no\\nwhere'; it must be a folder or an http(s)"),
        (["--baseline=x"], "unrecognized arguments: --baseline=x"),
    ],
)
def test_wrong_input_is_one_line(capsys, arguments, named):
    assert_one_line(arguments, capsys, named)


def assert_one_line(arguments, capsys, named):
    try:
        status = early_order.main(arguments)
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    assert named in captured.err
    assert (status, captured.err.count("\n"), captured.out) == (2, 1, "")


@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there")
def test_the_page_has_the_tables_of_the_published_curves(capsys):
    assert early_order.main([f"--baselines={REAL}"]) == 0
    guesses, beside = capsys.readouterr().out.strip().split("\n\n")
    page = PAGE.read_text()
    assert guesses in page and beside in page
    # What the sentences repeat.
    assert "games | 74% (" in guesses and guesses.count("62% (") == 2
    assert "in 83 of 101 cases" in beside and "in 175 of 196 cases" in beside
