"""Aggregates over games with stratified bootstrap intervals, through rliable.

The definitions are those of Agarwal et al. (2021), "Deep Reinforcement Learning at the Edge of
the Statistical Precipice". rliable resamples the runs of each game and asks for the same number
of seeds in every game; unfinished studies don't have that. Here a matrix may hold NaN where a
game has fewer seeds, and each game's runs are resampled among themselves. Without NaN
everything equals rliable's.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from rliable import metrics
from scipy import stats

from log_dqn.results import scores

AGGREGATES = {
    "mean": "Mean", "median": "Median", "iqm": "IQM", "optimality_gap": "Optimality gap",
}  # fmt: skip
"""What `aggregates` gives, as files and as readers call it."""

CONFIDENCE = 0.95

LEAST_SEEDS = 3
"""An interval of fewer seeds says nothing: a resample often holds one seed alone."""


class Interval(NamedTuple):
    """A statistic with its 95% interval; arrays of equal shape, with NaN bounds for none."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def score_matrix(
    rows: pd.DataFrame, games: Sequence[str], column: str = "normalised"
) -> np.ndarray:
    """Arranges one agent's scores for rliable.

    Args:
        rows: the agent's in the table of runs; see `Comparison`.
        games: the columns of the result.
        column: where the scores stand.

    Returns:
        Shape [max_num_seeds, num_games]; NaN below the last seed of a game.
    """
    rows = rows[rows["game"].isin(games)]
    numbered = rows.assign(number=rows.groupby("game").cumcount())
    arranged = numbered.pivot(index="number", columns="game", values=column)
    return arranged.reindex(columns=[*games]).to_numpy()


def curves(rows: pd.DataFrame) -> tuple[int, pd.DataFrame]:
    """Returns the emulator frames from value to value of some runs' curves, and these runs."""
    step = int(rows["length"].max())
    returns = [scores.every(run.returns, run.length, step) for run in rows.itertuples()]
    return step, rows.assign(returns=returns)


def curve_array(rows: pd.DataFrame, games: Sequence[str]) -> np.ndarray:
    """Arranges one agent's learning curves, all on `games`, for rliable.

    Returns:
        Shape [max_num_seeds, num_games, num_iterations]; NaN where unknown.
    """
    numbers = rows.groupby("game").cumcount()
    array = np.full((numbers.max() + 1, len(games), rows["returns"].map(len).max()), np.nan)
    for number, game, curve in zip(numbers, rows["game"], rows["returns"], strict=True):
        array[number, games.index(game), : len(curve)] = curve
    return array


def mean_over_seeds(array: np.ndarray) -> np.ndarray:
    """Returns means over the first axis of the values that are not NaN; NaN where there is none."""
    with np.errstate(invalid="ignore"):
        return np.nansum(array, axis=0) / (~np.isnan(array)).sum(axis=0)


def aggregates(scores: np.ndarray) -> np.ndarray:
    """Returns mean, median, interquartile mean and optimality gap, in the order of `AGGREGATES`.

    Mean and median are taken over games of the mean over seeds; the interquartile mean over all
    runs together; the optimality gap is 1 - mean(min(score, 1)).

    Takes human-normalised scores, shape [num_seeds, num_games], NaN where there is none; returns
    shape [4].
    """
    per_game = mean_over_seeds(scores)[None]
    capped = mean_over_seeds(np.minimum(scores, 1))[None]
    runs = scores[~np.isnan(scores)][:, None]
    return np.array(
        [
            metrics.aggregate_mean(per_game),
            metrics.aggregate_median(per_game),
            metrics.aggregate_iqm(runs),
            metrics.aggregate_optimality_gap(capped),
        ]
    )


def mean_median_iqm(curves: np.ndarray) -> np.ndarray:
    """Returns mean and median over games of the mean over seeds, and IQM over runs, by iteration.

    Takes shape [num_seeds, num_games, num_iterations]; returns [3, num_iterations], NaN where a
    game has no value.
    """
    per_game = mean_over_seeds(curves)
    mean = per_game.mean(axis=0)
    # `metrics.aggregate_iqm` at each iteration, which would be called thousands of times. Sorted,
    # what is not known stands last.
    runs = np.sort(curves.reshape(-1, curves.shape[2]).T)
    known = (~np.isnan(runs)).sum(axis=1)
    place, cut = np.arange(runs.shape[1]), (known // 4)[:, None]
    middle = (place >= cut) & (place < known[:, None] - cut)
    iqm = runs.sum(axis=1, where=middle) / np.maximum(middle.sum(axis=1), 1)
    return np.stack([mean, np.median(per_game, axis=0), np.where(np.isnan(mean), np.nan, iqm)])


def thresholds(scores: Iterable[np.ndarray]) -> np.ndarray:
    """Returns human-normalised scores at which profiles are drawn: to where nine of ten runs lie.

    Takes each agent's, shape [num_seeds, num_games], NaN where there is none; returns shape [201].
    """
    matrices = list(scores)
    low = min(0.0, *(float(np.nanmin(matrix)) for matrix in matrices))
    high = max(float(np.nanquantile(matrix, 0.9)) for matrix in matrices)
    start = max(low, -1.0)
    if high <= start:
        start = low
    return np.linspace(start, max(high, start + 0.1), 201)


def profile(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Computes the performance profile: the fraction of runs that score above each threshold.

    The human-normalised scores have shape [num_seeds, num_games], NaN where there is none; result
    and thresholds have shape [num_thresholds].
    """
    runs = np.sort(scores[~np.isnan(scores)])
    return 1 - np.searchsorted(runs, thresholds, side="right") / len(runs)


def probability_of_improvement(scores_x: np.ndarray, scores_y: np.ndarray) -> np.ndarray:
    """Computes the mean over games of the probability that a run of X beats one of Y.

    A tie counts as half a win.

    rliable's own takes one Mann-Whitney test of scipy for each game, about 0.5 ms; over 55 games
    and 2,000 repetitions that is most of a minute for one pair of agents.

    Takes shapes [num_seeds, num_games], NaN where there is none; returns shape [1].
    """
    x, y = scores_x[:, None], scores_y[None]
    wins = ((x > y) + 0.5 * (x == y)).sum(axis=(0, 1))
    pairs = (~np.isnan(scores_x)).sum(axis=0) * (~np.isnan(scores_y)).sum(axis=0)
    return np.mean(wins / pairs, keepdims=True)


def _is_run(scores: np.ndarray) -> np.ndarray:
    return ~np.isnan(scores).reshape(*scores.shape[:2], -1).all(axis=2)


def seeds_per_game(scores: np.ndarray) -> np.ndarray:
    """Counts the runs of each game in an array of shape [num_seeds, num_games, ...]."""
    return _is_run(scores).sum(axis=0)


def _resampled(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draws, for each game, as many of its runs as it has, with replacement.

    Takes and returns shape [num_seeds, num_games, ...]. A row that is NaN throughout is no run.
    """
    rows, count = np.arange(len(scores))[:, None], seeds_per_game(scores)
    runs_first = np.argsort(~_is_run(scores), axis=0, kind="stable")
    drawn = np.floor(rng.random(scores.shape[:2]) * count).astype(int)
    drawn = np.take_along_axis(runs_first, np.where(rows < count, drawn, rows), axis=0)
    return scores[drawn, np.arange(scores.shape[1])]


def interval(
    statistic: Callable[..., np.ndarray], *scores: np.ndarray, repetitions: int, seed: int = 0
) -> Interval:
    """Computes a statistic with its 95% percentile interval under the stratified bootstrap.

    Args:
        statistic: maps the arrays of scores to an array.
        *scores: one array for a statistic of one agent, two for one that compares two; shape
            [num_seeds, num_games, ...] each.
        repetitions: number of bootstrap samples.
        seed: seeds the resampling.

    Returns:
        Arrays like the statistic's; NaN for bounds where a game has less than `LEAST_SEEDS` seeds.
    """
    value = statistic(*scores)
    if min(seeds_per_game(array).min() for array in scores) < LEAST_SEEDS:
        none = np.full_like(value, np.nan)
        return Interval(value, none, none)
    rng = np.random.default_rng(seed)
    samples = [statistic(*(_resampled(s, rng) for s in scores)) for _ in range(repetitions)]
    ends = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    return Interval(value, *np.quantile(samples, ends, axis=0))


def t_interval(
    *samples: np.ndarray, weights: Sequence[float] = (1, -1), least: int = 2
) -> Interval:
    """Computes a weighted sum of the means of samples with its 95% t interval; Welch's for several.

    With few seeds it holds its level, which percentile bootstraps don't: with five these cover 84%
    to 91%.

    Args:
        *samples: shape [num_seeds, ...] each; NaN where there is none.
        weights: of the means; by default the sum is one mean, or that less another.
        least: bounds are NaN where a sample has fewer seeds.
    """
    means = np.array([mean_over_seeds(sample) for sample in samples])
    slopes = np.reshape(weights[: len(samples)], (-1, *[1] * (means.ndim - 1)))
    value, half = (slopes * means).sum(axis=0), _half_width(samples, slopes, least)
    return Interval(value, value - half, value + half)


def relative_intervals(own: np.ndarray, reference: np.ndarray) -> Interval:
    """Returns performance relative to a reference agent, with its 95% Welch interval over seeds.

    This is (score - reference) / (max(reference, human) - random) on each game (Wang et al. 2016;
    paper, section 6). The denominator's error counts to the first order where it has the mean of
    one of the two.

    Args:
        own: normalised scores, shape [num_seeds, num_games], NaN where there is none.
        reference: those of the reference agent.

    Returns:
        Shape [num_games]; NaN for bounds where a game has less than `LEAST_SEEDS` seeds.
    """
    x, y = mean_over_seeds(own), mean_over_seeds(reference)
    denominator = np.maximum(y, 1)
    value = (x - y) / denominator
    # The mean of scores that are divided by it is 1, but for rounding.
    divides = np.isclose(x, 1, rtol=0, atol=1e-9) & (y < x)
    slopes = np.stack(
        [np.where(divides, y, 1 / denominator), np.where(y > 1 - 1e-9, x / denominator**2, 1)]
    )
    half = _half_width((own, reference), slopes, LEAST_SEEDS)
    return Interval(value, value - half, value + half)


def _half_width(samples: Sequence[np.ndarray], slopes: np.ndarray, least: int) -> np.ndarray:
    """Computes half of the 95% t interval of a sum of means (Welch, Satterthwaite).

    The sum changes by `slopes` with each mean, shape [num_samples, ...].
    """
    counts = np.array([(~np.isnan(sample)).sum(axis=0) for sample in samples])
    squares = [np.nansum((sample - mean_over_seeds(sample)) ** 2, axis=0) for sample in samples]
    parts = slopes**2 * (squares / np.maximum(counts - 1, 1)) / np.maximum(counts, 1)
    total = parts.sum(axis=0)
    with np.errstate(invalid="ignore"):  # Equal runs have no variance.
        freedom = total**2 / (parts**2 / np.maximum(counts - 1, 1)).sum(axis=0)
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, np.where(total > 0, freedom, 1))
    enough = (counts >= least).all(axis=0)
    return np.where(enough, quantile * np.sqrt(total), np.nan)
