"""Progress of long work, on a terminal and in a log file."""

import datetime
import re
import sys
from typing import Any

import tqdm


class _Progress(tqdm.tqdm):
    """A progress line that is rewritten in place."""

    def time_left(self) -> datetime.timedelta:
        """Returns the time left at the mean speed so far."""
        done = self.n - self.initial
        seconds = self.format_dict["elapsed"] * (self.total - self.n) / done if done else 0
        return datetime.timedelta(seconds=round(seconds))

    def print_line(self, line: str) -> None:
        """Prints a line that stays, to standard output."""
        self.write(line)
        sys.stdout.flush()


class _LogFileProgress(_Progress):
    """A progress line a minute, for output that is no terminal."""

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        if self.initial < self.n < self.total:
            print(msg or str(self), file=sys.stderr, flush=True)
        return True

    def clear(self, nolock: bool = False) -> None:
        pass

    def close(self) -> None:
        # tqdm's own would end the line it has been rewriting.
        self.disable = True

    def print_line(self, line: str) -> None:
        print(line, flush=True)


def create(initial: int, total: int) -> Any:
    """Creates the progress of a training run, a tqdm object.

    Args:
        initial: agent steps already done.
        total: agent steps in all.

    Returns:
        A context manager with tqdm's methods, `time_left()` and `print_line(line)`.
    """
    terminal = sys.stderr.isatty()
    return (_Progress if terminal else _LogFileProgress)(
        initial=initial,
        total=total,
        unit=" steps",
        smoothing=0,
        mininterval=0.5 if terminal else 60,
        dynamic_ncols=True,
        leave=False,
        bar_format="{desc} ({percentage:.1f}% of the run), {rate_fmt}, {remaining} left{postfix}",
    )


_LINE = re.compile(r"\((?P<percentage>[\d.]+)% of the run\), (?P<rate>[^,]+),")
_RATE = re.compile(r" *([\d.]+) steps/s")


def read_line(line: str) -> tuple[float, float | None] | None:
    """Reads a progress line.

    Args:
        line: what the object of `create` displays.

    Returns:
        The part of the run that is done, and agent steps per second, None as long as they are
        unknown or below 1; or None if it is no such line.
    """
    match = _LINE.search(line)
    if match is None:
        return None
    rate = _RATE.fullmatch(match["rate"])
    return float(match["percentage"]) / 100, float(rate[1]) if rate else None
