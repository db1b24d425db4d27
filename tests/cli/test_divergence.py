import pytest

from log_dqn.cli import divergence
from log_dqn.log_space import CLIPPED


def test_runaway_values_are_told_once():
    watch = divergence.Watch()
    assert watch.end_iteration() is None  # Nothing was seen.
    for share in (0.0, 0.9):
        watch.see({CLIPPED: share, "Losses/Plus": 1.0})
    watch.see({"Losses/Loss": 1.0})
    assert watch.end_iteration() is None  # A mean of 0.45.
    for share in (0.9, 0.6):
        watch.see({CLIPPED: share})
    warning = watch.end_iteration()
    assert warning.startswith(
        "values have diverged: in 75% of this iteration's sampled transitions the bootstrapped "
    )
    assert "where good policies reach it, set clip_bootstrap to False; else a lower" in warning
    watch.see({CLIPPED: 1.0})
    assert watch.end_iteration() is None


@pytest.mark.parametrize(("share", "is_told"), [(0.499999, False), (0.5, True)])
def test_half_the_transitions_are_enough(share, is_told):
    watch = divergence.Watch()
    watch.see({CLIPPED: share})
    assert (watch.end_iteration() is not None) == is_told
