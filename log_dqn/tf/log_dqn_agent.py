"""LogDQN: logarithmic deep Q-learning on Dopamine's TensorFlow DQN (paper, section 5)."""

from collections.abc import Callable
from typing import Any

import gin
import tensorflow as tf
from dopamine.discrete_domains import atari_lib
from dopamine.tf.agents.dqn import dqn_agent

from log_dqn import log_space
from log_dqn.mapping import check
from log_dqn.tf import heads
from log_dqn.tf.namespace import xp


@gin.configurable
class LogDQNAgent(dqn_agent.DQNAgent):
    """DQN with a plus and a minus head, learned in the log space.

    Its parameters are DQNAgent's, in their order and with the paper's values, and then its own.
    """

    def __init__(
        self,
        sess: tf.compat.v1.Session | None,
        num_actions: int,
        observation_shape: tuple[int, ...] = dqn_agent.NATURE_DQN_OBSERVATION_SHAPE,
        observation_dtype: tf.DType = dqn_agent.NATURE_DQN_DTYPE,
        stack_size: int = dqn_agent.NATURE_DQN_STACK_SIZE,
        network: Callable[..., tf.keras.Model] = atari_lib.NatureDQNNetwork,
        gamma: float = 0.96,
        update_horizon: int = 1,
        min_replay_history: int = 20000,
        update_period: int = 4,
        target_update_period: int = 8000,
        epsilon_fn: Callable[..., float] = dqn_agent.linearly_decaying_epsilon,
        epsilon_train: float = 0.01,
        epsilon_eval: float = 0.001,
        epsilon_decay_period: int = 250000,
        tf_device: str = "/cpu:*",
        eval_mode: bool = False,
        use_staging: bool = False,
        max_tf_checkpoints_to_keep: int = 4,
        optimizer: tf.compat.v1.train.Optimizer = tf.compat.v1.train.RMSPropOptimizer(  # noqa: B008
            learning_rate=0.0025, decay=0.95, momentum=0.0, epsilon=0.00001, centered=True
        ),
        summary_writer: Any = None,
        summary_writing_frequency: int = 500,
        allow_partial_reload: bool = False,
        k: float = 100,
        c: float = 0.5,
        beta_reg: float = 0.1,
        q_init_plus: float = 1.0,
        q_init_minus: float = 0.0,
        clip_bootstrap: bool = True,
        clip_inverse: bool = False,
        head_init: str = "asymmetric",
        loss_type: str = "huber",
        dtype: str = "float32",
    ) -> None:
        """Initializes the agent and builds its graph.

        Args:
            sess: session that runs the graph, or None for a new one.
            num_actions: number of actions.
            observation_shape: see DQNAgent, as all down to allow_partial_reload.
            observation_dtype: see DQNAgent.
            stack_size: frames in a state.
            network: Dopamine's kind of DQN network class; it gets twice the outputs.
            gamma: discount factor, in (0, 1).
            update_horizon: n of the n-step update, in agent steps; at least 1.
            min_replay_history: agent steps before training starts.
            update_period: agent steps between updates.
            target_update_period: agent steps between target network updates.
            epsilon_fn: exploration schedule.
            epsilon_train: exploration rate at the end of the schedule.
            epsilon_eval: exploration rate in evaluation.
            epsilon_decay_period: length of the schedule, in agent steps.
            tf_device: device of the graph.
            eval_mode: whether the agent starts in evaluation.
            use_staging: no longer supported by Dopamine.
            max_tf_checkpoints_to_keep: number of TensorFlow checkpoints kept.
            optimizer: its learning rate is beta_log.
            summary_writer: TensorBoard writer, or a directory for one.
            summary_writing_frequency: agent steps between summaries.
            allow_partial_reload: whether a checkpoint may lack the replay memory.
            k: gamma^k is about the smallest value that can be represented; positive.
            c: scale of the log space; positive.
            beta_reg: step-size of the averaging in the ordinary space, in (0, 1]. The step-size
                in the log space, beta_log, is the optimizer's learning rate.
            q_init_plus: ordinary value that an output of 0 stands for in the plus head.
            q_init_minus: the same in the minus head.
            clip_bootstrap: whether bootstrapped values are clipped to [0, 1 / (1 - gamma^n)].
            clip_inverse: whether outputs below the floor gamma^k count as the floor.
            head_init: 'asymmetric' (weights of the minus head start at zero) or 'symmetric'.
            loss_type: 'huber' (delta 1) or 'mse'.
            dtype: 'float32' or 'float64', of the heads and of the update.

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
            ("dtype", dtype, heads.DTYPES),
        ):
            check(name, value, value in allowed, f"one of {', '.join(allowed)}")
        check("network", network, callable(network), "a network class")
        is_optimizer = isinstance(optimizer, tf.compat.v1.train.Optimizer)
        check("optimizer", optimizer, is_optimizer, "an optimizer of tf.compat.v1.train")
        self._head_init = head_init
        self._loss_type = loss_type
        self._dtype = dtype
        super().__init__(
            sess,
            num_actions,
            observation_shape=observation_shape,
            observation_dtype=observation_dtype,
            stack_size=stack_size,
            network=network,
            gamma=gamma,
            update_horizon=update_horizon,
            min_replay_history=min_replay_history,
            update_period=update_period,
            target_update_period=target_update_period,
            epsilon_fn=epsilon_fn,
            epsilon_train=epsilon_train,
            epsilon_eval=epsilon_eval,
            epsilon_decay_period=epsilon_decay_period,
            tf_device=tf_device,
            eval_mode=eval_mode,
            use_staging=use_staging,
            max_tf_checkpoints_to_keep=max_tf_checkpoints_to_keep,
            optimizer=optimizer,
            summary_writer=summary_writer,
            summary_writing_frequency=summary_writing_frequency,
            allow_partial_reload=allow_partial_reload,
        )

    def _create_network(self, name: str) -> tf.keras.Model:
        return heads.create_two_headed_network(
            self.network, self.num_actions, self._head_init, self._dtype, name
        )

    def _build_networks(self) -> None:
        """Builds the outputs for acting and training; each is a pair (plus, minus)."""
        self.online_convnet = self._create_network(name="Online")
        self.target_convnet = self._create_network(name="Target")
        self._net_outputs = heads.split_heads(self.online_convnet(self.state_ph).q_values)
        self._q_argmax = self._update.rule.greedy_actions(self._net_outputs, xp)[0]
        self._replay_net_outputs = heads.split_heads(
            self.online_convnet(self._replay.states).q_values
        )
        self._replay_next_target_net_outputs = heads.split_heads(
            self.target_convnet(self._replay.next_states).q_values
        )

    def _build_train_op(self) -> tf.Operation:
        """Builds an update from one batch, and TensorBoard scalars."""
        self._mean_loss, statistics = log_space.batch_loss(
            self._update.rule,
            self._loss_type,
            self._replay_net_outputs,
            self._replay_next_target_net_outputs,
            tf.cast(self._replay.actions, tf.int64),
            tf.cast(self._replay.rewards, self._dtype),
            tf.cast(self._replay.terminals, tf.bool),
            tf.stop_gradient,
            xp,
        )
        if self.summary_writer is not None:
            for tag, value in statistics.items():
                tf.compat.v1.summary.scalar(tag, value)
        return self.optimizer.minimize(self._mean_loss)
