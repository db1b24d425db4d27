"""The configuration that a run is started with, as data, and its comparison with an earlier one."""

import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import gin
from gin import config_parser

from log_dqn.checks import check
from log_dqn.run_folder import layout
from log_dqn.run_folder.checkpoints import CheckpointError, replace_file

_RULE = "# " + "=" * 78

# Parameters that may change from one start of a run to the next: they change nothing it learns.
_MAY_CHANGE = re.compile(
    r"(Vectorized)?Runner\.num_iterations|Runner\.log_every_n|Logger\..*|CollectorDispatcher\..*"
    r"|Runner\.checkpoint_file_prefix|create_(minatar_|gymnasium_)?environment\.seed"
    r"|get_latest_checkpoint_number\..*|.*\.(tf_device|max_tf_checkpoints_to_keep"
    r"|checkpoint_duration|keep_every|allow_partial_reload)"
)

# Parameters that earlier versions didn't have, with what they did.
_ADDED = {"VectorizedRunner.clip_rewards": True}

_AGENT = "create_agent.agent_name"


class Configuration(NamedTuple):
    """A configuration.

    Attributes:
        text: in gin's language.
        parameters: plain values by full name, such as `LogDQNAgent.gamma`; what is not plain
            stands as gin writes it, `@tf.train.RMSPropOptimizer()`.
    """

    text: str
    parameters: dict[str, Any]


class Plain(config_parser.ParserDelegate):
    """Gives gin's parser text for references, and values for macros that are known.

    The others, of which it gives text too, are in `macros` once they are named.
    """

    def __init__(self) -> None:
        self.macros: dict[str, Any] = {}

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> str:
        """Returns a reference as gin writes it."""
        return f"@{scoped_configurable_name}{'()' if evaluate else ''}"

    def macro(self, macro_name: str) -> Any:
        """Returns a macro's value, or what gin writes for it."""
        return self.macros.setdefault(macro_name, f"%{macro_name}")


def parameters(text: str) -> dict[str, Any]:
    """Returns the parameters of a text in gin's language; see `Configuration`."""
    delegate = Plain()
    values = {}
    for statement in config_parser.ConfigParser(text, delegate):
        if not isinstance(statement, config_parser.BindingStatement):
            continue
        name = "/".join(filter(None, (statement.scope, statement.selector)))
        if statement.arg_name:
            values[f"{name}.{statement.arg_name}"] = statement.value
        else:
            delegate.macros[name] = statement.value
    return as_json(values)


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns parameters as JSON has them: tuples are lists, and text is what is not plain."""
    return json.loads(json.dumps(values, default=repr))


def by_short_name(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns parameters by their names without modules and scopes: `LogDQNAgent.gamma`."""
    return {".".join(re.split("[./]", name)[-2:]): value for name, value in parameters.items()}


def operative(**called: Mapping[str, Any]) -> Configuration:
    """Returns the parameters of all that gin has configured so far.

    Args:
        called: parameters of functions that gin configures and this package doesn't call, by
            function.
    """
    # gin breaks lines that are longer, and rules lines as long.
    text = gin.operative_config_str(max_line_length=10_000)
    text = re.sub(r"^# =+$", _RULE, text, flags=re.MULTILINE)
    for name, values in called.items():
        lines = [f"{name}.{parameter} = {value!r}\n" for parameter, value in values.items()]
        text += f"\n# Parameters for {name}:\n{_RULE}\n{''.join(lines)}"
    return Configuration(text, parameters(text))


def write(folder: pathlib.Path, configuration: Configuration) -> None:
    """Writes a run's configuration into its folder, in gin's language and as JSON."""
    data = json.dumps(configuration.parameters, indent=1)
    replace_file(folder / layout.GIN_CONFIG, configuration.text.encode())
    replace_file(folder / layout.CONFIG, data.encode())


def read(folder: pathlib.Path) -> dict[str, Any]:
    """Reads a run's parameters; none where its folder doesn't hold them.

    Raises:
        ValueError: the file can't be read, or is damaged.
    """
    path = folder / layout.CONFIG
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ValueError(f"{path}: {str(error.strerror).lower()}") from None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: damaged; it must hold JSON's names and values")
    return values


def check_trained(option: str, folder: pathlib.Path) -> None:
    """Checks that a folder holds a run that this package trained; raises ValueError else."""
    if {_AGENT, "VectorizedRunner.agent"} & read(folder).keys():
        return
    lacks = f"no {layout.CONFIG} that names an agent"
    if not folder.is_dir():
        fault = "is no folder"
    elif layout.has_folders(folder):
        fault = f"looks like a run of Dopamine's own, with {lacks}"
    else:
        fault = f"has {lacks}"
    check(option, str(folder), False, f"the folder of a run that log-dqn trained; this one {fault}")


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Says how parameters differ, but for those that may change from one start to the next.

    Returns:
        `NAME was X and is Y` and the like, for each that differs. Where the agent is another, with
        which nearly everything differs, that alone.
    """
    then = {**{name: value for name, value in _ADDED.items() if name in now}, **then}
    names = sorted(then.keys() | now.keys())
    if then.get(_AGENT) != now.get(_AGENT):
        names = [_AGENT]
    return [
        f"{name} was {then[name]!r} and is {now[name]!r}"
        if name in then and name in now
        else f"{name} {'is not set' if name in then else 'was not set'}"
        for name in names
        if then.get(name) != now.get(name) and not _MAY_CHANGE.fullmatch(name)
    ]


def check_same(
    checkpoint: pathlib.Path, then: Mapping[str, Any], now: Mapping[str, Any], remedy: str
) -> None:
    """Checks that a checkpoint was made with the present parameters, but for those that may change.

    The error names the checkpoint's folder, the `differences`, and what can be done.
    """
    if found := differences(then, now):
        raise CheckpointError(
            f"{checkpoint} is a checkpoint of another configuration: {'; '.join(found)}; {remedy}"
        )
