"""What runs end with: the gradients of RMSProp, and the plus head's values."""

import pathlib
from typing import Any

import numpy as np
import pandas as pd

from log_dqn import compat, log_space
from log_dqn.games import canonical, folder_name
from log_dqn.results import runs, scores
from log_dqn.results.request import find_runs
from log_dqn.run_folder import checkpoints, layout

_RUN = ["game", "agent", "setting"]


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
    return pd.DataFrame(rows, columns=[*_RUN, "epsilon", "rms", "above"]).sort_values(_RUN)


def values(results_dir: pathlib.Path, notify: runs.Notify) -> pd.DataFrame:
    """Sets what the plus head says at the end of runs beside what they return.

    Runs without TensorBoard's events of a plus head, such as DQN's, are left out.

    Returns:
        Columns `game,agent,setting,score,q_plus,bound`: the mean training return of the last tenth
        of the iterations, the median of the last tenth of `Values/QPlus`, and 1 / (1 - gamma),
        which no value exceeds in truth, since rewards are clipped to 1.
    """
    rows = []
    for run in runs.read_runs(results_dir, "train", notify):
        events = _events(results_dir / run.agent / folder_name(run.game) / run.seed)
        if log_space.Q_PLUS not in events.Tags()["scalars"] or run.gamma is None:
            continue
        q_plus = [point.value for point in events.Scalars(log_space.Q_PLUS)]
        median = np.median(q_plus[-max(1, len(q_plus) // 10) :])
        agent, _, setting = run.agent.partition("/")
        score = scores.final_score(run.returns)
        rows.append((run.game, agent, setting, score, median, 1 / (1 - run.gamma)))
    if not rows:
        raise ValueError(f"--results_dir={results_dir}: no runs with {log_space.Q_PLUS}")
    return pd.DataFrame(rows, columns=[*_RUN, "score", "q_plus", "bound"]).sort_values(_RUN)


def _events(folder: pathlib.Path) -> Any:
    """Returns the `EventAccumulator` of a run's folder, with each scalar that was written."""
    with compat.quiet():  # It may import TensorFlow.
        from google.protobuf.message import DecodeError
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        try:
            return EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
        except DecodeError as error:
            raise ValueError(f"{folder}: damaged events of TensorBoard ({error})") from None
