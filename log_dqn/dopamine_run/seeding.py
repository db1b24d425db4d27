"""Seeds and states of all random numbers in a training process."""

import random
from typing import Any

import ale_py
import gin
import numpy as np
import tensorflow as tf

from log_dqn import minatar
from log_dqn.checks import check_seed


@gin.configurable
def seed_everything(seed: int) -> int:
    """Seeds Python, NumPy and TensorFlow's default graph; returns the seed, in [0, 2^32).

    They drive exploration, replay sampling and weight initialisation of the TensorFlow agents. To
    be called before the agent's graph is built. The JAX agents are given the seed itself.
    """
    check_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    tf.compat.v1.set_random_seed(seed)
    return seed


def seed_environment(environment: Any, seed: int) -> None:
    """Seeds an environment made by one of Dopamine's preprocessing wrappers."""
    environment.environment.reset(seed=seed)


def random_state(environment: Any) -> dict[str, Any]:
    """Returns the random states of Python, NumPy and the environment, which Dopamine wraps.

    They are plain data. For Atari they hold the whole emulator, and the generator that draws frame
    skips where they are random; other environments give what decides what happens from the next
    `reset` on: their random generator's state, and MinAtar's last action.
    """
    game, frame_skips = environment.environment.unwrapped, None
    if hasattr(game, "ale"):
        frame_skips = game.np_random.bit_generator.state
        of_environment = game.clone_state(include_rng=True).serialize()
    elif isinstance(game, minatar.Game):
        of_environment = game.state_between_episodes()
    else:
        of_environment = game.np_random.bit_generator.state
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),
        "environment": of_environment,
        "frame_skips": frame_skips,
        "game_over": environment.game_over,
    }


def restore_random_state(environment: Any, state: dict[str, Any]) -> None:
    """Puts back what `random_state` returned, into an environment like the captured one."""
    game = environment.environment.unwrapped
    environment.environment.reset()
    if hasattr(game, "ale"):
        game.restore_state(ale_py.ALEState(state["environment"]))
        game.np_random.bit_generator.state = state["frame_skips"]
    elif isinstance(game, minatar.Game):
        game.restore_between_episodes(state["environment"])
    else:
        game.np_random.bit_generator.state = state["environment"]
    environment.game_over = state["game_over"]
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    np.random.set_state(state["numpy"])
