"""What is shown of runs while they are trained, and told to a sweep."""

import gc
import io
import os
import pathlib
import threading

import pytest

from log_dqn.program import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def fileno(self):
        return 2


def set_terminal(monkeypatch, columns):
    """Makes standard error a terminal (in a test: between fixtures and test pytest sets it)."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((columns, 25)))
    return terminal


class Clock:
    """A clock for a progress line, in seconds since its start."""

    def __init__(self, shown):
        self.now = 0.0
        start = shown.start_t  # A line that its clock knew would be a cycle.
        shown._time = lambda: start + self.now


def runs():
    """Three runs of 10 iterations of 250 steps; two have been resumed, after 2 and 4 of them."""
    shown = progress.Progress([2, 4, 0], 10, 250)
    return shown, Clock(shown)


def go_on(shown):
    """The first two go on within their iterations, and the last comes to its end."""
    shown.report([2, 4, 10], [100, 260, 0], [True, True, False])


def test_the_line_of_many_runs():
    shown, clock = runs()
    assert str(shown.numbers) == "Numbers(fraction=0.2, steps_per_second=None)"
    shown.refresh()
    assert str(shown) == (
        "3 runs, iteration 1 to 5/10 (20.0% of all steps), ? steps/s (? a run), ? left"
    )
    go_on(shown)
    # 100, 250 (for its evaluation is over the plan), and 2,500 steps in 100 s; left are
    # 2,500 - 2 * 250 - 100 and 2,500 - 5 * 250: 3,150 steps, 110 s.
    clock.now = 100.0
    shown.refresh()
    assert str(shown) == (
        "2 runs, iteration 3 to 5/10 (58.0% of all steps), 28.50 steps/s (14 a run), 01:50 left"
    )
    shown.report(4, 260, False, [1])
    shown.refresh()
    # That run was stopped: what it would have had to do is not waited for.
    assert str(shown) == (
        "1 run, iteration 3/10 (69.6% of all steps), 28.50 steps/s (28 a run), 01:06 left"
    )


def test_the_line_of_one_run():
    shown = progress.Progress([1], 4, 250)
    clock = Clock(shown)
    shown.report(1, 100)
    clock.now = 20.0
    shown.set_postfix_str("train return 1.00 (3 episodes)", refresh=False)
    shown.refresh()
    assert str(shown) == (
        "iteration 2/4 (35.0% of the run),  5.00 steps/s, 02:10 left, "
        "train return 1.00 (3 episodes)"
    )
    assert str(shown.time_left) == "0:02:10"
    shown.report(4, 0)
    assert str(shown.time_left) == "0:00:00"
    shown.refresh()
    assert str(shown).startswith("iteration 4/4 (100.0% of the run)")


def test_on_a_terminal_the_line_is_rewritten_and_never_wraps(monkeypatch):
    terminal = set_terminal(monkeypatch, 30)
    shown, clock = runs()
    for clock.now in (0.4, 0.6, 0.7, 1.2):
        go_on(shown)
    line = "2 runs, iteration 3 to 5/10 ("
    assert len(line) == 29
    assert terminal.getvalue() == f"\r{line}\r{line}"
    shown.close()
    shown.close()
    assert terminal.getvalue().rstrip("\r") == f"\r{line}\r{line}\r{' ' * 29}"


def test_lines_that_stay_are_above_the_line(monkeypatch):
    terminal = set_terminal(monkeypatch, 80)
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    with progress.Progress([0], 2, 100) as shown:
        clock = Clock(shown)
        clock.now = 1.0
        shown.report(0, 50)
        before = terminal.getvalue()
        assert before.startswith("\riteration 1/2 (25.0% of the run), 50.00 steps/s, 00:03 left")
        blank = " " * (len(before) - 1)
        shown.print_line("one")
        assert out.getvalue() == "one\n"
        assert terminal.getvalue() == f"{before}\r{blank}\r{before}"
        shown.print_line("two", terminal)
        assert terminal.getvalue() == f"{before}\r{blank}\r{before}\r{blank}\rtwo\n{before}"
    assert terminal.getvalue().rstrip("\r ").endswith(before)


def test_a_line_that_nobody_closed_disturbs_no_other(monkeypatch):
    class Collecting(Terminal):
        def write(self, text):
            gc.collect()
            return super().write(text)

    terminal = Collecting()
    monkeypatch.setattr("sys.stderr", terminal)
    shown, clock = runs()
    clock.now = 1.0
    shown.refresh()
    forgotten, _ = runs()
    # Of another file, lest `print_line` holds it.
    forgotten.itself, forgotten.fp = forgotten, io.StringIO()
    del forgotten
    shown.print_line("this stays", terminal)
    assert "\rthis stays\n" in terminal.getvalue()


def test_elsewhere_a_line_is_written_once_a_minute(capsys):
    shown, clock = runs()
    go_on(shown)
    for clock.now in (1.0, 59.0, 60.5, 90.0, 100.0, 121.0):
        shown.report([2, 4, 10], [100, 60, 0], [True, True, False])
    shown.print_line("this stays")
    shown.report(10, 0, False)
    clock.now = 200.0
    shown.refresh()
    shown.close()
    assert capsys.readouterr() == (
        "this stays\n",
        "2 runs, iteration 3 to 5/10 (55.5% of all steps), 43.97 steps/s (22 a run), 01:15 left\n"
        "2 runs, iteration 3 to 5/10 (55.5% of all steps), 21.98 steps/s (11 a run), 02:31 left\n",
    )


def test_the_numbers_are_told_to_who_wants_them(numbers):
    assert progress.read(numbers) == (0.0, None)
    shown, clock = runs()
    go_on(shown)
    clock.now = 100.0
    shown.refresh()
    told = progress.read(numbers)
    assert told.fraction == pytest.approx((600 + 1250 + 2500) / 7500)
    assert told.steps_per_second == pytest.approx(2850 / 100 / 2)
    clock.now = 200.0
    shown.report([3, 4], 0, runs=[0, 1])
    shown.close()
    told = progress.read(numbers)
    assert told.fraction == pytest.approx((750 + 1000 + 2500) / 7500)
    assert told.steps_per_second == pytest.approx(2750 / 200 / 2)


def test_numbers_that_nobody_can_take_do_not_stop_training(monkeypatch):
    monkeypatch.setenv(progress.FILE_VARIABLE, "987654")
    with progress.Progress([0], 2, 100) as shown:
        shown.report(1, 0)
        shown.refresh()


def test_half_a_record_is_none(tmp_path):
    path = pathlib.Path(tmp_path / "numbers")
    path.write_text('{"fraction": 0.5, "steps_p')
    with path.open("rb") as file:
        assert progress.read(file.fileno()) == (0.0, None)


def test_jobs_in_several_threads_share_a_line(numbers):
    shown = progress.Progress([0] * 4, 20, 100)

    def train(run):
        for iteration in range(20):
            for step in range(100):
                shown.report(iteration, step, True, [run])
                if step % 10 == 0:
                    shown.refresh()
        shown.report(20, 0, run > 0, [run])

    threads = [threading.Thread(target=train, args=[run]) for run in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown.close()
    assert (shown.n, shown.total) == (8000, 8000)
    assert progress.read(numbers).fraction == 1
