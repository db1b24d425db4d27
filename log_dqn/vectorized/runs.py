"""A run's folder: logs, metrics, events and checkpoints, as a single run of Dopamine's has them."""

import functools
import io
import os
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from log_dqn import scan
from log_dqn.jax import trees
from log_dqn.run_folder import arrays, checkpoints, configuration, data, layout
from log_dqn.run_folder.layout import Log
from log_dqn.vectorized import networks
from log_dqn.vectorized.agents import Agent, initial_params
from log_dqn.vectorized.learner import Learner
from log_dqn.vectorized.timeline import Phase

# Steps of the replay memory that are copied from the device at a time.
_CHUNK_STEPS = 8192
_PHASES = {"train": Phase.TRAINING, "eval": Phase.EVALUATION}


class Run(NamedTuple):
    """A run to train: an agent with a setting of the scan, a game, and a seed."""

    agent_name: str
    setting: scan.Setting
    game: str
    seed: int
    agent: Agent
    config: configuration.Configuration
    folder: pathlib.Path

    @property
    def title(self) -> str:
        """A short name: `log_dqn gamma=0.84 Pong 1`."""
        words = (self.agent_name, self.setting.name, self.game, str(self.seed))
        return " ".join(filter(None, words))


Ended = tuple[int, float, int]
"""An episode that has ended: its `Phase`, its return (unclipped) and its length in agent steps."""

COUNTERS = ("training_steps", "chosen", "stored")
"""The fields of `timeline.Position` that a checkpoint holds."""


def statistics(episodes: Sequence[Ended], training_seconds: float) -> dict[str, list[Any]]:
    """Returns an iteration's entry of Dopamine's log.

    The speed is in agent steps of the training phase.
    """
    entry: dict[str, list[Any]] = {}
    for name, of_phase in _PHASES.items():
        returns = [float(value) for phase, value, _ in episodes if phase == of_phase]
        if returns:
            entry[f"{name}_episode_lengths"] = [
                int(length) for phase, _, length in episodes if phase == of_phase
            ]
            entry[f"{name}_episode_returns"] = returns
            entry[f"{name}_average_return"] = [float(np.mean(returns))]
    steps = sum(entry.get("train_episode_lengths", []))
    entry["train_average_steps_per_second"] = [float(steps / training_seconds)]
    return entry


def scalars(entry: Mapping[str, list[Any]]) -> dict[str, float]:
    """Returns an iteration's scalars, by the names that Dopamine's metrics and events have."""
    values: dict[str, float] = {}
    for name, title in (("train", "Train"), ("eval", "Eval")):
        if f"{name}_episode_returns" in entry:
            values[f"{title}/NumEpisodes"] = len(entry[f"{name}_episode_returns"])
            values[f"{title}/AverageReturns"] = entry[f"{name}_average_return"][0]
    values["Train/AverageStepsPerSecond"] = entry["train_average_steps_per_second"][0]
    return values


class Events:
    """TensorBoard's events, where TensorBoard is installed; without it nothing is written."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Initializes it; the file is made with the first event."""
        self._folder = folder
        self._file: io.BufferedWriter | None = None

    @staticmethod
    def are_written() -> bool:
        """Returns whether TensorBoard is installed."""
        try:
            import tensorboard.summary.writer.record_writer  # noqa: F401
        except ImportError:
            return False
        return True

    def write(self, values: Mapping[str, float], step: int) -> None:
        """Writes scalars, by tag, at a step: an iteration, or a number of training steps."""
        if not self.are_written():
            return
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer import record_writer

        now = time.time()
        summary = summary_pb2.Summary(
            value=[summary_pb2.Summary.Value(tag=t, simple_value=v) for t, v in values.items()]
        )
        events = [event_pb2.Event(wall_time=now, step=step, summary=summary)]
        if self._file is None:
            name = f"events.out.tfevents.{int(now)}.{os.uname().nodename}.{os.getpid()}"
            self._file = open(self._folder / name, "ab")  # noqa: SIM115
            events.insert(0, event_pb2.Event(wall_time=now, file_version="brain.Event:2"))
        writer = record_writer.RecordWriter(self._file)
        for event in events:
            writer.write(event.SerializeToString())
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()


def write_results(folder: pathlib.Path, log: Log, iteration: int) -> None:
    """Writes the log and the metrics of a run, up to an iteration, for other programs."""
    metrics = {
        name: {tag: [value] for tag, value in scalars(entry).items()} for name, entry in log.items()
    }
    layout.write_metrics(folder, metrics, iteration)
    layout.write_log(folder, log, iteration)


def restore_results(folder: pathlib.Path, log: Log, iteration: int, events: Events) -> None:
    """Writes the results that may be missing if a run was killed after its last checkpoint."""
    if not layout.log_path(folder, iteration).exists():  # It is the last.
        events.write(scalars(log[f"iteration_{iteration}"]), iteration)
    write_results(folder, log, iteration)


def save(
    run: Run,
    learner: Learner,
    index: int,
    counters: Mapping[str, int],
    log: Log,
    with_replay: bool,
) -> None:
    """Writes a run's checkpoint after an iteration.

    `index` is the run's in the learner. `counters` are its `COUNTERS`, and `log` has the statistics
    of all iterations so far.

    Raises:
        FloatingPointError: if a weight is NaN or infinite.
    """
    weights = learner.run_weights(index)
    data.check_finite(weights)
    iteration = len(log) - 1

    def write(folder: pathlib.Path) -> None:
        data.save(folder / checkpoints.WEIGHTS, weights)
        data.save(folder / checkpoints.LOG, log)
        if with_replay:
            _save_replay(folder, learner, index, min(counters["stored"], learner.slots))

    description = {
        "game": run.game,
        "seed": run.seed,
        "config": run.config.parameters,
        "counters": dict(counters),
        "replay": with_replay,
        **learner.learns_from(index),
    }
    checkpoints.write(layout.checkpoints_dir(run.folder), iteration, write, description)


def _save_replay(folder: pathlib.Path, learner: Learner, index: int, steps: int) -> None:
    for name in learner.memory._fields:
        parts = (
            learner.read_memory(index, name, start, min(start + _CHUNK_STEPS, steps)).tobytes()
            for start in range(0, steps, _CHUNK_STEPS)
        )
        arrays.save_parts(checkpoints.replay_parts(folder, name), parts)


def _load_replay(folder: pathlib.Path, learner: Learner, index: int, steps: int) -> None:
    for name, field in learner.memory._asdict().items():
        shape, dtype = field.shape[2:], field.dtype
        starts = range(0, steps, _CHUNK_STEPS)
        counts = [min(_CHUNK_STEPS, steps - start) for start in starts]
        step_bytes = int(np.prod(shape)) * dtype.itemsize
        parts = arrays.load_parts(
            checkpoints.replay_parts(folder, name), [count * step_bytes for count in counts]
        )
        for start, count, part in zip(starts, counts, parts, strict=True):
            learner.write_memory(
                index, name, start, np.frombuffer(part, dtype).reshape(count, *shape)
            )


class LatestCheckpoint(NamedTuple):
    """A run's newest usable checkpoint."""

    folder: pathlib.Path
    manifest: Mapping[str, Any]
    log: Log

    @property
    def iterations(self) -> int:
        """Number of finished iterations."""
        return self.manifest["iteration"] + 1


def find(run: Run, report: checkpoints.Report) -> LatestCheckpoint | None:
    """Finds a run's newest usable checkpoint; None if there is none.

    `report` is given a line for each checkpoint that is skipped.

    Raises:
        checkpoints.CheckpointError: if there are checkpoints or logs, but nothing to resume
            from, or another configuration made them.
    """
    newest = layout.newest_checkpoint(run.folder, report, f"remove {run.folder} to start over")
    if newest is None:
        return None
    folder, manifest = newest
    if "counters" not in manifest:
        raise checkpoints.CheckpointError(
            f"{folder} is not of vectorized training; log_dqn.train resumes from it"
        )
    _check_is_of(folder, manifest, {"game": run.game, "seed": run.seed})
    remedy = f"resume with its settings, or give another results_dir, or remove {run.folder}"
    configuration.check_same(folder, manifest["config"], run.config.parameters, remedy)
    return LatestCheckpoint(folder, manifest, data.load(folder / checkpoints.LOG))


def _check_is_of(folder: pathlib.Path, manifest: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Checks that a checkpoint is of what is trained now, by name, as far as its manifest says."""
    for name, value in now.items():
        then = manifest.get(name, value)
        if then != value:
            raise checkpoints.CheckpointError(
                f"{folder} is a checkpoint of another {name}: it was {then} and is {value}"
            )


def load(found: LatestCheckpoint, learner: Learner, index: int) -> dict[str, int]:
    """Loads a checkpoint into a learner, as its run of that index; returns the run's `COUNTERS`.

    Without a saved replay memory the run starts with an empty one.

    Raises:
        checkpoints.CheckpointError: if it doesn't fit.
    """
    counters = dict(found.manifest["counters"])
    _check_is_of(found.folder, found.manifest, learner.learns_from(index))
    try:
        learner.set_run_weights(index, data.load(found.folder / checkpoints.WEIGHTS))
        if not found.manifest["replay"]:
            return {**counters, "stored": 0}
        _load_replay(found.folder, learner, index, min(counters["stored"], learner.slots))
    except (ValueError, KeyError, TypeError) as error:
        raise checkpoints.CheckpointError(f"{found.folder} can't be loaded: {error}") from error
    return counters


def load_params(
    folder: pathlib.Path,
    agent: Agent,
    network: networks.Network,
    state_shape: tuple[int, ...],
    num_actions: int,
) -> dict[str, Any]:
    """Returns the parameters of the online network alone, by layer, from a checkpoint's folder.

    `agent` is the run's. The other arguments are those of `agents.initial_params`.

    Raises:
        checkpoints.CheckpointError: if they don't fit.
    """
    init = functools.partial(
        initial_params,
        agent.head_inits,
        network,
        state_shape=state_shape,
        num_actions=num_actions,
        columns=num_actions,
    )
    expected = jax.eval_shape(init, jax.random.key(0))
    try:
        # They are the first of `Weights`.
        leaves = data.load(folder / checkpoints.WEIGHTS)[: len(jax.tree.leaves(expected))]
        return trees.with_leaves(expected, leaves)
    except (ValueError, TypeError) as error:
        raise checkpoints.CheckpointError(f"{folder} can't be loaded: {error}") from error
