"""Checks of settings: an error says what the setting is and what it must be."""

import contextlib
import difflib
import importlib.util
import math
import numbers
from collections.abc import Iterable, Iterator
from typing import Any


def as_number(value: Any) -> float:
    """Returns a real number as a float, and NaN, which is in no range, for anything else.

    A number too large for floats becomes infinite.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        return float(value) if is_number else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check(name: str, value: Any, is_allowed: bool, allowed: str) -> None:
    """Checks a setting; `allowed` says in words what is allowed.

    Raises:
        ValueError: if the value isn't allowed; the message names all three.
    """
    if not is_allowed:
        raise ValueError(f"{name} is {value!r}; it must be {allowed}")


@contextlib.contextmanager
def of(owner: str) -> Iterator[None]:
    """Puts the owner of a setting before its name in the errors of the checks in the block."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{owner}.{error}") from error


def nearest(name: Any, known: Iterable[str]) -> str:
    """Returns, in words, the known names that are most like one, in any case; '' if none is.

    If none is alike, known names within it are returned: Pong for ALE/Pong-v5.
    """
    by_lower, lower = {word.lower(): word for word in known}, str(name).lower()
    near = difflib.get_close_matches(lower, by_lower, 3, cutoff=0.5)
    near = near or [word for word in by_lower if len(word) > 3 and word in lower][:3]
    return f" (nearest: {', '.join(by_lower[word] for word in near)})" if near else ""


def check_gamma(gamma: Any, name: str = "gamma") -> None:
    """Checks a discount factor; raises ValueError unless it is a number in (0, 1)."""
    check(name, gamma, 0 < as_number(gamma) < 1, "a number between 0 and 1, both excluded")


def check_rate(name: str, value: Any) -> None:
    """Checks a probability; raises ValueError unless it is a number from 0 to 1."""
    check(name, value, 0 <= as_number(value) <= 1, "a number from 0 to 1")


def check_decay(name: str, value: Any) -> None:
    """Checks a rate of decay; raises ValueError unless it is a number from 0 to 1, 1 excluded."""
    check(name, value, 0 <= as_number(value) < 1, "a number from 0 to 1, 1 excluded")


def check_positive(name: str, value: Any) -> None:
    """Checks that a setting is a finite number above 0; raises ValueError unless it is."""
    check(name, value, 0 < as_number(value) < math.inf, "a positive number")


def check_not_negative(name: str, value: Any) -> None:
    """Checks that a setting is a finite number, 0 or above; raises ValueError unless it is."""
    check(name, value, 0 <= as_number(value) < math.inf, "0 or a positive number")


def check_bool(name: str, value: Any) -> None:
    """Checks that a setting is True or False; raises ValueError unless it is."""
    check(name, value, isinstance(value, bool), "True or False")


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> None:
    """Checks that a setting is a whole number from `least` to `most`, or, for None, any above."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    is_allowed = is_whole and least <= value and (most is None or value <= most)
    allowed = f", at least {least}" if most is None else f" from {least} to {most}"
    check(name, value, is_allowed, f"a whole number{allowed}")


LAST_SEED = 2**32 - 1
"""The largest seed: JAX makes its keys of 32 bits, and NumPy takes no more."""


def check_seed(seed: Any, name: str = "seed") -> None:
    """Checks a seed; raises ValueError unless it is a whole number that NumPy takes."""
    check_count(name, seed, 0, LAST_SEED)


def check_one_of(name: str, value: Any, known: Iterable[str]) -> None:
    """Checks that a setting is one of some words."""
    words = tuple(known)
    check(name, value, value in words, f"one of {', '.join(words)}{nearest(value, words)}")


def is_installed(package: str) -> bool:
    """Returns whether a package is installed, without importing it."""
    found = importlib.util.find_spec(package)
    # Any folder of that name is found, too, but has no origin: wandb's, with what it has logged.
    return found is not None and found.origin is not None


def check_extra(extra: str | None, packages: Iterable[str], what: str = "") -> None:
    """Checks, without importing them, that packages of an extra, or of no extra, are installed.

    The error names `what` needs them, if that is given.
    """
    missing = [name for name in packages if not is_installed(name)]
    if missing:  # This package has no release yet.
        source = f".[{extra}]" if extra else "."
        named = " and ".join(missing)
        said = f"{what} needs {named}" if what else f"{named} must be installed"
        raise ValueError(f"{said}: pip install '{source}' in the source")
