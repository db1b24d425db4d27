import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_killed_runs_come_back_as_if_nothing_had_happened():
    # `python -m tests.crash --kills=200` is the long version. It forks, and so wants a process
    # in which TensorFlow has not run.
    process = subprocess.run(
        [sys.executable, "-m", "tests.crash", "--kills=3", "--seed=1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert "3 kills, " in process.stdout
    assert "unrecoverable or wrong: 0" in process.stdout
