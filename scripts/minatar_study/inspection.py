"""What runs end with: the gradients of RMSProp, and the plus head's values."""

import pathlib

import numpy as np
import pandas as pd
import tensorboard_events

from log_dqn import compat, log_space
from log_dqn.games import canonical
from log_dqn.program import divergence
from log_dqn.program.words import counted
from log_dqn.results import protocol, runs, scores
from log_dqn.results.request import find_runs
from log_dqn.run_folder import checkpoints, data, layout

AT_BOUND = 0.8
"""The part of the bound from which values count as run away; the study's runs end far from it."""


def _means_of_jax(weights: pathlib.Path) -> list[list[np.ndarray]]:
    leaves = data.load(weights)
    # Weights, the target network's, then the two means, each a quarter of the arrays.
    quarter = len(leaves) // 4
    return [leaves[start : start + quarter] for start in (2 * quarter, 3 * quarter)]


def _means_of_tensorflow(weights: pathlib.Path) -> list[list[np.ndarray]]:
    with compat.quiet():
        import tensorflow as tf

        slots = tf.train.load_checkpoint(str(weights))
    # Centered RMSProp's slots of a variable: the square's mean, the gradient's (_1), momentum.
    squares = [name for name in slots.get_variable_to_shape_map() if name.endswith("/RMSProp")]
    return [[slots.get_tensor(name + end) for name in sorted(squares)] for end in ("_1", "")]


_EPSILONS = {
    "rmsprop_tf.epsilon": _means_of_jax,
    "RMSPropOptimizer.epsilon": _means_of_tensorflow,
}
"""RMSProp's epsilon in gin, and what reads the arrays of its means of gradient and square."""


def gradients(results_dir: pathlib.Path, notify: runs.Notify) -> pd.DataFrame:
    """Sets the gradients at the end of runs beside the epsilon that RMSProp adds to their variance.

    They are read from the optimizer's state in the runs' newest checkpoints: its decaying means of
    the gradient and of its square, of each weight. Runs are vectorized, or TensorFlow's.
    `notify` is told of checkpoints that are skipped.

    Returns:
        Columns `game,agent,gamma,epsilon,rms,above`: the root of the mean square gradient over all
        weights, and the share of weights whose gradient has a variance above epsilon.
    """
    rows = []
    for agent, game, _, folder in find_runs(results_dir):
        config = runs.parameters_of(folder, notify)
        name_of_epsilon = next((name for name in _EPSILONS if name in config), None)
        if name_of_epsilon is None:
            continue
        checkpoint = layout.newest_checkpoint(folder, notify, "train it again")
        if checkpoint is None:
            continue
        means = _EPSILONS[name_of_epsilon](checkpoint[0] / checkpoints.WEIGHTS)
        mean, square = (np.concatenate([part.ravel() for part in parts]) for parts in means)
        epsilon = config[name_of_epsilon]
        name = agent.partition("/")[0]
        _, gamma = runs.gamma_of(config) or (None, np.nan)
        above = float((square - mean**2 > epsilon).mean())
        rows.append((canonical(game), name, gamma, epsilon, float(np.sqrt(square.mean())), above))
    if not rows:
        raise ValueError(f"--results_dir={results_dir}: no runs with RMSProp")
    columns = ["game", "agent", "gamma", "epsilon", "rms", "above"]
    return pd.DataFrame(rows, columns=columns).sort_values(columns[:4], ignore_index=True)


def values(results_dir: pathlib.Path, notify: runs.Notify) -> pd.DataFrame:
    """Sets what the plus head says at the end of runs, so far, beside what they return.

    Rewards are clipped to 1, so that no value is above 1 / (1 - gamma) in truth. The runs of
    `results_dir` have TensorBoard's events; `notify` is told of runs without such values.

    Returns:
        Columns `game,agent,setting,score,q_plus,bound,clipped`: the mean training return of the
        last tenth of the iterations, the median of the last tenth of `Values/QPlus`,
        1 / (1 - gamma), and the largest mean of `Values/Clipped` over an iteration.
    """
    rows = []
    for agent, game, seed, folder in find_runs(results_dir):
        name, _, setting = agent.partition("/")
        if name == "dqn":  # It has no plus head.
            continue
        config = runs.parameters_of(folder, notify)
        _, gamma = runs.gamma_of(config) or (None, np.nan)
        events = tensorboard_events.read(folder)
        tags = ("Train/AverageReturns", log_space.Q_PLUS, log_space.CLIPPED)
        if missing := [tag for tag in tags if tag not in events.Tags()["scalars"]]:
            notify(f"{agent} {game} {seed}: no {' or '.join(missing)} in its events; left out")
            continue
        returns, q_plus, clipped = (
            np.array([point.value for point in events.Scalars(tag)]) for tag in tags
        )
        steps = np.array([point.step for point in events.Scalars(log_space.CLIPPED)])
        under = protocol.recorded(config, game, "train", len(returns))
        if not under.training_steps:
            notify(f"{agent} {game} {seed}: no training_steps in its {layout.CONFIG}; left out")
            continue
        iterations = (steps - 1) // under.training_steps
        tenth = q_plus[-max(1, len(q_plus) // 10) :]
        score = scores.final_score(returns)
        share = pd.Series(clipped).groupby(iterations).mean().max()
        run = (canonical(game), name, setting)
        rows.append((*run, score, np.median(tenth), 1 / (1 - gamma), share))
    if not rows:
        raise ValueError(f"--results_dir={results_dir}: no runs with {log_space.Q_PLUS}")
    columns = ["game", "agent", "setting", "score", "q_plus", "bound", "clipped"]
    return pd.DataFrame(rows, columns=columns).sort_values(columns[:3], ignore_index=True)


def told(table: pd.DataFrame) -> str:
    """Says of how many runs of `values` a line is told that their values have run away.

    They have if they end at `AT_BOUND` of their bound or more, where no true value is.
    """
    ended = table["q_plus"] >= AT_BOUND * table["bound"]
    is_told = table["clipped"] >= divergence.RUNAWAY
    return (
        f"{counted(int(ended.sum()), 'run')} of {len(table)} ended at {AT_BOUND} of the bound or "
        f"more; {int((ended & is_told).sum())} of these and {int((~ended & is_told).sum())} others "
        f"had an iteration with {divergence.RUNAWAY:.0%} clipped"
    )
