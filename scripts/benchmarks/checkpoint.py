"""Checkpoints with a full replay memory of 1,000,000 frames of Pong: Dopamine's and ours."""

import argparse
import pathlib
import tempfile
from typing import Any

import numpy as np

from benchmarks import agents_tf, measuring
from log_dqn.run_folder import checkpoints
from log_dqn.tf import agent_checkpoint

# Frames of random play, again and again: further apart than any of both compressions looks back.
_FRAMES = 10_000


def _fill(memory: Any) -> None:
    """Repeats what Dopamine's replay memory begins with until it is full."""
    for array in memory._store.values():
        for start in range(_FRAMES, len(array), _FRAMES):
            array[start : start + _FRAMES] = array[: len(array[start : start + _FRAMES])]
    memory.add_count = np.array(memory._replay_capacity)
    memory.episode_end_indices = set(np.flatnonzero(memory._store["terminal"]).tolist())


def run(_: argparse.Namespace) -> None:
    """Prints a table of saving and one of loading, each done once."""
    agents_tf.set_up()
    agent = agents_tf.Player("DQN", replay_steps=_FRAMES).agent
    _fill(agent._replay.memory)
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

        bundle = agent.bundle_and_checkpoint
        saving = {"ours": save_ours, "Dopamine's": lambda: state.update(bundle(str(theirs), 0))}
        loading = {"ours": load_ours, "Dopamine's": lambda: agent.unbundle(str(theirs), 0, state)}
        for title, work in (("saving", saving), ("loading", loading)):
            blocks = {name: measuring.timed(of) for name, of in work.items()}
            times = measuring.interleave(blocks, 1, title, warm_up=0)
            measuring.print_table(title, "s", times)
