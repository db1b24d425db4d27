"""The figures of the report, one function each: when it is made, how, its caption, its words."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from log_dqn.cli import words
from log_dqn.cli.words import counted
from log_dqn.results import align, discount, figures, labels, statistics
from log_dqn.results.comparison import Comparison
from log_dqn.results.figures import WIDE, Series
from log_dqn.results.labels import Look, looks
from log_dqn.results.request import METRICS, named
from log_dqn.results.statistics import AGGREGATES, LEAST_SEEDS, Interval

ORANGE, DARK_BLUE, LIGHT_BLUE = "#E8730C", "#123C7A", "#A9CFEA"


class Results(NamedTuple):
    """The statistics of a comparison, each by agent; empty where no game is common to all.

    Attributes:
        relative: the main agent's relative performance, a row a game: `relative` and the ends of
            its 95% interval, `low` and `high`, NaN where an agent has too few seeds.
        aggregates: mean, median, IQM and optimality gap, shape [4].
        curves: emulator frames, shape [num_points], and mean, median and IQM there, shape
            [3, num_points].
        profiles: performance profile at `thresholds`.
        improvement: for each other agent, the probability that the main agent improves on it.
        thresholds: human-normalised scores, shape [num_thresholds].
    """

    relative: pd.DataFrame
    aggregates: dict[str, Interval]
    curves: dict[str, Series]
    profiles: dict[str, Interval]
    improvement: dict[str, Interval]
    thresholds: np.ndarray


class Shown(NamedTuple):
    """A figure, its caption, and what it shows in words for who doesn't see it."""

    figure: Figure
    caption: str
    alternative: str


Drawn = Shown | str | None
"""A figure; or why it is not made, None where the report says so elsewhere."""

_OF_SEEDS = f"of agents with {LEAST_SEEDS} seeds or more"
_BANDS = f"95% intervals (stratified percentile bootstrap), {_OF_SEEDS}"


def _shown(comparison: Comparison) -> tuple[pd.DataFrame, dict[str, Look], str]:
    """Returns the runs that aggregates are over, how agents are shown, and what aggregates over."""
    games = comparison.common_games
    runs = comparison.runs[comparison.runs["game"].isin(games)]
    return runs, labels.looks_of(runs), f"over {counted(len(games), 'game')}"


def bar_colour(relative: float) -> str:
    """Returns the paper's colour: orange beyond 50%, dark blue from 10% on, light blue below."""
    size = abs(relative)
    return ORANGE if size > 0.5 else DARK_BLUE if size >= 0.1 else LIGHT_BLUE


def _relative(comparison: Comparison, results: Results) -> Drawn:
    main, reference = comparison.main, comparison.reference
    if main is None or results.relative.empty:
        return (
            f"relative performance: needs a game with {comparison.needs} that the reference "
            f"{named(reference)} and another agent have"
        )
    rows = results.relative.sort_values("relative", kind="stable")
    of_games = labels.looks_of(comparison.runs, rows.index)
    own, other, num_games = of_games[main], of_games[reference], counted(len(rows), "game")
    figure = relative_bars(rows)
    title = f"{own.name}\nrelative to {other.name}; {num_games}"
    figure.axes[0].set_title(title, fontsize=11, loc="left")
    of = "best mean" if comparison.divides_by_best else "(max(reference, human) - random)"
    relative = results.relative["relative"]
    least, greatest = relative.idxmin(), relative.idxmax()
    return Shown(
        figure,
        f"(score - reference) / {of} for each game. Orange: "
        "more than 50%; dark blue: 10% to 50%; light blue: less than 10%. Lines are 95% "
        "intervals (Welch's t over seeds), of games on which both agents have "
        f"{LEAST_SEEDS} seeds or more.",
        f"Bars of {own.name} relative to {other.name}: higher on {(relative > 0).sum()} of "
        f"{num_games}, from {relative[least]:+.0%} on {least} to {relative[greatest]:+.0%} on "
        f"{greatest}.",
    )


def relative_bars(rows: pd.DataFrame) -> Figure:
    """Draws relative performance on each game, in percent (paper, section 6); see `Results`."""
    percent, *bounds = 100 * rows[["relative", "low", "high"]].to_numpy().T
    ends = np.where(np.isnan(bounds), percent, bounds)
    places = range(len(rows))
    figure = figures.figure_of(max(WIDE, 1.2 + 0.21 * len(rows)), 4.8)
    axes = figures.tidy(figure.subplots())
    bars = axes.bar(
        places,
        percent,
        min(0.8, 0.1 * len(rows)),
        color=[*map(bar_colour, rows["relative"])],
        yerr=np.abs(ends - percent),
        error_kw={"ecolor": "0.35", "elinewidth": 0.9, "capsize": 0},
    )
    numbers = [f"{value:+.{0 if abs(value) >= 10 else 1}f}%" for value in percent]
    axes.bar_label(bars, numbers, rotation=90, padding=3, fontsize=7)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_yscale("symlog", linthresh=100, linscale=1.5)
    # Room for the numbers at the bars' ends, on the scale as it is drawn.
    scale = axes.yaxis.get_transform()
    low, high = scale.transform(np.array([min(ends.min(), -50), max(ends.max(), 50)]))
    room = 0.17 * (high - low)
    axes.set_ylim(*scale.inverted().transform(np.array([low - room, high + room])))
    ticks = [-10000, -1000, -100, -50, 0, 50, 100, 1000, 10000]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}%"))
    axes.set_xlim(-0.7, len(rows) - 0.3)
    axes.set_xticks(places, rows.index, rotation=90, fontsize=8)
    axes.set_ylabel("relative performance (linear to 100%)")
    figure.legend(
        [Patch(color=colour) for colour in (ORANGE, DARK_BLUE, LIGHT_BLUE)],
        ["more than 50%", "10% to 50%", "less than 10% (in absolute value)"],
        loc="outside lower left",
        ncols=3,
        fontsize=8,
        frameon=False,
    )
    return figure


def _over_frames(comparison: Comparison, results: Results, names: Mapping[str, int]) -> Drawn:
    """Draws some rows of `statistics.mean_median_iqm`, by name, against experience."""
    if not results.curves:
        return None
    runs, of_agents, over = _shown(comparison)
    (until, cut), skip = _until(runs), align.frame_skip(runs)
    height = 4.8 if len(names) == 1 else 4.5 + 0.08 * len(results.curves)
    figure = figures.figure_of(WIDE, height)
    panels = _panels(figure, [*names], over, comparison.scale)
    for row, axes in zip(names.values(), panels, strict=True):
        curves = {
            agent: (x, Interval(*(bound[row] for bound in interval)))
            for agent, (x, interval) in results.curves.items()
        }
        figures.lines(axes, curves, of_agents, until)
        figures.experience_axis(axes, skip, until)
    figures.legend(figure, panels[0])
    ends = [
        f"{of_agents[agent].name}: {_numbers(names, values.value[[*names.values()], -1])} after "
        f"{words.frames(x[-1], skip)}"
        for agent, (x, values) in results.curves.items()
    ]
    return Shown(
        figure,
        f"{comparison.scale.capitalize()} against experience, up to the last that all runs of the "
        f"agent have{cut}; bands are {_BANDS}.",
        f"Curves of {' and '.join(names)} {over}, which end at: {'; '.join(ends)}.",
    )


def _numbers(names: Iterable[str], values: Iterable[float]) -> str:
    """Returns named numbers in words: mean 1.234, median 0.567."""
    return ", ".join(f"{name} {value:.3f}" for name, value in zip(names, values, strict=True))


def _panels(figure: Figure, names: list[str], over: str, scale: str) -> list[Axes]:
    panels = [figures.tidy(axes) for axes in figure.subplots(1, len(names), squeeze=False)[0]]
    for name, axes in zip(names, panels, strict=True):
        axes.set(title=f"{name[0].upper()}{name[1:]} {over}", ylabel=scale)
    return panels


def _until(runs: pd.DataFrame) -> tuple[float | None, str]:
    """Returns where the experience shown ends, for short own runs to be seen, and what says so."""
    longest, own = runs["trained"].max(), runs.loc[runs["own"], "trained"].max()
    until = max(4 * (longest if np.isnan(own) else own), 10 * runs["length"].max())
    if until >= longest:
        return None, ""
    skip = align.frame_skip(runs)
    return until, f", and shown up to {words.frames(until, skip)} of {words.frames(longest, skip)}"


def _aggregates(comparison: Comparison, results: Results) -> Drawn:
    if not results.aggregates:
        return None
    _, of_agents, over = _shown(comparison)
    figure = figures.figure_of(WIDE, 1.3 + 0.42 * len(results.aggregates))
    panels = figure.subplots(1, len(AGGREGATES), sharey=True)
    for column, (name, axes) in enumerate(zip(AGGREGATES, panels, strict=True)):
        figures.interval_rows(axes, results.aggregates, column, of_agents)
        less_is_better = " (less is better)" if name == "optimality_gap" else ""
        axes.set_title(AGGREGATES[name] + less_is_better, fontsize=8.5)
    figure.supxlabel(f"{comparison.scale}, {over}", fontsize=10)
    rows = [
        f"{of_agents[agent].name}: {_numbers(AGGREGATES.values(), interval.value)}"
        for agent, interval in results.aggregates.items()
    ]
    return Shown(
        figure,
        f"Aggregates with {_BANDS}.",
        f"Four panels with the numbers of the table of aggregates. {'; '.join(rows)}.",
    )


def _profile(comparison: Comparison, results: Results) -> Drawn:
    if not results.profiles:
        return None
    (_, of_agents, over), thresholds = _shown(comparison), results.thresholds
    figure = figures.figure_of(WIDE, 5)
    axes = figures.tidy(figure.subplots())
    curves = {agent: (thresholds, curve) for agent, curve in results.profiles.items()}
    figures.lines(axes, curves, of_agents)
    axes.set_xlim(thresholds[0], thresholds[-1])
    axes.set_ylim(-0.03, 1.03)  # Room for markers at the ends.
    axes.set_xlabel(f"{comparison.scale} \u03c4")
    axes.set_ylabel("fraction of runs with score > \u03c4")
    axes.set_title(f"Performance profile {over}")
    figures.legend(figure, axes)
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


def _improvement(comparison: Comparison, results: Results) -> Drawn:
    if not results.improvement or comparison.main is None:
        return None
    _, of_agents, over = _shown(comparison)
    main = of_agents[comparison.main].name
    figure = figures.figure_of(WIDE, 1.5 + 0.42 * len(results.improvement))
    axes = figure.subplots()
    figures.interval_rows(axes, results.improvement, 0, of_agents)
    axes.axvline(0.5, color="0.4", linewidth=1, linestyle="--")
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel(f"P(better than the other), averaged {over}")
    axes.set_title(f"Probability of improvement of {main}")
    chances = [
        f"{interval.value.item():.2f} over {of_agents[other].name}"
        for other, interval in results.improvement.items()
    ]
    return Shown(
        figure,
        "Probability that a run of the agent scores higher than a run of the other, with 95% "
        "intervals (stratified percentile bootstrap) where both have "
        f"{LEAST_SEEDS} seeds or more.",
        f"Probability of improvement of {main}: {', '.join(chances)}.",
    )


def _gamma(comparison: Comparison, results: Results) -> Drawn:
    if comparison.divides_by_best:
        return _own_gammas(comparison)
    runs = discount.participants(comparison.runs)
    if runs.empty:
        return (
            "mean and median against gamma: needs own runs of one agent class with two discount "
            "factors (config.json), each on all of the paper's six games that are compared"
        )
    points, shown = discount.points(runs), _looks_of_groups(runs, runs["agent_class"])
    figure = figures.figure_of(WIDE, 4.2)
    over = f"over {counted(runs['game'].nunique(), 'game')}"
    panels = _panels(figure, ["mean", "median"], over, comparison.scale)
    best = []
    for name, rows in points.groupby("agent_class", sort=False):
        look = shown[name]
        for axes, column in zip(panels, ("mean", "median"), strict=True):
            x, y = rows["gamma"], rows[column]
            axes.plot(x, y, color=look.colour, marker=look.marker, label=look.name)
            axes.set_xlabel("discount factor \u03b3")
        top = rows.loc[rows["mean"].idxmax()]
        best.append(f"{look.name}: best mean {top['mean']:.3f} at gamma {top['gamma']:g}")
    figures.legend(figure, panels[0])
    return Shown(
        figure,
        "Mean and median against the discount factor over games of the paper's six-game study; "
        f"{discount.caption(points)}.",
        f"Mean and median against the discount factor. {'; '.join(best)}.",
    )


def _own_gammas(comparison: Comparison) -> Drawn:
    """Returns against the discount factor, of scans on games without human scores."""
    runs, *_ = _shown(comparison)
    table = discount.scanned(runs)
    if table.empty or table.groupby("agent")["gamma"].nunique().max() < 2:
        return (
            "returns against gamma: needs own runs of one agent with two discount factors "
            "(config.json) on the games of the aggregates"
        )
    rows = discount.by_gamma(table)
    # Runs of several discount factors may lie in one folder, which is then an agent.
    apart = runs.assign(agent=runs["agent"] + runs["gamma"].map("/{:g}".format))
    shown = _looks_of_groups(apart, runs["agent"].map(discount.without_gamma))
    over = rows[rows["game"] == discount.OVER_GAMES].dropna(subset="value")
    best = over.sort_values("value").groupby("agent").last()
    found = [
        f"{shown[row.Index].name}: best {row.value:.3f} at gamma {row.gamma:g}"
        for row in best.itertuples()
    ]
    return Shown(
        figures.gamma_panels(rows, shown, METRICS[comparison.request.metric]),
        "Mean return against the discount factor on each game"
        + ", and the mean over games of scores divided by the best mean on their game" * bool(found)
        + "; bands are 95% intervals (Student's t over seeds"
        + ", Welch's over games" * bool(found)
        + f"), {_OF_SEEDS}.",
        "Return against the discount factor."
        + f" Mean over games: {'; '.join(found)}." * bool(found),
    )


def _looks_of_groups(runs: pd.DataFrame, groups: pd.Series) -> dict[str, Look]:
    """Returns how groups of agents are shown, with the mark and the seeds of their runs."""
    return looks(
        {
            name: f"{named(name)}{labels.mark(rows)}, {labels.seeds(rows)}"
            for name, rows in runs.groupby(groups, sort=False)
        }
    )


def _learning_curves(comparison: Comparison, results: Results) -> Drawn:
    """Draws a panel for each game: mean over seeds, band from least to greatest."""
    of_games, of_agents = (
        dict(iter(comparison.runs.groupby("game"))),
        labels.looks_of(comparison.runs),
    )
    skips = {game: align.frame_skip(runs) for game, runs in of_games.items()}
    units = {skip for skip in skips.values() if skip != 1} or {1}
    columns = min(5, math.ceil(math.sqrt(len(of_games))))
    rows = math.ceil(len(of_games) / columns)
    height = 0.8 + {1: 4.2, 2: 2.8}.get(columns, 2.05) * rows + 0.12 * len(of_agents)
    figure = figures.figure_of(max(WIDE, 2.8 * columns), height)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    cuts = set()
    for axes, (game, runs) in zip(panels, of_games.items(), strict=False):
        figures.tidy(axes)
        until, cut = _until(runs)
        cuts.add(cut)
        by_agent = labels.by_agent(runs)
        series = {agent: _seeds_curve(by_agent[agent]) for agent in of_agents if agent in by_agent}
        figures.lines(axes, series, of_agents, until, width=1.2)
        axes.set_title(game, fontsize=9, pad=3)
        figures.limit(axes, until)
        if skips[game] == 1 and units != {1}:
            axes.set_xlabel(figures.unit(1), fontsize=7)
        axes.tick_params(labelsize=7)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(figures.short_number))
    for axes in panels[len(of_games) :]:
        axes.set_visible(False)
    frame_skip = units.pop() if len(units) == 1 else None
    several = f" (an agent step is {frame_skip} frames)" if frame_skip not in (None, 1) else ""
    figure.supxlabel(figures.unit(frame_skip) + several, fontsize=10)
    metric = comparison.request.metric
    kind = f"{METRICS[metric]}{labels.published(comparison.runs, metric)}"
    figure.supylabel(f"mean return per episode, {kind}", fontsize=10)
    # The legend has invisible axes of its own: no game need have all agents.
    axes = figure.add_axes((0, 0, 0, 0), visible=False)
    for name, colour, marker, line in of_agents.values():
        axes.plot([], [], color=colour, marker=marker, linestyle=line, label=name)
    figures.legend(figure, axes, above=True)
    cut = cuts.pop() if len(cuts) == 1 else "; an axis ends where own runs can be seen"
    return Shown(
        figure,
        f"Mean over seeds, as far as each has come{cut}; bands run from the least to the greatest "
        f"seed, {_OF_SEEDS}.",
        f"Learning curves of {', '.join(look.name for look in of_agents.values())} in "
        f"{counted(len(of_games), 'panel')}, one a game; where they end is in the table of games.",
    )


def _seeds_curve(rows: pd.DataFrame) -> Series:
    """Returns emulator frames and, of one agent's runs of a game, mean, least and greatest.

    They are of the runs that came so far; bounds are NaN where these are fewer than `LEAST_SEEDS`.
    """
    step, curves = statistics.curves(rows)
    returns = statistics.curve_array(curves, [rows["game"].iloc[0]])[:, 0]
    lengths = curves["returns"].map(len).to_numpy()[:, None]
    enough = (lengths > np.arange(returns.shape[1])).sum(axis=0) >= LEAST_SEEDS
    # fmin and fmax, unlike min and max, leave NaN out.
    bounds = (np.where(enough, of.reduce(returns), np.nan) for of in (np.fmin, np.fmax))
    frames = step * np.arange(1, returns.shape[1] + 1)
    return frames, Interval(statistics.mean_over_seeds(returns), *bounds)


_mean_median = functools.partial(_over_frames, names={"mean": 0, "median": 1})
_iqm = functools.partial(_over_frames, names={"IQM": 2})

PICTURES: dict[str, tuple[str, Callable[[Comparison, Results], Drawn]]] = {
    "relative": ("Relative performance", _relative),
    "mean_median": ("Mean and median", _mean_median),
    "iqm": ("IQM (interquartile mean)", _iqm),
    "aggregates": ("Aggregates", _aggregates),
    "profile": ("Performance profile", _profile),
    "improvement": ("Probability of improvement", _improvement),
    "gamma": ("Discount factor", _gamma),
    "learning_curves": ("Learning curves", _learning_curves),
}
"""All figures by their files' names, in the order of the page: headings, and what draws them."""
