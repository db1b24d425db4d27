"""Checks what a user binds in gin: names and values, and in the end that something reads them."""

import difflib
import functools
import importlib.util
import inspect
import math
import pathlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gin

from log_dqn import compat, log_space
from log_dqn.checks import (
    as_number,
    check,
    check_bool,
    check_count,
    check_decay,
    check_gamma,
    check_not_negative,
    check_one_of,
    check_positive,
    check_rate,
    check_seed,
    nearest,
    of,
)
from log_dqn.cli import shell
from log_dqn.cli.gin_files import Line, Written, bound, short_name
from log_dqn.run_folder import configuration

SCHEDULES = ("continuous_train_and_eval", "continuous_train")
"""With an evaluation phase in each iteration, and without."""

# Packages whose names are known. Their settings are read when agent and runner are created.
_PACKAGES = ("dopamine", "log_dqn", "gin", "tensorflow")

_Check = Callable[[str, Any], None]

CAPACITIES = (
    "WrappedReplayBuffer.replay_capacity", "WrappedPrioritizedReplayBuffer.replay_capacity",
    "ReplayBuffer.max_capacity", "PrioritizedSamplingDistribution.max_capacity",
)  # fmt: skip
"""The parameters with the size of Dopamine's replay memories; the last, of the one before."""

_DEVICE = re.compile(r"/(device:)?(cpu|gpu):(\d+|\*)", re.IGNORECASE)
_COLLECTORS = ("console", "pickle", "tensorboard")
_LOG_DQN_AGENTS = {"LogDQNAgent", "JaxLogDQNAgent", "VectorizedLogDQNAgent"}
_OF_UPDATE = inspect.signature(log_space.LogUpdate).parameters.keys() - {"gamma", "update_horizon"}


def _is_number(value: Any) -> bool:
    return math.isfinite(as_number(value))


def _are(of_items: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(of_items, value))


# By name, for whatever has a parameter of that name: what is allowed, in words and as a function.
_RULES: dict[tuple[str, ...], tuple[str, Callable[[Any], bool]]] = {
    ("vmin",): ("a number, or None", lambda v: v is None or _is_number(v)),
    ("min_vals", "max_vals"): (
        "a tuple of numbers, or None", lambda v: v is None or _are(_is_number)(v)
    ),
    ("observation_shape", "action_shape", "reward_shape"): (
        "a tuple of whole numbers, at least 1", _are(lambda n: type(n) is int and n > 0)
    ),
    ("collectors", "collector_allowlist"): (
        f"a tuple of {', '.join(_COLLECTORS)}", _are(lambda word: word in _COLLECTORS)
    ),
    ("preprocess_fn", "wrapped_memory"): ("@NAME", lambda v: v is None),
    ("settings",): ("a dict, or None", lambda v: v is None or isinstance(v, dict)),
    ("tf_device",): (
        "a device of TensorFlow such as /gpu:0 or /cpu:*",
        lambda v: isinstance(v, str) and bool(_DEVICE.fullmatch(v)),
    ),
    ("name", "environment_name"): (
        "a string, or None", lambda v: v is None or isinstance(v, str)
    ),
    ("use_legacy_logger",): ("True", lambda v: v is True),
    ("logging_file_prefix",): ("'log', which readers look for", lambda v: v == "log"),
    ("log_every_n",): ("1: each iteration is logged", lambda v: v == 1),
    ("checkpoint_file_prefix",): ("'ckpt', or left out: it names no file", lambda v: v == "ckpt"),
    ("max_tf_checkpoints_to_keep",): (
        "4, or left out: a run keeps two checkpoints", lambda v: v == 4
    ),
    tuple(f"create_{kind}environment.seed" for kind in ("", "minatar_", "gymnasium_")): (
        "None, or left out: the run's seed is the environment's", lambda v: v is None
    ),
}  # fmt: skip

# Or one of these words.
_WORDS = {
    "loss_type": log_space.LOSSES,
    "head_init": log_space.HEAD_INITS,
    "precision": log_space.PRECISIONS,
    "dtype": log_space.DTYPES,
    "replay_scheme": ("uniform", "prioritized"),
    "schedule": SCHEDULES,
    **{
        f"Jax{name}Agent.optimizer": compat.OPTIMIZERS
        for name in ("DQN", "Rainbow", "ImplicitQuantile", "LogDQN")
    },
}


def _rule(allowed: str, is_allowed: Callable[[Any], bool]) -> _Check:
    return lambda name, value: check(name, value, is_allowed(value), allowed)


def _or_none(check_one: _Check) -> _Check:
    return lambda name, value: None if value is None else check_one(name, value)


_FLAGS = ("centered", "use_locking", "use_own_namescope_for_non_slot_vars")
_POSITIVE = ("learning_rate", "epsilon", "eps", "kappa", "vmax", "epsilon_decay_period")

# By a parameter's name, or by its full name.
_CHECKS: dict[str, _Check] = {
    **{name: _rule(*rule) for names, rule in _RULES.items() for name in names},
    **{name: functools.partial(check_one_of, known=known) for name, known in _WORDS.items()},
    **dict.fromkeys(_FLAGS, check_bool),
    **dict.fromkeys(_POSITIVE, check_positive),
    **dict.fromkeys(("epsilon_train", "epsilon_eval"), check_rate),
    **dict.fromkeys(("decay", "momentum", "beta1", "beta2"), check_decay),
    "min_replay_history": functools.partial(check_count, least=0),
    "priority_exponent": check_not_negative,
    **dict.fromkeys(("batch_size", "replay_capacity", "max_capacity"), check_count),
    "gamma": lambda name, value: check_gamma(value, name),
    "seed": _or_none(lambda name, value: check_seed(value, name)),
    "keep_every": _or_none(check_count),
}


def _check_by_default(name: str, value: Any, default: Any) -> None:
    """Checks that a setting has the type of its default."""
    if isinstance(default, bool):
        check_bool(name, value)
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


def check_holds_batch(name: str, capacity: int, batch_size: int) -> None:
    """Checks that a replay memory holds a batch; both are numbers of transitions."""
    check(name, capacity, capacity >= batch_size, f"at least {batch_size}, the batch_size")


def warn_without_updates(command: str, agent: Any, steps: int) -> None:
    """Warns of a run of so many training steps, all before its agent's `min_replay_history`."""
    if steps <= agent.min_replay_history:
        name = f"{type(agent).__name__}.min_replay_history"
        shell.warn(
            command, f"nothing is learned: a run trains for {steps} agent steps, and the agent "
            f"learns after {agent.min_replay_history}, its {name}"
        )  # fmt: skip


def _check_memory() -> None:
    """Checks that replay memories hold a batch, and have a priority for each transition."""
    *memories, of_priorities = CAPACITIES
    for name in memories:
        size, batch = bound(name), bound(f"{name.partition('.')[0]}.batch_size", 32)
        if isinstance(size, int) and isinstance(batch, int):
            check_holds_batch(name, size, batch)
    transitions, priorities = map(bound, CAPACITIES[-2:])
    if isinstance(transitions, int) and isinstance(priorities, int):
        allowed = f"at least {transitions}, as {CAPACITIES[-2]} is"
        check(of_priorities, priorities, priorities >= transitions, allowed)


def _is_reference(value: Any) -> bool:
    """Returns whether a value is a reference or a macro, as gin writes them."""
    return isinstance(value, str) and value.startswith(("@", "%"))


def _check_by_name(name: str, value: Any) -> bool:
    """Checks a setting by its name; returns whether that is all that can be checked."""
    parameter = name.rpartition(".")[2]
    # LogUpdate checks its own; what a reference names isn't known yet.
    if _is_reference(value) or parameter in _OF_UPDATE:
        return True
    check_one = _CHECKS.get(name, _CHECKS.get(parameter))
    if check_one is not None:
        check_one(name, value)
    return check_one is not None


def check_written(written: Written) -> None:
    """Checks a user's lines as far as that needs no import of what they name, which takes seconds.

    Names of other packages aren't checked.
    """
    users = [line for line in written.lines if not line.is_shipped]
    for line in users:
        if "." not in line.name and line.name not in written.macros:
            raise unread(line, [other.name for other in written.lines if "." in other.name], _MACRO)
    _check_names(written, users)
    configurables = {_configurable(line) for line in written.lines if line.is_shipped}
    for line in users:
        if _configurable(line) in configurables:
            _check_by_name(line.name, _plain(written.values(line.name)[-1]))
    for agent in sorted({_configurable(line) for line in users} & _LOG_DQN_AGENTS):
        names = inspect.signature(log_space.LogUpdate).parameters
        found = {name: written.values(f"{agent}.{name}") for name in names}
        plain = {n: v[-1] for n, v in found.items() if v and not _is_reference(v[-1])}
        with of(agent):
            log_space.LogUpdate(**plain)


def _configurable(line: Line) -> str:
    return line.name.rpartition(".")[0]


def _plain(value: Any) -> Any:
    return configuration.as_json({"": value})[""]


@functools.cache
def _words() -> set[str]:
    """Returns all words in the source of Dopamine and of this package."""
    words = set[str]()
    for spec in map(importlib.util.find_spec, ("dopamine", "log_dqn")):
        for folder in (spec and spec.submodule_search_locations) or ():
            for path in pathlib.Path(folder).rglob("*.py"):
                words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return words


def _check_names(written: Written, users: Sequence[Line]) -> None:
    """Checks the names that a user's lines bind: each is in shipped files, or in some source."""
    known: dict[str, set[str]] = {}
    for line in written.lines:
        if line.is_shipped:
            known.setdefault(_configurable(line), set()).add(line.name.rpartition(".")[2])
    own = [name for name in written.modules if name.partition(".")[0] not in _PACKAGES]
    for line in users:
        scoped, _, parameter = line.name.rpartition(".")
        configurable = scoped.rpartition("/")[2]
        of_it = known.get(configurable)
        if not configurable or parameter in (of_it or ()):
            continue
        wrong = None
        optimizer = [None, *written.values(f"{configurable}.optimizer")][-1]
        has_rate = "learning_rate" in (of_it or ())
        if parameter == "beta_log" and (
            has_rate or (optimizer and not configurable.startswith("Vectorized"))
        ):
            # Dopamine's JAX agents also take the name of one, which create_optimizer makes.
            chosen = re.fullmatch(r"@(?:.*[./])?(\w+)\(\)", str(optimizer))
            owner = configurable if has_rate else chosen[1] if chosen else "create_optimizer"
            rate = f"{owner}.learning_rate"
            wrong = f"{configurable}'s beta_log is its optimizer's learning rate: {rate}"
        elif of_it is None and not own and configurable not in _words():
            wrong = f"there is no {configurable} in gin{nearest(configurable, known)}"
        elif of_it and parameter not in _words():
            wrong = f"{configurable} has no parameter {parameter}{nearest(parameter, of_it)}"
        if wrong is not None:
            raise ValueError(
                f"{line.option} is {line.text!r}; it must be gin that can be read: {wrong}"
            )


def check_bound(written: Written) -> None:
    """Checks all of a user's settings of this package, Dopamine and the optimizers.

    gin has read them, so that what they name is imported.
    """
    for line in written.lines:
        if line.is_shipped or not line.selector or _is_own(line.selector):
            continue
        value = _plain(written.values(line.name)[-1])
        if not _check_by_name(line.name, value):
            parameter = line.name.rpartition(".")[2]
            parameters = inspect.signature(gin.get_configurable(line.selector)).parameters
            if parameter in parameters:  # Of TensorFlow's optimizers not all are.
                _check_by_default(line.name, value, parameters[parameter].default)
    _check_memory()


_MACRO = "a macro that"


def unread(line: Line, read: Iterable[str], what: str = "which") -> ValueError:
    """Returns the error of a line that nothing reads, with the nearest name that is read."""
    parameters = {name.rpartition(".")[2]: name for name in reversed(list(read))}
    near = difflib.get_close_matches(line.name.rpartition(".")[2], parameters, 1)
    hint = f"; did you mean {parameters[near[0]]}?" if near else ""
    return ValueError(f"{line.name} is {line.value!r}, {what} nothing reads{hint}")


def _is_own(selector: str) -> bool:
    """Returns whether a configurable is a user's own, which may be read at any time."""
    return gin.get_configurable(selector).__module__.partition(".")[0] not in _PACKAGES


def check_is_read(lines: Iterable[Line], config: configuration.Configuration) -> None:
    """Checks that something reads each line; gin itself ignores unread ones.

    Lines of shipped files may go unread, since users replace parts such as the optimizer, unless
    they bind an agent or a runner. `config` is taken after all objects have been created.
    """
    read = {short_name(name): None for name in config.parameters}
    for line in lines:
        if not line.selector or line.name in read or _is_own(line.selector):
            continue
        if not line.is_shipped or line.selector.endswith(("Agent", "Runner")):
            raise unread(line, read)
