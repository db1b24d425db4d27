"""What programs share."""

import os
import pathlib

import pytest

from log_dqn.program import shell


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
