"""A run's replay memory: a ring of single frames, from which states are put together.

Pure functions on arrays. Steps are numbered from 0 in the order in which they were stored; step j
lies in slot j modulo the number of slots. An n-step transition begins at every step. If a time
limit cuts it off, its next state is unknown; `without_cuts` leaves such transitions out.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from log_dqn.jax.update import Batch


class Memory(NamedTuple):
    """The ring.

    Attributes:
        frames: observation of each step, shape [num_slots, ...].
        ages: how many steps of its episode came before, at most stack_size - 1, uint8.
        actions: action taken, int8, or int16 for more than 128 actions.
        rewards: reward that followed, float32.
        terminals: whether that ended the episode, and how: 0, ENDED or CUT, uint8.
    """

    frames: Any
    ages: Any
    actions: Any
    rewards: Any
    terminals: Any


ENDED, CUT = 1, 2
"""How an episode is over: it has ended, or a time limit has cut it off."""


def num_slots(capacity: int, stack_size: int, update_horizon: int) -> int:
    """Returns the slots in which `capacity` transitions find all their frames."""
    return capacity + stack_size - 1 + update_horizon


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def create(
    shape: tuple[int, ...], frame_shape: tuple[int, ...], frame_dtype: Any, num_actions: int
) -> Memory:
    """Returns an empty memory.

    `shape` is (num_slots,), or (num_runs, num_slots) for several runs.
    """
    return Memory(
        frames=jnp.zeros((*shape, *frame_shape), frame_dtype),
        ages=jnp.zeros(shape, jnp.uint8),
        actions=jnp.zeros(shape, jnp.int8 if num_actions <= 128 else jnp.int16),
        rewards=jnp.zeros(shape, jnp.float32),
        terminals=jnp.zeros(shape, jnp.uint8),
    )


def add_step(memory: Memory, slot: Any, frame: Any, age: Any, action: Any) -> Memory:
    """Stores an observation and the action taken on it; a slot beyond the last stores nothing."""
    return memory._replace(
        frames=memory.frames.at[slot].set(frame, mode="drop"),
        ages=memory.ages.at[slot].set(age.astype(jnp.uint8), mode="drop"),
        actions=memory.actions.at[slot].set(action.astype(memory.actions.dtype), mode="drop"),
    )


def add_result(memory: Memory, slot: Any, reward: Any, terminal: Any) -> Memory:
    """Stores the result of a step; a slot beyond the last stores nothing."""
    terminal = jnp.asarray(terminal, jnp.uint8)
    return memory._replace(
        rewards=memory.rewards.at[slot].set(reward, mode="drop"),
        terminals=memory.terminals.at[slot].set(terminal, mode="drop"),
    )


def draw(
    key: jax.Array,
    oldest: Any,
    available: Any,
    slots: int,
    batch_size: int,
    stack_size: int,
    update_horizon: int,
) -> jax.Array:
    """Draws transitions uniformly, with replacement.

    Args:
        key: random key.
        oldest: slot of the oldest transition's first step.
        available: number of transitions; they begin at the steps that follow `oldest`.
        slots: number of slots.
        batch_size: number of transitions to draw.
        stack_size: frames of a state.
        update_horizon: n.

    Returns:
        Slots of the frames of each transition: those of the state, and n more, shape
        [batch_size, stack_size + update_horizon].
    """
    first = oldest + jax.random.randint(key, (batch_size, 1), 0, available)
    offsets = jnp.arange(1 - stack_size, update_horizon + 1)
    return (first + offsets) % slots


def read(memory: Memory, slots: Any) -> Memory:
    """Returns the steps in some slots."""
    return Memory(*(values[slots] for values in memory))


def _ends(steps: Memory, stack_size: int) -> tuple[jax.Array, jax.Array]:
    """Returns, for each step, how many episodes have ended up to it, and whether any did before."""
    over = steps.terminals[:, stack_size - 1 : -1] > 0
    ends = jnp.cumsum(over, axis=1)
    return ends, ends - over > 0


def without_cuts(steps: Memory, stack_size: int, batch_size: int) -> Memory:
    """Returns a batch of transitions that no time limit cuts off before their n steps.

    If there are too few they are taken again in turn, so that sampling stays uniform. If all are
    cut off, as in episodes of at most n steps, a time limit counts as an end.

    Args:
        steps: as in `transitions`, of at least as many transitions.
        stack_size: frames of a state.
        batch_size: number of transitions to return.
    """
    _, after_end = _ends(steps, stack_size)
    is_cut = (steps.terminals[:, stack_size - 1 : -1] == CUT) & ~after_end
    is_whole = ~is_cut.any(axis=1)
    whole_first = jnp.argsort(~is_whole, stable=True)
    count = jnp.where(is_whole.any(), is_whole.sum(), len(is_whole))
    turns = jnp.arange(batch_size) % count
    return read(steps, whole_first[turns])


def transitions(steps: Memory, stack_size: int, gamma: Any) -> Batch:
    """Builds n-step transitions.

    Args:
        steps: what `draw`'s slots hold, shape [batch_size, stack_size + n, ...].
        stack_size: frames of a state.
        gamma: discount factor.

    Returns:
        Transitions. States have the stack as their last axis, oldest frame first, with zeros
        before the episode's first. Rewards are summed and discounted until the end of the episode
        or n. The next state after an end is meaningless.
    """
    n = steps.rewards.shape[1] - stack_size
    at = stack_size - 1  # where the transition begins

    def stack(end: int) -> jax.Array:
        frames = steps.frames[:, end - at : end + 1]
        back = jnp.arange(at, -1, -1)
        inside = back <= steps.ages[:, end, None]
        frames = jnp.where(inside.reshape(inside.shape + (1,) * (frames.ndim - 2)), frames, 0)
        return jnp.moveaxis(frames, 1, -1)

    ends, after_end = _ends(steps, stack_size)
    discounted = gamma ** jnp.arange(n) * steps.rewards[:, at : at + n]
    return Batch(
        states=stack(at),
        actions=steps.actions[:, at].astype(jnp.int32),
        next_states=stack(at + n),
        rewards=jnp.where(after_end, 0.0, discounted).sum(axis=1),
        terminals=ends[:, -1] > 0,
    )
