"""Training steps in JAX: pure functions of float32 arrays, without TensorFlow or Dopamine.

LogDQN's formulas are `log_dqn.log_space`'s.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from log_dqn import log_space


class Batch(NamedTuple):
    """Transitions sampled from the replay memory.

    Attributes:
        states: shape [batch_size, ...].
        actions: integers, shape [batch_size].
        next_states: shape [batch_size, ...].
        rewards: n-step rewards, shape [batch_size].
        terminals: whether the next state is terminal, bool, shape [batch_size].
    """

    states: Any
    actions: Any
    next_states: Any
    rewards: Any
    terminals: Any


# LogDQN's loss, for `train_step`.
batch_loss = functools.partial(log_space.batch_loss, stop_gradient=jax.lax.stop_gradient, xp=jnp)


def dqn_batch_loss(
    gamma_n: log_space.Scalar,
    loss_type: str,
    qs: jax.Array,
    next_qs: jax.Array,
    actions: jax.Array,
    rewards: jax.Array,
    terminals: jax.Array,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Returns DQN's loss (Mnih et al., 2015), the mean over a batch, and statistics.

    Args:
        gamma_n: gamma^n for an n-step update.
        loss_type: 'huber' or 'mse'.
        qs: the online network's outputs in s, shape [batch_size, num_actions].
        next_qs: the target network's outputs in s', of the same shape.
        actions: the actions taken in s, shape [batch_size].
        rewards: n-step rewards, shape [batch_size].
        terminals: whether s' is terminal, bool, shape [batch_size].

    Returns:
        The loss, a scalar, and scalars by their TensorBoard tags, means over the batch.
    """
    targets = rewards + gamma_n * jnp.where(terminals, 0.0, next_qs.max(axis=-1))
    chosen = log_space.select(qs, actions, jnp)
    mean_loss = log_space.loss(jax.lax.stop_gradient(targets) - chosen, loss_type, jnp).mean()
    return mean_loss, {"Losses/Loss": mean_loss, "Values/Q": chosen.mean()}


def train_step(
    batch_loss: Callable[..., tuple[jax.Array, dict[str, jax.Array]]],
    network: Callable[[Any, Any], Any],
    optimizer: optax.GradientTransformation,
    params: Any,
    target_params: Any,
    optimizer_state: Any,
    batch: Batch,
) -> tuple[Any, Any, dict[str, jax.Array]]:
    """Runs an update from one batch; to be compiled with its first three arguments bound.

    Args:
        batch_loss: `batch_loss` or `dqn_batch_loss` with its first two arguments bound.
        network: maps parameters and states of shape [batch_size, ...] to the outputs that
            `batch_loss` takes.
        optimizer: LogDQN's learning rate is beta_log.
        params: parameters of the online network.
        target_params: parameters of the target network.
        optimizer_state: state of the optimizer.
        batch: the transitions.

    Returns:
        New parameters, new state of the optimizer, and the loss's statistics.
    """
    next_outputs = network(target_params, batch.next_states)

    def loss_fn(params: Any) -> tuple[jax.Array, dict[str, jax.Array]]:
        return batch_loss(
            network(params, batch.states),
            next_outputs,
            batch.actions,
            batch.rewards,
            batch.terminals,
        )

    gradients, statistics = jax.grad(loss_fn, has_aux=True)(params)
    updates, optimizer_state = optimizer.update(gradients, optimizer_state, params)
    return optax.apply_updates(params, updates), optimizer_state, statistics
