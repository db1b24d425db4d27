"""What a sweep shows: a table on a terminal, plain lines elsewhere, and the summary."""

import collections
import contextlib
import dataclasses
import time
from collections.abc import Sequence
from typing import TextIO

import rich.console
import rich.live
import rich.table
import rich.text

from log_dqn.cli.progress import duration
from log_dqn.cli.words import counted
from log_dqn.sweeps import plan

WAITING, RUNNING, COMPLETE, FAILED = "waiting", "running", "complete", "failed"

# Seconds between two lines about the whole sweep, where there is no terminal.
_PERIOD = 60


@dataclasses.dataclass
class _Row:
    """What is known of one run."""

    run: plan.PlannedRun
    progress: plan.RunProgress
    state: str = WAITING
    fraction: float = 0.0
    steps_per_second: float | None = None
    attempt: int = 0
    reason: str = ""

    @property
    def steps(self) -> float:
        """Agent steps that are done."""
        done = self.progress.iterations / self.run.num_iterations
        return max(min(done, 1), self.fraction) * self.total_steps

    @property
    def total_steps(self) -> int:
        return self.run.num_iterations * self.run.steps_per_iteration

    @property
    def has_all_iterations(self) -> bool:
        return self.progress.iterations >= self.run.num_iterations

    def cells(self) -> tuple[str, ...]:
        again = self.state in (WAITING, RUNNING) and (self.attempt - (self.state == RUNNING))
        speed = self.steps_per_second or self.progress.steps_per_second
        average_return = self.progress.average_return
        return (
            self.run.name,
            f"{self.state}, retry {again}" if again else self.state,
            f"{self.progress.iterations}/{self.run.num_iterations}",
            "" if average_return is None else f"{average_return:.2f}",
            f"{speed:.0f}" if self.state == RUNNING and speed else "",
        )


class Board:
    """Keeps the states of all runs and shows them while a `with` block runs.

    The table shows what is running or has failed, as far as it fits, and counts the rest. On
    anything but a terminal each change is a line, and each minute a line sums up.
    """

    def __init__(self, jobs: Sequence[plan.Job], skipped: int, file: TextIO) -> None:
        """Shows jobs in a file, and counts runs with them that were complete before."""
        self._rows = [[_Row(run, plan.progress_of(run)) for run in job.runs] for job in jobs]
        self._skipped = skipped
        self._file = file
        self._live: rich.live.Live | None = None
        self._console = rich.console.Console(file=file)
        self._start = self._last_line = time.monotonic()
        self._began: tuple[float, float] | None = None  # Time and steps as the first run is warm.
        for row in self._all():
            if row.has_all_iterations:
                row.state = COMPLETE
        self._before = self._counts()[COMPLETE]

    def _all(self) -> list[_Row]:
        return [row for rows in self._rows for row in rows]

    def _counts(self) -> collections.Counter[str]:
        """Returns the number of runs in each state."""
        return collections.Counter([COMPLETE] * self._skipped + [row.state for row in self._all()])

    def _unfinished(self, job: int) -> list[_Row]:
        return [row for row in self._rows[job] if row.state != COMPLETE]

    def __enter__(self) -> "Board":
        if self._file.isatty():
            self._live = rich.live.Live(
                console=self._console, get_renderable=self._table, transient=True
            )
            self._live.start()
        else:
            self._print(self.headline())
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.stop()

    def _print(self, line: str) -> None:
        if self._live is None:
            print(f"[{self._elapsed()}] {line}", file=self._file, flush=True)

    def _elapsed(self) -> str:
        return duration(time.monotonic() - self._start)

    def started(self, job: int, host: str, progress: Sequence[plan.RunProgress]) -> None:
        """Notes that a job was started on a host, and how far each of its runs had come."""
        for row, new in zip(self._rows[job], progress, strict=True):
            row.progress, row.reason = new, ""
        for row in self._unfinished(job):
            row.attempt += 1
            row.state, row.steps_per_second = RUNNING, None
            again = f" again, from iteration {row.progress.iterations}," if row.attempt > 1 else ""
            self._print(f"{row.run.name}: started{again} on {host}")

    def reported(
        self,
        job: int,
        progress: Sequence[plan.RunProgress],
        fraction: float,
        steps_per_second: float | None,
        death: str | None,
    ) -> None:
        """Notes what a worker reports of a job; see `worker.Worker`."""
        for row, new in zip(self._rows[job], progress, strict=True):
            if new.iterations != row.progress.iterations:
                result = "" if new.average_return is None else f", return {new.average_return:.2f}"
                self._print(
                    f"{row.run.name}: iteration {new.iterations}/{row.run.num_iterations}{result}"
                )
            row.progress = new
            row.fraction = max(row.fraction, fraction)
            row.steps_per_second = steps_per_second
            row.reason = death or ""
            if row.has_all_iterations and row.state != COMPLETE:  # Whatever becomes of its job.
                row.state = COMPLETE
                self._print(f"{row.run.name}: complete")
        now = time.monotonic()
        if self._began is None and steps_per_second is not None:
            self._began = now, sum(row.steps for row in self._all())
        if now - self._last_line >= _PERIOD:
            self._last_line = now
            self._print(self.headline())

    def died(self, job: int, is_last: bool) -> None:
        """Notes that a job died, and whether it is given up."""
        for row in self._unfinished(job):
            row.state = FAILED if is_last else WAITING
            row.reason = row.reason or "the worker or its node died"
            row.reason += f" (attempt {row.attempt}, the last)" if is_last else ""
            row.fraction = 0.0  # It resumes from its last iteration.
            self._print(f"{row.run.name}: {row.reason}" + ("" if is_last else "; to be retried"))

    def ended(self, job: int, failure: str | None) -> None:
        """Notes that a job came to its end, complete or with a failure."""
        for row in self._unfinished(job):
            row.state, row.reason = (FAILED, failure) if failure else (COMPLETE, "")
            self._print(f"{row.run.name}: {failure or 'complete'}")

    def seconds_left(self) -> float | None:
        """Returns the time that the rest takes at the mean speed so far, if it is known."""
        if self._began is None:
            return None
        done = sum(row.steps for row in self._all()) - self._began[1]
        if done <= 0:
            return None
        rest = sum(row.total_steps - row.steps for row in self._all() if row.state != FAILED)
        return rest * (time.monotonic() - self._began[0]) / done

    def headline(self) -> str:
        """Returns the sweep in one line."""
        counts = self._counts()
        parts = [f"{counts[state]} {state}" for state in (COMPLETE, RUNNING, WAITING, FAILED)]
        seconds = self.seconds_left()
        left = "estimating" if seconds is None else f"{duration(seconds)} left"
        return f"{counted(counts.total(), 'run')}: {', '.join(parts)}; {left}"

    def _table(self) -> rich.console.Group:
        table = rich.table.Table(box=None, header_style="bold", pad_edge=False)
        for title in ("run", "state"):
            table.add_column(title, no_wrap=True)
        for title in ("iteration", "return", "steps/s"):
            table.add_column(title, no_wrap=True, justify="right")
        order = (RUNNING, FAILED, WAITING, COMPLETE)
        rows = sorted(self._all(), key=lambda row: order.index(row.state))
        room = max(1, self._console.height - 4)
        for row in rows[: room if len(rows) <= room else room - 1]:
            table.add_row(*map(rich.text.Text, row.cells()))
        if len(rows) > room:
            table.add_row(f"and {len(rows) - room + 1} more")
        return rich.console.Group(rich.text.Text(self.headline()), table)

    def failures(self) -> list[tuple[str, str]]:
        """Returns name and reason of each run that failed."""
        return [(row.run.name, row.reason) for row in self._all() if row.state == FAILED]

    def summary(self) -> list[str]:
        """Returns the lines that sum a finished or stopped sweep up."""
        counts = self._counts()
        rest = counts[WAITING] + counts[RUNNING]
        before = f" ({self._before} of them before)" if self._before else ""
        unfinished = f", {rest} unfinished" if rest else ""
        return [
            f"{counts[COMPLETE]} of {counts.total()} runs are complete{before}, "
            f"{counts[FAILED]} failed{unfinished}; {self._elapsed()}",
            *(f"failed: {name}: {reason}" for name, reason in self.failures()),
        ]
