"""Scores: from learning curves to numbers, as pure functions."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd


def last_tenth(iterations: Any) -> Any:
    """Returns how many iterations are the last tenth of some, rounded up.

    A score averages them: section 6's "last 10%". Also takes series of numbers of iterations.
    """
    return -(-iterations // 10)


def final_score(returns: np.ndarray, last: int | None = None, number: int | None = None) -> float:
    """Returns the mean over the last tenth of a learning curve, 20 of 199 or 200 iterations.

    Args:
        returns: mean returns, shape [num_iterations]; NaN where unknown.
        last: the last iteration that counts, counted from 0; the curve's last one if None.
        number: how many iterations count; `last_tenth` if None.

    Returns:
        The mean of these iterations' known values, or NaN if the curve ends before `last` or no
        value is known there.
    """
    stop = len(returns) if last is None else last + 1
    window = returns[stop - (number or last_tenth(stop)) : stop]
    known = window[~np.isnan(window)]
    if len(returns) < stop or not len(known):
        return math.nan
    return float(known.mean())


def every(returns: np.ndarray, frames_per_iteration: int, step: int) -> np.ndarray:
    """Takes a learning curve's values at every `step` emulator frames, from there on.

    With one length of the iterations these are all values; with several, agents and seeds can be
    averaged at equal experience.
    """
    frames = step * np.arange(1, len(returns) * frames_per_iteration // step + 1)
    return returns[frames // frames_per_iteration - 1]


def human_normalised(score: Any, random: Any, human: Any) -> Any:
    """Returns (score - random) / (human - random), the human-normalised score of section 6.

    Also takes arrays of scores.
    """
    return (score - random) / (human - random)


def score(table: pd.DataFrame) -> pd.DataFrame:
    """Scores runs.

    Args:
        table: runs with `until`, the frames up to which returns count; see `align.align`.

    Returns:
        The table with `iteration`, the last that counts, `frames`, those of training up to its end,
        and `score`, the mean return per episode over the last tenth of the iterations up to it;
        NaN where none is known. Where iterations on a game differ in length, all its runs are
        scored over as many frames as the one with the most of those that reach it.
    """
    # The first iteration counts even where it is not finished by then.
    frames = table["until"].fillna(table["trained"])
    length, done = table["length"], (frames // table["length"]).clip(lower=1).astype(int)
    window = last_tenth(done) * length
    # A run without a score of its own, as one that ends before, widens no other's window.
    own = pd.Series(map(final_score, table["returns"], done - 1), table.index, dtype=float)
    reached = window.where(own.notna())
    widest = (
        reached.groupby(table["game"]).transform("max").where(table["until"].notna()).fillna(window)
    )
    number = np.minimum(widest // length, done).astype(int)
    scores = list(map(final_score, table["returns"], done - 1, number))
    return table.assign(iteration=done - 1, frames=done * length, score=scores)


def normalise(table: pd.DataFrame, references: pd.DataFrame) -> pd.DataFrame:
    """Adds `normalised` to scored runs, and the `random` and `human` score of their games.

    These are the columns of `references`, a row a game; NaN for games that have none.
    """
    table = table.join(references, on="game")
    return table.assign(
        normalised=human_normalised(table["score"], table["random"], table["human"])
    )


def best_means(table: pd.DataFrame, of: Sequence[str] = ("agent",)) -> pd.Series:
    """Returns each game's best mean score; `of` are the columns that say what one mean is of."""
    return table.groupby(["game", *of])["score"].mean().groupby("game").max()


def divided_by_best(table: pd.DataFrame, of: Sequence[str]) -> pd.DataFrame:
    """Divides scores by the best mean on their game; see `best_means`."""
    return table.assign(score=table["score"] / table["game"].map(best_means(table, of)))


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns `score`, the mean over seeds, and `normalised` of each `game` and `agent`."""
    columns = {"score": "mean", "random": "first", "human": "first"}
    found = runs.groupby(["game", "agent"], sort=False).agg(columns).reset_index()
    return found.assign(
        normalised=human_normalised(found["score"], found["random"], found["human"])
    )


def common_games(runs: pd.DataFrame) -> list[str]:
    """Returns the games, by name, on which all agents have normalised scores."""
    agents = runs[runs["normalised"].notna()].groupby("game")["agent"].nunique()
    return sorted(agents.index[agents == runs["agent"].nunique()])
