"""The games that are played, each with its screen."""

import os
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

from log_dqn import minatar
from log_dqn.checks import check, check_extra
from log_dqn.single import seeding
from log_dqn.vectorized import jax_games

_MINATAR_ACTIONS = ("no-op", "left", "up", "right", "down", "fire")
_ACTIONS = {
    "CartPole": ("left", "right"),
    "Acrobot": ("left", "none", "right"),
    "MountainCar": ("left", "none", "right"),
    "LunarLander": ("none", "left", "main", "right"),
    "bsuite/Catch": ("left", "stay", "right"),
}

# As gymnax describes its games. A car that moves every other step has speed 1.
_CHANNELS = {
    "MinAtar/Asterix": ("player", "enemy", "trail", "gold"),
    "MinAtar/Breakout": ("paddle", "ball", "trail", "brick"),
    "MinAtar/Freeway": (
        "chicken", "car", "trail: fastest", "trail: fast", "trail: medium", "trail: slow",
        "trail: slowest",
    ),
    "MinAtar/Seaquest": (
        "sub's front", "sub's back", "own bullet", "trail", "enemy bullet", "fish",
        "enemy sub", "oxygen left", "divers taken", "diver",
    ),
    "MinAtar/SpaceInvaders": (
        "cannon", "alien", "alien, to left", "alien, to right", "own bullet", "enemy bullet",
    ),
}  # fmt: skip

# pygame looks for a screen and a loudspeaker, and greets.
_WITHOUT_SCREEN = {
    "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"
}  # fmt: skip

_EMPTY = np.array([22, 25, 30], np.uint8)

_DRAWN_BY_PYGAME = {"classic_control", "box2d", "toy_text"}  # Of gym's and gymnasium's own games.


def _names(game: str, num_actions: int) -> tuple[str, ...]:
    if game.startswith("MinAtar/"):
        return _MINATAR_ACTIONS
    name, _, _ = game.partition("-v")  # gymnasium's ids end in a version.
    return _ACTIONS.get(name, tuple(f"action {number}" for number in range(num_actions)))


def board(frame: np.ndarray) -> np.ndarray:
    """Draws a board, bool, shape [height, width, channels], a colour a channel, one pixel a field.

    Where a field has several channels, the last shows, as in MinAtar's own display.
    """
    channels = frame.shape[-1]
    shown = np.max(frame * np.arange(1, channels + 1), axis=-1)
    return np.concatenate([[_EMPTY], _colours(channels)])[shown]


def _colours(channels: int) -> np.ndarray:
    """Returns the colours of the channels of a board, uint8, shape [channels, 3]."""
    colours = matplotlib.colormaps["turbo"](np.linspace(0.1, 0.95, channels))[:, :3]
    return (255 * colours).astype(np.uint8)


def legend(game: str) -> dict[str, tuple[int, int, int]]:
    """Returns the colours of a board's channels by their names, none of a game without names."""
    names = _CHANNELS.get(game, ())
    return dict(zip(names, map(tuple, _colours(len(names)).tolist()), strict=True))


class DopamineGame:
    """An environment with Dopamine's interface: of Atari, MinAtar or gymnasium."""

    def __init__(self, name: str, environment: Any, seed: int) -> None:
        """Takes the environment, and seeds it."""
        self._environment = environment
        self._game = game = environment.environment.unwrapped
        if hasattr(game, "ale"):
            self.action_names = game.get_action_meanings()
        else:
            self.action_names = _names(name, int(environment.action_space.n))
        self._is_board = isinstance(game, minatar.Game)
        if not hasattr(game, "ale") and not self._is_board:
            os.environ.update(_WITHOUT_SCREEN)
            if _DRAWN_BY_PYGAME & set(type(game).__module__.split(".")):
                check_extra("play", ("pygame",))
            modes = game.metadata.get("render_modes", [])
            check("env", name, "rgb_array" in modes, "one that draws itself, as rgb_array")
            game.render_mode = "rgb_array"
        seeding.seed_environment(environment, seed)

    def reset(self) -> Any:
        """Begins an episode; returns the first observation."""
        self._observation = self._environment.reset()
        return self._observation

    def step(self, action: int) -> tuple[Any, float, bool]:
        """Takes an action; returns observation, unclipped reward and whether the game is over."""
        self._observation, reward, terminal, _ = self._environment.step(action)
        return self._observation, float(reward), bool(terminal or self._environment.game_over)

    def screen(self) -> np.ndarray:
        """Returns the screen, uint8, shape [height, width, 3]."""
        if self._is_board:
            return board(self._observation)
        return self._game.ale.getScreenRGB() if hasattr(self._game, "ale") else self._game.render()


class BoardGame:
    """A game that is a JAX program; with the methods of `DopamineGame`."""

    def __init__(self, game: jax_games.JaxGame, seed: int) -> None:
        """Takes the game, and seeds it."""
        self._key = jax.random.key(seed)
        self._reset, self._step = jax.jit(game.reset), jax.jit(game.step)
        self.action_names = _names(game.name, game.num_actions)

    def reset(self) -> np.ndarray:
        """Begins an episode; returns the first observation."""
        self._key, key = jax.random.split(self._key)
        self._state, frame = self._reset(key)
        self._frame = np.asarray(frame)
        return self._frame

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        """Takes an action; returns observation, reward and whether the game is over."""
        self._state, outcome = self._step(self._state, jnp.int32(action))
        self._frame = np.asarray(outcome.frame)
        return self._frame, float(outcome.reward), bool(outcome.ended)

    def screen(self) -> np.ndarray:
        """Returns the screen, uint8, shape [height, width, 3]."""
        return board(self._frame)
