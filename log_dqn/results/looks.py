"""How agents look in figures: a colour, a marker and a line that are theirs in every report.

Colours are those of Okabe and Ito, told apart by colour-blind readers, and any for own variants;
markers tell agents apart without colour.
"""

import colorsys
import hashlib
import math
import re
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

_LOG_DQN, _LOGLIN, _DQN = "#D55E00", "#0072B2", "#000000"
_C51, _RAINBOW, _IQN = "#56B4E9", "#009E73", "#CC79A7"
_DASHED, _DOTTED = "--", ":"

# Published agents have solid lines; the same agents trained anew are dashed, or in JAX dotted.
_FIXED: dict[str, tuple[str, str, str]] = {
    "log_dqn": (_LOG_DQN, "o", "-"),
    "LogDQNAgent": (_LOG_DQN, "o", "-"),
    "VectorizedLogDQNAgent": (_LOG_DQN, "o", "-"),
    "jax_log_dqn": (_LOG_DQN, "p", _DOTTED),
    "JaxLogDQNAgent": (_LOG_DQN, "p", _DOTTED),
    "loglin_dqn": (_LOGLIN, "*", "-"),
    "jax_loglin_dqn": (_LOGLIN, "d", _DOTTED),
    "DQN": ("#7F7F7F", "s", "-"),
    "dqn": (_DQN, "D", _DASHED),
    f"DQN{OWN}": (_DQN, "D", _DASHED),
    "DQNAgent": (_DQN, "D", _DASHED),
    "VectorizedDQNAgent": (_DQN, "D", _DASHED),
    "jax_dqn": (_DQN, "h", _DOTTED),
    "JaxDQNAgent": (_DQN, "h", _DOTTED),
    "DQN (Adam + MSE in JAX)": ("#B8860B", "P", "-"),
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

_MARKERS = "osDv^P<X>Hp"


def looks(names: Mapping[str, str]) -> dict[str, Look]:
    """Gives each agent its look, which depends on nothing but its own name.

    `names` says, in their order, how each agent is named in legends.
    """
    return {agent: Look(name, *_FIXED.get(agent, _other(agent))) for agent, name in names.items()}


def _other(agent: str) -> tuple[str, str, str]:
    """The look of an agent that has none fixed: dash-dotted, as dark as the others, of any hue.

    A scan's discount factors have hues in their order, and the agent's own marker and line.
    """
    number = int(hashlib.md5(agent.encode(), usedforsecurity=False).hexdigest(), 16)
    hue, marker, line = number / 2**128, _MARKERS[number % len(_MARKERS)], "-."
    if scanned := re.fullmatch(r"([^/]+)/gamma=(0\.\d+)", agent):
        _, marker, line = _FIXED.get(scanned[1], ("", marker, line))
        hue = -0.35 * math.log10(max(1 - float(scanned[2]), 0.003))
    shades = colorsys.hsv_to_rgb(hue, 0.85, 0.72)
    return "#" + "".join(f"{round(255 * s):02X}" for s in shades), marker, line
