"""The figures of a comparison, as matplotlib figures."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import Bbox

from log_dqn.program.words import counted
from log_dqn.results.discount import OVER_GAMES
from log_dqn.results.labels import Look
from log_dqn.results.statistics import AGGREGATES, LEAST_SEEDS, Interval, mean_over_seeds

ORANGE, DARK_BLUE, LIGHT_BLUE = "#E8730C", "#123C7A", "#A9CFEA"

Series = tuple[np.ndarray, Interval]
"""Emulator frames, shape [num_points], and values with their intervals, shape [..., num_points]."""


def bar_colour(relative: float) -> str:
    """The paper's colours: orange beyond 50%, dark blue from 10% to 50%, light blue below."""
    size = abs(relative)
    return ORANGE if size > 0.5 else DARK_BLUE if size >= 0.1 else LIGHT_BLUE


_WIDE = 11  # inches: a figure has the page's width.


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _tidy(axes: Axes) -> Axes:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    return axes


def relative_bars(
    relative: Mapping[str, tuple[float, float, float]], agent: Look, reference: Look
) -> Figure:
    """Relative performance on each game, in percent (paper, section 6).

    `relative` is `scores.relative_to` by game, as a fraction, and the ends of its 95% interval, NaN
    where there is none.
    """
    order = sorted(relative, key=lambda game: relative[game])
    percent, *bounds = 100 * np.array([relative[game] for game in order]).T
    ends = np.where(np.isnan(bounds), percent, bounds)
    errors = np.abs(ends - percent)
    figure = _figure(max(_WIDE, 1.2 + 0.21 * len(order)), 4.8)
    axes = _tidy(figure.subplots())
    colours = [bar_colour(relative[game][0]) for game in order]
    look = {"ecolor": "0.35", "elinewidth": 0.9, "capsize": 0}
    bars = axes.bar(
        range(len(order)),
        percent,
        min(0.8, 0.1 * len(order)),
        color=colours,
        yerr=errors,
        error_kw=look,
    )
    axes.bar_label(bars, list(map(_percent, percent)), rotation=90, padding=3, fontsize=7)
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
    axes.set_xlim(-0.7, len(order) - 0.3)
    axes.set_xticks(range(len(order)), order, rotation=90, fontsize=8)
    axes.set_ylabel("relative performance (linear to 100%)")
    title = f"{agent.name}\nrelative to {reference.name}; {counted(len(order), 'game')}"
    axes.set_title(title, fontsize=11, loc="left")
    figure.legend(
        [Patch(color=colour) for colour in (ORANGE, DARK_BLUE, LIGHT_BLUE)],
        ["more than 50%", "10% to 50%", "less than 10% (in absolute value)"],
        loc="outside lower left",
        ncols=3,
        fontsize=8,
        frameon=False,
    )
    return figure


def _percent(value: float) -> str:
    """Whole percents, tenths below 10; more digits where rounding would hide the colour's side."""
    digits = 0 if abs(value) >= 10 else 1
    while digits < 2 and abs(value) != round(abs(value), digits) in (10, 50):
        digits += 1
    return f"{value:+.{digits}f}%"


_FOOT = 0.28  # inches


def footnote(figure: Figure, notes: Mapping[str, str]) -> Bbox:
    """Explains, below a figure, the marks that stand in it.

    `notes` says what each mark stands for.

    Returns:
        The figure's box in inches, with the footnote if there is one.
    """
    texts = [text.get_text() for text in figure.findobj(Text)]
    shown = [f"{m} {what}" for m, what in notes.items() if any(m in text for text in texts)]
    width, height = figure.get_size_inches()
    if not shown:
        return Bbox.from_extents(0, 0, width, height)
    # A legend would go down to the bottom of what is saved, which is the footnote's.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0, 0, 1, 1), figure.transFigure)
    below = -0.4 * _FOOT / height
    figure.text(0.008, below, "    ".join(shown), fontsize=7, color="0.35", va="top")
    return Bbox.from_extents(0, -_FOOT, width, height)


def aggregate_curves(
    curves: Mapping[str, Series],
    looks: Mapping[str, Look],
    rows: Mapping[str, int],
    num_games: int,
    scale: str,
    frame_skip: int | None,
    until: float | None,
) -> Figure:
    """Aggregates over games against experience, with 95% intervals, a panel for each of `rows`.

    `curves` hold `statistics.mean_median_iqm` of each agent, whose rows `rows` numbers by name; the
    axis ends at `until` emulator frames.
    """
    figure = _figure(_WIDE, 4.8 if len(rows) == 1 else 4.5 + 0.08 * len(curves))
    panels = _panels_over_games(figure, tuple(rows), num_games, scale)
    for row, axes in zip(rows.values(), panels, strict=True):
        of_row = {
            agent: (x, Interval(*(bound[row] for bound in interval)))
            for agent, (x, interval) in curves.items()
        }
        _lines(axes, of_row, looks, until)
        _experience_axis(axes, frame_skip, until)
    _legend(figure, panels[0])
    return figure


def _panels_over_games(
    figure: Figure, names: Sequence[str], num_games: int, scale: str
) -> list[Axes]:
    panels = [_tidy(axes) for axes in figure.subplots(1, len(names), squeeze=False)[0]]
    for name, axes in zip(names, panels, strict=True):
        title = f"{name[0].upper()}{name[1:]} over {counted(num_games, 'game')}"
        axes.set(title=title, ylabel=scale)
    return panels


def _experience_axis(axes: Axes, frame_skip: int | None, until: float | None) -> None:
    """Emulator frames below, and agent steps above where they are others."""
    axes.xaxis.set_major_formatter(FuncFormatter(_short_number))
    _limit(axes, until)
    axes.set_xlabel(_unit(frame_skip))
    if frame_skip is not None and frame_skip > 1:
        there, back = (functools.partial(np.multiply, x) for x in (1 / frame_skip, frame_skip))
        steps = axes.secondary_xaxis("top", functions=(there, back))
        steps.xaxis.set_major_formatter(FuncFormatter(_short_number))
        steps.tick_params(labelsize=8, colors="0.35")
        steps.set_xlabel("agent steps", fontsize=8, color="0.35")


def _limit(axes: Axes, until: float | None) -> None:
    """Ends the axis there, with room for a marker at 0."""
    end = until or axes.get_xlim()[1]
    axes.set_xlim(-0.02 * end, end)


def _unit(frame_skip: int | None) -> str:
    return "agent steps" if frame_skip == 1 else "emulator frames"


def _lines(
    axes: Axes,
    curves: Mapping[str, Series],
    looks: Mapping[str, Look],
    until: float | None = None,
    width: float = 1.8,
) -> None:
    """Draws curves with bands up to some x; one of which a single point is known is a marker."""
    order = list(looks)
    longest = max((x[-1] for x, _ in curves.values() if len(x)), default=1)
    for agent, (all_x, whole) in curves.items():
        shown_x = all_x <= (longest if until is None else until)
        x, (value, low, high) = all_x[shown_x], (bound[shown_x] for bound in whole)
        look = looks[agent]
        known = np.flatnonzero(~np.isnan(value))
        if not len(known):
            continue
        # The shorter a curve, the further in front.
        shown: dict[str, Any] = {"color": look.colour, "label": look.name}
        shown["zorder"] = 3 - x[-1] / longest
        if len(known) == 1:
            at, middle = x[known], value[known]
            error = np.array([middle - low[known], high[known] - middle])
            bounds = None if np.isnan(error).any() else error
            axes.errorbar(at, middle, bounds, fmt=look.marker, ms=3.4 * width, capsize=2, **shown)
            continue
        axes.fill_between(
            x, low, high, zorder=shown["zorder"], color=look.colour, alpha=0.18, linewidth=0
        )
        # Markers of different agents stand at different places; a short curve's are close.
        step = max(1, len(x) // 8)
        start = int((0.5 + order.index(agent)) / len(order) * step)
        last = int(known[-1])
        marked = [*range(start, last - step // 2, step), last]
        shown |= {"marker": look.marker, "markevery": marked, "markersize": 3.6 * width}
        shown |= {"markeredgecolor": "white", "markeredgewidth": 0.25 * width}
        axes.plot(x, value, linewidth=width, linestyle=look.line, **shown)


def _legend(figure: Figure, axes: Axes, above: bool = False) -> None:
    handles, labels = axes.get_legend_handles_labels()
    columns = 2
    if figure.get_figwidth() > 9:
        columns = len(labels) if len(labels) <= 4 else 3
    place: Any = f"outside {'upper' if above else 'lower'} center"
    figure.legend(handles, labels, loc=place, ncols=columns, frameon=False)


def learning_curves(
    curves: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]],
    looks: Mapping[str, Look],
    metric: str,
    frame_skips: Mapping[str, int | None],
    until: Mapping[str, float],
) -> Figure:
    """Learning curves of all games in a grid: mean over seeds, band from least to greatest.

    `curves` holds, for each game and agent, emulator frames and returns of shape [num_seeds,
    num_points], NaN where unknown; the legend is in the order of `looks`. `frame_skips` are the
    emulator frames of an agent step by game, and `until` those at which a game's axis ends.
    """
    skips = {skip for skip in frame_skips.values() if skip != 1} or {1}
    columns = min(5, math.ceil(math.sqrt(len(curves))))
    rows = math.ceil(len(curves) / columns)
    height = {1: 4.2, 2: 2.8}.get(columns, 2.05)
    figure = _figure(max(_WIDE, 2.8 * columns), 0.8 + height * rows + 0.12 * len(looks))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (game, by_agent) in zip(panels, curves.items(), strict=False):
        _tidy(axes)
        series = {}
        for agent in (agent for agent in looks if agent in by_agent):
            frames, returns = by_agent[agent]
            # fmin and fmax, unlike min and max, leave NaN out.
            bounds = np.fmin.reduce(returns), np.fmax.reduce(returns)
            if len(returns) < LEAST_SEEDS:
                bounds = (np.full(len(frames), np.nan),) * 2
            series[agent] = frames, Interval(mean_over_seeds(returns), *bounds)
        _lines(axes, series, looks, until.get(game), width=1.2)
        axes.set_title(game, fontsize=9, pad=3)
        _limit(axes, until.get(game))
        if frame_skips[game] == 1 and skips != {1}:
            axes.set_xlabel(_unit(1), fontsize=7)
        axes.tick_params(labelsize=7)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(_short_number))
    for axes in panels[len(curves) :]:
        axes.set_visible(False)
    kind = "training" if metric == "train" else "evaluation (published baselines: training)"
    frame_skip = skips.pop() if len(skips) == 1 else None
    several = frame_skip not in (None, 1)
    steps = f" (an agent step is {frame_skip} frames)" if several else ""
    figure.supxlabel(_unit(frame_skip) + steps, fontsize=10)
    figure.supylabel(f"mean return per episode, {kind}", fontsize=10)
    # The legend has invisible axes of its own: no game need have all agents.
    axes = figure.add_axes((0, 0, 0, 0), visible=False)
    for look in looks.values():
        axes.plot(
            [], [], color=look.colour, marker=look.marker, linestyle=look.line, label=look.name
        )
    _legend(figure, axes, above=True)
    return figure


def _short_number(value: float, _: int) -> str:
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def gamma_scan(
    points: Mapping[str, Sequence[tuple[float, float, float, int]]],
    looks: Mapping[str, Look],
    num_games: int,
) -> Figure:
    """Mean and median human-normalised score against the discount factor (Appendix C).

    `points` are (gamma, mean, median, number of agents) of each class, by gamma.
    """
    figure = _figure(_WIDE, 4.2)
    panels = _panels_over_games(figure, ("mean", "median"), num_games, "human-normalised score")
    for agent, rows in points.items():
        look = looks[agent]
        gammas, *aggregates, _ = zip(*rows, strict=True)
        for axes, values in zip(panels, aggregates, strict=True):
            axes.plot(gammas, values, color=look.colour, marker=look.marker, label=look.name)
            axes.set_xlabel("discount factor \u03b3")
    _legend(figure, panels[0])
    return figure


def gamma_panels(
    rows: pd.DataFrame, looks: Mapping[str, Look], returns: str = "training"
) -> Figure:
    """Draws returns against the discount factor, a panel for each game and one over games.

    `rows` are what `discount.by_gamma` returns, and `returns` says whether of training or
    evaluation; the legend is in the order of `looks`.
    """
    games = sorted(set(rows["game"]) - {OVER_GAMES})
    panels = [*games, *[OVER_GAMES] * (len(games) > 1)]
    gammas = sorted(rows["gamma"].unique())
    lines = math.ceil(len(panels) / 3)
    columns = math.ceil(len(panels) / lines)
    figure = _figure(9.6, 4.0 if lines == 1 else 3.0 * lines)
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for panel, game in zip(axes, panels, strict=False):
        of_game = rows[rows["game"] == game].sort_values("gamma")
        for agent, look in looks.items():
            of_agent = of_game[of_game["agent"] == agent]
            if of_agent.empty:
                continue
            at = [gammas.index(gamma) for gamma in of_agent["gamma"]]
            panel.plot(
                at, of_agent["value"], look.marker, linestyle=look.line, color=look.colour,
                label=look.name, clip_on=False,
            )  # fmt: skip
            panel.fill_between(
                at, of_agent["low"], of_agent["high"], color=look.colour, alpha=0.2, linewidth=0
            )
        over_games = game == OVER_GAMES
        panel.set_title("Mean over games" if over_games else game.rpartition("/")[2], fontsize=10)
        if over_games:
            panel.set_ylabel("return / best mean of the game", fontsize=8)
        panel.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
        if not (of_game["value"] < 0).any():  # From 0, with room for the markers.
            panel.set_ylim(0, 1.08 * of_game[["value", "high"]].max(axis=None) or 1)
        _tidy(panel)
    for panel in axes[len(panels) :]:
        panel.set_visible(False)
    _legend(figure, axes[0], above=True)
    figure.supxlabel("discount factor", fontsize=10)
    figure.supylabel(f"mean {returns} return, last 10% of steps", fontsize=10)
    return figure


def aggregate_intervals(
    intervals: Mapping[str, Interval], looks: Mapping[str, Look], num_games: int, scale: str
) -> Figure:
    """Aggregates of each agent, `statistics.aggregates`, with their 95% intervals."""
    figure = _figure(_WIDE, 1.3 + 0.42 * len(intervals))
    panels = figure.subplots(1, len(AGGREGATES), sharey=True)
    for column, (name, axes) in enumerate(zip(AGGREGATES, panels, strict=True)):
        _interval_rows(axes, intervals, column, looks)
        less_is_better = " (less is better)" if name == "optimality_gap" else ""
        axes.set_title(AGGREGATES[name] + less_is_better, fontsize=8.5)
    figure.supxlabel(f"{scale}, over {counted(num_games, 'game')}", fontsize=10)
    return figure


def _interval_rows(
    axes: Axes, intervals: Mapping[str, Interval], column: int, looks: Mapping[str, Look]
) -> None:
    """One horizontal bar for each agent's interval, with a line and the marker at the value."""
    for index, (agent, interval) in enumerate(intervals.items()):
        look = looks[agent]
        value, low, high = (float(bound[column]) for bound in interval)
        if not math.isnan(low):
            axes.barh(index, high - low, 0.55, low, color=look.colour, alpha=0.55)
        axes.vlines(value, index - 0.28, index + 0.28, color="black", linewidth=1.6)
        axes.plot(
            value, index, look.marker,
            color=look.colour, markersize=8, markeredgecolor="white", markeredgewidth=0.5,
        )  # fmt: skip
    axes.set_yticks(range(len(intervals)), [looks[agent].name for agent in intervals])
    axes.set_ylim(len(intervals) - 0.5, -0.5)
    axes.grid(True, axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.use_sticky_edges = False
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5, steps=[1, 2, 5, 10])


def performance_profiles(
    profiles: Mapping[str, Interval],
    looks: Mapping[str, Look],
    thresholds: np.ndarray,
    num_games: int,
    scale: str,
) -> Figure:
    """The fraction of runs above each normalised score, with 95% intervals.

    `profiles` are `statistics.profile` of each agent at `thresholds`, shape [num_thresholds].
    """
    figure = _figure(_WIDE, 5)
    axes = _tidy(figure.subplots())
    _lines(axes, {agent: (thresholds, curve) for agent, curve in profiles.items()}, looks)
    axes.set_xlim(thresholds[0], thresholds[-1])
    axes.set_ylim(-0.03, 1.03)  # Room for markers at the ends.
    axes.set_xlabel(f"{scale} \u03c4")
    axes.set_ylabel("fraction of runs with score > \u03c4")
    axes.set_title(f"Performance profile over {counted(num_games, 'game')}")
    _legend(figure, axes)
    return figure


def improvement_intervals(
    intervals: Mapping[str, Interval], agent: str, looks: Mapping[str, Look], num_games: int
) -> Figure:
    """Probability that one agent improves on each of the others, with 95% intervals.

    `intervals` are `statistics.probability_of_improvement` over each other agent.
    """
    figure = _figure(_WIDE, 1.5 + 0.42 * len(intervals))
    axes = figure.subplots()
    _interval_rows(axes, intervals, 0, looks)
    axes.axvline(0.5, color="0.4", linewidth=1, linestyle="--")
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel(f"P(better than the other), averaged over {counted(num_games, 'game')}")
    axes.set_title(f"Probability of improvement of {looks[agent].name}")
    return figure
