"""What a training run needs of an agent's graph and Dopamine's agents don't offer.

They leave an agent's arithmetic as it is.
"""

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf
from dopamine.tf.agents.dqn import dqn_agent

# Begins the message of the error that `install_loss_check` makes a training step raise.
NOT_FINITE = "the loss is not finite"


@contextlib.contextmanager
def collect_losses() -> Iterator[list[tf.Tensor]]:
    """Collects the losses whose minimisation is built while the block runs."""
    losses = []
    optimizer_class = tf.compat.v1.train.Optimizer
    minimize = optimizer_class.minimize

    def collecting_minimize(self: Any, loss: tf.Tensor, *args: Any, **kwargs: Any) -> Any:
        losses.append(loss)
        return minimize(self, loss, *args, **kwargs)

    optimizer_class.minimize = collecting_minimize
    try:
        yield losses
    finally:
        optimizer_class.minimize = minimize


@contextlib.contextmanager
def save_random_state() -> Iterator[None]:
    """Makes `tf.random.uniform` keep its state in a variable while the block runs.

    TensorFlow 1's random operations keep theirs where no checkpoint reaches it. Of Dopamine's
    agents IQN draws random numbers in its graph, and with this function only. Each call gets a
    variable of its own: operations that run in parallel would draw from one in any order.
    """
    uniform = tf.random.uniform

    def uniform_with_saved_state(*args: Any, **kwargs: Any) -> tf.Tensor:
        generator = tf.random.Generator.from_seed(random.getrandbits(31))
        return generator.uniform(*args, **kwargs)

    tf.random.uniform = uniform_with_saved_state
    try:
        yield
    finally:
        tf.random.uniform = uniform


def install_loss_check(agent: dqn_agent.DQNAgent, loss: tf.Tensor) -> None:
    """Makes a training step whose loss, a scalar tensor, is NaN or infinite raise an error.

    The error is a `tf.errors.InvalidArgumentError` whose message holds `NOT_FINITE` and statistics
    of the batch.
    """
    rewards, terminals = agent._replay.rewards, agent._replay.terminals
    with loss.graph.as_default(), tf.device("/cpu:0"):
        check = tf.compat.v1.Assert(
            tf.math.is_finite(loss),
            [
                NOT_FINITE + ":",
                loss,
                "in a batch with rewards from",
                tf.reduce_min(rewards),
                "to",
                tf.reduce_max(rewards),
                "and mean",
                tf.reduce_mean(rewards),
                "and terminal transitions:",
                tf.reduce_sum(tf.cast(terminals, tf.int32)),
                "of",
                tf.size(terminals),
            ],
        )
        with tf.control_dependencies([check]):
            agent._train_op = (agent._train_op, tf.no_op())


def watch_summaries(agent: dqn_agent.DQNAgent, see: Callable[[Mapping[str, float]], None]) -> None:
    """Has a function called with the scalars by tag that an agent writes to TensorBoard."""
    add_summary = agent.summary_writer.add_summary

    def watched(summary: Any, step: int) -> None:
        if isinstance(summary, bytes):  # The agent's; the runner's are messages.
            values = tf.compat.v1.Summary.FromString(summary).value
            see({value.tag: value.simple_value for value in values})
        add_summary(summary, step)

    agent.summary_writer.add_summary = watched
