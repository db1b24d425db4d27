"""Checkpoints with a replay memory of 1,000,000 frames: Dopamine's and ours."""

import pathlib
import resource
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks import agents_tf
from log_dqn import compat, games
from log_dqn.run_folder import checkpoints

with compat.quiet():
    from ale_py.vector_env import AtariVectorEnv
    from dopamine.tf.agents.dqn import dqn_agent

    from log_dqn import atari
    from log_dqn.tf import agent_checkpoint


def fill_with_real_frames(memory: Any, game: str) -> None:
    """Fills Dopamine's replay memory with frames of a game under random play."""
    store, capacity, num_games = memory._store, memory._replay_capacity, 8
    # Dopamine's preprocessing, in C++ threads.
    emulators = AtariVectorEnv(
        games.rom_name(game),
        num_envs=num_games,
        stack_num=1,
        noop_max=0,
        use_fire_reset=False,
        episodic_life=False,
        reward_clipping=False,
        max_num_frames_per_episode=atari.MAX_FRAMES_PER_EPISODE,
        repeat_action_probability=games.STICKY_PROBABILITY,
    )
    rng = np.random.default_rng(0)
    frames: np.ndarray = emulators.reset(seed=0)[0]
    num_actions = emulators.single_action_space.n  # type: ignore[attr-defined]
    rows = np.arange(num_games) * (capacity // num_games)
    for _ in tqdm(range(capacity // num_games), f"playing {game}", disable=None):
        actions = rng.integers(num_actions, size=num_games)
        store["observation"][rows] = frames[:, 0]
        frames, rewards, terminals, *_ = emulators.step(actions)
        store["action"][rows] = actions
        store["reward"][rows] = np.clip(rewards, -1, 1)
        store["terminal"][rows] = terminals
        rows += 1
    memory.add_count = np.array(capacity)
    memory.episode_end_indices = set(np.flatnonzero(store["terminal"]).tolist())


def run(game: str) -> None:
    """Prints time, size and memory of both, the replay memory filled with a game's frames."""
    agents_tf.set_up()
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
