"""What a sweep costs beside its runs: against the same runs started by hand, two at a time."""

import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

RUNS = 8
AT_A_TIME = 2

# Two iterations of 750 agent steps of Pong: a short run, most of it training.
SHORT = [
    "Runner.num_iterations=2",
    "Runner.training_steps=500",
    "Runner.evaluation_steps=250",
    "Runner.max_steps_per_episode=250",
    "WrappedReplayBuffer.replay_capacity=2000",
    "LogDQNAgent.min_replay_history=100",
]


def _program(module: str, arguments: Sequence[str]) -> None:
    bindings = [f"--gin_bindings={binding}" for binding in SHORT]
    subprocess.run(
        [sys.executable, "-m", module, *arguments, *bindings], check=True, capture_output=True
    )


def by_hand(folder: pathlib.Path) -> float:
    """Runs the training program as often as that, two at a time; returns seconds."""
    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        arguments = [
            [f"--base_dir={folder / str(seed)}", "--agent=log_dqn", "--game=Pong", f"--seed={seed}"]
            for seed in range(1, RUNS + 1)
        ]
        list(pool.map(lambda its: _program("log_dqn.train", its), arguments))
    return time.perf_counter() - begin


def as_sweep(folder: pathlib.Path) -> float:
    """Runs the same runs as one sweep, from the command to its end; returns seconds."""
    begin = time.perf_counter()
    _program(
        "log_dqn.sweep",
        [f"--results_dir={folder}", "--agents=log_dqn", "--games=Pong", f"--seeds={RUNS}"],
    )
    return time.perf_counter() - begin


def run(rounds: int) -> None:
    """Measures both in turn and prints their times and ratio.

    Args:
        rounds: how often.
    """
    for round_ in range(rounds):
        seconds = {}
        for measure in (by_hand, as_sweep) if round_ % 2 == 0 else (as_sweep, by_hand):
            with tempfile.TemporaryDirectory() as folder:
                seconds[measure] = measure(pathlib.Path(folder))
        print(
            f"{RUNS} runs: by hand, {AT_A_TIME} at a time, {seconds[by_hand]:.1f} s; as a sweep "
            f"{seconds[as_sweep]:.1f} s; ratio {seconds[as_sweep] / seconds[by_hand]:.3f}",
            flush=True,
        )
