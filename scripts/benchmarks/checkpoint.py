"""Checkpoints with a full replay memory of 1,000,000 frames of Pong: Dopamine's and ours."""

import argparse
import pathlib
import tempfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import agents_tf, measuring
from log_dqn.run_folder import checkpoints
from log_dqn.tf import agent_checkpoint

# Frames of random play, again and again: further apart than either compressor's window.
_FRAMES = 10_000


def _fill(memory: Any) -> None:
    """Repeats what Dopamine's replay memory begins with until it is full."""
    for array in memory._store.values():
        for start in range(_FRAMES, len(array), _FRAMES):
            array[start : start + _FRAMES] = array[: len(array[start : start + _FRAMES])]
    memory.add_count = np.array(memory._replay_capacity)
    memory.episode_end_indices = set(np.flatnonzero(memory._store["terminal"]).tolist())


def _checksums(memory: Any) -> dict[str, int]:
    return {name: zlib.crc32(array) for name, array in memory._store.items()}


def run(_: argparse.Namespace) -> None:
    """Prints a table of saving and one of loading, each done once.

    Raises:
        ValueError: what was loaded is not what was saved.
    """
    agents_tf.set_up()
    agent = agents_tf.Player("DQN", replay_steps=_FRAMES).agent
    memory = agent._replay.memory
    _fill(memory)
    saved = _checksums(memory)
    state: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        ours, theirs = pathlib.Path(name, "ours"), pathlib.Path(name, "dopamine")
        theirs.mkdir()

        def save_ours() -> None:
            checkpoints.write(
                ours, 0, lambda path: state.update(agent_checkpoint.save(agent, path)), {}
            )

        def load_ours() -> None:
            checkpoints.read_manifest(ours / "0")
            agent_checkpoint.load(agent, ours / "0", state)

        def load_theirs() -> None:
            if not agent.unbundle(str(theirs), 0, state):
                raise ValueError("Dopamine can't load its checkpoint")

        def loaded(load: Callable[[], None]) -> float:
            for array in memory._store.values():
                array[:] = 0
            seconds = measuring.timed(load)()
            if _checksums(memory) != saved:
                raise ValueError(
                    f"{load.__name__}: the replay memory is not the one that was saved"
                )
            return seconds

        bundle = agent.bundle_and_checkpoint
        saving = {
            "ours": measuring.timed(save_ours),
            "Dopamine's": measuring.timed(lambda: state.update(bundle(str(theirs), 0))),
        }
        loading = {"ours": lambda: loaded(load_ours), "Dopamine's": lambda: loaded(load_theirs)}
        for title, blocks in (("saving", saving), ("loading", loading)):
            times = measuring.interleave(blocks, 1, title, warm_up=0)
            measuring.print_table(title, "s", times)
