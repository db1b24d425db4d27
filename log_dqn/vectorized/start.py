"""Starting a job, all that one process trains: its settings, its runs and their folders."""

import collections
import contextlib
import functools
import itertools
import pathlib
import resource
from collections.abc import Callable, Sequence
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
    device_loop,
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
    """A setting of the scan, what gin makes of it, and the configuration in force."""

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
    """Returns the settings of some scans, which must read all of some lines of gin.

    The agent, if one is given, must be the configured one.
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
        chosen = agents.AGENTS[runner.agent]()
        most = max(runner.replay_capacity - runner.stack_size, 1)
        check(
            "update_horizon", chosen.update_horizon, chosen.update_horizon <= most,
            f"at most {most}, for a replay_capacity of {runner.replay_capacity}",
        )  # fmt: skip
        chosen.create_optimizer(chosen.constants)  # So that gin notes its settings.
        settings.append(ReadSetting(setting, runner, chosen, configuration.operative()))
        files.check_is_read(lines, settings[-1].config)
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
    report = functools.partial(shell.warn, "train-vectorized")
    found = [runs.find(run, report) for run in planned]
    left = [f is None or f.iterations < num_iterations for f in found]
    for run, checkpoint, goes_on in zip(planned, found, left, strict=True):
        if goes_on or checkpoint is None:  # Its trainer writes its results.
            continue
        if not layout.log_path(run.folder, checkpoint.iterations - 1).exists():
            with contextlib.closing(runs.Events(run.folder)) as events:
                runs.restore_results(run.folder, checkpoint.log, checkpoint.iterations - 1, events)
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
    workload: training.Workload,
    num_threads: int,
    threads_of_run: int,
    stack: contextlib.ExitStack,
) -> pool.Pool:
    """Makes the runs' folders and what trains them. If that fails, the new folders are gone again.

    A CPU computes one run a core side by side: more in one call gain nothing there, and each run's
    arithmetic is the very same whatever runs beside it. Another device computes all runs in one
    call; where the games are JAX programs, all of a game.

    Args:
        workload: all runs.
        num_threads: cores of a CPU that are used.
        threads_of_run: threads that each of a CPU's runs computes in.
        stack: holds the runs' folders.
    """
    job_runs, runner = workload.runs, workload.runner
    check_fits(runner, job_runs[0].game)
    on_cpu = jax.default_backend() == "cpu"
    workers = min(num_threads, len(job_runs)) if on_cpu else 1
    shown = progress.Progress(
        [0 if f is None else f.iterations for f in workload.found],
        runner.num_iterations,
        runner.steps_per_iteration,
        max(run.agent.min_replay_history for run in job_runs),
    )
    by_program = collections.defaultdict(list)
    for index, run in enumerate(job_runs):
        # All Atari games have one.
        by_program[run.game if run.game in jax_games.GAMES else "Atari"].append(index)
    places, parts = [], []
    for indices in by_program.values():
        at_a_time = workers if on_cpu else len(indices)
        place, create = _plan_trainers(workload, job_runs[indices[0]], at_a_time, shown)
        places.append(place)
        learning_together = [[index] for index in indices] if on_cpu else [indices]
        parts += [(part, create) for part in learning_together]
    parts.sort(key=lambda part: part[0])
    trainers = [functools.partial(create, part) for part, create in parts]
    # Each run holds a lock and its events open.
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    with contextlib.ExitStack() as undo:
        for run in job_runs:
            lock.claim(run.folder, stack, undo)
        for run in job_runs:
            configuration.write(run.folder, run.config)
        undo.pop_all()
    _announce(workload, workers, threads_of_run, max(places, key=lambda place: place.replay_bytes))
    if not runs.Events.are_written():
        print("TensorBoard is not installed: no events are written", flush=True)
    return pool.Pool(trainers, devices.side_by_side(workers), shown)


def _plan_trainers(
    workload: training.Workload, run: runs.Run, at_a_time: int, shown: progress.Progress
) -> tuple[placement.Placement, Callable[[Sequence[int]], training.Trainer]]:
    """Plans the trainers of runs, of which one is given, that one program trains.

    Returns where the memories of those that learn side by side, so many at a time, lie, and a
    function that creates the trainer of some of them, given their indices.
    """
    runner, game = workload.runner, None
    if run.game in jax_games.GAMES:
        game = jax_games.create(run.game, runner.max_steps_per_episode)
        frames, num_actions = (game.frame_shape, "bool"), game.num_actions
    else:
        frames, num_actions = (environments.FRAME_SHAPE, "uint8"), environments.MAX_ACTIONS
    problem = learner.Problem(
        networks.create(runner.network, runner.precision), *frames,
        runner.stack_size, runner.batch_size, runner.replay_capacity,
    )  # fmt: skip
    place = placement.place(run.agent, problem, num_actions, at_a_time, placement.free())

    def create(indices: Sequence[int]) -> training.Trainer:
        part = workload._replace(
            runs=[workload.runs[i] for i in indices], found=[workload.found[i] for i in indices]
        )
        if game is not None:
            return device_loop.DeviceTrainer(part, problem, game, shown, indices)
        names = [run.game for run in part.runs]
        atari = environments.AtariGames(names, runner.max_steps_per_episode)
        return training.HostTrainer(part, problem, atari, shown, indices, place.on_host)

    return place, create


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
