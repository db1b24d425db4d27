import json
import pathlib
import pickle
import shutil

import atari_study
import numpy as np
import pandas as pd
import pytest
from tensorboard.summary.writer import record_writer

from log_dqn import sweep
from log_dqn.program import shell, words
from log_dqn.sweeps import check, plan
from log_dqn.vectorized.runs import Events
from tests.results import synthetic
from tests.scripts import SCRIPTS, commands_of

REAL = pathlib.Path(__file__).parents[3] / "shared" / "dopamine_baselines"
CONFIG = {"Runner.num_iterations": 3, "Runner.training_steps": 125_000}


def events_of(folder, values):
    """Writes q_plus by agent steps as a run does; returns the file."""
    events = Events(folder)
    for steps, q_plus in values.items():
        events.write({"Values/QPlus": q_plus}, steps)
    events.close()
    (path,) = folder.glob("events*")
    return path


def damage(runs):
    """Writes runs 2 to 9 that can't be read, each for its own reason."""
    for seed in (2, 3, 4, 5, 6, 8, 9):
        synthetic.write_log(runs / str(seed), [0.0, 1.0], episodes=1, config=CONFIG)
    for seed, steps in ((2, "many"), (3, 0), (9, 100_000)):
        (runs / str(seed) / "config.json").write_text(json.dumps({"Runner.training_steps": steps}))
    logs = {4: {"iteration_0": {"train_average_return": [1.0]}}, 8: {"iteration_0": {}}}
    logs[6] = {"iteration_1": {"train_episode_returns": [1.0]}}
    for seed, log in logs.items():
        (runs / str(seed) / "logs" / "log_1").write_bytes(pickle.dumps(log))
    with (runs / "5" / "events.out.tfevents.1.made").open("wb") as file:
        record_writer.RecordWriter(file).write(b"\xff\xff\xff")
    (runs / "7" / "logs").mkdir(parents=True)
    (runs / "7" / "config.json").write_text(json.dumps(CONFIG))


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Runs on Pong, and made published runs."""
    monkeypatch.setattr(atari_study, "DATA", tmp_path / "atari.csv")
    results = tmp_path / "results"
    for seed, offset in ((1, 0.0), (2, 4.0)):
        folder = results / "log_dqn" / "Pong" / str(seed)
        synthetic.write_log(folder, [9.0], episodes=1, config=CONFIG)
        synthetic.write_log(folder, [1 + offset, 2.12345, 3], episodes=2, config=CONFIG)
    events_of(folder, {100_000: 0.9, 125_000: 0.8, 125_001: 0.7, 300_000: 0.6})
    synthetic.write_log(results / "loglin_dqn" / "Pong" / "1", [0, 0, 5], config=CONFIG)
    for seed, first in ((1, -20), (2, -18)):
        folder = results / "dqn" / "min_replay_history=1000000" / "Pong" / str(seed)
        synthetic.write_log(folder, [first, -21, -21], episodes=2, config=CONFIG)
    return synthetic.write_baselines(tmp_path / "published", ["Pong"], {"DQN": 0.5}), results


def test_collects_runs_once(study, capsys):
    _, results = study
    for _ in range(2):
        assert atari_study.main(["collect", f"--results_dir={results}"]) == 0
        assert capsys.readouterr().err == ""
    curves = atari_study.read()
    assert list(curves) == list(atari_study.TYPES)
    assert len(curves) == 15
    own = curves[(curves["agent"] == "log_dqn") & (curves["seed"] == 2)]
    assert own["steps"].tolist() == [125_000, 250_000, 375_000]
    assert own["mean_return"].tolist() == [5, 2.12345, 3]
    assert own["episodes"].tolist() == [2, 2, 2]
    # The last value at 125,000, 250,000 and 375,000 steps; other runs have none.
    assert own["q_plus"].tolist() == [0.8, 0.7, 0.6]
    assert curves["q_plus"].notna().sum() == 3
    order = curves[[*atari_study.RUN, "steps"]].values.tolist()
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("returns", "kept", "said"),
    [
        (
            [7, 8],
            [0, 0, 5],
            "loglin_dqn Pong 1: has 250,000 agent steps, committed are 375,000",
        ),
        ([7, 8, 9], [7, 8, 9], ""),
        ([6, 7, 8, 9], [6, 7, 8, 9], ""),
    ],
)
def test_a_run_replaces_none_that_is_longer(study, capsys, returns, kept, said):
    _, results = study
    atari_study.collect(results)
    folder = results / "loglin_dqn" / "Pong" / "1"
    shutil.rmtree(folder)
    synthetic.write_log(folder, returns, config=CONFIG)
    atari_study.collect(results)
    curves = atari_study.read()
    assert curves[curves["agent"] == "loglin_dqn"]["mean_return"].tolist() == kept
    err = capsys.readouterr().err
    assert err == (f"atari_study.py: {said}; left out\n" if said else "")


def test_a_shorter_run_hides_no_longer_one_in_another_folder(study, capsys):
    _, results = study
    atari_study.collect(results)
    for folder, returns in (("Pong", [1]), ("pong", [7, 8, 9])):
        shutil.rmtree(results / "loglin_dqn" / folder, ignore_errors=True)
        synthetic.write_log(results / "loglin_dqn" / folder / "1", returns, config=CONFIG)
    atari_study.collect(results)
    curves = atari_study.read()
    assert curves[curves["agent"] == "loglin_dqn"]["mean_return"].tolist() == [7, 8, 9]
    assert "Pong 1: has 125,000 agent steps" in capsys.readouterr().err


def test_leaves_out_what_cannot_be_read(study, capsys):
    _, results = study
    damage(results / "dqn" / "Pong")
    synthetic.write_log(results / "dqn" / "Pong" / "1", [0.0], episodes=1, config=CONFIG)
    synthetic.write_log(results / "dqn" / "pong" / "1", [9.0], episodes=1, config=CONFIG)
    synthetic.write_log(results / "dqn" / "CartPole-v1" / "1", [1, 2, 3], config=CONFIG)
    synthetic.write_log(results / "dqn" / "Pong" / str(2**32), [1, 2, 3], config=CONFIG)
    assert atari_study.main(["collect", f"--results_dir={results}"]) == 0
    lines = iter(sorted(capsys.readouterr().err.splitlines()))
    for run, reason in (
        (f"{results}/dqn/Pong/7", "no logs yet"),
        ("dqn CartPole-v1 1", "not a game with published baselines"),
        ("dqn Pong 2", "Runner.training_steps is 'many'; it must be a whole number from 1 to"),
        ("dqn Pong 3", "Runner.training_steps is 0; it must be a whole number from 1 to"),
        ("dqn Pong 4294967296", "seed is 4294967296; it must be a whole number from 0 to"),
        ("dqn Pong 4", "iteration 0 of its log has no train_episode_returns"),
        ("dqn Pong 5", f"{results}/dqn/Pong/5: damaged events of TensorBoard"),
        ("dqn Pong 6", "iteration 0 of its log has no train_episode_returns"),
        ("dqn Pong 8", "has no iteration with a train_average_return"),
        ("dqn Pong 9", "Runner.training_steps is 100000; it must be a divisor of 250,000"),
        ("dqn pong 1", "the same run lies in another folder"),
    ):
        line = next(lines)
        assert line.startswith(f"atari_study.py: {run}: {reason}")
        assert line.endswith("; left out")
    assert list(lines) == []
    curves = atari_study.read()
    assert curves[(curves["agent"] == "dqn") & (curves["setting"] == "")].shape[0] == 1


def test_the_values_end_where_the_events_are_cut(tmp_path):
    path = events_of(tmp_path, {50_000: 0.5, 60_000: np.inf, 100_000: 0.6})
    assert atari_study._q_plus(tmp_path, 25_000) == pytest.approx({1: 0.5, 3: 0.6})
    path.write_bytes(path.read_bytes()[:-7])
    assert atari_study._q_plus(tmp_path, 50_000) == {0: 0.5}


def test_a_half_is_the_mean_of_its_episodes():
    run = dict.fromkeys(atari_study.RUN, "x")
    rows = [(100_000, 1.0, 30), (200_000, 4.0, 10), (250_000, 2.0, 10), (300_000, 7.0, 1)]
    curves = pd.DataFrame(
        [{**run, "steps": s, "mean_return": r, "episodes": n} for s, r, n in rows]
    )
    found = atari_study.halves(curves)
    # (30 + 40 + 20) / 50, and what ends behind 250,000.
    assert found[["mean_return", "end"]].values.tolist() == [[1.8, 250_000], [7.0, 300_000]]


def test_a_column_each_100_000_steps():
    run = {"game": "Pong", "agent": "log_dqn", "setting": "", "mean_return": 0, "episodes": 1}
    steps = [50_000, 100_000, 200_000]
    rows = [{**run, "seed": 1, "steps": n, "q_plus": n / 400_000} for n in steps]
    rows += [{**run, "seed": 2, "setting": "c=1", "steps": 100_000, "q_plus": 0.1234}]
    rows += [{**run, "agent": "dqn", "seed": 1, "steps": 100_000, "q_plus": np.nan}]
    random = {"agent": "dqn", "setting": "min_replay_history=1000000", "seed": 1, "q_plus": 1.0}
    rows += [{**run, **random, "steps": 100_000}]
    assert atari_study.by_steps(pd.DataFrame(rows), "q_plus", 100_000).splitlines() == [
        "| game | agent | seed | 100,000 | 200,000 |",
        "| --- | --- | --- | --- | --- |",
        "| Pong | log_dqn | 1 | 0.25 | 0.5 |",
        "| Pong | log_dqn/c=1 | 2 | 0.123 | - |",
    ]


def test_the_smallest_difference_is_half_a_t_interval():
    points = np.array([9.0, 10.0, 11.0, 10.0, 10.0])
    # Their deviation is sqrt(1/2), t(0.975, 4) 2.776445; a run beside five, and beside another.
    for others, factor in ((5, np.sqrt(0.6)), (1, 1)):
        found = atari_study.smallest_difference(points, others)
        assert found == pytest.approx(2.776445 * factor, 1e-6)


def test_the_table_and_the_figure(study, tmp_path, capsys):
    published, results = study
    atari_study.main(["collect", f"--results_dir={results}"])
    assert atari_study.main(["report", f"--baselines={published}", f"--out={tmp_path / 'o'}"]) == 0
    first, second = capsys.readouterr().out.split("the second 250,000 agent steps:")
    assert (
        "| game | agent | seed | 250,000 |" in second and "| Pong | log_dqn | 2 | 2.12 |" in second
    )
    assert "plus head" not in second  # No value at a multiple of 100,000 steps.
    # Two iterations of each seed end by 250,000 steps, (1 + 2.12345) / 2; and then a third.
    assert "| log_dqn | 1.56, 3.56 |\n| loglin_dqn | 0 |" in first
    assert "| log_dqn | 3 (to 375,000), 3 (to 375,000) |\n| loglin_dqn | 5 (to 375,000) |" in second
    for name in ("atari.png", "atari_log_dqn.png"):
        assert (tmp_path / "o" / name).stat().st_size > 10_000


def test_the_table_has_a_row_for_each_agent():
    run = {"agent": "dqn", "setting": "", "seed": 3, "episodes": 2, "q_plus": np.nan}
    rows = [
        {**run, "game": game, "setting": setting, "steps": steps, "mean_return": mean}
        for game, setting, steps, mean in (
            ("Alien", "", 250_000, 1234.4),
            ("Alien", "", 500_000, 7.0),
            ("Pong", "gamma=0.5", 500_000, 8.0),
            ("Pong", "min_replay_history=1000000", 250_000, -20.5),
            ("Pong", "min_replay_history=1000000", 500_000, 9.0),
        )
    ]
    found = {
        "Alien": {"DQN": np.array([[9, 11], [9, 13]]), "C51": np.array([[1, 10], [2, 1234.4]])},
        "Pong": {"DQN": np.array([[1, 4], [1, 7]])},
    }
    # Deviations of sqrt(2) and sqrt(4.5), t(0.975, 1) 12.7062; one run beside two, and beside one.
    dqn = "DQN (TensorFlow: RMSProp, Huber)"
    assert atari_study.table(pd.DataFrame(rows), found, half=1).splitlines() == [
        "| agent | Alien | Pong |",
        "| --- | --- | --- |",
        "| random | - | -20.5 |",
        f"| published {dqn} | 12 (11 to 13) | 5.5 (4 to 7) |",
        "| published C51 | 622 (10 to 1,234) | - |",
        "| dqn | 7 | - |",
        "| dqn/gamma=0.5 | - | 8 |",
        f"| *least difference shown: a run beside {dqn}* | 22 | 33 |",
        f"| *least difference shown: two runs that vary as {dqn}* | 25.4 | 38.1 |",
    ]
    assert "| dqn | 1,234 | - |" in atari_study.table(pd.DataFrame(rows), found, half=0)


def test_a_panel_has_the_seeds_and_the_published_band():
    run = {"game": "Pong", "agent": "log_dqn", "setting": "", "episodes": 1, "q_plus": np.nan}
    rows = [
        {**run, "seed": seed, "steps": steps, "mean_return": seed * steps / 50_000}
        for seed in (1, 2)
        for steps in (50_000, 100_000)
    ]
    points = np.array([[1.0, 5.0], [3.0, 4.0]])
    published = {"DQN": points, "C51": points, "DQN (Adam + MSE in JAX)": 2 * points}
    bands = ["DQN", "DQN (Adam + MSE in JAX)"]
    figure = atari_study.draw(pd.DataFrame(rows), {"Pong": published}, bands)
    (axes,) = figure.axes
    assert axes.get_title() == "Pong"
    assert [line.get_xydata().tolist() for line in axes.lines] == [
        [[50, 1], [100, 2]],
        [[50, 2], [100, 4]],
    ]
    bands = [band.get_paths()[0].vertices.tolist() for band in axes.collections]
    # The first point is level to its end at 250,000 steps, at the least and at the greatest seed.
    for band, factor in zip(bands, (1, 2), strict=True):
        corners = [(0, 1), (250, 1), (250, 4), (500, 4), (500, 5), (250, 5), (250, 3), (0, 3)]
        assert {(x, y / factor) for x, y in band} == set(corners)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.texts] == [
        "published DQN (TensorFlow: RMSProp, Huber), 2 seeds",
        "published DQN (JAX: Adam, MSE), 2 seeds",
        "log_dqn",
    ]


def test_each_panel_has_the_curves_of_its_game_in_their_looks():
    run = {"agent": "log_dqn", "seed": 1, "steps": 50_000, "episodes": 1, "q_plus": np.nan}
    games = ["Alien", "Asterix", "Breakout", "Pong"]
    rows = [
        {**run, "game": game, "setting": setting, "mean_return": number}
        for number, game in enumerate(games)
        for setting in ("", "c=1")
    ]
    published = {"DQN": np.array([[1.0, 5.0], [3.0, 4.0]])}
    figure = atari_study.draw(pd.DataFrame(rows), dict.fromkeys(games, published), ["DQN"])
    assert [axes.get_title() for axes in figure.axes] == games
    looks = atari_study.setting_looks(["log_dqn", "log_dqn/c=1"]).values()
    for number, axes in enumerate(figure.axes):
        assert [
            (line.get_ydata().tolist(), line.get_color(), line.get_marker(), line.get_linestyle())
            for line in axes.lines
        ] == [([number], look.colour, look.marker, look.line) for look in looks]


def test_log_dqns_settings_have_a_picture_with_dqns():
    runs = {
        ("Alien", "dqn", ""): {"atari.png"},
        ("Pong", "dqn", "gamma=0.5"): {"atari.png", "atari_log_dqn.png"},
        ("Pong", "log_dqn", ""): {"atari.png", "atari_log_dqn.png"},
        ("Pong", "log_dqn", "c=1"): {"atari_log_dqn.png"},
        ("Pong", "loglin_dqn", ""): {"atari.png"},
    }
    curves = pd.DataFrame(list(runs), columns=["game", "agent", "setting"])
    shown = atari_study._pictures(curves)
    for row, pictures in enumerate(runs.values()):
        assert {name for name, (of, _) in shown.items() if row in of.index} == pictures


@pytest.mark.parametrize("picture", ["atari.png", "atari_log_dqn.png"])
def test_the_legend_of_the_committed_curves_is_inside_the_figure(picture):
    curves, bands = atari_study._pictures(atari_study.read())[picture]
    points = np.array([[1.0, 5.0], [3.0, 4.0]])
    published = dict.fromkeys(bands, points)
    figure = atari_study.draw(curves, dict.fromkeys(atari_study.trained(curves), published), bands)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    edges = legend.get_window_extent()
    assert 0 <= edges.x0 < edges.x1 <= figure.bbox.width
    assert 0 <= edges.y0 < edges.y1 <= figure.bbox.height


def test_settings_are_told_apart_and_known_by_their_agents_colour():
    names = ["dqn", "dqn/gamma=0.96", *[f"log_dqn/c={c}" for c in range(5)], "log_dqn"]
    found = atari_study.setting_looks(names)
    assert [look.name for look in found.values()] == names
    assert len({(look.colour, look.marker, look.line) for look in found.values()}) == 8
    assert [look.colour for look in found.values()] == ["#000000"] * 2 + ["#D55E00"] * 6


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["report"], "atari.csv: not a file; collect runs first"),
        (["collect", "--results_dir=nowhere"], "--results_dir=nowhere: not a folder"),
        (["collect", "--results_dir=no\nwhere"], "--results_dir='no\\nwhere': not a folder"),
        (["collect"], "--results_dir"),
        (["report", "--out= "], "out is ' '; it must be the name of a folder"),
        ([], "required: {collect,report}"),
    ],
)
def test_wrong_input_is_one_line(study, capsys, arguments, named):
    try:
        status = atari_study.main(arguments)
    except SystemExit as stop:
        status = stop.code
    err = capsys.readouterr().err
    assert (status, err.count("\n")) == (2, 1)
    assert named in err


def test_random_runs_alone_are_no_study(study, tmp_path, capsys):
    published, results = study
    assert atari_study.main(["collect", f"--results_dir={results}"]) == 0
    curves = atari_study.read()
    curves[curves["setting"] != ""].to_csv(atari_study.DATA, index=False)
    capsys.readouterr()
    arguments = ["report", f"--baselines={published}", f"--out={tmp_path}"]
    assert atari_study.main(arguments) == 2
    err = capsys.readouterr().err
    assert err.endswith("atari.csv: no runs but of a policy at random; collect others first\n")
    assert err.count("\n") == 1


ROWS = ",".join(atari_study.TYPES) + "\nPong,dqn,,1,9,1,1,\n{}\n"


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("game,agent\nPong,dqn", "its columns must be game,agent,setting,seed,steps,"),
        ("", "damaged (No columns"),
        ("\0\0", "its columns must be"),
        (ROWS.format("Pong,dqn,,1,x,1,1,"), "damaged ("),
        (ROWS.format("Pong,dqn,,1,1,,1,"), "damaged ("),
        (ROWS.format(f"Pong,dqn,,1,{10**20},1,1,"), "damaged ("),
        (ROWS.format("Pong,dqn,,1,1,inf,1,"), "mean_return of row 2 is inf; it must be a finite"),
        (ROWS.format("Pong,dqn,,1,1,1,1,1,1,1"), "damaged ("),
        (ROWS.format("Pong,,,1,1,1,1,"), "agent of row 2 is ''; it must be an agent's name"),
        (ROWS.format("Pong,dqn,,-1,1,1,1,"), "seed of row 2 is -1; it must be 0 or above"),
        (ROWS.format("Pong,dqn,,1,1,1,1,inf"), "q_plus of row 2 is inf; it must be a finite num"),
        (ROWS.format("pong,dqn,,1,1,1,1,"), "game of row 2 is 'pong'; it must be a game with"),
        (ROWS.format("Pong,dqn,,1,-5,1,1,"), "steps of row 2 is -5; it must be above 0, and once"),
        (ROWS.format("Pong,dqn,,1,9,1,1,"), "steps of row 2 is 9; it must be above 0, and once"),
        (ROWS.format("Pong,dqn,,1,1,1,0,"), "episodes of row 2 is 0; it must be above 0"),
    ],
)
def test_damaged_curves_are_one_line(study, capsys, content, named):
    _, results = study
    atari_study.DATA.write_text(content)
    for arguments in (["report", f"--out={results}"], ["collect", f"--results_dir={results}"]):
        capsys.readouterr()
        assert atari_study.main(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"atari.csv: {named}" in line
        assert atari_study.DATA.read_text() == content


@pytest.mark.parametrize(
    ("rows", "content", "named"),
    [
        ({"num_seeds": 1}, None, "few'; it must have two seeds of DQN on Pong or more, and two it"),
        ({"num_iterations": 1}, None, "few'; it must have two seeds of DQN on Pong or more, and"),
        ({}, "{", "few: is not JSON; only the final scores that travel with the package are known"),
    ],
)
def test_published_curves_that_will_not_do_are_one_line(
    study, tmp_path, capsys, rows, content, named
):
    _, results = study
    few = synthetic.write_baselines(tmp_path / "few", ["Pong"], {"DQN": 0.5}, **rows)
    if content:
        (few / "pong.json").write_text(content)
    assert atari_study.main(["collect", f"--results_dir={results}"]) == 0
    capsys.readouterr()
    assert atari_study.main(["report", f"--baselines={few}", f"--out={tmp_path / 'o'}"]) == 2
    err = capsys.readouterr().err
    assert named in err
    assert err.count("\n") == 1
    assert not (tmp_path / "o").exists()


@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there")
def test_the_published_seeds():
    """The second 250,000 agent steps, as docs/atari.md has them."""
    points = atari_study.published(str(REAL), ["Asterix", "RoadRunner"])
    assert {of.shape for of in points["Asterix"].values()} == {(5, 2)}
    assert points["Asterix"]["DQN"][:, 1].mean() == pytest.approx(407.7, abs=0.1)
    assert points["RoadRunner"]["DQN"][:, 1].min() == pytest.approx(298.3, abs=0.1)


PAGE = pathlib.Path(__file__).parents[2] / "docs" / "atari.md"
TABLES = PAGE.with_name("atari_tables.md")


@pytest.mark.parametrize("column", atari_study.BY_STEPS, ids=lambda column: column[0])
def test_the_page_has_the_committed_curves(column):
    name, every, _ = column
    assert atari_study.by_steps(atari_study.read(), name, every) in TABLES.read_text()


@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there")
def test_the_page_has_the_returns_of_the_committed_curves():
    curves = atari_study.read()
    found = atari_study.published(str(REAL), atari_study.trained(curves))
    for half, page in enumerate((TABLES, PAGE)):
        assert atari_study.table(curves, found, half) in page.read_text()


def page_table(page, head):
    """A page's table whose head begins so: its rows' cells by column, by the first cell."""
    text = page.read_text()
    lines = text[text.index(head) :].partition("\n\n")[0].splitlines()
    heads, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return {row[0]: dict(zip(heads, row, strict=True)) for row in rows}


def test_the_page_begins_with_what_its_tables_hold():
    ahead = page_table(PAGE, "| mean returns")
    returns = page_table(PAGE, "| agent")
    rows = {
        "LogLinDQN with Adam": "loglin_dqn/Adam",
        "our DQN": "dqn",
        "published DQN (RMSProp, Huber)": "published DQN (TensorFlow: RMSProp, Huber)",
        "published DQN on JAX (Adam, squared error)": "published DQN (JAX: Adam, MSE)",
    }
    assert list(ahead) == list(rows)
    for name, of in rows.items():
        _, *cells = ahead[name].items()
        assert len(cells) == 6
        for game, mean in cells:
            assert mean == returns[of][game].partition(" ")[0]


PAGE_2018 = PAGE.with_name("atari_2018.md")
HALVES = {"0 to 250,000": 0, "250,000 to 500,000": 1}


def test_the_page_on_2018_has_the_committed_returns():
    curves = atari_study.read()
    halves = atari_study.halves(curves[(curves["agent"] == "dqn") & (curves["seed"] == 1)])
    means = halves.set_index(["game", "half", "setting"])["mean_return"]
    table = page_table(PAGE_2018, "| game, agent steps")
    assert len(table) == 4
    for name, cells in table.items():
        game, half = name.split(", ")
        for column, setting in (("the ROM of 2018", "roms=2018"), ("today's ROM", "")):
            mean = means[game, HALVES[half], setting]
            assert cells[f"DQN with {column}"] == words.rounded(mean)


@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there")
def test_the_page_on_2018_has_the_published_returns():
    found = atari_study.published(str(REAL), ["Assault", "RoadRunner"])
    for name, cells in page_table(PAGE_2018, "| game, agent steps").items():
        game, half = name.split(", ")
        points = found[game]["DQN"][:, HALVES[half]]
        mean, least, most = map(words.rounded, (points.mean(), points.min(), points.max()))
        assert cells["published DQN (least to greatest seed)"] == f"{mean} ({least} to {most})"
        two = atari_study.smallest_difference(points, 1)
        assert cells["least difference that two runs can show"] == words.rounded(two)


def planned(script, folder, *options):
    """The lengths of the runs that a script's commands plan, by name."""
    lengths = {}
    for program, *arguments in commands_of(SCRIPTS / script, folder, *options):
        assert program == "sweep"
        args = sweep.create_parser().parse_args(arguments)
        asked = (args.agents, args.scan, args.gin_files, args.gin_bindings)
        agents = check.plans(check.SweepOptions(*asked, args.games[0], vectorized=False))
        results, seeds = pathlib.Path(args.results_dir), shell.seeds(args.seeds)
        jobs = plan.Plan(results, agents, args.games, seeds, args.gin_files).single_jobs()
        for (run,) in (job.runs for job in jobs):
            assert run.name not in lengths
            lengths[run.name] = (run.num_iterations, run.steps_per_iteration)
    return lengths


def test_the_scripts_plan_the_runs_of_the_page(tmp_path):
    page, curves = PAGE.read_text(), atari_study.read()
    six = f"--games={','.join(atari_study.trained(curves))}"
    main = planned("atari_study.sh", tmp_path, six)
    screening = planned("atari_screening.sh", tmp_path)
    assert six in page
    at_random = {name: main.pop(name) for name in list(main) if "min_replay_history" in name}
    assert list(at_random.values()) == [(3, 50_000)] * 6
    assert main.keys().isdisjoint(screening)
    assert set((main | screening).values()) == {(10, 50_000)}
    assert f"{len(main)} runs" in page and f"{len(screening)} runs" in page
    runs = curves[(curves["setting"] != "roms=2018") & (curves["game"] != "KungFuMaster")]
    runs = runs[["agent", "setting", "game", "seed"]].drop_duplicates().astype(str)
    runs = {"/".join(filter(None, run)) for run in runs.itertuples(index=False)}
    assert runs <= {*main, *screening, *at_random}
    trained = len(runs - at_random.keys())
    assert f"Of these {len(main | screening)} runs the {trained} above" in " ".join(page.split())
    assert set(atari_study._NAMES) <= {
        name.rsplit("/", 2)[0] for name in (*main, *screening, *at_random)
    }
