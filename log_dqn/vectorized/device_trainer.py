"""The loop of runs whose games are JAX programs, as one program on the device."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from log_dqn.program.progress import Progress
from log_dqn.vectorized.device_loop import DeviceLoop
from log_dqn.vectorized.jax_games import JaxGame
from log_dqn.vectorized.learner import Problem
from log_dqn.vectorized.timeline import Phase
from log_dqn.vectorized.training import Trainer, Workload


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
        super().__init__(
            workload._replace(checkpoint_replay=True), problem, num_actions, progress, shown_as
        )
        self._loop = DeviceLoop(self.learner, game, self.schedule.rules)
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
        self._show_progress()

    def _report(self, index: int, iteration: int, entry: dict[str, list[Any]]) -> None:
        """Prints a finished run's line, and each iteration's of a run that is alone."""
        if self._progress.num_runs == 1 or iteration + 1 == self._runner.num_iterations:
            super()._report(index, iteration, entry)
