"""The two tables of a report, as the page, LaTeX and Markdown show them."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from log_dqn.games import listing
from log_dqn.program import words
from log_dqn.results import protocol
from log_dqn.results.comparison import Comparison
from log_dqn.results.statistics import AGGREGATES, Interval


class Cell(NamedTuple):
    """What a column is sorted by, and what is shown."""

    key: str
    text: str


Table = list[list[Cell]]
"""Rows, of which the first has the headings."""


def _number(value: float, pattern: str) -> Cell:
    return Cell("", "") if math.isnan(value) else Cell(f"{value:.9g}", format(value, pattern))


def rounded(value: float) -> str:
    """A human-normalised score; nothing for NaN."""
    return _number(value, ".3f").text


def aggregate_table(comparison: Comparison, aggregates: Mapping[str, Interval]) -> Table:
    """Aggregates over games, with the intervals of agents with enough seeds."""
    rows = [[Cell("", head) for head in ("Agent", *AGGREGATES.values())]]
    for agent, interval in aggregates.items():
        row = [Cell(agent, comparison.name(agent, comparison.common_games))]
        for value, low, high in zip(*interval, strict=True):
            ends = "" if math.isnan(low) else f" [{rounded(low)}, {rounded(high)}]"
            row.append(Cell(f"{value:.9g}", rounded(value) + ends))
        rows.append(row)
    return rows


def game_table(comparison: Comparison) -> Table:
    """Each game's scores."""
    relative = comparison.relative()
    means = {agent: comparison.mean_scores(agent) for agent in comparison.agents}
    main = comparison.main or comparison.agents[0]
    normalised = any(game in comparison.references for game in comparison.games)
    human = normalised and not comparison.by_best
    heads = ["Game", *(["Relative"] if relative else [])]
    if normalised:
        heads.append(f"{comparison.label(main)}, {comparison.scale}")
    heads += [*map(comparison.name, comparison.agents), *(["Human", "Random"] if human else [])]
    digits = ",.2f" if comparison.by_best else ",.1f"
    rows = [[Cell("", head) for head in heads]]
    for game in comparison.games:
        row = [Cell(game, game)]
        if relative:
            row.append(_number(relative.get(game, math.nan), "+.1%"))
        if normalised:
            score = comparison.normalise(game, means[main].get(game, math.nan))
            row.append(_number(float(score), ".3f"))
        row += [_number(means[agent].get(game, math.nan), digits) for agent in means]
        if human:
            none = (math.nan, math.nan)
            row += [_number(x, ",.1f") for x in reversed(comparison.references.get(game, none))]
        rows.append(row)
    return rows


def scored(comparison: Comparison) -> str:
    """What the scores are, and at which experience."""
    metric = {"train": "training returns", "eval": "evaluation returns (published: training)"}
    frames = comparison.frames
    if comparison.request.iteration == "final":
        up_to = "each run's last 10% of iterations"
    elif frames is None:
        up_to = "the last 10% of iterations"
    else:
        up_to = f"the last 10% of iterations up to {words.frames(frames)} of training"
        if comparison.request.iteration == "common":
            own = any(run.protocol and run.frames == frames for run in comparison.runs)
            up_to += f", the last that all {'own ' * own}runs have"
    elsewhere: dict[str, list[str]] = {}
    for game, number in comparison.frames_elsewhere.items():
        length = words.frames(number, comparison.frame_skip([game]))
        elsewhere.setdefault(length, []).append(game)
    up_to += "".join(f"; up to {n} on {listing(on)}" for n, on in elsewhere.items())
    late: dict[int, dict[str, None]] = {}
    for score in comparison.scores:
        until = comparison.frames_elsewhere.get(score.game, frames)
        if until is not None and score.frames > until:
            late.setdefault(score.frames, {})[comparison.label(score.agent)] = None
    up_to += "".join(
        f"; {', '.join(agents)} at {words.frames(number)}, the end of the first iteration"
        for number, agents in late.items()
    )
    return f"{metric[comparison.request.metric]}, mean of {up_to}"


def marked(comparison: Comparison, games: Collection[str] | None = None) -> list[str]:
    """What the marks at agents' names over some games stand for, a line for each such agent."""
    lines = []
    for agent in comparison.agents:
        reasons = comparison.deviations(agent, games)
        if reasons:
            what = "; ".join(reasons)
            if not comparison.is_unrecorded(agent, games):
                what = f"not comparable with {comparison.standard_of(agent, games)}: {what}"
            lines.append(f"{comparison.label(agent, games)}: {what}")
    return lines


def markdown(table: Table, notes: Sequence[str] = ()) -> str:
    """A table in Markdown, and lines below it."""
    rows = [[cell.text for cell in row] for row in table]
    return "\n".join([words.markdown(rows, "---:"), *(f"\n{note}" for note in notes)]) + "\n"


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
    r"""A table in LaTeX, with the rules of `booktabs`, and lines below it."""
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
