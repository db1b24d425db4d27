"""Logarithmic deep Q-learning (van Seijen, Fatemi and Tavakoli, NeurIPS 2019) on Dopamine.

Importing this package makes Dopamine importable (see `log_dqn.compat`). It imports neither
TensorFlow nor JAX nor Dopamine itself.
"""

import os
from typing import TYPE_CHECKING

from log_dqn import compat

if TYPE_CHECKING:
    from log_dqn.film.players import TrainedAgent

__version__ = "0.1.0"

compat.apply()


def load(
    run: str | os.PathLike[str],
    agent: str | None = None,
    gamma: float | None = None,
    env: str | None = None,
    seed: int = 0,
) -> "TrainedAgent":
    """Loads a trained agent and its game; no code that the run's folder names is run.

    Loading a TensorFlow agent's run switches TensorFlow's eager mode off for the whole process, as
    creating one of Dopamine's agents does.

    Args:
        run: folder of a run of `log-dqn train` or `train-vectorized`, whose newest checkpoint is
            loaded; or a game whose network comes with the package, such as 'MinAtar/Asterix'.
        agent: for such a game, 'loglin_dqn' (default), 'log_dqn' or 'dqn'.
        gamma: for such a game, the discount factor; by default the larger of the two.
        env: the `--env` of a vectorized run on an environment of your own; its module is imported
            only then.
        seed: seed of the quantiles that IQN draws.

    Returns:
        The agent; see its methods `act(observation)` and `values(observation)`.

    Raises:
        ValueError: if there is no such run or network, or it can't be loaded.
        log_dqn.run_folder.checkpoints.CheckpointError: if the checkpoints are damaged.
    """
    from log_dqn import games, trained
    from log_dqn.run_folder import configuration

    named = None
    # A path, or a longer name, is a folder's.
    if isinstance(run, str) and run.count("/") == 1:
        is_game = run.startswith("MinAtar/") or games.canonical(run) in games.MINATAR5
        named = run if is_game else None
    folder = trained.run_dir(run, named, agent, gamma)
    configuration.check_trained("run", folder)
    with compat.quiet():
        from log_dqn.film import loading
    return loading.load(folder, seed, env)
