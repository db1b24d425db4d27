"""The figures of the report: name, heading, caption, and when each is made, one function each."""

import types
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from log_dqn.program import words
from log_dqn.program.words import counted
from log_dqn.results import discount, figures, gamma_scan, statistics
from log_dqn.results.baselines import named
from log_dqn.results.comparison import Comparison
from log_dqn.results.figures import Series
from log_dqn.results.looks import looks as looks_of
from log_dqn.results.statistics import Interval


class Results(NamedTuple):
    """The statistics of a comparison, each by agent; empty where no game is common to all.

    Attributes:
        aggregates: mean, median, IQM and optimality gap, shape [4].
        curves: emulator frames, shape [num_points], and mean, median and IQM there, shape
            [3, num_points].
        profiles: performance profile at `thresholds`.
        improvement: for each other agent, the probability that the main agent improves on it.
        relative: by game, the ends of the 95% interval of the main agent's relative performance,
            where both agents have enough seeds.
        thresholds: human-normalised scores, shape [num_thresholds].
    """

    aggregates: dict[str, Interval]
    curves: dict[str, Series]
    profiles: dict[str, Interval]
    improvement: dict[str, Interval]
    relative: Mapping[str, tuple[float, float]] = types.MappingProxyType({})
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


_BANDS = f"95% intervals, of agents with {statistics.LEAST_SEEDS} seeds or more"


@_picture("relative", "Relative performance")
def _relative(comparison: Comparison, results: Results) -> Drawn:
    main, reference = comparison.main, comparison.request.reference
    relative = comparison.relative()
    looks = comparison.looks(relative, [a for a in (main, reference) if a]) if relative else {}
    if relative and main is not None:
        figure = figures.relative_bars(relative, looks[main], looks[reference], results.relative)
        least, greatest = (choose(relative, key=relative.__getitem__) for choose in (min, max))
        of = "best mean" if comparison.by_best else "(max(reference, human) - random)"
        better = sum(value > 0 for value in relative.values())
        return Shown(
            figure,
            f"(score - reference) / {of} for each game. Orange: "
            "more than 50%; dark blue: 10% to 50%; light blue: less than 10%. Lines are 95% "
            "intervals, of games on which both agents have "
            f"{statistics.LEAST_SEEDS} seeds or more.",
            f"Bars of {looks[main].name} relative to {looks[reference].name}: higher on {better} "
            f"of {counted(len(relative), 'game')}, from {relative[least]:+.0%} on {least} to "
            f"{relative[greatest]:+.0%} on {greatest}.",
        )
    if reference not in comparison.agents:
        return f"relative performance: the reference {named(reference)} has no runs"
    if main is None:
        return "relative performance: needs an agent beside the reference"
    return (
        f"relative performance: {named(main)} and the reference {named(reference)}: "
        f"{comparison.no_aggregates}"
    )


@_picture("mean_median", "Mean and median")
def _mean_median(comparison: Comparison, results: Results) -> Drawn:
    return _over_frames(comparison, results, {"mean": 0, "median": 1})


@_picture("iqm", "Interquartile mean")
def _iqm(comparison: Comparison, results: Results) -> Drawn:
    return _over_frames(comparison, results, {"IQM": 2})


def _over_frames(comparison: Comparison, results: Results, rows: Mapping[str, int]) -> Drawn:
    """Draws some rows of `statistics.mean_median_iqm` against experience."""
    if not results.curves:
        return None
    games = comparison.common_games
    until, cut = _until(comparison, games)
    skip, looks = comparison.frame_skip(games), comparison.looks(games)
    figure = figures.aggregate_curves(
        results.curves, looks, rows, len(games), comparison.scale, skip, until
    )
    ends = [
        f"{looks[agent].name}: "
        + ", ".join(f"{name} {values.value[row, -1]:.3f}" for name, row in rows.items())
        + f" after {words.frames(x[-1], skip)}"
        for agent, (x, values) in results.curves.items()
        if len(x)
    ]
    return Shown(
        figure,
        f"{comparison.scale.capitalize()} against experience, up to the last that all runs of the "
        f"agent have{cut}; bands are {_BANDS}.",
        f"Curves of {' and '.join(rows)} over {counted(len(games), 'game')}, which end at: "
        f"{'; '.join(ends)}.",
    )


def _until(comparison: Comparison, games: Collection[str]) -> tuple[float | None, str]:
    """Where the axis of experience ends, for short own runs to be seen, and what says so."""
    shown = [run for run in comparison.runs if run.game in games]
    own = [run.frames for run in shown if run.agent in comparison.own_agents]
    longest = max(run.frames for run in shown)
    iteration = max(run.frames_per_iteration for run in shown)
    until = max(4 * max(own, default=longest), 10 * iteration)
    if until >= longest:
        return None, ""
    skip = comparison.frame_skip(games)
    return until, f", and shown up to {words.frames(until, skip)} of {words.frames(longest, skip)}"


@_picture("aggregates", "Aggregates")
def _aggregates(comparison: Comparison, results: Results) -> Drawn:
    if not results.aggregates:
        return None
    games = comparison.common_games
    looks, num_games = comparison.looks(games), len(games)
    figure = figures.aggregate_intervals(results.aggregates, looks, num_games, comparison.scale)
    names = statistics.AGGREGATES.values()
    rows = [
        f"{looks[agent].name}: "
        + ", ".join(f"{n} {v:.3f}" for n, v in zip(names, interval.value, strict=True))
        for agent, interval in results.aggregates.items()
    ]
    return Shown(
        figure,
        f"Aggregates with stratified bootstrap {_BANDS}.",
        f"Four panels with the numbers of the table of aggregates. {'; '.join(rows)}.",
    )


@_picture("profile", "Performance profile")
def _profile(comparison: Comparison, results: Results) -> Drawn:
    if not results.profiles:
        return None
    looks, thresholds = comparison.looks(comparison.common_games), results.thresholds
    figure = figures.performance_profiles(
        results.profiles, looks, thresholds, len(comparison.common_games), comparison.scale
    )
    half = [
        f"{looks[agent].name} above {thresholds[int((curve.value >= 0.5).sum()) - 1]:.2f}"
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
    looks = comparison.looks(comparison.common_games)
    figure = figures.improvement_intervals(
        results.improvement, comparison.main, looks, len(comparison.common_games)
    )
    chances = [
        f"{interval.value.item():.2f} over {looks[other].name}"
        for other, interval in results.improvement.items()
    ]
    return Shown(
        figure,
        "Probability that a run of the agent scores higher than a run of the other, with 95% "
        f"intervals where both have {statistics.LEAST_SEEDS} seeds or more.",
        f"Probability of improvement of {looks[comparison.main].name}: {', '.join(chances)}.",
    )


@_picture("gamma", "Discount factor")
def _gamma(comparison: Comparison, results: Results) -> Drawn:
    if comparison.by_best:
        return _own_gammas(comparison)
    points, num_games = gamma_scan.points(comparison.runs, comparison.scores)
    if not points:
        return (
            "mean and median against gamma: needs own runs of one agent class with two discount "
            "factors (config.json), each on all of the paper's six games that are compared"
        )
    settings, six, _ = gamma_scan.participants(comparison.runs, comparison.scores)
    members: dict[str, list[str]] = {}
    for agent, (agent_class, _) in settings.items():
        members.setdefault(agent_class, []).append(agent)
    shown = looks_of(_with_members(comparison, members, six))
    best = [
        f"{shown[name].name}: best mean {max(rows, key=lambda row: row[1])[1]:.3f} at gamma "
        f"{max(rows, key=lambda row: row[1])[0]:g}"
        for name, rows in points.items()
    ]
    return Shown(
        figures.gamma_scan(points, shown, num_games),
        "Mean and median against the discount factor over games of the paper's six-game study; "
        f"{gamma_scan.caption(points)}.",
        f"Mean and median against the discount factor. {'; '.join(best)}.",
    )


def _own_gammas(comparison: Comparison) -> Drawn:
    """Returns against the discount factor, of scans on games without human scores."""
    table = gamma_scan.table(comparison.runs, comparison.scores, comparison.common_games)
    if table.empty or table.groupby("agent")["gamma"].nunique().max() < 2:
        return (
            "returns against gamma: needs own runs of one agent with two discount factors "
            "(config.json) on the games of the aggregates"
        )
    rows = discount.by_gamma(table, comparison.request.repetitions)
    members: dict[str, list[str]] = {}
    for agent in comparison.agents:
        members.setdefault(gamma_scan.without_gamma(agent), []).append(agent)
    shown = looks_of(_with_members(comparison, members, comparison.common_games))
    over = rows[(rows["game"] == discount.OVER_GAMES) & (rows["statistic"] == "iqm")]
    best = over.sort_values("value").groupby("agent").last()
    metric = {"train": "training", "eval": "evaluation"}[comparison.request.metric]
    return Shown(
        figures.gamma_panels(rows, shown, metric),
        "Return against the discount factor on each game, and the interquartile mean over games of "
        f"scores divided by the best mean on their game; bands are {_BANDS}.",
        "Return against the discount factor. IQM over games: "
        + "; ".join(
            f"{shown[row.Index].name}: best {row.value:.3f} at gamma {row.gamma:g}"
            for row in best.itertuples()
        )
        + ".",
    )


def _with_members(
    comparison: Comparison, members: Mapping[str, list[str]], games: Collection[str]
) -> dict[str, str]:
    """Names with the mark and the seeds of the agents that they stand for."""
    return {
        name: f"{named(name)}{comparison.mark(agents, games)}, "
        + words.seeds([n for agent in agents for n in comparison.seeds(agent, games)])
        for name, agents in members.items()
    }


@_picture("learning_curves", "Learning curves")
def _learning_curves(comparison: Comparison, results: Results) -> Drawn:
    played = {(run.game, run.agent) for run in comparison.runs}
    curves: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
    for game in comparison.games:
        curves[game] = {}
        for agent in comparison.agents:
            if (game, agent) in played:
                step, runs = comparison.curves(agent, [game])
                array = statistics.curve_array(runs, agent, [game], lambda _, x: x)[:, 0]
                curves[game][agent] = step * np.arange(1, array.shape[1] + 1), array
    ends = {game: _until(comparison, [game]) for game in curves}
    until = {game: end for game, (end, _) in ends.items() if end is not None}
    cuts = {cut for _, cut in ends.values()}
    cut = cuts.pop() if len(cuts) == 1 else "; an axis ends where own runs can be seen"
    skips = {game: comparison.frame_skip([game]) for game in curves}
    looks = comparison.looks()
    return Shown(
        figures.learning_curves(curves, looks, comparison.request.metric, skips, until),
        f"Mean over seeds{cut}; bands run from the least to the greatest seed, of agents with "
        f"{statistics.LEAST_SEEDS} seeds or more.",
        f"Learning curves of {', '.join(look.name for look in looks.values())} in "
        f"{counted(len(curves), 'panel')}, one a game; where they end is in the table of games.",
    )
