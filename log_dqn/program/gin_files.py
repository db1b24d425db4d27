"""Finding and reading gin files and bindings, with errors of one line."""

import contextlib
import difflib
import inspect
import logging
import os
import pathlib
import re
import tokenize
from collections.abc import Iterator, Sequence
from typing import Any

import gin
from gin import config_parser

from log_dqn import checks, compat
from log_dqn.program.shell import explain
from log_dqn.run_folder import configuration

DEFAULT_AGENT = "log_dqn"
"""The agent whose gin file is used when neither an agent nor a gin file is given."""


def config_dir() -> pathlib.Path:
    """Returns the folder of the gin files: in the installed package, or in the checkout."""
    package = pathlib.Path(__file__).resolve().parents[1]
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


# For gin files that include one that comes with the package.
gin.add_config_file_search_path(str(config_dir()))


def find_gin_file(name: str) -> str:
    """Returns the path of a gin file.

    Args:
        name: a path, or the name of a file that comes with the package, with or without a
            folder `configs/` before it.

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


def _nearest_parameters(message: str) -> str:
    """Returns what gin's message on a parameter that doesn't exist leaves out."""
    match = re.search(r"Configurable '(.+)' doesn't have a parameter named '(.+)'", message)
    if not match:
        return ""
    allowed = list(inspect.signature(gin.get_configurable(match[1])).parameters)
    near = difflib.get_close_matches(match[2], allowed) or sorted(set(allowed) - {"self"})
    return f" (nearest: {', '.join(near)})"


def _nearest_configurables(message: str) -> str:
    """Returns what gin's message on a configurable that doesn't exist leaves out."""
    match = re.match(r"No configurable matching '(.+?)'", message)
    if not match:
        return ""
    # gin has no public list of them.
    known = {name.rpartition(".")[2] for name, _ in gin.config._REGISTRY.items()}
    near = difflib.get_close_matches(match[1].rpartition(".")[2], known)
    return f" (nearest: {', '.join(near)})" if near else ""


def parameters_like(parameter: str) -> str:
    """Returns, in words, the parameters of what gin binds something of and is named most alike.

    Args:
        parameter: a name such as `LogDQNAgent.gama`.
    """
    bound: dict[str, set[str]] = {}
    for configurable, name, _ in configuration.bindings():
        bound.setdefault(configurable, set()).add(name)
    wanted = parameter.rpartition("/")[2].split(".")[-2]
    near = difflib.get_close_matches(wanted, bound, n=1, cutoff=0)
    return "".join(f"{name} has {', '.join(sorted(bound[name]))}" for name in near)


@contextlib.contextmanager
def explained(name: str, value: str) -> Iterator[None]:
    """Turns what gin raises while it parses an option's value into a ValueError with both."""
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
            message = "a value must be a literal of Python, such as 0.96, True or 'huber'"
        if name == "scan" and re.match("No configurable matching|Could not find", message):
            message += f" ({parameters_like(value.partition('=')[0].strip())})"
        else:
            message += _nearest_configurables(message)
        raise ValueError(
            f"{name} is {value!r}; it must be gin that can be read: "
            f"{message}{_nearest_parameters(message)}"
        ) from error
    finally:
        logging.disable(logging.NOTSET)


class _Names(config_parser.ParserDelegate):
    """Takes names for what they stand for."""

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> str:
        return scoped_configurable_name

    def macro(self, macro_name: str) -> str:
        return macro_name


def check(gin_files: Sequence[str], gin_bindings: Sequence[str]) -> None:
    """Checks that gin files exist, and that these and bindings are gin by their form.

    What they name is not imported.

    Raises:
        ValueError: if a file doesn't exist, a file or binding isn't gin, or a binding is empty.
    """
    for name in gin_files:
        path = find_gin_file(name)
        with explained("gin_files", name), open(path, encoding="utf-8") as file:
            list(config_parser.ConfigParser(file, _Names()))
    for binding in gin_bindings:
        with explained("gin_bindings", binding):
            statements = list(config_parser.ConfigParser(binding, _Names()))
        checks.check("gin_bindings", binding, bool(statements), "a line of gin")


def read(gin_files: Sequence[str], gin_bindings: Sequence[str], default: str) -> None:
    """Reads gin files, or the default if there are none, then bindings.

    Raises:
        ValueError: if a file or a gin name doesn't exist, or a file or binding isn't gin.
    """
    for name in gin_files or [default]:
        path = find_gin_file(name)
        with compat.quiet(), explained("gin_files", name):  # It may import TensorFlow.
            gin.parse_config_file(path)
    for binding in gin_bindings:
        with explained("gin_bindings", binding):
            gin.parse_config(binding)


def bound(name: str, default: Any = None) -> Any:
    """Returns what gin binds a parameter to, and the default where it binds nothing."""
    try:
        return gin.query_parameter(name)
    except ValueError:
        return default
