#!/usr/bin/env python3
"""Prints for how many weights of a run RMSProp's epsilon is above the gradient's variance.

    python scripts/rmsprop_variance.py --base_dir=results/atari/log_dqn/Asterix/1

There RMSProp is plain SGD: a step is learning_rate / sqrt(epsilon) times the gradient. The run is
one of Dopamine's TensorFlow agents with centered RMSProp, read at its newest checkpoint.
"""

import argparse
import functools
import math
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from log_dqn import compat
from log_dqn.checks import check
from log_dqn.program import shell, words
from log_dqn.run_folder import configuration, layout


def variances(checkpoint: pathlib.Path) -> Any:
    """Returns the gradient's variance for each weight, as centered RMSProp estimates it.

    Args:
        checkpoint: a folder with weights and the optimizer's slots.

    Returns:
        E[g^2] - E[g]^2, shape [weights].
    """
    import numpy as np

    with compat.quiet():
        import tensorflow as tf

        slots = tf.train.load_checkpoint(str(checkpoint / "weights"))
    # Of each variable: E[g^2] has the optimizer's name, E[g] that with _1.
    squares = (name for name in slots.get_variable_to_shape_map() if name.endswith("/RMSProp"))
    of_variables = (
        slots.get_tensor(name) - slots.get_tensor(f"{name}_1") ** 2 for name in sorted(squares)
    )
    return np.concatenate([of.ravel() for of in of_variables])


def show(run: pathlib.Path) -> None:
    """Prints the line of a run.

    Raises:
        checkpoints.CheckpointError: the run has logs, but no usable checkpoint.
        ValueError: it has nothing yet, or another optimizer.
    """
    import numpy as np

    check("base_dir", str(run), run.is_dir(), "the folder of a run")
    settings = configuration.read(run)
    centered = settings.get("RMSPropOptimizer.centered")
    check("RMSPropOptimizer.centered", centered, centered is True, "True")
    found = layout.newest_checkpoint(run, functools.partial(shell.warn, "train"), "train it anew")
    if found is None:
        raise ValueError(f"{run}: no checkpoint yet")
    rate, epsilon = (settings[f"RMSPropOptimizer.{key}"] for key in ("learning_rate", "epsilon"))
    of_weights = variances(found[0])
    print(
        f"The gradient's variance is below epsilon, {epsilon:g}, for "
        f"{100 * (of_weights < epsilon).mean():.2f}% of {of_weights.size:,} weights, and "
        f"{np.median(of_weights):.0e} in the median; below it, a step is "
        f"{words.rounded(rate / math.sqrt(epsilon))} times the gradient"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base_dir", type=shell.folder, required=True, help="folder of the run")
    args = parser.parse_args(argv)
    return shell.run_once(parser.prog, lambda: show(args.base_dir))


if __name__ == "__main__":
    sys.exit(main())
