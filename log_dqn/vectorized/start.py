"""Starting a job, all that one process trains: its settings, its runs and their folders."""

import collections
import contextlib
import functools
import itertools
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import gin
import jax

from log_dqn import games, scan
from log_dqn.checks import check
from log_dqn.jax import devices
from log_dqn.jax.optimizers import OPTIMIZERS
from log_dqn.program import gin_files as files
from log_dqn.program import progress, shell, words
from log_dqn.run_folder import configuration, layout, lock
from log_dqn.vectorized import (
    agents,
    device_trainer,
    environments,
    jax_games,
    learner,
    networks,
    placement,
    pool,
    runs,
    training,
)
from log_dqn.vectorized.schedule import RunnerSettings


class ReadSetting(NamedTuple):
    """A setting of the scan, with what gin makes of it.

    Attributes:
        setting: the setting.
        runner: what its runs consist of.
        agent: their agent.
        config: the gin configuration in force.
    """

    setting: scan.Setting
    runner: RunnerSettings
    agent: agents.Agent
    config: configuration.Configuration


def configure(written: files.Written, capacity: int | None = None) -> None:
    """Makes gin read files, bindings, and, if given, the transitions that a run remembers."""
    files.read(written)
    if capacity is not None:
        gin.parse_config(f"VectorizedRunner.replay_capacity = {capacity!r}")


def read_settings(
    lines: Sequence[files.Line], scans: Sequence[str], agent: str | None = None
) -> list[ReadSetting]:
    """Returns the settings of some scans.

    Args:
        lines: lines of gin, all of which the settings must read.
        scans: the scans.
        agent: an agent, which must be the configured one, or None.
    """
    settings = []
    for setting in scan.parse(scans):
        for binding in setting.gin_bindings():
            with files.explained("scan", binding):
                gin.parse_config(binding)
        runner = RunnerSettings()
        check(
            "agent", agent, agent in (None, runner.agent),
            f"{runner.agent!r}, which the gin files configure",
        )  # fmt: skip
        read = _read_setting(setting, runner)
        files.check_is_read(lines, read.config)
        settings.append(read)
    first = settings[0]
    for other in settings[1:]:
        check(
            "scan", other.setting.name,
            other.runner == first.runner and other.agent.shared == first.agent.shared
            and _optimizer_settings(other.config) == _optimizer_settings(first.config),
            f"of settings that may differ within a job: not {', '.join(first.agent.shared)}, those "
            "of VectorizedRunner or of the optimizer",
        )  # fmt: skip
    return settings


def _read_setting(setting: scan.Setting, runner: RunnerSettings) -> ReadSetting:
    agent = agents.AGENTS[runner.agent]()
    most = max(runner.replay_capacity - runner.stack_size, 1)
    check(
        "update_horizon", agent.update_horizon, agent.update_horizon <= most,
        f"at most {most}, for a replay_capacity of {runner.replay_capacity}",
    )  # fmt: skip
    agent.create_optimizer(agent.constants)  # So that gin notes its settings.
    return ReadSetting(setting, runner, agent, configuration.operative())


def _optimizer_settings(config: configuration.Configuration) -> dict[str, Any]:
    return {n: v for n, v in config.parameters.items() if n.split(".")[0] in OPTIMIZERS}


def plan_runs(
    results_dir: pathlib.Path,
    settings: Sequence[ReadSetting],
    games: Sequence[str],
    seeds: Sequence[int],
) -> list[runs.Run]:
    """Returns the runs of a study: one for each setting, game and seed."""
    planned = []
    for (setting, runner, agent, config), game, seed in itertools.product(settings, games, seeds):
        folder = layout.run_dir(results_dir, runner.agent, setting.name, game, seed)
        planned.append(runs.Run(runner.agent, setting, game, seed, agent, config, folder))
    return planned


def unfinished(
    planned: Sequence[runs.Run], num_iterations: int
) -> tuple[list[runs.Run], list[runs.LatestCheckpoint | None]]:
    """Returns the runs that have iterations left, each with its checkpoint if it has one."""

    def report(message: str) -> None:
        program = shell.started_as("train-vectorized")
        print(f"{program}: warning: {message}", file=sys.stderr, flush=True)

    found = [runs.find(run, report) for run in planned]
    left = [f is None or f.iterations < num_iterations for f in found]
    if not all(left):
        print(f"{left.count(False)} of {len(left)} runs have finished.", flush=True)
    return list(itertools.compress(planned, left)), list(itertools.compress(found, left))


def check_fits(runner: RunnerSettings, game: str) -> None:
    """Checks that the network, and the states it is given, fit a game."""
    if game not in jax_games.GAMES:
        check("network", runner.network, runner.network == "nature", "'nature' for Atari")
        return
    check(
        "network", runner.network, runner.network != "nature",
        "'revisiting_rainbow' or 'minatar' for MinAtar",
    )  # fmt: skip
    check("stack_size", runner.stack_size, runner.stack_size == 1, "1 for MinAtar")


def create_pool(
    job_runs: Sequence[runs.Run],
    runner: RunnerSettings,
    found: Sequence[runs.LatestCheckpoint | None],
    checkpoint_replay: bool,
    num_threads: int,
    threads_of_run: int,
    stack: contextlib.ExitStack,
) -> pool.Pool:
    """Makes the runs' folders and what trains them. If that fails, the new folders are gone again.

    A CPU computes one run a core side by side: more in one call gain nothing there, and each run's
    arithmetic is the very same whatever runs beside it. Another device computes all runs in one
    call; where the games are JAX programs, all of a game.

    Args:
        job_runs: the runs.
        runner: what each consists of.
        found: each run's checkpoint, or None.
        checkpoint_replay: whether checkpoints hold the replay memory.
        num_threads: cores of a CPU that are used.
        threads_of_run: threads that each of a CPU's runs computes in.
        stack: holds the runs' folders.
    """
    check_fits(runner, job_runs[0].game)
    workload = training.Workload(job_runs, runner, found, checkpoint_replay)
    on_cpu = jax.default_backend() == "cpu"
    workers = min(num_threads, len(job_runs)) if on_cpu else 1
    shown = progress.Progress(
        [0 if f is None else f.iterations for f in found],
        runner.num_iterations,
        runner.steps_per_iteration,
        max(run.agent.min_replay_history for run in job_runs),
    )
    kinds: dict[str, _Kind] = {}
    trainers = []
    for indices in _parts(job_runs, on_cpu):
        name = _kind_of(job_runs[indices[0]])
        if name not in kinds:
            kinds[name] = _plan_kind(workload, indices, workers if on_cpu else len(indices))
        trainers.append(functools.partial(_create_trainer, workload, kinds[name], indices, shown))
    with contextlib.ExitStack() as undo:
        for run in job_runs:
            lock.claim(run.folder, stack, undo)
        for run in job_runs:
            configuration.write(run.folder, run.config)
        undo.pop_all()
    places = [kind.place for kind in kinds.values()]
    _announce(workload, workers, threads_of_run, max(places, key=lambda place: place.replay_bytes))
    if not runs.Events.are_written():
        print("TensorBoard is not installed: no events are written", flush=True)
    return pool.Pool(trainers, devices.side_by_side(workers), shown)


class _Kind(NamedTuple):
    """What trainers of runs that compute the same have in common.

    Attributes:
        game: the game, if it is a JAX program.
        problem: what the runs learn from.
        place: where the memories of those that learn side by side lie.
    """

    game: jax_games.JaxGame | None
    problem: learner.Problem
    place: placement.Placement


def _kind_of(run: runs.Run) -> str:
    """Returns a name of the program that trains a run; all Atari games have one."""
    return run.game if run.game in jax_games.GAMES else "Atari"


def _parts(job_runs: Sequence[runs.Run], on_cpu: bool) -> list[list[int]]:
    """Returns the indices of the runs that learn in one call, for each trainer."""
    if on_cpu:
        return [[index] for index in range(len(job_runs))]
    by_program = collections.defaultdict(list)
    for index, run in enumerate(job_runs):
        by_program[_kind_of(run)].append(index)
    return list(by_program.values())


def _plan_kind(workload: training.Workload, indices: Sequence[int], at_a_time: int) -> _Kind:
    """Returns what the trainers of runs that are like those of a trainer share.

    Args:
        workload: all runs.
        indices: those of the trainer.
        at_a_time: how many of them learn side by side.
    """
    runner, run = workload.runner, workload.runs[indices[0]]
    if run.game in jax_games.GAMES:
        game = jax_games.create(run.game, runner.max_steps_per_episode)
        frames, num_actions = (game.frame_shape, "bool"), game.num_actions
    else:
        game = None
        frames, num_actions = (environments.FRAME_SHAPE, "uint8"), environments.MAX_ACTIONS
    problem = learner.Problem(
        networks.create(runner.network, runner.precision), *frames,
        runner.stack_size, runner.batch_size, runner.replay_capacity,
    )  # fmt: skip
    place = placement.place(run.agent, problem, num_actions, at_a_time, placement.free())
    return _Kind(game, problem, place)


def _create_trainer(
    workload: training.Workload, kind: _Kind, indices: Sequence[int], shown: progress.Progress
) -> training.Trainer:
    """Returns the trainer of some runs of a kind; `shown` is the progress of all runs."""
    part = workload._replace(
        runs=[workload.runs[i] for i in indices], found=[workload.found[i] for i in indices]
    )
    if kind.game is not None:
        return device_trainer.DeviceTrainer(part, kind.problem, kind.game, shown, indices)
    names = [run.game for run in part.runs]
    atari = environments.AtariGames(names, workload.runner.max_steps_per_episode)
    return training.HostTrainer(part, kind.problem, atari, shown, indices, kind.place.on_host)


def _resumed(found: Sequence[runs.LatestCheckpoint | None]) -> str:
    """Returns, in words, from which iterations runs are resumed; nothing if none is."""
    iterations = [checkpoint.iterations for checkpoint in found if checkpoint is not None]
    if not iterations:
        return ""
    first, last = min(iterations), max(iterations)
    count = f"{len(iterations)} of them " * (len(found) > 1)
    return f"; {count}resumed from iteration {first}{f' to {last}' * (first < last)}"


def _announce(
    workload: training.Workload, workers: int, threads_of_run: int, place: placement.Placement
) -> None:
    per_game = collections.Counter(run.game for run in workload.runs)
    listed = games.listing([f"{game} ({count})" for game, count in per_game.items()])
    on_cpu = jax.default_backend() == "cpu"
    several = len(workload.runs) > 1
    at_a_time = f", {workers} at a time" if on_cpu and several else ""
    on_threads = (
        f" with {words.counted(threads_of_run, 'thread')}{' each' * several}" if on_cpu else ""
    )
    where = "the host's memory" if place.on_host or on_cpu else "its memory"
    print(
        f"Training {words.counted(len(workload.runs), 'run')} of {workload.runner.agent} on "
        f"{jax.devices()[0].device_kind}{at_a_time}{on_threads}: {listed}; replay memories of "
        f"{workload.runner.replay_capacity} transitions take {place.replay_bytes / 1e9:.2f} GB of "
        f"{where}{_resumed(workload.found)}",
        flush=True,
    )
