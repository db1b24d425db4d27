"""Plays a trained agent and draws, beside the screen, how it values each action."""

import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gin
import matplotlib.font_manager
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from log_dqn import atari
from log_dqn.program.gin_files import bound
from log_dqn.run_folder import layout
from log_dqn.single import agents, seeding, start
from log_dqn.tf import log_dqn_agent

FRAMES_PER_SECOND = 15
"""Agent steps a second: a step is four of the emulator's 60 frames a second."""

_SCREEN_SCALE = 3
_WIDTH, _HEIGHT = 1104, 630
_PANEL_X = 160 * _SCREEN_SCALE + 24
_HISTORY = 150  # agent steps in the strips
_CHOSEN, _INK, _FAINT, _BAR = "#D55E00", "#1B1F24", "#B8C0C8", "#8FB8DE"

_CHECKPOINT = re.compile(r"(?:tf_ckpt-(\d+)|(\d+)/weights)\.index")


class Step(NamedTuple):
    """One agent step.

    Attributes:
        screen: the game's screen before the action, uint8, shape [210, 160, 3].
        values: q_+, q_- and Q of each action for LogDQN, or Q alone; shape [3 or 1, num_actions].
        action: the chosen action.
        score: the episode's return (unclipped rewards), the action's reward included.
    """

    screen: np.ndarray
    values: np.ndarray
    action: int
    score: float


def newest_weights(run_dir: pathlib.Path) -> tuple[str, int]:
    """Finds a run's newest TensorFlow variables, in this package's layout or in Dopamine's.

    Returns:
        The prefix for TensorFlow's `Saver`, and the iteration.

    Raises:
        ValueError: if there are none.
    """
    root = layout.checkpoints_dir(run_dir)
    found = [
        (int(match[1] or match[2]), str(path.with_suffix("")))
        for path in root.glob("**/*.index")
        if (match := _CHECKPOINT.fullmatch(path.relative_to(root).as_posix()))
    ]
    if not found:
        raise ValueError(f"--run={run_dir}: no checkpoint of a TensorFlow agent in {root}")
    iteration, prefix = max(found)
    return prefix, iteration


def load(run_dir: pathlib.Path, seed: int) -> tuple[Any, Any]:
    """Rebuilds the agent and the game of a run, with the weights of its newest checkpoint.

    The replay memory is not read.

    Args:
        run_dir: folder of a TensorFlow run on an Atari game; holds `operative_config.gin`.
        seed: seeds game and agent.

    Returns:
        The agent, in evaluation mode, and the environment.

    Raises:
        ValueError: if the folder holds no such run, or the weights don't fit.
    """
    config = run_dir / layout.GIN_CONFIG
    if not config.is_file():
        raise ValueError(f"--run={run_dir}: not a run; it has no {layout.GIN_CONFIG}")
    prefix, _ = newest_weights(run_dir)
    start.configure([str(config)], [], seed=seed)
    with gin.unlock_config():
        for memory in ("WrappedReplayBuffer", "WrappedPrioritizedReplayBuffer"):
            gin.bind_parameter(f"{memory}.replay_capacity", 1000)
    game = bound("create_environment.game_name")
    if game is None:
        raise ValueError(f"--run={run_dir}: not a run on an Atari game")
    agents.prepare_tensorflow()
    seeding.seed_everything()
    environment = atari.create_environment(game, seed=seed)
    agent = agents.create_agent(None, environment)
    try:
        agent._saver.restore(agent._sess, prefix)
    except Exception as error:  # TensorFlow has many kinds for a damaged checkpoint.
        reason = str(error).splitlines()[0]
        raise ValueError(f"--run={run_dir}: {prefix} cannot be read: {reason}") from error
    agent.eval_mode = True
    return agent, environment


def action_values(agent: Any) -> np.ndarray:
    """Returns what the agent makes of each action in its current state.

    Returns:
        For LogDQN q_+, q_- and Q = q_+ - q_-, shape [3, num_actions]; else Q, [1, num_actions].
    """
    outputs = agent._net_outputs
    if not isinstance(agent, log_dqn_agent.LogDQNAgent):
        outputs = getattr(outputs, "q_values", None)
        if outputs is None:
            raise ValueError(f"agent {type(agent).__name__} has no values of actions to show")
        return agent._sess.run(outputs, {agent.state_ph: agent.state})
    plus, minus = agent._sess.run(outputs, {agent.state_ph: agent.state})
    log_plus, log_minus = agent._update.rule.log_values((plus[0], minus[0]))
    q_plus, q_minus = np.exp(log_plus, dtype=float), np.exp(log_minus, dtype=float)
    return np.stack([q_plus, q_minus, q_plus - q_minus])


def play(agent: Any, environment: Any, max_steps: int) -> Iterator[Step]:
    """Plays one episode, at most `max_steps` agent steps, with an agent in evaluation mode."""
    emulator = environment.environment.unwrapped.ale
    action = agent.begin_episode(environment.reset())
    score = 0.0
    for _ in range(max_steps):
        screen, values = emulator.getScreenRGB(), action_values(agent)
        observation, reward, terminal, _ = environment.step(action)
        score += float(reward)
        yield Step(screen, values, int(action), score)
        if terminal or environment.game_over:
            return
        action = agent.step(reward, observation)


class Painter:
    """Draws frames of an episode."""

    def __init__(self, title: str, action_names: Sequence[str]) -> None:
        """Initializes the painter; the title is written above the screen."""
        self._title = title
        self._actions = action_names
        self._history: list[Step] = []
        font = matplotlib.font_manager.findfont("DejaVu Sans")
        self._font = ImageFont.truetype(font, 15)
        self._small = ImageFont.truetype(font, min(14, 230 // len(action_names)))

    def frame(self, step: Step) -> Image.Image:
        """Draws one step, 1104 x 630 pixels; those before it are remembered for the strips."""
        self._history = [*self._history[-_HISTORY + 1 :], step]
        image = Image.new("RGB", (_WIDTH, _HEIGHT), "white")
        screen = Image.fromarray(step.screen)
        image.paste(screen.resize((160 * _SCREEN_SCALE, 582), Image.Resampling.NEAREST), (0, 48))
        draw = ImageDraw.Draw(image)
        draw.text((8, 12), f"{self._title}   score {step.score:g}", _INK, self._font)
        names = ["q+", "q\u2212", "Q"] if len(step.values) == 3 else ["Q"]
        self._draw_table(draw, step, names)
        for row, name in enumerate(names):
            self._draw_strip(draw, row, name, top=322 + row * 102, height=92)
        return image

    def _draw_table(self, draw: ImageDraw.ImageDraw, step: Step, names: list[str]) -> None:
        """One row for each action, one column with number and bar for each value."""
        top, row_height = 42, min(26.0, 264 / len(self._actions))
        left, width = _PANEL_X + 130, 150
        draw.text((_PANEL_X, 12), "action", _INK, self._font)
        for column, name in enumerate(names):
            draw.text((left + column * width, 12), name, _INK, self._font)
        for action, action_name in enumerate(self._actions):
            y = top + action * row_height
            middle = y + row_height / 2
            chosen = action == step.action
            colour = _CHOSEN if chosen else _INK
            mark = "\u25b6 " if chosen else "    "
            text = f"{mark}{action_name}"
            draw.text((_PANEL_X, middle), text, colour, self._small, anchor="lm")
            for column, values in enumerate(step.values):
                x = left + column * width
                largest = max(float(np.abs(values).max()), 1e-300)
                length = 60 * abs(float(values[action])) / largest
                bar = (x, y + 2, x + length, y + row_height - 2)
                draw.rectangle(bar, fill=_CHOSEN if chosen else _BAR)
                text = _number(float(values[action]))
                draw.text((x + 66, middle), text, colour, self._small, anchor="lm")

    def _draw_strip(
        self, draw: ImageDraw.ImageDraw, row: int, name: str, top: int, height: int
    ) -> None:
        """All actions' values over the last steps; the chosen action's value in colour."""
        values = np.array([step.values[row] for step in self._history])
        low, high = float(values.min()), float(values.max())
        span = (high - low) or 1.0
        left, right = _PANEL_X + 84, _WIDTH - 16
        x = left + (right - left) * np.arange(len(values)) / (_HISTORY - 1)
        y = top + height - 4 - (height - 8) * (values - low) / span
        draw.rectangle((left, top, right, top + height), outline=_FAINT)
        draw.text((_PANEL_X, top + height / 2 - 8), name, _INK, self._font)
        low_text, high_text = _bounds(low, high)
        draw.text((left - 8, top + 2), high_text, _INK, self._small, anchor="ra")
        draw.text((left - 8, top + height - 2), low_text, _INK, self._small, anchor="rd")
        if len(x) < 2:
            return
        for action in range(values.shape[1]):
            draw.line(list(zip(x.tolist(), y[:, action].tolist(), strict=True)), _FAINT, 1)
        chosen = [float(y[i, step.action]) for i, step in enumerate(self._history)]
        draw.line(list(zip(x.tolist(), chosen, strict=True)), _CHOSEN, 2)


def _bounds(low: float, high: float) -> tuple[str, str]:
    """Two numbers, with as many digits as tell them apart; a panel has room for seven."""
    texts = _number(low), _number(high)
    digits = 3
    while texts[0] == texts[1] and low < high and digits < 7:
        digits += 1
        texts = f"{low:.{digits}g}", f"{high:.{digits}g}"
    return texts


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}"
