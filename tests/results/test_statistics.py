"""Aggregates by hand, against rliable, and with unequal seeds."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from rliable import library, metrics

from log_dqn.results import statistics

NAN = np.nan
TWO_GAMES = np.array([[0.0, 4.0], [1.0, 2.0], [0.5, 0.0], [0.5, 2.0]])  # 4 seeds


def test_aggregates_by_hand_with_unequal_seeds():
    scores = np.array([[0.0, 4.0, 1.0], [1.0, NAN, 3.0]])
    # Means over seeds .5 4 2; runs 0 1 1 3 4, of which one is cut at each end.
    expected = [6.5 / 3, 2.0, 5 / 3, 1 - (0.5 + 1 + 1) / 3]
    np.testing.assert_allclose(statistics.aggregates(scores), expected)


def test_aggregates_equal_rliables():
    scores = np.random.default_rng(0).gamma(1.0, 2.0, (5, 55))
    functions = (
        metrics.aggregate_mean,
        metrics.aggregate_median,
        metrics.aggregate_iqm,
        metrics.aggregate_optimality_gap,
    )
    np.testing.assert_allclose(statistics.aggregates(scores), [f(scores) for f in functions])


def test_probability_of_improvement_equals_rliables():
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 4, (5, 7)) / 2, rng.integers(0, 4, (3, 7)) / 2  # with ties
    expected = metrics.probability_of_improvement(x, y)
    np.testing.assert_allclose(statistics.probability_of_improvement(x, y), [expected])
    # By hand, with unequal seeds: game 1 (1 > 0, 1 = 1): 3/4; game 2 (0 > 1, 2 > 1): 1/2.
    x, y = np.array([[1.0, 0.0], [NAN, 2.0]]), np.array([[0.0, 1.0], [1.0, NAN]])
    np.testing.assert_allclose(statistics.probability_of_improvement(x, y), [0.625])


def test_profile_equals_rliables():
    scores = np.round(np.random.default_rng(2).gamma(1.0, 2.0, (5, 9)), 1)
    taus = np.linspace(0, 3, 31)
    expected = library.score_distributions(scores, taus)
    np.testing.assert_allclose(statistics.profile(scores, taus), expected)
    with_gap = np.array([[0.0, 4.0], [1.0, NAN]])
    np.testing.assert_allclose(
        statistics.profile(with_gap, np.array([0, 0.5, 4])), [2 / 3, 2 / 3, 0]
    )


@pytest.mark.slow
def test_intervals_agree_with_rliables():
    scores = np.random.default_rng(3).gamma(1.0, 1.0, (5, 20))
    ours = statistics.interval(statistics.aggregates, scores, repetitions=3000)
    np.random.seed(0)
    _, theirs = library.get_interval_estimates({"a": scores}, statistics.aggregates, reps=3000)
    low, high = theirs["a"]
    assert (np.abs(ours.low - low) < 0.06 * (high - low)).all()
    assert (np.abs(ours.high - high) < 0.06 * (high - low)).all()
    np.testing.assert_array_equal(ours.value, statistics.aggregates(scores))


def test_the_interval_of_a_mean_is_the_known_one():
    """One game: the bootstrap of a mean of n runs has standard deviation s / sqrt(n)."""
    scores = np.random.default_rng(4).normal(size=(200, 1))
    interval = statistics.interval(lambda x: x.mean(keepdims=True)[0], scores, repetitions=4000)
    half = scipy.stats.norm.ppf(0.975) * scores.std() / np.sqrt(200)
    assert (interval.high - interval.low).item() / 2 == pytest.approx(half, rel=0.05)


def test_each_game_is_resampled_among_its_own_seeds():
    scores = np.array([[1.0, 100.0], [2.0, 200.0], [3.0, 300.0], [NAN, 400.0]])
    seen = [set(), set()]

    def statistic(sample):
        assert np.array_equal(np.isnan(sample), np.isnan(scores))
        for game in range(2):
            seen[game] |= set(sample[~np.isnan(sample[:, game]), game])
        return statistics.mean_over_seeds(sample)

    interval = statistics.interval(statistic, scores, repetitions=200)
    assert seen == [{1, 2, 3}, {100, 200, 300, 400}]
    np.testing.assert_allclose(interval.value, [2, 250])
    assert 1 <= interval.low[0] < 2 < interval.high[0] <= 3


def test_a_run_is_drawn_wherever_it_stands():
    def interval(*of_one_game):
        scores = np.array(of_one_game)[:, None]
        found = statistics.interval(statistics.mean_over_seeds, scores, repetitions=200)
        return [*found.low, *found.high]

    assert interval(NAN, 1.0, NAN, 2.0, 3.0) == interval(1.0, 2.0, 3.0, NAN, NAN)
    low, high = interval(NAN, 1.0, 2.0, 3.0)
    assert 1 <= low < 1.5 and 2.5 < high <= 3


def test_intervals_depend_on_the_seed_alone():
    np.random.seed(1)
    first = statistics.interval(statistics.aggregates, TWO_GAMES, repetitions=50, seed=7)
    np.random.seed(2)
    again = statistics.interval(statistics.aggregates, TWO_GAMES, repetitions=50, seed=7)
    other = statistics.interval(statistics.aggregates, TWO_GAMES, repetitions=50, seed=8)
    np.testing.assert_array_equal(first.low, again.low)
    assert not np.array_equal(first.low, other.low)


def test_two_agents_are_resampled_independently():
    x = np.random.default_rng(5).normal(0.5, 1, (6, 12))
    y = np.random.default_rng(6).normal(0.0, 1, (4, 12))
    statistic = statistics.probability_of_improvement
    ours = statistics.interval(statistic, x, y, repetitions=3000)
    np.random.seed(0)
    _, theirs = library.get_interval_estimates({"xy": [x, y]}, statistic, reps=3000)
    np.testing.assert_allclose([ours.low, ours.high], theirs["xy"], atol=0.006)


def test_score_matrix():
    rows = [("Pong", 1.0), ("Alien", 3.0), ("Pong", 2.0), ("Qbert", 8.0)]
    table = pd.DataFrame(rows, columns=["game", "normalised"])
    np.testing.assert_array_equal(
        statistics.score_matrix(table, ["Alien", "Pong", "Skiing"]), [[3, 1, NAN], [NAN, 2, NAN]]
    )


def test_curves_end_where_a_game_has_no_more_runs():
    returns = {"Pong": [[1.0, 2.0, 3.0], [3.0]], "Alien": [[10.0, 20.0]]}
    rows = [(game, np.array(curve)) for game, curves in returns.items() for curve in curves]
    table = pd.DataFrame(rows, columns=["game", "returns"])
    curves = statistics.curve_array(table, ["Pong", "Alien"])
    assert curves.shape == (2, 2, 3)
    # Pong 2 2 3, Alien 10 20 -.
    of_games = statistics.mean_median_iqm(curves)
    np.testing.assert_array_equal(of_games[:2], [[6, 11, NAN], [6, 11, NAN]])
    # Of three runs, and of two, none is cut.
    np.testing.assert_allclose(of_games[2], [14 / 3, 11, NAN])


def test_iqm_curves_equal_the_aggregate_at_each_iteration():
    curves = np.random.default_rng(0).gamma(1.0, 2.0, (5, 11, 3))
    curves[3:, 4] = curves[1:, 7] = NAN
    expected = np.transpose([statistics.aggregates(curves[..., i])[:3] for i in range(3)])
    np.testing.assert_allclose(statistics.mean_median_iqm(curves), expected)


def welch(x, y):
    test = scipy.stats.ttest_ind(x, y, equal_var=False)
    return [*test.confidence_interval(0.95)]


def test_relative_intervals_are_welchs():
    rng = np.random.default_rng(8)
    own, other = rng.normal(0.6, 0.2, (5, 2)), rng.normal(0.5, 0.1, (4, 2))
    other[3, 1] = NAN
    found = statistics.relative_intervals(own, other)
    np.testing.assert_allclose(found.value, own.mean(0) - [other[:, 0].mean(), other[:3, 1].mean()])
    expected = np.transpose([welch(own[:, 0], other[:, 0]), welch(own[:, 1], other[:3, 1])])
    np.testing.assert_allclose([found.low, found.high], expected)
    # Two seeds have none, equal ones no width.
    found = statistics.relative_intervals(own, other[:2])
    assert np.isnan(found.low).all() and not np.isnan(found.value).any()
    assert statistics.relative_intervals(own * 0 + 3, other * 0 + 2).low[0] == 0.5
    # Above the human's score the denominator is a mean too: it holds its level.
    own, other = rng.normal(3.0, 0.6, (2000, 5, 1)), rng.normal(2.0, 0.6, (2000, 5, 1))
    found = [statistics.relative_intervals(*pair) for pair in zip(own, other, strict=True)]
    covers = np.mean([one.low[0] <= 0.5 <= one.high[0] for one in found])
    assert 0.93 < covers < 0.97


def test_relative_intervals_do_not_depend_on_rounding():
    """A reference by whose mean scores are divided has 1, or a little less or more."""
    own, reference = np.array([[0.3], [0.5], [0.7]]), np.array([[0.9], [1.0], [1.1]])
    found = [statistics.relative_intervals(own, reference * f) for f in (1 - 2e-16, 1, 1 + 3e-16)]
    np.testing.assert_allclose(found, np.broadcast_to(found[1], (3, 3, 1)), rtol=1e-9)
    # Variances of the means are 0.04 / 3 and 0.01 / 3, slopes 1 and 0.5; Welch's degrees of
    # freedom are (0.04 + 0.0025)**2 / ((0.04**2 + 0.0025**2) / 2).
    half = scipy.stats.t.ppf(0.975, 0.0425**2 / ((0.04**2 + 0.0025**2) / 2)) * (0.0425 / 3) ** 0.5
    np.testing.assert_allclose(found[1], [[-0.5], [-0.5 - half], [-0.5 + half]])
    # The same where the first agent's mean divides.
    found = [statistics.relative_intervals(reference * f, own) for f in (1 - 2e-16, 1, 1 + 3e-16)]
    np.testing.assert_allclose(found, np.tile([[0.5], [0.5 - half], [0.5 + half]], (3, 1, 1)))


def over_games(scores):
    return statistics.t_interval(*scores.T, weights=[1 / 5] * 5, least=3)


def test_intervals_of_means_hold_their_level():
    rng = np.random.default_rng(9)
    scores = rng.normal(1.0, 1.0, (5, 1))
    expected = scipy.stats.ttest_1samp(scores[:, 0], 0).confidence_interval(0.95)
    found = statistics.t_interval(scores[:, 0])
    np.testing.assert_allclose([found.low, found.high], expected)
    # Five games of other spreads and numbers of seeds.
    covered = []
    for scores in rng.normal(1.0, [0.1, 0.2, 0.5, 1.0, 2.0], (2000, 5, 5)):
        scores[3:, 0] = NAN
        low, high = over_games(scores)[1:]
        covered.append(low <= 1 <= high)
    assert 0.94 < np.mean(covered) < 0.97
    scores[2:, 1] = NAN
    found = over_games(scores)
    assert np.isnan(found.low) and not np.isnan(found.value)


def test_thresholds_end_where_nine_of_ten_runs_of_the_best_lie():
    few = np.array([[-0.2, 0.1], [0.3, NAN]])
    many = np.linspace(0, 10, 101)[:, None]
    found = statistics.thresholds([few, many])
    assert (found[0], found[-1]) == pytest.approx((-0.2, 9.0))


@pytest.mark.parametrize("num_seeds", [1, 2, 3])
def test_an_interval_needs_three_seeds_on_every_game(num_seeds):
    scores = np.random.default_rng(7).normal(size=(4, 3))
    scores[num_seeds:, 1] = NAN
    found = statistics.interval(statistics.aggregates, scores, repetitions=20)
    np.testing.assert_array_equal(found.value, statistics.aggregates(scores))
    assert np.isnan([found.low, found.high]).all() == (num_seeds < 3)


def test_thresholds_rise_where_all_scores_are_low():
    found = statistics.thresholds([np.array([[-5.0, -2.0]]), np.array([[-4.0, -3.0]])])
    assert (found[0], found[-1]) == (-5, pytest.approx(-2.3)) and (np.diff(found) > 0).all()
    # A few low scores don't stretch the axis.
    found = statistics.thresholds([np.array([[-5.0, 1.0]])])
    assert found[0] == -1


def test_t_intervals_by_hand():
    sample = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    value, low, high = statistics.t_interval(sample)
    # t(0.975, 2) is 4.302653, the standard error 1 / sqrt(3).
    np.testing.assert_allclose((value[0], low[0], high[0]), (2, -0.484138, 4.484138), 1e-5)
    np.testing.assert_allclose((value[1], low[1], high[1]), 5)
    found = statistics.t_interval(sample[:, 0], np.array([0.0, 4.0, 2.0, 2.0]))
    # Variances 1 / 3 and (8 / 3) / 4: Welch's degrees of freedom are
    # 1 / (1 / 18 + 4 / 27) = 54 / 11, t(0.975, 54 / 11) is 2.584966.
    np.testing.assert_allclose(found, (0, -2.584966, 2.584966), atol=1e-6)
    assert np.isnan(statistics.t_interval(sample[:1])[1:]).all()
    assert np.isnan(statistics.t_interval(sample, sample[:1])[1:]).all()
