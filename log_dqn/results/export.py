"""The numbers of a report as plain data, for JSON."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from log_dqn.results import gamma_scan, statistics, tables
from log_dqn.results.comparison import Comparison
from log_dqn.results.pictures import Results
from log_dqn.results.provenance import Provenance
from log_dqn.results.statistics import Interval

_GAMMA_POINT = ("gamma", "mean", "median", "agents")


def as_data(comparison: Comparison, results: Results, made: Provenance) -> dict[str, Any]:
    """All numbers of a report with their intervals, as JSON holds them; null for NaN.

    `runs` has a row for each score, and the run's learning curve.
    """
    request = comparison.request
    none = (math.nan, math.nan)
    relative = {
        game: dict(zip(Interval._fields, (value, *results.relative.get(game, none)), strict=True))
        for game, value in comparison.relative().items()
    }
    points, num_games = gamma_scan.points(comparison.runs, comparison.scores)
    classes = {
        name: [dict(zip(_GAMMA_POINT, row, strict=True)) for row in rows]
        for name, rows in points.items()
    }
    means = {agent: comparison.mean_scores(agent) for agent in comparison.agents}
    data = {
        "made_with": _provenance(made),
        "metric": request.metric,
        "scores": tables.scored(comparison),
        "frames": comparison.frames,
        "frames_elsewhere": comparison.frames_elsewhere,
        "repetitions": request.repetitions,
        "reference": request.reference,
        "protocol_of": comparison.standards,
        "common_games": comparison.common_games,
        "agents": {agent: _agent(comparison, agent) for agent in comparison.agents},
        "aggregates": {
            agent: _named(statistics.AGGREGATES, interval)
            for agent, interval in results.aggregates.items()
        },
        "improvement": {
            "of": comparison.main,
            "over": {a: i._asdict() for a, i in results.improvement.items()},
        },
        "relative": relative,
        "games": {
            game: {
                agent: {"score": scores[game], "hns": comparison.normalise(game, scores[game])}
                for agent, scores in means.items()
                if game in scores
            }
            for game in comparison.games
        },
        "profiles": {
            "thresholds": results.thresholds,
            "agents": {a: i._asdict() for a, i in results.profiles.items()},
        },
        "curves": {
            agent: {"frames": frames, **_named(("mean", "median", "iqm"), interval)}
            for agent, (frames, interval) in results.curves.items()
        },
        "gamma": {"games": num_games, "classes": classes},
        "runs": _runs(comparison),
        "notes": comparison.notices,
    }
    plain: dict[str, Any] = _plain(data)
    return plain


def _provenance(made: Provenance) -> dict[str, Any]:
    settings = {
        agent: None if found is None else [setting._asdict() for setting in found]
        for agent, found in made.settings.items()
    }
    unbound = {
        agent: {setting.parameter: setting.value for setting in found}
        for agent, found in made.unbound.items()
    }
    return {**made._asdict(), "settings": settings, "unbound": unbound}


def _agent(comparison: Comparison, agent: str) -> dict[str, Any]:
    means, scores = comparison.mean_scores(agent), comparison.scores_of(agent)
    return {
        "own": agent in comparison.own_agents,
        "seeds": dict(zip(means, comparison.seeds(agent, means), strict=True)),
        "differs": comparison.deviations(agent),
        "iteration": {score.game: score.iteration for score in scores},
        "frames": {score.game: score.frames for score in scores},
    }


def _runs(comparison: Comparison) -> list[dict[str, Any]]:
    curves = {run[:3]: run for run in comparison.runs}
    return [
        {
            **score._asdict(),
            "protocol": comparison.protocol_of_run(score),
            "frames_per_iteration": run.frames_per_iteration,
            "returns": run.returns,
        }
        for score in comparison.scores
        for run in [curves[score.agent, score.game, score.seed]]
    ]


def _named(names: Iterable[str], interval: Interval) -> dict[str, dict[str, Any]]:
    """The rows of an interval by name, each with its bounds."""
    rows = zip(*interval, strict=True)
    return {
        n: dict(zip(Interval._fields, r, strict=True)) for n, r in zip(names, rows, strict=True)
    }


def _plain(value: Any) -> Any:
    """Arrays as lists, numbers as Python's, and NaN as None."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
