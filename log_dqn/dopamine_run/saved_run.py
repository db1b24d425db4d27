"""Finds, saves and loads what a run of Dopamine's agents needs to resume."""

import functools
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from log_dqn.cli import environments, shell
from log_dqn.dopamine_run import agents, seeding
from log_dqn.jax import agent_checkpoint as jax_agent_checkpoint
from log_dqn.run_folder import checkpoints, configuration, data, layout
from log_dqn.run_folder.checkpoints import CheckpointError
from log_dqn.tf import agent_checkpoint

_OTHER = "resume with its settings, or give another base_dir"

Found = tuple[pathlib.Path | None, Mapping[str, Any]]
"""What a run can resume from: the folder of its newest usable checkpoint and its manifest. The
folder is None if there are only checkpoints of Dopamine's own runner."""


class Finished(NamedTuple):
    """A finished iteration in a checkpoint, beside the agent and random states."""

    iteration: int
    log: layout.Log
    metrics: dict[str, Any]


_warn = functools.partial(shell.warn, "train")


def _remedy(run_dir: pathlib.Path) -> str:
    """Returns what can be done where a run can't resume."""
    if layout.is_run(run_dir):  # Else --restart refuses.
        return "--restart starts over"
    return f"remove {run_dir}, or give another base_dir"


def find(run_dir: pathlib.Path) -> Found | None:
    """Returns what a run can resume from, or None for a run that has nothing yet.

    Raises:
        CheckpointError: if there are checkpoints or logs, but nothing to resume from, or vectorized
            training made them.
    """
    dopamine = bool(agent_checkpoint.dopamine_iterations(layout.checkpoints_dir(run_dir)))
    try:
        newest = layout.newest_checkpoint(run_dir, _warn, _remedy(run_dir))
    except CheckpointError:
        if not dopamine:
            raise
        newest = None
    if newest is None:
        return (None, {}) if dopamine else None
    folder, manifest = newest
    if "counters" in manifest:
        raise CheckpointError(
            f"{folder} is of vectorized training; log_dqn.train_vectorized resumes from it"
        )
    return newest


def _of_agent() -> Any:
    """Returns the module that saves and loads the configured agent."""
    return jax_agent_checkpoint if agents.uses_jax() else agent_checkpoint


def check_weights(agent: Any) -> None:
    """Checks an agent's weights; raises FloatingPointError if one is NaN or infinite."""
    _of_agent().check_weights(agent)


def save(
    run_dir: pathlib.Path,
    state: Finished,
    agent: Any,
    environment: Any,
    parameters: Mapping[str, Any],
) -> None:
    """Writes a checkpoint of a run whose agent is between two episodes.

    Raises:
        FloatingPointError: if a weight is NaN or infinite.
    """

    def write(folder: pathlib.Path) -> None:
        data.save(folder / checkpoints.AGENT, _of_agent().save(agent, folder))
        data.save(folder / checkpoints.RANDOM, seeding.random_state(environment))
        data.save(folder / checkpoints.LOG, state.log)
        data.save(folder / checkpoints.METRICS, state.metrics)

    checkpoints.write(
        layout.checkpoints_dir(run_dir), state.iteration, write, {"config": parameters}
    )


def load(
    run_dir: pathlib.Path,
    found: Found,
    agent: Any,
    environment: Any,
    parameters: Mapping[str, Any],
) -> Finished:
    """Loads agent and random states, and returns the rest of the checkpoint.

    Agent and environment have been made with the same settings.

    Raises:
        CheckpointError: if the checkpoint doesn't load, or is of another configuration.
    """
    folder, manifest = found
    if folder is None:
        return _load_dopamine(run_dir, agent)
    try:
        deletes = ", or --restart, which deletes this run" * layout.is_run(run_dir)
        configuration.check_same(folder, manifest["config"], parameters, _OTHER + deletes)
        _of_agent().load(agent, folder, data.load(folder / checkpoints.AGENT))
        seeding.restore_random_state(environment, data.load(folder / checkpoints.RANDOM))
        log, metrics = data.load(folder / checkpoints.LOG), data.load(folder / checkpoints.METRICS)
        return Finished(manifest["iteration"], log, metrics)
    except environments.Fault:  # The checkpoint is good.
        raise
    except (ValueError, KeyError, tf.errors.OpError) as error:
        reason = _first_line(error)
        raise CheckpointError(f"{folder} can't be loaded: {reason}; {_remedy(run_dir)}") from error


def load_weights(folder: pathlib.Path, agent: Any) -> None:
    """Loads what an agent needs to act, and nothing else, from the folder of a checkpoint.

    Raises:
        CheckpointError: if it can't be read, or doesn't fit the agent.
    """
    try:
        if agents.uses_jax():
            jax_agent_checkpoint.load_weights(agent, data.load(folder / checkpoints.AGENT))
        else:
            agent_checkpoint.load_weights(agent, folder)
    except (ValueError, KeyError, TypeError, tf.errors.OpError) as error:
        raise CheckpointError(f"{folder} can't be loaded: {_first_line(error)}") from error


def _load_dopamine(run_dir: pathlib.Path, agent: Any) -> Finished:
    """Loads the newest usable checkpoint of Dopamine's own runner."""
    root = layout.checkpoints_dir(run_dir)
    if agents.uses_jax():
        raise CheckpointError(
            f"{root} holds Dopamine's checkpoints, which are read of TensorFlow agents only; "
            f"{_remedy(run_dir)}"
        )
    for iteration in reversed(agent_checkpoint.dopamine_iterations(root)):
        try:
            bundle = agent_checkpoint.load_dopamine(agent, root, iteration)
        except (ValueError, KeyError, FileNotFoundError, tf.errors.OpError) as error:
            _warn(
                f"checkpoint {iteration} in {root} is damaged and is skipped: {_first_line(error)}"
            )
            continue
        _warn(
            f"checkpoint {iteration} in {root} is Dopamine's: it holds no random state, and "
            "doesn't say of which game and configuration it is"
        )
        metrics = {"statistics": {}, "file_number": layout.next_metrics_number(run_dir)}
        return Finished(bundle["current_iteration"], bundle["logs"], metrics)
    raise CheckpointError(f"none of the checkpoints in {root} is usable; {_remedy(run_dir)}")


def _first_line(error: Exception) -> str:
    """Returns the first line of an error; TensorFlow's have a page."""
    return str(getattr(error, "message", None) or error).splitlines()[0]


def _pickle_collector(dispatcher: Any) -> Any:
    collectors = dispatcher._collectors
    return next((c for c in collectors if c.get_name() == "pickle"), None)


def metrics_of(dispatcher: Any) -> dict[str, Any]:
    """Returns what Dopamine's collector of metrics has collected; nothing if there is none."""
    collector = _pickle_collector(dispatcher)
    if collector is None:
        return {}
    # The file's number is that of the one written after this checkpoint, and again when the run
    # resumes.
    return {"statistics": collector._statistics, "file_number": collector._file_number}


def restore_metrics(dispatcher: Any, metrics: Mapping[str, Any]) -> None:
    """Puts back what `metrics_of` has returned."""
    collector = _pickle_collector(dispatcher)
    if collector is not None and metrics:
        for key, value in metrics["statistics"].items():
            collector._statistics[key].update(value)
        collector._file_number = metrics["file_number"]
