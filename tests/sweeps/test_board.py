import io
import re

import pytest

from log_dqn.sweeps import board, plan
from tests.results import synthetic


class Terminal(io.StringIO):
    def isatty(self):
        return True


def job(folder, *names, num_iterations=4):
    runs = tuple(plan.PlannedRun(name, folder / name, num_iterations, 100) for name in names)
    return plan.Job((), runs, folder / "output.log")


@pytest.fixture
def jobs(tmp_path):
    synthetic.write_log(tmp_path / "dqn/Pong/2", [-20.0], config=None)
    return [job(tmp_path, f"dqn/Pong/{seed}") for seed in (1, 2, 3)]


def test_changes_are_lines_where_there_is_no_terminal(jobs):
    file = io.StringIO()
    with board.Board(jobs, 5, file) as shown:
        shown.started(0, "here", [plan.RunProgress()])
        shown.reported(0, [plan.RunProgress(1, -20.5, 60.0)], 0.3, None, None)
        shown.reported(0, [plan.RunProgress(1, -20.5, 60.0)], 0.3, None, "ended by SIGKILL")
        shown.died(0, is_last=False)
        shown.started(0, "there", [plan.RunProgress(1, -20.5)])
        shown.ended(0, None)
        shown.started(1, "here", [plan.RunProgress(1, -20.0)])
        shown.reported(1, [plan.RunProgress(1, -20.0)], 0.3, None, None)
        shown.died(1, is_last=True)
        shown.started(2, "here", [plan.RunProgress()])
        shown.ended(2, "c is 0; it must be a positive number")
    lines = [re.sub(r"^\[00:\d\d\] ", "", line) for line in file.getvalue().splitlines()]
    assert lines == [
        "8 runs: 5 complete, 0 running, 3 waiting, 0 failed; estimating",
        "dqn/Pong/1: started on here",
        "dqn/Pong/1: iteration 1/4, return -20.50",
        "dqn/Pong/1: ended by SIGKILL; to be retried",
        "dqn/Pong/1: started again, from iteration 1, on there",
        "dqn/Pong/1: complete",
        "dqn/Pong/2: started on here",
        "dqn/Pong/2: the worker or its node died (attempt 1, the last)",
        "dqn/Pong/3: started on here",
        "dqn/Pong/3: c is 0; it must be a positive number",
    ]
    assert re.sub(r"\d\d:\d\d$", "T", shown.summary()[0]) == (
        "6 of 8 runs are complete (5 of them before), 2 failed; T"
    )
    assert shown.summary()[1:] == [
        "failed: dqn/Pong/2: the worker or its node died (attempt 1, the last)",
        "failed: dqn/Pong/3: c is 0; it must be a positive number",
    ]


@pytest.mark.parametrize("dies", [True, False])
def test_a_run_that_has_all_its_iterations_is_complete_whatever_becomes_of_its_job(tmp_path, dies):
    file = io.StringIO()
    shown = board.Board([job(tmp_path, "a", "b", "c", num_iterations=2)], 0, file)
    shown.started(0, "here", [plan.RunProgress()] * 3)
    for iterations in ((2, 1, 1), (2, 2, 1)):
        shown.reported(0, [plan.RunProgress(n) for n in iterations], 0.8, None, None)
    assert shown.headline().startswith("3 runs: 2 complete, 1 running, 0 waiting, 0 failed")
    if dies:
        shown.died(0, is_last=True)
    else:
        shown.ended(0, "1 run failed")
    assert shown.summary()[0].startswith("2 of 3 runs are complete, 1 failed; ")
    assert [name for name, _ in shown.failures()] == ["c"]
    assert [line.split("] ")[1] for line in file.getvalue().splitlines()].count("a: complete") == 1


def test_time_left_is_that_of_the_steps_left_at_the_speed_so_far(jobs, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(board.time, "monotonic", lambda: now[0])
    shown = board.Board(jobs, 0, io.StringIO())
    # 3 runs of 4 x 100 steps, of which 100 are done.
    assert shown.seconds_left() is None
    shown.started(0, "here", [plan.RunProgress()])
    now[0] += 60
    shown.reported(0, [plan.RunProgress()], 0.1, None, None)
    assert shown.seconds_left() is None  # It warms up.
    shown.reported(0, [plan.RunProgress()], 0.125, 20.0, None)
    now[0] += 10
    shown.reported(0, [plan.RunProgress(1, 0.0)], 0.625, 20.0, None)
    # 200 steps in 10 s since it is warm, and 850 to go.
    assert shown.seconds_left() == pytest.approx(42.5)
    assert shown.headline().endswith("1 running, 2 waiting, 0 failed; 00:42 left")
    shown.died(0, is_last=False)
    # It goes on after its first iteration: 50 steps, and 1,000 to go.
    assert shown.seconds_left() == pytest.approx(200)
    shown.started(0, "here", [plan.RunProgress(1, 0.0)])
    shown.ended(0, "broken")
    assert shown.seconds_left() == pytest.approx(140)


def test_a_table_on_a_terminal(jobs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "6")
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    with board.Board(jobs, 0, file) as shown:
        shown.started(1, "here", [plan.RunProgress(1, -20.0)])
        shown.reported(1, [plan.RunProgress(2, -19.0, 60.0)], 0.5, 75.0, None)
        shown.died(1, is_last=False)
        shown.started(1, "here", [plan.RunProgress(1, -20.0)])
        shown.reported(1, [plan.RunProgress(2, -19.0, 60.0)], 0.5, 75.0, None)
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", file.getvalue())
    assert re.search(r"dqn/Pong/2 +running, retry 1 +2/4 +-19.00 +75", text)
    assert "and 2 more" in text
    assert "3 runs: 0 complete, 1 running, 2 waiting, 0 failed; estimating" in text
