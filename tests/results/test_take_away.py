"""What a report is taken away as: numbers as JSON, tables in LaTeX and Markdown, provenance."""

import json
import math
import re
import subprocess

import numpy as np
import pandas as pd
import pytest

import log_dqn
from log_dqn.results import export, provenance, report, tables
from tests.results import synthetic
from tests.results.synthetic import read_csv, rows_of

GAMES = ["Pong", "Alien"]
COMMAND = "log-dqn compare --out=report"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A comparison and the folder of its report."""
    folder = tmp_path_factory.mktemp("take_away")
    config = synthetic.PROTOCOL | {
        "create_agent.agent_name": "log_dqn",
        "LogDQNAgent.gamma": 0.9,
        "tf.train.RMSPropOptimizer.learning_rate": 0.0025,
        "create_environment.game_name": "Pong",
    }
    for game in GAMES:
        for seed in range(3):
            own = config | {"create_environment.game_name": game}
            own |= {"LogDQNAgent.c": 0.5 if seed else 2.0}
            returns = synthetic.curve(game, 30, 1.0, seed)
            synthetic.write_log(folder / f"runs/log_dqn/{game}/{seed}", returns, config=own)
            other = own | {"LogDQNAgent.update_period": 1}
            synthetic.write_log(folder / f"runs/a_b%|c/{game}/{seed}", returns, config=other)
        synthetic.write_log(folder / f"runs/few/{game}/0", [1.0] * 30, config=None)
    agents = {"DQN": 1.0, "C51": 1, "Rainbow": 1.5, "IQN": 2}
    source = synthetic.write_baselines(folder / "published", GAMES, agents, num_iterations=30)
    compared, _ = synthetic.compare(source, folder / "runs", repetitions=50)
    with pytest.MonkeyPatch.context() as patch:
        # The others are most of the time, and no test here looks at them.
        patch.setattr(report, "PICTURES", {"relative": report.PICTURES["relative"]})
        report.write(compared, folder / "report", COMMAND)
    return compared, folder / "report"


def test_the_json_holds_the_numbers_of_the_csv_files(made):
    compared, folder = made
    data = json.loads((folder / "report.json").read_text())
    for row in read_csv(folder / "aggregates.csv"):
        name = row["metric"].removeprefix("improvement_over_")
        if name == row["metric"]:
            found = data["aggregates"][row["agent"]][name]
        else:
            found = {k: v[0] for k, v in data["improvement"]["over"][name].items()}
        for key in ("value", "low", "high"):
            assert found[key] == (pytest.approx(float(row[key]), rel=1e-7) if row[key] else None)
    for row in read_csv(folder / "relative.csv"):
        found = data["relative"][row["game"]]
        assert [found[key] for key in ("value", "low", "high")] == pytest.approx(
            [float(row[key]) for key in ("relative", "low", "high")], rel=1e-7
        )
    pong = data["games"]["Pong"]["log_dqn"]["score"]
    assert pong == pytest.approx(rows_of(compared, "log_dqn", ["Pong"])["score"].mean())
    assert data["frames"] == 30_000_000 and data["agents"]["few"]["seeds"]["Pong"] == 1
    assert data["agents"]["few"]["differs"] == ["protocol not recorded"]
    assert data["aggregates"]["few"]["mean"]["low"] is None
    assert len(data["curves"]["IQN"]["iqm"]["high"]) == len(data["curves"]["IQN"]["frames"]) == 30
    assert len(data["profiles"]["agents"]["IQN"]["value"]) == len(data["profiles"]["thresholds"])


def test_the_json_holds_every_run(made):
    compared, folder = made
    data = json.loads((folder / "report.json").read_text())
    rows = {(row["agent"], row["game"], row["seed"]): row for row in data["runs"]}
    assert len(rows) == len(data["runs"]) == len(compared.runs)
    row = rows["a_b%|c", "Pong", "2"]
    returns = synthetic.curve("Pong", 30, 1.0, 2)
    assert row["returns"] == pytest.approx(returns.tolist())
    assert row["score"] == pytest.approx(returns[-3:].mean())
    assert (row["frames_per_iteration"], row["protocol"]) == (
        1_000_000, "agent steps an update 1 (baselines: 4)"
    )  # fmt: skip
    assert data["gamma"] == {"games": 0, "classes": {}}


def test_tables_say_at_which_experience_scores_are(made):
    _, folder = made
    line = "Scores: training returns, mean of the last 10% of iterations up to 30M frames"
    for name in ("aggregates", "games"):
        assert line in (folder / f"{name}.md").read_text()
        assert line.replace("%", r"\%") in (folder / f"{name}.tex").read_text()


def test_plain_data():
    data = export._plain(
        {"a": np.array([1.0, math.nan]), "b": (np.float64(2), None, "x", math.inf)}
    )
    assert data == {"a": [1.0, None], "b": [2.0, None, "x", None]}


def test_both_tables_in_markdown(made):
    _, folder = made
    lines = (folder / "aggregates.md").read_text().splitlines()
    assert lines[:2] == [
        "| Agent | Mean | Median | IQM | Optimality gap |", "| --- | ---: | ---: | ---: | ---: |"
    ]  # fmt: skip
    number = r"-?\d+\.\d{3} \[-?\d+\.\d{3}, -?\d+\.\d{3}\]"
    assert re.fullmatch(rf"\| log_dqn, 3 seeds( \| {number}){{4}} \|", lines[2])
    assert re.fullmatch(r"\| few \N{DOUBLE DAGGER}, 1 seed( \| -?\d+\.\d{3}){4} \|", lines[4])
    assert (
        "a_b%|c \N{DAGGER}: not comparable with the published baselines: "
        "agent steps an update 1 (baselines: 4)"
    ) in lines
    assert (
        "few \N{DOUBLE DAGGER}: perhaps not comparable with the published baselines: "
        "protocol not recorded"
    ) in lines
    games = (folder / "games.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in games[2:4]] == ["| Alien", "| Pong"]
    assert "a_b%\\|c \N{DAGGER}, 3 seeds" in games[0]


def test_both_tables_in_latex(made):
    _, folder = made
    for name, columns in (("aggregates", 5), ("games", 12)):
        lines = (folder / f"{name}.tex").read_text().splitlines()
        assert lines[1] == rf"\begin{{tabular}}{{l{'r' * (columns - 1)}}}"
        body = [line for line in lines if line.endswith(r"\\")]
        assert {line.count(" & ") for line in body} == {columns - 1}
        assert all(" & ".join(body).count(c) == " & ".join(body).count(f"\\{c}") for c in "_%#")
    assert r"a\_b\%|c \textdagger{}, 3 seeds &" in (folder / "aggregates.tex").read_text()


def test_latex_escapes_what_means_something_to_it():
    name = "\\$&%#_{}~^"
    text = tables.latex([[tables.Cell("", text) for text in row] for row in ("ab", (name, "1"))])
    escaped = r"\textbackslash{}\$\&\%\#\_\{\}\textasciitilde{}\textasciicircum{} & 1 \\"
    assert escaped in text.splitlines()


def test_hyperparameters_that_are_not_the_default(made):
    compared, _ = made
    found = {
        setting.parameter: setting
        for setting in provenance.hyperparameters(rows_of(compared, "log_dqn"))[0]
    }
    assert found == {
        "LogDQNAgent.gamma": ("LogDQNAgent.gamma", 0.9, 0.96, 6, 6),
        "LogDQNAgent.c": ("LogDQNAgent.c", 2.0, 0.5, 2, 6),
    }
    assert found["LogDQNAgent.gamma"].text() == "LogDQNAgent.gamma = 0.9 (default 0.96)"
    assert found["LogDQNAgent.c"].text() == "LogDQNAgent.c = 2.0 (default 0.5) in 2 of 6 runs"
    assert provenance.hyperparameters(rows_of(compared, "few")) == (None, [])


def test_hyperparameters_that_no_gin_file_has(made):
    """What only code sets, such as an optimizer's learning rate of the user's own."""
    compared, folder = made
    rows = rows_of(compared, "log_dqn")
    config = rows["parameters"].iloc[0] | {"Adam.learning_rate": 0.01, "Adam.name": "Adam"}
    _, found = provenance.hyperparameters(rows.assign(parameters=[config] * len(rows)))
    assert [setting.text(default=False) for setting in found] == [
        "Adam.learning_rate = 0.01",
        "AtariPreprocessing.frame_skip = 4",
        "AtariPreprocessing.terminal_on_life_loss = False",
    ]
    data = json.loads((folder / "report.json").read_text())["made_with"]
    assert data["unbound"]["log_dqn"]["AtariPreprocessing.frame_skip"] == 4
    assert "AtariPreprocessing.frame_skip = 4" in (folder / "report.html").read_text()


NAMED = {"create_agent.agent_name": "log_dqn"}


@pytest.mark.parametrize(
    ("values", "game", "expected"),
    [
        ({"VectorizedRunner.agent": "log_dqn"}, "MinAtar/Breakout", "vectorized_log_dqn_minatar"),
        ({"VectorizedRunner.agent": "dqn"}, "Pong", "vectorized_dqn"),
        ({"create_agent.agent_name": "dqn"}, "MinAtar/Breakout", "dqn_minatar"),
        ({"create_agent.agent_name": "rainbow"}, "Pong", "rainbow"),
        (NAMED | {"create_gym_environment.version": "v1"}, "CartPole", "log_dqn_cartpole"),
        (NAMED | {"create_gymnasium_environment.seed": 0}, "LunarLander", "log_dqn_gym"),
        (
            {"VectorizedRunner.agent": "dqn", "create_host_environment.settings": None},
            "gymnasium:X-v0",
            "vectorized_dqn_env",
        ),
        ({"create_agent.agent_name": "../dqn"}, "Pong", None),
        ({"create_agent.agent_name": ["dqn"]}, "Pong", None),
        ({}, "Pong", None),
    ],
)
def test_the_default_is_the_shipped_gin_file(monkeypatch, values, game, expected):
    read, parse = [], provenance.gin_files.parse
    monkeypatch.setattr(
        provenance.gin_files, "parse", lambda files, _: read.extend(files) or parse(files, [])
    )
    provenance._defaults(values, game)
    folder = provenance.gin_files.config_dir()
    assert read == ([str(folder / f"{expected}.gin")] if expected else [])


def test_defaults_are_of_included_gin_files_too():
    found = provenance._defaults({"VectorizedRunner.agent": "loglin_dqn"}, "MinAtar/Asterix")
    agent = "VectorizedLogDQNAgent"
    # gamma stands in the included file alone, c in both: 1 there, and 0.1 after it.
    assert (found[f"{agent}.gamma"], found[f"{agent}.c"]) == (0.96, 0.1)
    assert found["VectorizedRunner.agent"] == "loglin_dqn"


def test_with_what_it_was_made(made, tmp_path):
    compared, folder = made
    found = provenance.collect(compared.runs, COMMAND)
    assert (found["version"], found["command"]) == (log_dqn.__version__, COMMAND)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", found["date"])
    page = (folder / "report.html").read_text()
    assert f"log_dqn {log_dqn.__version__}" in page and COMMAND in page
    assert "LogDQNAgent.gamma = 0.9 (default 0.96)" in page
    warning = ("a_b%|c \N{DAGGER}", "agent steps an update", "1", "4", "")
    assert "".join(f"<td>{cell}</td>" for cell in warning) in page
    assert "another protocol than the published baselines</strong>" in page
    assert provenance._commit(tmp_path) is None

    def git(*arguments):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "file").write_text("")
    git("add", "file")
    git("commit", "-m", "First")
    assert re.fullmatch("[0-9a-f]{40}", provenance._commit(tmp_path))
    (tmp_path / "file").write_text("changed")
    assert provenance._commit(tmp_path).endswith("-dirty")


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("log_dqn/gamma=0.5", "log_dqn/gamma=0.5"), ("_a_*b*`c`", r"\_a\_\*b\*\`c\`"),
        ("<b>&lt;$x$", r"\<b\>\&lt;\$x\$"), ("![a](http://b)", r"\![a\](http://b)"),
        ("a|b\\", r"a\|b\\"), ("# a", r"\# a"), ("- a", r"\- a"),
        ("-0.5 [0.4, 0.6]", "-0.5 [0.4, 0.6]"),
    ],
)  # fmt: skip
def test_a_name_is_no_markdown(name, escaped):
    rows = [[tables.Cell("", "Agent")], [tables.Cell("", name)]]
    assert tables.markdown(rows).splitlines()[2] == f"| {escaped} |"


def test_a_name_is_no_formula(tmp_path):
    names = ["=1+1", "+a", "-a", "@a", "\ta", "log_dqn", ""]
    rows = pd.DataFrame({"agent": names, "score": -1.5})
    report._write_csv(tmp_path / "a.csv", rows)
    cells = [row["agent"] for row in read_csv(tmp_path / "a.csv")]
    assert cells == ["'=1+1", "'+a", "'-a", "'@a", "'\ta", "log_dqn", ""]
    assert {row["score"] for row in read_csv(tmp_path / "a.csv")} == {"-1.5"}
