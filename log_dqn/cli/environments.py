"""All checks of gymnasium's environments: their ids, their spaces, and what they return."""

import contextlib
import importlib.util
import math
import reprlib
import weakref
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import passive_env_checker

from log_dqn import checks, games
from log_dqn.cli import shell

LEAST_SIDE = 36
"""The smallest side of a picture that DQN's network accepts."""

# Bounds beyond this mean that a component is unbounded: some environments write it so.
_UNBOUNDED = 1e6
_LARGEST = np.finfo(np.float32).max
_FLAGS = (bool, np.bool_, int, np.integer)
_MOST = 100_000  # Actions, and numbers in an observation: more is a slip.

_PICTURE = (
    "a picture of bytes from 0 to 255 of shape (height, width), (height, width, 1) or (height, "
    "width, 3): move the channels to the end, leave stacking to the agent; or a vector, by "
    "gymnasium.wrappers.FlattenObservation"
)

# Signatures of gymnasium's methods, and how many values they return.
_METHODS = {
    "reset": ("reset(self, *, seed=None, options=None), which returns (observation, info)", 2),
    "step": (
        "step(self, action), which returns (observation, reward, terminated, truncated, info)", 5,
    ),
}  # fmt: skip


class Fault(ValueError):
    """An environment has failed, or returned something invalid; its own error is the cause."""


def explain(error: BaseException) -> str:
    """Returns an error of a user's code as one line that says what and where."""
    return f"{shell.explain(error)}{shell.place(error)}"


def refused(
    environment_id: str | None,
    error: BaseException,
    allowed: str = "an environment of gymnasium that can be made",
) -> ValueError:
    """Returns an error of one line: what an environment must be, and where it failed."""
    return ValueError(f"env is {environment_id!r}; it must be {allowed}: {explain(error)}")


def scaling(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (center, half) with which (x - center) / half has bounded components in [-1, 1]."""
    bounded = (low > -_UNBOUNDED) & (high < _UNBOUNDED) & (low < high)
    low, high = np.where(bounded, low, -1), np.where(bounded, high, 1)
    return (low + high) / 2, (high - low) / 2


def check_id(environment_id: str | None, prefix: str = "", of_module: str = "MODULE:ID") -> None:
    """Checks the id of an environment, as far as that needs no import of its module.

    Messages put `prefix` before it, and say what an id with a module's name is made of.
    """
    typed = f"{prefix}{environment_id}"
    module, _, own_id = str(environment_id).rpartition(":")
    if module:
        try:
            is_there = importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):
            is_there = False
        except (Exception, SystemExit) as error:  # Of the packages around the module.
            raise refused(typed, error, "one that can be made") from error
        allowed = f"an id, or {prefix}{of_module} of a module that exists, named as for import"
        checks.check("env", typed, is_there, allowed)
        return
    allowed = f"'{prefix}ale_py:{own_id}': ALE's environments are of the module ale_py"
    checks.check("env", typed, not own_id.startswith("ALE/"), allowed)
    try:
        gymnasium.spec(own_id)
    except gymnasium.error.Error as error:
        game = games.canonical(own_id)
        hint = checks.nearest(own_id, gymnasium.registry)
        if game:
            hint = f" ({game} is a game: --game or --games)"
        raise ValueError(f"{refused(typed, error)}{hint}") from error


def is_picture(space: spaces.Space) -> bool:
    """Returns whether observations are pictures: bytes, grey or in three colours, large enough."""
    shape = space.shape or ()
    return (
        isinstance(space, spaces.Box)
        and space.dtype == np.uint8
        and bool((space.low == 0).all() and (space.high == 255).all())
        and (len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3)))
        and min(shape[:2]) >= LEAST_SIDE
    )


def check_spaces(environment_id: str | None, environment: gymnasium.Env) -> None:
    """Checks that actions are discrete, and that observations are pictures or make a vector.

    Raises:
        Fault: if not; gymnasium's own checker raises others.
    """

    def check(name: str, is_allowed: bool, allowed: str) -> None:
        if not is_allowed:
            one_line = " ".join(repr(getattr(environment, name)).split())
            raise Fault(f"{name} of {environment_id} is {one_line}; it must be {allowed}")

    actions: Any = environment.action_space
    space = environment.observation_space
    passive_env_checker.check_action_space(actions)
    passive_env_checker.check_observation_space(space)
    is_discrete = isinstance(actions, spaces.Discrete) and not actions.start
    check("action_space", is_discrete, "discrete, numbered from 0")
    check("action_space", actions.n <= _MOST, f"of at most {_MOST:,} actions")
    is_large = len(space.shape or ()) == 3 and sorted(space.shape or ())[1] >= LEAST_SIDE
    check("observation_space", not is_large or is_picture(space), _PICTURE)
    try:
        size = spaces.flatdim(space)
    except (NotImplementedError, ValueError):
        size = 0
    fits = 0 < size <= _MOST or is_picture(space)
    check(
        "observation_space",
        fits,
        f"one that makes a vector, of at most {_MOST:,} numbers, or a picture",
    )


def _not_finite(array: np.ndarray) -> str:
    """Returns, in words, where numbers aren't finite in float32; '' if all are."""
    # Bytes are; and the sum of squares, fast and NaN or larger if one isn't, mostly says it.
    if array.dtype.kind != "f" or np.vdot(array, array) <= _LARGEST:
        return ""
    wrong = np.argwhere(~(np.abs(array) <= _LARGEST)).tolist()
    said = (f"it has {array[tuple(at)]} at {at}, and must be finite in float32" for at in wrong)
    return next(said, "")


def _misfit(space: Any, observation: Any) -> str:
    """Returns, in words, how an observation differs from its space; '' if it doesn't."""
    if isinstance(space, spaces.Box):
        array, dtype = np.asarray(observation), np.dtype(space.dtype)
        can_cast = array.dtype == dtype or np.can_cast(array.dtype, dtype, "same_kind")
        if array.shape == space.shape and can_cast:
            return _not_finite(array)
        return f"it is {array.dtype} of shape {array.shape}, not {dtype} of shape {space.shape}"
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts: Any = space.spaces
        keys: Any = parts if isinstance(space, spaces.Dict) else range(len(parts))
        misfits = ((key, _misfit(parts[key], observation[key])) for key in keys)
        return next((f"at {key!r} {misfit}" for key, misfit in misfits if misfit), "")
    return "" if space.contains(observation) else f"it is {_short(observation)}, not of {space}"


def _short(value: Any) -> str:
    return " ".join(reprlib.repr(value).split())


def _close(environment: gymnasium.Env) -> None:
    with contextlib.suppress(Exception):  # Whatever a user's module raises.
        environment.close()


class Checked(gymnasium.Wrapper):
    """An environment that raises `Fault` at the step where it fails.

    It is closed at the latest when nothing refers to it, or the program ends: a simulator's process
    would outlive it.
    """

    def __init__(self, environment: gymnasium.Env, environment_id: str | None) -> None:
        """Takes an environment and its id."""
        super().__init__(environment)
        self._id, self._space = environment_id, environment.observation_space
        self._closer = weakref.finalize(self, _close, environment)

    def _fault(self, method: str, what: str) -> Fault:
        return Fault(f"env is {self._id!r}; its {method} {what}")

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        declared, count = _METHODS[method]
        try:
            result = getattr(self.env, method)(*args, **kwargs)
        except (Exception, SystemExit) as error:
            where = shell.place(error) or f"; it must be {declared}"
            raise self._fault(method, f"failed: {shell.explain(error)}{where}") from error
        if not isinstance(result, tuple) or len(result) != count:
            what = f"{len(result)} values" if isinstance(result, tuple) else f"{type(result)}"
            raise self._fault(method, f"returned {what}; it must be {declared}")
        try:
            misfit = _misfit(self._space, result[0])
        except Exception as error:  # Of what has no such parts, or makes no array.
            misfit = f"it is {_short(result[0])}, not of {self._space} ({shell.explain(error)})"
        if misfit:
            raise self._fault(method, f"must return what observation_space declares: {misfit}")
        return result

    def reset(self, **settings: Any) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; see gymnasium's Env."""
        result = self._call("reset", **settings)
        if not isinstance(self.unwrapped.np_random, np.random.Generator):
            made = "super().reset(seed=seed) makes numpy's Generator of it"
            raise self._fault("reset", f"left {self.unwrapped.np_random} as np_random; {made}")
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes a step; see gymnasium's Env."""
        result = self._call("step", action)
        for flag in result[2:4]:
            if not isinstance(flag, _FLAGS):
                allowed = "terminated and truncated must be True or False"
                raise self._fault("step", f"returned {_short(flag)}; {allowed}")
        return result

    def close(self) -> None:
        """Closes the environment, once; see gymnasium's Env."""
        self._closer()


def make(environment_id: str | None, settings: Mapping[str, Any]) -> gymnasium.Env:
    """Makes an environment that is checked at each step.

    Raises:
        ValueError: if it can't be made, or doesn't suit these agents.
    """
    checks.check("settings", settings, isinstance(settings, Mapping), "a dict")
    check_id(environment_id)
    try:
        # gymnasium's own checker warns, and of the first step alone.
        own = {**settings, "disable_env_checker": True}
        environment = gymnasium.make(str(environment_id), **own)
        try:
            check_spaces(environment_id, environment)
        except BaseException:
            _close(environment)
            raise
    except Fault:
        raise
    except (Exception, SystemExit) as error:  # Whatever a user's module raises.
        raise refused(environment_id, error) from error
    return Checked(environment, environment_id)


def check_observation(environment: str, observation: Any) -> None:
    """Checks that an observation of an environment is finite in float32; raises Fault if not."""
    if wrong := _not_finite(np.asarray(observation)):
        raise Fault(f"the observation of {environment} is wrong: {wrong}")


def as_number(environment: str, reward: Any) -> float:
    """Returns an environment's reward; raises Fault unless it is one finite number."""
    if isinstance(reward, float) and math.isfinite(reward):
        return float(reward)
    try:
        array = np.asarray(reward)
    except ValueError:  # Lists of several lengths.
        array = np.array(None)
    if array.shape or array.dtype.kind not in "fiub" or not np.isfinite(array):
        allowed = "one finite number, such as float(reward)"
        raise Fault(f"the reward of {environment} is {_short(reward)}; it must be {allowed}")
    return float(array)
