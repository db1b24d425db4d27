"""LogDQN against Dopamine's DQN, both on TensorFlow."""

import functools

from benchmarks import measuring
from log_dqn import compat

with compat.quiet():
    import tensorflow as tf
    from dopamine.tf.agents.dqn import dqn_agent

    from log_dqn import atari
    from log_dqn.single import seeding
    from log_dqn.tf import log_dqn_agent

AGENTS = {"LogDQN": log_dqn_agent.LogDQNAgent, "DQN": dqn_agent.DQNAgent}
# Steps of a block.
STEPS = {"train": 8, "act": 100, "loop": 100}


class Player(measuring.Player):
    """An agent in a graph of its own, with a game."""

    def __init__(self, name: str, replay_steps: int) -> None:
        """Builds the agent and fills its replay memory.

        Args:
            name: a key of `AGENTS`.
            replay_steps: agent steps of random play.
        """
        trains = False
        with tf.Graph().as_default():
            seeding.seed_everything(0)
            environment = atari.create_environment(measuring.GAME, seed=0)
            agent = AGENTS[name](
                None,
                num_actions=int(environment.action_space.n),
                min_replay_history=replay_steps,
                epsilon_fn=lambda *_: 0.01 if trains else 1.0,
                tf_device="/gpu:0",
            )
        super().__init__(agent, environment, replay_steps)
        trains = True
        agent.training_steps = 0

    def train(self, steps: int) -> None:
        """Runs training steps of one batch of 32."""
        for _ in range(steps):
            self.agent._sess.run(self.agent._train_op)

    def act(self, steps: int) -> None:
        """Chooses greedy actions."""
        for _ in range(steps):
            self.agent._sess.run(self.agent._q_argmax, {self.agent.state_ph: self.agent.state})


def set_up() -> None:
    """Puts TensorFlow into the state that Dopamine's agents want."""
    tf.get_logger().setLevel("ERROR")
    tf.compat.v1.disable_v2_behavior()


def measure_memory(name: str) -> None:
    """Prints the peak memory of an agent, in MiB."""
    set_up()
    measuring.print_peak_memory(functools.partial(Player, name, replay_steps=1000))


def run(rounds: int) -> None:
    """Prints the figures of both agents.

    Args:
        rounds: blocks of each figure.
    """
    set_up()
    device = "a GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    print(f"{measuring.GAME}, batch size 32, TensorFlow {tf.__version__} on {device}")
    players = {name: functools.partial(Player, name, replay_steps=2000) for name in AGENTS}
    measuring.compare_players("tf", players, STEPS, rounds)
