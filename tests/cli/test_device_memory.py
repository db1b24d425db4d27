"""The share of a GPU's memory that JAX is told to take."""

import pytest

from log_dqn.cli import device_memory

OURS, NEW = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"


@pytest.mark.parametrize(
    ("before", "gpus", "after"),
    [
        ({}, 1, {OURS: "0.95"}),
        ({}, 0.25, {OURS: "0.2375"}),
        ({OURS: "0.5"}, 1, {OURS: "0.5"}),
        # JAX refuses both together.
        ({NEW: "0.5"}, 1, {NEW: "0.5"}),
    ],
)
def test_what_the_user_says_counts(before, gpus, after):
    device_memory.limit(before, gpus)
    assert before == after
