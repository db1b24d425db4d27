"""The report as one self-contained HTML page: the data of `templates/report.html`."""

import base64
from collections.abc import Sequence
from typing import Any

import jinja2
import numpy as np
import pandas as pd

from log_dqn.cli import words
from log_dqn.games import listing
from log_dqn.results import align, baselines, labels, protocol, statistics, tables
from log_dqn.results.comparison import Comparison
from log_dqn.results.pictures import Results, Shown
from log_dqn.results.request import named


def render(
    comparison: Comparison,
    results: Results,
    shown: Sequence[tuple[str, Shown, bytes]],
    not_made: Sequence[str],
    made: dict[str, Any],
) -> str:
    """Returns the page's HTML. It loads nothing from outside and opens from disk.

    `shown` are headings, figures and their PNGs, the last of the learning curves; `not_made` says
    which figures are not made, and why; `made` says with what the report is.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("log_dqn.results"),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["base64"] = lambda data: base64.b64encode(data).decode()
    runs, standard = comparison.runs, labels.standard(comparison.runs)
    agents = labels.by_agent(runs)
    return environment.get_template("report.html").render(
        title=listing([*map(named, runs.loc[runs["own"], "agent"].unique())] or [*agents]),
        differing=[
            (labels.label(rows), one.field, one.own, one.standard or one.whose, where.strip())
            for rows in agents.values()
            for one, where in labels.differences(rows)
        ],
        standard=standard,
        marks={
            mark: meaning
            for mark, meaning in protocol.meanings(standard).items()
            if any(mark in labels.label(rows) for rows in agents.values())
        },
        facts=_facts(comparison),
        made=made,
        aggregates=tables.aggregate_table(comparison, results),
        experience="Agent steps" if align.frame_skip(runs) == 1 else "Frames",
        scale=comparison.scale,
        needs=comparison.needs,
        over_games=shown[:-1],
        of_one_game=len(comparison.games) == 1,
        games=tables.game_table(comparison, results),
        learning_curves=shown[-1],
        agent_rows=[_agent_row(rows) for rows in agents.values()],
        notes=[*comparison.notices, *(f"Figure not made: {line}" for line in not_made)],
    )


def _facts(comparison: Comparison) -> dict[str, object]:
    request = comparison.request
    agents = labels.by_agent(comparison.runs).values()
    # On Atari that figure is of human-normalised scores, without intervals.
    of_means = ", and of means against the discount factor" * comparison.divides_by_best
    facts: dict[str, object] = {
        "Agents": ", ".join(map(labels.label, agents)),
        "Relative to": named(comparison.reference),
        "Games": f"{len(comparison.games)}; aggregates over the {len(comparison.common_games)} "
        f"with {comparison.needs} that all agents have",
        "Scores": tables.scored(comparison),
        "Intervals": "95%; over games: rliable's stratified percentile bootstrap, "
        f"{request.repetitions:,} repetitions, too narrow with few seeds (three: they cover 73% to "
        f"88%, five: 84% to 91%); on one game{of_means}: t over seeds (Student, "
        f"Welch); none for agents with fewer than {statistics.LEAST_SEEDS} seeds on a game",
        "Own runs": request.results_dir or "none",
    }
    if comparison.divides_by_best:
        normalised = "divided by the best mean that any agent has on the game"
        return facts | {"Over games": f"scores are {normalised}; these games have no human scores"}
    return facts | {
        "Baselines": request.baselines,
        "Random and human scores": "Wang et al. (2016), Table 2; VideoPinball's random score is "
        f"{baselines.references().loc['VideoPinball', 'random']} there, and 0.0 in other tables",
    }


def _agent_row(rows: pd.DataFrame) -> tuple[object, ...]:
    """Returns what was compared of an agent, in the order of the page's headings."""
    source, gammas = "own runs", sorted(rows["gamma"].dropna().unique())
    if not rows["own"].all():
        partial = any(np.isnan(returns).any() for returns in rows["returns"])
        source = "published" + (", final scores only on some or all games" if partial else "")
        gammas = [protocol.PUBLISHED_GAMMA]
    ends = (words.span(rows[name].tolist()) for name in ("iteration", "frames"))
    return (
        labels.label(rows), source,
        ", ".join(f"{gamma:g}" for gamma in gammas) or protocol.NOT_RECORDED,
        rows["game"].nunique(), words.span(rows.groupby("game").size().tolist()),
        *ends, labels.protocol_of(rows),
    )  # fmt: skip
