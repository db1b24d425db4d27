"""Logarithmic deep Q-learning (van Seijen, Fatemi and Tavakoli, NeurIPS 2019) on Dopamine.

Importing this package makes Dopamine importable (see `log_dqn.compat`). It imports neither
TensorFlow nor JAX nor Dopamine itself.
"""

from log_dqn import compat

__version__ = "0.1.0"

compat.apply()
