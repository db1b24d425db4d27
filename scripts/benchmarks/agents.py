"""DQN, LogDQN and LogLinDQN in Dopamine's loop: a training step, and the whole loop, on Pong.

The agents of a framework are in `agents_tf` and `agents_jax`.
"""

import argparse
import importlib
from typing import Any, ClassVar

import numpy as np
from tqdm import tqdm

from benchmarks import measuring

LOGLIN_DQN = {"linear_above": 0.1, "c": 0.1, "beta_reg": 1.0}
"""What makes LogDQN LogLinDQN, as in its gin files."""


class Player:
    """An agent with a game, as it is in the middle of training.

    A subclass says how many steps of `train` and of `loop` make a block (`steps`), how long the
    agent plays at random before (`replay_steps`), and how to create it and train it.
    """

    steps: ClassVar[dict[str, int]]
    replay_steps: int

    def __init__(self, name: str, replay_steps: int | None = None) -> None:
        """Creates an agent by name and fills its replay memory with random play."""
        from log_dqn import atari

        replay_steps = replay_steps or self.replay_steps
        self.environment = atari.create_environment(measuring.GAME, seed=0)
        self.agent = self.create(
            name,
            num_actions=int(self.environment.action_space.n),
            min_replay_history=replay_steps,
            epsilon_decay_period=1,
        )
        self._action = self.agent.begin_episode(self.environment.reset())
        # Transitions may be stored a step late.
        self.loop(replay_steps + 10)

    def create(self, name: str, **settings: Any) -> Any:
        """Creates the agent."""
        raise NotImplementedError

    def train(self, steps: int) -> None:
        """Runs training steps of one batch of 32."""
        raise NotImplementedError

    def loop(self, steps: int) -> None:
        """Plays agent steps of training."""
        self._action = play(self.agent, self.environment, self._action, steps)


def play(agent: Any, environment: Any, action: int, steps: int) -> int:
    """Plays agent steps of training, as Dopamine's runner does, from the middle of an episode.

    Takes the action that the agent has chosen last; returns the next action.
    """
    for _ in range(steps):
        frame, reward, terminal, _ = environment.step(action)
        if terminal:
            agent.end_episode(np.clip(reward, -1, 1))
            action = agent.begin_episode(environment.reset())
        else:
            action = agent.step(np.clip(reward, -1, 1), frame)
    return action


def run(args: argparse.Namespace) -> None:
    """Prints a table of training steps and one of the whole loop."""
    part = importlib.import_module(f"benchmarks.agents_{args.framework}")
    print(f"{measuring.GAME}, batch size 32, {part.set_up()}\n")
    bar = tqdm(part.AGENTS, "playing at random", leave=False, disable=None)
    players = {name: part.Player(name) for name in bar}

    def seconds(method: str) -> dict[str, np.ndarray]:
        steps = part.Player.steps[method]
        blocks = {
            name: measuring.timed(getattr(player, method), steps)
            for name, player in players.items()
        }
        times = measuring.interleave(blocks, args.rounds, method)
        return {name: took / steps for name, took in times.items()}

    training = {name: 1e3 * took for name, took in seconds("train").items()}
    measuring.print_table("training step", "ms", training)
    looped = {name: 1 / took for name, took in seconds("loop").items()}
    measuring.print_table("whole loop", "steps/s", looped)
