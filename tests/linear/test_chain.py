import mpmath
import numpy as np
import pytest

from log_dqn.linear import chain, mdp
from log_dqn.linear.chain import Chain
from log_dqn.linear.experiments import GAMMAS


def test_one_state_by_hand():
    process = Chain(n_states=1, p=0.25).mdp()
    np.testing.assert_array_equal(process.rewards, [[0.75 - 0.25, 0.25 - 0.75]])
    np.testing.assert_array_equal(process.transitions, np.zeros((1, 2, 1)))


def test_three_states_by_hand():
    process = Chain(n_states=3, p=0.25, r_left=2.0, r_right=-4.0, r_step=1.0).mdp()
    np.testing.assert_array_equal(
        process.transitions[:, 0], [[0, 0.25, 0], [0.75, 0, 0.25], [0, 0.75, 0]]
    )
    np.testing.assert_array_equal(
        process.transitions[:, 1], [[0, 0.75, 0], [0.25, 0, 0.75], [0, 0.25, 0]]
    )
    np.testing.assert_array_equal(
        process.rewards,
        [[0.75 * 2 + 0.25, 0.25 * 2 + 0.75], [1, 1], [0.75 - 0.25 * 4, 0.25 - 0.75 * 4]],
    )


def test_deterministic_values_are_powers_of_gamma():
    plus, minus = Chain(p=0.0, r_right=0.0).optimal_heads(0.3)
    # State s (from 0) reaches the left end in s + 1 steps; a_R takes two more, except at the
    # right end, where the episode is over.
    np.testing.assert_allclose(plus[:, 0], 0.3 ** np.arange(50), rtol=1e-13)
    np.testing.assert_allclose(plus[:, 1], [*(0.3 ** np.arange(2, 51)), 0], rtol=1e-13)
    np.testing.assert_array_equal(minus, 0)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_heads_make_up_the_optimal_values(gamma):
    plus, minus = Chain().optimal_heads(gamma)
    optimal = mdp.value_iteration(Chain().mdp(), gamma)
    np.testing.assert_allclose(plus - minus, optimal, atol=1e-14)
    # "The policy that always takes a_L maximizes the sum of rewards for any discount factor."
    assert np.all((plus - minus)[:, 0] > (plus - minus)[:, 1])


def test_split():
    plus, minus = Chain(r_left=2.0, r_right=-3.0, r_step=-0.5).split()
    assert (plus.r_left, plus.r_right, plus.r_step) == (2, 0, 0)
    assert (minus.r_left, minus.r_right, minus.r_step) == (0, 3, 0.5)


def test_deviation_by_hand():
    # log10 is 0, -2 and -4: mean -2, standard deviation sqrt(8 / 3). The gap of 0 is left out.
    gaps = np.array([1.0, 1e-2, 0.0, 1e-4])
    assert chain.deviation(gaps) == pytest.approx((8 / 3) ** 0.5, rel=1e-14)


def test_gaps_by_hand():
    plus = np.array([[0.5, 0.25], [1e-20, 3e-21]])
    minus = np.array([[0.0, 0.125], [0.0, 0.0]])
    np.testing.assert_allclose(chain.regular_gaps(plus, minus), [0.375, 7e-21], rtol=1e-14)
    # ln((0.5 + 0.25) / (0.25 + 0.25)), either way round.
    np.testing.assert_allclose(chain.log_gaps(plus, 0.25)[0], np.log(1.5), rtol=1e-14)
    np.testing.assert_allclose(chain.log_gaps(minus, 0.25)[0], np.log(1.5), rtol=1e-14)
    # ln((0.5 + 1 + 0.5) / (0.125 + 1 + 0.5)); and, far below rounding, 7e-21 / 1.5.
    gaps = chain.log_bias_gaps(plus, minus, 0.5, 1.0)
    np.testing.assert_allclose(gaps, [np.log(2 / 1.625), 7e-21 / 1.5], rtol=1e-13)


@pytest.mark.parametrize(("gamma", "k"), [(0.1, 25), (0.1, 50), (0.5, 200), (0.99, 100)])
def test_deterministic_kappa_against_many_digits(gamma, k):
    plus, _ = Chain(p=0.0, r_right=0.0).optimal_heads(gamma)
    kappa = chain.deviation(chain.log_gaps(plus, gamma**k))
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
