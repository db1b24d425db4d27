"""The network that Revisiting Rainbow plays MinAtar with, in Keras."""

from typing import Any

import gin
import tensorflow as tf
from dopamine.discrete_domains import atari_lib


@gin.configurable
class RevisitingRainbowNetwork(tf.keras.Model):
    """DQN's network on MinAtar in Obando-Ceron and Castro (2021)."""

    def __init__(self, num_actions: int, name: str | None = None) -> None:
        """Creates the layers, with so many outputs, and variables in the scope of the name."""
        super().__init__(name=name)
        self.conv = tf.keras.layers.Conv2D(
            16, [3, 3], padding="same", activation="relu", name="Conv"
        )
        self.flatten = tf.keras.layers.Flatten()
        self.dense = tf.keras.layers.Dense(num_actions, name="fully_connected")

    def call(self, state: tf.Tensor) -> Any:
        """Returns the outputs in states, shape [batch_size, 10, 10, channels, 1]."""
        x = tf.squeeze(tf.cast(state, tf.float32), -1)
        return atari_lib.DQNNetworkType(self.dense(self.flatten(self.conv(x))))
