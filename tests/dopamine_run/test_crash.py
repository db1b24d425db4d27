import pytest

from tests.programs import python


@pytest.mark.slow
def test_killed_runs_come_back_as_if_nothing_had_happened():
    # `python -m tests.crash --kills=200` is the long version. It forks, and so wants a process
    # in which TensorFlow has not run.
    process = python("-m", "tests.crash", "--kills=2", "--seed=1")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "2 kills, " in process.stdout
    assert "unrecoverable or wrong: 0" in process.stdout
