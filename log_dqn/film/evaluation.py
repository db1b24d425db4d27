"""Evaluates a trained agent: its returns over episodes, without learning."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from log_dqn.film import game
from log_dqn.film.episode import play
from log_dqn.film.players import TrainedAgent, random_action

_CHUNK = 100  # Agent steps that a device takes in one call.
_AT_ONCE = 10_000  # Episodes that it plays side by side.


class Episodes(NamedTuple):
    """The results of episodes.

    Attributes:
        returns: sums of unclipped rewards, shape [num_episodes].
        lengths: in agent steps, shape [num_episodes].
    """

    returns: np.ndarray
    lengths: np.ndarray

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the mean return (Student's t over episodes); None for one episode."""
        count = len(self.returns)
        if count == 1:
            return None
        half = stats.t.ppf(0.975, count - 1) * stats.sem(self.returns)
        return self.returns.mean() - half, self.returns.mean() + half


def evaluate(
    agent: TrainedAgent, seeds: range, max_steps: int, report: Callable[[int], object]
) -> Episodes:
    """Plays the episode of each seed as `episode.play` does, on JAX's games many at once.

    The agent explores with its `epsilon`. An episode is cut off after `max_steps` agent steps, or
    where training cut it off. `report` is called with how many more episodes have ended.
    """
    max_steps = min(max_steps, agent.max_steps)
    if isinstance(agent.game, game.BoardGame):
        program, starts = agent.game.program, range(0, len(seeds), _AT_ONCE)
        parts = [
            _on_device(agent, program, seeds[i : i + _AT_ONCE], max_steps, report) for i in starts
        ]
        return Episodes(*map(np.concatenate, zip(*parts, strict=True)))
    found = []
    for seed in seeds:
        for length, step in enumerate(play(agent, max_steps, seed, draws=False), 1):  # noqa: B007
            pass
        found.append((step.score, length))
        report(1)
    returns, lengths = zip(*found, strict=True)
    return Episodes(np.array(returns), np.array(lengths))


@functools.partial(jax.jit, static_argnums=0)
def _advance(step: Any, keys: Any, playing: Any, actions: jax.Array) -> Any:
    """Plays some steps of all episodes, with the given actions or, for -1, the greedy ones.

    `playing` is the games' states, the agent's, and how many steps each episode has left; actions
    have shape [num_steps, num_episodes].

    Returns:
        What is playing after them, and shape [num_steps, num_episodes] rewards, and whether each
        episode was going on.
    """

    def of_all(playing: Any, actions: jax.Array) -> Any:
        games, states, left = playing
        actions = jnp.where(actions < 0, keys(states).argmax(axis=-1), actions)
        games, outcome = jax.vmap(step)(games, actions)
        states = jnp.concatenate([states[..., 1:], outcome.frame[..., None]], axis=-1)
        after = jnp.where(outcome.ended, 0, left - 1)
        return (games, states, jnp.maximum(after, 0)), (outcome.reward, left > 0)

    return jax.lax.scan(of_all, playing, actions)


def _on_device(
    agent: TrainedAgent, program: Any, seeds: range, max_steps: int, report: Callable[[int], object]
) -> Episodes:
    begin = jax.vmap(functools.partial(game.begin, program))
    games, frames = begin(jnp.array(seeds, jnp.uint32))
    states = jnp.zeros((len(seeds), *agent.state_shape), agent.dtype).at[..., -1].set(frames)
    playing: Any = games, states, jnp.full(len(seeds), max_steps)
    generators = [np.random.default_rng(seed) for seed in seeds]
    returns, lengths = np.zeros(len(seeds)), np.zeros(len(seeds), int)
    left = len(seeds)
    while left:
        drawn = [
            [random_action(one, agent.epsilon, program.num_actions) for one in generators]
            for _ in range(_CHUNK)
        ]
        actions = np.array([[-1 if a is None else a for a in of_step] for of_step in drawn])
        playing, (rewards, goes_on) = _advance(program.step, agent.keys, playing, actions)
        for of_step in np.where(goes_on, rewards, 0.0):  # One by one, as `play` adds them.
            returns += of_step
        lengths += np.asarray(goes_on).sum(axis=0)
        before, left = left, int((playing[-1] > 0).sum())
        report(before - left)
    return Episodes(returns, lengths)
