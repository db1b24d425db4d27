"""Saving and loading of Dopamine's JAX agents.

Dopamine's own way pickles its classes, which a safe reader refuses, and leaves out the random
key.
"""

import collections
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from dopamine.jax.agents.dqn import dqn_agent
from dopamine.jax.replay_memory import elements

from log_dqn.jax import trees
from log_dqn.run_folder import arrays
from log_dqn.run_folder.checkpoints import replay_array, replay_parts
from log_dqn.run_folder.data import check_finite

_TREES = ("online_params", "target_network_params", "optimizer_state")
_NUMBERS = ("action", "reward", "is_terminal", "episode_end")
_STACKS = ("state", "next_state")


def check_weights(agent: dqn_agent.JaxDQNAgent) -> None:
    """Checks an agent's weights; raises FloatingPointError if one is NaN or infinite."""
    check_finite(np.asarray(leaf) for leaf in jax.tree.leaves(agent.online_params))


def save(agent: dqn_agent.JaxDQNAgent, folder: pathlib.Path) -> dict[str, Any]:
    """Writes the replay memory of an agent that is between two episodes.

    Returns:
        The rest of the agent's state, plain data for `load`.

    Raises:
        FloatingPointError: if a weight is NaN or infinite.
    """
    weights = {
        name: [np.asarray(leaf) for leaf in jax.tree.leaves(getattr(agent, name))]
        for name in _TREES
    }
    check_weights(agent)
    replay = agent._replay
    memory = replay._memory.values()
    for name in _NUMBERS:
        numbers = np.array([getattr(element, name) for element in memory])
        arrays.save(replay_array(folder, name), numbers)
    for name in _STACKS:
        parts = [_bytes_of(getattr(element, name)) for element in memory]
        sizes = np.array([len(part) for part in parts], np.int64)
        arrays.save(replay_array(folder, f"{name}_sizes"), sizes)
        arrays.save_parts(replay_parts(folder, name), parts)
    sampling = replay._sampling_distribution.to_state_dict()
    sampling["key_by_index"] = np.array(sampling["key_by_index"], np.int64)
    del sampling["index_by_key"]  # the inverse of key_by_index
    tree = getattr(replay._sampling_distribution, "_sum_tree", None)
    return {
        "state": agent.state,
        "training_steps": agent.training_steps,
        "rng": np.asarray(agent._rng),
        **weights,
        "add_count": int(replay.add_count),
        "keys": np.array(list(replay._memory), np.int64),
        "stack": _shape_and_dtype(next(iter(memory)).state) if memory else None,
        "sampling": sampling,
        "max_recorded_priority": tree and float(tree.max_recorded_priority),
        "trajectory": [tuple(step) for step in replay._transition_accumulator._trajectory],
    }


def load(agent: dqn_agent.JaxDQNAgent, folder: pathlib.Path, state: dict[str, Any]) -> None:
    """Reads what `save` has written and returned into an agent made with the same settings.

    Raises:
        ValueError: if a file is damaged or doesn't fit the agent.
    """
    for name in _TREES:
        setattr(agent, name, trees.with_leaves(getattr(agent, name), state[name]))
    agent._rng = jnp.asarray(state["rng"])
    agent.state = state["state"]
    agent.training_steps = state["training_steps"]

    replay = agent._replay
    keys = state["keys"].tolist()
    columns: list[Any] = [list(arrays.load(replay_array(folder, name))) for name in _NUMBERS]
    for name in _STACKS:
        sizes = arrays.load(replay_array(folder, f"{name}_sizes"))
        parts = arrays.load_parts(replay_parts(folder, name), sizes.tolist())
        columns.append([_stack_of(part, state["stack"], replay._compress) for part in parts])
    names = (*_NUMBERS, *_STACKS)
    replay._memory = collections.OrderedDict(
        (key, elements.ReplayElement(**dict(zip(names, values, strict=True))))
        for key, *values in zip(keys, *columns, strict=True)
    )
    replay.add_count = state["add_count"]
    key_by_index = state["sampling"]["key_by_index"].tolist()
    replay._sampling_distribution.from_state_dict(
        {
            **state["sampling"],
            "key_by_index": key_by_index,
            "index_by_key": {key: index for index, key in enumerate(key_by_index)},
        }
    )
    if state["max_recorded_priority"] is not None:
        replay._sampling_distribution._sum_tree.max_recorded_priority = state[
            "max_recorded_priority"
        ]
    trajectory = replay._transition_accumulator._trajectory
    trajectory.clear()
    trajectory.extend(elements.TransitionElement(*step) for step in state["trajectory"])


def load_weights(agent: dqn_agent.JaxDQNAgent, state: dict[str, Any]) -> None:
    """Takes what an agent needs to act, and nothing else, out of what `save` has returned."""
    agent.online_params = trees.with_leaves(agent.online_params, state["online_params"])


def _bytes_of(stack: np.ndarray) -> bytes:
    """Returns the bytes of a frame stack, packed ones if Dopamine has packed it."""
    return (stack["data"] if stack.dtype.names else stack).tobytes()


def _shape_and_dtype(stack: np.ndarray) -> tuple[tuple[int, ...], str]:
    if stack.dtype.names:
        return tuple(stack["shape"].tolist()), stack["dtype"].item().decode()
    return stack.shape, stack.dtype.str


def _stack_of(data: bytes, like: tuple[tuple[int, ...], str], packed: bool) -> np.ndarray:
    """Makes a frame stack of a shape and dtype as it was stored."""
    shape, dtype = tuple(like[0]), like[1]
    raw = np.frombuffer(data, np.uint8)
    if not packed:
        return raw.view(dtype).reshape(shape)
    # As dopamine.jax.replay_memory.elements.compress builds it.
    dtypes = ("u1", "i4", f"S{len(dtype)}")
    shapes = (raw.shape, (len(shape),), ())
    fields = list(zip(("data", "shape", "dtype"), dtypes, shapes, strict=True))
    return np.array((raw, shape, dtype), dtype=fields)
