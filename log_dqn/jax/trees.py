"""Trees of arrays; needs neither TensorFlow nor Dopamine."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def with_leaves(tree: Any, leaves: Sequence[np.ndarray]) -> Any:
    """Returns a tree like another, of arrays or their shapes, with leaves that were saved.

    The leaves are in the order of `jax.tree.leaves`.

    Raises:
        ValueError: if there are more or fewer leaves, or one has another shape.
    """
    expected, structure = jax.tree.flatten(tree)
    if [leaf.shape for leaf in expected] != [np.shape(leaf) for leaf in leaves]:
        raise ValueError("the weights are those of another network")
    return jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves])
