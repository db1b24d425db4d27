"""How agents are named, with a mark where their protocol differs, and what differs in words.

Functions take the rows of one agent in the table of runs (see `align.compare_protocols`), or of
several that are shown as one, on all games or on some.
"""

from collections.abc import Iterable

import pandas as pd

from log_dqn.games import listing
from log_dqn.program import words
from log_dqn.results import protocol
from log_dqn.results.baselines import named
from log_dqn.results.looks import Look, looks
from log_dqn.results.protocol import Difference


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
    differing = rows[rows["differs"].map(bool).astype(bool)]
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
    if not rows["differs"].map(bool).any():
        return ""
    return f" {protocol.UNRECORDED_MARK if is_unrecorded(rows) else protocol.MARK}"


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
