"""The pictures of the small-scale experiments, drawn from their tables."""

import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
import scipy.stats
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator

from log_dqn.linear import metric_gap
from log_dqn.linear.experiments import Table

CONFIDENCE = 0.95
LEAST_RUNS = 3
"""With two runs, Student's t has one degree of freedom, and an interval says next to nothing."""

# Colours of the Okabe-Ito palette. With its own line style and marker, each curve can also be told
# from the others in grayscale; getting thinner, curves that coincide all stay in sight.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#000000", "linestyle": "-", "marker": "o", "linewidth": 2.2, "markersize": 7.5},
    {"color": "#0072B2", "linestyle": "--", "marker": "s", "linewidth": 1.9, "markersize": 6},
    {"color": "#D55E00", "linestyle": "-.", "marker": "^", "linewidth": 1.6, "markersize": 4.5},
    {"color": "#009E73", "linestyle": ":", "marker": "D", "linewidth": 1.3, "markersize": 3},
    {
        "color": "#E69F00",
        "linestyle": (0, (5, 1, 1, 1, 1, 1)),
        "marker": "v",
        "linewidth": 1.0,
        "markersize": 2,
    },
)
RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
}
# Variants of the kappa figures. `reg` lies beneath, thick and black, for `log bias` to be seen on
# top of it; the others differ in dashes and in lightness.
KAPPA_STYLES: dict[str, dict[str, Any]] = {
    "reg": {"color": "#000000", "linestyle": "-", "linewidth": 3.2, "zorder": 2},
    "log bias": {"color": "#F0E442", "linestyle": (0, (3, 3)), "linewidth": 1.4},
    "log plus-only": {"color": "#009E73", "linestyle": "-", "linewidth": 1.4},
    "log min-only": {"color": "#0072B2", "linestyle": "--", "linewidth": 1.8},
    "log both": {"color": "#D55E00", "linestyle": "-.", "linewidth": 1.4},
    "log k=25": {"color": "#0072B2", "linestyle": "--", "linewidth": 1.6},
    "log k=50": {"color": "#D55E00", "linestyle": "-.", "linewidth": 1.6},
    "log k=100": {"color": "#009E73", "linestyle": ":", "linewidth": 2.0},
    "log k=200": {"color": "#999999", "linestyle": "-", "linewidth": 1.4},
}


def confidence_interval(runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ends of the 95% confidence interval of the mean over the last axis.

    Student's t interval, shape of `runs` without its last axis, which must be 2 or more.
    """
    n = runs.shape[-1]
    quantile = scipy.stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)
    half = quantile * runs.std(axis=-1, ddof=1) / np.sqrt(n)
    return runs.mean(axis=-1) - half, runs.mean(axis=-1) + half


def interval_on_log_axis(runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ends of the 95% confidence interval of the mean of positive numbers.

    That of the mean's logarithm by the delta method, which is symmetric on a logarithmic axis and
    never reaches 0. Shapes are those of `confidence_interval`.
    """
    mean, (_, high) = runs.mean(axis=-1), confidence_interval(runs)
    factor = np.exp((high - mean) / mean)
    return mean / factor, mean * factor


def _has_intervals(table: Table) -> bool:
    return table.runs is not None and table.runs.shape[-1] >= LEAST_RUNS


def with_intervals(table: Table) -> Table:
    """Returns the table of a chain scan with the columns early_low ... final_high appended.

    Performance is between 0 and 1 and so are its intervals. A table of fewer than `LEAST_RUNS` runs
    has none.
    """
    if table.runs is None or not _has_intervals(table):
        return table
    # By row, measure and end of the interval, whose order is that of the columns.
    ends = np.clip(np.stack(confidence_interval(table.runs), axis=-1), 0, 1)
    columns = ["early_low", "early_high", "final_low", "final_high"]
    found = pd.DataFrame(ends.reshape(len(ends), -1), table.rows.index, columns)
    return Table(table.rows.join(found))


def _curves(
    axes: Axes,
    table: Table,
    series: str,
    x: str,
    y: str,
    label: Callable[[Any], str] = str,
    markers: bool = True,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    interval: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] = confidence_interval,
) -> None:
    """Draws column y over column x, one curve for each value of the column `series`."""
    rows = table.rows
    for (value, own), style in zip(rows.groupby(series, sort=False), STYLES, strict=False):
        look = dict(style) if markers else {**style, "marker": None}
        axes.plot(own[x], own[y], label=label(value), **look)
        if table.runs is not None and _has_intervals(table):
            # The averaged columns are the last ones of the table.
            averaged = list(rows).index(y) - len(list(rows))
            low, high = np.clip(interval(table.runs[own.index, averaged]), *bounds)
            axes.fill_between(own[x], low, high, color=style["color"], alpha=0.15, linewidth=0)


def _discount_axis(axes: Axes) -> None:
    axes.set_xlabel(r"$\gamma$")
    axes.set_xlim(min(0.06, axes.dataLim.x0 - 0.02), 1.02)
    axes.xaxis.set_major_locator(MultipleLocator(0.2))


def _chain(table: Table) -> Figure:
    figure = Figure(figsize=(3.6, 4.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    for axes, y in ((top, "early"), (bottom, "final")):
        _performance(axes, table, y)
        axes.set_ylabel(f"{y} performance")
        axes.label_outer()
    # Final performance is 0 or 1 nearly everywhere, which leaves room between.
    bottom.legend(title="tile-width", loc="center left")
    return figure


def _performance(axes: Axes, table: Table, y: str) -> None:
    _curves(axes, table, "width", "gamma", y, "w = {}".format, bounds=(0, 1))
    axes.set_ylim(-0.04, 1.04)
    _discount_axis(axes)


def _hypotheses(table: Table) -> Figure:
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True, sharey=True)
    titles = ("regular task", "values times 100", "values plus 100*")
    variations = table.rows.groupby("variation", sort=False)
    for row, y in zip(grid, ("early", "final"), strict=True):
        for axes, (_, own), title in zip(row, variations, titles, strict=True):
            _performance(axes, table._replace(rows=own), y)
            axes.label_outer()
            if y == "early":
                axes.set_title(title, fontsize=9)
        row[0].set_ylabel(f"{y} performance")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, title="tile-width", loc="outside right upper")
    note = "* run as the equivalent task: regular rewards, first values of \N{MINUS SIGN}100"
    figure.supxlabel(note, fontsize=8, x=0.01, ha="left")
    return figure


def _kappa(table: Table) -> Figure:
    figure = Figure(figsize=(3.6, 3.2), layout="constrained")
    axes = figure.subplots()
    _kappa_curves(axes, table)
    _discount_axis(axes)
    axes.set_ylabel(r"action-gap deviation $\kappa$")
    axes.set_ylim(bottom=-0.2)
    if len(axes.lines) > 1:
        axes.legend()
    return figure


def _kappa_deterministic(table: Table) -> Figure:
    figure = _kappa(table)
    figure.set_figheight(3.6)
    # Enlarged, the curves near 0.
    inset = figure.axes[0].inset_axes((0.6, 0.36, 0.37, 0.22))
    _kappa_curves(inset, table)
    inset.set_xlim(0.06, 1.02)
    inset.set_ylim(0, 0.35)
    inset.xaxis.set_major_locator(MultipleLocator(0.4, offset=0.2))
    inset.yaxis.set_major_locator(MultipleLocator(0.1))
    inset.tick_params(labelsize=7, length=2, pad=2)
    inset.set_title("near 0", fontsize=7, pad=2)
    return figure


def _kappa_curves(axes: Axes, table: Table) -> None:
    for variant, own in table.rows.groupby("variant", sort=False):
        look = {"zorder": 3, **KAPPA_STYLES[variant]}
        axes.plot(own["gamma"], own["kappa"], label=variant, **look)


def _rms_error(table: Table) -> Figure:
    figure = Figure(figsize=(3.6, 2.7), layout="constrained")
    axes = figure.subplots()
    label = r"$\beta_{{reg}}$ = {:g}".format
    _curves(axes, table, "beta_reg", "sweep", "rms", label, markers=False, bounds=(0, np.inf))
    axes.set_xlabel("sweeps")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.set_ylabel("RMS error")
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure


def _convergence(table: Table) -> Figure:
    figure = Figure(figsize=(3.6, 4.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    # About evenly spaced on the logarithmic axis.
    sweeps = table.rows["sweep"].unique()
    spaced = [sweeps[abs(sweeps - x).argmin()] for x in np.geomspace(min(sweeps), max(sweeps), 100)]
    table = table._replace(rows=table.rows[table.rows["sweep"].isin(spaced)])
    labels = {
        "all conditions": r"all conditions ($\beta_{reg,t} \to 0$)",
        "beta_reg = 1": r"$\beta_{reg,t} = 1$",
    }
    # The error ratio is the largest of all runs, not a mean with a band.
    ratios = table._replace(runs=None)
    for axes, shown, y in ((top, table, "rms"), (bottom, ratios, "largest_error_ratio")):
        label = labels.__getitem__
        _curves(axes, shown, "schedule", "sweep", y, label, False, interval=interval_on_log_axis)
        axes.set_xscale("log")
    top.set_yscale("log")
    top.set_ylim(bottom=table.rows["rms"].min() / 2)
    top.set_ylabel(r"RMS error of $Q$")
    top.legend()
    bottom.axhline(1, color="0.4", linewidth=0.8)
    bottom.text(100, 0.985, "bound", va="top", color="0.3")
    bottom.set_ylim(0, 1.05)
    bottom.set_ylabel(r"largest $|e_t|$ / bound")
    bottom.set_xlabel("sweeps")
    return figure


def _metric_gap(table: Table) -> Figure:
    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    drawings, graphs = figure.subplots(2, 3, height_ratios=(0.45, 1))
    for drawing, graph, task in zip(drawings, graphs, metric_gap.TASKS, strict=True):
        _draw_task(drawing, task)
        own = table.rows[table.rows["task"] == task.name]
        gammas, optimal, learned = (own[name].to_numpy() for name in own.columns[1:])
        graph.plot(gammas, optimal, "k:", label=r"$\pi^*$", zorder=3)
        # Between two discount factors the policy, and with it F, changes at once.
        graph.step(gammas, learned, where="mid", color="#C00000", label=r"$\pi_l^*$")
        graph.set_title(f"task {task.name}", fontsize=9)
        graph.set_xlabel(r"$\gamma$")
        graph.set_xlim(0, 1)
        graph.set_ylim(-0.06 * optimal[0], 1.12 * optimal[0])
    graphs[0].set_ylabel("performance $F$")
    graphs[0].legend()
    return figure


def _draw_task(axes: Axes, task: metric_gap.GridTask) -> None:
    rows, columns = task.shape
    line: dict[str, Any] = {"color": "0.75", "linewidth": 0.7, "clip_on": False}
    axes.plot([0, columns], [range(rows + 1)] * 2, **line)
    axes.plot([range(columns + 1)] * 2, [0, rows], **line)
    axes.plot(task.start[1] + 0.5, task.start[0] + 0.5, marker="D", color="#0072B2", markersize=7)
    for (row, column), reward in task.objects.items():
        look: dict[str, Any] = {"marker": "o", "color": "#009E73", "markersize": 13}
        if reward < 0:
            look = {"marker": "s", "color": "#C00000", "markersize": 12, "markeredgecolor": "black"}
        axes.plot(column + 0.5, row + 0.5, markeredgewidth=1.6, **look)
        text = f"{reward:+g}".replace("-", "\N{MINUS SIGN}")
        font: dict[str, Any] = {"color": "white", "fontsize": 7, "fontweight": "bold"}
        axes.text(column + 0.5, row + 0.47, text, ha="center", va="center", **font)
    free = set(np.ndindex(task.shape)) - {task.start, *task.objects}
    for row, column in sorted(free) if task.wind else ():
        head, tail = (column + 0.2, row + 0.5), (column + 0.8, row + 0.5)
        look = {"arrowstyle": "->", "color": "0.6", "shrinkA": 0, "shrinkB": 0, "mutation_scale": 7}
        axes.annotate("", head, tail, arrowprops=look)
    # All tasks in cells of one size, row 0 at the top.
    height, width = (max(task.shape[axis] for task in metric_gap.TASKS) for axis in (0, 1))
    axes.set_xlim((columns - width) / 2, (columns + width) / 2)
    axes.set_ylim((rows + height) / 2, (rows - height) / 2)
    axes.set_aspect("equal")
    axes.axis("off")


FIGURES: dict[str, tuple[str, Callable[[Table], Figure]]] = {
    "metric_gap": ("Metric gap: policies learned at a discount factor", _metric_gap),
    "chain_regular": ("Chain task, regular Q-learning", _chain),
    "chain_log": ("Chain task, logarithmic Q-learning", _chain),
    "kappa_regular": ("Action gaps of regular Q-learning", _kappa),
    "kappa_deterministic": ("Action gaps, deterministic chain", _kappa_deterministic),
    "kappa_full": ("Action gaps, stochastic chain", _kappa),
    "rms_error": ("Chain task, averaging in the ordinary space", _rms_error),
    "hypotheses": ("Chain task, regular Q-learning, three variations", _hypotheses),
    "convergence": ("Convergence of logarithmic Q-learning", _convergence),
}
"""The title of each figure, and what draws it."""


def draw(name: str, table: Table) -> Figure:
    """Draws the figure of an experiment, with a title that says what it is, and of how many runs.

    Takes the settings `RC` from matplotlib's context.
    """
    title, function = FIGURES[name]
    figure = function(table)
    if table.runs is not None:
        runs = table.runs.shape[-1]
        bands = ", 95% confidence bands" if _has_intervals(table) else ""
        title += f"\n{runs} {'run' if runs == 1 else 'runs'}{bands}"
    figure.suptitle(title, fontsize=9)
    return figure


def write(name: str, table: Table, folder: pathlib.Path) -> None:
    """Writes name.csv, name.pdf and name.png into `folder`, each complete or not at all."""
    with matplotlib.rc_context(RC):
        figure = draw(name, table)
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}-") as aside:
            parts = [pathlib.Path(aside, f"{name}.{kind}") for kind in ("csv", "pdf", "png")]
            written = with_intervals(table) if name.startswith("chain_") else table
            written.rows.to_csv(parts[0], index=False, lineterminator="\n")
            figure.savefig(parts[1], metadata={"CreationDate": None})
            figure.savefig(parts[2])
            for part in parts:
                os.replace(part, folder / part.name)
