"""Tile coding of a row of states (paper, section 3.2)."""

import numpy as np

from log_dqn.checks import check


def features(n_states: int, width: int) -> np.ndarray:
    """Returns the features of every state, shape (n_states, n_states + width - 1).

    There are `width` tilings, each shifted by one state, with tiles of `width` neighbouring
    states. Tile i, over all tilings and counted by position, covers the states i - width + 1 to
    i, so that state s activates the tiles s to s + width - 1, one of each tiling. An active
    feature has value 1 / sqrt(width), which makes every feature vector of length 1. Any value
    function can be represented.

    Raises:
        ValueError: if `width` is below 1.
    """
    check("tile width", width, width >= 1, "1 or more")
    state = np.arange(n_states)[:, None]
    tile = np.arange(n_states + width - 1)
    return ((tile >= state) & (tile < state + width)) / np.sqrt(width)
