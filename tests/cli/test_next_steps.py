import importlib
import pathlib
import shlex
import sys

import pytest

import log_dqn
from log_dqn import sweep, train, train_vectorized
from log_dqn.cli import next_steps
from log_dqn.commands import main
from log_dqn.sweeps import plan

OURS = [sys.executable, "-m", "log_dqn.commands.main"]
EMPTY = train.create_parser().parse_args(["--base_dir=R"])


def typed(line):
    """The command and the flags of a line, as the command's own parser reads them."""
    program, name, *arguments = shlex.split(line.partition(": ")[2])
    assert program == "log-dqn"
    module = importlib.import_module(main.COMMANDS[name].module)
    return name, vars(module.create_parser().parse_args(arguments))


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    command = tmp_path / "log-dqn"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", [str(command), "train"])


@pytest.mark.parametrize(
    ("program", "given"),
    [
        (
            train,
            "--base_dir=R --game=Pong --json --restart --gin_bindings=LogDQNAgent.c=2"
            " --gin_bindings Runner.num_iterations=7",
        ),
        (train, "--base_dir 'a folder' --gin_files=a.gin --gin_files=b.gin --seed=0 --threads=1"),
        (
            train_vectorized,
            "--results_dir=R --games=Pong,Asterix --seeds=2-3 --checkpoint_replay"
            " --scan=VectorizedLogDQNAgent.gamma=0.9,0.96 --scan=VectorizedLogDQNAgent.c=1,2",
        ),
        (sweep, "--results_dir=R --agents=dqn,log_dqn --games=Pong,Asterix --cpus_per_run=2"),
    ],
)
def test_each_line_is_a_command_with_the_given_flags(on_path, program, given):
    parser = program.create_parser()
    flags = parser.parse_args(shlex.split(given))
    name = program.__name__.rpartition(".")[2].replace("_", "-")
    folders = {"filmed": pathlib.Path("my run/1"), "results_dir": pathlib.Path("my results")}
    film, compare, more = map(typed, next_steps.lines(name, parser, flags, 7, **folders))
    assert film[0] == "play" and film[1]["run"] == pathlib.Path("my run/1")
    assert film[1]["out"] == pathlib.Path("my run/1/film.gif")
    assert compare[0] == "compare" and compare[1]["results_dir"] == pathlib.Path("my results")
    others = [line for line in flags.gin_bindings if "num_iterations" not in line]
    longer = {"gin_bindings": [*others, "Runner.num_iterations=14"]}
    removed = {"restart": False} if program is train else {}
    assert more == (name, {**vars(flags), **longer, **removed})


def test_a_sweep_that_is_whole_ends_with_what_can_be_done(on_path):
    results, run = pathlib.Path("R"), pathlib.Path("R/dqn/Pong/1")
    given = [f"--results_dir={results}", "--agents=dqn", "--games=Pong", "--vectorized"]
    flags, first = sweep.create_parser().parse_args(given), plan.PlannedRun("dqn", run, 3, 10)
    where, *lines = sweep._last_lines(flags, results, first, has_failures=False)
    film, compare, more = map(typed, lines)
    assert film[1]["run"] == run and compare[1]["results_dir"] == results
    assert more[0] == "sweep"
    assert more[1] == {**vars(flags), "gin_bindings": ["VectorizedRunner.num_iterations=6"]}
    assert sweep._last_lines(flags, results, first, has_failures=True) == [where]


def test_what_can_not_be_done_is_not_offered(on_path):
    (line,) = next_steps.lines("train", train.create_parser(), EMPTY, 3)
    assert line.startswith("Train on, to 6 iterations: log-dqn train --base_dir=R ")


@pytest.mark.parametrize(
    ("started", "program"),
    [
        (["{folder}/log-dqn", "train"], ["{folder}/log-dqn"]),
        ([log_dqn.__path__[0] + "/commands/main.py", "train"], OURS),
        # A script with `log-dqn`'s commands knows agents of its own, another one doesn't have them.
        (["mine.py", "train", "--seed=1"], [sys.executable, "mine.py"]),
        (["mine.py", "demo"], OURS),
        (["mine.py"], OURS),
    ],
)
def test_a_program_that_is_not_on_the_path_is_called_as_it_was(
    on_path, tmp_path, monkeypatch, started, program
):
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    monkeypatch.setattr("sys.argv", [word.format(folder=tmp_path) for word in started])
    expected = [word.format(folder=tmp_path) for word in program]
    assert next_steps._program("train") == expected
    (line,) = next_steps.lines("train", train.create_parser(), EMPTY, 3)
    assert shlex.split(line.partition(": ")[2])[: len(expected)] == expected


@pytest.mark.parametrize(
    ("run", "env", "results_dir"),
    [
        ("results/log_dqn/Asterix/1", None, "results"),
        ("/results/log_dqn/gamma=0.5,c=1/MinAtar-Breakout/1", None, "/results"),
        ("log_dqn/pong/1", None, "."),
        ("r/dqn/CartPole-v1/1", "CartPole-v1", "r"),
        ("r/dqn/CartPole-v1/1", None, None),
        ("dqn/CartPole-v1/1", "Acrobot-v1", None),
        ("Pong/1", None, None),
        ("runs/quick", None, None),
        (".", None, None),
    ],
)
def test_results_are_found_where_a_run_lies_as_compare_expects(run, env, results_dir):
    found = next_steps.results_of(pathlib.Path(run), env)
    assert found == (results_dir and pathlib.Path(results_dir))
