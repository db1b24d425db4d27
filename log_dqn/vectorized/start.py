"""Starting a job: its settings, its runs and their folders."""

import collections
import contextlib
import itertools
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import gin
import jax

from log_dqn import games, scan
from log_dqn.checks import check
from log_dqn.program import gin_files as files
from log_dqn.run_folder import configuration, layout, lock
from log_dqn.vectorized import agents, environments, learner, networks, placement, runs, training
from log_dqn.vectorized.schedule import Protocol


class Setting(NamedTuple):
    """A setting of the scan, with what gin makes of it.

    Attributes:
        setting: the setting.
        protocol: what its runs consist of.
        agent: their agent.
        config: the gin configuration in force.
    """

    setting: scan.Setting
    protocol: Protocol
    agent: agents.Agent
    config: configuration.Configuration


def configure(
    gin_files: Sequence[str],
    gin_bindings: Sequence[str],
    agent: str | None = None,
    capacity: int | None = None,
) -> None:
    """Reads the gin files, the bindings and the short forms.

    Args:
        gin_files: gin files (see `gin_files.find_gin_file`); if none, the agent's own.
        gin_bindings: lines of gin.
        agent: agent, or None to leave the configuration's.
        capacity: transitions that a run remembers, or None likewise.

    Raises:
        ValueError: if the agent, a file or a gin name doesn't exist.
    """
    if agent is not None:
        check("agent", agent, agent in agents.AGENTS, f"one of {', '.join(agents.AGENTS)}")
    default = f"vectorized_{agent or files.DEFAULT_AGENT}.gin"
    files.read(gin_files, gin_bindings, default)
    if capacity is not None:
        gin.parse_config(f"VectorizedRunner.replay_capacity = {capacity}")


def read_settings(scans: Sequence[str], agent: str | None = None) -> list[Setting]:
    """Returns the settings of some scans.

    Args:
        scans: scans; see `scan.read`.
        agent: what the configured agent has to be, or None for any.

    Raises:
        ValueError: if a setting is outside its range, or differs where all runs must be alike.
    """
    settings = []
    for setting in scan.parse(scans):
        for binding in setting.gin_bindings():
            with files.explained("scan", binding):
                gin.parse_config(binding)
        protocol = Protocol()
        check(
            "agent", agent, agent in (None, protocol.agent),
            f"{protocol.agent!r}, which the gin files configure",
        )  # fmt: skip
        settings.append(_read_setting(setting, protocol))
    first = settings[0]
    for other in settings[1:]:
        check(
            "scan", other.setting.name,
            other.protocol == first.protocol and other.agent.shared == first.agent.shared
            and _optimizer_settings(other.config) == _optimizer_settings(first.config),
            f"of settings that may differ within a job: not {', '.join(first.agent.shared)}, those "
            "of VectorizedRunner or of rmsprop_tf",
        )  # fmt: skip
    return settings


def _read_setting(setting: scan.Setting, protocol: Protocol) -> Setting:
    agent = agents.AGENTS[protocol.agent]()
    most = max(protocol.replay_capacity - environments.STACK_SIZE, 1)
    check(
        "update_horizon", agent.update_horizon, agent.update_horizon <= most,
        f"at most {most}, for a replay_capacity of {protocol.replay_capacity}",
    )  # fmt: skip
    _check_bindings_are_read(protocol.agent, type(agent).__name__)
    agent.optimizer(agent.constants)  # So that gin notes its settings.
    config = configuration.operative()
    used = {".".join(name.split(".")[-2:]) for name in config.parameters}
    for parameter in setting.bindings:
        name = ".".join(parameter.rpartition("/")[2].split(".")[-2:])
        check(
            "scan", parameter, name in used,
            f"a parameter that the agent uses, such as {type(agent).__name__}.gamma",
        )  # fmt: skip
    return Setting(setting, protocol, agent, config)


def _check_bindings_are_read(agent: str, class_name: str) -> None:
    """Checks that gin binds nothing that isn't read; it is silent on those."""
    read = {"VectorizedRunner", class_name, "rmsprop_tf"}
    for configurable, parameter, value in configuration.bindings():
        name = f"{configurable}.{parameter}"
        # The agents have a learning rate of their own.
        is_read = configurable in read and name != "rmsprop_tf.learning_rate"
        check(name, value, is_read, f"left out, since {agent} reads {class_name}'s settings")


def _optimizer_settings(config: configuration.Configuration) -> dict[str, Any]:
    return {n: value for n, value in config.parameters.items() if n.startswith("rmsprop_tf.")}


def plan_runs(
    results_dir: pathlib.Path, settings: Sequence[Setting], games: Sequence[str], num_seeds: int
) -> list[runs.Run]:
    """Returns the runs of a study.

    Args:
        results_dir: folder of all results.
        settings: the settings of the scan.
        games: games in Dopamine's spelling.
        num_seeds: seeds of each game; they are 1, 2, ....
    """
    planned = []
    for setting, protocol, agent, config in settings:
        for game in games:
            for seed in range(1, num_seeds + 1):
                folder = layout.run_dir(results_dir, protocol.agent, setting.name, game, seed)
                planned.append(runs.Run(protocol.agent, setting, game, seed, agent, config, folder))
    return planned


def unfinished(
    planned: Sequence[runs.Run], num_iterations: int
) -> tuple[list[runs.Run], list[runs.Found | None]]:
    """Returns the runs that have iterations left, each with its checkpoint if it has one.

    Args:
        planned: all runs.
        num_iterations: iterations of a run.

    Raises:
        checkpoints.CheckpointError: if a run can't go on.
        OSError: if a file can't be read.
    """

    def report(message: str) -> None:
        print(f"log_dqn.train_vectorized: warning: {message}", file=sys.stderr, flush=True)

    found = [runs.find(run, report) for run in planned]
    left = [f is None or f.iterations < num_iterations for f in found]
    if not all(left):
        print(f"{left.count(False)} of {len(left)} runs have finished.", flush=True)
    return list(itertools.compress(planned, left)), list(itertools.compress(found, left))


def create_job(
    job_runs: Sequence[runs.Run],
    protocol: Protocol,
    found: Sequence[runs.Found | None],
    checkpoint_replay: bool,
    stack: contextlib.ExitStack,
) -> training.Job:
    """Makes the runs' folders and their job. If that fails, the new folders are gone again.

    Args:
        job_runs: the runs.
        protocol: what each consists of.
        found: each run's checkpoint, or None.
        checkpoint_replay: whether checkpoints hold the replay memory.
        stack: holds the runs' folders.

    Returns:
        The job.

    Raises:
        ValueError: if the replay memories fit nowhere, or a folder can't be written or is in use.
        checkpoints.CheckpointError: if a checkpoint doesn't fit.
        OSError: if a file can't be read or written.
    """
    problem = learner.Problem(
        networks.nature,
        environments.FRAME_SHAPE,
        "uint8",
        environments.STACK_SIZE,
        protocol.batch_size,
        protocol.replay_capacity,
    )
    together = training.runs_per_call()
    place = placement.place(
        job_runs[0].agent,
        problem,
        environments.MAX_ACTIONS,
        len(job_runs),
        placement.free(),
        together,
    )
    atari = environments.AtariGames([run.game for run in job_runs], protocol.max_steps_per_episode)
    with contextlib.ExitStack() as undo:
        for run in job_runs:
            lock.claim("results_dir", run.folder, stack, undo)
        job = training.Job(
            job_runs, protocol, problem, atari, found, checkpoint_replay, place.on_host, together
        )
        for run in job_runs:
            configuration.write(run.folder, run.config)
        undo.pop_all()
    _announce(job_runs, protocol, place)
    return job


def _announce(job_runs: Sequence[runs.Run], protocol: Protocol, place: placement.Place) -> None:
    per_game = collections.Counter(run.game for run in job_runs)
    shown = games.listing([f"{game} ({count})" for game, count in per_game.items()])
    count = "1 run" if len(job_runs) == 1 else f"{len(job_runs)} runs"
    device = jax.devices()[0]
    where = "the host's memory" if place.on_host or device.platform == "cpu" else "its memory"
    print(
        f"Training {count} of {protocol.agent} on {device.device_kind}: {shown}; "
        f"replay memories of {protocol.replay_capacity} transitions take "
        f"{place.replay_bytes / 1e9:.2f} GB of {where}",
        flush=True,
    )
    if not runs.Events.are_written():
        print("TensorBoard is not installed: no events are written", flush=True)
