"""The gradients that runs with RMSProp end with."""

import pathlib

import numpy as np
import pandas as pd

from log_dqn import compat
from log_dqn.games import canonical
from log_dqn.results import runs
from log_dqn.results.request import find_runs
from log_dqn.run_folder import checkpoints, layout


def gradients(results_dir: pathlib.Path, notify: runs.Notify) -> pd.DataFrame:
    """Sets the gradients at the end of runs beside the epsilon that RMSProp adds to their variance.

    They are read from the optimizer's state in the newest checkpoints of TensorFlow's agents: its
    decaying means of the gradient and of its square, of each weight. `notify` is told of skipped
    checkpoints.

    Returns:
        Columns `game,agent,setting,epsilon,rms,above`: the root of the mean square gradient over
        all weights, and the share of weights whose gradient has a variance above epsilon.
    """
    with compat.quiet():
        import tensorflow as tf

    rows = []
    for name, game, _, folder in find_runs(results_dir):
        epsilon = runs.parameters_of(folder, notify).get("RMSPropOptimizer.epsilon")
        if epsilon is None:
            continue
        newest = layout.newest_checkpoint(folder, notify, "train it again")
        if newest is None:
            continue
        slots = tf.train.load_checkpoint(str(newest[0] / checkpoints.WEIGHTS))
        # Centered RMSProp's slots of a variable: the square's mean, the gradient's (_1), momentum.
        names = sorted(n for n in slots.get_variable_to_shape_map() if n.endswith("/RMSProp"))
        square, mean = (
            np.concatenate([slots.get_tensor(name + end).ravel() for name in names])
            for end in ("", "_1")
        )
        agent, _, setting = name.partition("/")
        above = float((square - mean**2 > epsilon).mean())
        rms = float(np.sqrt(square.mean()))
        rows.append((canonical(game), agent, setting, epsilon, rms, above))
    if not rows:
        raise ValueError(f"--results_dir={results_dir}: no runs with RMSProp")
    columns = ["game", "agent", "setting", "epsilon", "rms", "above"]
    return pd.DataFrame(rows, columns=columns).sort_values(columns[:3])
