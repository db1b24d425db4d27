"""The agents on TensorFlow."""

import functools
from typing import Any, ClassVar

from benchmarks import agents
from log_dqn import compat

with compat.quiet():
    import tensorflow as tf
    from dopamine.tf.agents.dqn import dqn_agent

    from log_dqn.dopamine_run import seeding
    from log_dqn.tf import log_dqn_agent

AGENTS = {
    "DQN": dqn_agent.DQNAgent,
    "LogDQN": log_dqn_agent.LogDQNAgent,
    "LogLinDQN": functools.partial(log_dqn_agent.LogDQNAgent, **agents.LOGLIN_DQN),
}


class Player(agents.Player):
    """An agent in a graph of its own, with a game."""

    steps: ClassVar = {"train": 8, "loop": 100}
    replay_steps = 2000

    def create(self, name: str, **settings: Any) -> dqn_agent.DQNAgent:
        """Builds the agent of `AGENTS`."""
        with tf.Graph().as_default():
            seeding.seed_everything(0)
            return AGENTS[name](None, tf_device="/gpu:0", **settings)

    def train(self, steps: int) -> None:
        """Runs training steps of one batch of 32."""
        for _ in range(steps):
            self.agent._sess.run(self.agent._train_op)


def set_up() -> str:
    """Puts TensorFlow into the state that Dopamine's agents want; says what they run on."""
    tf.get_logger().setLevel("ERROR")
    tf.compat.v1.disable_v2_behavior()
    with compat.quiet():  # It complains of a GPU that isn't there.
        device = "a GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    return f"TensorFlow {tf.__version__} on {device}"
