"""The paper's statements about its small-scale experiments, one test each."""

import mpmath
import numpy as np
import pytest

from log_dqn.linear import experiments, learning
from log_dqn.linear.chain import Chain
from log_dqn.linear.experiments import GAMMAS, WIDTHS, Options

OPTIONS = Options(jobs=2)


def column(table, name, **where):
    """Returns one column of the rows that have the values `where` in other columns."""
    rows = table.rows
    for other, value in where.items():
        rows = rows[rows[other] == value]
    return rows[name].to_numpy()


def thresholds(table, gammas, **where):
    """Returns, by width, the smallest gamma from which on final performance is above one half."""
    result = []
    for width in WIDTHS:
        good = column(table, "final", width=width, **where) > 0.5
        bad = np.flatnonzero(~good)
        result.append(gammas[bad[-1] + 1] if len(bad) else gammas[0])
    return result


@pytest.fixture(scope="module")
def chain_regular():
    return experiments.chain_regular(OPTIONS)


@pytest.fixture(scope="module")
def kappa_full():
    return experiments.kappa_full(OPTIONS)


@pytest.mark.slow
def test_final_performance_drops_sharply_below_a_threshold(chain_regular):
    # "There is a sharp drop in final performance for discount factors below some threshold."
    for width, threshold in zip(WIDTHS, thresholds(chain_regular, GAMMAS), strict=True):
        final = column(chain_regular, "final", width=width)
        place = GAMMAS.index(threshold)
        np.testing.assert_array_equal(final[: max(place - 1, 0)], 0)
        assert np.all(final[place + 2 :] > 0.9)


@pytest.mark.slow
def test_threshold_rises_with_the_width(chain_regular):
    # "Larger ones resulting in worse (i.e., higher) threshold values."
    values = thresholds(chain_regular, GAMMAS)
    assert values == sorted(values)
    assert values[0] < values[1]
    assert values[1] >= 0.8
    # Finer than the few discount factors there: the mean over all of them.
    means = [column(chain_regular, "final", width=width).mean() for width in WIDTHS]
    assert means == sorted(set(means), reverse=True)


@pytest.mark.slow
def test_tabular_performs_well_for_all_discount_factors(chain_regular):
    assert np.all(column(chain_regular, "final", width=1) == 1)
    assert np.all(column(chain_regular, "early", width=1) > 0.6)


@pytest.mark.slow
def test_logarithmic_performs_well_for_all_discount_factors_and_widths():
    # A third of the figure's discount factors, and a third of its sweeps, take a ninth of the time.
    gammas = (0.1, 0.5, 0.85, 0.96, 0.99)
    table = experiments.chain_log(Options(jobs=2, gammas=gammas, sweeps=40_000))
    assert len(table.rows) == len(gammas) * len(WIDTHS)
    np.testing.assert_array_equal(column(table, "final"), 1)
    # "Early performance" as well, but for the widest tiles at the largest discount factor, where
    # it varies much from run to run.
    for width in WIDTHS[:-1]:
        assert np.all(column(table, "early", width=width) > 0.3)
    assert np.all(column(table, "early", width=5)[:-1] > 0.3)


@pytest.mark.slow
def test_neither_hypothesis_changes_the_curves():
    gammas = (0.8, 0.94, 0.96)
    table = experiments.hypotheses(Options(jobs=2, gammas=gammas))
    for name in ("early", "final"):
        regular, times, plus = (
            column(table, name, variation=v) for v in ("regular", "times 100", "plus 100")
        )
        # All see the same transitions. Scaling rewards scales every value: the same decisions.
        np.testing.assert_array_equal(times, regular)
        # First values of -100 leave a trace where performance is neither 0 nor 1.
        np.testing.assert_allclose(plus, regular, atol=0.25)
        assert np.mean(np.abs(plus - regular)) < 0.03
        assert 0 < regular.mean() < 1


def test_the_hypotheses_are_tested_on_tasks_that_differ(monkeypatch):
    tasks = []

    def regular(chain, *arguments):
        tasks.append((chain.r_left, chain.r_right, chain.largest_target, arguments[-1]))
        return np.zeros((1, 1, 2))

    monkeypatch.setattr(learning, "regular", regular)
    experiments.hypotheses(Options(gammas=(0.5,)))
    assert list(dict.fromkeys(tasks)) == [(1, -1, 1, 0), (100, -100, 100, 0), (1, -1, 1, -100)]
    assert len(tasks) == 3 * len(WIDTHS)


def test_the_bound_on_targets_can_be_left_out(monkeypatch):
    bounds = []

    def learn(chain, *_):
        bounds.append(chain.largest_target)
        return np.zeros((1, 1, 2)), None

    monkeypatch.setattr(learning, "logarithmic", learn)
    monkeypatch.setattr(learning, "regular", lambda *arguments: learn(*arguments)[0])
    for chain in (Chain(), Chain(largest_target=np.inf)):
        for experiment in (experiments.chain_log, experiments.chain_regular):
            experiment(Options(gammas=(0.5,), chain=chain))
    assert bounds == [1] * 2 * len(WIDTHS) + [np.inf] * 2 * len(WIDTHS)


def test_kappa_of_regular_values_falls_with_gamma():
    kappa = column(experiments.kappa_regular(OPTIONS), "kappa")
    assert np.all(np.diff(kappa)[:-3] < 0)
    assert kappa[0] > 9
    assert kappa[-1] < 0.5


def test_kappa_with_a_fitting_and_a_wrong_k():
    table = experiments.kappa_deterministic(OPTIONS)
    low = column(table, "gamma", variant="reg") <= 0.5
    kappa = {k: column(table, "kappa", variant=f"log k={k}")[low] for k in (25, 50, 100, 200)}
    # "With an appropriate value of k, kappa can almost be reduced to 0 for low values of gamma."
    assert np.all(kappa[50] < 0.05)
    # "Setting k too high increases the deviation a little, ...
    for k, lower in ((100, 50), (200, 100)):
        assert np.all(kappa[k] > kappa[lower])
        assert np.all(kappa[k] < 0.3)
    # "... while setting it too low increases it a lot for low discount factors."
    assert np.all(kappa[25] > 2)
    # Even then it is below the deviation in the regular space.
    assert np.all(kappa[25] < column(table, "kappa", variant="reg")[low])


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9])
def test_kappa_full_by_its_definitions(kappa_full, gamma):
    # Values of the policy a_L by a linear solve in 300 digits, for either sign of reward, and
    # every gap as the difference that it is.
    with mpmath.workdps(300):
        g, unit = mpmath.mpf(gamma), mpmath.mpf(gamma) ** 200
        left, right = mpmath.mpf(3) / 4, mpmath.mpf(1) / 4
        root = mpmath.sqrt(1 - 4 * g * g * left * right)
        x, y = (1 - root) / (2 * g * right), (1 + root) / (2 * g * right)
        ends = mpmath.matrix([[1, 1], [x**51, y**51]])

        def head(*values):
            a, b = mpmath.lu_solve(ends, mpmath.matrix(values))
            # gamma V, which is the reward at the ends.
            v = [g * (a * x**s + b * y**s) for s in range(52)]
            return [
                (left * v[s - 1] + right * v[s + 1], right * v[s - 1] + left * v[s + 1])
                for s in range(1, 51)
            ]

        plus, minus = head(1 / g, 0), head(0, 1 / g)
        q = [(p[0] - m[0], p[1] - m[1]) for p, m in zip(plus, minus, strict=True)]

        def gaps(values, f):
            return [abs(f(a) - f(b)) for a, b in values]

        def log(value):
            return mpmath.log(value + unit)

        variants = {
            "log plus-only": gaps(plus, log),
            "log min-only": gaps(minus, log),
            # The union of the two.
            "log both": gaps(plus, log) + gaps(minus, log),
            # D = 1.
            "log bias": gaps(q, lambda value: log(value + 1)),
            "reg": gaps(q, lambda value: value),
        }
        for variant, values in variants.items():
            logs = [mpmath.log10(value) for value in values]
            mean = sum(logs) / len(logs)
            expected = mpmath.sqrt(sum((value - mean) ** 2 for value in logs) / len(logs))
            kappa = column(kappa_full, "kappa", variant=variant, gamma=gamma)
            assert kappa == pytest.approx([float(expected)], rel=1e-12)


def test_only_log_plus_only_is_small_for_all_discount_factors(kappa_full):
    assert np.all(column(kappa_full, "kappa", variant="log plus-only") < 0.3)
    for variant in ("log min-only", "log both", "log bias", "reg"):
        assert column(kappa_full, "kappa", variant=variant).max() > 6


def test_a_bias_does_not_help_at_low_discount_factors(kappa_full):
    bias, reg = (column(kappa_full, "kappa", variant=v) for v in ("log bias", "reg"))
    np.testing.assert_allclose(bias[:40], reg[:40], rtol=0.01)


@pytest.mark.slow
def test_beta_reg_of_one_never_comes_close_to_zero_error():
    table = experiments.rms_error(OPTIONS)
    rms = {beta: column(table, "rms", beta_reg=beta) for beta in experiments.BETAS_REG}
    assert rms[1.0].min() > 0.025
    assert rms[0.1].min() < 0.0025
    # The smaller, the smaller the error it settles at.
    settled = [curve[-100:].mean() for curve in rms.values()]
    assert settled == sorted(settled, reverse=True)


@pytest.fixture(scope="module")
def convergence():
    return experiments.convergence(OPTIONS)


@pytest.mark.slow
def test_converges_if_all_conditions_hold(convergence):
    rms = column(convergence, "rms", schedule="all conditions")
    # Falls tenfold, and goes on falling.
    assert rms[-200:].mean() < 0.1 * rms[0]
    assert rms[-200:].mean() < 0.5 * rms[100:200].mean()
    biased = column(convergence, "rms", schedule="beta_reg = 1")
    assert biased[-1000:].min() > 0.08
    assert biased[-1000:].std() < 0.002


@pytest.mark.slow
def test_error_term_stays_within_its_bound(convergence):
    for schedule in experiments.CONVERGENCE_EXPONENTS:
        ratio = column(convergence, "largest_error_ratio", schedule=schedule)
        assert np.all(ratio > 0)
        assert np.all(ratio <= 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain_regular", "chain_log", "hypotheses"])
def test_the_seed_alone_decides(name):
    def rows(**settings):
        small = Options(runs=2, sweeps=4000, gammas=(0.5, 0.99), **settings)
        table = experiments.EXPERIMENTS[name](small)
        return table.rows, table.runs

    expected, runs = rows(seed=3, jobs=1)
    np.random.seed(0)
    again, again_runs = rows(seed=3, jobs=3)
    assert again.equals(expected)
    np.testing.assert_array_equal(again_runs, runs)
    assert not np.array_equal(rows(seed=4)[1], runs)


@pytest.mark.slow
def test_other_gammas_do_not_change_a_run():
    one = experiments.chain_log(Options(sweeps=400, gammas=(0.9,)))
    two = experiments.chain_log(Options(sweeps=400, gammas=(0.5, 0.9)))
    assert one.rows.to_numpy().tolist() == two.rows[two.rows["gamma"] == 0.9].to_numpy().tolist()


def test_performance_by_hand():
    q = np.array([[[1, 0], [0.5, 0.25]], [[1, 0], [0.5, 0.5]], [[0, 1], [1, 0]]])
    # The second has a tie, the third prefers a_R in a state.
    np.testing.assert_array_equal(experiments.performance(q), [1, 0, 0])


def test_windows_by_hand():
    left, right = [[1.0, 0.0]], [[0.0, 1.0]]
    # 100 measurements are 10,000 sweeps: early is 30%, final 80%, between does not count.
    q = np.array([left] * 30 + [right] * 70 + [left] * 900 + [right] * 20 + [left] * 80)
    assert experiments.early_and_final(q) == (0.3, 0.8)


def test_runs_lie_along_the_last_axis():
    runs = Options(runs=3).runs_of("made", lambda x, y, run: [x * y, run], [(2, 5), (3, 7)])
    np.testing.assert_array_equal(runs, [[[10] * 3, [0, 1, 2]], [[21] * 3, [0, 1, 2]]])
