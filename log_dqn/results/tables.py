"""The two tables of a report, as the page, LaTeX and Markdown show them."""

import math
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from log_dqn.cli import words
from log_dqn.games import listing
from log_dqn.results import align, labels, protocol, scores
from log_dqn.results.comparison import Comparison
from log_dqn.results.pictures import Results
from log_dqn.results.request import METRICS
from log_dqn.results.statistics import AGGREGATES


class Cell(NamedTuple):
    """What a column is sorted by, and what is shown."""

    key: str
    text: str


Table = list[list[Cell]]
"""Rows; the first has the headings."""


def _number(value: float, pattern: str) -> Cell:
    return Cell("", "") if math.isnan(value) else Cell(f"{value:.9g}", format(value, pattern))


def aggregate_table(comparison: Comparison, results: Results) -> Table:
    """Aggregates over games, with the intervals of agents with enough seeds."""
    agents = labels.by_agent(comparison.runs, comparison.common_games)
    rows = [[Cell("", head) for head in ("Agent", *AGGREGATES.values())]]
    for agent, interval in results.aggregates.items():
        row = [Cell(agent, labels.name(agents[agent]))]
        for value, low, high in zip(*interval, strict=True):
            key, text = _number(value, ".3f")
            row.append(Cell(key, text if math.isnan(low) else f"{text} [{low:.3f}, {high:.3f}]"))
        rows.append(row)
    return rows


def game_table(comparison: Comparison, results: Results) -> Table:
    """Returns the table of each game's scores."""
    runs, relative = comparison.runs, results.relative
    agents = labels.by_agent(runs)
    main = comparison.main or runs["agent"].iloc[0]
    normalised = runs["normalised"].notna().any()
    human = normalised and not comparison.divides_by_best
    heads = ["Game", *([] if relative.empty else ["Relative"])]
    if normalised:
        heads.append(f"{labels.label(agents[main])}, {comparison.scale}")
    heads += [*map(labels.name, agents.values()), *(["Human", "Random"] if human else [])]
    rows = [[Cell("", head) for head in heads]]
    for game, of_game in scores.means(runs).groupby("game"):
        means = of_game.set_index("agent").reindex(agents)
        row = [Cell(game, game)]
        if not relative.empty:
            row.append(_number(relative["relative"].get(game, math.nan), "+.1%"))
        if normalised:
            row.append(_number(means.loc[main, "normalised"], ".3f"))
        row += [
            _number(mean, ",.2f" if comparison.divides_by_best else ",.1f")
            for mean in means["score"]
        ]
        if human:
            row += [_number(of_game[end].iloc[0], ",.1f") for end in ("human", "random")]
        rows.append(row)
    return rows


def scored(comparison: Comparison) -> str:
    """Returns what the scores are, and at which experience."""
    runs, iteration = comparison.runs, comparison.request.iteration
    together, apart = runs[~runs["apart"]], runs[runs["apart"]]
    if iteration == "final":
        up_to = "each run's last 10% of iterations"
    elif together.empty:
        up_to = "the last 10% of iterations"
    else:
        frames = together["until"].iloc[0]
        up_to = f"the last 10% of iterations up to {words.frames(frames)} of training"
        if iteration == "common":
            up_to += f", {together['common'].iloc[0]}"
    longest = runs.groupby("game")["length"].transform("max")
    if ((runs["length"] < longest) & (longest <= runs["until"])).any():
        up_to += ", over about as many frames as the longest iterations need"
    by_length: dict[str, list[str]] = {}
    for game, rows in apart.dropna(subset="until").groupby("game"):
        length = words.frames(rows["until"].iloc[0], align.frame_skip(rows))
        by_length.setdefault(length, []).append(game)
    up_to += "".join(f"; up to {n} on {listing(on)}" for n, on in by_length.items())
    agents = labels.by_agent(runs)
    for number, rows in runs[runs["frames"] > runs["until"]].groupby("frames", sort=False):
        late = ", ".join(labels.label(agents[agent]) for agent in rows["agent"].unique())
        up_to += f"; {late} at {words.frames(number)}, the end of the first iteration"
    metric = comparison.request.metric
    return f"{METRICS[metric]} returns{labels.published(runs, metric)}, mean of {up_to}"


def marked(runs: pd.DataFrame, games: Collection[str] | None = None) -> list[str]:
    """Returns what the marks at agents' names over some games stand for, a line for each."""
    of_agents = labels.by_agent(runs, games).values()
    return [
        f"{labels.label(rows)}: {labels.marked_for(rows)}"
        for rows in of_agents
        if labels.mark(rows)
    ]


def with_protocol(runs: pd.DataFrame) -> pd.DataFrame:
    """Adds `protocol` to the table of runs: `published`, `same`, or what differs."""
    own = ["; ".join(map(str, reasons)) or "same" for reasons in runs["differs"]]
    return runs.assign(protocol=np.where(runs["own"], own, "published"))


# What a name may hold that Markdown reads: numbers, their intervals and log_dqn are as they are.
_MARKDOWN = re.compile(r"[\\`*~<>&$!]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:])|^(#|[+-](?= ))")


def _plain(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", text)


def markdown(table: Table, notes: Sequence[str] = ()) -> str:
    """Returns a table in Markdown, and lines below it."""
    rows = [[_plain(cell.text) for cell in row] for row in table]
    below = [f"\n{_plain(note)}" for note in notes]
    return "\n".join([words.markdown(rows, "---:"), *below]) + "\n"


_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        protocol.MARK: r"\textdagger{}",
        protocol.UNRECORDED_MARK: r"\textdaggerdbl{}",
    }
)


def latex(table: Table, notes: Sequence[str] = ()) -> str:
    r"""Returns a table in LaTeX, with the rules of `booktabs`, and lines below it."""
    rows = [" & ".join(cell.text.translate(_LATEX) for cell in row) for row in table]
    below = [rf"\par{{\footnotesize {note.translate(_LATEX)}}}" for note in notes]
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{l{'r' * (len(table[0]) - 1)}}}",
        r"\toprule",
        rf"{rows[0]} \\",
        r"\midrule",
        *(rf"{row} \\" for row in rows[1:]),
        r"\bottomrule",
        r"\end{tabular}",
        *below,
    ]
    return "\n".join(lines) + "\n"
