"""How agents look in figures: a colour, a marker and a line that are theirs in every report.

Colours are those of Okabe and Ito, told apart by colour-blind readers, and others for own variants;
markers tell agents apart without colour.
"""

import itertools
import zlib
from collections.abc import Mapping
from typing import NamedTuple


class Look(NamedTuple):
    """How an agent is shown: its name in legends, its colour, marker and line style."""

    name: str
    colour: str
    marker: str
    line: str = "-"


OWN = " (own runs)"
"""Stands behind the name of own runs that bear a published agent's name."""

_LOG_DQN, _DQN, _C51, _RAINBOW, _IQN = "#D55E00", "#000000", "#56B4E9", "#009E73", "#CC79A7"
_DASHED, _DOTTED = "--", ":"

# Published agents have solid lines; the same agents trained anew are dashed, or in JAX dotted.
_FIXED: dict[str, tuple[str, str, str]] = {
    "log_dqn": (_LOG_DQN, "o", "-"),
    "LogDQNAgent": (_LOG_DQN, "o", "-"),
    "VectorizedLogDQNAgent": (_LOG_DQN, "o", "-"),
    "jax_log_dqn": (_LOG_DQN, "p", _DOTTED),
    "JaxLogDQNAgent": (_LOG_DQN, "p", _DOTTED),
    "DQN": (_DQN, "s", "-"),
    "dqn": (_DQN, "D", _DASHED),
    f"DQN{OWN}": (_DQN, "D", _DASHED),
    "DQNAgent": (_DQN, "D", _DASHED),
    "VectorizedDQNAgent": (_DQN, "D", _DASHED),
    "jax_dqn": (_DQN, "h", _DOTTED),
    "JaxDQNAgent": (_DQN, "h", _DOTTED),
    "DQN (Adam + MSE in JAX)": ("#7F7F7F", "P", "-"),
    "C51": (_C51, "^", "-"),
    "c51": (_C51, "<", _DASHED),
    "Rainbow": (_RAINBOW, "D", "-"),
    "rainbow": (_RAINBOW, "8", _DASHED),
    "jax_rainbow": (_RAINBOW, "p", _DOTTED),
    "full_rainbow": (_RAINBOW, "X", _DOTTED),
    "IQN": (_IQN, "v", "-"),
    "implicit_quantile": (_IQN, ">", _DASHED),
    "jax_implicit_quantile": (_IQN, "H", _DOTTED),
    "Quantile (JAX)": ("#332288", "X", "-"),
}

_OTHERS = [
    (colour, marker, "-.")
    for marker, colour in itertools.product(
        "osDv^P<X>Hp",
        ("#0072B2", "#882255", "#999933", "#6A3D9A", "#8C510A", "#5A6470"),
    )
]
"""The looks of agents that have none fixed; dash-dotted lines tell them apart in grayscale."""


def looks(names: Mapping[str, str]) -> dict[str, Look]:
    """Gives each agent its look, which depends on nothing but its own name.

    Only where two agents would look the same does the later one by name take another look.

    Args:
        names: how each agent is named in legends.

    Returns:
        The agents' looks, in the order of `names`.
    """
    found: dict[str, tuple[str, str, str]] = {}
    for agent in sorted(names, key=lambda agent: (agent not in _FIXED, agent)):
        first = zlib.crc32(agent.encode()) % len(_OTHERS)
        wanted = [*filter(None, [_FIXED.get(agent)]), *_OTHERS[first:], *_OTHERS[:first]]
        found[agent] = next((look for look in wanted if look not in found.values()), wanted[0])
    return {agent: Look(name, *found[agent]) for agent, name in names.items()}
