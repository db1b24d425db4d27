"""Seeding of everything in one training process that draws random numbers."""

import random
import secrets
from typing import Any

import gin
import numpy as np
import tensorflow as tf

from log_dqn.single.request import check_seed


def draw_seed() -> int:
    """Returns a seed that no other run has."""
    return secrets.randbits(31)


@gin.configurable
def seed_everything(seed: int | None = None) -> int:
    """Seeds Python, NumPy and TensorFlow's default graph.

    They drive exploration, replay sampling and weight initialisation of the TensorFlow agents. To
    be called before the agent's graph is built. The JAX agents are given the seed itself.

    Args:
        seed: a number in [0, 2^32), or None to draw one.

    Returns:
        The seed used.
    """
    if seed is None:
        seed = draw_seed()
    check_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    tf.compat.v1.set_random_seed(seed)
    return seed


def seed_environment(environment: Any, seed: int) -> None:
    """Seeds an environment made by one of Dopamine's preprocessing wrappers."""
    environment.environment.reset(seed=seed)
