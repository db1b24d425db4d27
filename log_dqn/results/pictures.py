"""The figures of the report: name, heading, caption, and when each is made, one function each."""

import types
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from log_dqn.program import words
from log_dqn.program.words import counted
from log_dqn.results import align, discount, figures, labels, statistics
from log_dqn.results.comparison import Comparison
from log_dqn.results.figures import Series
from log_dqn.results.labels import Look, looks
from log_dqn.results.request import named
from log_dqn.results.statistics import Interval


class Results(NamedTuple):
    """The statistics of a comparison, each by agent; empty where no game is common to all.

    Attributes:
        aggregates: mean, median, IQM and optimality gap, shape [4].
        curves: emulator frames, shape [num_points], and mean, median and IQM there, shape
            [3, num_points].
        profiles: performance profile at `thresholds`.
        improvement: for each other agent, the probability that the main agent improves on it.
        relative: by game, the main agent's relative performance and the ends of its 95% interval,
            NaN where an agent has too few seeds.
        thresholds: human-normalised scores, shape [num_thresholds].
    """

    aggregates: dict[str, Interval]
    curves: dict[str, Series]
    profiles: dict[str, Interval]
    improvement: dict[str, Interval]
    relative: Mapping[str, tuple[float, float, float]] = types.MappingProxyType({})
    thresholds: np.ndarray = np.zeros(0)


class Shown(NamedTuple):
    """A figure, its caption, and what it shows in words for who doesn't see it."""

    figure: Figure
    caption: str
    alternative: str


Drawn = Shown | str | None
"""A figure; or why it is not made, None where the report says so elsewhere."""


class Picture(NamedTuple):
    """A figure of the report: the name of its files, its heading, and what draws it."""

    name: str
    heading: str
    draw: Callable[[Comparison, Results], Drawn]


PICTURES: list[Picture] = []
"""All figures, in the order of the page."""


def _picture(name: str, heading: str) -> Callable:
    def add(draw: Callable[[Comparison, Results], Drawn]) -> Callable:
        PICTURES.append(Picture(name, heading, draw))
        return draw

    return add


_OF_SEEDS = f"of agents with {statistics.LEAST_SEEDS} seeds or more"
_BANDS = f"95% intervals (stratified percentile bootstrap), {_OF_SEEDS}"


def _shown(comparison: Comparison) -> pd.DataFrame:
    """Returns the rows of the games that aggregates are over."""
    return comparison.runs[comparison.runs["game"].isin(comparison.common_games)]


@_picture("relative", "Relative performance")
def _relative(comparison: Comparison, results: Results) -> Drawn:
    main, reference = comparison.main, comparison.request.reference
    if results.relative and main is not None:
        relative = {game: value for game, (value, _, _) in results.relative.items()}
        of_games = labels.looks_of(comparison.runs, relative)
        figure = figures.relative_bars(results.relative, of_games[main], of_games[reference])
        least, greatest = (choose(relative, key=relative.__getitem__) for choose in (min, max))
        of = "best mean" if comparison.by_best else "(max(reference, human) - random)"
        better = sum(value > 0 for value in relative.values())
        return Shown(
            figure,
            f"(score - reference) / {of} for each game. Orange: "
            "more than 50%; dark blue: 10% to 50%; light blue: less than 10%. Lines are 95% "
            "intervals (Welch's t over seeds), of games on which both agents have "
            f"{statistics.LEAST_SEEDS} seeds or more.",
            f"Bars of {of_games[main].name} relative to {of_games[reference].name}: higher on "
            f"{better} of {counted(len(relative), 'game')}, from {relative[least]:+.0%} on "
            f"{least} to {relative[greatest]:+.0%} on {greatest}.",
        )
    if reference not in comparison.runs["agent"].unique():
        return f"relative performance: the reference {named(reference)} has no runs"
    if main is None:
        return "relative performance: needs an agent beside the reference"
    return (
        f"relative performance: {named(main)} and the reference {named(reference)}: "
        f"no game with {comparison.needs} is common to all agents"
    )


@_picture("mean_median", "Mean and median")
def _mean_median(comparison: Comparison, results: Results) -> Drawn:
    return _over_frames(comparison, results, {"mean": 0, "median": 1})


@_picture("iqm", "IQM (interquartile mean)")
def _iqm(comparison: Comparison, results: Results) -> Drawn:
    return _over_frames(comparison, results, {"IQM": 2})


def _over_frames(comparison: Comparison, results: Results, rows: Mapping[str, int]) -> Drawn:
    """Draws some rows of `statistics.mean_median_iqm` against experience."""
    if not results.curves:
        return None
    runs = _shown(comparison)
    until, cut = _until(runs)
    skip, of_agents = align.frame_skip(runs), labels.looks_of(runs)
    num_games = len(comparison.common_games)
    figure = figures.aggregate_curves(
        results.curves, of_agents, rows, num_games, comparison.scale, skip, until
    )
    ends = [
        f"{of_agents[agent].name}: "
        + ", ".join(f"{name} {values.value[row, -1]:.3f}" for name, row in rows.items())
        + f" after {words.frames(x[-1], skip)}"
        for agent, (x, values) in results.curves.items()
        if len(x)
    ]
    return Shown(
        figure,
        f"{comparison.scale.capitalize()} against experience, up to the last that all runs of the "
        f"agent have{cut}; bands are {_BANDS}.",
        f"Curves of {' and '.join(rows)} over {counted(num_games, 'game')}, which end at: "
        f"{'; '.join(ends)}.",
    )


def _until(runs: pd.DataFrame) -> tuple[float | None, str]:
    """Where the axis of experience ends, for short own runs to be seen, and what says so."""
    longest, own = runs["trained"].max(), runs.loc[runs["own"], "trained"].max()
    until = max(4 * (longest if np.isnan(own) else own), 10 * runs["length"].max())
    if until >= longest:
        return None, ""
    skip = align.frame_skip(runs)
    return until, f", and shown up to {words.frames(until, skip)} of {words.frames(longest, skip)}"


@_picture("aggregates", "Aggregates")
def _aggregates(comparison: Comparison, results: Results) -> Drawn:
    if not results.aggregates:
        return None
    of_agents, num_games = labels.looks_of(_shown(comparison)), len(comparison.common_games)
    figure = figures.aggregate_intervals(results.aggregates, of_agents, num_games, comparison.scale)
    names = statistics.AGGREGATES.values()
    rows = [
        f"{of_agents[agent].name}: "
        + ", ".join(f"{n} {v:.3f}" for n, v in zip(names, interval.value, strict=True))
        for agent, interval in results.aggregates.items()
    ]
    return Shown(
        figure,
        f"Aggregates with {_BANDS}.",
        f"Four panels with the numbers of the table of aggregates. {'; '.join(rows)}.",
    )


@_picture("profile", "Performance profile")
def _profile(comparison: Comparison, results: Results) -> Drawn:
    if not results.profiles:
        return None
    of_agents, thresholds = labels.looks_of(_shown(comparison)), results.thresholds
    figure = figures.performance_profiles(
        results.profiles, of_agents, thresholds, len(comparison.common_games), comparison.scale
    )
    half = [
        f"{of_agents[agent].name} above {thresholds[int((curve.value >= 0.5).sum()) - 1]:.2f}"
        for agent, curve in results.profiles.items()
        if curve.value[0] >= 0.5
    ]
    return Shown(
        figure,
        f"Performance profile: higher is better; bands are {_BANDS}. The axis ends where nine of "
        "ten runs of the best agent lie below.",
        f"Falling curves of the fraction of runs above a {comparison.scale}. Half of the runs "
        f"are, of {'; of '.join(half) or 'no agent, on this axis'}.",
    )


@_picture("improvement", "Probability of improvement")
def _improvement(comparison: Comparison, results: Results) -> Drawn:
    if not results.improvement or comparison.main is None:
        return None
    of_agents = labels.looks_of(_shown(comparison))
    figure = figures.improvement_intervals(
        results.improvement, comparison.main, of_agents, len(comparison.common_games)
    )
    chances = [
        f"{interval.value.item():.2f} over {of_agents[other].name}"
        for other, interval in results.improvement.items()
    ]
    return Shown(
        figure,
        "Probability that a run of the agent scores higher than a run of the other, with 95% "
        "intervals (stratified percentile bootstrap) where both have "
        f"{statistics.LEAST_SEEDS} seeds or more.",
        f"Probability of improvement of {of_agents[comparison.main].name}: {', '.join(chances)}.",
    )


@_picture("gamma", "Discount factor")
def _gamma(comparison: Comparison, results: Results) -> Drawn:
    if comparison.by_best:
        return _own_gammas(comparison)
    points, num_games = discount.points(comparison.runs)
    if not points:
        return (
            "mean and median against gamma: needs own runs of one agent class with two discount "
            "factors (config.json), each on all of the paper's six games that are compared"
        )
    settings, six, _ = discount.participants(comparison.runs)
    taking_part = comparison.runs["agent"].isin(settings) & comparison.runs["game"].isin(six)
    runs = comparison.runs[taking_part]
    classes = runs["agent"].map({agent: name for agent, (name, _) in settings.items()})
    shown = _looks_of_groups(runs, classes)
    best = [
        f"{shown[name].name}: best mean {mean:.3f} at gamma {gamma:g}"
        for name, rows in points.items()
        for gamma, mean, *_ in [max(rows, key=lambda row: row[1])]
    ]
    return Shown(
        figures.gamma_scan(points, shown, num_games),
        "Mean and median against the discount factor over games of the paper's six-game study; "
        f"{discount.caption(points)}.",
        f"Mean and median against the discount factor. {'; '.join(best)}.",
    )


def _own_gammas(comparison: Comparison) -> Drawn:
    """Returns against the discount factor, of scans on games without human scores."""
    runs = _shown(comparison)
    table = discount.scanned(runs)
    if table.empty or table.groupby("agent")["gamma"].nunique().max() < 2:
        return (
            "returns against gamma: needs own runs of one agent with two discount factors "
            "(config.json) on the games of the aggregates"
        )
    rows = discount.by_gamma(table)
    shown = _looks_of_groups(runs, runs["agent"].map(discount.without_gamma))
    over = rows[rows["game"] == discount.OVER_GAMES].dropna(subset="value")
    best = over.sort_values("value").groupby("agent").last()
    metric = {"train": "training", "eval": "evaluation"}[comparison.request.metric]
    return Shown(
        figures.gamma_panels(rows, shown, metric),
        "Mean return against the discount factor on each game, and the mean over games of scores "
        "divided by the best mean on their game; bands are 95% intervals (Student's t over seeds, "
        f"Welch's over games), {_OF_SEEDS}.",
        "Return against the discount factor. Mean over games: "
        + "; ".join(
            f"{shown[row.Index].name}: best {row.value:.3f} at gamma {row.gamma:g}"
            for row in best.itertuples()
        )
        + ".",
    )


def _looks_of_groups(runs: pd.DataFrame, groups: pd.Series) -> dict[str, Look]:
    """Returns how groups of agents are shown, with the mark and the seeds of their runs."""
    return looks(
        {
            name: f"{named(name)}{labels.mark(rows)}, {labels.seeds(rows)}"
            for name, rows in runs.groupby(groups, sort=False)
        }
    )


@_picture("learning_curves", "Learning curves")
def _learning_curves(comparison: Comparison, results: Results) -> Drawn:
    runs = comparison.runs
    curves: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
    of_games = dict(iter(runs.groupby("game")))
    for game, of_game in of_games.items():
        curves[game] = {}
        for agent, rows in labels.by_agent(of_game).items():
            step, own = statistics.curves(rows)
            array = statistics.curve_array(own, [game])[:, 0]
            curves[game][agent] = step * np.arange(1, array.shape[1] + 1), array
    ends = {game: _until(of_game) for game, of_game in of_games.items()}
    until = {game: end for game, (end, _) in ends.items() if end is not None}
    cuts = {cut for _, cut in ends.values()}
    cut = cuts.pop() if len(cuts) == 1 else "; an axis ends where own runs can be seen"
    skips = {game: align.frame_skip(of_game) for game, of_game in of_games.items()}
    of_agents = labels.looks_of(runs)
    return Shown(
        figures.learning_curves(curves, of_agents, comparison.request.metric, skips, until),
        f"Mean over seeds{cut}; bands run from the least to the greatest seed, of agents with "
        f"{statistics.LEAST_SEEDS} seeds or more.",
        f"Learning curves of {', '.join(look.name for look in of_agents.values())} in "
        f"{counted(len(curves), 'panel')}, one a game; where they end is in the table of games.",
    )
