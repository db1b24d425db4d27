"""LogDQN: logarithmic deep Q-learning on Dopamine's JAX DQN (paper, section 5)."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gin
import jax
import numpy as np
import optax
import tensorflow as tf
from dopamine.jax.agents.dqn import dqn_agent
from dopamine.metrics import statistics_instance

from log_dqn import log_space
from log_dqn.checks import check, check_one_of
from log_dqn.compat import take_parameters_of
from log_dqn.jax import (
    compat,  # noqa: F401  It repairs Dopamine's JAX agents.
    heads,
    optimizers,
    update,
)

# Not through gin, which would note its settings in the record of every run that is started in the
# process, TensorFlow's too.
_OPTIMIZER = inspect.unwrap(optimizers.rmsprop_tf)(learning_rate=0.0025)


@gin.configurable
class JaxLogDQNAgent(dqn_agent.JaxDQNAgent):
    """DQN with a plus and a minus head, learned in the log space, in float32.

    Its parameters are JaxDQNAgent's in their order, then `log_space.LogUpdate`'s, then its own.
    The defaults are the paper's. `help(JaxLogDQNAgent)` lists all of them.
    """

    online_params: Any
    optimizer_state: Any
    # Called with the statistics by tag that are written to TensorBoard.
    see_statistics: Callable[[Mapping[str, np.ndarray]], None] | None = None

    @take_parameters_of(dqn_agent.JaxDQNAgent, log_space.LogUpdate)
    def __init__(
        self,
        dopamine: dict[str, Any],
        log_update: dict[str, Any],
        *,
        optimizer: optax.GradientTransformation | str = _OPTIMIZER,
        head_init: str = "asymmetric",
        loss_type: str = "huber",
        precision: str = "float32",
    ) -> None:
        """Initializes the agent.

        Args:
            dopamine: collected by the decorator: JaxDQNAgent's parameters, given by name or place;
                `network` gets twice the outputs.
            log_update: collected too: `log_space.LogUpdate`'s parameters, given by name.
            optimizer: an optax optimizer, or a name that Dopamine's `create_optimizer` knows; its
                learning rate is beta_log, the step-size in the log space (0.0025).
            head_init: 'asymmetric' (weights of the minus head start at zero) or 'symmetric'.
            loss_type: 'huber' (delta 1) or 'mse'.
            precision: of the network's torso, one of `log_space.PRECISIONS`.

        Raises:
            ValueError: if a parameter of LogDQN's own is outside its range.
        """
        self._update = log_space.LogUpdate(**log_update)
        check_one_of("head_init", head_init, log_space.HEAD_INITS)
        check_one_of("loss_type", loss_type, log_space.LOSSES)
        check_one_of("precision", precision, log_space.PRECISIONS)
        network, shape = dopamine["network"], dopamine["observation_shape"]
        epsilon_fn, preprocess_fn = dopamine["epsilon_fn"], dopamine["preprocess_fn"]
        check("observation_shape", shape, isinstance(shape, tuple), "a tuple of whole numbers")
        check("network", network, callable(network), "a network class")
        check("epsilon_fn", epsilon_fn, callable(epsilon_fn), "a schedule: a function")
        is_function = preprocess_fn is None or callable(preprocess_fn)
        check("preprocess_fn", preprocess_fn, is_function, "a function, or None")

        def two_headed(num_actions: int, **settings: Any) -> heads.TwoHeadedNetwork:
            return heads.TwoHeadedNetwork(
                network(num_actions=2 * num_actions, **settings),
                num_actions,
                head_init,
                self._update,
                precision,
            )

        super().__init__(**dopamine | {"network": two_headed})

    def _build_networks_and_optimizer(self) -> None:
        super()._build_networks_and_optimizer()
        self._train = jax.jit(
            functools.partial(
                update.train_step,
                functools.partial(update.batch_loss, self._update.rule, self._loss_type),
                self.network_def.batch_outputs,
                self.optimizer,
            ),
            # The optimizer's state is updated in place: it is as large as two networks.
            donate_argnames="optimizer_state",
        )

    def _train_step(self) -> None:
        """Counts a step, and trains and syncs the target network when they are due."""
        if self._replay.add_count > self.min_replay_history:
            if self.training_steps % self.update_period == 0:
                self._train_from_replay()
            if self.training_steps % self.target_update_period == 0:
                self._sync_weights()
        self.training_steps += 1

    def _train_from_replay(self) -> None:
        """Runs an update from one batch of the replay memory."""
        self._sample_from_replay_buffer()
        batch = update.Batch(
            self.preprocess_fn(self.replay_elements["state"]),
            self.replay_elements["action"],
            self.preprocess_fn(self.replay_elements["next_state"]),
            self.replay_elements["reward"],
            self.replay_elements["terminal"].astype(bool),
        )
        self.online_params, self.optimizer_state, statistics = self._train(
            self.online_params, self.target_network_params, self.optimizer_state, batch
        )
        if (
            self.summary_writer is not None
            and self.training_steps > 0
            and self.training_steps % self.summary_writing_frequency == 0
        ):
            self._write_summaries({tag: np.asarray(value) for tag, value in statistics.items()})

    def _write_summaries(self, statistics: dict[str, np.ndarray]) -> None:
        """Writes scalars to TensorBoard and to the allowed collectors."""
        if self.see_statistics is not None:
            self.see_statistics(statistics)
        with self.summary_writer.as_default():
            for tag, value in statistics.items():
                tf.summary.scalar(tag, value, step=self.training_steps)
        self.summary_writer.flush()
        if hasattr(self, "collector_dispatcher"):
            self.collector_dispatcher.write(
                [
                    statistics_instance.StatisticsInstance(tag, value, step=self.training_steps)
                    for tag, value in statistics.items()
                ],
                collector_allowlist=self._collector_allowlist,
            )

    def bundle_and_checkpoint(
        self, checkpoint_dir: str, iteration_number: int
    ) -> dict[str, Any] | None:
        """Returns Dopamine's bundle with the random key, which Dopamine leaves out."""
        bundle = super().bundle_and_checkpoint(checkpoint_dir, iteration_number)
        if bundle is not None:
            bundle["rng"] = self._rng
            # Training goes on in the state's own memory.
            bundle["optimizer_state"] = jax.tree.map(np.array, self.optimizer_state)
        return bundle

    def unbundle(
        self, checkpoint_dir: str, iteration_number: int, bundle_dictionary: dict[str, Any] | None
    ) -> bool:
        """Restores what `bundle_and_checkpoint` saved; returns whether that succeeded."""
        if not super().unbundle(checkpoint_dir, iteration_number, bundle_dictionary):
            return False
        if bundle_dictionary is not None and "rng" in bundle_dictionary:
            self._rng = bundle_dictionary["rng"]
        return True
