"""How agents are named, marked and drawn, and in words what of their protocol differs.

Functions take the rows of one agent in the table of runs (see `align.compare_protocols`), or of
several that are shown as one, on all games or on some. Colours are those of Okabe and Ito, told
apart by colour-blind readers, and any for own variants; markers tell agents apart without colour.
"""

import colorsys
import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pandas as pd

from log_dqn.cli import words
from log_dqn.games import listing
from log_dqn.results import protocol
from log_dqn.results.protocol import Difference
from log_dqn.results.request import OWN, named


class Look(NamedTuple):
    """How an agent is shown: its name in legends, its colour, marker and line style."""

    name: str
    colour: str
    marker: str
    line: str = "-"


_LOG_DQN, _LOGLIN, _DQN = "#D55E00", "#0072B2", "#000000"
_C51, _RAINBOW, _IQN = "#56B4E9", "#009E73", "#CC79A7"
_DASHED, _DOTTED = "--", ":"

# Published agents have solid lines; the same agents trained anew are dashed, or in JAX dotted.
_FIXED: dict[str, tuple[str, str, str]] = {
    "log_dqn": (_LOG_DQN, "o", "-"),
    "jax_log_dqn": (_LOG_DQN, "p", _DOTTED),
    "loglin_dqn": (_LOGLIN, "*", "-"),
    "jax_loglin_dqn": (_LOGLIN, "d", _DOTTED),
    "DQN": ("#7F7F7F", "s", "-"),
    "dqn": (_DQN, "D", _DASHED),
    f"DQN{OWN}": (_DQN, "D", _DASHED),
    "jax_dqn": (_DQN, "h", _DOTTED),
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
    # Matplotlib leaves labels that begin with an underscore out of legends.
    return {
        agent: Look(" " * name.startswith("_") + name, *_FIXED.get(agent, _other(agent)))
        for agent, name in names.items()
    }


def _other(agent: str) -> tuple[str, str, str]:
    """Returns the look of an agent that has none fixed: dash-dotted, of any hue, as dark as others.

    A scan's discount factors have hues in their order, and the agent's own marker and line.
    """
    number = int(hashlib.md5(agent.encode(), usedforsecurity=False).hexdigest(), 16)
    hue, marker, line = number / 2**128, _MARKERS[number % len(_MARKERS)], "-."
    if scanned := re.fullmatch(r"([^/]+)/gamma=(0\.\d+)", agent):
        _, marker, line = _FIXED.get(scanned[1], ("", marker, line))
        hue = -0.35 * math.log10(max(1 - float(scanned[2]), 0.003))
    shades = colorsys.hsv_to_rgb(hue, 0.85, 0.72)
    return "#" + "".join(f"{round(255 * s):02X}" for s in shades), marker, line


def differences(rows: pd.DataFrame) -> list[tuple[Difference, str]]:
    """Returns what differs from the standard, each with the runs and games where it isn't all."""
    found = []
    for reason in dict.fromkeys(reason for reasons in rows["differs"] for reason in reasons):
        having = rows[[reason in reasons for reasons in rows["differs"]]]
        where = sorted(having["game"].unique())
        of = rows[rows["game"].isin(where)]
        part = "" if len(having) == len(of) else f" in {len(having)} of {len(of)} runs"
        place = "" if len(of) == len(rows) else f" on {listing(where)}"
        found.append((reason, part + place))
    return found


def deviations(rows: pd.DataFrame) -> list[str]:
    """Returns what differs from the standard, a phrase each."""
    return [f"{reason}{where}" for reason, where in differences(rows)]


def is_unrecorded(rows: pd.DataFrame) -> bool:
    """Returns whether a protocol differs in nothing that is known, but is not recorded."""
    return all(r.own == protocol.NOT_RECORDED for reasons in rows["differs"] for r in reasons)


def standard(rows: pd.DataFrame) -> str:
    """Returns, in words, whose protocol is the standard where something differs, or anywhere."""
    differing = rows[rows["differs"].str.len() > 0]
    shown = (differing if len(differing) else rows).sort_values("game", kind="stable")
    one = shown["agent"].unique()
    whose = ("its first run" if [name] == [*one] else name for name in shown["standard"].unique())
    return " or ".join(whose)


def protocol_of(rows: pd.DataFrame) -> str:
    """Returns a protocol in the tables' words: `published`, `same`, or what differs."""
    if not rows["own"].all():
        return "published"
    return "; ".join(deviations(rows)) or "same"


def mark(rows: pd.DataFrame) -> str:
    """Returns the mark appended to agents whose protocol differs, or an empty string."""
    if not rows["differs"].str.len().any():
        return ""
    return f" {protocol.UNRECORDED_MARK if is_unrecorded(rows) else protocol.MARK}"


def published(runs: pd.DataFrame, metric: str) -> str:
    """Returns what is to be said of published runs' returns, if they are of another metric."""
    return " (published: training)" * (metric == "eval" and not runs["own"].all())


def marked_for(rows: pd.DataFrame) -> str:
    """Returns what a mark at an agent's name says of it."""
    perhaps = "perhaps " * is_unrecorded(rows)
    return f"{perhaps}not comparable with {standard(rows)}: {'; '.join(deviations(rows))}"


def label(rows: pd.DataFrame) -> str:
    """Returns an agent's name with its mark."""
    return named(rows["agent"].iloc[0]) + mark(rows)


def seeds(rows: pd.DataFrame) -> str:
    """Returns how many seeds there are on a game, in words."""
    return words.seeds(rows.groupby(["agent", "game"]).size().tolist())


def name(rows: pd.DataFrame) -> str:
    """Returns an agent's name with its mark and its number of seeds."""
    return f"{label(rows)}, {seeds(rows)}"


def by_agent(runs: pd.DataFrame, games: Iterable[str] | None = None) -> dict[str, pd.DataFrame]:
    """Returns the rows of each agent, on all games or on some, in the table's order of agents."""
    rows = runs if games is None else runs[runs["game"].isin([*games])]
    return dict(iter(rows.groupby("agent", sort=False)))


def looks_of(runs: pd.DataFrame, games: Iterable[str] | None = None) -> dict[str, Look]:
    """Returns how each agent is shown in figures over all games, or over some."""
    return looks({agent: name(rows) for agent, rows in by_agent(runs, games).items()})
