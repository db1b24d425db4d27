"""An episode of any agent in any game, step by step."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from log_dqn.film.game import BoardGame, DopamineGame
from log_dqn.film.players import DopaminePlayer, Values, VectorizedPlayer


class Step(NamedTuple):
    """One agent step.

    Attributes:
        screen: the game's screen before the action, uint8, shape [height, width, 3].
        values: what the agent makes of each action.
        action: the chosen action.
        score: the episode's return (unclipped rewards), the action's reward included.
    """

    screen: np.ndarray
    values: Values
    action: int
    score: float


def play(
    agent: DopaminePlayer | VectorizedPlayer,
    game: DopamineGame | BoardGame,
    max_steps: int,
    seed: int,
) -> Iterator[Step]:
    """Plays one episode, at most `max_steps` agent steps; the seed decides the random actions."""
    random = np.random.default_rng(seed)
    observation, score = game.reset(), 0.0
    for number in range(max_steps):
        screen, values = game.screen(), agent.see(observation, begins=number == 0)
        action = int(values.keys.argmax())
        if random.random() < agent.epsilon:
            action = int(random.integers(len(values.keys)))
        observation, reward, over = game.step(action)
        score += reward
        yield Step(screen, values, action, score)
        if over:
            return
