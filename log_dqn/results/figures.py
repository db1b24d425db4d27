"""Parts that several figures share, in matplotlib."""

import functools
import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import Bbox

from log_dqn.results.discount import OVER_GAMES
from log_dqn.results.labels import Look
from log_dqn.results.statistics import Interval

Series = tuple[np.ndarray, Interval]
"""Emulator frames, shape [num_points], and values with their intervals, shape [..., num_points]."""

WIDE = 11  # inches: a figure has the page's width.


def figure_of(width: float, height: float) -> Figure:
    """Returns an empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def tidy(axes: Axes, grid: Literal["x", "y"] = "y") -> Axes:
    """Removes the frame's upper and right side, and draws a grid across an axis."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis=grid, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    return axes


def lines(
    axes: Axes,
    curves: Mapping[str, Series],
    looks: Mapping[str, Look],
    until: float | None = None,
    width: float = 1.8,
) -> None:
    """Draws curves with bands up to some x; a curve of one point is drawn as a marker."""
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
            # A bootstrap's interval need not hold the value.
            error = np.maximum([middle - low[known], high[known] - middle], 0)
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


def interval_rows(
    axes: Axes, intervals: Mapping[str, Interval], column: int, looks: Mapping[str, Look]
) -> None:
    """Draws a horizontal bar for each agent's interval, with a line and the marker at the value."""
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
    tidy(axes, "x")
    axes.use_sticky_edges = False
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5, steps=[1, 2, 5, 10])


def legend(figure: Figure, axes: Axes, above: bool = False) -> None:
    """Draws a legend of some axes below the figure, or above it."""
    handles, labels = axes.get_legend_handles_labels()
    columns = 2
    if figure.get_figwidth() > 7:
        columns = len(labels) if len(labels) <= 4 else 3
    place: Any = f"outside {'upper' if above else 'lower'} center"
    figure.legend(handles, labels, loc=place, ncols=columns, frameon=False)


def limit(axes: Axes, until: float | None) -> None:
    """Ends the axis there, with room for a marker at 0."""
    end = until or axes.get_xlim()[1]
    axes.set_xlim(-0.02 * end, end)


def unit(frame_skip: int | None) -> str:
    """Returns what experience is counted in."""
    return "agent steps" if frame_skip == 1 else "emulator frames"


def short_number(value: float, _: int) -> str:
    """Returns a number as axes have it: 1M, 250k."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def experience_axis(axes: Axes, frame_skip: int | None, until: float | None) -> None:
    """Shows emulator frames below, and agent steps above where they are others."""
    axes.xaxis.set_major_formatter(FuncFormatter(short_number))
    limit(axes, until)
    axes.set_xlabel(unit(frame_skip))
    if frame_skip is not None and frame_skip > 1:
        there, back = (functools.partial(np.multiply, x) for x in (1 / frame_skip, frame_skip))
        steps = axes.secondary_xaxis("top", functions=(there, back))
        steps.xaxis.set_major_formatter(FuncFormatter(short_number))
        steps.tick_params(labelsize=8, colors="0.35")
        steps.set_xlabel("agent steps", fontsize=8, color="0.35")


def gamma_panels(
    rows: pd.DataFrame, looks: Mapping[str, Look], returns: str = "training"
) -> Figure:
    """Draws returns against the discount factor, a panel for each game and one over games, if any.

    `rows` are what `discount.by_gamma` returns, and `returns` says whether of training or
    evaluation; the legend is in the order of `looks`.
    """
    there = set(rows.dropna(subset="value")["game"])
    games = sorted(there - {OVER_GAMES})
    panels = [*games, *there & {OVER_GAMES}] if len(games) > 1 else games
    gammas = sorted(rows["gamma"].unique())
    lines = math.ceil(len(panels) / 3)
    columns = math.ceil(len(panels) / lines)
    figure = figure_of(7.2, 3.2 if lines == 1 else 2.4 * lines)
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
        tidy(panel)
    for panel in axes[len(panels) :]:
        panel.set_visible(False)
    legend(figure, axes[0], above=True)
    figure.supxlabel("discount factor", fontsize=10)
    figure.supylabel(f"mean {returns} return, last 10% of steps", fontsize=10)
    return figure


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
