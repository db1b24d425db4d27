"""Progress of a job in one line, without tqdm, which may not be there where only JAX is."""

import datetime
import shutil
import sys
import time

import numpy as np

from log_dqn.vectorized.schedule import Protocol, Schedule
from log_dqn.vectorized.timeline import Phase

# Seconds between lines, on a terminal and in a log file.
_TERMINAL_PERIOD, _LOG_FILE_PERIOD = 0.5, 60.0


class Progress:
    """Runs, iterations, agent steps per second and time left, on standard error.

    The line is rewritten in place on a terminal, and written once a minute elsewhere.
    """

    def __init__(self, schedule: Schedule, protocol: Protocol) -> None:
        """Initializes it.

        Args:
            schedule: the runs.
            protocol: what a run consists of.
        """
        self._schedule = schedule
        self._protocol = protocol
        self._in_place = sys.stderr.isatty()
        self._period = _TERMINAL_PERIOD if self._in_place else _LOG_FILE_PERIOD
        self._start = self._last = time.monotonic()
        self._chosen_at_start = schedule.place.chosen.sum()
        self._width = 0

    def line(self, seconds: float) -> str:
        """Returns the line.

        Args:
            seconds: time since the job began.
        """
        schedule, protocol = self._schedule, self._protocol
        running = schedule.place.phase != Phase.FINISHED
        iterations = schedule.place.iteration[running] + 1
        per_iteration = protocol.training_steps + protocol.evaluation_steps
        before = np.where(schedule.place.phase == Phase.EVALUATION, protocol.training_steps, 0)
        # (Phases overshoot, since episodes are played to their end; keep to the plan's count.)
        in_iteration = np.minimum(before + schedule.place.phase_steps, per_iteration)
        done = schedule.place.iteration * per_iteration + in_iteration
        left = (protocol.num_iterations * per_iteration - done)[running].sum()
        rate = (schedule.place.chosen.sum() - self._chosen_at_start) / seconds
        time_left = datetime.timedelta(seconds=round(left / rate)) if rate else "?"
        first, last = iterations.min(initial=protocol.num_iterations), iterations.max(initial=0)
        shown = f"{first}" if first >= last else f"{first} to {last}"
        return (
            f"{running.sum()} run{'s' * bool(running.sum() != 1)}, iteration "
            f"{shown}/{protocol.num_iterations}, {rate:.0f} steps/s "
            f"({rate / max(running.sum(), 1):.0f} a run), {time_left} left"
        )

    def update(self) -> None:
        """Shows the line when it is time."""
        now = time.monotonic()
        if now - self._last < self._period or self._schedule.finished:
            return
        self._last = now
        line = self.line(now - self._start)
        if self._in_place:
            self.clear()
            # (A line that wraps can't be rewritten.)
            line = line[: shutil.get_terminal_size().columns - 1]
            self._width = len(line)
            sys.stderr.write(line)
            sys.stderr.flush()
        else:
            print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line from a terminal."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = 0

    def print_line(self, line: str) -> None:
        """Prints a line that stays, to standard output."""
        self.clear()
        print(line, flush=True)
