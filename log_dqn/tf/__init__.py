"""LogDQN on Dopamine's TensorFlow agents. Importing it imports TensorFlow."""

from log_dqn import compat

compat.register_optimizers()
