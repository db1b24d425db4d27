"""Writes a comparison: CSV files, figures and one page."""

import functools
import io
import json
import os
import pathlib
import tempfile
import warnings
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from log_dqn.cli import progress
from log_dqn.results import (
    export,
    figures,
    labels,
    page,
    protocol,
    provenance,
    scores,
    statistics,
    tables,
)
from log_dqn.results.comparison import Comparison
from log_dqn.results.pictures import PICTURES, Results, Shown


def compute(comparison: Comparison) -> Results:
    """Computes all statistics with their intervals."""
    games, main = comparison.common_games, comparison.main
    agents = labels.by_agent(comparison.runs, games)
    matrices = {agent: statistics.score_matrix(rows, games) for agent, rows in agents.items()}
    thresholds = statistics.thresholds(matrices.values()) if games else np.zeros(0)
    results = Results(_relative(comparison), {}, {}, {}, {}, thresholds)
    interval = functools.partial(statistics.interval, repetitions=comparison.request.repetitions)
    profile = functools.partial(statistics.profile, thresholds=thresholds)
    for agent in progress.bar("Bootstrap", [*agents]):
        matrix = matrices[agent]
        results.aggregates[agent] = interval(statistics.aggregates, matrix)
        results.profiles[agent] = interval(profile, matrix)
        step, curves = statistics.curves(agents[agent])
        # Where a run has ended the mean would jump, and no interval could be given.
        stop = curves["returns"].map(len).min()
        if stop:
            normalised = scores.human_normalised(
                *(curves[c] for c in ("returns", "random", "human"))
            )
            array = statistics.curve_array(curves.assign(returns=normalised), games)[:, :, :stop]
            frames = step * np.arange(1, stop + 1)
            results.curves[agent] = frames, interval(statistics.mean_median_iqm, array)
        if main is not None and main != agent:
            results.improvement[agent] = interval(
                statistics.probability_of_improvement, matrices[main], matrix
            )
    return results


def _relative(comparison: Comparison) -> pd.DataFrame:
    """Computes the main agent's relative performance; see `Results`."""
    runs = comparison.runs[comparison.runs["normalised"].notna()]
    pair = [runs[runs["agent"] == a] for a in (comparison.main, comparison.reference)]
    games = sorted(set.intersection(*({*rows["game"]} for rows in pair)))
    found = statistics.relative_intervals(*(statistics.score_matrix(rows, games) for rows in pair))
    columns = ["relative", "low", "high"]
    return pd.DataFrame(np.transpose(found), columns=columns, index=pd.Index(games, name="game"))


def write(comparison: Comparison, out: pathlib.Path, command: str) -> None:
    """Writes the page, figures, and all numbers as CSV, JSON, LaTeX and Markdown.

    Each file is written aside and appears under its name when all of them are complete; then
    figures of an earlier report that are not made this time are removed.

    The folder is made if it is not there; the page shows `command`, the command line.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".writing-") as aside_name:
        aside = pathlib.Path(aside_name)
        results = compute(comparison)
        _write_tables(comparison, results, aside)
        shown, not_made = [], []
        notes = protocol.meanings(labels.standard(comparison.runs))
        for name, (heading, draw) in progress.bar("Figures", [*PICTURES.items()]):
            # A name may hold a $, or letters that the font lacks.
            with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
                warnings.filterwarnings("ignore", r"Glyph .* missing from font")
                drawn = draw(comparison, results)
                if isinstance(drawn, Shown):
                    box = figures.footnote(drawn.figure, notes)
                    png = _save(drawn.figure, box, aside / name)
                    shown.append((heading, drawn, png))
                elif drawn is not None:
                    not_made.append(drawn)
        made = provenance.collect(comparison.runs, command)
        _write_take_away(comparison, results, made, aside)
        html = page.render(comparison, results, shown, not_made, made)
        (aside / "report.html").write_text(html, encoding="utf-8")
        new = [path.name for path in sorted(aside.iterdir())]
        for name in new:
            os.replace(aside / name, out / name)
        for name in PICTURES:
            for file in {f"{name}.png", f"{name}.pdf"}.difference(new):
                (out / file).unlink(missing_ok=True)


def _save(figure: Figure, box: Bbox, path: pathlib.Path) -> bytes:
    """Writes what a box in inches holds of a figure as PNG and PDF; returns the PNG."""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=150, bbox_inches=box)
    path.with_suffix(".png").write_bytes(png.getvalue())
    figure.set_layout_engine("none")  # The layout stays: it is half the time.
    figure.savefig(path.with_suffix(".pdf"), bbox_inches=box, metadata={"CreationDate": None})
    return png.getvalue()


def _write_tables(comparison: Comparison, results: Results, folder: pathlib.Path) -> None:
    table = tables.with_protocol(comparison.runs).sort_values("game", kind="stable")[
        ["game", "agent", "seed", "iteration", "score", "normalised", "frames", "protocol"]
    ]
    table = table.rename(columns={"normalised": comparison.normalised})
    _write_csv(folder / "scores.csv", table)
    protocols = {
        agent: labels.protocol_of(rows)
        for agent, rows in labels.by_agent(comparison.runs, comparison.common_games).items()
    }
    aggregates = [
        (agent, name, *values, protocols[agent])
        for agent, interval in results.aggregates.items()
        for name, *values in zip(statistics.AGGREGATES, *interval, strict=True)
    ] + [
        (main, f"improvement_over_{other}", *np.concatenate(chance), protocols[main])
        for other, chance in results.improvement.items()
        for main in [str(comparison.main)]
    ]
    columns = ["agent", "metric", "value", "low", "high", "protocol"]
    _write_csv(folder / "aggregates.csv", pd.DataFrame(aggregates, columns=columns))
    _write_csv(folder / "relative.csv", results.relative.reset_index())


def _write_take_away(
    comparison: Comparison, results: Results, made: dict[str, Any], folder: pathlib.Path
) -> None:
    """Writes `report.json`, and both tables in LaTeX and Markdown."""
    numbers = json.dumps(export.as_data(comparison, results, made), indent=1, allow_nan=False)
    (folder / "report.json").write_text(numbers + "\n", encoding="utf-8")
    common = comparison.common_games
    for name, table, games in (
        ("aggregates", tables.aggregate_table(comparison, results), common),
        ("games", tables.game_table(comparison, results), None),
    ):
        notes = [f"Scores: {tables.scored(comparison)}.", *tables.marked(comparison.runs, games)]
        (folder / f"{name}.md").write_text(tables.markdown(table, notes), encoding="utf-8")
        (folder / f"{name}.tex").write_text(tables.latex(table, notes), encoding="utf-8")


def _write_csv(path: pathlib.Path, table: pd.DataFrame) -> None:
    """Writes a table as CSV with nine digits, more than any score has; NaN is an empty cell.

    A text that spreadsheets would take for a formula begins with an apostrophe.
    """
    table = table.apply(lambda column: column.map(_no_formula))
    table.to_csv(path, index=False, float_format="%.9g", lineterminator="\n")


def _no_formula(cell: Any) -> Any:
    is_formula = isinstance(cell, str) and cell.startswith(tuple("=+-@\t\r"))
    return f"'{cell}" if is_formula else cell
