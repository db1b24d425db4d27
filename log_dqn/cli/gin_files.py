"""Finding and reading gin files and bindings, with errors of one line."""

import contextlib
import logging
import math
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import gin
from gin import config_parser

from log_dqn import checks, compat, scan
from log_dqn.cli.shell import explain, place
from log_dqn.compat import config_dir
from log_dqn.run_folder import configuration

DEFAULT_AGENT = "log_dqn"
"""The agent of runs for which neither an agent nor a gin file is given."""


def named(agent: str | None, gin_files: Sequence[str]) -> str:
    """Returns what is trained, as the first line of a program names it."""
    return agent or ", ".join(gin_files) or DEFAULT_AGENT


def find_gin_file(name: str, command: str = "", is_shipped: bool = False) -> str:
    """Returns the path of a gin file.

    `name` is a path, or the name of a file that comes with the package, with or without `configs/`
    before it. If a command is given, the error names files for it. `is_shipped` says that it comes
    with the package, whatever lies in the working directory.
    """
    if os.path.isfile(name) and not is_shipped:
        return name
    packaged = config_dir() / pathlib.PurePath(name).name
    if str(pathlib.PurePath(name).parent) in (".", "configs") and packaged.is_file():
        return str(packaged)
    names = sorted(path.name for path in config_dir().glob("*.gin"))
    names = [known for known in names if _command_of(known) == command or not command]
    folder = os.path.dirname(name)
    with contextlib.suppress(OSError):  # There may be no such folder.
        own = (os.path.join(folder, name) for name in os.listdir(folder or "."))
        names += [path for path in own if ".gin" in path and os.path.isfile(path)]
    nearest = checks.nearest(name, names) or f", or one of {', '.join(names)}"
    raise ValueError(f"gin_files is {name!r}; it must be the path of a gin file{nearest}")


def _command_of(name: str) -> str:
    """Returns the command that a gin file, an agent or a runner is for, by its name."""
    return "train-vectorized" if name.lower().startswith("vectorized") else "train"


class Line(NamedTuple):
    """A line of gin that binds something.

    Attributes:
        name: what it binds, without modules: `LogDQNAgent.gamma`, `a_scope/LogDQNAgent.gamma`, or
            the name of a macro.
        selector: what it configures, with modules and without scopes; empty for a macro.
        value: its value; references and macros as gin writes them.
        option: the option that it comes from.
        text: the option's value.
        is_shipped: whether it is of a file that comes with the package.
    """

    name: str
    selector: str
    value: Any
    option: str
    text: str
    is_shipped: bool


class Written(NamedTuple):
    """The content of gin files, with those they include, of bindings and of scans' first values.

    Attributes:
        files: the files' names.
        bindings: other lines, each with the option that it comes from.
        lines: what binds something, in order.
        macros: the macros that values name.
        modules: the modules that are imported.
    """

    files: list[str]
    bindings: list[tuple[str, str]]
    lines: list[Line]
    macros: set[str]
    modules: set[str]

    def values(self, name: str) -> list[Any]:
        """Returns what lines bind to a name, in their order; a macro's value where it is known."""
        defined = {f"%{line.name}": line.value for line in self.lines}
        found = [line.value for line in self.lines if line.name == name]
        return [defined.get(v, v) if isinstance(v, str) else v for v in found]


def short_name(name: str) -> str:
    """Returns a parameter's full name in gin without modules: `a_scope/LogDQNAgent.gamma`."""
    scope, slash, selector = name.rpartition("/")
    return f"{scope}{slash}{'.'.join(selector.split('.')[-2:])}"


def parse(
    gin_files: Sequence[str], gin_bindings: Sequence[str], scans: Sequence[str] = ()
) -> Written:
    """Returns the content of gin files, of bindings and of the first value of each scan.

    Nothing that they name is imported.
    """
    first = [f"{parameter} = {values[0]!r}" for parameter, values in map(scan.read, scans)]
    bindings = [("gin_bindings", line) for line in gin_bindings]
    bindings += [("scan", line) for line in first]
    written = Written(list(gin_files), bindings, [], set(), set())
    plain, around = configuration.Plain(), list[str]()

    def add(source: Any, option: str, text: str, is_shipped: bool) -> None:
        statements = list(config_parser.ConfigParser(source, plain))
        if option == "gin_bindings" and not statements:
            raise ValueError("a line is missing")
        for statement in statements:
            if isinstance(statement, config_parser.BindingStatement):
                name = "/".join(filter(None, (statement.scope, statement.selector)))
                selector = statement.selector if statement.arg_name else ""
                if selector:
                    name = short_name(f"{name}.{statement.arg_name}")
                line = Line(name, selector, statement.value, option, text, is_shipped)
                written.lines.append(line)
            elif isinstance(statement, config_parser.ImportStatement):
                written.modules.add(statement.module)
            elif isinstance(statement, config_parser.IncludeStatement):
                add_file(find_gin_file(statement.filename, is_shipped=is_shipped), text)

    def add_file(path: str, text: str) -> None:
        if path in around:
            raise RecursionError
        around.append(path)
        with open(path, encoding="utf-8-sig") as file:
            add(file, "gin_files", text, compat.is_shipped(path))
        around.pop()

    for name in gin_files:
        path = find_gin_file(name)
        with explained("gin_files", name):
            add_file(path, name)
    for (option, line), text in zip(bindings, [*gin_bindings, *scans], strict=True):
        with explained(option, text):
            add(line, option, text, False)
    return written._replace(macros=set(plain.macros))


@contextlib.contextmanager
def explained(name: str, value: str) -> Iterator[None]:
    """Turns an error of gin about an option's value into a ValueError that names both."""
    # Gin logs every folder in which it does not find an included file.
    logging.disable(logging.ERROR)
    try:
        yield
    except (Exception, SystemExit) as error:  # Whatever a module raises that is imported.
        # gin's own words on a file in itself are as long as the chain of files.
        deep = isinstance(error, RecursionError)
        message = "it includes itself, or is nested too deeply" if deep else explain(error)
        if message.startswith("malformed node"):
            message = "a value must be a literal of Python, such as 0.96, True, None or 'huber'"
        allowed = f"gin that can be read: {message}{place(error)}"
        raise ValueError(f"{name} is {value!r}; it must be {allowed}") from error
    finally:
        logging.disable(logging.NOTSET)


class Command(NamedTuple):
    """A command that reads gin files.

    Attributes:
        name: its name after `log-dqn`.
        agent: the parameter that names an agent.
        classes: the agents' classes, by name.
    """

    name: str
    agent: str
    classes: Mapping[str, str]


def parse_for(
    command: Command,
    gin_files: Sequence[str],
    gin_bindings: Sequence[str],
    scans: Sequence[str],
    agent: str | None,
    default: Callable[[str | None], str],
) -> Written:
    """Checks what a command is given; returns its content, with the agent's own file if needed.

    If the user's files name an agent they are used alone; else the agent's own file comes first.

    Args:
        command: the command.
        gin_files: the user's files.
        gin_bindings: the user's bindings, which may name an agent too.
        scans: the user's scans.
        agent: the agent of `--agent`, or None.
        default: returns an agent's own file; for None, the default agent's.

    Raises:
        ValueError: if a file is for another command, no agent or a different one from `agent` is
            named, a binding is scanned too, or a name or value is wrong, as far as can be told
            without importing.
    """
    for name in gin_files:
        find_gin_file(name, command.name)
    users = parse(gin_files, gin_bindings, scans)
    bound_in_files = {line.name: line for line in users.lines if line.option == "gin_files"}
    scanned = {line.name for line in users.lines if line.option == "scan"}
    for line in users.lines:
        is_lost = line.option == "gin_bindings" and line.name in scanned
        checks.check(line.name, line.value, not is_lost, "left out: it is scanned")
        _check_is_for(command, line)
        # gin leaves these out of what it writes.
        is_finite = not isinstance(line.value, float) or math.isfinite(line.value)
        allowed = f"a finite number{', or None for no line' * line.name.endswith('.linear_above')}"
        checks.check(line.name, line.value, is_finite, allowed)
    named = users.values(command.agent)
    if named:
        allowed = f"{named[-1]!r}, which gin configures"
        checks.check("agent", agent, agent in (None, named[-1]), allowed)
    if command.agent in bound_in_files:
        _check(users)
        return users
    agent = agent or (named[-1] if named else None)
    if agent is None and gin_files:
        configurables = {name.rpartition(".")[0] for name in bound_in_files}
        agent = next((a for a, cls in command.classes.items() if cls in configurables), None)
        raise ValueError(
            f"gin_files is {gin_files[0]!r}; it must build on an agent's own: write "
            f"include {default(agent)!r} in it, or give --agent={agent or DEFAULT_AGENT} beside it"
        )
    own = parse([find_gin_file(default(agent), is_shipped=True)], [])
    written = Written(
        [*own.files, *users.files], users.bindings, [*own.lines, *users.lines],
        own.macros | users.macros, own.modules | users.modules,
    )  # fmt: skip
    _check(written)
    return written


def check_left_out(written: Written, parameter: str, option: str) -> None:
    """Checks that no binding and no scan sets what an option sets; gin files may."""
    for line in written.lines:
        is_set = line.name == parameter and line.option != "gin_files"
        checks.check(parameter, line.value, not is_set, f"left out: the {option} is given")


def _check(written: Written) -> None:
    if not all(line.is_shipped for line in written.lines):
        from log_dqn.cli import settings  # It imports NumPy.

        settings.check_written(written)


_OF_ONE_COMMAND = (
    "Runner", "TrainRunner", "VectorizedRunner", "create_agent", "create_runner",
    *(f"{kind}{name}Agent" for kind in ("", "Jax", "Vectorized") for name in ("DQN", "LogDQN")),
)  # fmt: skip


def _check_is_for(command: Command, line: Line) -> None:
    """Checks that a line of gin is for a command."""
    bound_to = line.name.rpartition(".")[0].rpartition("/")[2]
    # Of other names on the command line, a later check names the nearest one.
    endings = ("Agent", "Runner", "create_agent", "create_runner")
    in_file = line.option == "gin_files"
    is_of_one = bound_to.endswith(endings) if in_file else bound_to in _OF_ONE_COMMAND
    if is_of_one and _command_of(bound_to) != command.name:
        own = [name for name in _OF_ONE_COMMAND if _command_of(name) == command.name]
        other = f"log-dqn {_command_of(bound_to)}{checks.nearest(bound_to, own)}"
        allowed = f"for log-dqn {command.name}: {bound_to} is for {other}"
        checks.check(line.option, line.text, False, allowed)


def read(written: Written) -> None:
    """Makes gin read files and bindings."""
    for name in written.files:
        path = find_gin_file(name)
        with compat.quiet(), explained("gin_files", name):  # It may import TensorFlow.
            gin.parse_config_file(path)
    for option, line in written.bindings:
        with explained(option, line):
            gin.parse_config(line)
    for name in written.macros - {line.name for line in written.lines}:
        is_macro = gin.config.parse_value(f"%{name}").selector == "gin.macro"
        user = next((line.name for line in written.lines if f"%{name}" in str(line.value)), "macro")
        allowed = f"a macro that a line of gin defines: {name} = VALUE"
        checks.check(user, f"%{name}", not is_macro, allowed)


def bound(name: str, default: Any = None) -> Any:
    """Returns the value that gin binds to a parameter, through a macro too, or the default."""
    try:
        value = gin.query_parameter(name)
    except (ValueError, KeyError):  # KeyError if several packages have one of that name.
        return default
    is_macro = getattr(value, "selector", None) in ("gin.macro", "gin.constant")
    return value.scoped_configurable_fn() if is_macro else value
