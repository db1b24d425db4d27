"""Arrays of the host, packed into one and unpacked by a program."""

import functools

import jax
import numpy as np
import pytest

from log_dqn.vectorized import packing

# Of each dtype that is packed, with what arithmetic would lose.
FLOATS = np.array([[1.5, -0.0, np.inf, 1e-45], [np.nan, 0.1, -3e38, 7.0]], np.float32)
TREE = {
    "frames": np.arange(2 * 2 * 3, dtype=np.uint8).reshape(2, 2, 3) + 250,
    "actions": np.array([[-128, 127], [-1, 0]], np.int8),
    "floats": FLOATS,
    "learns": np.array([True, False]),
    "number": (np.array([-(2**31), 2**31 - 1]), np.array([3, 4], np.int32)),
}


def same(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("several", [True, False])
def test_what_is_unpacked_was_packed_bit_for_bit(several):
    tree = TREE if several else jax.tree.map(lambda leaf: leaf[1], TREE)
    packed, layout = packing.pack(tree, (2,) if several else ())
    # Frames, actions, floats, a bool, and two integers of 32 bits.
    num_bytes = 6 + 2 + 16 + 1 + 8
    assert packed.shape == ((2, num_bytes) if several else (num_bytes,))
    unpack = functools.partial(packing.unpack, layout=layout)
    found = jax.jit(jax.vmap(unpack) if several else unpack)(packed)
    expected = dict(tree, number=tuple(np.asarray(part, np.int32) for part in tree["number"]))
    jax.tree.map(same, found, expected)


def test_layouts_are_equal_where_only_values_differ():
    one, other = (packing.pack({"x": np.full((2, 3), value)}, (2,))[1] for value in (1, 2))
    assert one == other and hash(one) == hash(other)
    assert one != packing.pack({"y": np.ones((2, 3), int)}, (2,))[1]
