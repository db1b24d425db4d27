"""Trainers whose loop is one program on the device, and the pool that runs them side by side."""

import concurrent.futures
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from log_dqn.program.progress import Progress
from log_dqn.vectorized.device_loop import DeviceLoop
from log_dqn.vectorized.jax_games import JaxGame
from log_dqn.vectorized.learner import Problem
from log_dqn.vectorized.timeline import Phase
from log_dqn.vectorized.training import Trainer, Workload, stopped_by


class DeviceTrainer(Trainer):
    """Some runs of one game that is a JAX program.

    A step is a chunk of the runs' steps. Checkpoints hold the replay memory, which is small.
    """

    def __init__(
        self,
        workload: Workload,
        problem: Problem,
        game: JaxGame,
        progress: Progress,
        shown_as: Sequence[int],
    ) -> None:
        """Creates networks, memories and games, and loads checkpoints.

        Args:
            workload: what it trains.
            problem: what the runs learn from.
            game: the game of all of them.
            progress: progress of these runs and of others.
            shown_as: indices of the runs there.

        Raises:
            checkpoints.CheckpointError: if a checkpoint doesn't fit.
        """
        num_actions = [game.num_actions] * len(workload.runs)
        super().__init__(workload._replace(checkpoint_replay=True), problem, num_actions)
        self._progress = progress
        self._shown_as = shown_as
        self._loop = DeviceLoop(self._learners[0], game, self.schedule.rules)
        self._may_start = np.zeros(len(workload.runs), bool)

    def step(self) -> None:
        """Runs a chunk of every run, and saves runs whose iteration is over."""
        schedule = self.schedule
        waits = (schedule.place.phase == Phase.WAITING) & ~self._may_start
        if waits.any():
            self._training_began[waits] = time.monotonic()
            schedule.clear_iterations(waits)
            self._loop.reset(waits, self._environment_seeds(waits))
            self._may_start |= waits
        before = schedule.place
        chunk = self._loop.advance(before, self._may_start)
        place = schedule.place = chunk.place
        for step, run in np.argwhere(chunk.episodes.ended):
            episode = (part[step, run] for part in chunk.episodes[1:])
            schedule.iterations[run].add(*episode)
        trained = (before.phase == Phase.TRAINING) | (before.phase == Phase.WAITING)
        trained &= place.phase != Phase.TRAINING
        self._training_seconds[trained] = time.monotonic() - self._training_began[trained]
        for run in np.flatnonzero(chunk.summary.number >= 0):
            values = {tag: float(v[run]) for tag, v in chunk.summary.statistics.items()}
            self._write_summary(int(run), int(chunk.summary.number[run]), values)
        over = place.iteration > before.iteration
        self._may_start &= ~over
        for run in np.flatnonzero(over):
            self._end_iteration(int(run))
        self._show_progress(self._shown_as)

    def _report(self, index: int, iteration: int, entry: dict[str, list[Any]]) -> None:
        """Prints a finished run's line."""
        if iteration + 1 == self._runner.num_iterations:
            super()._report(index, iteration, entry)


class Pool:
    """Trainers that run side by side, as many at a time as there are workers.

    On a CPU a trainer's arithmetic keeps to one core, so that there is a worker for each.

    Attributes:
        failures: why runs were left out.
    """

    def __init__(
        self,
        create_trainers: Sequence[Callable[[], DeviceTrainer]],
        num_workers: int,
        progress: Progress,
    ) -> None:
        """Takes functions that each create a trainer when there is a worker for it."""
        self._progress = progress
        self._create_trainers = create_trainers
        self._num_workers = num_workers
        self._trainers: set[DeviceTrainer] = set()
        self._lock = threading.Lock()
        self._stop_signal: int | None = None
        self.failures: list[str] = []

    def stop(self, signal_number: int) -> None:
        """Makes `train` raise RunStopped soon, for a signal handler."""
        self._stop_signal = signal_number

    def train(self) -> None:
        """Runs all trainers.

        Raises:
            RunStopped: if a file can't be written, or `stop` was called. The checkpoints of
                finished iterations are intact.
        """
        executor = concurrent.futures.ThreadPoolExecutor(self._num_workers)
        futures = [executor.submit(self._train, create) for create in self._create_trainers]
        try:
            left = set(futures)
            while left:
                done, left = concurrent.futures.wait(
                    left, timeout=0.2, return_when=concurrent.futures.FIRST_EXCEPTION
                )
                if self._stop_signal is not None:
                    self._stop_trainers()
                for future in done:
                    future.result()
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            self._stop_trainers()
            executor.shutdown()
            self._progress.close()

    def _stop_trainers(self) -> None:
        with self._lock:
            for trainer in self._trainers:
                trainer.stop(self._stop_signal or signal.SIGTERM)

    def _train(self, create: Callable[[], DeviceTrainer]) -> None:
        if self._stop_signal is not None:
            raise stopped_by(self._stop_signal)
        trainer = create()
        with self._lock:
            self._trainers.add(trainer)
        try:
            trainer.train()
        finally:
            with self._lock:
                self._trainers.remove(trainer)
                self.failures += trainer.failures.values()


def keep_to_cores() -> None:
    """Makes a CPU compute each thread's programs on one core; to be called before it is used.

    Otherwise XLA divides each small operation between all cores, which takes a run of MinAtar a
    third of its speed, and computes the programs of several threads one after the other.
    """
    os.environ["NPROC"] = "1"  # The threads of XLA's CPU client.
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def num_workers() -> int:
    """Returns how many trainers run at a time: one a core of a CPU, one on another device."""
    return len(os.sched_getaffinity(0)) if jax.default_backend() == "cpu" else 1
