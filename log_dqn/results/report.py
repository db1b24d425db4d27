"""Writes a comparison: CSV files, figures and one page."""

import csv
import io
import os
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from log_dqn.results import figures, page, statistics
from log_dqn.results.comparison import Comparison, Progress, gamma_settings
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


GammaPoint = tuple[float, float, float, int]
"""Discount factor, best mean, best median, number of agents."""


def compute(comparison: Comparison, progress: Progress) -> Results:
    """Computes all statistics with their bootstrap intervals."""
    games = comparison.common_games
    results = Results({}, {}, {}, {})
    if not games:
        return results
    repetitions = comparison.request.repetitions
    matrices = {
        agent: statistics.score_matrix(comparison.scores, agent, games)
        for agent in comparison.agents
    }
    for agent in progress("Bootstrap", comparison.agents):
        matrix = matrices[agent]
        results.aggregates[agent] = statistics.interval(
            statistics.aggregates, matrix, repetitions=repetitions
        )
        results.profiles[agent] = statistics.interval(
            lambda sample: statistics.profile(sample, THRESHOLDS), matrix, repetitions=repetitions
        )
        curves = statistics.curve_array(comparison.runs, agent, games, comparison.normalise)
        # Where a run has ended the mean would jump, and no interval could be given.
        curves = curves[:, :, : comparison.curve_length(agent)]
        results.curves[agent] = statistics.interval(
            statistics.mean_and_median, curves, repetitions=repetitions
        )
        if comparison.main not in (None, agent):
            results.improvement[agent] = statistics.interval(
                statistics.probability_of_improvement,
                matrices[comparison.main],
                matrix,
                repetitions=repetitions,
            )
    return results


def gamma_points(comparison: Comparison) -> tuple[dict[str, list[GammaPoint]], int]:
    """Mean and median over the paper's six games against the discount factor (Appendix C).

    Agents of one class and gamma (folders with other values of c, say) are represented by the
    best mean and the best median among them, as in the paper. The published DQN (gamma 0.99)
    stands beside them. `gamma_settings` says which agents take part, on which games.

    Returns:
        For each class (gamma, best mean, best median, number of agents) by gamma, and the number
        of games. Nothing if no class has two discount factors.
    """
    settings, games, _ = gamma_settings(comparison.runs, comparison.scores)
    best: dict[str, dict[float, tuple[float, float, int]]] = {}
    for agent, (agent_class, gamma) in settings.items() if games else ():
        matrix = statistics.score_matrix(comparison.scores, agent, games)
        mean, median, *_ = map(float, statistics.aggregates(matrix))
        by_gamma = best.setdefault(agent_class, {})
        so_far = by_gamma.get(gamma, (-np.inf, -np.inf, 0))
        by_gamma[gamma] = (max(so_far[0], mean), max(so_far[1], median), so_far[2] + 1)
    if not any(len(by_gamma) > 1 for by_gamma in best.values()):
        return {}, 0
    points = {
        name: [(gamma, *by_gamma[gamma]) for gamma in sorted(by_gamma)]
        for name, by_gamma in best.items()
    }
    return points, len(games)


def _learning_curves(comparison: Comparison) -> dict[str, dict[str, np.ndarray]]:
    """Returns of each game and agent, shape [num_seeds, num_iterations]."""
    return {
        game: {
            agent: statistics.curve_array(comparison.runs, agent, [game], lambda _, x: x)[:, 0]
            for agent in comparison.agents
            if any(run.agent == agent and run.game == game for run in comparison.runs)
        }
        for game in comparison.games
    }


def _gamma_caption(points: Mapping[str, Sequence[GammaPoint]]) -> str:
    several = [
        f"{n} agents of {name} at {gamma:g}"
        for name, rows in points.items()
        for gamma, _, _, n in rows
        if n > 1
    ]
    if not several:
        return "each point is one agent"
    return f"best mean and best median, each over the {', '.join(several)}; else one agent"


class Picture(NamedTuple):
    """One figure of the report."""

    name: str
    caption: str
    draw: Callable[[], Figure]


def pictures(comparison: Comparison, results: Results) -> tuple[list[Picture], list[str]]:
    """Lists the figures that the comparison allows, and why others are not made."""
    made, missing = [], []
    main, reference = comparison.main, comparison.request.reference
    num_games = len(comparison.common_games)
    relative = comparison.relative()
    if relative and main is not None:
        made.append(
            Picture(
                "relative",
                "(score - reference) / (max(reference, human) - random) for each game. Orange: "
                "more than 50%; dark blue: 10% to 50%; light blue: less than 10%.",
                lambda: figures.relative_bars(relative, main, reference),
            )
        )
    elif reference not in comparison.agents:
        missing.append(
            f"relative performance: the reference {figures.label(reference)} has no runs"
        )
    elif main is None:
        missing.append("relative performance: needs an agent beside the reference")
    else:
        missing.append(
            f"relative performance: {figures.label(main)} and the reference have no game with "
            "human scores in common"
        )
    if num_games:
        made += [
            Picture(
                "mean_median",
                "Human-normalised score at each iteration, up to the last one that all runs of "
                "the agent have; bands are 95% intervals.",
                lambda: figures.mean_and_median_curves(results.curves, num_games),
            ),
            Picture(
                "aggregates",
                "Aggregates with 95% stratified bootstrap intervals.",
                lambda: figures.aggregate_intervals(results.aggregates, num_games),
            ),
            Picture(
                "profile",
                "Performance profile: higher is better; bands are 95% intervals.",
                lambda: figures.performance_profiles(results.profiles, THRESHOLDS, num_games),
            ),
        ]
    if results.improvement and main is not None:
        made.append(
            Picture(
                "improvement",
                "Probability that a run of the agent scores higher than a run of the other.",
                lambda: figures.improvement_intervals(
                    results.improvement, main, comparison.agents, num_games
                ),
            )
        )
    points, num_gamma_games = gamma_points(comparison)
    if points:
        made.append(
            Picture(
                "gamma",
                "Mean and median against the discount factor over games of the paper's "
                f"six-game study; {_gamma_caption(points)}.",
                lambda: figures.gamma_scan(points, num_gamma_games),
            )
        )
    else:
        missing.append(
            "mean and median against gamma: needs own runs of one agent class with two discount "
            "factors (operative_config.gin), each on all of the paper's six games that are compared"
        )
    curves = _learning_curves(comparison)
    made.append(
        Picture(
            "learning_curves",
            "Mean over seeds; bands run from the least to the greatest seed.",
            lambda: figures.learning_curves(curves, comparison.agents, comparison.request.metric),
        )
    )
    return made, missing


def write(comparison: Comparison, out: pathlib.Path, command: str, progress: Progress) -> None:
    """Writes `scores.csv`, `aggregates.csv`, `relative.csv`, figures and `report.html`.

    Each file is written aside and appears under its name when all of them are complete; then
    figures of an earlier report that are not made this time are removed.

    Args:
        comparison: what is compared.
        out: the folder to write to; made if it is not there.
        command: the command line, for the page.
        progress: shows progress over a sequence.

    Raises:
        OSError: the folder cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".writing-") as aside_name:
        aside = pathlib.Path(aside_name)
        results = compute(comparison, progress)
        relative = comparison.relative()
        _write_csv(aside / "scores.csv", _score_rows(comparison))
        _write_csv(aside / "aggregates.csv", _aggregate_rows(comparison, results))
        _write_csv(
            aside / "relative.csv", [("game", "relative"), *_rounded(sorted(relative.items()))]
        )
        made, missing = pictures(comparison, results)
        shown = []
        for picture in progress("Figures", made):
            with matplotlib.rc_context({"text.parse_math": False}):  # A name may hold a $.
                figure = picture.draw()
            png = io.BytesIO()
            figure.savefig(png, format="png", dpi=150)
            (aside / f"{picture.name}.png").write_bytes(png.getvalue())
            figure.set_layout_engine("none")  # The layout stays: it is half the time.
            figure.savefig(aside / f"{picture.name}.pdf", metadata={"CreationDate": None})
            width = 100 * figure.get_figwidth()
            shown.append(page.Shown(picture.name, picture.caption, png.getvalue(), width))
        html = page.render(comparison, results.aggregates, shown, missing, command)
        (aside / "report.html").write_text(html, encoding="utf-8")
        for path in sorted(aside.iterdir()):
            os.replace(path, out / path.name)
        # Figures of an earlier report that this one does not have.
        for name in page.HEADINGS.keys() - {picture.name for picture in made}:
            for kind in ("png", "pdf"):
                (out / f"{name}.{kind}").unlink(missing_ok=True)


def _rounded(rows: Sequence[tuple]) -> list[tuple]:
    """Nine digits are more than any score has; NaN becomes an empty cell."""

    def cell(value: Any) -> Any:
        if not isinstance(value, float):
            return value
        return "" if np.isnan(value) else f"{value:.9g}"

    return [tuple(map(cell, row)) for row in rows]


def _score_rows(comparison: Comparison) -> list[tuple]:
    header = ("game", "agent", "seed", "iteration", "score", "hns")
    order = {agent: index for index, agent in enumerate(comparison.agents)}
    rows = sorted(comparison.scores, key=lambda s: (s.game, order[s.agent]))
    return [header, *_rounded(rows)]


def _aggregate_rows(comparison: Comparison, results: Results) -> list[tuple]:
    rows: list[tuple] = []
    for agent, aggregate in results.aggregates.items():
        parts = zip(*(part.tolist() for part in aggregate), strict=True)
        rows += [
            (agent, name, *part) for name, part in zip(statistics.AGGREGATES, parts, strict=True)
        ]
    for other, chance in results.improvement.items():
        rows.append(
            (comparison.main, f"improvement_over_{other}", *(float(part[0]) for part in chance))
        )
    return [("agent", "metric", "value", "low", "high"), *_rounded(rows)]


def _write_csv(path: pathlib.Path, rows: Sequence[Sequence]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
