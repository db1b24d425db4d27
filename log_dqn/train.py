"""Trains one agent on one game: `python -m log_dqn.train --help`."""

import argparse
import contextlib
import difflib
import inspect
import logging
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from typing import NoReturn

import absl.logging
import gin

from log_dqn import checkpoints, compat, lock

# What each agent is configured with when no gin file is given.
DEFAULT_AGENT = "log_dqn"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def _parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(
        prog="python -m log_dqn.train",
        description="Trains an agent, or goes on from the newest checkpoint in base_dir.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--base_dir", required=True, help="folder of the run: logs, metrics, checkpoints, events"
    )
    parser.add_argument(
        "--gin_files",
        action="append",
        default=[],
        help="gin file: a path, or the name of one that comes with the package; may be repeated "
        "(default: the agent's own, such as log_dqn.gin)",
    )
    parser.add_argument(
        "--gin_bindings",
        action="append",
        default=[],
        help="gin binding over the files, such as LogDQNAgent.gamma=0.9; may be repeated",
    )
    parser.add_argument(
        "--game", help="Atari game; short for --gin_bindings=\"create_environment.game_name='X'\""
    )
    parser.add_argument(
        "--agent",
        help="log_dqn, dqn, c51, rainbow or implicit_quantile; "
        "short for --gin_bindings=\"create_agent.agent_name='X'\"",
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="seed of all random numbers; short for --gin_bindings=seed_everything.seed=X",
    )
    parser.add_argument(
        "--restart", action="store_true", help="remove the run in base_dir and start over"
    )
    return parser.parse_args(argv)


def config_dir() -> pathlib.Path:
    """Returns the folder of the gin files: in the installed package, or in the checkout."""
    package = pathlib.Path(__file__).resolve().parent
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def find_gin_file(name: str) -> str:
    """Returns the path of a gin file.

    Args:
        name: a path, or the name of a file that comes with the package, with or without a
            folder `configs/` before it.

    Returns:
        The path.

    Raises:
        ValueError: if there is no such file.
    """
    if os.path.isfile(name):
        return name
    packaged = config_dir() / pathlib.PurePath(name).name
    if str(pathlib.PurePath(name).parent) in (".", "configs") and packaged.is_file():
        return str(packaged)
    names = sorted(path.name for path in config_dir().glob("*.gin"))
    raise ValueError(
        f"gin_files is {name!r}; it must be the path of a gin file, or one of {', '.join(names)}"
    )


def _check_writable(base_dir: str) -> None:
    try:
        os.makedirs(base_dir, exist_ok=True)
        with tempfile.TemporaryFile(dir=base_dir):
            pass
    except OSError as error:
        raise ValueError(
            f"base_dir is {base_dir!r}; it must be a folder that can be written ({error.strerror})"
        ) from error


def _nearest_parameters(gin_message: str) -> str:
    """Returns what gin's message on a parameter that doesn't exist leaves out."""
    match = re.search(r"Configurable '(.+)' doesn't have a parameter named '(.+)'", gin_message)
    if not match:
        return ""
    allowed = list(inspect.signature(gin.get_configurable(match[1])).parameters)
    near = difflib.get_close_matches(match[2], allowed) or sorted(set(allowed) - {"self"})
    return f" (nearest: {', '.join(near)})"


def configure(
    gin_files: Sequence[str],
    gin_bindings: Sequence[str],
    game: str | None = None,
    agent: str | None = None,
    seed: int | None = None,
) -> None:
    """Reads gin files, then bindings, then the short forms.

    Args:
        gin_files: gin files (see `find_gin_file`); if none, the agent's own.
        gin_bindings: lines of gin.
        game: Atari game, or None to leave the configuration's.
        agent: agent, or None likewise.
        seed: seed, or None likewise.

    Raises:
        ValueError: if a file, a gin name, the agent or the game doesn't exist, or a file or
            binding isn't gin.
    """
    from log_dqn import atari, runner

    if agent is not None and agent not in runner.AGENTS:
        raise ValueError(f"agent is {agent!r}; it must be one of {', '.join(runner.AGENTS)}")
    bindings = list(gin_bindings)
    for name, value in (
        ("create_environment.game_name", game),
        ("create_agent.agent_name", agent),
        ("seed_everything.seed", seed),
    ):
        if value is not None:
            bindings.append(f"{name} = {value!r}")
    files = [find_gin_file(name) for name in gin_files or [f"{agent or DEFAULT_AGENT}.gin"]]
    gin.add_config_file_search_path(str(config_dir()))
    # Gin logs every folder in which it does not find an included file.
    logging.disable(logging.ERROR)
    try:
        gin.parse_config_files_and_bindings(files, bindings)
    except (ValueError, SyntaxError, LookupError, ImportError, OSError) as error:
        # Below its first line gin says where in the configuration the fault is.
        message = str(error).strip("\"'").splitlines()[0]
        raise ValueError(f"gin: {message}{_nearest_parameters(message)}") from error
    finally:
        logging.disable(logging.NOTSET)
    runner.agent_name()
    if game is not None:
        atari.check_game(game)


def _remove_run(base_dir: str) -> None:
    """Removes what a run writes, and nothing else."""
    folder = pathlib.Path(base_dir)
    for name in ("checkpoints", "logs", "metrics"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in [*folder.glob("events.out.tfevents.*"), folder / "operative_config.gin"]:
        path.unlink(missing_ok=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program.

    Args:
        argv: arguments without the program's name; None for the process's.

    Returns:
        The exit status.
    """
    args = _parse_args(argv)
    is_new = not os.path.exists(args.base_dir)
    with compat.quiet():
        import tensorflow as tf

        from log_dqn import runner

        # Without a GPU, the first look for one writes an error to the terminal.
        device = "a GPU" if tf.config.list_physical_devices("GPU") else "the CPU"
    # Notes on deprecated functions that Dopamine calls, and Dopamine's own log.
    tf.get_logger().setLevel(logging.ERROR)
    absl.logging.set_verbosity(absl.logging.ERROR)
    with contextlib.ExitStack() as stack:
        try:
            configure(args.gin_files, args.gin_bindings, args.game, args.agent, args.seed)
            _check_writable(args.base_dir)
            stack.enter_context(lock.hold(pathlib.Path(args.base_dir)))
            if args.restart:
                _remove_run(args.base_dir)
            experiment = runner.create_runner(args.base_dir)
        except (ValueError, OSError, checkpoints.CheckpointError) as error:
            if is_new:
                shutil.rmtree(args.base_dir, ignore_errors=True)
            # Gin adds lines that say where in the configuration the value comes from.
            print(f"log_dqn.train: error: {str(error).splitlines()[0]}", file=sys.stderr)
            return 2
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: experiment.stop(number))
        print(
            f"Training {runner.agent_name()} on {device}; results go to {args.base_dir}",
            flush=True,
        )
        try:
            experiment.run_experiment()
        except runner.RunStopped as stop:
            print(f"log_dqn.train: {stop}", file=sys.stderr)
            return stop.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
