"""The loop of runs whose games are JAX programs, as one program on the device."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from log_dqn.program.progress import Progress
from log_dqn.vectorized.device_loop import DeviceLoop
from log_dqn.vectorized.jax_games import JaxGame
from log_dqn.vectorized.learner import Problem
from log_dqn.vectorized.timeline import Episode, Phase, Position
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
        """
        num_actions = [game.num_actions] * len(workload.runs)
        super().__init__(
            workload._replace(checkpoint_replay=True), problem, num_actions, progress, shown_as
        )
        self._loop = DeviceLoop(self.learner, game)
        self._ready = np.full(len(workload.runs), -1, np.int32)

    def _play(self) -> tuple[Position, Episode]:
        position = self.position
        waits = (position.phase == Phase.WAITING) & (position.iteration != self._ready)
        if waits.any():
            self._loop.reset(waits, self._begin_iterations(waits))
            self._ready = np.where(waits, position.iteration, self._ready)
        return self._loop.advance(position, self._ready)

    def _report(self, index: int, iteration: int, entry: dict[str, list[Any]]) -> None:
        """Prints a finished run's line, and each iteration's of a run that is alone."""
        if self._progress.num_runs == 1 or iteration + 1 == self._runner.num_iterations:
            super()._report(index, iteration, entry)
