"""The report as one self-contained HTML page: the data of `templates/report.html`."""

import base64
from collections.abc import Mapping, Sequence

import jinja2
import numpy as np

from log_dqn.games import listing
from log_dqn.program import words
from log_dqn.results import protocol, statistics, tables
from log_dqn.results.baselines import named
from log_dqn.results.comparison import Comparison
from log_dqn.results.pictures import Shown
from log_dqn.results.provenance import Provenance
from log_dqn.results.statistics import AGGREGATES, Interval


def render(
    comparison: Comparison,
    aggregates: Mapping[str, Interval],
    shown: Sequence[tuple[str, Shown, bytes]],
    not_made: Sequence[str],
    made: Provenance,
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
    heads, *rows = tables.game_table(comparison)
    return environment.get_template("report.html").render(
        title=listing([named(agent) for agent in comparison.own_agents or comparison.agents]),
        differing=_differing(comparison),
        standard=comparison.standard,
        marks={
            mark: meaning
            for mark, meaning in protocol.meanings(comparison.standard).items()
            if any(mark in comparison.label(agent) for agent in comparison.agents)
        },
        facts=_facts(comparison),
        made=made,
        aggregates={
            comparison.name(agent, comparison.common_games): [
                [tables.rounded(x) for x in column] for column in zip(*interval, strict=True)
            ]
            for agent, interval in aggregates.items()
        },
        aggregate_heads=["Agent", *AGGREGATES.values()],
        experience="Agent steps" if comparison.frame_skip() == 1 else "Frames",
        scale=comparison.scale,
        no_aggregates=comparison.no_aggregates,
        over_games=shown[:-1],
        of_one_game=len(comparison.games) == 1,
        game_heads=[head.text for head in heads],
        game_rows=rows,
        learning_curves=shown[-1],
        agent_rows=[_agent_row(comparison, agent) for agent in comparison.agents],
        notes=[*comparison.notices, *(f"Figure not made: {line}" for line in not_made)],
    )


def _differing(comparison: Comparison) -> list[tuple[str, ...]]:
    """What differs from the standard: an agent's label, field, own value, standard, and where."""
    return [
        (comparison.label(agent), one.field, one.own, one.standard or one.whose, where.strip())
        for agent in comparison.agents
        for one, where in comparison.differences(agent)
    ]


def _facts(comparison: Comparison) -> dict[str, object]:
    request = comparison.request
    kind = "with a mean above 0 " if comparison.by_best else "with human scores "
    facts: dict[str, object] = {
        "Agents": ", ".join(map(comparison.label, comparison.agents)),
        "Relative to": named(request.reference),
        "Games": f"{len(comparison.games)}; aggregates over the {len(comparison.common_games)} "
        f"{kind}that all agents have",
        "Scores": tables.scored(comparison),
        "Intervals": f"95%, stratified bootstrap, {request.repetitions:,} repetitions; "
        f"none for agents with fewer than {statistics.LEAST_SEEDS} seeds on a game",
        "Own runs": request.results_dir or "none",
    }
    if comparison.by_best:
        normalised = "divided by the best mean that any agent has on the game"
        return facts | {"Over games": f"scores are {normalised}; these games have no human scores"}
    return facts | {
        "Baselines": request.baselines,
        "Random and human scores": "Wang et al. (2016), Table 2; VideoPinball's random score is "
        f"{comparison.references['VideoPinball'].random} there, and 0.0 in other tables",
    }


def _agent_row(comparison: Comparison, agent: str) -> tuple[object, ...]:
    """What was compared of an agent: its name, source, games, seeds, last iteration and frames."""
    scores = comparison.scores_of(agent)
    source = "own runs"
    if agent not in comparison.own_agents:
        known = [run.returns for run in comparison.runs if run.agent == agent]
        partial = any(np.isnan(returns).any() for returns in known)
        source = "published" + (", final scores only on some or all games" if partial else "")
    games = len(comparison.mean_scores(agent))
    runs = [run for run in comparison.runs if run.agent == agent]
    gammas = {run.gamma for run in runs if run.gamma is not None}
    if agent not in comparison.own_agents:
        gammas = {protocol.PUBLISHED_GAMMA}
    discounts = ", ".join(f"{gamma:g}" for gamma in sorted(gammas)) or protocol.NOT_RECORDED
    ends, frames = [s.iteration for s in scores], [s.frames for s in scores]
    return (
        comparison.label(agent), source, discounts, games, words.span(comparison.seeds(agent)),
        words.span(ends), words.span(frames), comparison.protocol_of(agent),
    )  # fmt: skip
