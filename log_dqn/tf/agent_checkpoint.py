"""Saving and loading of Dopamine's TensorFlow agents, in our format and in Dopamine's."""

import gzip
import pathlib
import re
import zlib
from typing import IO, Any, cast

import numpy as np
import tensorflow as tf
from dopamine.tf.agents.dqn import dqn_agent

from log_dqn import compat
from log_dqn.run_folder import arrays, safe_pickle
from log_dqn.run_folder.checkpoints import WEIGHTS, replay_array
from log_dqn.run_folder.data import check_finite

_PRIORITIES = "priorities"
# What a checkpoint of a prioritized replay memory names.
_SUM_TREE = ("dopamine.tf.replay_memory.sum_tree", "SumTree")


def check_weights(agent: dqn_agent.DQNAgent) -> None:
    """Checks an agent's weights; raises FloatingPointError if one is NaN or infinite."""
    check_finite(agent._sess.run(agent.online_convnet.trainable_variables))


def save(agent: dqn_agent.DQNAgent, folder: pathlib.Path) -> dict[str, Any]:
    """Writes variables and replay memory of an agent that is between two episodes.

    Returns:
        The rest of the agent's state, plain data for `load`.

    Raises:
        FloatingPointError: if a weight is NaN or infinite.
    """
    check_weights(agent)
    try:
        agent._saver.save(
            agent._sess, str(folder / WEIGHTS), write_meta_graph=False, write_state=False
        )
    except tf.errors.OpError as error:
        # The message is a page; the system's reason follows the file's path.
        reason = re.search(rf"{WEIGHTS}\S*; (.+)", error.message)
        raise OSError(
            f"the weights can't be written ({reason[1] if reason else type(error).__name__})"
        ) from error
    memory = agent._replay.memory
    rows = min(int(memory.add_count), memory._replay_capacity)
    for name, array in memory._store.items():
        arrays.save(replay_array(folder, name), array[:rows])
    state = {
        "state": agent.state,
        "training_steps": agent.training_steps,
        "add_count": int(memory.add_count),
        "invalid_range": memory.invalid_range,
        "episode_end_indices": sorted(int(i) for i in memory.episode_end_indices),
        "next_experience_is_episode_start": memory._next_experience_is_episode_start,
    }
    if hasattr(memory, "sum_tree"):
        # Every level: the inner sums carry the rounding of their history.
        nodes = np.concatenate(memory.sum_tree.nodes)
        arrays.save(replay_array(folder, _PRIORITIES), nodes)
        state["max_recorded_priority"] = float(memory.sum_tree.max_recorded_priority)
    return state


def load(agent: dqn_agent.DQNAgent, folder: pathlib.Path, state: dict[str, Any]) -> None:
    """Reads what `save` has written and returned into an agent made with the same settings.

    Raises:
        ValueError: if the replay memory doesn't fit the agent.
        tf.errors.OpError: if the variables can't be read or don't fit.
    """
    memory = agent._replay.memory
    for name, array in memory._store.items():
        arrays.load_into(replay_array(folder, name), array)
    if hasattr(memory, "sum_tree"):
        levels = memory.sum_tree.nodes
        nodes = np.concatenate(levels)
        arrays.load_into(replay_array(folder, _PRIORITIES), nodes)
        ends = np.cumsum([len(level) for level in levels])
        memory.sum_tree.nodes = np.split(nodes, ends[:-1])
        memory.sum_tree.max_recorded_priority = state["max_recorded_priority"]
    load_weights(agent, folder)
    memory.add_count = np.array(state["add_count"])
    memory.invalid_range = state["invalid_range"]
    memory.episode_end_indices = set(state["episode_end_indices"])
    memory._next_experience_is_episode_start = state["next_experience_is_episode_start"]
    agent.state = state["state"]
    agent.training_steps = state["training_steps"]


def load_weights(agent: dqn_agent.DQNAgent, folder: pathlib.Path) -> None:
    """Reads the variables alone, which are all that an agent needs to act."""
    _restore(agent, folder, WEIGHTS)


def _restore(agent: dqn_agent.DQNAgent, folder: pathlib.Path, name: str) -> None:
    with compat.without_wildcards(folder) as path:
        agent._saver.restore(agent._sess, str(path / name))


def dopamine_iterations(folder: pathlib.Path) -> list[int]:
    """Returns the iterations of the checkpoints that Dopamine's own runner has completed."""
    sentinels = folder.glob("sentinel_checkpoint_complete.*")
    return sorted(int(path.suffix[1:]) for path in sentinels)


def load_dopamine(
    agent: dqn_agent.DQNAgent, folder: pathlib.Path, iteration: int
) -> dict[str, Any]:
    """Reads a checkpoint that Dopamine's own runner has written in its folder `checkpoints`.

    Returns:
        The runner's part of it: `current_iteration` and `logs`.

    Raises:
        ValueError: if a file is damaged, names code, or doesn't fit the agent.
        tf.errors.OpError: if the variables can't be read or don't fit.
    """
    with open(folder / f"ckpt.{iteration}", "rb") as file:
        bundle = safe_pickle.load(file)
    memory = agent._replay.memory
    for name in memory._return_checkpointable_elements():
        path = folder / f"{name}_ckpt.{iteration}.gz"
        try:
            with cast(IO[bytes], gzip.open(path)) as file:
                _load_dopamine_element(memory, name, file)
                if file.read(1):  # Reading to the end checks the checksum.
                    raise ValueError("it is longer than it says")
        except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path.name}: {error}") from error
    _restore(agent, folder, f"tf_ckpt-{iteration}")
    agent.state = np.asarray(bundle["state"])
    agent.training_steps = bundle["training_steps"]
    return bundle


def _load_dopamine_element(memory: Any, name: str, file: IO[bytes]) -> None:
    """Reads one element of Dopamine's replay memory from its file."""
    if name.startswith("$store$_"):
        array = memory._store[name.removeprefix("$store$_")]
        array[...] = _load_like(array, file)
    elif name == "sum_tree":
        tree = safe_pickle.load(file, records=[_SUM_TREE]).state
        for level, loaded in zip(memory.sum_tree.nodes, tree["nodes"], strict=True):
            level[...] = np.asarray(loaded)
        memory.sum_tree.max_recorded_priority = float(tree["max_recorded_priority"])
    elif isinstance(getattr(memory, name), np.ndarray):
        setattr(memory, name, np.load(file, allow_pickle=False))
    else:
        setattr(memory, name, safe_pickle.load(file))


def _load_like(array: np.ndarray, file: IO[bytes]) -> np.ndarray:
    loaded = np.load(file, allow_pickle=False)
    if loaded.shape != array.shape or loaded.dtype != array.dtype:
        raise ValueError(
            f"it holds {loaded.dtype} of shape {loaded.shape}, not {array.dtype} of shape "
            f"{array.shape}"
        )
    return loaded
