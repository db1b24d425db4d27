"""The figures of the report: name, heading, caption, and when each is made, one function each."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from log_dqn.results import figures, gamma_scan, statistics
from log_dqn.results.comparison import Comparison
from log_dqn.results.figures import label
from log_dqn.results.statistics import Interval

THRESHOLDS = np.linspace(0, 8, 161)


class Results(NamedTuple):
    """The statistics of a comparison, each by agent; empty where no game is common to all.

    Attributes:
        aggregates: mean, median, IQM and optimality gap, shape [4].
        curves: mean and median at each iteration, shape [2, num_iterations].
        profiles: performance profile at `THRESHOLDS`.
        improvement: for each other agent, the probability that the main agent improves on it.
    """

    aggregates: dict[str, Interval]
    curves: dict[str, Interval]
    profiles: dict[str, Interval]
    improvement: dict[str, Interval]


Drawn = tuple[Figure, str] | str | None
"""A figure and its caption; or why it is not made, None where the report says so elsewhere."""


class Picture(NamedTuple):
    """A figure of the report: the name of its files, its heading, and what draws it."""

    name: str
    heading: str
    draw: Callable[[Comparison, Results], Drawn]


PICTURES: list[Picture] = []
"""All figures, in the order of the page."""


def _picture(name: str, heading: str) -> Callable:
    def add(draw: Callable[[Comparison, Results], Drawn]) -> None:
        PICTURES.append(Picture(name, heading, draw))

    return add


@_picture("relative", "Relative performance")
def _relative(comparison: Comparison, results: Results) -> Drawn:
    main, reference = comparison.main, comparison.request.reference
    relative = comparison.relative()
    if relative and main is not None:
        return figures.relative_bars(relative, main, reference), (
            "(score - reference) / (max(reference, human) - random) for each game. Orange: "
            "more than 50%; dark blue: 10% to 50%; light blue: less than 10%."
        )
    if reference not in comparison.agents:
        return f"relative performance: the reference {label(reference)} has no runs"
    if main is None:
        return "relative performance: needs an agent beside the reference"
    return (
        f"relative performance: {label(main)} and the reference have no game with human scores in "
        "common"
    )


@_picture("mean_median", "Mean and median")
def _mean_median(comparison: Comparison, results: Results) -> Drawn:
    if not results.curves:
        return None
    return figures.mean_and_median_curves(results.curves, len(comparison.common_games)), (
        "Human-normalised score at each iteration, up to the last one that all runs of the agent "
        "have; bands are 95% intervals."
    )


@_picture("aggregates", "Aggregates")
def _aggregates(comparison: Comparison, results: Results) -> Drawn:
    if not results.aggregates:
        return None
    figure = figures.aggregate_intervals(results.aggregates, len(comparison.common_games))
    return figure, "Aggregates with 95% stratified bootstrap intervals."


@_picture("profile", "Performance profile")
def _profile(comparison: Comparison, results: Results) -> Drawn:
    if not results.profiles:
        return None
    num_games = len(comparison.common_games)
    figure = figures.performance_profiles(results.profiles, THRESHOLDS, num_games)
    return figure, "Performance profile: higher is better; bands are 95% intervals."


@_picture("improvement", "Probability of improvement")
def _improvement(comparison: Comparison, results: Results) -> Drawn:
    if not results.improvement or comparison.main is None:
        return None
    figure = figures.improvement_intervals(
        results.improvement, comparison.main, comparison.agents, len(comparison.common_games)
    )
    return figure, "Probability that a run of the agent scores higher than a run of the other."


@_picture("gamma", "Discount factor")
def _gamma(comparison: Comparison, results: Results) -> Drawn:
    points, num_games = gamma_scan.points(comparison.runs, comparison.scores)
    if not points:
        return (
            "mean and median against gamma: needs own runs of one agent class with two discount "
            "factors (operative_config.gin), each on all of the paper's six games that are compared"
        )
    return figures.gamma_scan(points, num_games), (
        "Mean and median against the discount factor over games of the paper's six-game study; "
        f"{gamma_scan.caption(points)}."
    )


@_picture("learning_curves", "Learning curves")
def _learning_curves(comparison: Comparison, results: Results) -> Drawn:
    played = {(run.game, run.agent) for run in comparison.runs}
    curves = {
        game: {
            agent: statistics.curve_array(comparison.runs, agent, [game], lambda _, x: x)[:, 0]
            for agent in comparison.agents
            if (game, agent) in played
        }
        for game in comparison.games
    }
    return (
        figures.learning_curves(curves, comparison.agents, comparison.request.metric),
        "Mean over seeds; bands run from the least to the greatest seed.",
    )
