"""Checks the settings that gin gives a run, before any is used."""

import inspect
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gin

from log_dqn import compat, log_space
from log_dqn.checks import (
    as_number,
    check,
    check_count,
    check_gamma,
    check_not_negative,
    check_one_of,
    check_positive,
)
from log_dqn.program import environments
from log_dqn.program.gin_files import Line, bound, is_own, is_reference, short_name
from log_dqn.run_folder import configuration
from log_dqn.single.request import check_seed

SCHEDULES = ("continuous_train_and_eval", "continuous_train")
"""With an evaluation phase in each iteration, and without."""

_Check = Callable[[str, Any], None]


def _is(is_allowed: Callable[[Any], bool], allowed: str) -> _Check:
    return lambda name, value: check(name, value, is_allowed(value), allowed)


def _one_of(known: Iterable[str]) -> _Check:
    return lambda name, value: check_one_of(name, value, known)


def _tuple_of(known: Sequence[str]) -> _Check:
    return _is(
        lambda value: isinstance(value, list) and all(word in known for word in value),
        f"a tuple of {', '.join(known)}",
    )


def _is_number(value: Any) -> bool:
    return math.isfinite(as_number(value))


_DECAY = _is(lambda value: 0 <= as_number(value) < 1, "a number from 0 to 1, 1 excluded")
_EPSILON = _is(lambda value: 0 <= as_number(value) <= 1, "a number from 0 to 1")
_SHAPE = _is(
    lambda value: isinstance(value, list) and all(type(n) is int and n > 0 for n in value),
    "a tuple of whole numbers, at least 1",
)
_DEVICE = re.compile(r"/(device:)?(cpu|gpu):(\d+|\*)", re.IGNORECASE)
_COLLECTORS = ("console", "pickle", "tensorboard")

_OF_UPDATE = inspect.signature(log_space.LogUpdate).parameters.keys() - {"gamma", "update_horizon"}

# By name, for whatever has a parameter of that name; or in full.
_CHECKS: dict[str, _Check] = {
    "gamma": lambda name, value: check_gamma(value, name),
    **dict.fromkeys(("epsilon_train", "epsilon_eval"), _EPSILON),
    **dict.fromkeys(("decay", "momentum", "beta1", "beta2"), _DECAY),
    **dict.fromkeys(
        ("learning_rate", "epsilon", "eps", "kappa", "vmax", "epsilon_decay_period"), check_positive
    ),
    **dict.fromkeys(("min_replay_history", "priority_exponent"), check_not_negative),
    **dict.fromkeys(("batch_size", "replay_capacity", "max_capacity"), check_count),
    "seed": lambda name, value: None if value is None else check_seed(value),
    "vmin": _is(lambda value: value is None or _is_number(value), "a number, or None"),
    "loss_type": _one_of(log_space.LOSSES),
    "head_init": _one_of(log_space.HEAD_INITS),
    "precision": _one_of(log_space.PRECISIONS),
    "dtype": _one_of(log_space.DTYPES),
    "replay_scheme": _one_of(("uniform", "prioritized")),
    "schedule": _one_of(SCHEDULES),
    **dict.fromkeys(
        (
            "JaxDQNAgent.optimizer",
            "JaxRainbowAgent.optimizer",
            "JaxImplicitQuantileAgent.optimizer",
            "JaxLogDQNAgent.optimizer",
        ),
        _one_of(compat.OPTIMIZERS),
    ),
    **dict.fromkeys(("observation_shape", "action_shape", "reward_shape"), _SHAPE),
    **dict.fromkeys(("collectors", "collector_allowlist"), _tuple_of(_COLLECTORS)),
    **dict.fromkeys(("preprocess_fn", "wrapped_memory"), _is(lambda value: value is None, "@NAME")),
    "settings": _is(lambda value: value is None or isinstance(value, dict), "a dict, or None"),
    "keep_every": lambda name, value: None if value is None else check_count(name, value),
    "tf_device": _is(
        lambda value: isinstance(value, str) and bool(_DEVICE.fullmatch(value)),
        "a device of TensorFlow such as /gpu:0 or /cpu:*",
    ),
    **dict.fromkeys(
        ("centered", "use_locking", "use_own_namescope_for_non_slot_vars"),
        _is(lambda value: isinstance(value, bool), "True or False"),
    ),
    **dict.fromkeys(
        ("min_vals", "max_vals"),
        _is(
            lambda value: (
                value is None
                or (isinstance(value, list) and all(_is_number(number) for number in value))
            ),
            "a tuple of numbers, or None",
        ),
    ),
    **dict.fromkeys(
        ("name", "environment_name"),
        _is(lambda value: value is None or isinstance(value, str), "a string, or None"),
    ),
    "use_legacy_logger": _is(lambda value: value is True, "True"),
    "logging_file_prefix": _is(lambda value: value == "log", "'log', which readers look for"),
}


def _check_by_default(name: str, value: Any, default: Any) -> None:
    """Checks that a setting has the type of its default."""
    if isinstance(default, bool):
        check(name, value, isinstance(value, bool), "True or False")
    elif isinstance(default, int):
        check_count(name, value)
    elif isinstance(default, float):
        check(name, value, _is_number(value), "a number")
    elif isinstance(default, str):
        check(name, value, isinstance(value, str), f"a string such as {default!r}")
    elif isinstance(default, tuple):
        check(name, value, isinstance(value, list), f"a tuple such as {default!r}")
    elif default is not None and default is not inspect.Parameter.empty:
        check(name, value, False, "a reference: @NAME, or @NAME() for what NAME returns")


def _check_memory() -> None:
    """Checks that replay memories hold a batch."""
    for memory, capacity in (
        ("WrappedReplayBuffer", "replay_capacity"),
        ("WrappedPrioritizedReplayBuffer", "replay_capacity"),
        ("ReplayBuffer", "max_capacity"),
    ):
        size, batch = bound(f"{memory}.{capacity}"), bound(f"{memory}.batch_size", 32)
        if isinstance(size, int) and isinstance(batch, int):
            allowed = f"at least {batch}, the batch_size"
            check(f"{memory}.{capacity}", size, size >= batch, allowed)


def _check_by_name(name: str, value: Any) -> bool:
    """Checks a setting by its name; returns whether that is all that can be checked."""
    parameter = name.rpartition(".")[2]
    # LogUpdate checks its own; what a reference names isn't known yet.
    if is_reference(value) or parameter in _OF_UPDATE:
        return True
    check_one = _CHECKS.get(name, _CHECKS.get(parameter))
    if check_one is not None:
        check_one(name, value)
    return check_one is not None


def check_lines(lines: Sequence[Line]) -> None:
    """Checks a user's settings of configurables in shipped files, without importing an agent."""
    shipped = {line.name.rpartition(".")[0] for line in lines if line.is_shipped}
    for line in lines:
        if line.name.rpartition(".")[0] in shipped:
            _check_by_name(line.name, configuration.as_json({"": line.value})[""])


def check_bound() -> None:
    """Checks all settings that gin binds of this package, Dopamine and the optimizers."""
    for full_name, value in configuration.parameters(gin.config_str()).items():
        selector, _, parameter = full_name.rpartition("/")[2].rpartition(".")
        name = short_name(full_name)
        if is_own(selector) or _check_by_name(name, value):
            continue
        parameters = inspect.signature(gin.get_configurable(selector)).parameters
        if parameter in parameters:  # Of TensorFlow's optimizers not all are.
            _check_by_default(name, value, parameters[parameter].default)
    _check_memory()
    name, version = (bound(f"create_gym_environment.{n}") for n in ("environment_name", "version"))
    if isinstance(name, str):
        environments.check_id(f"{name}-{version or 'v0'}")
