"""Writes a comparison: CSV files, figures and one page."""

import functools
import io
import json
import math
import os
import pathlib
import tempfile
from collections.abc import Iterable
from typing import Any

import matplotlib
import numpy as np
import pandas
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from log_dqn.results import export, figures, page, protocol, provenance, statistics, tables
from log_dqn.results.comparison import Comparison, ShowProgress
from log_dqn.results.pictures import PICTURES, Results, Shown


def compute(comparison: Comparison, progress: ShowProgress) -> Results:
    """Computes all statistics with their bootstrap intervals."""
    games = comparison.common_games
    results = Results({}, {}, {}, {})
    if not games:
        return results
    repetitions = comparison.request.repetitions
    interval = functools.partial(statistics.interval_of_enough_seeds, repetitions=repetitions)
    matrices = {
        agent: statistics.score_matrix(comparison.scores, agent, games)
        for agent in comparison.agents
    }
    results = results._replace(
        relative=_relative_intervals(comparison),
        thresholds=statistics.thresholds(matrices.values()),
    )
    profile = functools.partial(statistics.profile, thresholds=results.thresholds)
    for agent in progress("Bootstrap", comparison.agents):
        matrix = matrices[agent]
        results.aggregates[agent] = interval(statistics.aggregates, matrix)
        results.profiles[agent] = interval(profile, matrix)
        step, runs = comparison.curves(agent, games)
        # Where a run has ended the mean would jump, and no interval could be given.
        stop = min(len(run.returns) for run in runs)
        if stop:
            curves = statistics.curve_array(runs, agent, games, comparison.normalise)[:, :, :stop]
            frames = step * np.arange(1, stop + 1)
            results.curves[agent] = frames, interval(statistics.mean_median_iqm, curves)
        if comparison.main not in (None, agent):
            results.improvement[agent] = interval(
                statistics.probability_of_improvement, matrices[comparison.main], matrix
            )
    return results


def _relative_intervals(comparison: Comparison) -> dict[str, tuple[float, float]]:
    """The ends of the intervals of `Comparison.relative`, where both have enough seeds."""
    pair = (comparison.main, comparison.request.reference)
    games = [
        game
        for game in comparison.relative()
        if all(min(comparison.seeds(a, [game])) >= statistics.LEAST_SEEDS for a in pair if a)
    ]
    if not games:
        return {}
    found = statistics.interval(
        statistics.relative,
        *(statistics.score_matrix(comparison.scores, agent, games) for agent in pair if agent),
        repetitions=comparison.request.repetitions,
    )
    return dict(zip(games, zip(found.low.tolist(), found.high.tolist(), strict=True), strict=True))


def write(comparison: Comparison, out: pathlib.Path, command: str, progress: ShowProgress) -> None:
    """Writes the page, figures, and all numbers as CSV, JSON, LaTeX and Markdown.

    Each file is written aside and appears under its name when all of them are complete; then
    figures of an earlier report that are not made this time are removed.

    The folder is made if it is not there; the page shows `command`, the command line.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".writing-") as aside_name:
        aside = pathlib.Path(aside_name)
        results = compute(comparison, progress)
        _write_tables(comparison, results, aside)
        shown, not_made = [], []
        notes = protocol.meanings(comparison.standard)
        for picture in progress("Figures", PICTURES):
            with matplotlib.rc_context({"text.parse_math": False}):  # A name may hold a $.
                drawn = picture.draw(comparison, results)
            if isinstance(drawn, Shown):
                box = figures.footnote(drawn.figure, notes)
                png = _save(drawn.figure, box, aside / picture.name)
                shown.append((picture.heading, drawn, png))
            elif drawn is not None:
                not_made.append(drawn)
        made = provenance.collect(comparison, command)
        _write_take_away(comparison, results, made, aside)
        html = page.render(comparison, results.aggregates, shown, not_made, made)
        (aside / "report.html").write_text(html, encoding="utf-8")
        new = [path.name for path in sorted(aside.iterdir())]
        for name in new:
            os.replace(aside / name, out / name)
        for picture in PICTURES:
            for name in {f"{picture.name}.png", f"{picture.name}.pdf"}.difference(new):
                (out / name).unlink(missing_ok=True)


def _save(figure: Figure, box: Bbox, path: pathlib.Path) -> bytes:
    """Writes what a box in inches holds of a figure as PNG and PDF; returns the PNG."""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=150, bbox_inches=box)
    path.with_suffix(".png").write_bytes(png.getvalue())
    figure.set_layout_engine("none")  # The layout stays: it is half the time.
    figure.savefig(path.with_suffix(".pdf"), bbox_inches=box, metadata={"CreationDate": None})
    return png.getvalue()


def _write_tables(comparison: Comparison, results: Results, folder: pathlib.Path) -> None:
    order = {agent: index for index, agent in enumerate(comparison.agents)}
    scores = [
        (*score, comparison.protocol_of_run(score))
        for score in sorted(comparison.scores, key=lambda s: (s.game, order[s.agent]))
    ]
    normalised = "normalised" if comparison.by_best else "hns"
    columns = f"game agent seed iteration score {normalised} frames protocol"
    _write_csv(folder / "scores.csv", columns, scores)
    games = comparison.common_games
    aggregates = [
        (agent, name, *values, comparison.protocol_of(agent, games))
        for agent, interval in results.aggregates.items()
        for name, *values in zip(statistics.AGGREGATES, *interval, strict=True)
    ] + [
        (
            main, f"improvement_over_{other}", *np.concatenate(chance),
            comparison.protocol_of(main, games),
        )
        for other, chance in results.improvement.items()
        for main in [str(comparison.main)]
    ]  # fmt: skip
    _write_csv(folder / "aggregates.csv", "agent metric value low high protocol", aggregates)
    relative = [
        (game, value, *results.relative.get(game, (math.nan, math.nan)))
        for game, value in sorted(comparison.relative().items())
    ]
    _write_csv(folder / "relative.csv", "game relative low high", relative)


def _write_take_away(
    comparison: Comparison, results: Results, made: provenance.Provenance, folder: pathlib.Path
) -> None:
    """Writes `report.json`, and both tables in LaTeX and Markdown."""
    numbers = json.dumps(export.as_data(comparison, results, made), indent=1, allow_nan=False)
    (folder / "report.json").write_text(numbers + "\n", encoding="utf-8")
    common = comparison.common_games
    for name, table, games in (
        ("aggregates", tables.aggregate_table(comparison, results.aggregates), common),
        ("games", tables.game_table(comparison), comparison.games),
    ):
        notes = [f"Scores: {tables.scored(comparison)}.", *tables.marked(comparison, games)]
        (folder / f"{name}.md").write_text(tables.markdown(table, notes), encoding="utf-8")
        (folder / f"{name}.tex").write_text(tables.latex(table, notes), encoding="utf-8")


def _write_csv(path: pathlib.Path, header: str, rows: Iterable[Iterable[Any]]) -> None:
    """Nine digits are more than any score has; NaN becomes an empty cell."""
    table = pandas.DataFrame(map(tuple, rows), columns=header.split())
    table.to_csv(path, index=False, float_format="%.9g", lineterminator="\n")
