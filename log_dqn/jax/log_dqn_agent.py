"""LogDQN: logarithmic deep Q-learning on Dopamine's JAX DQN (paper, section 5)."""

import functools
from collections.abc import Callable
from typing import Any

import gin
import jax
import numpy as np
import optax
import tensorflow as tf
from dopamine.jax import networks
from dopamine.jax.agents.dqn import dqn_agent
from dopamine.metrics import statistics_instance
from flax import linen as nn

from log_dqn import log_space
from log_dqn.jax import (
    compat,  # noqa: F401  (mends Dopamine's JAX agents)
    heads,
    optimizers,
    update,
)
from log_dqn.mapping import check


@gin.configurable
class JaxLogDQNAgent(dqn_agent.JaxDQNAgent):
    """DQN with a plus and a minus head, learned in the log space, in float32.

    Its own parameters come first; the others are JaxDQNAgent's, with the paper's values.
    """

    online_params: Any
    optimizer_state: Any

    def __init__(
        self,
        num_actions: int,
        gamma: float = 0.96,
        k: float = 100,
        c: float = 0.5,
        beta_reg: float = 0.1,
        q_init_plus: float = 1.0,
        q_init_minus: float = 0.0,
        clip_bootstrap: bool = True,
        clip_inverse: bool = False,
        head_init: str = "asymmetric",
        observation_shape: tuple[int, ...] = dqn_agent.NATURE_DQN_OBSERVATION_SHAPE,
        observation_dtype: Any = dqn_agent.NATURE_DQN_DTYPE,
        stack_size: int = dqn_agent.NATURE_DQN_STACK_SIZE,
        network: Callable[..., nn.Module] = networks.NatureDQNNetwork,
        update_horizon: int = 1,
        min_replay_history: int = 20000,
        update_period: int = 4,
        target_update_period: int = 8000,
        epsilon_fn: Callable[..., float] = dqn_agent.linearly_decaying_epsilon,
        epsilon_train: float = 0.01,
        epsilon_eval: float = 0.001,
        epsilon_decay_period: int = 250000,
        eval_mode: bool = False,
        optimizer: optax.GradientTransformation | str = optimizers.rmsprop_tf(  # noqa: B008
            learning_rate=0.0025
        ),
        summary_writer: Any = None,
        summary_writing_frequency: int = 500,
        allow_partial_reload: bool = False,
        seed: int | None = None,
        loss_type: str = "huber",
        preprocess_fn: Callable[[Any], Any] | None = None,
        collector_allowlist: tuple[str, ...] = ("tensorboard",),
    ) -> None:
        """Initializes the agent.

        Args:
            num_actions: number of actions.
            gamma: discount factor, in (0, 1).
            k: gamma^k is about the smallest value that can be represented; positive.
            c: scale of the log space; positive.
            beta_reg: step-size of the averaging in the ordinary space, in (0, 1]. The step-size
                in the log space, beta_log, is the optimizer's learning rate.
            q_init_plus: ordinary value that an output of 0 stands for in the plus head.
            q_init_minus: the same in the minus head.
            clip_bootstrap: whether bootstrapped values are clipped to [0, 1 / (1 - gamma^n)].
            clip_inverse: whether outputs below the floor gamma^k count as the floor.
            head_init: 'asymmetric' (weights of the minus head start at zero) or 'symmetric'.
            observation_shape: see JaxDQNAgent, as all that follow.
            observation_dtype: see JaxDQNAgent.
            stack_size: frames in a state.
            network: Dopamine's kind of DQN network class; it gets twice the outputs.
            update_horizon: n of the n-step update, in agent steps; at least 1.
            min_replay_history: agent steps before training starts.
            update_period: agent steps between updates.
            target_update_period: agent steps between target network updates.
            epsilon_fn: exploration schedule.
            epsilon_train: exploration rate at the end of the schedule.
            epsilon_eval: exploration rate in evaluation.
            epsilon_decay_period: length of the schedule, in agent steps.
            eval_mode: whether the agent starts in evaluation.
            optimizer: an optax optimizer, or a name that Dopamine's `create_optimizer` knows; its
                learning rate is beta_log.
            summary_writer: TensorBoard writer, or a directory for one.
            summary_writing_frequency: agent steps between summaries.
            allow_partial_reload: whether a checkpoint may lack the replay memory.
            seed: seed of weights, exploration and replay sampling; None takes the time.
            loss_type: 'huber' (delta 1) or 'mse'.
            preprocess_fn: see JaxDQNAgent.
            collector_allowlist: collectors that the training statistics go to.

        Raises:
            ValueError: if a parameter is outside its range.
        """
        self._update = log_space.LogUpdate(
            gamma=gamma,
            k=k,
            c=c,
            beta_reg=beta_reg,
            update_horizon=update_horizon,
            q_init_plus=q_init_plus,
            q_init_minus=q_init_minus,
            clip_bootstrap=clip_bootstrap,
            clip_inverse=clip_inverse,
        )
        for name, value, allowed in (
            ("head_init", head_init, heads.HEAD_INITS),
            ("loss_type", loss_type, log_space.LOSSES),
        ):
            check(name, value, value in allowed, f"one of {', '.join(allowed)}")
        is_shape = isinstance(observation_shape, tuple)
        check("observation_shape", observation_shape, is_shape, "a tuple of whole numbers")
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
            )

        super().__init__(
            num_actions,
            observation_shape=observation_shape,
            observation_dtype=observation_dtype,
            stack_size=stack_size,
            network=two_headed,
            gamma=gamma,
            update_horizon=update_horizon,
            min_replay_history=min_replay_history,
            update_period=update_period,
            target_update_period=target_update_period,
            epsilon_fn=epsilon_fn,
            epsilon_train=epsilon_train,
            epsilon_eval=epsilon_eval,
            epsilon_decay_period=epsilon_decay_period,
            eval_mode=eval_mode,
            optimizer=optimizer,
            summary_writer=summary_writer,
            summary_writing_frequency=summary_writing_frequency,
            allow_partial_reload=allow_partial_reload,
            seed=seed,
            loss_type=loss_type,
            preprocess_fn=preprocess_fn,
            collector_allowlist=collector_allowlist,
        )

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
            self.replay_elements["terminal"],
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
        """Returns what is to be saved: Dopamine's bundle, and the random key it leaves out."""
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
        if bundle_dictionary is not None:
            self._rng = bundle_dictionary["rng"]
        return True
