"""The data of each figure: one function an experiment, which returns a table.

An experiment is a pure function of its options, which hold the seed. Independent runs go to
threads (the kernels hold no lock), each with its own random generator, so that neither the number
of threads nor what else is run changes a number.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm.contrib.concurrent import thread_map

from log_dqn.linear import learning, mdp, metric_gap
from log_dqn.linear.chain import (
    LEFT,
    RIGHT,
    Chain,
    deviation,
    log_bias_gaps,
    log_gaps,
    regular_gaps,
)

WIDTHS = (1, 2, 3, 5)
GAMMAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94, 0.96, 0.98, 0.99)
ALPHA = 0.001
BETA_LOG = 0.01
BETA_REG = 0.1
K = 200
# Sweeps: of a run, between measurements, at its start and at its end that are averaged, and over
# which step-sizes are annealed.
SWEEPS = 110_000
MEASURE_EVERY = 100
WINDOW = 10_000
ANNEALING = 10_000


class Table(NamedTuple):
    """Rows of one experiment.

    Attributes:
        rows: what was varied, then what was measured, as means over the runs unless the experiment
            says otherwise.
        runs: the values of the last columns before averaging, by the rows' index and run, for
            confidence bands; shape (rows, averaged columns, runs), or None where nothing is random.
    """

    rows: pd.DataFrame
    runs: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Options:
    """How the experiments are run.

    Attributes:
        runs: independent runs of each setting, 1 or more.
        seed: all randomness follows from it; not negative.
        jobs: threads, 1 or more.
        gammas: discount factors of the chain scans.
        annealed: whether the step-sizes of the chain scans fall from 1 to their final values
            over the first 10,000 sweeps, as in the published figures, or are constant, as in
            the paper's text.
        chain: the task of `chain_regular` and `chain_log`; its targets are bounded, as in the
            published figures, or not, as in the paper's text.
        sweeps: length of a run of the chain scans.
    """

    runs: int = 1
    seed: int = 0
    jobs: int = 1
    gammas: tuple[float, ...] = GAMMAS
    annealed: bool = True
    chain: Chain = dataclasses.field(default_factory=Chain)
    sweeps: int = SWEEPS

    def rng(self, *key: float) -> np.random.Generator:
        """Returns a random stream that follows from the seed and `key`, to six decimals, alone.

        Runs with the same key draw the same shuffles and slips, in whatever experiment.
        """
        return np.random.default_rng((self.seed, *(round(1e6 * part) for part in key)))

    def step_sizes(self, final: float) -> np.ndarray:
        """Returns the schedule of a step-size of the chain scans."""
        return learning.geometric(final, ANNEALING) if self.annealed else learning.constant(final)

    def map(self, name: str, function: Callable, arguments: Sequence[tuple]) -> list:
        """Returns function(*a) for every a in `arguments`, in order, computed in threads."""
        shown: dict = {"desc": name, "disable": None}  # No bar where there is no terminal.
        return thread_map(lambda a: function(*a), arguments, max_workers=self.jobs, **shown)

    def runs_of(self, name: str, function: Callable, cells: Sequence[tuple]) -> np.ndarray:
        """Returns function(*cell, run) for every cell and run, shape (cells, ..., runs)."""
        results = self.map(name, function, [(*c, run) for c in cells for run in range(self.runs)])
        array = np.array(results)
        return np.moveaxis(array.reshape(len(cells), self.runs, *array.shape[1:]), 1, -1)


def performance(measured_q: np.ndarray) -> np.ndarray:
    """Returns 1 for each measurement whose greedy policy is a_L in every state, else 0.

    `measured_q` has shape (measurements, states, 2). A tie is not a_L.
    """
    return np.all(measured_q[..., LEFT] > measured_q[..., RIGHT], axis=-1).astype(float)


def early_and_final(measured_q: np.ndarray) -> tuple[float, float]:
    """Returns the mean performance in the first and in the last 10,000 sweeps."""
    measured = performance(measured_q)
    window = WINDOW // MEASURE_EVERY
    return float(measured[:window].mean()), float(measured[-window:].mean())


Learn = Callable[[int, float, np.random.Generator], np.ndarray]


def _scan(name: str, options: Options, variations: dict[str, Learn]) -> Table:
    """Runs each of `variations` for each tile width and discount factor.

    All variations see the same transitions, so that only what is varied tells them apart.
    """
    cells = [(v, width, gamma) for v in variations for width in WIDTHS for gamma in options.gammas]

    def run(variation: str, width: int, gamma: float, run: int) -> tuple[float, float]:
        rng = options.rng(width, gamma, run)
        return early_and_final(variations[variation](width, gamma, rng))

    runs = options.runs_of(name, run, cells)
    rows = pd.DataFrame(cells, columns=["variation", "width", "gamma"])
    rows[["early", "final"]] = runs.mean(axis=2)
    return Table(rows.drop(columns="variation") if len(variations) == 1 else rows, runs)


def _learn_regular(options: Options, chain: Chain, q_init: float = 0.0) -> Learn:
    alphas = options.step_sizes(ALPHA)

    def learn(width: int, gamma: float, rng: np.random.Generator) -> np.ndarray:
        return learning.regular(
            chain, width, gamma, alphas, options.sweeps, rng, MEASURE_EVERY, q_init
        )

    return learn


def chain_regular(options: Options) -> Table:
    """Runs regular Q-learning on the chain task (section 3.2)."""
    return _scan("chain_regular", options, {"regular": _learn_regular(options, options.chain)})


def chain_log(options: Options) -> Table:
    """Runs logarithmic Q-learning on the chain task (section 5)."""
    betas = options.step_sizes(BETA_LOG), options.step_sizes(BETA_REG)

    def learn(width: int, gamma: float, rng: np.random.Generator) -> np.ndarray:
        return learning.logarithmic(
            options.chain, width, gamma, K, *betas, options.sweeps, rng, MEASURE_EVERY
        )[0]

    return _scan("chain_log", options, {"log": learn})


def hypotheses(options: Options) -> Table:
    """Runs regular Q-learning on the variations of the chain task of Appendix B.

    Pushing all values up by 100 and starting at 0 is, in exact arithmetic, the same as starting
    the regular task at -100, and that is how it is run. Beside values of 100, double precision
    has no digits below 1e-14, while action gaps fall to 1e-33 at gamma = 0.1: computed as
    written, even the tabular representation fails at gamma = 0.6 and below, from rounding alone.
    """
    times_100 = Chain(r_left=100.0, r_right=-100.0, largest_target=100.0)
    variations = {
        "regular": _learn_regular(options, Chain()),
        "times 100": _learn_regular(options, times_100),
        "plus 100": _learn_regular(options, Chain(), q_init=-100.0),
    }
    return _scan("hypotheses", options, variations)


# The kappa curves need no learning, hence many discount factors.
FINE_GAMMAS = np.linspace(0.1, 0.99, 90).round(2).tolist()


def _kappa_table(gaps: Callable[[float], dict[str, np.ndarray]]) -> Table:
    by_gamma = {gamma: gaps(gamma) for gamma in FINE_GAMMAS}
    rows = [
        (variant, gamma, deviation(by_gamma[gamma][variant]))
        for variant in by_gamma[FINE_GAMMAS[0]]
        for gamma in FINE_GAMMAS
    ]
    return Table(pd.DataFrame(rows, columns=["variant", "gamma", "kappa"]))


def kappa_regular(options: Options) -> Table:
    """Computes the action-gap deviation of the chain task in the ordinary space (section 3.2)."""
    return _kappa_table(lambda gamma: {"reg": regular_gaps(*Chain().optimal_heads(gamma))})


def kappa_deterministic(options: Options) -> Table:
    """Computes the action-gap deviation without slips, r_R = 0, for several k (section 4.1)."""

    def gaps(gamma: float) -> dict[str, np.ndarray]:
        plus, minus = Chain(p=0.0, r_right=0.0).optimal_heads(gamma)
        units = {k: learning.mapping_unit(gamma, k) for k in (25, 50, 100, 200)}
        log = {f"log k={k}": log_gaps(plus, unit) for k, unit in units.items()}
        return {"reg": regular_gaps(plus, minus), **log}

    return _kappa_table(gaps)


def kappa_full(options: Options) -> Table:
    """Computes the action-gap deviation of the full chain task, k = 200 (section 4.3)."""

    def gaps(gamma: float) -> dict[str, np.ndarray]:
        plus, minus = Chain().optimal_heads(gamma)
        unit = learning.mapping_unit(gamma, K)
        log_plus, log_minus = log_gaps(plus, unit), log_gaps(minus, unit)
        return {
            "log plus-only": log_plus,
            "log min-only": log_minus,
            "log both": np.concatenate([log_plus, log_minus]),
            "log bias": log_bias_gaps(plus, minus, unit, bias=1.0),
            "reg": regular_gaps(plus, minus),
        }

    return _kappa_table(gaps)


# The paper does not give the discount factor of its RMS figure.
RMS_GAMMA = 0.8
BETAS_REG = (1.0, 0.3, 0.1, 0.01)
RMS_SWEEPS = 60_000


def rms_error(options: Options) -> Table:
    """Measures the RMS error on the positive-reward chain for several beta_reg (section 4.2).

    Tabular, k = 200, with beta_log = 0.001 / beta_reg, so that the product is 0.001 as elsewhere.
    A large beta_reg is slower at first and settles at a larger error.
    """
    chain = Chain(r_right=0.0)
    optimal = mdp.value_iteration(chain.mdp(), RMS_GAMMA)

    def run(beta_reg: float, run: int) -> np.ndarray:
        betas = learning.constant(ALPHA / beta_reg), learning.constant(beta_reg)
        rng = options.rng(beta_reg, run)
        q, _ = learning.logarithmic(chain, 1, RMS_GAMMA, K, *betas, RMS_SWEEPS, rng, MEASURE_EVERY)
        return rms(q, optimal)

    runs = options.runs_of("rms_error", run, [(beta_reg,) for beta_reg in BETAS_REG])
    rows = [
        (beta_reg, MEASURE_EVERY * (i + 1), value)
        for beta_reg, curve in zip(BETAS_REG, runs.mean(axis=2).tolist(), strict=True)
        for i, value in enumerate(curve)
    ]
    table = pd.DataFrame(rows, columns=["beta_reg", "sweep", "rms"])
    return Table(table, runs.reshape(len(rows), 1, options.runs))


def rms(measured_q: np.ndarray, optimal: np.ndarray) -> np.ndarray:
    """Returns the root mean square error of every measurement over all state-action pairs."""
    return np.sqrt(np.mean((measured_q - optimal) ** 2, axis=(1, 2)))


CONVERGENCE_GAMMA = 0.9
CONVERGENCE_SWEEPS = 200_000
# Both have the same product beta_log * beta_reg = (1 + t / 1000) ** -0.9, which meets conditions
# 1 to 3 of the theorem. Condition 4, beta_reg going to 0, sets them apart.
CONVERGENCE_EXPONENTS = {"all conditions": (0.3, 0.6), "beta_reg = 1": (0.9, 0.0)}


def convergence(options: Options) -> Table:
    """Tests the theorem of Appendix A on the full chain task: RMS error of Q, and the error term.

    The last column is the largest |e_t| of all updates since the measurement before, divided by
    its bound (equation 33): never above 1.
    """
    chain = Chain()
    optimal = mdp.value_iteration(chain.mdp(), CONVERGENCE_GAMMA)
    names = list(CONVERGENCE_EXPONENTS)

    def run(index: int, run: int) -> np.ndarray:
        exponents = CONVERGENCE_EXPONENTS[names[index]]
        log, reg = (learning.polynomial(x, 1000, CONVERGENCE_SWEEPS) for x in exponents)
        rng = options.rng(index, run)
        task = (chain, 1, CONVERGENCE_GAMMA, K, log, reg, CONVERGENCE_SWEEPS, rng, MEASURE_EVERY)
        q, ratios = learning.logarithmic(*task, with_errors=True)
        return np.stack([rms(q, optimal), ratios], axis=1)

    runs = options.runs_of("convergence", run, [(index,) for index in range(len(names))])
    rows = [
        # Of a bound, the worst run counts.
        (name, MEASURE_EVERY * (i + 1), float(error.mean()), float(ratio.max()))
        for name, measured in zip(names, runs, strict=True)
        for i, (error, ratio) in enumerate(measured)
    ]
    table = pd.DataFrame(rows, columns=["schedule", "sweep", "rms", "largest_error_ratio"])
    return Table(table, runs.reshape(len(rows), 2, options.runs))


def metric_gaps(options: Options) -> Table:
    """Measures how the optimal and the learned policy perform on tasks A, B, C (section 3.1)."""
    gammas = np.linspace(0.01, 0.99, 99).round(2).tolist()
    tasks = [(task, gammas) for task in metric_gap.TASKS]
    results = options.map("metric_gap", metric_gap.performance, tasks)
    rows = [
        (task.name, gamma, best, f)
        for (task, _), (best, learned) in zip(tasks, results, strict=True)
        for gamma, f in zip(gammas, learned, strict=True)
    ]
    return Table(pd.DataFrame(rows, columns=["task", "gamma", "f_optimal", "f_learned"]))


EXPERIMENTS: dict[str, Callable[[Options], Table]] = {
    "metric_gap": metric_gaps,
    "chain_regular": chain_regular,
    "chain_log": chain_log,
    "kappa_regular": kappa_regular,
    "kappa_deterministic": kappa_deterministic,
    "kappa_full": kappa_full,
    "rms_error": rms_error,
    "hypotheses": hypotheses,
    "convergence": convergence,
}
