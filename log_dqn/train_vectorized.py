"""Trains many runs in lockstep on one device: `python -m log_dqn.train_vectorized --help`."""

import argparse
import collections
import contextlib
import importlib.util
import itertools
import os
import pathlib
import signal
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import gin

from log_dqn import checkpoints, compat, lock, run_config, scan, stopping, train
from log_dqn.mapping import check
from log_dqn.results import games


def _parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = train.Parser(
        prog="python -m log_dqn.train_vectorized",
        description="Trains all runs of a study at once on one device, or goes on with them.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--results_dir",
        required=True,
        help="folder of all results; a run lies in {agent}[/{setting}]/{game}/{seed}",
    )
    parser.add_argument(
        "--games",
        required=True,
        help="Atari games and sets of them (paper55, paper6, all60), with commas: Pong,Asterix",
    )
    parser.add_argument(
        "--seeds", type=int, default=1, help="seeds of each game: 1 to N (default: 1)"
    )
    parser.add_argument("--agent", help="log_dqn (default) or dqn")
    parser.add_argument(
        "--gin_files",
        action="append",
        default=[],
        help="gin file: a path, or the name of one that comes with the package; may be repeated "
        "(default: vectorized_{agent}.gin)",
    )
    parser.add_argument(
        "--gin_bindings",
        action="append",
        default=[],
        help="gin binding over the files, such as VectorizedLogDQNAgent.gamma=0.9; may be repeated",
    )
    parser.add_argument(
        "--scan",
        action="append",
        default=[],
        help="values of a hyperparameter, such as VectorizedLogDQNAgent.gamma=0.84,0.96; "
        "repeated, the grid of all",
    )
    parser.add_argument(
        "--capacity",
        type=int,
        help="transitions that a run remembers; short for "
        "--gin_bindings=VectorizedRunner.replay_capacity=N",
    )
    parser.add_argument(
        "--checkpoint_replay",
        action="store_true",
        help="save the replay memories too, so that runs go on exactly (without, a run that goes "
        "on fills its memory anew before it learns again)",
    )
    return parser.parse_args(argv)


# More seeds than anybody trains: to refuse a slip before its runs are listed.
_MAX_SEEDS = 1000


class _Setting(NamedTuple):
    """A setting of the scan, with what gin makes of it."""

    setting: scan.Setting
    protocol: Any
    agent: Any
    config: str


def configure(args: argparse.Namespace) -> None:
    """Reads the gin files, the bindings and the short forms.

    Args:
        args: `agent`, `gin_files`, `gin_bindings` and `capacity` as on the command line.

    Raises:
        ValueError: if the agent, a file or a gin name doesn't exist.
    """
    from log_dqn.vectorized import agents

    if args.agent is not None:
        check(
            "agent", args.agent, args.agent in agents.AGENTS, f"one of {', '.join(agents.AGENTS)}"
        )
    for name in args.gin_files or [f"vectorized_{args.agent or train.DEFAULT_AGENT}.gin"]:
        path = train.find_gin_file(name)
        with compat.quiet(), train.explained("gin_files", name):  # It may import TensorFlow.
            gin.parse_config_file(path)
    for binding in args.gin_bindings:
        with train.explained("gin_bindings", binding):
            gin.parse_config(binding)
    if args.capacity is not None:
        gin.parse_config(f"VectorizedRunner.replay_capacity = {args.capacity}")


def read_settings(args: argparse.Namespace) -> list[_Setting]:
    """Returns the settings of the scan.

    Args:
        args: `agent` and `scan` as on the command line.

    Raises:
        ValueError: if a setting is outside its range, or differs where all runs must be alike.
    """
    from log_dqn.vectorized import agents, environments, schedule

    settings = []
    for setting in scan.parse(args.scan):
        for binding in setting.gin_bindings():
            with train.explained("scan", binding):
                gin.parse_config(binding)
        protocol = schedule.Protocol()
        if args.agent is not None:
            check(
                "agent", args.agent, args.agent == protocol.agent,
                f"{protocol.agent!r}, which the gin files configure",
            )  # fmt: skip
        agent = agents.AGENTS[protocol.agent]()
        most = max(protocol.replay_capacity - environments.STACK_SIZE, 1)
        check(
            "update_horizon", agent.update_horizon, agent.update_horizon <= most,
            f"at most {most}, for a replay_capacity of {protocol.replay_capacity}",
        )  # fmt: skip
        _check_bindings_are_read(protocol.agent, type(agent).__name__)
        agent.optimizer(agent.constants)  # So that gin notes its settings.
        config = run_config.operative()
        for parameter in setting.bindings:
            name = ".".join(parameter.rpartition("/")[2].split(".")[-2:])
            check(
                "scan", parameter, f"{name} = " in config,
                f"a parameter that the agent uses, such as {type(agent).__name__}.gamma",
            )  # fmt: skip
        settings.append(_Setting(setting, protocol, agent, config))
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


def _check_bindings_are_read(agent: str, class_name: str) -> None:
    """Checks that gin binds nothing that isn't read; it is silent on those."""
    read = {"VectorizedRunner", class_name, "rmsprop_tf"}
    for name, value in run_config.parameters(gin.config_str(max_line_length=10_000)).items():
        configurable = name.split(".")[-2]
        # (The agents have a learning rate of their own.)
        is_read = configurable in read and name != "rmsprop_tf.learning_rate"
        check(name, value, is_read, f"left out, since {agent} reads {class_name}'s settings")


def _optimizer_settings(config: str) -> list[str]:
    return [line for line in config.splitlines() if line.startswith("rmsprop_tf.")]


def _hold_folders(
    job_runs: Sequence[Any], stack: contextlib.ExitStack, undo: contextlib.ExitStack
) -> None:
    """Makes the runs' folders and holds them.

    Args:
        job_runs: the runs.
        stack: holds the folders.
        undo: removes new folders.

    Raises:
        ValueError: if one can't be written, or is in use.
    """
    for run in job_runs:
        missing = [path for path in (run.folder, *run.folder.parents) if not path.exists()]
        try:
            for path in reversed(missing):
                path.mkdir(exist_ok=True)
                undo.callback(_remove_folder, path)
            stack.enter_context(lock.hold(run.folder))
        except OSError as error:
            raise ValueError(
                f"results_dir is {str(run.folder)!r}; it must be a folder that can be written "
                f"({error.strerror})"
            ) from error


def _remove_folder(folder: pathlib.Path) -> None:
    with contextlib.suppress(OSError):
        (folder / lock.NAME).unlink(missing_ok=True)
        folder.rmdir()


def _create_job(args: argparse.Namespace, stack: contextlib.ExitStack) -> Any:
    """Makes the job of the command line.

    Args:
        args: the arguments.
        stack: holds the runs' folders.

    Returns:
        The job.

    Raises:
        ValueError: if an argument or a setting is outside its range.
        checkpoints.CheckpointError: if a run can't go on.
        OSError: if a file can't be read or written.
    """
    from log_dqn.vectorized import environments, learner, memory, networks, runs, training

    check("results_dir", args.results_dir, args.results_dir != "", "the name of a folder")
    check(
        "seeds", args.seeds, 1 <= args.seeds <= _MAX_SEEDS, f"a whole number from 1 to {_MAX_SEEDS}"
    )
    can_compress = importlib.util.find_spec("zstandard") is not None
    check(
        "checkpoint_replay", args.checkpoint_replay, can_compress or not args.checkpoint_replay,
        "left out where the package zstandard isn't installed",
    )  # fmt: skip
    chosen = games.select(args.games.split(","))
    for game in chosen:
        published = games.published_games()
        check("games", game, game in published, f"one of Dopamine's {len(published)} Atari games")
    configure(args)
    settings = read_settings(args)
    protocol, agent = settings[0].protocol, settings[0].agent
    job_runs = [
        runs.Run(
            protocol.agent, s.setting, game, seed, s.agent, s.config,
            scan.run_folder(pathlib.Path(args.results_dir), protocol.agent, s.setting, game, seed),
        )
        for s in settings
        for game in chosen
        for seed in range(1, args.seeds + 1)
    ]  # fmt: skip
    problem = learner.Problem(
        networks.nature,
        environments.FRAME_SHAPE,
        "uint8",
        environments.STACK_SIZE,
        protocol.batch_size,
        protocol.replay_capacity,
    )

    def report(message: str) -> None:
        print(f"log_dqn.train_vectorized: warning: {message}", file=sys.stderr, flush=True)

    found = [runs.find(run, report) for run in job_runs]
    left = [f is None or f.iterations < protocol.num_iterations for f in found]
    if not all(left):
        print(f"{left.count(False)} of {len(left)} runs have finished.", flush=True)
        job_runs = list(itertools.compress(job_runs, left))
        found = list(itertools.compress(found, left))
    if not job_runs:
        return None
    together = training.runs_per_call()
    place = memory.place(
        agent, problem, environments.MAX_ACTIONS, len(job_runs), memory.free(), together
    )
    atari = environments.AtariGames([run.game for run in job_runs], protocol.max_steps_per_episode)
    with contextlib.ExitStack() as undo:
        _hold_folders(job_runs, stack, undo)
        job = training.Job(
            job_runs, protocol, problem, atari, found, args.checkpoint_replay, place.on_host,
            together,
        )  # fmt: skip
        for run in job_runs:
            checkpoints.replace_file(run.folder / "operative_config.gin", run.config.encode())
        undo.pop_all()
    _announce(job_runs, protocol, place)
    return job


def _announce(job_runs: Sequence[Any], protocol: Any, place: Any) -> None:
    import jax

    from log_dqn.vectorized import runs

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


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program.

    Args:
        argv: arguments without the program's name; None for the process's.

    Returns:
        The exit status.
    """
    args = _parse_args(argv)

    signals: list[int] = []

    def exit_at_once(number: int, _: Any) -> NoReturn:
        signals.append(number)
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, exit_at_once)
    # JAX takes three quarters of a GPU's memory by default; replay memories want more.
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.95")
    with compat.quiet():
        import jax

        jax.devices()
    with contextlib.ExitStack() as stack:
        try:
            job = _create_job(args, stack)
        except (checkpoints.CheckpointError, OSError, ValueError, TypeError) as error:
            print(f"log_dqn.train_vectorized: error: {train.explain(error)}", file=sys.stderr)
            return 2
        if job is not None:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda number, _: job.stop(number))
        if signals:  # Its exit was swallowed by whatever it interrupted.
            return 128 + signals[0]
        if job is None:
            return 0
        try:
            job.train()
        except stopping.RunStopped as stop:
            print(f"log_dqn.train_vectorized: {stop}", file=sys.stderr)
            return stop.status
    return 1 if job.failures else 0


if __name__ == "__main__":
    sys.exit(main())
