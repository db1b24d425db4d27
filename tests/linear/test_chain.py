import mpmath
import numpy as np
import pytest

from log_dqn.linear import mdp
from log_dqn.linear.chain import Chain
from log_dqn.linear.experiments import GAMMAS


def test_one_state_by_hand():
    process = Chain(n_states=1, p=0.25).mdp()
    np.testing.assert_array_equal(process.rewards, [[0.75 - 0.25, 0.25 - 0.75]])
    np.testing.assert_array_equal(process.transitions, np.zeros((1, 2, 1)))


def test_three_states_by_hand():
    process = Chain(
        n_states=3, p=0.25, r_left=2.0, r_right=-4.0, r_step=1.0, largest_target=4.0
    ).mdp()
    np.testing.assert_array_equal(
        process.transitions[:, 0], [[0, 0.25, 0], [0.75, 0, 0.25], [0, 0.75, 0]]
    )
    np.testing.assert_array_equal(
        process.transitions[:, 1], [[0, 0.75, 0], [0.25, 0, 0.75], [0, 0.25, 0]]
    )
    np.testing.assert_array_equal(
        process.rewards,
        [
            [0.75 * 2 + 0.25, 0.25 * 2 + 0.75],
            [1, 1],
            [0.75 - 0.25 * 4, 0.25 - 0.75 * 4],
        ],
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


@pytest.mark.parametrize("gamma", [0.1, 0.9])
def test_heads_keep_their_digits(gamma):
    # V of a_L is A x^s + B y^s with x, y the roots of gamma p x^2 - x + gamma (1 - p) = 0, in
    # 300 digits; ends at positions 0 and 51.
    with mpmath.workdps(300):
        p, g = mpmath.mpf(0.25), mpmath.mpf(gamma)
        root = mpmath.sqrt(1 - 4 * g * g * p * (1 - p))
        x, y = (1 - root) / (2 * g * p), (1 + root) / (2 * g * p)
        # Plus: gamma V = 1 at position 0 and 0 at 51; minus: 0 at position 0 and 1 at 51.
        expected = {}
        for name, left, right in (("plus", 1 / g, 0), ("minus", 0, 1 / g)):
            a, b = mpmath.lu_solve(
                mpmath.matrix([[1, 1], [x**51, y**51]]), mpmath.matrix([left, right])
            )
            expected[name] = [float(a * x**s + b * y**s) for s in range(1, 51)]
    plus, minus = Chain().optimal_heads(gamma)
    np.testing.assert_allclose(plus[:, 0], expected["plus"], rtol=1e-12)
    np.testing.assert_allclose(minus[:, 0], expected["minus"], rtol=1e-12)


def test_split():
    plus, minus = Chain(r_left=2.0, r_right=-3.0, r_step=-0.5, largest_target=3.0).split()
    assert (plus.r_left, plus.r_right, plus.r_step) == (2, 0, 0)
    assert (minus.r_left, minus.r_right, minus.r_step) == (0, 3, 0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_states": 0}, "n_states is 0"),
        ({"p": 1.5}, "p is 1.5"),
        ({"r_right": -5.0}, "largest_target is 1.0; it must be 5.0 or more"),
        ({"r_left": -1.0, "r_right": -2.0}, "largest_target is 1.0; it must be 2.0 or more"),
        ({"r_step": -3.0, "largest_target": 2.0}, "largest_target is 2.0; it must be 3.0 or more"),
        ({"largest_target": float("nan")}, "largest_target is nan"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        Chain(**settings)


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        ({"r_left": 0.0, "r_right": 1.0}, 0),
        ({"p": 0.75}, 0),
        # Worth less than 0, the left end is to be put off.
        ({"r_left": -0.5, "r_right": -1.0}, 0),
        # The reward at hand is worth more than the larger one far away.
        ({"r_left": 1.0, "r_right": 0.5}, 43),
        # Going on pays more than ending.
        ({"r_step": 0.9, "largest_target": 9.0}, 0),
    ],
)
def test_heads_need_a_left_to_be_optimal(settings, state):
    chain = Chain(**settings)
    # Value iteration, which assumes nothing, agrees about the first state with another action.
    q = mdp.value_iteration(chain.mdp(), 0.9)
    assert q[state, 0] < q[state, 1]
    with pytest.raises(ValueError, match=f"is not in state {state}"):
        chain.optimal_heads(0.9)
