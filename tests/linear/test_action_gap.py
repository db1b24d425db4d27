import mpmath
import numpy as np
import pytest

from log_dqn.linear import action_gap
from log_dqn.linear.chain import Chain
from log_dqn.mapping import LogMapping


def test_deviation_by_hand():
    # log10 is 0, -2 and -4: mean -2, standard deviation sqrt(8 / 3). The gap of 0 is left out.
    gaps = np.array([1.0, 1e-2, 0.0, 1e-4])
    assert action_gap.deviation(gaps) == pytest.approx((8 / 3) ** 0.5, rel=1e-14)


def test_gaps_by_hand():
    plus = np.array([[0.5, 0.25], [1e-20, 3e-21]])
    minus = np.array([[0.0, 0.125], [0.0, 0.0]])
    np.testing.assert_allclose(action_gap.regular_gaps(plus, minus), [0.375, 7e-21], rtol=1e-14)
    # ln((0.5 + 0.25) / (0.25 + 0.25)), either way round.
    np.testing.assert_allclose(action_gap.log_gaps(plus, 0.25)[0], np.log(1.5), rtol=1e-14)
    np.testing.assert_allclose(action_gap.log_gaps(minus, 0.25)[0], np.log(1.5), rtol=1e-14)
    # ln((0.5 + 1 + 0.5) / (0.125 + 1 + 0.5)); and, far below rounding, 7e-21 / 1.5.
    gaps = action_gap.log_bias_gaps(plus, minus, 0.5, 1.0)
    np.testing.assert_allclose(gaps, [np.log(2 / 1.625), 7e-21 / 1.5], rtol=1e-13)


@pytest.mark.parametrize("gamma", [0.5, 0.96])
def test_log_gaps_are_those_of_the_mapping(gamma):
    plus, _ = Chain().optimal_heads(gamma)
    tq = LogMapping(gamma, 200, 1.0, 0.0, additive=True).f(plus)
    expected = tq[:, 0] - tq[:, 1]
    np.testing.assert_allclose(action_gap.log_gaps(plus, gamma**200), expected, rtol=1e-9)


@pytest.mark.parametrize(("gamma", "k"), [(0.1, 25), (0.1, 50), (0.5, 200), (0.99, 100)])
def test_deterministic_kappa_against_many_digits(gamma, k):
    plus, _ = Chain(p=0.0, r_right=0.0).optimal_heads(gamma)
    kappa = action_gap.deviation(action_gap.log_gaps(plus, gamma**k))
    with mpmath.workdps(400):
        g = mpmath.mpf(gamma)
        values = [(g**s, g ** (s + 2) if s < 49 else 0) for s in range(50)]
        logs = [
            mpmath.log10(mpmath.log(left + g**k) - mpmath.log(right + g**k))
            for left, right in values
        ]
        mean = sum(logs) / 50
        expected = mpmath.sqrt(sum((x - mean) ** 2 for x in logs) / 50)
    assert kappa == pytest.approx(float(expected), rel=1e-10)
