import math

import numpy as np
import pytest

from log_dqn.linear import learning, mdp, plain, schedules
from log_dqn.linear.chain import Chain
from log_dqn.linear.learning import Schedules
from log_dqn.mapping import LogMapping

ANNEALED = Schedules(schedules.geometric(0.01, 40), schedules.geometric(0.1, 40))
CONSTANT = Schedules(schedules.constant(0.01), schedules.constant(0.1))


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9, 0.99])
def test_regular_kernel_equals_plain_version(width, gamma):
    arguments = (Chain(), width, gamma, schedules.geometric(0.001, 40), 60)
    kernel = learning.regular(*arguments, np.random.default_rng(7), measure_every=10)
    expected = plain.regular(*arguments, np.random.default_rng(7), measure_every=10)
    assert kernel.shape == (6, 50, 2)
    np.testing.assert_allclose(kernel, expected, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("chain", [Chain(), Chain(p=0.1, r_left=101, r_right=99, r_step=50)])
@pytest.mark.parametrize("step_sizes", [ANNEALED, CONSTANT])
@pytest.mark.parametrize("width", [1, 3, 5])
@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9, 0.99])
def test_logarithmic_kernel_equals_plain_version(chain, step_sizes, width, gamma):
    arguments = (chain, width, gamma, 200, step_sizes, 60)
    kernel, _ = learning.logarithmic(*arguments, np.random.default_rng(7), measure_every=10)
    expected = plain.logarithmic(*arguments, np.random.default_rng(7), measure_every=10)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(kernel, expected, rtol=1e-9, atol=1e-13 * scale)


def test_first_updates_by_hand():
    # One state, alpha = 1/2: a_L is drawn from +1 and -1, so is a_R; no bootstrapping.
    rng = np.random.default_rng(3)
    q = learning.regular(Chain(n_states=1), 1, 0.9, schedules.constant(0.5), 3, rng, 1)
    draws = iter(np.random.default_rng(3).random(6))
    expected, order = [0.0, 0.0], [0, 1]
    for sweep in range(3):
        chosen, slip = divmod(2 * next(draws), 1)
        # The pair drawn first moves to the end; the other follows.
        if chosen == 0:
            order.reverse()
        for a, fraction in ((order[1], slip), (order[0], next(draws))):
            moves_left = (a == 0) != (fraction < 0.25)
            expected[a] += 0.5 * ((1 if moves_left else -1) - expected[a])
        np.testing.assert_array_equal(q[sweep, 0], expected)


def test_one_logarithmic_update_by_hand():
    # No slips, so the first sweep of one state brings +1 to a_L and -1 to a_R, whatever the
    # order: U^ = beta_reg in one head, and Q-tilde = beta_log (ln(U^ + gamma^k) - ln(gamma^k)).
    step_sizes = Schedules(schedules.constant(0.5), schedules.constant(0.2))
    chain = Chain(n_states=1, p=0.0)
    q, _ = learning.logarithmic(chain, 1, 0.5, 4, step_sizes, 1, np.random.default_rng(0), 1)
    tq = 0.5 * math.log((0.2 + 1 / 16) / (1 / 16))
    expected = math.exp(tq) / 16 - 1 / 16
    np.testing.assert_allclose(q, [[[expected, -expected]]], rtol=1e-14)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.99])
def test_the_plain_mapping_is_the_papers(gamma):
    # One update with beta_reg = beta_log = 1 puts f(U) into Q-tilde and inverts it; the same
    # through LogMapping, for targets of many sizes.
    mapping = LogMapping(gamma, 200, 1.0, 0.0, additive=True)
    one = Schedules(schedules.constant(0.3), schedules.constant(1.0))
    for reward in (1e-12, 1e-3, 1.0, 50.0):
        chain = Chain(n_states=1, p=0.0, r_left=reward, r_right=0.0)
        q, _ = learning.logarithmic(chain, 1, gamma, 200, one, 1, np.random.default_rng(0), 1)
        expected = mapping.inverse(0.3 * mapping.f(np.float64(reward)))
        np.testing.assert_allclose(q[0, 0, 0], expected, rtol=1e-11)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.96])
@pytest.mark.parametrize("width", [1, 3])
def test_regular_equals_value_iteration_in_a_deterministic_task(gamma, width):
    chain = Chain(p=0.0)
    q = learning.regular(
        chain, width, gamma, schedules.constant(0.5), 20_000, np.random.default_rng(0), 20_000
    )
    np.testing.assert_allclose(q[0], mdp.value_iteration(chain.mdp(), gamma), atol=1e-12)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.96])
@pytest.mark.parametrize("beta_reg", [0.5, 1.0])
def test_tabular_logarithmic_equals_value_iteration_in_a_deterministic_task(gamma, beta_reg):
    # Section 4.1: without slips even beta_reg = 1 is not biased.
    chain = Chain(p=0.0)
    step_sizes = Schedules(schedules.constant(0.5), schedules.constant(beta_reg))
    q, _ = learning.logarithmic(
        chain, 1, gamma, 200, step_sizes, 20_000, np.random.default_rng(0), 20_000
    )
    np.testing.assert_allclose(q[0], mdp.value_iteration(chain.mdp(), gamma), atol=1e-12)


def test_tabular_regular_equals_value_iteration_with_slips():
    # Decreasing step-sizes; 1e-2 is several standard errors.
    alphas = schedules.polynomial(0.9, 20, 100_000)
    q = learning.regular(Chain(), 1, 0.8, alphas, 100_000, np.random.default_rng(0), 100_000)
    np.testing.assert_allclose(q[0], mdp.value_iteration(Chain().mdp(), 0.8), atol=1e-2)


def test_beta_log_of_one_is_regular_q_learning():
    # f(U^) becomes Q-tilde, whose inverse is U^: regular Q-learning with alpha = beta_reg.
    step_sizes = Schedules(schedules.constant(1.0), schedules.constant(0.05))
    chain = Chain(r_right=0.0)
    log, _ = learning.logarithmic(chain, 1, 0.7, 100, step_sizes, 500, np.random.default_rng(1))
    regular = learning.regular(
        chain, 1, 0.7, schedules.constant(0.05), 500, np.random.default_rng(1)
    )
    np.testing.assert_allclose(log, regular, rtol=1e-9, atol=1e-14)


def test_pushing_values_up_is_starting_lower():
    # The two ways to run the second variation of Appendix B, where doubles allow both.
    gamma, alphas = 0.9, schedules.geometric(0.001, 1000)
    pushed = Chain(r_left=101.0, r_right=99.0, r_step=100 * (1 - gamma))
    high = learning.regular(pushed, 3, gamma, alphas, 2000, np.random.default_rng(5))
    low = learning.regular(Chain(), 3, gamma, alphas, 2000, np.random.default_rng(5), q_init=-100.0)
    np.testing.assert_allclose(high - 100, low, atol=1e-9)
    optimal = mdp.value_iteration(pushed.mdp(), gamma)
    np.testing.assert_allclose(optimal - 100, mdp.value_iteration(Chain().mdp(), gamma), atol=1e-10)


def test_targets_are_bounded_above():
    # With alpha = 1 and wide tiles values would overshoot; a target is never above 1.
    chain = Chain(r_step=0.5)
    q = learning.regular(chain, 1, 0.99, schedules.constant(1.0), 500, np.random.default_rng(0))
    assert q.max() == 1


def test_overshooting_values_stay_finite():
    # With step-sizes of 1 and tiles of width 5, estimates in the log space overshoot beyond e^700.
    one = Schedules(schedules.constant(1.0), schedules.constant(1.0))
    q, _ = learning.logarithmic(Chain(), 5, 0.1, 300, one, 200, np.random.default_rng(0), 1)
    assert np.all(np.isfinite(q))
    assert np.abs(q).max() > 1e3


def test_independent_of_numpys_global_state():
    results = []
    for seed in (1, 2):
        np.random.seed(seed)
        rng = np.random.default_rng(0)
        results.append(learning.regular(Chain(), 2, 0.5, schedules.constant(0.1), 100, rng))
    np.testing.assert_array_equal(*results)
    assert np.random.random() == np.random.RandomState(2).random()


@pytest.mark.parametrize(
    ("width", "gamma", "k", "message"),
    [
        (0, 0.5, 200, "tile width is 0"),
        (1, 1.0, 200, "gamma is 1.0"),
        (1, 0.5, 0, "k is 0"),
        (1, 0.1, 400, "at most 300"),
    ],
)
def test_bad_settings(width, gamma, k, message):
    with pytest.raises(ValueError, match=message):
        learning.logarithmic(Chain(), width, gamma, k, CONSTANT, 100, np.random.default_rng(0))


def test_schedules_by_hand():
    np.testing.assert_allclose(schedules.geometric(0.01, 4), [1, 10**-0.5, 0.1, 10**-1.5, 0.01])
    np.testing.assert_array_equal(schedules.constant(0.1), [0.1])
    np.testing.assert_allclose(schedules.polynomial(0.5, 1, 4), [1, 2**-0.5, 3**-0.5, 0.5])
