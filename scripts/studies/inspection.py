"""What runs end with: the gradients of RMSProp, and the plus head's values."""

import pathlib
from collections.abc import Callable

import numpy as np
import pandas as pd
import tensorboard_events

from log_dqn import compat, log_space
from log_dqn.games import canonical, folder_name
from log_dqn.results import runs, scores
from log_dqn.results.request import find_runs
from log_dqn.run_folder import checkpoints, data, layout

_RUN = ["game", "agent", "setting"]


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


_EPSILONS: dict[str, Callable[[pathlib.Path], list[list[np.ndarray]]]] = {
    "rmsprop_tf.epsilon": _means_of_jax,
    "RMSPropOptimizer.epsilon": _means_of_tensorflow,
}
"""RMSProp's epsilon in gin, and what reads the arrays of its means of gradient and square."""


def gradients(results_dir: pathlib.Path, notify: runs.Notify) -> pd.DataFrame:
    """Sets the gradients at the end of runs beside the epsilon that RMSProp adds to their variance.

    They are read from the optimizer's state in the runs' newest checkpoints: its decaying means of
    the gradient and of its square, of each weight. `notify` is told of skipped checkpoints.

    Returns:
        Columns `game,agent,setting,epsilon,rms,above`: the root of the mean square gradient over
        all weights, and the share of weights whose gradient has a variance above epsilon.
    """
    rows = []
    for agent, game, _, folder in find_runs(results_dir):
        config = runs.parameters_of(folder, notify)
        name = next((name for name in _EPSILONS if name in config), None)
        checkpoint = layout.newest_checkpoint(folder, notify, "train it again") if name else None
        if name is None or checkpoint is None:
            continue
        means = _EPSILONS[name](checkpoint[0] / checkpoints.WEIGHTS)
        mean, square = (np.concatenate([part.ravel() for part in parts]) for parts in means)
        epsilon = config[name]
        above = float((square - mean**2 > epsilon).mean())
        of_agent, _, setting = agent.partition("/")
        run = (canonical(game), of_agent, setting)
        rows.append((*run, epsilon, float(np.sqrt(square.mean())), above))
    if not rows:
        raise ValueError(f"--results_dir={results_dir}: no runs with RMSProp")
    return pd.DataFrame(rows, columns=[*_RUN, "epsilon", "rms", "above"]).sort_values(_RUN)


def values(results_dir: pathlib.Path, notify: runs.Notify) -> pd.DataFrame:
    """Sets what the plus head says at the end of runs, so far, beside what they return.

    Rewards are clipped to 1, so that no value is above 1 / (1 - gamma) in truth. Runs
    without TensorBoard's events of a plus head, such as DQN's, are left out.

    Returns:
        Columns `game,agent,setting,score,q_plus,bound`: the mean training return of the last tenth
        of the iterations, the median of the last tenth of `Values/QPlus`, and 1 / (1 - gamma).
    """
    rows = []
    for run in runs.read_runs(results_dir, "train", notify):
        folder = results_dir / run.agent / folder_name(run.game) / run.seed
        events = tensorboard_events.read(folder)
        if log_space.Q_PLUS not in events.Tags()["scalars"] or run.gamma is None:
            continue
        q_plus = [point.value for point in events.Scalars(log_space.Q_PLUS)]
        tenth = q_plus[-max(1, len(q_plus) // 10) :]
        agent, _, setting = run.agent.partition("/")
        found = (scores.final_score(run.returns), np.median(tenth), 1 / (1 - run.gamma))
        rows.append((run.game, agent, setting, *found))
    if not rows:
        raise ValueError(f"--results_dir={results_dir}: no runs with {log_space.Q_PLUS}")
    return pd.DataFrame(rows, columns=[*_RUN, "score", "q_plus", "bound"]).sort_values(_RUN)
