"""jumanji's single-agent games on a grid, as environments in JAX for `train-vectorized`.

The environment of an id such as `jumanji_games:snake`, with this folder on the Python path. Left
out are jumanji's games whose action is not one number, whose observation is no grid, and Sokoban,
whose levels are downloaded. Needs jumanji 1.1: pip install "jumanji>=1.1,<1.2".
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jumanji
from gymnax.environments import spaces
from jumanji.wrappers import AutoResetWrapper

LARGEST_TILE = 16
"""Tiles of 2048 are counted to 2^16, beyond what is reached."""

Draw = Callable[[Any], jax.Array]


class GridGame:
    """A game of jumanji with gymnax's methods; it is observed as a grid of booleans or shares."""

    def __init__(self, name: str, draw: Draw) -> None:
        """Takes the game's id, and what makes a grid, shape [rows, columns, channels], of it."""
        self._game, self._draw = AutoResetWrapper(jumanji.make(name)), draw
        _, first = jax.eval_shape(self._game.reset, jax.random.key(0))
        self._shape = jax.eval_shape(draw, first.observation).shape
        self._num_actions = int(self._game.action_spec.num_values)

    def reset(self, key: jax.Array, params: Any) -> tuple[jax.Array, Any]:
        """Returns the first observation and state of an episode."""
        state, first = self._game.reset(key)
        return self._draw(first.observation), state

    def step(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, ...]:
        """Returns observation, state, reward, terminated, truncated and info."""
        state, step = self._game.step(state, action)
        # The discount says it; most games take their time limit for a termination.
        truncated = step.last() & (step.discount > 0)
        terminated = step.last() & ~truncated
        return self._draw(step.observation), state, step.reward, terminated, truncated, {}

    def action_space(self, params: Any) -> spaces.Discrete:
        """Returns the space of actions."""
        return spaces.Discrete(self._num_actions)

    def observation_space(self, params: Any) -> spaces.Box:
        """Returns the space of grids."""
        return spaces.Box(0, 1, self._shape)


def _marked(shape: tuple[int, ...], row: Any, column: Any) -> jax.Array:
    """Returns a channel with 1 in some fields, which may be given as arrays."""
    return jnp.zeros(shape).at[row, column].set(1)


def _maze(seen: Any) -> jax.Array:
    agent, target = (
        _marked(seen.walls.shape, place.row, place.col)
        for place in (seen.agent_position, seen.target_position)
    )
    return jnp.stack([seen.walls, agent, target], axis=-1)


def _pac_man(seen: Any) -> jax.Array:
    """Returns channels: wall, player, ghosts, frightened ghosts, power-ups and pellets."""
    shape = seen.grid.shape
    player = _marked(shape, seen.player_locations.x, seen.player_locations.y)
    # All but the player by column and row. What is eaten lies at (0, 0), in the wall.
    ghosts, powers, pellets = (
        _marked(shape, places[:, 1], places[:, 0]).at[0, 0].set(0)
        for places in (seen.ghost_locations, seen.power_up_locations, seen.pellet_locations)
    )
    frightened = seen.frightened_state_time > 0
    channels = [seen.grid == 0, player, ghosts, ghosts * frightened, powers, pellets]
    return jnp.stack([jnp.asarray(channel, jnp.float32) for channel in channels], axis=-1)


def snake() -> tuple[GridGame, None]:
    """Creates Snake on 12 x 12 fields."""
    return GridGame("Snake-v1", lambda seen: seen.grid), None


def maze() -> tuple[GridGame, None]:
    """Creates a maze of 10 x 10 fields, a new one in each episode."""
    return GridGame("Maze-v0", _maze), None


def pac_man() -> tuple[GridGame, None]:
    """Creates Pac-Man on 31 x 28 fields."""
    return GridGame("PacMan-v1", _pac_man), None


def game_2048() -> tuple[GridGame, None]:
    """Creates 2048: tiles as one-hot exponents."""
    return GridGame("Game2048-v1", lambda seen: jax.nn.one_hot(seen.board, LARGEST_TILE + 1)), None


def sliding_tiles() -> tuple[GridGame, None]:
    """Creates the sliding puzzle of 5 x 5 tiles, one-hot."""
    return GridGame("SlidingTilePuzzle-v0", lambda seen: jax.nn.one_hot(seen.puzzle, 25)), None
