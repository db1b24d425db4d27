"""Runs the jobs of a sweep with Ray Tune: queueing, placement and retries."""

import contextlib
import os
import signal
from collections.abc import Sequence
from typing import Any

from ray import tune

from log_dqn.sweeps import board, plan, worker


class _ToBoard(tune.Callback):
    """Tells the board what happens to Tune's trials."""

    def __init__(self, shown: board.Board) -> None:
        self._board = shown

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune saves its callbacks, and a sweep goes on without what it saves.

    def on_trial_result(
        self, iteration: int, trials: list, trial: Any, result: dict[str, Any], **_: Any
    ) -> None:
        job = trial.config["job"]
        if result["training_iteration"] == 1:
            self._board.started(job, result["hostname"], result["progress"])
        names = ("progress", "fraction", "steps_per_second", "death")
        self._board.reported(job, *(result[name] for name in names))
        if result["done"]:
            self._board.ended(job, result["failure"])

    def on_trial_recover(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
        self._board.died(trial.config["job"], is_last=False)

    def on_trial_error(self, iteration: int, trials: list, trial: Any, **_: Any) -> None:
        self._board.died(trial.config["job"], is_last=True)


def run(
    jobs: Sequence[plan.Job],
    resources: dict[str, float],
    max_failures: int,
    folder: str,
    shown: board.Board,
) -> list[int]:
    """Runs jobs until all are complete or given up, or SIGINT or SIGTERM comes.

    Each has so much `cpu` and `gpu`. The folder, empty, is for Tune's own files; all nodes see it.
    Returns the signals that came; then the processes have been stopped.
    """
    cpus, gpus = resources["cpu"], resources["gpu"]
    trainable = tune.with_parameters(
        worker.Worker, jobs=list(jobs), cpus=cpus, gpus=gpus, started_in=os.getcwd()
    )
    tuner = tune.Tuner(
        tune.with_resources(trainable, resources),
        param_space={"job": tune.grid_search(list(range(len(jobs))))},
        tune_config=tune.TuneConfig(
            # A new worker takes seconds.
            reuse_actors=True,
            trial_dirname_creator=lambda trial: f"job_{trial.config['job']}",
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=folder,
            verbose=0,
            callbacks=[_ToBoard(shown)],
            failure_config=tune.FailureConfig(max_failures=max_failures),
            # Training keeps its own checkpoints.
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
        ),
    )
    signals: list[int] = []

    def stop(number: int, _: Any) -> None:
        signals.append(number)
        if signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
            raise KeyboardInterrupt  # Tune doesn't listen yet.
        # What Tune stops at, with its trials.
        signal.raise_signal(signal.SIGUSR1)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with contextlib.suppress(KeyboardInterrupt):
        tuner.fit()
    return signals
