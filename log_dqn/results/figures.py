"""The figures of a comparison, as matplotlib figures.

Colours are those of Okabe and Ito, told apart by colour-blind readers; markers tell agents apart
without colour.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from log_dqn.results import baselines
from log_dqn.results.statistics import AGGREGATES, Interval, mean_over_seeds

ORANGE, DARK_BLUE, LIGHT_BLUE = "#E8730C", "#123C7A", "#A9CFEA"

_COLOURS = (
    "#D55E00", "#000000", "#56B4E9", "#009E73", "#CC79A7", "#0072B2", "#E69F00", "#7F7F7F",
)  # fmt: skip
_MARKERS = "os^DvPX*"


def label(agent: str) -> str:
    """How figures and tables name an agent."""
    return baselines.AGENTS.get(agent, agent)


def bar_colour(relative: float) -> str:
    """The paper's colours: orange beyond 50%, dark blue from 10% to 50%, light blue below."""
    size = abs(relative)
    return ORANGE if size > 0.5 else DARK_BLUE if size >= 0.1 else LIGHT_BLUE


def _style(agents: Sequence[str], agent: str) -> tuple[str, str]:
    """Colour and marker of an agent; 64 agents have different pairs."""
    index = list(agents).index(agent)
    shift = index // len(_COLOURS)
    return _COLOURS[index % len(_COLOURS)], _MARKERS[(index + 3 * shift) % len(_MARKERS)]


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _tidy(axes: Axes) -> Axes:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    return axes


def relative_bars(relative: Mapping[str, float], agent: str, reference: str) -> Figure:
    """Relative performance on each game, in percent (paper, section 6).

    `relative` is `scores.relative_to` by game, as a fraction.
    """
    order = sorted(relative, key=lambda game: relative[game])
    percent = [100 * relative[game] for game in order]
    figure = _figure(max(6.0, 1.2 + 0.21 * len(order)), 4.8)
    axes = _tidy(figure.subplots())
    colours = [bar_colour(relative[game]) for game in order]
    bars = axes.bar(range(len(order)), percent, 0.8, color=colours)
    axes.bar_label(bars, list(map(_percent, percent)), rotation=90, padding=3, fontsize=7)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_yscale("symlog", linthresh=100, linscale=1.5)
    # Room for the numbers at the bars' ends, on the scale as it is drawn.
    scale = axes.yaxis.get_transform()
    low, high = scale.transform(np.array([min(*percent, -50), max(*percent, 50)]))
    room = 0.17 * (high - low)
    axes.set_ylim(*scale.inverted().transform(np.array([low - room, high + room])))
    ticks = [-10000, -1000, -100, -50, 0, 50, 100, 1000, 10000]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}%"))
    axes.set_xlim(-0.7, len(order) - 0.3)
    axes.set_xticks(range(len(order)), order, rotation=90, fontsize=8)
    axes.set_ylabel("relative performance (linear to 100%)")
    title = f"{label(agent)}\nrelative to {label(reference)}, {len(order)} games"
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


def mean_and_median_curves(curves: Mapping[str, Interval], num_games: int) -> Figure:
    """Mean and median human-normalised score against the iteration, with 95% intervals.

    `curves` are `statistics.mean_and_median` of each agent.
    """
    figure = _figure(11, 4.3 + 0.08 * len(curves))
    panels = _mean_and_median_panels(figure, num_games, "iteration")
    for row, axes in enumerate(panels):
        for agent, curve in curves.items():
            part = Interval(*(bound[row] for bound in curve))
            _line(axes, agent, list(curves), np.arange(len(part.value)), part)
    _legend(figure, panels[0])
    return figure


def _mean_and_median_panels(figure: Figure, num_games: int, x: str) -> list[Axes]:
    panels = [_tidy(axes) for axes in figure.subplots(1, 2)]
    for name, axes in zip(("Mean", "Median"), panels, strict=True):
        axes.set(title=f"{name} over {num_games} games", xlabel=x, ylabel="human-normalised score")
    return panels


def _line(
    axes: Axes,
    agent: str,
    agents: Sequence[str],
    x: np.ndarray,
    curve: Interval,
    width: float = 1.8,
) -> None:
    """Draws a curve with a band; a curve of which a single point is known becomes a marker."""
    colour, marker = _style(agents, agent)
    look: dict[str, Any] = {"color": colour, "label": label(agent)}
    value, low, high = curve
    known = np.flatnonzero(~np.isnan(value))
    if len(known) == 1:
        error = [value[known] - low[known], high[known] - value[known]]
        axes.errorbar(x[known], value[known], error, fmt=marker, ms=4, capsize=2, **look)
        return
    axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    # Markers of different agents stand at different places.
    step = max(1, len(x) // 8)
    start = int((0.5 + list(agents).index(agent)) / len(agents) * step)
    look |= {"marker": marker, "markevery": (start, step), "markersize": 2.8 * width}
    look |= {"markeredgecolor": "white", "markeredgewidth": 0.4 * width}
    axes.plot(x, value, linewidth=width, **look)


def _legend(figure: Figure, axes: Axes, above: bool = False) -> None:
    handles, labels = axes.get_legend_handles_labels()
    columns = 2
    if figure.get_figwidth() > 9:
        columns = len(labels) if len(labels) <= 5 else 3
    place: Any = f"outside {'upper' if above else 'lower'} center"
    figure.legend(handles, labels, loc=place, ncols=columns, frameon=False)


def learning_curves(
    curves: Mapping[str, Mapping[str, np.ndarray]], agents: Sequence[str], metric: str
) -> Figure:
    """Learning curves of all games in a grid: mean over seeds, band from least to greatest.

    `curves` holds, for each game and agent, returns of shape [num_seeds, num_iterations], NaN where
    unknown; `agents` are in the order of the legend.
    """
    columns = min(5, math.ceil(math.sqrt(len(curves))))
    rows = math.ceil(len(curves) / columns)
    figure = _figure(max(6, 2.8 * columns), 0.6 + 2.05 * rows + 0.12 * len(agents))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (game, by_agent) in zip(panels, curves.items(), strict=False):
        _tidy(axes)
        for agent in agents:
            if agent in by_agent:
                returns = by_agent[agent]
                # fmin and fmax, unlike min and max, leave NaN out.
                bounds = np.fmin.reduce(returns), np.fmax.reduce(returns)
                curve = Interval(mean_over_seeds(returns), *bounds)
                _line(axes, agent, agents, np.arange(returns.shape[1]), curve, width=1.2)
        axes.set_title(game, fontsize=9, pad=3)
        axes.tick_params(labelsize=7)
        axes.yaxis.set_major_formatter(FuncFormatter(_short_number))
    for axes in panels[len(curves) :]:
        axes.set_visible(False)
    kind = "training" if metric == "train" else "evaluation (published baselines: training)"
    figure.supxlabel("iteration", fontsize=10)
    figure.supylabel(f"mean return per episode, {kind}", fontsize=10)
    # The legend has invisible axes of its own: no game need have all agents.
    axes = figure.add_axes((0, 0, 0, 0), visible=False)
    for agent in agents:
        colour, marker = _style(agents, agent)
        axes.plot([], [], color=colour, marker=marker, label=label(agent))
    _legend(figure, axes, above=True)
    return figure


def _short_number(value: float, _: int) -> str:
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"


def gamma_scan(
    points: Mapping[str, Sequence[tuple[float, float, float, int]]], num_games: int
) -> Figure:
    """Mean and median human-normalised score against the discount factor (Appendix C).

    `points` are (gamma, mean, median, number of agents) of each class, by gamma.
    """
    figure = _figure(10, 4.2)
    panels = _mean_and_median_panels(figure, num_games, "discount factor \u03b3")
    for agent, rows in points.items():
        colour, marker = _style(list(points), agent)
        gammas, *aggregates, _ = zip(*rows, strict=True)
        for axes, values in zip(panels, aggregates, strict=True):
            axes.plot(gammas, values, color=colour, marker=marker, label=label(agent))
    _legend(figure, panels[0])
    return figure


def aggregate_intervals(intervals: Mapping[str, Interval], num_games: int) -> Figure:
    """Aggregates of each agent, `statistics.aggregates`, with their 95% intervals."""
    figure = _figure(11, 1.3 + 0.42 * len(intervals))
    panels = figure.subplots(1, len(AGGREGATES), sharey=True)
    for column, (name, axes) in enumerate(zip(AGGREGATES, panels, strict=True)):
        _interval_rows(axes, intervals, column, list(intervals))
        less_is_better = " (less is better)" if name == "optimality_gap" else ""
        axes.set_title(AGGREGATES[name] + less_is_better, fontsize=9.5)
    figure.supxlabel(f"human-normalised score over {num_games} games", fontsize=10)
    return figure


def _interval_rows(
    axes: Axes, intervals: Mapping[str, Interval], column: int, agents: Sequence[str]
) -> None:
    """One horizontal bar for each agent's interval with a line at the value."""
    for index, (agent, interval) in enumerate(intervals.items()):
        value, low, high = (float(bound[column]) for bound in interval)
        axes.barh(index, high - low, 0.55, low, color=_style(agents, agent)[0], alpha=0.55)
        axes.vlines(value, index - 0.28, index + 0.28, color="black", linewidth=1.6)
    axes.set_yticks(range(len(intervals)), list(map(label, intervals)))
    axes.set_ylim(len(intervals) - 0.5, -0.5)
    axes.grid(True, axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.use_sticky_edges = False
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5)


def performance_profiles(
    profiles: Mapping[str, Interval], thresholds: np.ndarray, num_games: int
) -> Figure:
    """The fraction of runs above each human-normalised score, with 95% intervals.

    `profiles` are `statistics.profile` of each agent at `thresholds`, shape [num_thresholds].
    """
    figure = _figure(7.5, 5)
    axes = _tidy(figure.subplots())
    for agent, curve in profiles.items():
        _line(axes, agent, list(profiles), thresholds, curve)
    axes.set_xlim(thresholds[0], thresholds[-1])
    axes.set_ylim(0, 1)
    axes.set_xlabel("human-normalised score \u03c4")
    axes.set_ylabel("fraction of runs with score > \u03c4")
    axes.set_title(f"Performance profile over {num_games} games")
    _legend(figure, axes)
    return figure


def improvement_intervals(
    intervals: Mapping[str, Interval], agent: str, agents: Sequence[str], num_games: int
) -> Figure:
    """Probability that one agent improves on each of the others, with 95% intervals.

    `intervals` are `statistics.probability_of_improvement` over each other agent; `agents` are all,
    in the order of the other figures.
    """
    figure = _figure(7.5, 1.5 + 0.42 * len(intervals))
    axes = figure.subplots()
    _interval_rows(axes, intervals, 0, agents)
    axes.axvline(0.5, color="0.4", linewidth=1, linestyle="--")
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"P({label(agent)} > other), averaged over {num_games} games")
    axes.set_title(f"Probability of improvement of {label(agent)}")
    return figure
