import contextlib
import importlib
import re
import signal

import pytest

from log_dqn.cli import shell
from log_dqn.commands import demo, main
from tests.programs import refusal
from tests.results import synthetic


def test_its_commands_are_those_of_log_dqn():
    flags = demo.create_parser().parse_args(["--gamma=0.8", "--seed=3", "--out=here"])
    commands = demo.plan(flags)
    typed = [*commands.train.values(), commands.compare, commands.play]
    for name, *arguments in typed:
        program = importlib.import_module(main.COMMANDS[name].module)
        program.create_parser().parse_args(arguments)
    assert "--gin_bindings=VectorizedLogDQNAgent.gamma=0.8" in commands.train["loglin_dqn"]
    assert "--gin_bindings=VectorizedDQNAgent.gamma=0.8" in commands.train["dqn"]
    assert commands.play[1:3] == [
        "--run=here/gamma=0.8/loglin_dqn/MinAtar-Freeway/3",
        "--compare=here/gamma=0.8/dqn/MinAtar-Freeway/3",
    ]


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("--agent=dqn", "agent is 'dqn'; it must be one of loglin_dqn, log_dqn"),
        ("--game=Freeway", "game is 'Freeway'; it must be one of MinAtar/Asterix"),
        ("--gamma=1", "gamma is 1.0; it must be a number between 0 and 1"),
        ("--gamma=0,5", "gamma is '0,5'; it must be a number between 0 and 1"),
        ("--seed=4294967296", "seed is 4294967296; it must be a whole number from 1 to 4294967295"),
        ("--seed=0", "seed is 0; it must be a whole number from 1 to 4294967295"),
        ("--out= ", "out is ' '; it must be the name of a folder"),
    ],
)
def test_wrong_input_is_one_line(capsys, argument, named):
    assert named in refusal(capsys, demo.main, [argument])


@pytest.mark.parametrize("at_once", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_program_that_fails_ends_the_training(at_once):
    demo._train({"log_dqn": ["version"], "dqn": ["games", "minatar5"]}, at_once, [0, 2])
    with pytest.raises(shell.RunStopped, match=r"the training of dqn ended: .*'Nope'"):
        demo._train({"log_dqn": ["version"], "dqn": ["games", "Nope"]}, at_once, [0, 0])


def test_a_program_after_training_that_fails_is_named():
    with pytest.raises(shell.RunStopped, match=r"^Filming both ended: .*'Nope'"):
        demo._do("Filming both", ["games", "Nope"])


def test_a_signal_ends_it_in_one_line(tmp_path):
    flags = demo.create_parser().parse_args([f"--out={tmp_path}"])
    _, stop = demo._prepare(flags, contextlib.ExitStack())
    with pytest.raises(
        shell.RunStopped, match=r"^stopped by SIGINT; the same command res"
    ) as ended:
        stop(signal.SIGINT)
    assert ended.value.status == 130


def test_returns_are_those_of_the_last_iterations(tmp_path, monkeypatch, capsys):
    done = []
    monkeypatch.setattr(demo, "_train", lambda commands, at_once, finished: done.extend(finished))
    monkeypatch.setattr(demo, "_do", lambda title, arguments: done.append(arguments[0]))
    flags = [
        "--agent=log_dqn",
        "--game=minatar/asterix",
        "--gamma=0.8",
        "--seed=3",
        f"--out={tmp_path}",
    ]
    runs = [
        tmp_path / "gamma=0.8" / agent / "MinAtar-Asterix" / "3" for agent in ("log_dqn", "dqn")
    ]
    for run, last in zip(runs, (46.54, 9.24), strict=True):
        synthetic.write_log(run, [1.0, 2.0, 3.0, 4.0, 5.0, last])
    assert demo.main(flags) == 0
    assert done == [6, 6, "compare", "play"]
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert re.findall("<td>(.*)</td><td>(.*)</td>", page) == [("LogDQN", "46.5"), ("DQN", "9.2")]
    typed = "log-dqn train-vectorized --agent=dqn --games=MinAtar/Asterix --seeds=3-3"
    assert typed in re.sub("<[^>]*>", "", page)
    said = "LogDQN's mean return is 46.5, DQN's 9.2"
    assert capsys.readouterr().out.splitlines()[-2:] == [said, str(tmp_path / "demo.html")]

    (tmp_path / "demo.html").unlink()
    (tmp_path / "demo.html").mkdir()
    assert demo.main(flags) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"log-dqn demo: {tmp_path / 'demo.html'} can't be written: ")

    # An older page has gone before its pictures change.
    (tmp_path / "demo.html").rmdir()
    (tmp_path / "demo.html").touch()
    monkeypatch.setattr(
        demo, "_do", lambda *_: pytest.fail() if any(tmp_path.glob("*.html")) else None
    )
    assert demo.main(flags) == 0

    (runs[1] / "logs" / "log_5").write_bytes(b"")
    synthetic.write_log(runs[1], [1.0] * 5)
    assert demo.main(flags) == 1
    said = f"{runs[1]} is damaged; remove it to train again"
    assert capsys.readouterr().err.splitlines() == [f"log-dqn demo: {said}"]
