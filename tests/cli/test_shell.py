"""What programs share."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from log_dqn.cli import shell
from log_dqn.run_folder.checkpoints import CheckpointError

_ROOT = pathlib.Path(shell.__file__).absolute().parents[2]


def test_a_folder_is_tried_and_left_as_it_was(tmp_path, monkeypatch):
    # Another program, which begins in the same folder, would find one that is then gone.
    monkeypatch.delattr("os.mkdir")
    shell.check_writable("out", str(tmp_path / "a/b"))
    shell.check_writable("out", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    for path in (tmp_path / "file/a", tmp_path / "file", pathlib.Path("/proc/a")):
        with pytest.raises(ValueError, match=r"results_dir is .* can be written"):
            shell.check_writable("results_dir", str(path))
    for name in ("", "gs://bucket/runs", "a\udcff"):
        with pytest.raises(ValueError) as raised:
            shell.check_writable("results_dir", name)
        allowed = "the name of a folder on this machine, in UTF-8"
        assert str(raised.value) == f"results_dir is {name!r}; it must be {allowed}"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["/usr/bin/log-dqn", "train", "--seed=1"], "log-dqn train"),
        (["/usr/bin/log-dqn"], "log-dqn"),
        ([str(_ROOT / "log_dqn/train.py"), "--seed=1"], "log_dqn.train"),
        (["/home/me/log_dqn/mine.py"], "log-dqn train"),
        (["-c"], "log-dqn train"),
    ],
)
def test_a_program_is_named_as_it_was_started(monkeypatch, argv, name):
    monkeypatch.setattr("sys.argv", argv)
    assert shell.started_as("train") == name


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (None, 0, ""),
        (ValueError("seed is -1"), 2, "log-dqn play: error: seed is -1\n"),
        (CheckpointError("none is usable"), 2, "log-dqn play: error: none is usable\n"),
        (OSError(28, "No space left"), 2, "log-dqn play: error: [Errno 28] No space left\n"),
        (KeyboardInterrupt(), 130, "log-dqn play: stopped by SIGINT\n"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_a_small_program_ends_in_one_line(capsys, error, status, said):
    def work():
        if error is not None:
            raise error

    assert shell.run_once("log-dqn play", work) == status
    assert capsys.readouterr().err == said


def test_a_small_program_that_is_terminated_leaves_nothing_half_written(capsys):
    done = []

    def work():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            done.append("undone")

    before = signal.getsignal(signal.SIGTERM)
    assert shell.run_once("log-dqn play", work) == 128 + signal.SIGTERM
    assert done == ["undone"]
    assert capsys.readouterr().err == "log-dqn play: stopped by SIGTERM\n"
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("arguments", [["--base_dri=x", "--json"], ["--json", "--base_dri", "x"]])
def test_a_required_flag_that_is_misspelt_is_named(capsys, arguments):
    parser = shell.Parser(prog="log-dqn train")
    parser.add_argument("--base_dir", required=True)
    parser.add_argument("--json", action="store_true")
    with pytest.raises(SystemExit):
        parser.parse_args(arguments)
    said = capsys.readouterr().err
    assert said.startswith(
        "log-dqn train: error: unrecognized arguments: --base_dri (nearest: --base_dir"
    )
    assert said.count("\n") == 1


def test_the_status_of_the_work_is_the_programs_and_a_fault_not_the_users():
    assert shell.run_once("log-dqn play", lambda: 1) == 1
    with pytest.raises(TypeError):
        shell.run_once("log-dqn play", lambda: [] + 1)


# It writes to one stream, and stops of itself otherwise.
_WRITER = """
import sys
from log_dqn.cli import shell
def train():
    shell.say("a line", file=sys.{})
    raise shell.RunStopped("stopped of itself", 143)
sys.exit(shell.run(shell.Parser(prog="log-dqn train"), lambda *_: (train, None), []))
"""


def _closed_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        (_closed_pipe, "[Errno 32] Broken pipe"),
        (lambda: os.open("/dev/full", os.O_WRONLY), "[Errno 28] No space left on device"),
    ],
)
def test_output_that_cannot_be_written_stops_training_in_one_line(lost, why):
    def run(written, **streams):
        code = _WRITER.format(written)
        return subprocess.run([sys.executable, "-c", code], cwd=_ROOT, text=True, **streams)

    stream = lost()
    done = run("stdout", stdout=stream, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (
        1,
        f"log-dqn train: stopped, since what it prints can't be written: {why}; the same command "
        "resumes\n",
    )
    assert run("stderr", stdout=subprocess.PIPE, stderr=stream).returncode == 1
    # Where the reason can't be said, the exit status is as ever.
    assert run("stdout", stdout=subprocess.PIPE, stderr=stream).returncode == 143
    os.close(stream)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("trains", [False, True])
def test_a_signal_stops_preparing_at_once_and_training_where_it_can_go_on(capsys, number, trains):
    stopped = []

    parser = shell.Parser(prog="log-dqn train")

    def prepare(_, stack):
        stack.callback(stopped.append, "undone")
        if not trains:
            os.kill(os.getpid(), number)
        return train, stopped.append

    def train():
        os.kill(os.getpid(), number)
        assert stopped == [number]
        raise shell.RunStopped("stopped at step 3", 128 + number)

    if trains:
        assert shell.run(parser, prepare, []) == 128 + number
        assert capsys.readouterr().err == "log-dqn train: stopped at step 3\n"
        assert stopped == [number, "undone"]
    else:
        with pytest.raises(SystemExit) as exit_:
            shell.run(parser, prepare, [])
        assert exit_.value.code == 128 + number
        assert stopped == ["undone"]
