"""A sweep against the same runs started by hand, two at a time."""

import concurrent.futures
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks import measuring

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
    command = [sys.executable, "-m", module, *arguments, *bindings]
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        raise measuring.ended(module, done.stderr)


def as_sweep() -> None:
    """Runs the runs as one sweep, from the command to its end."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--agents=log_dqn", "--games=Pong", f"--seeds={RUNS}"]
        _program("log_dqn.sweep", [f"--results_dir={folder}", *options])


def by_hand() -> None:
    """Runs the training program as often as that, two at a time."""
    # As many threads as a sweep gives a run.
    options = ["--agent=log_dqn", "--game=Pong", "--threads=1"]
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool,
    ):
        commands = [
            [f"--base_dir={folder}/{seed}", *options, f"--seed={seed}"]
            for seed in range(1, RUNS + 1)
        ]
        list(pool.map(lambda command: _program("log_dqn.train", command), commands))


def run(rounds: int) -> None:
    """Prints the times of both and their ratio."""
    seconds = measuring.interleave(
        {"as a sweep": as_sweep, "by hand": by_hand}, rounds, "sweep", warm_up=0
    )
    measuring.print_heading("sweep", "by hand")
    measuring.print_ratio(f"{RUNS} runs", seconds["as a sweep"], seconds["by hand"], "s")
