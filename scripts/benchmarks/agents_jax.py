"""The agents on JAX.

DQN comes twice: with LogDQN's optimizer and loss (`jax_dqn_rmsprop.gin`), and with Dopamine's JAX
settings, Adam and the squared error (`jax_dqn.gin`).
"""

import functools
from typing import Any, ClassVar

import absl.logging

from benchmarks import agents
from log_dqn import compat

with compat.quiet():
    import gin
    import jax
    from dopamine.jax.agents.dqn import dqn_agent

    from log_dqn.jax import log_dqn_agent, optimizers

AGENTS = {
    "DQN RMSProp": functools.partial(
        dqn_agent.JaxDQNAgent, optimizer=optimizers.rmsprop_tf(), loss_type="huber"
    ),
    "LogDQN": log_dqn_agent.JaxLogDQNAgent,
    "LogLinDQN": functools.partial(log_dqn_agent.JaxLogDQNAgent, **agents.LOGLIN_DQN),
    "DQN Adam": dqn_agent.JaxDQNAgent,
}


class Player(agents.Player):
    """An agent with a game."""

    steps: ClassVar = {"train": 4, "loop": 40}
    replay_steps = 500

    def create(self, name: str, **settings: Any) -> dqn_agent.JaxDQNAgent:
        """Creates the agent of `AGENTS`."""
        return AGENTS[name](seed=0, **settings)

    def loop(self, steps: int) -> None:
        """Plays agent steps of training, and waits for the last update."""
        super().loop(steps)
        jax.block_until_ready(self.agent.online_params)

    def train(self, steps: int) -> None:
        """Runs training steps of one batch of 32, sampled from the replay memory."""
        for _ in range(steps):
            self.agent.training_steps = self.agent.update_period
            self.agent._train_step()
        jax.block_until_ready(self.agent.online_params)


def set_up() -> str:
    """Sets the replay memory's size; says what the agents run on."""
    absl.logging.set_verbosity(absl.logging.ERROR)
    gin.parse_config("ReplayBuffer.max_capacity = 10000\nReplayBuffer.batch_size = 32")
    return f"JAX {jax.__version__} on {jax.devices()[0].device_kind}"
