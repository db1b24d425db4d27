"""One run on all cores against one run a core, side by side, as the programs train them on Pong.

All programs run from the start; signals let one contestant at a time go on.
"""

import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from benchmarks import measuring
from log_dqn import checks
from log_dqn.cli import progress, threads

# Agent steps of a run, more than anybody waits for, and those before it learns.
_STEPS, _START = 10**8, 1000
_SECONDS = 15.0

# Ways to train: their agents, and gin's names for the runner and the replay memory's size.
KINDS = {
    "train, TensorFlow": ("LogDQNAgent", "Runner", "WrappedReplayBuffer.replay_capacity"),
    "train, JAX": ("JaxLogDQNAgent", "Runner", "ReplayBuffer.max_capacity"),
    "train_vectorized": (
        "VectorizedLogDQNAgent", "VectorizedRunner", "VectorizedRunner.replay_capacity",
    ),
}  # fmt: skip


class Program:
    """A program that trains, with a file that tells how far it is."""

    def __init__(
        self, kind: str, folder: pathlib.Path, *arguments: str, **environment: str
    ) -> None:
        """Starts it with its results in a folder, and with environment variables of its own."""
        agent, runner, capacity = KINDS[kind]
        words = [f"--results_dir={folder}", f"--games={measuring.GAME}"]
        if runner == "Runner":
            name = "jax_log_dqn" if agent.startswith("Jax") else "log_dqn"
            words = [f"--agent={name}", f"--base_dir={folder}", f"--game={measuring.GAME}"]
        bindings = {
            f"{runner}.num_iterations": 1,
            f"{runner}.training_steps": _STEPS,
            f"{runner}.evaluation_steps": 1,
            capacity: 10_000,
            f"{agent}.min_replay_history": _START,
        }
        words += [f"--gin_bindings={name}={value}" for name, value in bindings.items()]
        self._module = "log_dqn." + kind.partition(",")[0]
        self._numbers, self._said = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        number = self._numbers.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module, *words, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            env={**os.environ, **environment, progress.FILE_VARIABLE: str(number)},
            pass_fds=[number],
        )
        self.send = self._process.send_signal

    def steps(self) -> float:
        """Returns the agent steps of a run so far; raises ValueError if the program has ended."""
        if self._process.poll() is not None:
            self._said.seek(0)
            raise measuring.ended(self._module, self._said.read())
        return progress.read(self._numbers.fileno()).fraction * _STEPS

    def kill(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.wait()


def stop_when_they_learn(programs: Sequence[Program]) -> None:
    """Waits until each program trains its network, and stops them."""
    while min(program.steps() for program in programs) < 1.5 * _START:
        time.sleep(0.5)
    for program in programs:
        program.send(signal.SIGSTOP)


def play(programs: Sequence[Program], num_runs: int) -> float:
    """Lets programs of some runs each go on; returns the agent steps per second of all runs."""
    before = sum(program.steps() for program in programs)
    began = time.perf_counter()
    for program in programs:
        program.send(signal.SIGCONT)
    time.sleep(_SECONDS)
    for program in programs:
        program.send(signal.SIGSTOP)
    passed = time.perf_counter() - began
    return (sum(program.steps() for program in programs) - before) * num_runs / passed


def _measure(kind: str, rounds: int) -> None:
    """Prints the table of a way to train."""
    cores = threads.cores()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:

        def start(place: str, *arguments: str) -> Program:
            program = Program(kind, pathlib.Path(name, place), *arguments)
            stack.callback(program.kill)
            return program

        one, num_runs = [start("one", f"--threads={cores}")], 1
        if kind == "train_vectorized":
            every, num_runs = [start("all", f"--seeds={cores}")], cores
        else:
            every = [start(f"all{core}", "--threads=1") for core in range(cores)]
        stop_when_they_learn(one + every)
        blocks = {
            "all cores": lambda: play(one, 1),
            "a core a run": lambda: play(every, num_runs),
        }
        speeds = measuring.interleave(blocks, rounds, "cores", warm_up=0)
    measuring.print_table(kind, "steps/s of all runs", speeds)


def run(args: argparse.Namespace) -> None:
    """Prints a table for each way to train, but for those whose packages are missing."""
    for kind in KINDS:
        try:
            if kind != "train_vectorized":
                checks.check_extra(None, ("tensorflow", "dopamine"))
        except ValueError as error:
            print(f"{kind}: left out; {error}\n")
        else:
            _measure(kind, args.rounds)
