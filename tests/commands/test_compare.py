"""The program as a user runs it: files, messages and exit status."""

import html
import json
import os
import re
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from log_dqn import games
from log_dqn.commands.compare import main
from log_dqn.results import pictures, report, scores
from tests.results import synthetic
from tests.results.synthetic import read_csv, write_runs

FEW = ["Pong", "Alien", "DoubleDunk"]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    agents = {"DQN": 0.5, "C51": 1, "Rainbow": 1.5, "IQN": 2, "DQN (Adam + MSE in JAX)": 0.8}
    folder = tmp_path_factory.mktemp("published")
    return synthetic.write_baselines(folder, [*FEW, "Carnival"], agents)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "r"


@pytest.fixture
def run(tmp_path, published, capsys, out):
    """Runs the program on what runs there are; returns its status and the lines that it said."""

    def run(*arguments):
        given = [f"--out={out}", f"--baselines={published}", "--repetitions=20"]
        if (tmp_path / "runs").exists():
            given.append(f"--results_dir={tmp_path / 'runs'}")
        status = main([*given, *arguments])
        lines = capsys.readouterr().err.replace("\r", "\n").split("\n")
        return status, [line for line in lines if line.startswith("log-dqn compare: ")]

    return run


def test_whole_report(tmp_path, published, capsys):
    runs, out = tmp_path / "runs", tmp_path / "deep" / "report"
    write_runs(runs, "log_dqn", FEW, 200, seeds=3)
    given = [f"--results_dir={runs}", f"--out={out}", f"--baselines={published}"]
    assert main([*given, "--iteration=final", "--repetitions=20"]) == 0
    printed, said = capsys.readouterr()
    assert printed == f"Starting a report on {runs} in {out}\n{out / 'report.html'}\n"
    assert "log-dqn compare: " not in said
    names = pictures.PICTURES.keys() - {"gamma"}
    expected = {f"{name}.{kind}" for name in names for kind in ("png", "pdf")}
    expected |= {"scores.csv", "aggregates.csv", "relative.csv", "report.html", "report.json"}
    expected |= {f"{name}.{kind}" for name in ("aggregates", "games") for kind in ("md", "tex")}
    assert {path.name for path in out.iterdir()} == expected
    for name in names:
        assert (out / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        with Image.open(out / f"{name}.png") as image:
            assert len(set(image.convert("L").resize((64, 64)).getdata())) > 5

    page = html.unescape((out / "report.html").read_text())
    assert "VideoPinball's random score is 16256.9" in page
    assert "on one game: t over seeds" in page
    for row in (
        ("log_dqn", "own runs", "not recorded", 3, 3, 199, "200,000,000", "same"),
        ("IQN", "published", 0.99, 3, 5, 198, "199,000,000", "published"),
    ):
        assert "".join(f"<td>{cell}</td>" for cell in row) in page
    # The one thing missing is the gamma figure.
    assert page.count("<li>") == 1 and '<a href="#missing">1 note</a>' in page

    rows = read_csv(out / "scores.csv")
    columns = ["game", "agent", "seed", "iteration", "score", "hns", "frames", "protocol"]
    assert list(rows[0]) == columns
    assert len(rows) == 3 * (3 + 4 * 5)
    own = next(
        r for r in rows if r["agent"] == "log_dqn" and r["game"] == "Pong" and r["seed"] == "1"
    )
    curve = synthetic.curve("Pong", 200, 1.0, 1)
    assert own["iteration"] == "199"
    assert float(own["score"]) == pytest.approx(curve[-20:].mean(), rel=1e-7)
    assert float(own["hns"]) == pytest.approx((curve[-20:].mean() + 20.7) / (14.6 + 20.7), rel=1e-7)

    means = pd.read_csv(out / "scores.csv").groupby(["agent", "game"])["score"].mean()
    relative = read_csv(out / "relative.csv")
    assert list(relative[0]) == ["game", "relative", "low", "high"] and len(relative) == 3
    for row in relative:
        random, human = synthetic.REFERENCES[row["game"]]
        dqn, ours = means["DQN", row["game"]], means["log_dqn", row["game"]]
        expected = (ours - dqn) / (max(dqn, human) - random)
        assert float(row["relative"]) == pytest.approx(expected, rel=1e-6)

    aggregates = read_csv(out / "aggregates.csv")
    assert list(aggregates[0]) == ["agent", "metric", "value", "low", "high", "protocol"]
    [mean] = [r for r in aggregates if (r["agent"], r["metric"]) == ("log_dqn", "mean")]
    hns = [scores.human_normalised(means["log_dqn", g], *synthetic.REFERENCES[g]) for g in FEW]
    assert float(mean["value"]) == pytest.approx(np.mean(hns), rel=1e-6)
    assert float(mean["low"]) <= float(mean["value"]) <= float(mean["high"])
    chances = [r["metric"] for r in aggregates if "improvement" in r["metric"]]
    assert chances == [f"improvement_over_{a}" for a in ("DQN", "C51", "Rainbow", "IQN")]


def test_agents_without_a_common_game_and_games_without_human_scores(tmp_path, run, out):
    # Breakout has no published curves here; NoSuchGame isn't a game.
    write_runs(tmp_path / "runs", "a$_{", ["Pong", "Carnival", "NoSuchGame", "Breakout"], 200)
    write_runs(tmp_path / "runs", "b", ["Alien"], 200)
    status, lines = run()
    assert status == 0 and any("there are no aggregates" in line for line in lines)
    page = (out / "report.html").read_text()
    assert "<td>published, final scores only on some or all games</td>" in page
    rows = read_csv(out / "scores.csv")
    for game in ("Carnival", "NoSuchGame"):
        (line,) = [line for line in lines if game in line]
        said = f"{game}: no human scores; it is in no aggregate and no relative score"
        assert line.endswith(said) and said in page
        assert {row["hns"] for row in rows if row["game"] == game} == {""}
    assert read_csv(out / "aggregates.csv") == []
    assert [row["game"] for row in read_csv(out / "relative.csv")] == ["Breakout", "Pong"]
    assert (out / "learning_curves.png").exists()


@pytest.mark.slow
def test_games_without_baselines_and_human_scores(tmp_path, run, out):
    """Scores are normalised by the best mean on each game."""
    names = games.MINATAR5
    folders = [games.folder_name(name) for name in names]
    levels = {"log_dqn/gamma=0.5": 0.8, "log_dqn/gamma=0.9": 1.0, "dqn/gamma=0.5": 0.4}
    for agent, level in levels.items():
        write_runs(tmp_path / "runs", agent, folders, 20, seeds=3, level=level)
        for run_dir in (tmp_path / "runs" / agent).glob("*/*"):
            gamma = float(agent[-3:])
            config = {"VectorizedDQNAgent.gamma": gamma, "DQNAgent.min_replay_history": 100}
            (run_dir / "config.json").write_text(json.dumps(config))
    status, lines = run("--games=minatar5", "--reference=dqn/gamma=0.5")
    assert status == 0 and lines == []
    figures = {path.stem for path in out.glob("*.png")}
    assert figures == pictures.PICTURES.keys()

    rows = read_csv(out / "scores.csv")
    assert len(rows) == 3 * 5 * 3 and "hns" not in rows[0]
    report = (out / "report.json").read_text()
    assert '"normalised"' in report and '"hns"' not in report
    means = pd.read_csv(out / "scores.csv").groupby(["game", "agent"])["score"].mean()
    best = {game: max(means[game, agent] for agent in levels) for game in names}
    for row in rows:
        expected = float(row["score"]) / best[row["game"]]
        assert float(row["normalised"]) == pytest.approx(expected, rel=1e-6)
    values = {(r["agent"], r["metric"]): r for r in read_csv(out / "aggregates.csv")}
    for agent in levels:
        mean = sum(means[game, agent] / best[game] for game in names) / 5
        assert float(values[agent, "mean"]["value"]) == pytest.approx(mean, rel=1e-6)
        assert values[agent, "iqm"]["low"] != ""
    chance = values["log_dqn/gamma=0.5", "improvement_over_dqn/gamma=0.5"]
    assert float(chance["value"]) == 1
    for row in read_csv(out / "relative.csv"):
        own, other = (means[row["game"], f"{a}/gamma=0.5"] for a in ("log_dqn", "dqn"))
        expected = (own - other) / best[row["game"]]
        assert float(row["relative"]) == pytest.approx(expected, rel=1e-6)

    page = html.unescape((out / "report.html").read_text())
    assert "divided by the best mean that any agent has on the game" in page
    assert "on one game, and of means against the discount factor: t over seeds" in page
    heads = re.findall(r"<button>(.*?)</button>", page)
    assert not {"Human", "Random"} & set(heads)
    assert '<th scope="col">Agent steps</th>' in page and "Frames" not in page


def test_an_own_game_without_a_positive_mean_is_in_no_aggregate(tmp_path, run, out):
    for agent, value in (("log_dqn", -3.0), ("dqn", -5.0)):
        for seed in range(3):
            synthetic.write_log(tmp_path / "runs" / agent / "LunarLander-v3" / str(seed), [value])
    status, lines = run()
    assert status == 0 and "LunarLander-v3: no mean above 0" in lines[0]
    assert read_csv(out / "aggregates.csv") == [] and {p.stem for p in out.glob("*.png")} == {
        "learning_curves"
    }


def save_quickly(figure, box, path):
    """Stands in for drawing, which takes most of the time; no two pictures are the same."""
    for kind in (".png", ".pdf"):
        path.with_suffix(kind).write_bytes(os.urandom(8))
    return b""


@pytest.mark.slow
def test_a_failed_report_leaves_nothing_half_written(run, out, monkeypatch):
    monkeypatch.setattr(report, "_save", save_quickly)
    run("--games=Pong")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    module = sys.modules["log_dqn.results.page"]

    def full(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "render", full)
        status, [line] = run("--games=Alien")
    assert status == 2 and "No space left on device" in line
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before

    # And a later report leaves no figure of an earlier one.
    (out / "notes.png").write_bytes(b"the user's own")
    assert "relative.png" in before and "improvement.pdf" in before
    assert run("--games=Pong", "--agents=DQN")[0] == 0
    names = pictures.PICTURES.keys() - {"relative", "improvement", "gamma"}
    expected = {f"{name}.{kind}" for name in names for kind in ("png", "pdf")} | {"notes.png"}
    assert {path.name for path in out.glob("*.p*")} == expected


@pytest.mark.slow
def test_settings_of_a_scan(tmp_path, run, out, monkeypatch):
    for gamma in (0.84, 0.96):
        for c in (0.5, 1):
            agent = f"log_dqn/gamma={gamma},c={c}"
            write_runs(tmp_path / "runs", agent, ["Alien"], 200, level=gamma + c)
            for seed in range(2):
                path = tmp_path / "runs" / agent / "Alien" / str(seed)
                synthetic.write_config(path, "LogDQNAgent", gamma)
    status, [few] = run()
    assert status == 0 and few.endswith("c=1: 2 seeds a game; intervals need 3")
    assert (out / "gamma.png").exists() and (out / "gamma.pdf").exists()
    assert {path.parent for path in out.rglob("*")} == {out}
    page = (out / "report.html").read_text()
    assert "<td>log_dqn/gamma=0.84,c=1</td><td>own runs</td><td>0.84</td>" in page
    # With one game, its learning curves come first.
    assert page.index("<h2>Learning curves") < page.index("<h2>Aggregates over games")

    monkeypatch.setattr(report, "_save", save_quickly)
    two = "log_dqn/gamma=0.96,c=1,DQN,log_dqn/gamma=0.84,c=0.5"
    status, [few] = run(f"--agents={two}")
    assert status == 0 and few.endswith("c=0.5: 2 seeds a game; intervals need 3")
    agents = {row["agent"] for row in read_csv(out / "scores.csv")}
    assert agents == {"log_dqn/gamma=0.96,c=1", "DQN", "log_dqn/gamma=0.84,c=0.5"}
