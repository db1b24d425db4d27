"""What is common to all command lines: options, errors, signals and exit status."""

import argparse
import contextlib
import functools
import math
import os
import pathlib
import re
import signal
import sys
import sysconfig
import tempfile
import tokenize
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

from log_dqn import __version__
from log_dqn.checks import LAST_SEED, check, nearest
from log_dqn.run_folder import lock
from log_dqn.run_folder.checkpoints import CheckpointError

_PACKAGE = pathlib.Path(__file__).absolute().parents[1]

# More seeds than anybody trains: to refuse a slip before its runs are listed.
_MAX_SEEDS = 1000
# What Dopamine, TensorFlow and gin raise when a setting doesn't suit them.
_SETTING_ERRORS = (
    ValueError, TypeError, AttributeError, AssertionError, ArithmeticError, MemoryError,
)  # fmt: skip


def started_as(command: str) -> str:
    """Returns a program's name as the user started it.

    It is `log_dqn.train` for `python -m` and `log-dqn train` for the command. From within Python
    it is the given command.
    """
    started = pathlib.Path(sys.argv[0]).absolute()
    if started.name == "log-dqn":
        return " ".join(["log-dqn", *sys.argv[1:2]])
    if started.suffix == ".py" and started.parent == _PACKAGE:
        return f"log_dqn.{started.stem}"
    return f"log-dqn {command}"


class Parser(argparse.ArgumentParser):
    """A parser with errors of one line, `--version`, and no abbreviated flags."""

    def __init__(self, **settings: Any) -> None:
        """Takes the arguments of ArgumentParser."""
        super().__init__(allow_abbrev=False, **settings)
        self.add_argument("--version", action="version", version=f"log_dqn {__version__}")

    def _add_repeatable(self, name: str, help_text: str) -> None:
        self.add_argument(name, action="append", default=[], help=help_text)

    def add_gin_options(self, default: str, agent: str) -> None:
        """Adds the options for gin; `default` is the default file, `agent` an example."""
        self._add_repeatable(
            "--gin_files",
            "gin file: a path, or the name of one that comes with the package; may be repeated "
            f"(default: {default})",
        )
        self._add_repeatable(
            "--gin_bindings",
            f"gin binding that overrides the files, such as {agent}.gamma=0.9; may be repeated",
        )

    def add_scan_option(self, agent: str) -> None:
        """Adds `--scan`, with an example of an agent."""
        self._add_repeatable(
            "--scan",
            f"values of a hyperparameter, such as {agent}.gamma=0.84,0.96; repeat it for a grid",
        )

    def typed(self, flags: argparse.Namespace) -> list[str]:
        """Returns the command-line options for these flags, without those at their defaults."""
        words = []
        for action in self._actions:
            value, option = getattr(flags, action.dest, action.default), action.option_strings[-1]
            if value == action.default:
                continue
            if isinstance(value, list) and not isinstance(action, argparse._AppendAction):
                value = ",".join(value)
            values = value if isinstance(value, list) else [value]
            words += [option] if action.nargs == 0 else [f"{option}={one}" for one in values]
        return words

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints help and errors at once; exits if they can't be printed."""
        shown = functools.partial(print, end="", file=file or sys.stderr, flush=True)
        if message and (status := run_once(self.prog, lambda: shown(message))):
            sys.exit(status)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses as ArgumentParser does, and keeps the arguments for `error`."""
        self._given = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Exits with status 2 and the message; for an unknown flag, with the nearest known ones."""
        if message.endswith(" required") or "are required: " in message:
            # A required one may be there, but misspelt.
            flags = (text.partition("=")[0] for text in self._given if text.startswith("--"))
            unknown = [flag for flag in flags if flag not in self._option_string_actions]
            message = f"unrecognized arguments: {unknown[0]}" if unknown else message
        if match := re.match("unrecognized arguments: (--[^ =]+)", message):
            message += nearest(match[1], self._option_string_actions)
        elif match := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
            message += nearest(match[1], re.findall(r"[\w-]+", match[2]))
        self.exit(2, f"{self.prog}: error: {message}\n")


def finite(kind: Callable[[str], Any], least: float, what: str) -> Callable[[str], Any]:
    """Returns the type of an option that is a finite number, at least some number."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not least <= value < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is not a {what}")
        return value

    return parse


def at_least(least: int) -> Callable[[str], int]:
    """Returns the type of an option that is a whole number, at least some number."""
    return finite(int, least, f"whole number, at least {least}")


def seeds(text: str) -> range:
    """Returns the seeds of an option: 1 to N for N, A to B, from 0 on, for A-B.

    Raises:
        ValueError: if it has another form, or seeds out of range.
    """
    match = re.fullmatch("(?:([0-9]{1,18})-)?([0-9]{1,18})", text)
    given = range(int(match[1] or 1), int(match[2]) + 1) if match else range(0)
    allowed = (
        f"N, at least 1, or A-B, with seeds up to {LAST_SEED} and at most {_MAX_SEEDS} of them"
    )
    are_allowed = 0 < len(given) <= _MAX_SEEDS and given[-1] <= LAST_SEED
    check("seeds", text, are_allowed, allowed)
    return given


def folder(text: str) -> pathlib.Path:
    """Returns the folder that an option names; an empty name is refused."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a folder")
    return pathlib.Path(text)


def _or_text(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Returns the type of a numeric option; other text is kept for a later check to refuse."""

    def parse(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            return text

    return parse


whole, real = _or_text(int), _or_text(float)


def explain(error: BaseException) -> str:
    """Returns an error of gin, of Dopamine or of a user's code as one line that says what.

    Of gin's it says where, too.
    """
    if isinstance(error, SystemExit):
        return f"it calls sys.exit({error})"
    is_first = isinstance(error, KeyError | tokenize.TokenError) and error.args
    message = str(error.args[0] if is_first else error)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # Keras puts its own heading above a message, gin the place below it.
    line = lines[-1] if lines[0] == "in user code:" else lines[0]
    place = re.search(r'In file "(.+)", line (\d+)', message)
    return line + (f" (in {place[1]}, line {place[2]})" if place else "")


def _is_of(file: str, *packages: str) -> bool:
    """Returns whether a file is one of some packages', as far as they have been imported."""
    homes = [str(sys.modules[name].__file__) for name in packages if name in sys.modules]
    return any(pathlib.Path(file).is_relative_to(pathlib.Path(home).parent) for home in homes)


def _is_of_python(file: str) -> bool:
    """Returns whether a file is of Python's own library, or no file at all."""
    library = pathlib.Path(file).is_relative_to(sysconfig.get_path("stdlib"))
    return file.startswith("<") or (library and "site-packages" not in file)


def place(error: BaseException) -> str:
    """Returns, in words, where in a user's code an error was raised, outside Python, JAX and flax.

    '' if within gin or gymnasium, or by the parser.
    """
    last = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not _is_of(frame.filename, "jax", "flax") and not _is_of_python(frame.filename)
    ][-1]
    known = isinstance(error, SyntaxError) or _is_of(last.filename, "gin", "gymnasium", "log_dqn")
    return "" if known else f" ({type(error).__name__} in {last.filename}, line {last.lineno})"


REPAIR = "repair it and repeat the command"
"""Ends the line on a fault of a user's environment, whose traceback may follow."""

Training = tuple[Callable[[], int], Callable[[int], None]]
"""Training that is ready to start: a function that trains and returns the exit status, and a
function that is given a signal and makes the first raise RunStopped before its next step."""


class RunStopped(Exception):
    """Training has to stop; the message says why, in one line.

    The traceback of an error in the user's own code may follow.
    """

    def __init__(self, message: str, status: int = 1) -> None:
        """Takes the message and the exit status for the process."""
        super().__init__(message)
        self.status = status


def stopped_by(signal_number: int, resumes: str = "") -> RunStopped:
    """Returns the error of work that a signal has stopped; `resumes` says where it resumes."""
    name = signal.Signals(signal_number).name
    return RunStopped(f"stopped by {name}; the same command resumes{resumes}", 128 + signal_number)


def say(*lines: object, end: str = "\n", file: TextIO | None = None) -> None:
    """Prints lines at once, to standard output or a given file.

    Raises:
        RunStopped: if they can't be printed, for example to a closed pipe.
    """
    try:
        print(*lines, sep="\n", end=end, file=file, flush=True)
    except OSError as error:
        raise RunStopped(
            f"stopped, since what it prints can't be written: {error}; the same command resumes"
        ) from error


def _drop_lost_output() -> None:
    """Drops unprinted output: Python would try again at its exit, and print a traceback."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(line: str) -> None:
    with contextlib.suppress(OSError):  # The exit status says it as well.
        print(line, file=sys.stderr)


def check_writable(option: str, folder: str) -> None:
    """Checks that files can be written in a folder, which need not exist, nor its parents.

    No folder is created, not even for a moment: another program may be creating its own there.
    """
    # TensorFlow takes no other names, and "gs://" for Google's.
    is_local = "://" not in folder and folder == folder.encode("utf-8", "replace").decode()
    is_allowed = bool(folder.strip()) and is_local
    check(option, folder, is_allowed, "the name of a folder on this machine, in UTF-8")
    allowed = "without a first ~, which the shell has not replaced (./~ is a folder of that name)"
    check(option, folder, not folder.startswith("~"), allowed)
    path = pathlib.Path(folder)
    with lock.writing(option, folder):
        existing = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
        with tempfile.TemporaryFile(dir=existing):
            pass


def print_start(what: str, file: TextIO | None = None) -> None:
    """Prints the first line of a program, before slow imports."""
    print(f"Starting {what}", file=file, flush=True)


def warn(command: str, message: str) -> None:
    """Prints a warning of a command."""
    print(f"{started_as(command)}: warning: {message}", file=sys.stderr, flush=True)


def print_error(program: str, error: Exception) -> None:
    """Prints why a program can't start."""
    _complain(f"{program}: error: {explain(error)}")


def run_once(program: str, work: Callable[[], int | None]) -> int:
    """Does the work of a program that leaves nothing to resume.

    Returns the exit status: the work's, 2 for an error of the user, 128 + n if stopped by signal n.
    A closed output pipe counts as SIGPIPE, without a message.
    """
    signals = [signal.SIGINT]

    def stop(number: int, _: Any) -> NoReturn:
        signals.append(signal.Signals(number))
        raise KeyboardInterrupt

    # Without a handler, what is half-written would stay.
    before = signal.signal(signal.SIGTERM, stop)
    try:
        status = work() or 0
        print(end="", flush=True)  # What can't be printed is an error, too.
        return status
    except KeyboardInterrupt:
        _complain(f"{program}: stopped by {signals[-1].name}")
        return 128 + signals[-1]
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except (CheckpointError, OSError, ValueError) as error:
        print_error(program, error)
        return 2
    finally:
        signal.signal(signal.SIGTERM, before)
        _drop_lost_output()


def run_command(
    parser: Parser, work: Callable[[argparse.Namespace], int | None], argv: Sequence[str] | None
) -> int:
    """Parses a command line and does its work; see `run_once`."""
    flags = parser.parse_args(argv)
    return run_once(parser.prog, lambda: work(flags))


def run(
    parser: Parser,
    prepare: Callable[[argparse.Namespace, contextlib.ExitStack], Training | None],
    argv: Sequence[str] | None,
) -> int:
    """Parses a command line, prepares training, trains, and stops when a signal comes.

    `prepare` returns None if nothing is left to do; its stack is closed at the end. Returns the
    exit status: the training's, 2 for wrong settings, 128 + n if stopped by signal n.
    """
    args, program, signals = parser.parse_args(argv), parser.prog, list[int]()

    def exit_at_once(number: int, _: Any) -> NoReturn:
        signals.append(number)
        sys.exit(128 + number)

    with contextlib.ExitStack() as stack:
        for number in (signal.SIGTERM, signal.SIGINT):
            stack.callback(signal.signal, number, signal.signal(number, exit_at_once))
        stack.callback(_drop_lost_output)
        try:
            training = prepare(args, stack)
        except (CheckpointError, OSError, *_SETTING_ERRORS) as error:
            if not signals:  # An environment's code may turn the exit into an error.
                print_error(program, error)
                return 2
            training = None
        if training is not None:
            train, stop_training = training
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda number, _: stop_training(number))
        if signals:  # The exit was swallowed by whatever the signal interrupted.
            return 128 + signals[0]
        if training is None:
            return 0
        try:
            return train()
        except RunStopped as stop:
            _complain(f"{program}: {stop}")
            return stop.status
