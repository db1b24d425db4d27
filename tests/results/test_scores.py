"""Scores, worked by hand."""

import math

import numpy as np
import pytest

from log_dqn.results import scores


def test_final_score_averages_the_last_tenth():
    assert scores.final_score(np.arange(200.0)) == np.mean(range(180, 200))
    assert scores.final_score(np.arange(199.0)) == np.mean(range(179, 199))  # 20 iterations
    assert scores.final_score(np.array([3.0, 5.0])) == 5
    assert scores.final_score(np.arange(11.0)) == 9.5


def test_final_score_up_to_an_iteration():
    returns = np.arange(100.0)
    assert scores.final_score(returns, 49) == np.mean([45, 46, 47, 48, 49])
    assert scores.final_score(returns, 0) == 0
    assert scores.final_score(returns, 99) == scores.final_score(returns)
    assert math.isnan(scores.final_score(returns, 100))


def test_final_score_passes_over_unknown_iterations():
    assert scores.final_score(np.array([1.0] * 18 + [np.nan, 7.0])) == 7
    assert math.isnan(scores.final_score(np.array([1.0] * 18 + [np.nan, np.nan])))


def test_human_normalised():
    assert scores.human_normalised(1.7, 1.7, 30.5) == 0
    assert scores.human_normalised(30.5, 1.7, 30.5) == 1
    # DoubleDunk: random -18.6, human -16.4
    assert scores.human_normalised(-14.2, -18.6, -16.4) == pytest.approx(2)
