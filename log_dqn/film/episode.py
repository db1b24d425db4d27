"""An episode of any agent in any game, step by step."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from log_dqn.film.players import TrainedAgent, Values


class Step(NamedTuple):
    """One agent step.

    Attributes:
        screen: the screen before the action, uint8, shape [height, width, 3], if it is drawn.
        values: what the agent makes of each action.
        action: the chosen action.
        score: the episode's return (unclipped rewards), the action's reward included.
    """

    screen: Any
    values: Values
    action: int
    score: float


def play(agent: TrainedAgent, max_steps: int, seed: int, draws: bool) -> Iterator[Step]:
    """Plays one episode, with the agent's `epsilon`; the seed decides all that is random.

    It is left after `max_steps` agent steps, if training didn't leave it before.
    """
    game, random = agent.game, np.random.default_rng(seed)
    observation, state, score = game.reset(seed), None, 0.0
    for _ in range(min(max_steps, agent.max_steps)):
        state = agent.stack(observation, state)
        screen, values = game.screen() if draws else None, agent.values(state)
        action = values.action(agent.epsilon, random)
        observation, reward, over = game.step(action)
        score += reward
        yield Step(screen, values, action, score)
        if over:
            return
