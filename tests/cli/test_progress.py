"""What is shown of runs while they are trained, and told to a sweep."""

import io
import os
import pathlib
import threading
import types

import pytest

from log_dqn.cli import progress, shell


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def fileno(self):
        return 2


CLEAR = "\r\x1b[K"


def set_terminal(monkeypatch, columns):
    """Makes standard error a terminal (in a test: between fixtures and test pytest sets it)."""

    def size(_):
        if columns is None:
            raise OSError(25, "Inappropriate ioctl for device")
        return os.terminal_size((columns, 25))

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("os.get_terminal_size", size)
    return terminal


@pytest.fixture
def clock(monkeypatch):
    """A clock, in seconds."""
    clock = types.SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(progress, "time", clock)
    return clock


def runs():
    """Three runs of 10 iterations of 250 steps; two have been resumed, after 2 and 4 of them."""
    return progress.Progress([2, 4, 0], 10, 250)


def warm_up(shown, clock):
    """Takes 30 s to compile and for the first 100 steps, which say nothing of the speed."""
    clock.now += 30
    shown.report([2, 4, 0], [0, 100, 0])


def go_on(shown):
    """The first two go on within their iterations, and the last comes to its end."""
    shown.report([2, 4, 10], [100, 260, 0], [True, True, False])


def test_the_line_of_many_runs(clock):
    shown = runs()
    assert shown.status == (0.2, None)
    assert str(shown) == "3 runs, iteration 1 to 5/10 (20.0% of all steps), estimating"
    warm_up(shown, clock)
    assert str(shown) == "3 runs, iteration 1 to 5/10 (21.3% of all steps), estimating"
    clock.now = 130.0
    go_on(shown)
    # 100, 150 (for its evaluation is over the plan), and 2,500 steps in 100 s; left are
    # 2,500 - 2 * 250 - 100 and 2,500 - 5 * 250: 3,150 steps, 114.5 s.
    assert str(shown) == (
        "2 runs, iteration 3 to 5/10 (58.0% of all steps), 28 steps/s (14 a run), 01:54 left"
    )
    shown.report(4, 260, False, [1])
    # That run was stopped: what it would have had to do is not waited for.
    assert str(shown) == (
        "1 run, iteration 3/10 (69.6% of all steps), 28 steps/s (28 a run), 01:09 left"
    )


def test_the_line_of_one_run(clock):
    # 20 steps before it learns, and 100 in which its first update is compiled.
    shown = progress.Progress([1], 4, 250, 20)
    for clock.now, steps, pace in (
        (10.0, 10, "estimating"),
        (20.0, 119, "estimating"),
        (30.0, 120, "estimating"),
        (40.0, 140, "2 steps/s, 05:05 left"),
        (80.0, 220, "2 steps/s, 04:25 left"),
    ):
        shown.report(1, steps)
        assert shown.pace == pace
    shown.result = "train return 1.00 (3 episodes)"
    assert str(shown) == (
        "iteration 2/4 (47.0% of the run), 2 steps/s, 04:25 left, train return 1.00 (3 episodes)"
    )
    shown.report(4, 0)
    assert str(shown).startswith("iteration 4/4 (100.0% of the run), 13 steps/s, 00:00 left")
    clock.now = 1e6
    assert progress.Progress([4], 4, 250).pace == "00:00 left"


def test_a_time_is_shown_as_tqdm_shows_it():
    assert [*map(progress.duration, (0, 130.7, 97200))] == ["00:00", "02:10", "27:00:00"]


def test_on_a_terminal_the_line_is_rewritten_and_never_wraps(monkeypatch, clock):
    terminal = set_terminal(monkeypatch, 30)
    shown = runs()
    for clock.now in (0.4, 0.6, 0.7, 1.2):
        go_on(shown)
    line = "2 runs, iteration 3 to 5/10 ("
    assert len(line) == 29
    assert terminal.getvalue() == 2 * f"{CLEAR}{line}"
    shown.close()
    assert terminal.getvalue() == 2 * f"{CLEAR}{line}" + CLEAR


@pytest.mark.parametrize("columns", [0, None])
def test_a_terminal_of_unknown_width(monkeypatch, columns):
    terminal = set_terminal(monkeypatch, columns)
    with runs():
        assert terminal.getvalue() == (
            f"{CLEAR}3 runs, iteration 1 to 5/10 (20.0% of all steps), estimating"
        )


def test_training_stops_when_nobody_reads_its_lines(monkeypatch):
    class Closed(Terminal):
        def write(self, _):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    with pytest.raises(shell.RunStopped, match="what it prints can't be written"):
        runs().print_line("this stays")
    monkeypatch.setattr("sys.stderr", Closed())
    for show in (runs().show, runs().close):
        with pytest.raises(shell.RunStopped, match="what it prints can't be written"):
            show()


def test_lines_that_stay_are_above_the_line(monkeypatch):
    terminal = set_terminal(monkeypatch, 80)
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    with progress.Progress([0], 2, 100) as shown:
        line = f"{CLEAR}iteration 1/2 (0.0% of the run), estimating"
        assert terminal.getvalue() == line
        shown.print_line("one")
        assert out.getvalue() == "one\n"
        assert terminal.getvalue() == f"{line}{CLEAR}{line}"
        shown.print_line("two", terminal)
        assert terminal.getvalue() == f"{line}{CLEAR}{line}{CLEAR}two\n{line}"
    assert terminal.getvalue().endswith(f"{line}{CLEAR}")


def test_elsewhere_a_line_is_written_once_a_minute(capsys, clock):
    shown = runs()
    warm_up(shown, clock)
    for clock.now in (31.0, 59.0, 60.5, 90.0, 100.0, 121.0):
        shown.report([2, 4, 10], [100, 60, 0], [True, True, False])
    shown.print_line("this stays")
    shown.report(10, 0, False)
    clock.now = 200.0
    shown.show()
    shown.close()
    assert capsys.readouterr() == (
        "this stays\n",
        "2 runs, iteration 3 to 5/10 (55.5% of all steps), 84 steps/s (42 a run), 00:39 left\n"
        "2 runs, iteration 3 to 5/10 (55.5% of all steps), 28 steps/s (14 a run), 01:58 left\n",
    )


def test_the_numbers_are_told_to_who_wants_them(numbers, clock):
    assert progress.read(numbers) == (0.0, None)
    shown = runs()
    warm_up(shown, clock)
    assert progress.read(numbers) == (pytest.approx(1600 / 7500), None)
    clock.now = 130.0
    go_on(shown)
    told = progress.read(numbers)
    assert told.fraction == pytest.approx((600 + 1250 + 2500) / 7500)
    assert told.steps_per_second == pytest.approx(2750 / 100 / 2)
    shown.report([3, 4], 0, runs=[0, 1])
    clock.now = 230.0
    shown.close()
    told = progress.read(numbers)
    assert told.fraction == pytest.approx((750 + 1000 + 2500) / 7500)
    assert told.steps_per_second == pytest.approx(2650 / 200 / 2)


def test_numbers_that_nobody_can_take_do_not_stop_training(monkeypatch):
    monkeypatch.setenv(progress.FILE_VARIABLE, "987654")
    with progress.Progress([0], 2, 100) as shown:
        shown.report(1, 0)


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
                    shown.show()
        shown.report(20, 0, run > 0, [run])

    threads = [threading.Thread(target=train, args=[run]) for run in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown.close()
    assert progress.read(numbers).fraction == 1
