"""The gin configuration that a run is started with, and its comparison with an earlier one."""

import ast
import re
from collections.abc import Mapping
from typing import Any

import gin

RULE = "# " + "=" * 78

# Parameters that may change from one start of a run to the next.
_MAY_CHANGE = re.compile(
    r"(Vectorized)?Runner\.num_iterations|Runner\.log_every_n|Logger\..*|Checkpointer\..*"
    r"|get_latest_checkpoint_number\..*|.*\.(tf_device|max_tf_checkpoints_to_keep"
    r"|checkpoint_duration|keep_every|allow_partial_reload)"
)

_AGENT = "create_agent.agent_name"


def operative() -> str:
    """Returns the parameters of all that gin has configured so far, one a line."""
    # (gin breaks lines that are longer, and rules lines as long.)
    config = gin.operative_config_str(max_line_length=10_000)
    return re.sub(r"^# =+$", RULE, config, flags=re.MULTILINE)


def parameters(config: str) -> dict[str, Any]:
    """Returns the parameters of a configuration that must be the same when a run goes on."""
    bindings = dict(re.findall(r"^([\w./]+) = (.*)$", config, re.MULTILINE))

    def value(text: str) -> Any:
        text = bindings.get(text.removeprefix("%"), text)  # a macro, or a value
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text

    return {
        name: value(text)
        for name, text in bindings.items()
        if "." in name and not _MAY_CHANGE.fullmatch(name)
    }


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Compares the parameters that a checkpoint was made with and the present ones.

    Args:
        then: the checkpoint's, by name.
        now: the present ones.

    Returns:
        A phrase for each parameter that should be the same and isn't; only one where the agent is
        another, with which nearly everything differs.
    """
    names = sorted(then.keys() | now.keys())
    if then.get(_AGENT) != now.get(_AGENT):
        names = [_AGENT]
    return [
        f"{name} was {then[name]!r} and is {now[name]!r}"
        if name in then and name in now
        else f"{name} {'is not set' if name in then else 'was not set'}"
        for name in names
        if then.get(name) != now.get(name)
    ]
