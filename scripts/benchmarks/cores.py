"""One run on all cores against one run a core, side by side, as the programs train them.

All programs run from the start; signals let one contestant at a time go on.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from benchmarks import measuring
from log_dqn.cli import progress, threads
from log_dqn.dopamine_run import request

# Agent steps of a run, more than anybody waits for, and those before it learns.
_STEPS, _START = 10**8, 1000
_SECONDS = 15.0


class Kind(NamedTuple):
    """A way to train: its module, arguments, and the names that gin has for its settings."""

    module: str
    arguments: tuple[str, ...]
    runner: str
    capacity: str
    agent: str


KINDS = {
    "train, TensorFlow": Kind(
        "log_dqn.train", ("--agent=log_dqn", f"--game={measuring.GAME}"),
        "Runner", "WrappedReplayBuffer.replay_capacity", "LogDQNAgent",
    ),
    "train, JAX": Kind(
        "log_dqn.train", ("--agent=jax_log_dqn", f"--game={measuring.GAME}"),
        "Runner", "ReplayBuffer.max_capacity", "JaxLogDQNAgent",
    ),
    "train_vectorized": Kind(
        "log_dqn.train_vectorized", (f"--games={measuring.GAME}",),
        "VectorizedRunner", "VectorizedRunner.replay_capacity", "VectorizedLogDQNAgent",
    ),
}  # fmt: skip


class Program:
    """A program that trains, with a file that tells how far it is."""

    def __init__(self, kind: Kind, folder: pathlib.Path, *arguments: str) -> None:
        """Starts it with its results in a folder."""
        option = "base_dir" if kind.module == "log_dqn.train" else "results_dir"
        bindings = {
            f"{kind.runner}.num_iterations": 1,
            f"{kind.runner}.training_steps": _STEPS,
            f"{kind.runner}.evaluation_steps": 1,
            kind.capacity: 10_000,
            f"{kind.agent}.min_replay_history": _START,
        }
        self._kind = kind
        self._numbers = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the program)
        number = self._numbers.fileno()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the program)
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", kind.module, f"--{option}={folder}", *kind.arguments,
                *arguments, *(f"--gin_bindings={name}={value}" for name, value in bindings.items()),
            ],
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            env={**os.environ, progress.FILE_VARIABLE: str(number)},
            pass_fds=[number],
        )  # fmt: skip

    def steps(self) -> float:
        """Returns the agent steps of a run so far; raises ValueError if the program has ended."""
        if self._process.poll() is not None:
            self._said.seek(0)
            raise measuring.ended(self._kind.module, self._said.read())
        return progress.read(self._numbers.fileno()).fraction * _STEPS

    def send(self, number: int) -> None:
        """Sends it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.wait()
        self._numbers.close()
        self._said.close()


@contextlib.contextmanager
def _contestants(kind: Kind) -> Iterator[dict[str, tuple[list[Program], int]]]:
    """Starts the programs; gives each contestant's, with how many runs a program trains."""
    cores = threads.cores()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)

        def start(place: str, *arguments: str) -> Program:
            program = Program(kind, folder / place, *arguments)
            stack.callback(program.kill)
            return program

        one = ([start("one", f"--threads={cores}")], 1)
        if kind.module == "log_dqn.train_vectorized":
            yield {"one": one, "all": ([start("all", f"--seeds={cores}")], cores)}
        else:
            programs = [start(f"all{core}", "--threads=1") for core in range(cores)]
            yield {"one": one, "all": (programs, 1)}


def _measure(kind: Kind, rounds: int) -> dict[str, np.ndarray]:
    """Returns each contestant's agent steps per second, of all its runs, shape [rounds]."""
    with _contestants(kind) as contestants:
        everyone = [program for programs, _ in contestants.values() for program in programs]
        while min(program.steps() for program in everyone) < 1.5 * _START:
            time.sleep(0.5)
        for program in everyone:
            program.send(signal.SIGSTOP)

        def play(name: str) -> float:
            programs, num_runs = contestants[name]
            before = sum(program.steps() for program in programs)
            began = time.perf_counter()
            for program in programs:
                program.send(signal.SIGCONT)
            time.sleep(_SECONDS)
            for program in programs:
                program.send(signal.SIGSTOP)
            passed = time.perf_counter() - began
            return (sum(program.steps() for program in programs) - before) * num_runs / passed

        speeds: dict[str, list[float]] = {"one": [], "all": []}
        for round_ in tqdm(range(rounds), "cores", leave=False, disable=None):
            for name in sorted(speeds, reverse=bool(round_ % 2)):
                speeds[name].append(play(name))
    return {name: np.array(values) for name, values in speeds.items()}


def run(rounds: int) -> None:
    """Prints, for each way to train, the speed of one run a core and of one run on all cores."""
    measuring.print_heading("a run a core", "one run")
    for name, kind in KINDS.items():
        if kind.module == "log_dqn.train":
            try:
                request.check_installed()
            except ValueError as error:
                print(f"{name}: left out; {error}")
                continue
        speeds = _measure(kind, rounds)
        measuring.print_ratio(name, speeds["all"], speeds["one"], "steps/s")
