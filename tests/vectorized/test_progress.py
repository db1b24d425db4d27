"""What is shown of a job while it runs."""

import io
import time

import pytest

from log_dqn.vectorized import progress, schedule
from log_dqn.vectorized.timeline import Phase

from . import toys

PROTOCOL = schedule.Protocol(num_iterations=10, training_steps=200, evaluation_steps=50)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def plan():
    """Three runs: in iteration 3, in 5's evaluation, and finished; one has gone on from 2."""
    plan = schedule.Schedule([toys.log_dqn()] * 3, PROTOCOL, 100)
    plan.place.chosen[0] = 500
    return plan


def go_on(plan):
    plan.place.phase[:] = Phase.TRAINING, Phase.EVALUATION, Phase.FINISHED
    plan.place.iteration[:] = 2, 4, 10
    plan.place.phase_steps[:] = 100, 60, 0
    plan.place.chosen[:] = 600, 1260, 2500


def test_line(plan):
    shown = progress.Progress(plan, PROTOCOL)
    assert shown.line(10.0) == "3 runs, iteration 1/10, 0 steps/s (0 a run), ? left"
    go_on(plan)
    # 3,860 steps in 100 s. Left are 2500 - 2 * 250 - 100 and, evaluation being over its plan,
    # 2500 - 5 * 250: 3,150 steps, 82 s.
    expected = "2 runs, iteration 3 to 5/10, 39 steps/s (19 a run), 0:01:22 left"
    assert shown.line(100.0) == expected
    plan.place.phase[1] = Phase.FINISHED
    assert shown.line(100.0) == "1 run, iteration 3/10, 39 steps/s (39 a run), 0:00:49 left"


def test_on_a_terminal_the_line_is_rewritten_and_never_wraps(plan, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "30")
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    shown = progress.Progress(plan, PROTOCOL)
    go_on(plan)
    for now[0] in (100.4, 100.6, 100.7, 101.2):
        shown.update()
    line = "2 runs, iteration 3 to 5/10, "
    assert len(line) == 29
    assert terminal.getvalue() == f"{line}\r{' ' * 29}\r{line}"
    plan.place.phase[:] = Phase.FINISHED
    now[0] = 110.0
    shown.update()
    shown.clear()
    shown.clear()
    assert terminal.getvalue() == f"{line}\r{' ' * 29}\r{line}\r{' ' * 29}\r"


def test_elsewhere_a_line_is_written_once_a_minute(plan, monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    shown = progress.Progress(plan, PROTOCOL)
    go_on(plan)
    for now[0] in (101.0, 159.0, 160.5, 200.0, 221.0):
        shown.update()
    err = capsys.readouterr().err.splitlines()
    assert err == [
        "2 runs, iteration 3 to 5/10, 64 steps/s (32 a run), 0:00:49 left",
        "2 runs, iteration 3 to 5/10, 32 steps/s (16 a run), 0:01:39 left",
    ]
