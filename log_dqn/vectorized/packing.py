"""Arrays of the host in a single one, so that they travel to the device as one."""

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Layout(NamedTuple):
    """What is in the bytes of a run; the same for all runs.

    Attributes:
        structure: of the tree of arrays.
        kinds: the shape and the dtype of each array.
    """

    structure: Hashable
    kinds: tuple[tuple[tuple[int, ...], np.dtype], ...]


def pack(tree: Any, runs: tuple[int, ...]) -> tuple[np.ndarray, Layout]:
    """Puts the arrays of a tree into one.

    Args:
        tree: numpy arrays of shape [*runs, ...]; of 64 bits are packed 32, as JAX would take them.
        runs: (num_runs,), or () for arrays of a single run.

    Returns:
        Bytes, shape [*runs, num_bytes], and what they are.
    """
    leaves, structure = jax.tree.flatten(tree)
    arrays = [np.asarray(leaf, jax.dtypes.canonicalize_dtype(leaf.dtype)) for leaf in leaves]
    kinds = tuple((array.shape[len(runs) :], array.dtype) for array in arrays)
    parts = [np.ascontiguousarray(array).reshape(*runs, -1).view(np.uint8) for array in arrays]
    return np.concatenate(parts, axis=-1), Layout(structure, kinds)


def unpack(packed: jax.Array, layout: Layout) -> Any:
    """Returns the tree of a run's arrays from its bytes, shape [num_bytes]."""
    arrays, start = [], 0
    for shape, dtype in layout.kinds:
        size = math.prod(shape)
        part = packed[start : start + size * dtype.itemsize]
        start += part.size
        if dtype.kind == "b":
            array = part.astype(bool)
        else:
            part = part.reshape(size, dtype.itemsize) if dtype.itemsize > 1 else part
            array = jax.lax.bitcast_convert_type(part, dtype)
        arrays.append(jnp.reshape(array, shape))
    return jax.tree.unflatten(layout.structure, arrays)
