"""The numbers of a report as plain data, for JSON."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from log_dqn.results import discount, labels, scores, statistics, tables
from log_dqn.results.comparison import Comparison
from log_dqn.results.pictures import Results
from log_dqn.results.statistics import Interval

_RUN = ["game", "agent", "seed", "iteration", "score", "frames"]
_CURVE = ["protocol", "frames_per_iteration", "returns"]


def as_data(comparison: Comparison, results: Results, made: dict[str, Any]) -> dict[str, Any]:
    """Returns all numbers of a report with their intervals, as JSON holds them; null for NaN.

    `runs` has a row for each score, and the run's learning curve.
    """
    request, runs = comparison.request, comparison.runs
    until = runs.dropna(subset="until").drop_duplicates("game").sort_values("game")
    together = until.loc[~until["apart"], "until"].astype(int).unique()
    apart = until[until["apart"]]
    normalised = comparison.normalised
    renamed = {"normalised": normalised, "length": "frames_per_iteration"}
    table = tables.with_protocol(runs).rename(columns=renamed)
    unbound = {
        agent: {setting.parameter: setting.value for setting in found}
        for agent, found in made["unbound"].items()
    }
    data = {
        "made_with": {**made, "unbound": unbound},
        "metric": request.metric,
        "scores": tables.scored(comparison),
        "frames": together[0] if len(together) else None,
        "frames_elsewhere": dict(zip(apart["game"], apart["until"].astype(int), strict=True)),
        "repetitions": request.repetitions,
        "reference": comparison.reference,
        "protocol_of": dict(zip(runs["game"], runs["standard"], strict=True)),
        "common_games": comparison.common_games,
        "agents": {agent: _agent(rows) for agent, rows in labels.by_agent(runs).items()},
        "aggregates": {
            agent: _named(statistics.AGGREGATES, interval)
            for agent, interval in results.aggregates.items()
        },
        "improvement": {"of": comparison.main, "over": results.improvement},
        "relative": results.relative.rename(columns={"relative": "value"}).to_dict("index"),
        "games": {
            game: rows.set_index("agent")[["score", normalised]].to_dict("index")
            for game, rows in scores.means(runs).rename(columns=renamed).groupby("game")
        },
        "profiles": {"thresholds": results.thresholds, "agents": results.profiles},
        "curves": {
            agent: {"frames": frames, **_named(("mean", "median", "iqm"), interval)}
            for agent, (frames, interval) in results.curves.items()
        },
        "gamma": _gamma(comparison),
        "runs": table[[*_RUN, normalised, *_CURVE]].to_dict("records"),
        "notes": comparison.notices,
    }
    plain: dict[str, Any] = _plain(data)
    return plain


def _gamma(comparison: Comparison) -> dict[str, Any]:
    """Returns what the figure against the discount factor shows: by agent, or agent class."""
    if comparison.divides_by_best:
        common = comparison.runs["game"].isin(comparison.common_games)
        table = discount.scanned(comparison.runs[common])
        name, of_name, points = "agents", "agent", discount.by_gamma(table)
    else:
        table = discount.participants(comparison.runs)
        name, of_name, points = "classes", "agent_class", discount.points(table)
    by_name = points.groupby(of_name, sort=False)
    data = {each: rows.drop(columns=of_name).to_dict("records") for each, rows in by_name}
    return {"games": table["game"].nunique(), name: data}


def _agent(rows: pd.DataFrame) -> dict[str, Any]:
    return {
        "own": rows["own"].all(),
        "seeds": rows.groupby("game").size().to_dict(),
        "differs": labels.deviations(rows),
    }


def _named(names: Iterable[str], interval: Interval) -> dict[str, Interval]:
    """Returns the rows of an interval by name."""
    return dict(zip(names, map(Interval, *interval), strict=True))


def _plain(value: Any) -> Any:
    """Returns arrays as lists, named tuples as dictionaries, Python's numbers, and NaN as None."""
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
