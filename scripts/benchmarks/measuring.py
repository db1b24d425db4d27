"""What all benchmarks share: blocks of work measured in turn, and the table of what they took."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tqdm import tqdm

from log_dqn.cli import words

GAME = "Pong"


def timed(work: Callable[..., object], *arguments: Any) -> Callable[[], float]:
    """Returns what does some work, and returns the seconds that it took."""

    def block() -> float:
        began = time.perf_counter()
        work(*arguments)
        return time.perf_counter() - began

    return block


def interleave(
    blocks: Mapping[str, Callable[[], float]],
    rounds: int,
    title: str,
    warm_up: int = 1,
    seconds: float = math.inf,
) -> dict[str, np.ndarray]:
    """Runs blocks of work in turn, every other round backwards, so that drift hits all alike.

    Args:
        blocks: by name; each returns its measurement.
        rounds: how many are measured.
        title: of the progress bar.
        warm_up: rounds before them that don't count.
        seconds: after these no round begins, other than the first that counts.

    Returns:
        The measurements of each block, shape [rounds].
    """
    found: dict[str, list[float]] = {name: [] for name in blocks}
    began = time.perf_counter()
    for number in tqdm(range(warm_up + rounds), title, leave=False, disable=None):
        if number > warm_up and time.perf_counter() - began > seconds:
            break
        for name in list(blocks)[:: -1 if number % 2 else 1]:
            found[name].append(blocks[name]())
    return {name: np.array(values[warm_up:]) for name, values in found.items()}


def print_table(title: str, unit: str, found: Mapping[str, np.ndarray]) -> None:
    """Prints a row for each contestant; measurements have shape [rounds]. See the program's help.

    Args:
        title: what is measured.
        unit: of the measurements.
        found: by contestant.
    """
    rows = [[title, f"{unit} (10% to 90%)", "ratio (10% to 90%)"]]
    first = next(iter(found.values()))
    for name, values in found.items():
        own, ratio = (np.percentile(x, [50, 10, 90]) for x in (values, values / first))
        cells = ("{} ({} to {})".format(*map(words.rounded, own)),)
        rows.append([name, *cells, "{:.3f} ({:.3f} to {:.3f})".format(*ratio)])
    print(f"{words.markdown(rows)}\n", flush=True)


def ended(program: str, said: bytes) -> ValueError:
    """Returns the error of a program that has ended, with the last line of what it said."""
    lines = said.decode(errors="replace").strip().splitlines()
    return ValueError(f"{program} has ended; it said: {lines[-1] if lines else 'nothing'}")
