"""LogDQN: logarithmic deep Q-learning on Dopamine's TensorFlow DQN (paper, section 5)."""

from typing import Any

import gin
import tensorflow as tf
from dopamine.tf.agents.dqn import dqn_agent

from log_dqn import compat, log_space
from log_dqn.checks import check, check_one_of
from log_dqn.compat import take_parameters_of
from log_dqn.tf import heads
from log_dqn.tf.namespace import xp

compat.remove_generated_files()


@gin.configurable
class LogDQNAgent(dqn_agent.DQNAgent):
    """DQN with a plus and a minus head, learned in the log space.

    Its parameters are DQNAgent's in their order, then `log_space.LogUpdate`'s, then its own. The
    defaults are the paper's. `help(LogDQNAgent)` lists all of them.
    """

    @take_parameters_of(dqn_agent.DQNAgent, log_space.LogUpdate)
    def __init__(
        self,
        dopamine: dict[str, Any],
        log_update: dict[str, Any],
        *,
        optimizer: tf.compat.v1.train.Optimizer = tf.compat.v1.train.RMSPropOptimizer(  # noqa: B008
            learning_rate=0.0025, decay=0.95, momentum=0.0, epsilon=0.00001, centered=True
        ),
        head_init: str = "asymmetric",
        loss_type: str = "huber",
        dtype: str = "float32",
        precision: str = "float32",
    ) -> None:
        """Initializes the agent and builds its graph.

        Args:
            dopamine: collected by the decorator: DQNAgent's parameters, given by name or place;
                `network` gets twice the outputs.
            log_update: collected too: `log_space.LogUpdate`'s parameters, given by name.
            optimizer: its learning rate is beta_log, the step-size in the log space (0.0025).
            head_init: 'asymmetric' (weights of the minus head start at zero) or 'symmetric'.
            loss_type: 'huber' (delta 1) or 'mse'.
            dtype: 'float32' or 'float64', of the heads and of the update.
            precision: of the network's torso, one of `log_space.PRECISIONS`. TensorFlow sets TF32
                for the whole process: heads and other agents have it too.

        Raises:
            ValueError: if a parameter of LogDQN's own is outside its range.
        """
        compat.check_legacy_keras()
        self._update = log_space.LogUpdate(**log_update)
        check_one_of("head_init", head_init, log_space.HEAD_INITS)
        check_one_of("loss_type", loss_type, log_space.LOSSES)
        check_one_of("dtype", dtype, log_space.DTYPES)
        check_one_of("precision", precision, log_space.PRECISIONS)
        check("network", dopamine["network"], callable(dopamine["network"]), "a network class")
        is_optimizer = isinstance(optimizer, tf.compat.v1.train.Optimizer)
        check(
            "optimizer",
            optimizer,
            is_optimizer,
            "one of tf.compat.v1.train, in gin @tf.train.AdamOptimizer()",
        )
        self._head_init = head_init
        self._loss_type = loss_type
        self._dtype = dtype
        self._precision = precision
        tf.config.experimental.enable_tensor_float_32_execution(precision == "tf32")
        super().__init__(**dopamine)

    def _create_network(self, name: str) -> tf.keras.Model:
        return heads.create_two_headed_network(
            self.network, self.num_actions, self._head_init, self._dtype, self._precision, name
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
