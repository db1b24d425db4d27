"""The network that Revisiting Rainbow plays MinAtar with, in flax."""

from typing import Any

import gin
import jax
import jax.numpy as jnp
from dopamine.discrete_domains import atari_lib
from flax import linen as nn


@gin.configurable
class JaxRevisitingRainbowNetwork(nn.Module):
    """DQN's network on MinAtar in Obando-Ceron and Castro (2021).

    Dopamine's own `MinatarDQNNetwork` convolves over columns and channels, since it doesn't take
    the axis of the stack off.
    """

    num_actions: int

    @nn.compact
    def __call__(self, x: jax.Array) -> Any:
        """Returns the outputs in one state, shape [10, 10, channels, 1]."""
        initializer = nn.initializers.xavier_uniform()
        x = jnp.squeeze(x, -1).astype(jnp.float32)
        x = nn.relu(nn.Conv(features=16, kernel_size=(3, 3), kernel_init=initializer)(x))
        q_values = nn.Dense(features=self.num_actions, kernel_init=initializer)(x.reshape(-1))
        return atari_lib.DQNNetworkType(q_values)
