"""Measures this package against Dopamine, side by side in one run.

    python scripts/benchmark.py              LogDQN against DQN, interleaved
    python scripts/benchmark.py --framework=jax    the same of the JAX agents
    python scripts/benchmark.py checkpoint   saving and loading a full replay memory
    python scripts/benchmark.py vectorized   many runs at once, and what limits them
    python scripts/benchmark.py linear       the chain task's kernels against plain Python
    python scripts/benchmark.py sweep --rounds=1   a sweep of 8 runs against 8 runs by hand

The first prints, for each figure, both agents' medians and the median of the ratios of
neighbouring blocks, with its range. A ratio is LogDQN's over DQN's.
"""

import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from log_dqn import compat
from log_dqn.run_folder import checkpoints

with compat.quiet():
    import tensorflow as tf
    from ale_py.vector_env import AtariVectorEnv
    from dopamine.tf.agents.dqn import dqn_agent
    from tqdm import tqdm

    from log_dqn import atari
    from log_dqn.games import GAMES
    from log_dqn.linear import benchmark as linear_benchmark
    from log_dqn.single import seeding
    from log_dqn.sweeps import benchmark as sweep_benchmark
    from log_dqn.tf import agent_checkpoint, log_dqn_agent

    DEVICES = tf.config.list_physical_devices("GPU")

AGENTS = {"LogDQN": log_dqn_agent.LogDQNAgent, "DQN": dqn_agent.DQNAgent}
GAME = "Pong"


def interleave(
    blocks: Mapping[str, Callable[[], None]], rounds: int, description: str
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
        for name in sorted(blocks, reverse=bool(round_ % 2)):
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


def play(agent: Any, environment: Any, action: int, steps: int) -> int:
    """Plays agent steps of training, as Dopamine's runner does.

    Args:
        agent: the agent.
        environment: its game, in the middle of an episode.
        action: the action that the agent has chosen.
        steps: agent steps.

    Returns:
        The action that it has chosen now.
    """
    for _ in range(steps):
        frame, reward, terminal, _ = environment.step(action)
        if terminal:
            agent.end_episode(np.clip(reward, -1, 1))
            action = agent.begin_episode(environment.reset())
        else:
            action = agent.step(np.clip(reward, -1, 1), frame)
    return action


class Learner:
    """An agent in its own graph with a game, as it is in the middle of training."""

    def __init__(self, name: str, replay_steps: int) -> None:
        """Builds the agent and fills its replay memory.

        Args:
            name: a key of `AGENTS`.
            replay_steps: agent steps of random play.
        """
        self._trains = False
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
        self._action = self.agent.begin_episode(self.environment.reset())
        self.loop(replay_steps)
        self._trains = True
        self.agent.training_steps = 0

    def loop(self, steps: int) -> None:
        """Plays agent steps of training."""
        self._action = play(self.agent, self.environment, self._action, steps)

    def train(self, steps: int) -> None:
        """Runs training steps of one batch of 32."""
        for _ in range(steps):
            self.agent._sess.run(self.agent._train_op)

    def act(self, steps: int) -> None:
        """Chooses greedy actions."""
        for _ in range(steps):
            self.agent._sess.run(self.agent._q_argmax, {self.agent.state_ph: self.agent.state})


def peak_memory(script: str, name: str) -> np.ndarray:
    """Measures one agent's memory in a process of its own.

    Args:
        script: the program, which takes `--measure_memory_of` and prints MiB last.
        name: the agent.

    Returns:
        The peak in MiB, shape [1].
    """
    output = subprocess.run(
        [sys.executable, script, "--measure_memory_of", name],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return np.array([float(output.split()[-1])])


def benchmark_agents(rounds: int) -> None:
    """Prints the figures of the two agents."""
    print(f"{GAME}, batch size 32, TensorFlow {tf.__version__} on {'a GPU' if DEVICES else 'CPU'}")
    print(f"{'':<22}{'LogDQN':>10}{'DQN':>10}")
    # First: a process's peak begins at the size of the process that starts it.
    memory = [peak_memory(__file__, name) for name in ("LogDQN", "DQN")]
    learners = {name: Learner(name, replay_steps=2000) for name in AGENTS}

    def measure(figure: str, steps: int, method: str) -> tuple[np.ndarray, np.ndarray]:
        blocks = {
            name: (lambda learner=learner: getattr(learner, method)(steps))
            for name, learner in learners.items()
        }
        seconds = interleave(blocks, rounds, figure)
        return seconds["LogDQN"] / steps, seconds["DQN"] / steps

    ours, theirs = measure("training step", 8, "train")
    report("training step", 1e3 * ours, 1e3 * theirs, "ms")
    ours, theirs = measure("acting", 100, "act")
    report("acting", 1e3 * ours, 1e3 * theirs, "ms")
    ours, theirs = measure("whole loop", 100, "loop")
    report("whole loop", 1 / ours, 1 / theirs, "steps/s")
    report("peak memory", memory[0], memory[1], "MiB")


def fill_with_real_frames(memory: Any, game: str) -> None:
    """Fills a replay memory with frames of a game under random play.

    Args:
        memory: Dopamine's replay memory.
        game: name of the game.
    """
    store, capacity, num_games = memory._store, memory._replay_capacity, 8
    # Dopamine's preprocessing, in C++ threads.
    games = AtariVectorEnv(
        re.sub(r"(?<!^)(?=[A-Z])", "_", game).lower(),
        num_envs=num_games,
        stack_num=1,
        noop_max=0,
        use_fire_reset=False,
        episodic_life=False,
        reward_clipping=False,
        max_num_frames_per_episode=atari.MAX_FRAMES_PER_EPISODE,
        repeat_action_probability=0.25,
    )
    rng = np.random.default_rng(0)
    frames, _ = games.reset(seed=0)
    num_actions = games.single_action_space.n  # type: ignore[attr-defined]
    rows = np.arange(num_games) * (capacity // num_games)
    for _ in tqdm(range(capacity // num_games), f"playing {game}", disable=None):
        actions = rng.integers(num_actions, size=num_games)
        store["observation"][rows] = frames[:, 0]
        frames, rewards, terminals, *_ = games.step(actions)
        store["action"][rows] = actions
        store["reward"][rows] = np.clip(rewards, -1, 1)
        store["terminal"][rows] = terminals
        rows += 1
    memory.add_count = np.array(capacity)
    memory.episode_end_indices = set(np.flatnonzero(store["terminal"]).tolist())


def benchmark_checkpoint(game: str) -> None:
    """Prints time, size and memory of a checkpoint with 1M frames, Dopamine's and ours."""
    agent = dqn_agent.DQNAgent(None, num_actions=6, tf_device="/gpu:0")
    memory = agent._replay.memory
    fill_with_real_frames(memory, game)
    expected = {name: array.copy() for name, array in memory._store.items() if array.ndim == 1}
    sample = memory._store["observation"][::1000].copy()

    def measure(name: str, action: Callable[[], Any]) -> float:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.perf_counter()
        action()
        seconds = time.perf_counter() - begin
        growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
        print(f"{name:<16}{seconds:8.1f} s, peak memory +{growth:.2f} GiB", flush=True)
        return seconds

    def size(folder: pathlib.Path) -> float:
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6

    def check() -> None:
        for name, array in expected.items():
            np.testing.assert_array_equal(memory._store[name], array)
        np.testing.assert_array_equal(memory._store["observation"][::1000], sample)

    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = pathlib.Path(folder) / "ours", pathlib.Path(folder) / "dopamine"
        theirs.mkdir()
        state: dict[str, Any] = {}

        def save_ours() -> None:
            checkpoints.write(
                ours, 0, lambda path: state.update(agent_checkpoint.save(agent, path)), {}
            )

        def load_ours() -> None:
            checkpoints.read_manifest(ours / "0")
            agent_checkpoint.load(agent, ours / "0", state)

        print(f"{game}, {memory._replay_capacity:,} frames")
        save = measure("save, ours", save_ours)
        memory._store["observation"][:] = 0
        load = measure("load, ours", load_ours)
        check()
        bundle: dict[str, Any] = {}
        host_save = measure(
            "save, Dopamine",
            lambda: bundle.update(agent.bundle_and_checkpoint(str(theirs), 0)),
        )
        memory._store["observation"][:] = 0
        host_load = measure("load, Dopamine", lambda: agent.unbundle(str(theirs), 0, bundle))
        check()
        print(f"size            {size(ours):.0f} MB ours, {size(theirs):.0f} MB Dopamine")
        print(f"Dopamine / ours saving {host_save / save:.1f}, loading {host_load / load:.1f}")


def main() -> None:
    """Runs the measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what",
        nargs="?",
        choices=("agents", "checkpoint", "vectorized", "linear", "sweep"),
        default="agents",
    )
    parser.add_argument("--framework", choices=("tf", "jax"), default="tf", help="of agents")
    parser.add_argument("--rounds", type=int, default=60, help="blocks of agents' figures, sweeps")
    parser.add_argument("--game", choices=GAMES, default=GAME, help="game of checkpoint")
    parser.add_argument("--measure_memory_of", choices=list(AGENTS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    other = "vectorized" if args.what == "vectorized" else args.framework
    if other != "tf":
        # In a process of its own: TensorFlow 1's graphs are not for JAX's agents.
        script = pathlib.Path(__file__).with_name(f"benchmark_{other}.py")
        sys.exit(subprocess.call([sys.executable, str(script), f"--rounds={args.rounds}"]))
    tf.get_logger().setLevel("ERROR")
    tf.compat.v1.disable_v2_behavior()
    if args.measure_memory_of:
        Learner(args.measure_memory_of, replay_steps=1000).loop(1000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    elif args.what == "checkpoint":
        benchmark_checkpoint(args.game)
    elif args.what == "linear":
        linear_benchmark.run()
    elif args.what == "sweep":
        sweep_benchmark.run(args.rounds)
    else:
        benchmark_agents(args.rounds)


if __name__ == "__main__":
    main()
