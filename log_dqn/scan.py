"""Scans over hyperparameters: the grid of settings, and the name of each.

Pure Python, so that everything that starts runs can share it.
"""

import ast
import collections
import itertools
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_NAME = re.compile(r"[\w./]*\w\.\w+")

# A folder's name may have 255 bytes on most file systems; copies may need some for a suffix.
_LONGEST_NAME = 200


class Setting(NamedTuple):
    """One point of the grid.

    Attributes:
        name: its folder, such as `gamma=0.84,c=0.5`; empty without a scan.
        bindings: values by gin parameter.
    """

    name: str
    bindings: Mapping[str, Any]

    def gin_bindings(self) -> list[str]:
        """Returns the bindings as lines of gin."""
        return [f"{parameter} = {value!r}" for parameter, value in self.bindings.items()]


def read(text: str) -> tuple[str, tuple[Any, ...]]:
    """Reads a scan; returns its parameter and its values.

    It is `parameter=value,value,...`, the values as gin literals: `LogDQNAgent.c=0.1,0.5,1`.
    """
    parameter, _, values = (part.strip() for part in text.partition("="))

    def refused(allowed: str) -> ValueError:
        return ValueError(f"scan is {text!r}; it must be {allowed}")

    form = "PARAMETER=VALUE,VALUE,... with"
    if not _NAME.fullmatch(parameter):
        example = "LogDQNAgent.gamma (VectorizedLogDQNAgent.gamma for train-vectorized)"
        raise refused(f"{form} a gin parameter such as {example}")
    try:
        parsed = ast.literal_eval(f"[{values}]")
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        parsed = None
    if not isinstance(parsed, list):
        raise refused(f"{form} gin literals: numbers, 'strings', True, None, tuples")
    if not parsed:
        raise refused(f"{form} at least one value")
    names = collections.Counter(_in_folder_name(value) for value in parsed)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise refused(f"values that differ ({', '.join(twice)} is there twice)")
    return parameter, tuple(parsed)


def _in_folder_name(value: Any) -> str:
    """Returns a value as it stands in a folder's name: 1.0 as 1, and nothing but safe letters."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return urllib.parse.quote(str(value), safe="+")


def parse(texts: Sequence[str]) -> list[Setting]:
    """Returns the grid of some scans, the last one varying fastest.

    Each scan has another parameter. Without scans there is one setting, without a name. A name has
    the parameters in the order of the scans, by their short names (`gamma`), or in full if two have
    the same short name.
    """
    scans = [read(text) for text in texts]
    parameters = [parameter for parameter, _ in scans]
    for parameter, count in collections.Counter(parameters).items():
        if count > 1:
            raise ValueError(f"scan has {parameter} {count} times; it must have it once")
    short = [parameter.rpartition(".")[2] for parameter in parameters]
    shown = [
        name if short.count(name) == 1 else urllib.parse.quote(parameter, safe="")
        for name, parameter in zip(short, parameters, strict=True)
    ]
    settings = []
    for values in itertools.product(*(values for _, values in scans)):
        parts = zip(shown, map(_in_folder_name, values), strict=True)
        name = ",".join(f"{parameter}={value}" for parameter, value in parts)
        if len(name) > _LONGEST_NAME:
            raise ValueError(
                f"scan gives the setting {name}; it must have at most {_LONGEST_NAME} characters"
            )
        settings.append(Setting(name, dict(zip(parameters, values, strict=True))))
    return settings
