"""Starts a job, which is all that one process trains: its settings, runs and folders."""

import collections
import contextlib
import functools
import itertools
import pathlib
import re
import resource
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gin
import jax

from log_dqn import games, scan
from log_dqn.checks import check, of
from log_dqn.cli import environments as cli_environments
from log_dqn.cli import gin_files as files
from log_dqn.cli import progress, shell, words
from log_dqn.cli import settings as gin_settings
from log_dqn.games import JAX_GAMES
from log_dqn.jax import devices
from log_dqn.run_folder import configuration, layout, lock
from log_dqn.vectorized import (
    agents,
    device_loop,
    environments,
    jax_environments,
    learner,
    networks,
    pool,
    runs,
    training,
)
from log_dqn.vectorized.agents import RunnerSettings
from log_dqn.vectorized.environments import Game
from log_dqn.vectorized.jax_environments import JaxGame
from log_dqn.vectorized.request import FACTORIES

_creators = jax_environments.create_environment, environments.create_gymnasium

CREATORS = dict(zip(FACTORIES, _creators, strict=True))
"""The functions that create environments, by their names in gin."""


class ReadSetting(NamedTuple):
    """A setting of the scan, and what gin configures with it.

    The environment is created by one of `CREATORS`; None if gin names none.
    """

    setting: scan.Setting
    runner: RunnerSettings
    agent: agents.Agent
    config: configuration.Configuration
    environment: Game | None


def read_settings(lines: Sequence[files.Line], scans: Sequence[str]) -> list[ReadSetting]:
    """Returns the settings of some scans; gin has read files and bindings.

    Raises:
        ValueError: if a setting doesn't read one of the lines, or the settings can't be trained in
            one job.
    """
    settings = []
    for setting in scan.parse(scans):
        for binding in setting.gin_bindings():
            with files.explained("scan", binding):
                gin.parse_config(binding)
        with of("VectorizedRunner"):
            runner = RunnerSettings()
            gin_settings.check_holds_batch(
                "replay_capacity", runner.replay_capacity, runner.batch_size
            )
        agent_class = agents.AGENTS[runner.agent]
        with of(agent_class.__name__):
            chosen = agent_class()
        most = max(runner.replay_capacity - runner.stack_size, 1)
        check(
            f"{agent_class.__name__}.update_horizon", chosen.update_horizon,
            chosen.update_horizon <= most,
            f"at most {most}, for a replay_capacity of {runner.replay_capacity}",
        )  # fmt: skip
        with of(chosen.optimizer):
            chosen.create_optimizer(chosen.constants)  # So that gin notes its settings.
        environment = None
        for name, create in CREATORS.items():
            if files.bound(f"{name}.environment_id") is not None:
                environment = create(runner.max_steps_per_episode)
        if environment is not None and not isinstance(runner.network, str):
            # So that gin notes what it reads; `check_fits` says what is wrong.
            with contextlib.suppress(ValueError):
                _check_module(runner, environment)
        config = configuration.operative()
        settings.append(ReadSetting(setting, runner, chosen, config, environment))
        gin_settings.check_is_read(lines, settings[-1].config)
    # An environment's module may have set it.
    is_64_bit = jax.dtypes.canonicalize_dtype("float64") == "float64"
    check("jax_enable_x64", is_64_bit, not is_64_bit, "False: training computes in 32 bits")
    first = settings[0]
    for other in settings[1:]:
        check(
            "scan", other.setting.name,
            other.agent.shared == first.agent.shared
            and _shared_settings(other) == _shared_settings(first),
            "of settings that may differ within a command: not "
            f"{', '.join(first.agent.shared)}, those of VectorizedRunner, of the optimizer, of the "
            "network or of the environment",
        )  # fmt: skip
    return settings


def _shared_settings(read: ReadSetting) -> dict[str, Any]:
    """Returns all that gin has configured but the agent: the optimizer, the network and so on."""
    agent, parameters = type(read.agent).__name__, read.config.parameters
    return {n: value for n, value in parameters.items() if re.split("[./]", n)[-2] != agent}


def plan_runs(
    results_dir: pathlib.Path,
    settings: Sequence[ReadSetting],
    games: Sequence[str],
    seeds: Sequence[int],
) -> list[runs.Run]:
    """Returns the runs of a job: one for each setting, game and seed."""
    planned = []
    of_runs = itertools.product(settings, games, seeds)
    for (setting, runner, agent, config, _), game, seed in of_runs:
        folder = layout.run_dir(results_dir, runner.agent, setting.name, game, seed)
        planned.append(runs.Run(runner.agent, setting, game, seed, agent, config, folder))
    return planned


def claim_unfinished(
    planned: Sequence[runs.Run],
    num_iterations: int,
    stack: contextlib.ExitStack,
    undo: contextlib.ExitStack,
) -> tuple[list[runs.Run], list[runs.LatestCheckpoint | None]]:
    """Returns the runs that have iterations left, and each one's checkpoint or None.

    Their folders are created and locked; `stack` releases them, and `undo` removes new ones. A
    finished run's folder is locked only while its checkpoint is read.
    """
    report = functools.partial(shell.warn, "train-vectorized")
    # Each run holds a lock and its events open.
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    left: list[runs.Run] = []
    found: list[runs.LatestCheckpoint | None] = []
    for run in planned:
        with contextlib.ExitStack() as held:
            lock.claim(run.folder, held, undo)
            checkpoint = runs.find(run, report)
            if checkpoint is None or checkpoint.iterations < num_iterations:
                left.append(run)
                found.append(checkpoint)
                stack.push(held.pop_all())
            elif not layout.log_path(run.folder, checkpoint.iterations - 1).exists():
                # A trainer would write the results.
                last = checkpoint.iterations - 1
                with contextlib.closing(runs.Events(run.folder)) as events:
                    runs.restore_results(run.folder, checkpoint.log, last, events)
    if len(left) < len(planned):
        print(f"{len(planned) - len(left)} of {len(planned)} runs have finished.", flush=True)
    return left, found


def check_fits(runner: RunnerSettings, game: str, environment: Game | None = None) -> None:
    """Checks that the network, and the states it is given, fit a game or else an environment."""
    if environment is not None:
        with of("VectorizedRunner"):
            networks.by_shape(runner.network, environment.frame_shape)
            if not isinstance(runner.network, str):
                _check_module(runner, environment)
        return
    name = "VectorizedRunner.network"
    if game not in JAX_GAMES:
        check(name, runner.network, runner.network == "nature", "'nature' for Atari")
        return
    check(
        name, runner.network, runner.network in ("revisiting_rainbow", "minatar"),
        "'revisiting_rainbow' or 'minatar' for MinAtar",
    )  # fmt: skip
    check("VectorizedRunner.stack_size", runner.stack_size, runner.stack_size == 1, "1 for MinAtar")


def _check_module(runner: RunnerSettings, game: Game) -> None:
    """Checks a network of flax on the states of a game, without computing it."""
    key = jax.eval_shape(lambda: jax.random.key(0))
    # More than one state, so that a fixed batch size is found.
    shape = (2, *game.frame_shape, runner.stack_size)
    try:
        network = create_network(runner, game)
        params = jax.eval_shape(lambda key: network.init(key, shape[1:])[0], key)
        if any(leaf.dtype.kind == "V" for leaf in jax.tree.leaves(params)):
            why = "its parameters can't be saved; set param_dtype=jax.numpy.float32"
        elif agents.OUTPUT in params:
            why = f"{agents.OUTPUT!r} is the name of the layer that follows"
        elif jax.tree.leaves(params):
            states = jax.ShapeDtypeStruct(shape, game.frame_dtype)
            output = jax.eval_shape(network.apply, params, states).shape
            why = "" if len(output) == 2 and output[0] == 2 else f"2 states make {output}"
        else:
            why = "it has no parameters"
    except (Exception, SystemExit) as error:  # Whatever a user's module raises.
        why = cli_environments.explain(error)
    allowed = "a flax module with parameters that maps states to an output [batch, features]"
    named = getattr(runner.network, "__name__", type(runner.network).__name__)
    check("network", f"@{named}", not why, f"{allowed}: {why}")


def create_pool(workload: training.Workload, num_threads: int, threads_of_run: int) -> pool.Pool:
    """Creates the trainers of a job, and writes the configurations of its runs.

    A CPU trains one run a core: several in one call would not be faster, and so a run's arithmetic
    doesn't depend on the others (but a lone run of Atari has all cores, and rounds differently). A
    GPU trains all runs in one call, or as many as fit, of Atari or of one game in JAX.

    Args:
        workload: all runs.
        num_threads: cores that are used on a CPU.
        threads_of_run: threads of each run on a CPU.
    """
    job_runs, runner = workload.runs, workload.runner
    check_fits(runner, job_runs[0].game, workload.environment)
    on_cpu = jax.default_backend() == "cpu"
    workers = min(num_threads, len(job_runs)) if on_cpu else 1
    by_history = sorted((run.agent for run in job_runs), key=lambda agent: agent.min_replay_history)
    shown = progress.Progress(
        [0 if f is None else f.iterations for f in workload.found],
        runner.num_iterations,
        runner.steps_per_iteration,
        by_history[-1].min_replay_history,
    )
    by_program = collections.defaultdict(list)
    for index, run in enumerate(job_runs):
        # All Atari games have one.
        is_atari = workload.environment is None and run.game not in JAX_GAMES
        by_program["Atari" if is_atari else run.game].append(index)
    places, parts = [], []
    for indices in by_program.values():
        at_a_time = workers if on_cpu else len(indices)
        place, create = _plan_trainers(workload, job_runs[indices[0]], at_a_time, shown)
        places.append(place)
        size = 1 if on_cpu else place.num_runs
        parts += [(indices[i : i + size], create) for i in range(0, len(indices), size)]
    parts.sort(key=lambda part: part[0])
    trainers = [functools.partial(create, part) for part, create in parts]
    for run, found in zip(job_runs, workload.found, strict=True):
        if found is None:  # TensorBoard would draw both starts as one curve.
            for path in layout.events(run.folder):
                path.unlink()
        configuration.write(run.folder, run.config)
    _announce(workload, workers, threads_of_run, max(places, key=lambda place: place.replay_bytes))
    training_steps = runner.num_iterations * runner.training_steps
    gin_settings.warn_without_updates("train-vectorized", by_history[0], training_steps)
    if not runs.Events.are_written():
        print("TensorBoard is not installed: no events are written", flush=True)
    return pool.Pool(trainers, devices.side_by_side(workers), shown)


def _plan_trainers(
    workload: training.Workload, run: runs.Run, at_a_time: int, shown: progress.Progress
) -> tuple[pool.Placement, Callable[[Sequence[int]], training.Trainer]]:
    """Plans the trainers of the runs that are compiled together with `run`.

    `at_a_time` of them learn at a time. Returns what their replay memories take, and a function
    that creates the trainer of some of them, given their indices.
    """
    runner, game = workload.runner, workload.environment or environments.ATARI
    if run.game in JAX_GAMES:
        game = jax_environments.create_game(run.game, runner.max_steps_per_episode)
    problem = learner.Problem(
        create_network(runner, game), game.frame_shape, game.frame_dtype, runner.stack_size,
        runner.batch_size, runner.replay_capacity, game.cuts, runner.clip_rewards,
    )  # fmt: skip
    on_gpu = jax.default_backend() != "cpu"
    place = pool.place(
        run.agent, problem, game.num_actions, at_a_time, pool.free_memory(), in_turns=on_gpu
    )

    def create(indices: Sequence[int]) -> training.Trainer:
        part = workload._replace(
            runs=[workload.runs[i] for i in indices], found=[workload.found[i] for i in indices]
        )
        if isinstance(game, JaxGame):
            return device_loop.DeviceTrainer(part, problem, game, shown, indices)
        played: environments.AtariGames | environments.GymnasiumGames
        if game.make is not None:
            try:
                played = environments.GymnasiumGames(game, len(indices))
            except ValueError as error:
                raise shell.RunStopped(f"error: {shell.explain(error)}", status=2) from error
        else:
            names = [run.game for run in part.runs]
            played = environments.AtariGames(names, runner.max_steps_per_episode)
        return training.HostTrainer(part, problem, played, shown, indices)

    return place, create


def create_network(runner: RunnerSettings, game: Game) -> networks.Network:
    """Returns the network of some runs on a game."""
    name = networks.by_shape(runner.network, game.frame_shape)
    return networks.create(name, runner.precision, game.prepare)


def _resumed(found: Sequence[runs.LatestCheckpoint | None]) -> str:
    """Returns, in words, from which iterations runs are resumed; '' if none is."""
    iterations = [checkpoint.iterations for checkpoint in found if checkpoint is not None]
    if not iterations:
        return ""
    count = f"{len(iterations)} of them " * (len(found) > 1)
    return f"; {count}resumed from iteration {words.span(iterations)}"


def _announce(
    workload: training.Workload, workers: int, threads_of_run: int, place: pool.Placement
) -> None:
    per_game = collections.Counter(run.game for run in workload.runs)
    listed = games.listing([f"{game} ({count})" for game, count in per_game.items()])
    on_cpu = jax.default_backend() == "cpu"
    has_many_runs = len(workload.runs) > 1
    together = workers if on_cpu else place.num_runs
    in_turns = on_cpu or together < len(workload.runs)
    at_a_time = f", {together} at a time" if has_many_runs and in_turns else ""
    each = " each" * has_many_runs
    on_threads = f" with {words.counted(threads_of_run, 'thread')}{each}" * on_cpu
    where = "the host's memory" if on_cpu else "its memory"
    of_environment, in_checkpoints = "", ""
    if workload.environment is not None:
        chosen = networks.by_shape(workload.runner.network, workload.environment.frame_shape)
        network = getattr(chosen, "__name__", chosen)
        of_environment = f"network {network} for observations {workload.environment.shown}; "
        if isinstance(workload.environment, JaxGame) or workload.checkpoint_replay:
            of_run = place.replay_bytes / place.num_runs / 1e9
            in_checkpoints = f", and each run's at most {of_run:.2f} GB of its checkpoint"
    size = f"{place.replay_bytes / 1e9:.2f} GB"
    print(
        f"Training {words.counted(len(workload.runs), 'run')} of {workload.runner.agent} on "
        f"{jax.devices()[0].device_kind}{at_a_time}{on_threads}: {listed}; {of_environment}replay "
        f"memories of {workload.runner.replay_capacity} transitions take {size} of {where}"
        f"{in_checkpoints}{_resumed(workload.found)}",
        flush=True,
    )
