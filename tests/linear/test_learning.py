import math

import mpmath
import numpy as np
import pytest

from log_dqn.linear import kernels, learning, mdp, plain
from log_dqn.linear.chain import Chain
from log_dqn.linear.experiments import WIDTHS
from log_dqn.linear.learning import constant, geometric, polynomial
from log_dqn.mapping import LogMapping

ANNEALED = geometric(0.01, 40), geometric(0.1, 40)
CONSTANT = constant(0.01), constant(0.1)


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9, 0.99])
def test_regular_kernel_equals_plain_version(width, gamma):
    arguments = (Chain(), width, gamma, geometric(0.001, 40), 60)
    kernel = learning.regular(*arguments, np.random.default_rng(7), measure_every=10)
    expected = plain.regular(*arguments, np.random.default_rng(7), measure_every=10)
    assert kernel.shape == (6, 50, 2)
    np.testing.assert_allclose(kernel, expected, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize(
    "chain", [Chain(), Chain(p=0.1, r_left=101, r_right=99, r_step=50, largest_target=101)]
)
@pytest.mark.parametrize("step_sizes", [ANNEALED, CONSTANT])
@pytest.mark.parametrize("width", [1, pytest.param(3, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize(
    "gamma", [0.1, 0.99, *(pytest.param(g, marks=pytest.mark.slow) for g in (0.5, 0.9))]
)
def test_logarithmic_kernel_equals_plain_version(chain, step_sizes, width, gamma):
    arguments = (chain, width, gamma, 200, *step_sizes, 60)
    kernel, _ = learning.logarithmic(*arguments, np.random.default_rng(7), measure_every=10)
    expected = plain.logarithmic(*arguments, np.random.default_rng(7), measure_every=10)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(kernel, expected, rtol=1e-9, atol=1e-13 * scale)


def test_first_updates_by_hand():
    # One state, alpha = 1/2: a_L is drawn from +1 and -1, so is a_R; no bootstrapping.
    rng = np.random.default_rng(3)
    q = learning.regular(Chain(n_states=1), 1, 0.9, constant(0.5), 3, rng, 1)
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
    step_sizes = constant(0.5), constant(0.2)
    chain = Chain(n_states=1, p=0.0)
    q, _ = learning.logarithmic(chain, 1, 0.5, 4, *step_sizes, 1, np.random.default_rng(0), 1)
    tq = 0.5 * math.log((0.2 + 1 / 16) / (1 / 16))
    expected = math.exp(tq) / 16 - 1 / 16
    np.testing.assert_allclose(q, [[[expected, -expected]]], rtol=1e-14)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.99])
def test_the_plain_mapping_is_the_papers(gamma):
    unit = gamma**200
    x = np.array([0.0, 1e-60, 1e-12, 1e-3, 1.0, 50.0])
    with mpmath.workdps(300):
        # c ln(x + gamma^k) + d with c = 1 and d = -ln(q_init + gamma^k) at q_init = 0.
        expected = [float(mpmath.log(mpmath.mpf(v) + unit) - mpmath.log(unit)) for v in x]
    np.testing.assert_allclose(plain.f(x, unit), expected, rtol=1e-13)
    mapping = LogMapping(gamma, 200, 1.0, 0.0, additive=True)
    np.testing.assert_allclose(plain.f(x[2:], unit), mapping.f(x[2:]), rtol=1e-11)
    np.testing.assert_allclose(plain.inverse(plain.f(x, unit), unit), x, rtol=1e-12)


@pytest.mark.parametrize("module", [learning, plain])
@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.99])
def test_an_update_goes_through_the_papers_mapping(module, gamma):
    # With beta_reg = 1, an update from 0 makes Q-tilde beta_log f(r).
    mapping = LogMapping(gamma, 200, 1.0, 0.0, additive=True)
    step_sizes = constant(0.3), constant(1.0)
    for reward in (1e-12, 1e-3, 1.0, 50.0):
        chain = Chain(n_states=1, p=0.0, r_left=reward, r_right=0.0, largest_target=50.0)
        rng = np.random.default_rng(0)
        result = module.logarithmic(chain, 1, gamma, 200, *step_sizes, 1, rng, 1)
        q = result[0] if module is learning else result
        expected = mapping.inverse(0.3 * mapping.f(np.float64(reward)))
        np.testing.assert_allclose(q[0, 0, 0], expected, rtol=1e-11)


def test_a_tie_of_the_next_actions_goes_to_a_left():
    # Two states, no slips, gamma = 1/2, one sweep in which (0, a_L) comes before (1, a_L) and
    # that before (0, a_R). In units of gamma^k = 1/16 an update from 0 with beta_log = 1/2 and
    # beta_reg = 1 makes the target u half(u).
    def half(u):
        return math.sqrt(1 + u) - 1

    step_sizes = constant(0.5), constant(1.0)
    rng = np.random.default_rng(0)
    first, _ = learning.logarithmic(Chain(1, p=0.0), 1, 0.5, 4, *step_sizes, 1, rng, 1)
    # The very double that a_L gets in state 0, so that both heads of (1, a_L) are updated alike:
    # its Q is exactly 0, as is that of (1, a_R), whose heads are 0.
    x = float(first[0, 0, 0])
    chain = Chain(2, p=0.0, r_left=1.0, r_right=0.0, r_step=-0.5 * x)

    def order(seed):
        samples = plain._transitions(chain, np.arange(4), np.random.default_rng(seed))
        return [(s, a) for s, a, _, _ in samples]

    def fits(seed):
        found = order(seed)
        return found.index((0, 0)) < found.index((1, 0)) < found.index((0, 1))

    seed = next(filter(fits, range(100)))
    arguments = (chain, 1, 0.5, 4, *step_sizes, 1)
    kernel, _ = learning.logarithmic(*arguments, np.random.default_rng(seed), 1)
    expected = plain.logarithmic(*arguments, np.random.default_rng(seed), 1)
    assert x == pytest.approx(half(16) / 16, rel=1e-14)
    y = half(0.5 * half(16))
    # With a_R it would be -half(0.5 * half(16)) / 16.
    by_hand = (half(0.5 * y) - half(0.5 * half(16) + 0.5 * y)) / 16
    for q in (kernel, expected):
        assert q[0, 1, 0] == q[0, 1, 1] == 0
        assert q[0, 0, 1] == pytest.approx(by_hand, rel=1e-12)


def exact_error_and_bound(q, u_hat, beta):
    """Returns Q_{t+1}, e_t and the right-hand side of equation 33, in units of gamma^k."""
    a, b, beta = mpmath.mpf(q), mpmath.mpf(u_hat), mpmath.mpf(beta)
    f, inverse = (lambda x: mpmath.log(x + 1)), (lambda y: mpmath.exp(y) - 1)
    new_q = inverse((1 - beta) * f(a) + beta * f(b))
    bound = beta * (a - b) * mpmath.log((a - b) / (b + 1) + 1)
    return new_q, new_q - ((1 - beta) * a + beta * b), bound


@pytest.mark.parametrize("beta", [1e-3, 0.1, 0.5, 0.99, 1.0])
@pytest.mark.parametrize(
    ("q", "u_hat"),
    [
        (0.0, 0.5), (0.5, 0.0), (0.0, 1e20), (1e20, 0.0), (3.0, 3.5), (1e9, 1e9 + 2),
        (1e9, 1.00002e9), (1e60, 0.9e60), (2.0, 2.0 + 1e-6),
    ],
)  # fmt: skip
def test_error_over_bound_against_many_digits(q, u_hat, beta):
    with mpmath.workdps(100):
        new_q, error, bound = exact_error_and_bound(q, u_hat, beta)
        expected = float(abs(error) / bound)
    ratio = kernels._error_ratio(q, u_hat, float(new_q), beta)
    assert ratio == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_wrong_update_exceeds_the_bound():
    # Regular Q-learning's update has no error; one with a step-size of 1 has far too large a one.
    assert kernels._error_ratio(1.0, 2.0, 1.1, 0.1) == pytest.approx(0, abs=1e-14)
    assert kernels._error_ratio(1.0, 2.0, 2.0, 0.1) == pytest.approx(0.9 / (0.1 * math.log(1.5)))


@pytest.mark.parametrize("width", [1, 3])
def test_error_ratio_of_a_first_update(width):
    # One state, no slips: from 0, a_L's Q+ and a_R's Q- are updated towards U^ = 0.2 / gamma^k.
    step_sizes = constant(0.5), constant(0.2)
    arguments = Chain(1, p=0.0), width, 0.5, 4, *step_sizes, 1, np.random.default_rng(0), 1
    _, ratios = learning.logarithmic(*arguments, with_errors=True)
    with mpmath.workdps(50):
        _, error, bound = exact_error_and_bound(0, 3.2, 0.5)
    np.testing.assert_allclose(ratios, [float(abs(error) / bound)], rtol=1e-9)


def test_error_ratios_are_those_since_the_measurement_before():
    # With beta_log near 1 the error is far below its bound.
    step_sizes = np.repeat([0.5, 0.99], 30), constant(0.1)

    def ratios(measure_every):
        rng = np.random.default_rng(2)
        return learning.logarithmic(
            Chain(), 1, 0.9, 200, *step_sizes, 60, rng, measure_every, with_errors=True
        )[1]

    every_sweep = ratios(1)
    assert len(set(every_sweep)) == 60
    np.testing.assert_array_equal(ratios(10), every_sweep.reshape(6, 10).max(axis=1))
    # Falling at times: the largest so far would not.
    assert np.any(np.diff(ratios(10)) < 0)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.96])
@pytest.mark.parametrize("width", [1, 3])
def test_regular_equals_value_iteration_in_a_deterministic_task(gamma, width):
    chain, rng = Chain(p=0.0), np.random.default_rng(0)
    q = learning.regular(chain, width, gamma, constant(0.5), 20_000, rng, 20_000)
    np.testing.assert_allclose(q[0], mdp.value_iteration(chain.mdp(), gamma), atol=1e-12)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.96])
@pytest.mark.parametrize("beta_reg", [0.5, 1.0])
def test_tabular_logarithmic_equals_value_iteration_in_a_deterministic_task(gamma, beta_reg):
    # Section 4.1: without slips even beta_reg = 1 is not biased.
    chain, rng = Chain(p=0.0), np.random.default_rng(0)
    step_sizes = constant(0.5), constant(beta_reg)
    q, _ = learning.logarithmic(chain, 1, gamma, 200, *step_sizes, 20_000, rng, 20_000)
    np.testing.assert_allclose(q[0], mdp.value_iteration(chain.mdp(), gamma), atol=1e-12)


def test_tabular_regular_equals_value_iteration_with_slips():
    # Decreasing step-sizes; 1e-2 is several standard errors.
    alphas = polynomial(0.9, 20, 100_000)
    q = learning.regular(Chain(), 1, 0.8, alphas, 100_000, np.random.default_rng(0), 100_000)
    np.testing.assert_allclose(q[0], mdp.value_iteration(Chain().mdp(), 0.8), atol=1e-2)


def test_beta_log_of_one_is_regular_q_learning():
    # f(U^) becomes Q-tilde, whose inverse is U^: regular Q-learning with alpha = beta_reg.
    step_sizes = constant(1.0), constant(0.05)
    chain = Chain(r_right=0.0)
    log, _ = learning.logarithmic(
        chain, 1, 0.7, 100, *step_sizes, 500, np.random.default_rng(1), 100
    )
    regular = learning.regular(chain, 1, 0.7, constant(0.05), 500, np.random.default_rng(1), 100)
    np.testing.assert_allclose(log, regular, rtol=1e-9, atol=1e-14)


def test_pushing_values_up_is_starting_lower():
    # The two ways to run the second variation of Appendix B, where doubles allow both.
    gamma, alphas = 0.9, geometric(0.001, 1000)
    pushed = Chain(r_left=101.0, r_right=99.0, r_step=100 * (1 - gamma), largest_target=101.0)
    high = learning.regular(pushed, 3, gamma, alphas, 2000, np.random.default_rng(5), 100)
    low = learning.regular(
        Chain(), 3, gamma, alphas, 2000, np.random.default_rng(5), 100, q_init=-100.0
    )
    np.testing.assert_allclose(high - 100, low, atol=1e-9)
    optimal = mdp.value_iteration(pushed.mdp(), gamma)
    np.testing.assert_allclose(optimal - 100, mdp.value_iteration(Chain().mdp(), gamma), atol=1e-10)


@pytest.mark.parametrize("largest", [1.0, 3.0, math.inf])
def test_targets_are_bounded_above(largest):
    # Two states, no slips, step-sizes of 1: the inner two pairs pay 1/2 and lead to one another,
    # without end, for a return of 0.5 / (1 - 0.9) = 5.
    chain = Chain(n_states=2, p=0.0, r_step=0.5, largest_target=largest)
    one = constant(1.0)
    q = learning.regular(chain, 1, 0.9, one, 500, np.random.default_rng(0), 100)[-1]
    np.testing.assert_allclose(q, [[1, min(5, largest)], [min(5, largest), -1]], rtol=1e-12)
    log, _ = learning.logarithmic(chain, 1, 0.9, 100, one, one, 500, np.random.default_rng(0), 100)
    np.testing.assert_allclose(log[-1], q, rtol=1e-9)


def test_targets_of_either_head_are_bounded():
    # Both ends are worth -3; from one state to the other, then out: -0.5 - 0.9 * 3 = -3.2. From
    # above, regular values are not bounded by 3, but Q- is.
    one = constant(1.0)
    for largest, away in ((3.0, -3.0), (math.inf, -3.2)):
        chain = Chain(2, p=0.0, r_left=-3.0, r_right=-3.0, r_step=-0.5, largest_target=largest)
        q = learning.regular(chain, 1, 0.9, one, 100, np.random.default_rng(0), 100)
        np.testing.assert_allclose(q[-1], [[-3, -3.2], [-3.2, -3]], rtol=1e-12)
        log, _ = learning.logarithmic(
            chain, 1, 0.9, 100, one, one, 100, np.random.default_rng(0), 100
        )
        np.testing.assert_allclose(log[-1], [[-3, away], [away, -3]], rtol=1e-9)


def test_overshooting_values_stay_finite():
    # With step-sizes of 1 and tiles of width 5, estimates in the log space overshoot beyond e^700.
    one = constant(1.0), constant(1.0)
    q, _ = learning.logarithmic(Chain(), 5, 0.1, 300, *one, 200, np.random.default_rng(0), 1)
    assert np.all(np.isfinite(q))
    assert np.abs(q).max() > 1e3


def test_a_unit_that_is_no_double_is_refused():
    assert learning.mapping_unit(0.1, 300) == pytest.approx(1e-300)
    with pytest.raises(
        ValueError, match=r"gamma is 0\.1; it must be at least 0\.1008 with k = 301"
    ):
        learning.mapping_unit(0.1, 301)


def test_schedules_by_hand():
    np.testing.assert_allclose(geometric(0.01, 4), [1, 10**-0.5, 0.1, 10**-1.5, 0.01])
    np.testing.assert_array_equal(constant(0.1), [0.1])
    np.testing.assert_allclose(polynomial(0.5, 1, 4), [1, 2**-0.5, 3**-0.5, 0.5])


def test_features_by_hand():
    expected = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]) / np.sqrt(2)
    np.testing.assert_array_equal(plain.features(3, 2), expected)
    np.testing.assert_array_equal(plain.features(4, 1), np.eye(4))


@pytest.mark.parametrize("width", WIDTHS)
def test_properties_of_features(width):
    phi = plain.features(50, width)
    # Any value function can be represented.
    assert np.linalg.matrix_rank(phi) == 50
    np.testing.assert_allclose(np.sum(phi**2, axis=1), 1)
    # Each of the `width` tilings has exactly one active tile in each state ...
    for tiling in range(width):
        np.testing.assert_array_equal(np.sum(phi[:, tiling::width] > 0, axis=1), 1)
    # ... and tiles are `width` neighbouring states, fewer at the ends only.
    for tile, column in enumerate((phi > 0).T):
        covered = np.arange(max(tile - width + 1, 0), min(tile + 1, 50))
        np.testing.assert_array_equal(np.flatnonzero(column), covered)
