"""Scores: from learning curves to numbers, as pure functions."""

import math
from typing import NamedTuple

import numpy as np

FINAL_FRACTION = 10
"""A score averages the last tenth of the iterations (paper, section 6: "last 10%")."""


class Score(NamedTuple):
    """One number for one run.

    Attributes:
        iteration: the last iteration that counts.
        score: mean return per episode over the last tenth of the iterations up to it.
        hns: human-normalised score, or the score as part of the game's best mean where no game
            compared has human scores; NaN for a game with neither.
        frames: emulator frames of training up to that iteration.
    """

    game: str
    agent: str
    seed: str
    iteration: int
    score: float
    hns: float
    frames: int = 0


def final_score(returns: np.ndarray, last: int | None = None) -> float:
    """Mean over the last tenth of a learning curve, 20 of 199 or 200 iterations.

    Args:
        returns: mean returns, shape [num_iterations]; NaN where unknown.
        last: the last iteration that counts, counted from 0; the curve's last one if None.

    Returns:
        The mean of the known values of the last ceil((last + 1) / 10) iterations, or NaN if the
        curve ends before `last` or no value is known there.
    """
    stop = len(returns) if last is None else last + 1
    window = returns[stop - math.ceil(stop / FINAL_FRACTION) : stop]
    known = window[~np.isnan(window)]
    if len(returns) < stop or not len(known):
        return math.nan
    return float(known.mean())


def last_iteration(frames: int, frames_per_iteration: int) -> int:
    """The iteration that a run has finished after some emulator frames, counted from 0.

    It is the first one, too, where that is not finished by then.
    """
    return max(frames // frames_per_iteration, 1) - 1


def every(returns: np.ndarray, frames_per_iteration: int, step: int) -> np.ndarray:
    """Takes a learning curve's values at every `step` emulator frames, from there on.

    With one length of the iterations these are all values; with several, agents and seeds can be
    averaged at equal experience.
    """
    frames = step * np.arange(1, len(returns) * frames_per_iteration // step + 1)
    return returns[frames // frames_per_iteration - 1]


def human_normalised(score: float, random: float, human: float) -> float:
    """(score - random) / (human - random), the human-normalised score of section 6.

    Also takes arrays of scores.
    """
    return (score - random) / (human - random)


def relative_to(score: float, reference: float, random: float, human: float) -> float:
    """Performance relative to a reference agent (Wang et al. 2016; paper, section 6).

    (score - reference) / (max(reference, human) - random), all in points per episode.
    """
    return (score - reference) / (max(reference, human) - random)
