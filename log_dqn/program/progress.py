"""Progress of training: one line on a terminal or in a log file, and numbers for a sweep."""

import contextlib
import datetime
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np
import tqdm
import tqdm.utils

# Seconds between two looks at the numbers, and between two lines in a log file.
_PERIOD, _LOG_FILE_PERIOD = 0.5, 60.0

# Environment variable with the number of an open file, into which numbers are written.
FILE_VARIABLE = "LOG_DQN_PROGRESS_FILE"

# Bytes of the numbers: the new ones overwrite the old ones.
_RECORD = 128


class Numbers(NamedTuple):
    """What a training process tells who started it.

    Attributes:
        fraction: the part of its steps that is done.
        steps_per_second: agent steps per second of one run, None as long as they are unknown.
    """

    fraction: float = 0.0
    steps_per_second: float | None = None


def read(file: int) -> Numbers:
    """Reads the numbers that a training process has written last.

    Args:
        file: number of an open file, which the process has been given in `FILE_VARIABLE`.
    """
    try:
        return Numbers(**json.loads(os.pread(file, _RECORD, 0)))
    except ValueError:  # none yet, or just being written
        return Numbers()


class Progress(tqdm.tqdm):
    """The progress of runs that one process trains.

    The line is rewritten in place on a terminal, and written once a minute elsewhere. Steps are
    those that a run is planned to take: a phase's last episode may overshoot, and counts no more.
    """

    monitor_interval = 0  # Without tqdm's thread that looks for bars that are rarely updated.

    def __init__(
        self, iterations: Sequence[int], num_iterations: int, steps_per_iteration: int
    ) -> None:
        """Takes each run's finished iterations, how many each is to have, and their agent steps.

        Nothing is shown before half a second of training.
        """
        self._iterations = np.array(iterations)
        self._steps = np.zeros(len(iterations))
        self._running = np.ones(len(iterations), bool)
        self._num_iterations = num_iterations
        self._steps_per_iteration = steps_per_iteration
        self._file = os.environ.get(FILE_VARIABLE)
        self._in_place = sys.stderr.isatty()
        line = "{desc} ({percentage:.1f}% of the run), {rate_noinv_fmt}, {remaining} left{postfix}"
        if len(iterations) > 1:
            line = line.replace("the run", "all steps").replace("fmt}", "fmt} ({of_a_run} a run)")
        done, total = self._done_and_total()
        super().__init__(
            initial=done, total=total, unit=" steps", bar_format=line, leave=False, position=0,
            smoothing=0, mininterval=_PERIOD, miniters=0, delay=_PERIOD, dynamic_ncols=True,
        )  # fmt: skip
        self._last_line = self.start_t

    def report(
        self, iterations: Any, steps: Any, running: Any = True, runs: Any = slice(None)
    ) -> None:
        """Notes how far some runs are, and shows it when it is time. Threads may share an object.

        Args:
            iterations: finished iterations, a number or an array of shape [len(runs)].
            steps: agent steps of the iterations that they are in, alike.
            running: whether they have not ended, alike.
            runs: indices of the runs.
        """
        self._iterations[runs] = iterations
        self._steps[runs] = steps
        self._running[runs] = running
        self.update(0)

    def _done_and_total(self) -> tuple[int, int]:
        """Returns the steps that are done, and with them those that running runs have left."""
        steps = np.minimum(self._steps, self._steps_per_iteration)
        done = self._iterations * self._steps_per_iteration + steps
        left = (self._num_iterations * self._steps_per_iteration - done)[self._running]
        return int(done.sum()), max(int(done.sum() + left.sum()), 1)

    def _title(self) -> str:
        current = np.minimum(self._iterations[self._running] + 1, self._num_iterations)
        first, last = current.min(initial=self._num_iterations), current.max(initial=0)
        title = f"iteration {first}{f' to {last}' if first < last else ''}/{self._num_iterations}"
        if len(self._iterations) == 1:
            return title
        return f"{len(current)} run{'' if len(current) == 1 else 's'}, {title}"

    @property
    def numbers(self) -> Numbers:
        """What was done at the last look, and how fast since the start."""
        seconds = super().format_dict["elapsed"]
        done = self.n - self.initial
        speed = done / seconds / max(self._running.sum(), 1) if done and seconds else None
        return Numbers(self.n / self.total, speed)

    @property
    def time_left(self) -> datetime.timedelta:
        """The time left at the mean speed so far."""
        self._look()
        done = self.n - self.initial
        seconds = super().format_dict["elapsed"] * (self.total - self.n) / done if done else 0
        return datetime.timedelta(seconds=round(seconds))

    def _look(self) -> None:
        self.n, self.total = self._done_and_total()
        self.desc = self._title()

    # tqdm's interface.

    @property
    def format_dict(self) -> dict[str, Any]:
        """What the line can be made of."""
        speed = self.numbers.steps_per_second
        return super().format_dict | {"of_a_run": "?" if speed is None else f"{speed:.0f}"}

    def refresh(self, nolock: bool = False, lock_args: tuple | None = None) -> bool | None:
        """Takes a look, and shows it."""
        with self.get_lock():  # A thread can take it again.
            self._look()
            self._write_numbers()
            return super().refresh(nolock=True)

    def _write_numbers(self) -> None:
        if self._file is not None:
            record = json.dumps(self.numbers._asdict()).ljust(_RECORD)
            with contextlib.suppress(OSError):  # Training needs no audience.
                os.pwrite(int(self._file), record.encode(), 0)

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        """Shows the line, or a message in the place of the line."""
        if self._in_place:
            # A line that wraps can't be rewritten.
            line = str(self) if msg is None else msg
            return super().display(tqdm.utils.disp_trim(line, self.ncols or len(line)), pos)
        now = self._time()
        if now - self._last_line >= _LOG_FILE_PERIOD and msg is None and self.n < self.total:
            self._last_line = now
            self.fp.write(f"{self}\n")
            self.fp.flush()
        return False

    def clear(self, nolock: bool = False) -> None:
        """Removes the line from a terminal."""
        if self._in_place:
            super().clear(nolock)

    def close(self) -> None:
        """Removes the line for good."""
        if not self.disable:
            self._look()
            self._write_numbers()
            self.clear()
        super().close()

    def __del__(self) -> None:
        """Leaves a line that nobody closed as it is.

        tqdm would close it, at any moment of the collector's choosing: also while `print_line`
        goes through tqdm's set of all lines, which must not change then.
        """

    def print_line(self, line: str, file: TextIO | None = None) -> None:
        """Prints a line that stays, to standard output or a given file."""
        self.write(line, file or sys.stdout)
        (file or sys.stdout).flush()
