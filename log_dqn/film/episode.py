"""An episode of any agent in any game, step by step."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from log_dqn import log_space


class Values(NamedTuple):
    """What an agent makes of each action.

    Attributes:
        q: Q, shape [num_actions].
        heads: ln q_+ and ln q_- of LogDQN, shape [2, num_actions]; None for other agents.
        keys: numbers that order actions as the agent does, shape [num_actions].
    """

    q: np.ndarray
    heads: np.ndarray | None
    keys: np.ndarray


def values_of(q: Any) -> Values:
    """Returns the values of an agent that learns Q; takes `num_actions` numbers of any shape."""
    q = np.ravel(q)
    return Values(q.astype(float), None, q)


def values_of_heads(rule: log_space.UpdateRule, plus: Any, minus: Any) -> Values:
    """Returns the values of LogDQN; each output has `num_actions` numbers, of any shape."""
    outputs = np.ravel(plus), np.ravel(minus)
    heads = np.stack(rule.log_values(outputs)).astype(float)
    q_plus, q_minus = np.exp(heads)
    return Values(q_plus - q_minus, heads, rule.action_keys(outputs))


class Agent(Protocol):
    """An agent that plays.

    Attributes:
        gamma: discount factor.
        epsilon: exploration rate in evaluation.
    """

    gamma: float
    epsilon: float

    def see(self, observation: Any, begins: bool) -> Values:
        """Takes in an observation, which may be the first of its episode."""


class Game(Protocol):
    """A game that is played."""

    @property
    def action_names(self) -> Sequence[str]:
        """Names of the actions."""

    def reset(self) -> Any:
        """Begins an episode; returns the first observation."""

    def step(self, action: int) -> tuple[Any, float, bool]:
        """Takes an action; returns observation, unclipped reward and whether the game is over."""

    def screen(self) -> np.ndarray:
        """Returns the screen, uint8, shape [height, width, 3]."""


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


def play(agent: Agent, game: Game, max_steps: int, seed: int) -> Iterator[Step]:
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
