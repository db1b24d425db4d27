"""LogDQN on JAX against Dopamine's JaxDQNAgent.

LogDQN is compared with DQN twice: with the same optimizer and loss (`jax_dqn_rmsprop.gin`), and
with Dopamine's JAX settings, Adam and the squared error (`jax_dqn.gin`).
"""

import functools

import absl.logging

from benchmarks import measuring
from log_dqn import compat

with compat.quiet():
    import gin
    import jax
    from dopamine.jax.agents.dqn import dqn_agent

    from log_dqn import atari
    from log_dqn.jax import log_dqn_agent, optimizers

AGENTS = {
    "LogDQN": log_dqn_agent.JaxLogDQNAgent,
    "DQN RMSProp": functools.partial(
        dqn_agent.JaxDQNAgent, optimizer=optimizers.rmsprop_tf(), loss_type="huber"
    ),
    "DQN Adam": dqn_agent.JaxDQNAgent,
}
# Steps of a block.
STEPS = {"train": 4, "act": 100, "loop": 40}


class Player(measuring.Player):
    """An agent with a game."""

    def __init__(self, name: str, replay_steps: int) -> None:
        """Creates the agent and fills its replay memory.

        Args:
            name: a key of `AGENTS`.
            replay_steps: agent steps of random play.
        """
        environment = atari.create_environment(measuring.GAME, seed=0)
        agent = AGENTS[name](
            num_actions=int(environment.action_space.n),
            min_replay_history=replay_steps,
            epsilon_decay_period=1,
            seed=0,
        )
        # An episode's transitions are stored a step late.
        super().__init__(agent, environment, replay_steps + 10)

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

    def act(self, steps: int) -> None:
        """Chooses actions as in evaluation."""
        frame = self.agent._observation
        self.agent.eval_mode = True
        for _ in range(steps):
            self.agent.step(0.0, frame)
        self.agent.eval_mode = False


def _set_up() -> None:
    absl.logging.set_verbosity(absl.logging.ERROR)
    gin.parse_config("ReplayBuffer.max_capacity = 10000\nReplayBuffer.batch_size = 32")


def measure_memory(name: str) -> None:
    """Prints the peak memory of an agent, in MiB."""
    _set_up()
    measuring.print_peak_memory(functools.partial(Player, name, replay_steps=1000))


def run(rounds: int) -> None:
    """Prints the figures of LogDQN beside those of each DQN.

    Args:
        rounds: blocks of each figure.
    """
    _set_up()
    device = jax.devices()[0].device_kind
    print(f"{measuring.GAME}, batch size 32, JAX {jax.__version__} on {device}")
    players = {name: functools.partial(Player, name, replay_steps=500) for name in AGENTS}
    measuring.compare_players("jax", players, STEPS, rounds)
