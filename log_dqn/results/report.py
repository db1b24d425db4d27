"""Writes a comparison: CSV files, figures and one page."""

import functools
import io
import os
import pathlib
import tempfile
from collections.abc import Iterable
from typing import Any

import matplotlib
import numpy as np
import pandas
from matplotlib.figure import Figure

from log_dqn.results import page, statistics
from log_dqn.results.comparison import Comparison, ShowProgress
from log_dqn.results.pictures import PICTURES, THRESHOLDS, Results


def compute(comparison: Comparison, progress: ShowProgress) -> Results:
    """Computes all statistics with their bootstrap intervals."""
    games = comparison.common_games
    results = Results({}, {}, {}, {})
    if not games:
        return results
    interval = functools.partial(statistics.interval, repetitions=comparison.request.repetitions)
    profile = functools.partial(statistics.profile, thresholds=THRESHOLDS)
    matrices = {
        agent: statistics.score_matrix(comparison.scores, agent, games)
        for agent in comparison.agents
    }
    for agent in progress("Bootstrap", comparison.agents):
        matrix = matrices[agent]
        results.aggregates[agent] = interval(statistics.aggregates, matrix)
        results.profiles[agent] = interval(profile, matrix)
        curves = statistics.curve_array(comparison.runs, agent, games, comparison.normalise)
        # Where a run has ended the mean would jump, and no interval could be given.
        curves = curves[:, :, : min(comparison.curve_lengths(agent))]
        results.curves[agent] = interval(statistics.mean_and_median, curves)
        if comparison.main not in (None, agent):
            results.improvement[agent] = interval(
                statistics.probability_of_improvement, matrices[comparison.main], matrix
            )
    return results


def write(comparison: Comparison, out: pathlib.Path, command: str, progress: ShowProgress) -> None:
    """Writes `scores.csv`, `aggregates.csv`, `relative.csv`, figures and `report.html`.

    Each file is written aside and appears under its name when all of them are complete; then
    figures of an earlier report that are not made this time are removed.

    The folder is made if it is not there; the page shows `command`, the command line.

    Raises:
        OSError: the folder cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".writing-") as aside_name:
        aside = pathlib.Path(aside_name)
        results = compute(comparison, progress)
        _write_tables(comparison, results, aside)
        shown, not_made = [], []
        for picture in progress("Figures", PICTURES):
            with matplotlib.rc_context({"text.parse_math": False}):  # A name may hold a $.
                drawn = picture.draw(comparison, results)
            if isinstance(drawn, tuple):
                figure, caption = drawn
                png = _save(figure, aside / picture.name)
                width = 100 * figure.get_figwidth()
                shown.append(page.Shown(picture.heading, caption, png, width))
            elif drawn is not None:
                not_made.append(drawn)
        html = page.render(comparison, results.aggregates, shown, not_made, command)
        (aside / "report.html").write_text(html, encoding="utf-8")
        new = [path.name for path in sorted(aside.iterdir())]
        for name in new:
            os.replace(aside / name, out / name)
        for picture in PICTURES:
            for name in {f"{picture.name}.png", f"{picture.name}.pdf"}.difference(new):
                (out / name).unlink(missing_ok=True)


def _save(figure: Figure, path: pathlib.Path) -> bytes:
    """Writes a figure as PNG and PDF; returns the PNG."""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=150)
    path.with_suffix(".png").write_bytes(png.getvalue())
    figure.set_layout_engine("none")  # The layout stays: it is half the time.
    figure.savefig(path.with_suffix(".pdf"), metadata={"CreationDate": None})
    return png.getvalue()


def _write_tables(comparison: Comparison, results: Results, folder: pathlib.Path) -> None:
    order = {agent: index for index, agent in enumerate(comparison.agents)}
    scores = sorted(comparison.scores, key=lambda s: (s.game, order[s.agent]))
    _write_csv(folder / "scores.csv", "game agent seed iteration score hns", scores)
    aggregates = [
        (agent, name, *values)
        for agent, interval in results.aggregates.items()
        for name, *values in zip(statistics.AGGREGATES, *interval, strict=True)
    ] + [
        (comparison.main, f"improvement_over_{other}", *np.concatenate(chance))
        for other, chance in results.improvement.items()
    ]
    _write_csv(folder / "aggregates.csv", "agent metric value low high", aggregates)
    _write_csv(folder / "relative.csv", "game relative", sorted(comparison.relative().items()))


def _write_csv(path: pathlib.Path, header: str, rows: Iterable[Iterable[Any]]) -> None:
    """Nine digits are more than any score has; NaN becomes an empty cell."""
    table = pandas.DataFrame(map(tuple, rows), columns=header.split())
    table.to_csv(path, index=False, float_format="%.9g", lineterminator="\n")
