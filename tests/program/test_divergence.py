import pytest

from log_dqn.log_space import CLIPPED
from log_dqn.program import divergence


def test_runaway_values_are_told_once():
    watch = divergence.Watch()
    assert watch.end_iteration() is None  # Nothing was seen.
    for share in (0.0, 0.9):
        watch.see({CLIPPED: share, "Losses/Plus": 1.0})
    watch.see({"Losses/Loss": 1.0})
    assert watch.end_iteration() is None  # A mean of 0.45.
    for share in (0.9, 0.6):
        watch.see({CLIPPED: share})
    assert "75%" in watch.end_iteration()
    watch.see({CLIPPED: 1.0})
    assert watch.end_iteration() is None


@pytest.mark.parametrize("share", [divergence.RUNAWAY - 1e-6, divergence.RUNAWAY])
def test_the_threshold(share):
    watch = divergence.Watch()
    watch.see({CLIPPED: share})
    assert (watch.end_iteration() is None) == (share < divergence.RUNAWAY)
