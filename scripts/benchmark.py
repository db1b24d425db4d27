"""Measures LogDQN against Dopamine's DQN, interleaved in one run.

    python scripts/benchmark.py

Prints, for each figure, both agents' medians and the median of the ratios of neighbouring
blocks, with its range. A ratio is LogDQN's over DQN's.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from log_dqn import compat

with compat.quiet():
    import tensorflow as tf
    from dopamine.tf.agents.dqn import dqn_agent
    from tqdm import tqdm

    from log_dqn import atari, seeding
    from log_dqn.tf import log_dqn_agent

    DEVICES = tf.config.list_physical_devices("GPU")

AGENTS = {"LogDQN": log_dqn_agent.LogDQNAgent, "DQN": dqn_agent.DQNAgent}
GAME = "Pong"


def interleave(
    blocks: dict[str, Callable[[], None]], rounds: int, description: str
) -> dict[str, np.ndarray]:
    """Times blocks of work in turn, so that a machine's drift hits all of them alike.

    Args:
        blocks: what to time, by name.
        rounds: how often, after one round that doesn't count.
        description: name of the figure, for the progress bar.

    Returns:
        Seconds of each block, shape [rounds], by name.
    """
    seconds: dict[str, list[float]] = {name: [] for name in blocks}
    for round_ in tqdm(range(rounds + 1), description, leave=False, disable=None):
        for name in blocks if round_ % 2 else reversed(blocks):
            start = time.perf_counter()
            blocks[name]()
            seconds[name].append(time.perf_counter() - start)
    return {name: np.array(values[1:]) for name, values in seconds.items()}


def report(figure: str, ours: np.ndarray, theirs: np.ndarray, unit: str) -> None:
    """Prints one figure of both agents and the ratio of ours to theirs."""
    ratios = ours / theirs
    low, high = np.percentile(ratios, [10, 90])
    print(
        f"{figure:<22}{np.median(ours):>10.4g}{np.median(theirs):>10.4g}  {unit:<9}"
        f"ratio {np.median(ratios):.3f} (10% to 90% of blocks: {low:.3f} to {high:.3f})",
        flush=True,
    )


class Learner:
    """An agent in its own graph with a game, as it is in the middle of training."""

    def __init__(self, name: str, replay_steps: int) -> None:
        """Builds the agent and fills its replay memory.

        Args:
            name: a key of `AGENTS`.
            replay_steps: agent steps of random play.
        """
        with tf.Graph().as_default():
            seeding.seed_everything(0)
            self.environment = atari.create_environment(GAME, seed=0)
            self.agent = AGENTS[name](
                None,
                num_actions=int(self.environment.action_space.n),
                min_replay_history=replay_steps,
                epsilon_fn=lambda *_: 0.01 if self._trains else 1.0,
                tf_device="/gpu:0",
            )
        self._trains = False
        self._action = self.agent.begin_episode(self.environment.reset())
        self.loop(replay_steps)
        self._trains = True
        self.agent.training_steps = 0

    def loop(self, steps: int) -> None:
        """Plays agent steps of training, as Dopamine's runner does."""
        for _ in range(steps):
            frame, reward, terminal, _ = self.environment.step(self._action)
            if terminal:
                self.agent.end_episode(np.clip(reward, -1, 1))
                self._action = self.agent.begin_episode(self.environment.reset())
            else:
                self._action = self.agent.step(np.clip(reward, -1, 1), frame)

    def train(self, steps: int) -> None:
        """Runs training steps of one batch of 32."""
        for _ in range(steps):
            self.agent._sess.run(self.agent._train_op)

    def act(self, steps: int) -> None:
        """Chooses greedy actions."""
        for _ in range(steps):
            self.agent._sess.run(self.agent._q_argmax, {self.agent.state_ph: self.agent.state})


def peak_memory(name: str) -> float:
    """Returns the peak memory, in MiB, of a process that trains one agent for 2,000 steps."""
    output = subprocess.run(
        [sys.executable, __file__, "--measure_memory_of", name],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return float(output.split()[-1])


def main() -> None:
    """Runs the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rounds", type=int, default=60, help="blocks of each figure")
    parser.add_argument("--measure_memory_of", choices=list(AGENTS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    tf.get_logger().setLevel("ERROR")
    if args.measure_memory_of:
        Learner(args.measure_memory_of, replay_steps=1000).loop(1000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return

    print(f"{GAME}, batch size 32, TensorFlow {tf.__version__} on {'a GPU' if DEVICES else 'CPU'}")
    print(f"{'':<22}{'LogDQN':>10}{'DQN':>10}")
    learners = {name: Learner(name, replay_steps=2000) for name in AGENTS}

    def measure(figure: str, steps: int, method: str) -> tuple[np.ndarray, np.ndarray]:
        blocks = {
            name: (lambda learner=learner: getattr(learner, method)(steps))
            for name, learner in learners.items()
        }
        seconds = interleave(blocks, args.rounds, figure)
        return seconds["LogDQN"] / steps, seconds["DQN"] / steps

    ours, theirs = measure("training step", 8, "train")
    report("training step", 1e3 * ours, 1e3 * theirs, "ms")
    ours, theirs = measure("acting", 100, "act")
    report("acting", 1e3 * ours, 1e3 * theirs, "ms")
    ours, theirs = measure("whole loop", 100, "loop")
    report("whole loop", 1 / ours, 1 / theirs, "steps/s")
    report(
        "peak memory",
        *(np.array([peak_memory(name)]) for name in ("LogDQN", "DQN")),
        "MiB",
    )


if __name__ == "__main__":
    main()
