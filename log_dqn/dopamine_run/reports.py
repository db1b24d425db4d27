"""Reports each iteration of a run to other programs: as numbers, and to Weights & Biases."""

import os
import pathlib
import secrets
from collections.abc import Mapping
from typing import Any

from log_dqn.cli import shell
from log_dqn.run_folder import checkpoints, layout

Record = dict[str, float]
"""Numbers of a finished iteration, by name."""

_PROJECT = "log_dqn"


def record(iteration: int, num_iterations: int, statistics: Mapping[str, list[Any]]) -> Record:
    """Returns the numbers of an iteration, counted from 0, given its entry in Dopamine's log.

    They are the iteration, from 1, how many there are, and Dopamine's means by its names, with the
    number of episodes of each phase.
    """
    numbers: Record = {"iteration": iteration + 1, "num_iterations": num_iterations}
    for name, values in statistics.items():
        if "_average_" in name:
            numbers[name] = float(values[-1])
        elif name.endswith("_episode_returns"):
            numbers[name.replace("_episode_returns", "_episodes")] = len(values)
    return numbers


class Tracker:
    """Logs iterations to Weights & Biases, as one run there however often this one resumes."""

    def __init__(self, folder: pathlib.Path, parameters: Mapping[str, Any]) -> None:
        """Starts the run there, or resumes it, with this run's folder and configuration."""
        import wandb

        path = layout.tracking_id(folder)
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or not path.stat().st_size:
            checkpoints.replace_file(path, secrets.token_hex(4).encode())
        try:
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", _PROJECT),
                name="/".join(folder.resolve().parts[-3:]),
                id=path.read_text(encoding="utf-8"),
                resume="allow",
                dir=folder,
                config=dict(parameters),
                settings=wandb.Settings(silent=True, console="off"),
            )
        except (wandb.errors.Error, ValueError) as error:
            reason, lines = shell.explain(error), str(error).splitlines()
            # Of a setting; the first line doesn't say which.
            if isinstance(error, ValueError) and len(lines) > 2:
                reason = ": ".join(line.strip() for line in lines[1:3])
            raise ValueError(
                f"track is True; it must be left out, or WANDB_MODE be offline, where Weights & "
                f"Biases refuses: {reason}"
            ) from error

    def log(self, numbers: Record) -> None:
        """Logs an iteration."""
        self._run.log(numbers, step=int(numbers["iteration"]))

    def close(self) -> None:
        """Waits until everything is sent or, in offline mode, written."""
        import wandb

        self._run.finish()
        wandb.teardown()  # Its service writes the file's end after the run has finished.
