import numpy as np
import pytest

from log_dqn.linear.experiments import WIDTHS
from log_dqn.linear.tile_coding import features


def test_by_hand():
    expected = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]) / np.sqrt(2)
    np.testing.assert_array_equal(features(3, 2), expected)
    np.testing.assert_array_equal(features(4, 1), np.eye(4))


@pytest.mark.parametrize("width", WIDTHS)
def test_properties(width):
    phi = features(50, width)
    # Any value function can be represented.
    assert np.linalg.matrix_rank(phi) == 50
    np.testing.assert_allclose(np.sum(phi**2, axis=1), 1)
    # Each of the `width` tilings has exactly one active tile in each state ...
    for tiling in range(width):
        np.testing.assert_array_equal(np.sum(phi[:, tiling::width] > 0, axis=1), 1)
    # ... and tiles are `width` neighbouring states, fewer at the ends only.
    for tile, column in enumerate((phi > 0).T):
        covered = np.flatnonzero(column)
        np.testing.assert_array_equal(
            covered, np.arange(max(tile - width + 1, 0), min(tile + 1, 50))
        )


def test_bad_width():
    with pytest.raises(ValueError, match="tile width is 0"):
        features(50, 0)
