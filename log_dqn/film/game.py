"""The games that are played, each with its screen."""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

from log_dqn import minatar
from log_dqn.checks import check, check_extra
from log_dqn.cli import environments
from log_dqn.dopamine_run import seeding
from log_dqn.vectorized.jax_environments import JaxGame

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

# Pixels of a bar: its longest half, and its width.
_BAR, _BAR_WIDTH = 40, 8

_DRAWN_BY_PYGAME = {"classic_control", "box2d", "toy_text"}  # Of gym's and gymnasium's own games.


def _names(game: str, num_actions: int, own: Sequence[str] | None = None) -> tuple[str, ...]:
    if own is not None and len(own) == num_actions:
        return tuple(own)
    if game.startswith("MinAtar/"):
        return _MINATAR_ACTIONS
    name, _, _ = game.partition("-v")  # gymnasium's ids end in a version.
    return _ACTIONS.get(name, tuple(f"action {number}" for number in range(num_actions)))


def picture(frame: np.ndarray, seen: np.ndarray, has_levels: bool) -> np.ndarray:
    """Draws any observation, uint8, shape [height, width, 3].

    A picture is drawn as it is, a board with several channels by `board`, one without them by its
    numbers, and all else as bars: what a network sees of it, shape [...], from -1 to 1.
    `has_levels` says that bytes are a picture's by their space, also if they are zeros and ones.
    """
    has_levels |= bool(frame.max() > 1)
    if frame.ndim == 3 and frame.shape[-1] in (1, 3) and frame.dtype == np.uint8 and has_levels:
        return np.broadcast_to(frame, (*frame.shape[:2], 3))
    if frame.ndim == 3:
        return board(frame != 0)
    if frame.ndim == 2:
        shown = matplotlib.colormaps["turbo"](np.abs(frame) / max(np.abs(frame).max(), 1))
        return np.where(frame[..., None] == 0, _EMPTY, 255 * shown[..., :3]).astype(np.uint8)
    heights = np.clip(np.ravel(seen), -1, 1)
    rows = np.linspace(1, -1, 2 * _BAR + 1)[:, None]
    is_bar = ((rows * heights >= 0) & (np.abs(rows) <= np.abs(heights))) | (rows == 0)
    bars = np.where(is_bar[..., None], _colours(1), _EMPTY).astype(np.uint8)
    apart = np.broadcast_to(_EMPTY, bars.shape).astype(np.uint8)
    wide = np.stack([bars] * _BAR_WIDTH + [apart] * (_BAR_WIDTH // 2), axis=2)
    return wide.reshape(len(rows), -1, 3)


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


def legend(game: str, own: Sequence[str] = ()) -> dict[str, tuple[int, int, int]]:
    """Returns the colours of a board's channels by their names, none of a game without names."""
    names = own or _CHANNELS.get(game, ())
    return dict(zip(names, map(tuple, _colours(len(names)).tolist()), strict=True))


def _check_action(action: Any, num_actions: int) -> None:
    """Raises ValueError if an action is not one of a game's; Python's lists would take -1."""
    check("action", action, action in range(num_actions), f"from 0 to {num_actions - 1}")


class DopamineGame:
    """An environment with Dopamine's interface: of Atari, MinAtar or gymnasium."""

    def __init__(self, name: str, environment: Any) -> None:
        """Takes the environment."""
        self._environment = environment
        self._game = game = environment.environment.unwrapped
        if hasattr(game, "ale"):
            self.action_names = game.get_action_meanings()
        else:
            self.action_names = _names(name, int(environment.action_space.n))
        self._name, self._is_board = name, isinstance(game, minatar.Game)
        if "rgb_array" in game.metadata.get("render_modes", []):
            os.environ.update(_WITHOUT_SCREEN)
            game.render_mode = "rgb_array"

    def reset(self, seed: int) -> Any:
        """Begins the episode of a seed; returns the first observation."""
        # Gymnasium's generator of the seed itself would draw the numbers that decide exploration.
        (child,) = np.random.SeedSequence(seed).spawn(1)
        # Below 2^31: some environments take no larger seed.
        seeding.seed_environment(self._environment, int(child.generate_state(1)[0] >> 1))
        self._observation = self._environment.reset()
        return self._observation

    def step(self, action: int) -> tuple[Any, float, bool]:
        """Takes an action; returns observation, unclipped reward and whether the game is over."""
        _check_action(action, len(self.action_names))
        self._observation, reward, *_ = self._environment.step(action)
        # Not at a lost life, which AtariPreprocessing.terminal_on_life_loss makes an end too. In
        # training the frame stack is then emptied.
        return self._observation, float(reward), bool(self._environment.game_over)

    def screen(self) -> np.ndarray:
        """Returns the screen, uint8, shape [height, width, 3].

        Raises:
            ValueError: if the environment doesn't draw itself.
        """
        game = self._game
        if self._is_board:
            return board(self._observation)
        if hasattr(game, "ale"):
            return game.ale.getScreenRGB()
        if _DRAWN_BY_PYGAME & set(type(game).__module__.split(".")):
            check_extra("play", ("pygame",))
        check(
            "env",
            self._name,
            game.render_mode == "rgb_array",
            "one that draws itself, as rgb_array",
        )
        drawn = _drawn(self._name, game.render)
        allowed = "one whose render returns uint8 of shape [height, width, 3]"
        check("env", self._name, _is_picture(drawn, 3), allowed)
        return drawn


def _drawn(name: str, render: Callable[..., Any], *args: Any) -> Any:
    """Returns what an environment's own `render` draws; raises ValueError if it fails."""
    try:
        return render(*args)
    except (Exception, SystemExit) as error:  # Whatever a user's module raises.
        raise environments.refused(name, error, "one that can be drawn") from error


def _is_picture(drawn: Any, *channels: int) -> bool:
    """Returns whether something is bytes of shape [height, width, one of `channels`]."""
    shape = np.shape(drawn)
    is_bytes = getattr(drawn, "dtype", None) == np.uint8
    return is_bytes and len(shape) == 3 and shape[2] in channels and all(shape)


def begin(game: JaxGame, seed: jax.Array) -> tuple[Any, jax.Array]:
    """Returns the first state and observation of the episode of a seed, within JAX."""
    _, key = jax.random.split(jax.random.key(seed))
    return game.reset(key)


class BoardGame:
    """A game that is a JAX program; with the methods of `DopamineGame`.

    An environment of one's own may have `action_names`, `channel_names` of its boards, and a
    `render` that takes its state and parameters and returns a picture, uint8.
    """

    def __init__(self, game: JaxGame) -> None:
        """Takes the game."""
        own, self._params = game.environment
        self.program, self._render = game, getattr(own, "render", None)
        if type(own).__module__.startswith("gymnax."):
            self._render = None  # Those return figures of matplotlib.
        self._reset, self._step = jax.jit(functools.partial(begin, game)), jax.jit(game.step)
        self.action_names = _names(game.name, game.num_actions, getattr(own, "action_names", None))
        self.channel_names = tuple(getattr(own, "channel_names", ()))
        self._has_levels = bool(game.frame_dtype == "uint8" and (self._seen(1) < 1).all())

    def reset(self, seed: int) -> np.ndarray:
        """Begins the episode of a seed; returns the first observation."""
        self._state, frame = self._reset(np.uint32(seed))
        self._frame = np.asarray(frame)
        return self._frame

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        """Takes an action; returns observation, reward and whether the game is over."""
        _check_action(action, self.program.num_actions)
        self._state, outcome = self._step(self._state, jnp.int32(action))
        self._frame = np.asarray(outcome.frame)
        return self._frame, float(outcome.reward), bool(outcome.ended)

    def screen(self) -> np.ndarray:
        """Returns the screen, uint8, shape [height, width, 3]."""
        if self._render is not None:
            drawn = _drawn(self.program.name, self._render, self._state.game, self._params)
            if _is_picture(drawn, 1, 3):
                return np.broadcast_to(drawn, (*drawn.shape[:2], 3))  # Grey too.
            self._render = None
        return picture(self._frame, self._seen(self._frame), self._has_levels)

    def _seen(self, frame: Any) -> np.ndarray:
        """Returns what a network sees of an observation, or of one that has one value."""
        frame = np.broadcast_to(frame, self.program.frame_shape)
        if self.program.prepare is None:
            return frame
        return np.asarray(self.program.prepare(jnp.asarray(frame)[None, ..., None]))
