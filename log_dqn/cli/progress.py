"""Progress of training: one line on a terminal or in a log file, and a status for a sweep."""

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np
from tqdm import tqdm

from log_dqn.cli import shell, words

# Seconds between two looks at the numbers, and between two lines in a log file.
_PERIOD, _LOG_FILE_PERIOD = 0.5, 60.0

# Agent steps after a warm-up, in which the first update is compiled.
_COMPILING = 100

# Where a terminal doesn't say how wide it is.
_COLUMNS = 80

_CLEAR = "\r\x1b[K"

# Environment variable with the number of an open file, into which the status is written.
FILE_VARIABLE = "LOG_DQN_PROGRESS_FILE"

# Bytes of a status: each overwrites the last.
_RECORD = 128


class Status(NamedTuple):
    """What a training process reports to the process that started it.

    Attributes:
        fraction: of its steps that are done.
        steps_per_second: agent steps per second of one run; None before the end of its warm-up.
    """

    fraction: float = 0.0
    steps_per_second: float | None = None


def read(file: int) -> Status:
    """Reads a training process's last status, from the file with the number in `FILE_VARIABLE`."""
    try:
        return Status(**json.loads(os.pread(file, _RECORD, 0)))
    except ValueError:  # none yet, or just being written
        return Status()


def bar(title: str, items: Sequence) -> Iterable:
    """Yields items; a terminal shows how many of them are done, and the time left."""
    return tqdm(items, f"{title:<20}", dynamic_ncols=True, disable=None)


def duration(seconds: float) -> str:
    """Returns a time as programs show it: 02:10, 27:00:00."""
    return tqdm.format_interval(seconds)


class Progress:
    """The progress of runs that one process trains.

    The line is rewritten in place on a terminal, and written once a minute elsewhere. Steps are
    those that a run is planned to take: a phase's last episode may overshoot, and counts no more.

    Attributes:
        num_runs: how many runs there are.
        result: the last result, which the line ends with.
    """

    def __init__(
        self,
        iterations: Sequence[int],
        num_iterations: int,
        steps_per_iteration: int,
        warm_up: int = 0,
    ) -> None:
        """Initializes it; nothing is shown yet.

        Args:
            iterations: each run's finished iterations.
            num_iterations: iterations of a finished run.
            steps_per_iteration: planned agent steps of an iteration.
            warm_up: first steps of a run, before it learns, which don't count for the speed.
        """
        self.num_runs = len(iterations)
        self.result = ""
        self._iterations = np.array(iterations)
        self._steps = np.zeros(self.num_runs)
        self._running = np.ones(self.num_runs, bool)
        self._num_iterations = num_iterations
        self._steps_per_iteration = steps_per_iteration
        self._warm = self._done() + warm_up + _COMPILING
        self._status_file = os.environ.get(FILE_VARIABLE)
        self._terminal = sys.stderr if sys.stderr.isatty() else None
        self._lock = threading.RLock()  # A line may be printed by a signal's handler.
        self._began: tuple[float, float] | None = None  # Time and steps at the end of the warm-up.
        self._last_look = self._last_line = time.monotonic()

    def __enter__(self) -> "Progress":
        self.show()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Writes the last status, and removes the line from a terminal."""
        with self._lock:
            self._write_status()
            self._clear()

    def report(
        self, iterations: Any, steps: Any, running: Any = True, runs: Any = slice(None)
    ) -> None:
        """Records how far some runs are, and shows it when due. Threads may share an object.

        Args:
            iterations: finished iterations, a number or an array of shape [len(runs)].
            steps: agent steps of the current iterations, of the same shape.
            running: whether they have not ended, of the same shape.
            runs: indices of the runs.
        """
        self._iterations[runs] = iterations
        self._steps[runs] = steps
        self._running[runs] = running
        if time.monotonic() - self._last_look >= _PERIOD:
            self.show()

    def show(self) -> None:
        """Shows how far the runs are."""
        with self._lock:
            now = self._last_look = time.monotonic()
            if self._began is None and (self._done() >= self._warm).any():
                self._began = now, self._done().sum()
            self._write_status()
            if self._terminal is not None:
                try:
                    columns = os.get_terminal_size(self._terminal.fileno()).columns or _COLUMNS
                except OSError:
                    columns = _COLUMNS
                # A line that wraps can't be rewritten.
                shell.say(_CLEAR + str(self)[: columns - 1], end="", file=self._terminal)
            elif now - self._last_line >= _LOG_FILE_PERIOD and self._left():
                self._last_line = now
                shell.say(self, file=sys.stderr)

    def print_line(self, line: str, file: TextIO | None = None) -> None:
        """Prints a line that stays, to standard output or a given file."""
        with self._lock:
            self._clear()
            shell.say(line, file=file)
            if self._terminal is not None:
                self.show()

    def _clear(self) -> None:
        if self._terminal is not None:
            shell.say(_CLEAR, end="", file=self._terminal)

    def _done(self) -> np.ndarray:
        """Returns the steps that each run has done."""
        steps = np.minimum(self._steps, self._steps_per_iteration)
        return self._iterations * self._steps_per_iteration + steps

    def _left(self) -> float:
        """Returns the steps that running runs have left."""
        left = self._num_iterations * self._steps_per_iteration - self._done()
        return max(left[self._running].sum(), 0)

    def _speed(self) -> float | None:
        """Returns the mean speed since the warm-up, in agent steps of all runs per second."""
        if self._began is None:
            return None
        seconds, steps = time.monotonic() - self._began[0], self._done().sum() - self._began[1]
        return steps / seconds if steps > 0 < seconds else None

    @property
    def status(self) -> Status:
        """The status that `read` returns."""
        done, left, speed = self._done().sum(), self._left(), self._speed()
        of_a_run = None if speed is None else speed / max(self._running.sum(), 1)
        return Status(float(done / max(done + left, 1)), of_a_run)

    @property
    def pace(self) -> str:
        """The speed and the time left, in words."""
        left, speed = self._left(), self._speed()
        if speed is None:
            return "estimating" if left else f"{duration(0)} left"
        of_a_run = f" ({self.status.steps_per_second:.0f} a run)" if self.num_runs > 1 else ""
        return f"{speed:.0f} steps/s{of_a_run}, {duration(left / speed)} left"

    def __str__(self) -> str:
        current = np.minimum(self._iterations[self._running] + 1, self._num_iterations)
        first, last = current.min(initial=self._num_iterations), current.max(initial=0)
        title = f"iteration {first}{f' to {last}' if first < last else ''}/{self._num_iterations}"
        whole = "the run"
        if self.num_runs > 1:
            title, whole = f"{words.counted(len(current), 'run')}, {title}", "all steps"
        share = f"{title} ({self.status.fraction:.1%} of {whole})"
        return ", ".join(filter(None, (share, self.pace, self.result)))

    def _write_status(self) -> None:
        if self._status_file is not None:
            record = json.dumps(self.status._asdict()).ljust(_RECORD)
            with contextlib.suppress(OSError):  # Training needs no audience.
                os.pwrite(int(self._status_file), record.encode(), 0)
