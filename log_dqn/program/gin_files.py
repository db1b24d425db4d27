"""Finding and reading gin files and bindings, with errors of one line."""

import contextlib
import difflib
import functools
import importlib.util
import inspect
import logging
import math
import os
import pathlib
import re
import tokenize
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import gin
from gin import config_parser

from log_dqn import checks, compat, scan
from log_dqn.compat import config_dir
from log_dqn.program.shell import explain
from log_dqn.run_folder import configuration

DEFAULT_AGENT = "log_dqn"
"""The agent of runs for which neither an agent nor a gin file is given."""

# Packages whose names are known. Their settings are read when agent and runner are created.
_PACKAGES = ("dopamine", "log_dqn", "gin", "tensorflow")


def find_gin_file(name: str, command: str = "") -> str:
    """Returns the path of a gin file.

    `name` is a path, or the name of a file that comes with the package, with or without `configs/`
    before it. If a command is given, the error names files for it.
    """
    if os.path.isfile(name):
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
        value: its value; references and macros as gin writes them.
        option: the option that it comes from.
        text: the option's value.
        is_shipped: whether it is of a file that comes with the package.
    """

    name: str
    value: Any
    option: str
    text: str
    is_shipped: bool


class Written(NamedTuple):
    """The content of gin files, with those they include, and of bindings."""

    files: Sequence[str]
    bindings: Sequence[str]
    lines: list[Line]
    macros: set[str]
    modules: set[str]

    def values(self, name: str) -> list[Any]:
        """Returns what lines bind to a name, in their order."""
        return [line.value for line in self.lines if line.name == name]


class _Texts(configuration.Plain):
    """Gives gin's parser text for references and macros, and notes the macros."""

    def macro(self, macro_name: str) -> str:
        self.macros[macro_name] = None
        return f"%{macro_name}"


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
    written = Written(gin_files, gin_bindings, [], set(), set())
    texts, around = _Texts(), list[str]()

    def add(source: Any, option: str, text: str, is_shipped: bool) -> None:
        statements = list(config_parser.ConfigParser(source, texts))
        checks.check(option, text, bool(statements) or option != "gin_bindings", "a line of gin")
        for statement in statements:
            if isinstance(statement, config_parser.BindingStatement):
                name = "/".join(filter(None, (statement.scope, statement.selector)))
                if statement.arg_name:
                    name = short_name(f"{name}.{statement.arg_name}")
                written.lines.append(Line(name, statement.value, option, text, is_shipped))
            elif isinstance(statement, config_parser.ImportStatement):
                written.modules.add(statement.module)
            elif isinstance(statement, config_parser.IncludeStatement):
                add_file(find_gin_file(statement.filename), text)

    def add_file(path: str, text: str) -> None:
        if path in around:
            raise RecursionError
        around.append(path)
        is_shipped = pathlib.Path(path).resolve().parent == config_dir().resolve()
        with open(path, encoding="utf-8-sig") as file:
            add(file, "gin_files", text, is_shipped)
        around.pop()

    for name in gin_files:
        path = find_gin_file(name)
        with explained("gin_files", name):
            add_file(path, name)
    for binding in gin_bindings:
        with explained("gin_bindings", binding):
            add(binding, "gin_bindings", binding, False)
    for text in scans:
        parameter, values = scan.read(text)
        with explained("scan", text):
            add(f"{parameter} = {values[0]!r}", "scan", text, False)
    return written._replace(macros=set(texts.macros))


def _no_such_name(configurable: str, parameter: str | None, known: Collection[str]) -> str:
    """Returns, in words, that a configurable or its parameter doesn't exist."""
    if parameter is None:
        return f"there is no {configurable} in gin{checks.nearest(configurable, known)}"
    return f"{configurable} has no parameter {parameter}{checks.nearest(parameter, known)}"


def _in_words(message: str) -> str:
    """Returns gin's message; for an unknown name, with the nearest known ones."""
    # gin has no public list of them.
    registered = {name.rpartition(".")[2] for name, _ in gin.config._REGISTRY.items()}
    if match := re.match(r"No configurable matching (?:reference )?'@?(.+?)(?:\(\))?'", message):
        return _no_such_name(match[1].rpartition(".")[2], None, registered)
    if match := re.search(r"Configurable '(.+)' doesn't have a parameter named '(.+)'", message):
        allowed = set(inspect.signature(gin.get_configurable(match[1])).parameters) - {"self"}
        return _no_such_name(match[1], match[2], allowed)
    return message


@contextlib.contextmanager
def explained(name: str, value: str) -> Iterator[None]:
    """Turns an error of gin about an option's value into a ValueError that names both."""
    # Gin logs every folder in which it does not find an included file.
    logging.disable(logging.ERROR)
    try:
        yield
    except (
        ValueError, SyntaxError, tokenize.TokenError, LookupError, ImportError, OSError,
        AttributeError, RecursionError,
    ) as error:  # fmt: skip
        # gin's own words on a file in itself are as long as the chain of files.
        deep = isinstance(error, RecursionError)
        message = "it includes itself, or is nested too deeply" if deep else explain(error)
        if message.startswith("malformed node"):
            message = "a value must be a literal of Python, such as 0.96, True, None or 'huber'"
        raise ValueError(
            f"{name} is {value!r}; it must be gin that can be read: {_in_words(message)}"
        ) from error
    finally:
        logging.disable(logging.NOTSET)


@functools.cache
def _shipped() -> dict[str, set[str]]:
    """Returns the parameters that the package's gin files bind, by configurable."""
    parameters: dict[str, set[str]] = {}
    for line in parse([str(path) for path in sorted(config_dir().glob("*.gin"))], []).lines:
        configurable, _, parameter = line.name.rpartition(".")
        parameters.setdefault(configurable, set()).add(parameter)
    return parameters


@functools.cache
def _words() -> set[str]:
    """Returns all words in the source of Dopamine and of this package."""
    words = set[str]()
    for spec in map(importlib.util.find_spec, ("dopamine", "log_dqn")):
        for folder in (spec and spec.submodule_search_locations) or ():
            for path in pathlib.Path(folder).rglob("*.py"):
                words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return words


def _check_names(written: Written) -> None:
    """Checks the names that lines bind as far as possible without imports, which take seconds."""
    own = [name for name in written.modules if name.partition(".")[0] not in _PACKAGES]
    for line in written.lines:
        scoped, _, parameter = line.name.rpartition(".")
        configurable = scoped.rpartition("/")[2]
        known = _shipped().get(configurable)
        if line.is_shipped or not configurable or parameter in (known or ()):
            continue
        wrong = None
        if parameter == "beta_log" and known:
            rates = [other.name for other in written.lines if other.name.endswith(".learning_rate")]
            wrong = f"{configurable}'s beta_log is its optimizer's learning rate: {rates[-1]}"
        elif known is None and not own and configurable not in _words():
            wrong = _no_such_name(configurable, None, _shipped())
        elif known and parameter not in _words():
            wrong = _no_such_name(configurable, parameter, known)
        if wrong is not None:
            raise ValueError(
                f"{line.option} is {line.text!r}; it must be gin that can be read: {wrong}"
            )


def unread(line: Line, read: Iterable[str], what: str = "which") -> ValueError:
    """Returns the error of a line that nothing reads, with the nearest name that is read."""
    parameters = {name.rpartition(".")[2]: name for name in reversed(list(read))}
    near = difflib.get_close_matches(line.name.rpartition(".")[2], parameters, 1)
    nearest = f"; did you mean {parameters[near[0]]}?" if near else ""
    return ValueError(f"{line.name} is {line.value!r}, {what} nothing reads{nearest}")


def parse_checked(
    gin_files: Sequence[str], gin_bindings: Sequence[str], scans: Sequence[str] = ()
) -> Written:
    """Checks gin files, bindings and scans, their names and macros; returns their content.

    Nothing that they name is imported, so that names of other packages aren't checked.
    """
    written = parse(gin_files, gin_bindings, scans)
    parameters = [line.name for line in written.lines if "." in line.name]
    for line in written.lines:
        # gin leaves these out of what it writes.
        is_finite = not isinstance(line.value, float) or math.isfinite(line.value)
        allowed = f"a finite number{', or None for no line' * line.name.endswith('.linear_above')}"
        checks.check(line.name, line.value, is_finite, allowed)
        if "." not in line.name and line.name not in written.macros:
            raise unread(line, parameters, "a macro that")
    _check_names(written)
    _check_updates(written.lines)
    return written


def _check_updates(lines: Sequence[Line]) -> None:
    """Checks settings of LogDQN's update in a user's lines that are literals or macros."""
    agents = {line.name.rpartition(".")[0] for line in lines if not line.is_shipped}
    macros = {f"%{line.name}": line.value for line in lines}
    for agent in sorted(name for name in agents & _shipped().keys() if "LogDQNAgent" in name):
        from log_dqn import log_space  # It imports NumPy.

        own = {
            line.name.rpartition(".")[2]: macros.get(str(line.value), line.value)
            for line in lines
            if line.name.startswith(f"{agent}.")
        }
        names = inspect.signature(log_space.LogUpdate).parameters.keys() & own.keys()
        with checks.of(agent):
            log_space.LogUpdate(**{n: own[n] for n in names if not is_reference(own[n])})


def is_reference(value: Any) -> bool:
    """Returns whether a value is a reference or a macro, as gin writes them."""
    return isinstance(value, str) and value.startswith(("@", "%"))


def is_own(configurable: str) -> bool:
    """Returns whether a configurable is a user's own, which may be read at any time."""
    try:
        module = gin.get_configurable(configurable.rpartition("/")[2]).__module__
    except ValueError:  # Several packages have one of that name.
        return False
    return module.partition(".")[0] not in _PACKAGES


def check_is_read(lines: Iterable[Line], config: configuration.Configuration) -> None:
    """Checks that something reads each line; gin itself ignores unread ones.

    Lines of shipped files may go unread, since users replace parts such as the optimizer, unless
    they bind an agent or a runner. `config` is taken after all objects have been created.
    """
    read = {short_name(name): None for name in config.parameters}
    for line in lines:
        configurable = line.name.rpartition(".")[0]
        may_be_unread = line.is_shipped and not configurable.endswith(("Agent", "Runner"))
        may_be_unread = may_be_unread or is_own(configurable)
        if configurable and line.name not in read and not may_be_unread:
            raise unread(line, read)


def complete(
    gin_files: Sequence[str],
    gin_bindings: Sequence[str],
    agent: str | None,
    parameter: str,
    agents: Mapping[str, str],
    default: Callable[[str | None], str],
    command: str,
) -> list[str]:
    """Returns the gin files to read, in order.

    If the user's files name an agent they are used alone; else the agent's own file comes first.

    Args:
        gin_files: the user's files, which must be for the command.
        gin_bindings: the user's bindings, which may name an agent too.
        agent: the agent of `--agent`, or None.
        parameter: the parameter that names an agent.
        agents: classes of agents, by name.
        default: returns an agent's own file; for None, the default agent's.
        command: the command of `log-dqn` that reads them.
    """
    for name in gin_files:
        find_gin_file(name, command)
    written = parse(gin_files, [])
    for line in written.lines:
        bound_to = line.name.rpartition(".")[0].rpartition("/")[2]
        is_of_one = bound_to.endswith(("Agent", "Runner", "create_agent", "create_runner"))
        allowed = f"for log-dqn {command}: {bound_to} is for log-dqn {_command_of(bound_to)}"
        is_for_it = not is_of_one or _command_of(bound_to) == command
        checks.check("gin_files", line.text, is_for_it, allowed)
    if written.values(parameter):
        return list(gin_files)
    agent = agent or next(iter(parse([], gin_bindings).values(parameter)), None)
    if agent is None and gin_files:
        bound = {line.name.rpartition(".")[0] for line in written.lines}
        agent = next((name for name, cls in agents.items() if cls in bound), None)
        raise ValueError(
            f"gin_files is {gin_files[0]!r}; it must build on an agent's own: write "
            f"include {default(agent)!r} in it, or give --agent={agent or DEFAULT_AGENT} beside it"
        )
    return [default(agent), *gin_files]


def read(written: Written) -> None:
    """Makes gin read files and bindings."""
    for name in written.files:
        path = find_gin_file(name)
        with compat.quiet(), explained("gin_files", name):  # It may import TensorFlow.
            gin.parse_config_file(path)
    for binding in written.bindings:
        with explained("gin_bindings", binding):
            gin.parse_config(binding)
    for name in written.macros - {line.name for line in written.lines}:
        is_macro = gin.config.parse_value(f"%{name}").selector == "gin.macro"
        user = next((line.name for line in written.lines if f"%{name}" in str(line.value)), "macro")
        allowed = f"a macro that a line of gin defines: {name} = VALUE"
        checks.check(user, f"%{name}", not is_macro, allowed)


def bound(name: str, default: Any = None) -> Any:
    """Returns the value that gin binds to a parameter, through a macro too, or the default."""
    try:
        value = gin.query_parameter(name)
    except ValueError:
        return default
    is_macro = getattr(value, "selector", None) in ("gin.macro", "gin.constant")
    return value.scoped_configurable_fn() if is_macro else value
