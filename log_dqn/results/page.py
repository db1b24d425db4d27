"""The report as one self-contained HTML page: the data of `templates/report.html`."""

import base64
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jinja2
import numpy as np

from log_dqn.games import listing
from log_dqn.results import protocol, statistics, words
from log_dqn.results.baselines import named
from log_dqn.results.comparison import Comparison
from log_dqn.results.references import VIDEO_PINBALL_RANDOM
from log_dqn.results.statistics import AGGREGATES, Interval


class Picture(NamedTuple):
    """A figure as it is shown on the page."""

    heading: str
    caption: str
    alternative: str
    png: bytes
    width: float  # CSS pixels


def render(
    comparison: Comparison,
    aggregates: Mapping[str, Interval],
    shown: Sequence[Picture],
    not_made: Sequence[str],
    command: str,
) -> str:
    """Returns the page's HTML. It loads nothing from outside and opens from disk.

    The last figure shown is that of the learning curves; `not_made` says which figures are not
    made, and why.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("log_dqn.results"),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["base64"] = lambda data: base64.b64encode(data).decode()
    heads, rows = _game_table(comparison)
    return environment.get_template("report.html").render(
        title=listing([named(agent) for agent in comparison.own_agents or comparison.agents]),
        differing=_differing(comparison),
        standard=comparison.standard,
        facts=_facts(comparison),
        command=command,
        aggregates={
            comparison.name(agent): [
                [_rounded(x) for x in column] for column in zip(*interval, strict=True)
            ]
            for agent, interval in aggregates.items()
        },
        aggregate_heads=["Agent", *AGGREGATES.values()],
        over_games=shown[:-1],
        game_heads=heads,
        game_rows=rows,
        learning_curves=shown[-1],
        agent_rows=[_agent_row(comparison, agent) for agent in comparison.agents],
        notes=[*comparison.notices, *(f"Figure not made: {line}" for line in not_made)],
    )


def _rounded(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def _differing(comparison: Comparison) -> dict[str, dict[str, list[str]]]:
    """What differs from the standard protocol, and what is not recorded, by agent's label."""
    found: dict[str, dict[str, list[str]]] = {"different": {}, "unknown": {}}
    for agent in comparison.agents:
        reasons = comparison.deviations(agent)
        unknown = all(map(protocol.is_unrecorded, reasons))
        if reasons:
            found["unknown" if unknown else "different"][comparison.label(agent)] = reasons
    return found


def _facts(comparison: Comparison) -> dict[str, object]:
    request = comparison.request
    up_to = "each run's last 10% of iterations"
    if comparison.frames is not None:
        up_to = f"the last 10% of iterations up to {words.frames(comparison.frames)} of training"
    if request.iteration == "common":
        up_to += ", the last that all runs have"
    late = {
        s.agent: s.frames for s in comparison.scores if s.frames > (comparison.frames or s.frames)
    }
    up_to += "".join(
        f"; {comparison.label(agent)} at {words.frames(frames)}, the end of the first iteration"
        for agent, frames in late.items()
    )
    metric = {"train": "training returns", "eval": "evaluation returns (published: training)"}
    random = request.video_pinball_random
    other = "" if random != VIDEO_PINBALL_RANDOM else " (Wang et al.; other tables have 0.0)"
    return {
        "Agents": ", ".join(map(comparison.label, comparison.agents)),
        "Relative to": named(request.reference),
        "Games": f"{len(comparison.games)}; aggregates over the {len(comparison.common_games)} "
        "with human scores that all agents have",
        "Scores": f"{metric[request.metric]}, mean of {up_to}",
        "Intervals": f"95%, stratified bootstrap, {request.repetitions:,} repetitions; "
        f"none for agents with fewer than {statistics.LEAST_SEEDS} seeds on a game",
        "Own runs": request.results_dir or "none",
        "Baselines": request.baselines,
        "Random and human scores": "Wang et al. (2016), Table 2; VideoPinball's random score is "
        f"{random:g}{other}",
    }


Cell = tuple[str, str]
"""What a column is sorted by, and what is shown."""


def _number(value: float, pattern: str) -> Cell:
    return ("", "") if math.isnan(value) else (f"{value:.9g}", format(value, pattern))


def _game_table(comparison: Comparison) -> tuple[list[str], list[list[Cell]]]:
    """Headings and rows of the table of games."""
    relative = comparison.relative()
    means = {agent: comparison.mean_scores(agent) for agent in comparison.agents}
    main = comparison.main or comparison.agents[0]
    heads = [
        "Game",
        *(["Relative"] if relative else []),
        f"{comparison.label(main)}, human-normalised",
    ]
    heads += [*map(comparison.name, comparison.agents), "Human", "Random"]
    rows = []
    for game in comparison.games:
        row = [(game, game)]
        if relative:
            row.append(_number(relative.get(game, math.nan), "+.1%"))
        normalised = comparison.normalise(game, means[main].get(game, math.nan))
        random, human = comparison.references.get(game, (math.nan, math.nan))
        row.append(_number(float(normalised), ".3f"))
        row += [_number(means[agent].get(game, math.nan), ",.1f") for agent in means]
        row += [_number(human, ",.1f"), _number(random, ",.1f")]
        rows.append(row)
    return heads, rows


def _agent_row(comparison: Comparison, agent: str) -> tuple[object, ...]:
    """What was compared of an agent: its name, source, games, seeds, last iteration and frames."""
    scores = comparison.scores_of(agent)
    source = "own runs"
    if agent not in comparison.own_agents:
        known = [run.returns for run in comparison.runs if run.agent == agent]
        partial = any(np.isnan(returns).any() for returns in known)
        source = "published" + (", final scores only on some or all games" if partial else "")
    games = len(comparison.mean_scores(agent))
    ends, frames = [s.iteration for s in scores], [s.frames for s in scores]
    return (
        comparison.label(agent), source, games, words.span(comparison.seeds(agent)),
        words.span(ends), words.span(frames), comparison.protocol_of(agent),
    )  # fmt: skip
