"""What programs share."""

import os
import pathlib

import pytest

from log_dqn.program import shell
from log_dqn.run_folder.checkpoints import CheckpointError


def test_a_folder_is_tried_and_left_as_it_was(tmp_path):
    shell.check_writable("out", str(tmp_path / "a/b"))
    shell.check_writable("out", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    for path in (tmp_path / "file/a", tmp_path / "file", pathlib.Path("/proc/a")):
        with pytest.raises(ValueError, match=r"results_dir is .* can be written"):
            shell.check_writable("results_dir", str(path))
    with pytest.raises(ValueError, match="results_dir is ''; it must be the name of a folder"):
        shell.check_writable("results_dir", "")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("names", "begin"),
    [
        ({"program": "log_dqn.train", "prog": "log-dqn train"}, "log_dqn.train: error: "),
        ({"prog": "linear_figures.py"}, "linear_figures: error: "),
    ],
)
def test_errors_of_the_options_begin_as_the_programs_own(capsys, names, begin):
    parser = shell.Parser(**names)
    with pytest.raises(SystemExit):
        parser.parse_args(["--nothing"])
    options = capsys.readouterr().err
    shell.print_error(parser.program, ValueError("x"))
    assert options == f"{begin}unrecognized arguments: --nothing\n"
    assert capsys.readouterr().err == f"{begin}x\n"


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (None, 0, ""),
        (ValueError("seed is -1"), 2, "log-dqn play: error: seed is -1\n"),
        (CheckpointError("none is usable"), 2, "log-dqn play: error: none is usable\n"),
        (OSError(28, "No space left"), 2, "log-dqn play: error: [Errno 28] No space left\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_a_small_program_ends_in_one_line(capsys, error, status, said):
    def work():
        if error is not None:
            raise error

    assert shell.run_once("log-dqn play", work) == status
    assert capsys.readouterr().err == said


def test_the_status_of_the_work_is_the_programs():
    assert shell.run_once("log-dqn play", lambda: 1) == 1


def test_a_fault_of_the_program_is_not_the_users():
    with pytest.raises(TypeError):
        shell.run_once("log-dqn play", lambda: [] + 1)
