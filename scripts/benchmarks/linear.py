"""The compiled kernels of the chain task against a plain Python loop."""

import time
from collections.abc import Callable

import numpy as np

from log_dqn.linear import experiments, learning, plain
from log_dqn.linear.chain import Chain

GAMMA = 0.8
REPEATS = 3


def _seconds_per_sweep(learn: Callable[[int], object], sweeps: int) -> float:
    """Returns the fastest of a few measurements, of learners compiled already."""
    learn(2)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        learn(sweeps)
        times.append(time.perf_counter() - start)
    return min(times) / sweeps


def run() -> None:
    """Prints the time a sweep takes with either, by method and tile width."""
    chain = Chain()
    alphas = learning.constant(experiments.ALPHA)
    betas = learning.constant(experiments.BETA_LOG), learning.constant(experiments.BETA_REG)

    def regular(module: object, width: int) -> Callable[[int], object]:
        return lambda sweeps: module.regular(  # type: ignore[attr-defined]
            chain, width, GAMMA, alphas, sweeps, np.random.default_rng(0), sweeps
        )

    def logarithmic(module: object, width: int) -> Callable[[int], object]:
        return lambda sweeps: module.logarithmic(  # type: ignore[attr-defined]
            chain, width, GAMMA, experiments.K, *betas, sweeps, np.random.default_rng(0), sweeps
        )

    print("one sweep of the chain task (100 updates), one thread, fastest of three")
    print(f"{'method':12} {'width':>5} {'plain Python':>13} {'compiled':>12} {'ratio':>7}")
    for name, method in (("regular", regular), ("logarithmic", logarithmic)):
        for width in experiments.WIDTHS:
            slow = _seconds_per_sweep(method(plain, width), 50)
            fast = _seconds_per_sweep(method(learning, width), 5000)
            print(
                f"{name:12} {width:5} {1e3 * slow:10.2f} ms {1e6 * fast:9.2f} us "
                f"{slow / fast:6.0f}x"
            )
