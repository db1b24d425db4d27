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
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import absl.logging
import gin

from log_dqn import __version__, checkpoints, compat, lock
from log_dqn.mapping import check

# The agent whose gin file is used when neither an agent nor a gin file is given.
DEFAULT_AGENT = "log_dqn"


# Where the environment factories, ours and Dopamine's, take the game from.
_GAME_PARAMETERS = ("create_environment.game_name", "atari_lib.create_atari_environment.game_name")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and which knows `--version`."""

    def __init__(self, **settings: Any) -> None:
        """Takes what ArgumentParser takes."""
        super().__init__(**settings)
        self.add_argument("--version", action="version", version=f"log_dqn {__version__}")

    def error(self, message: str) -> NoReturn:
        """Exits with status 2 and the message."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def _parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(
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
        help="log_dqn, dqn, c51, rainbow, implicit_quantile (TensorFlow), jax_log_dqn, jax_dqn, "
        "jax_rainbow, jax_implicit_quantile or full_rainbow (JAX); "
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


# For gin files that include one that comes with the package.
gin.add_config_file_search_path(str(config_dir()))


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


def explain(error: Exception) -> str:
    """Returns an error of gin, or of Dopamine, as one line that says what and where."""
    message = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # Keras puts its own heading above a message, gin the place below it.
    line = lines[-1] if lines[0] == "in user code:" else lines[0]
    place = re.search(r'In file "(.+)", line (\d+)', message)
    return line + (f" (in {place[1]}, line {place[2]})" if place else "")


def _nearest_parameters(message: str) -> str:
    """Returns what gin's message on a parameter that doesn't exist leaves out."""
    match = re.search(r"Configurable '(.+)' doesn't have a parameter named '(.+)'", message)
    if not match:
        return ""
    allowed = list(inspect.signature(gin.get_configurable(match[1])).parameters)
    near = difflib.get_close_matches(match[2], allowed) or sorted(set(allowed) - {"self"})
    return f" (nearest: {', '.join(near)})"


@contextlib.contextmanager
def explained(name: str, value: str) -> Iterator[None]:
    """Turns what gin raises while it parses into a ValueError that names the culprit.

    Args:
        name: the option that holds what is parsed.
        value: its value.
    """
    # Gin logs every folder in which it does not find an included file.
    logging.disable(logging.ERROR)
    try:
        yield
    except (
        ValueError, SyntaxError, LookupError, ImportError, OSError, AttributeError, RecursionError
    ) as error:  # fmt: skip
        message = explain(error)
        if message.startswith("malformed node"):
            message = "a value must be a literal of Python, such as 0.96, True or 'huber'"
        raise ValueError(
            f"{name} is {value!r}; it must be gin that can be read: "
            f"{message}{_nearest_parameters(message)}"
        ) from error
    finally:
        logging.disable(logging.NOTSET)


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
        ValueError: if a file, a gin name, the agent or the game doesn't exist, a file or binding
            isn't gin, or game or agent contradict the files.
    """
    from log_dqn import agents, atari

    if agent is not None:
        check("agent", agent, agent in agents.AGENTS, f"one of {', '.join(agents.AGENTS)}")
    if game is not None:
        atari.check_game(game)
    for name in gin_files or [f"{agent or DEFAULT_AGENT}.gin"]:
        path = find_gin_file(name)
        with explained("gin_files", name):
            gin.parse_config_file(path)
    for binding in gin_bindings:
        with explained("gin_bindings", binding):
            gin.parse_config(binding)
    if agent is not None:
        try:
            configured = gin.query_parameter("create_agent.agent_name")
        except ValueError:
            configured = agent
            gin.parse_config(f"create_agent.agent_name = {agent!r}")
        check("agent", agent, agent == configured, f"{configured!r}, which the gin files configure")
    if game is not None:
        try:
            factory = str(gin.query_parameter("Runner.create_environment_fn"))
        except ValueError:
            factory = "@atari_lib.create_atari_environment"
        games = [name for name in _GAME_PARAMETERS if factory.endswith(name.split(".")[-2])]
        if not games:
            raise ValueError(
                f"game is {game!r}; it must be left out, since the environment is {factory}"
            )
        gin.parse_config(f"{games[0]} = {game!r}")
    if seed is not None:
        gin.parse_config(f"seed_everything.seed = {seed!r}")
    agents.agent_name()


# What Dopamine, TensorFlow and gin raise when a setting doesn't suit them.
_SETTING_ERRORS = (
    ValueError, TypeError, AttributeError, AssertionError, ArithmeticError, MemoryError,
)  # fmt: skip


def _run_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns what a run writes into its folder, as far as it is there."""
    names = ("checkpoints", "logs", "metrics", "operative_config.gin")
    present = [folder / name for name in names if os.path.lexists(folder / name)]
    return [*present, *folder.glob("events.out.tfevents.*")]


def _remove(path: pathlib.Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _create_runner(base_dir: str, restart: bool, stack: contextlib.ExitStack) -> Any:
    """Makes a run's folder, takes its lock, and creates the runner.

    If that fails, what was there before is there again, and nothing else.

    Args:
        base_dir: folder of the run.
        restart: whether to remove the run that is there.
        stack: holds the lock.

    Returns:
        The runner.

    Raises:
        ValueError: if the folder can't be written or is in use, or restart is asked for in a
            folder that holds no run.
    """
    from log_dqn import runner

    folder = pathlib.Path(base_dir)
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    _check_writable(base_dir)
    stack.enter_context(lock.hold(folder))
    before = _run_files(folder)
    old = folder / f".restart-{os.getpid()}"
    if restart and before:
        if folder / "operative_config.gin" not in before:
            raise ValueError(
                f"base_dir is {base_dir!r}; with --restart it must be the folder of a run, which "
                "holds operative_config.gin"
            )
        old.mkdir()
        for path in before:
            path.rename(old / path.name)
    try:
        experiment = runner.create_runner(base_dir)
    except BaseException:
        for path in _run_files(folder):
            if old.exists() or path not in before:
                _remove(path)
        if old.exists():
            for path in old.iterdir():
                path.rename(folder / path.name)
            old.rmdir()
        with contextlib.suppress(OSError):
            if missing:
                (folder / lock.NAME).unlink()
            for path in missing:
                path.rmdir()
        raise
    if old.exists():
        shutil.rmtree(old)
    return experiment


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
    with compat.quiet():
        import tensorflow as tf

        from log_dqn import agents, runner
    # Notes on deprecated functions that Dopamine calls, and Dopamine's own log.
    tf.get_logger().setLevel(logging.ERROR)
    absl.logging.set_verbosity(absl.logging.ERROR)
    with contextlib.ExitStack() as stack:
        try:
            configure(args.gin_files, args.gin_bindings, args.game, args.agent, args.seed)
            device = "a GPU" if agents.has_gpu() else "the CPU"
            experiment = _create_runner(args.base_dir, args.restart, stack)
        except (checkpoints.CheckpointError, OSError, *_SETTING_ERRORS) as error:
            print(f"log_dqn.train: error: {explain(error)}", file=sys.stderr)
            return 2
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: experiment.stop(number))
        if signals:  # Its exit was swallowed by whatever it interrupted.
            return 128 + signals[0]
        print(
            f"Training {agents.agent_name()} on {device}; results go to {args.base_dir}",
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
