"""The random states of a training process, and of its environment between two episodes."""

import random
from typing import Any

import ale_py
import numpy as np

from log_dqn import minatar


def capture(environment: Any) -> dict[str, Any]:
    """Returns the random states of Python, NumPy and the environment.

    Args:
        environment: environment in one of Dopamine's preprocessing wrappers.

    Returns:
        Plain data. For Atari it holds the whole emulator; other environments give what decides what
        happens from the next `reset` on: their random generator's state, and MinAtar's last action.
    """
    game = environment.environment.unwrapped
    if hasattr(game, "ale"):
        of_environment = game.clone_state(include_rng=True).serialize()
    elif isinstance(game, minatar.Game):
        of_environment = game.state_between_episodes()
    else:
        of_environment = game.np_random.bit_generator.state
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),
        "environment": of_environment,
        "game_over": environment.game_over,
    }


def restore(environment: Any, state: dict[str, Any]) -> None:
    """Puts back what `capture` returned, into an environment like the captured one."""
    game = environment.environment.unwrapped
    environment.environment.reset()
    if hasattr(game, "ale"):
        game.restore_state(ale_py.ALEState(state["environment"]))
    elif isinstance(game, minatar.Game):
        game.restore_between_episodes(state["environment"])
    else:
        game.np_random.bit_generator.state = state["environment"]
    environment.game_over = state["game_over"]
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    np.random.set_state(state["numpy"])
