"""What a sweep's worker reports, without Ray."""

import contextlib
import pathlib
from unittest import mock

import pytest

from log_dqn.cli import shell, threads
from log_dqn.run_folder import lock
from log_dqn.sweeps import plan, worker

# What a training process does with two runs, of which one is resumed.
TRAIN = """
import time
from log_dqn.cli import progress
progress._COMPILING = 0
with progress.Progress([1, 0], 2, 100) as shown:
    time.sleep(0.1)
    shown.report([1, 1], [50, 0])
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Returns a function that makes a worker of one job, which runs some code for some seeds."""
    monkeypatch.setattr(worker.ray, "get_runtime_context", mock.MagicMock())

    def make(code, seeds="", **settings):
        names = [(f"log_dqn/Pong/{seed}", tmp_path / seed) for seed in seeds]
        runs = tuple(plan.PlannedRun(*name, 2, 100) for name in names)
        of_job = object.__new__(worker.Worker)
        job = plan.Job(("-c", code), runs, tmp_path / "output.log")
        of_job.setup({"job": 0}, [job], **settings)
        return of_job, job

    return make


def test_a_job_that_cannot_be_started_fails_and_is_not_tried_again(tmp_path, start):
    (tmp_path / "output.log").mkdir()
    report = start("pass", "1")[0].step()
    assert report["failure"].startswith("can't be started: ")
    assert "Is a directory" in report["failure"]
    assert (report["done"], report["death"]) == (True, None)


def test_the_share_and_the_speed_of_a_process_are_reported(start):
    of_job, job = start(TRAIN, "12")
    first = of_job.step()
    assert (first["fraction"], first["steps_per_second"]) == (0, None)
    while not (report := of_job.step())["done"]:
        pass
    assert report["failure"].startswith("ended without the iterations of log_dqn/Pong/1")
    # 250 of 400 steps, 150 of them by two runs in a bit more than 0.1 s.
    assert report["fraction"] == pytest.approx(250 / 400)
    assert 1 < report["steps_per_second"] < 750
    of_job._take(job)
    assert of_job.step()["fraction"] == 0
    of_job.cleanup()


def test_a_job_waits_once_for_all_runs_that_another_holds(monkeypatch, start):
    clock = mock.Mock(**{"monotonic.return_value": 0.0})

    def sleep(seconds):
        clock.monotonic.return_value += seconds

    clock.sleep = sleep
    monkeypatch.setattr(worker, "time", clock)
    of_job, job = start("pass", "123")
    with contextlib.ExitStack() as stack:
        for run in job.runs:
            run.folder.mkdir()
            stack.enter_context(lock.hold(run.folder))
        of_job.step()
    of_job.cleanup()
    assert clock.monotonic() == worker._LETTING_GO


@pytest.mark.parametrize(("cpus", "expected"), [(0.5, 1), (1, 1), (1000, threads.cores())])
def test_a_job_has_a_thread_for_each_of_its_cpus_as_far_as_there_are_cores(start, cpus, expected):
    of_job, job = start("pass", cpus=cpus)
    of_job.step()
    of_job.cleanup()
    assert job.output.read_text().endswith(f" -c pass --threads={expected}\n")


@pytest.mark.parametrize(
    ("gpus", "expected"), [(0, (None, None)), (0.5, ("false", "0.475")), (1, (None, None))]
)
def test_jobs_that_share_a_gpu_take_their_parts_of_its_memory(gpus, expected):
    environment = worker._environment(gpus)
    names = ("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION")
    assert tuple(map(environment.get, names)) == expected


@pytest.mark.parametrize(
    ("printed", "status", "failure", "death"),
    [
        ("log_dqn.train: error: c is 0\\n", 2, "c is 0", None),
        ("log_dqn.train: stopped: the loss is nan\\n", 1, "stopped: the loss is nan", None),
        (
            f"log_dqn.train: its step failed; {shell.REPAIR}\\nTraceback:\\nKeyError: 1\\n", 1,
            None, f"ended with status 1: its step failed; {shell.REPAIR}",
        ),
        (
            "log_dqn.train_vectorized: Pong: nan; others go on\\nTraceback:\\nKeyError: 1\\n", 1,
            None, "ended with status 1: KeyError: 1",
        ),
        ("", 1, None, "ended with status 1: no output"),
    ],
)  # fmt: skip
def test_why_a_process_ended(start, printed, status, failure, death):
    of_job, _ = start(f"import sys; print('{printed}', end=''); sys.exit({status})", "1")
    while (report := of_job.step())["failure"] is None and report["death"] is None:
        pass
    assert (report["failure"], report["death"]) == (failure, death)


def test_a_process_runs_where_the_sweep_was_started(tmp_path, start):
    for started_in, folder in ((str(tmp_path), tmp_path), ("/not/here", pathlib.Path.cwd())):
        of_job, job = start("import os; print(os.getcwd())", "1", started_in=started_in)
        while not of_job.step()["done"]:
            pass
        assert job.output.read_text().splitlines()[-1] == str(folder)
