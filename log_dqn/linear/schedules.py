"""Step-sizes by sweep."""

import numpy as np


def geometric(final: float, n_sweeps: int) -> np.ndarray:
    """Returns step-sizes that fall geometrically from 1 to `final` over `n_sweeps` sweeps.

    Shape (n_sweeps + 1,); the last entry, `final`, also holds for every later sweep.
    """
    return final ** (np.arange(n_sweeps + 1) / n_sweeps)


def constant(value: float) -> np.ndarray:
    """Returns the schedule of a fixed step-size, shape (1,)."""
    return np.array([float(value)])


def polynomial(exponent: float, time_scale: float, n_sweeps: int) -> np.ndarray:
    """Returns (1 + t / time_scale) ** -exponent for the sweeps t = 0, ..., n_sweeps - 1."""
    return (1 + np.arange(n_sweeps) / time_scale) ** -exponent
