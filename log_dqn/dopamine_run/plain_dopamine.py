"""Our gin files in Dopamine's own runner; each of them imports this module.

Dopamine's runner has neither the seeds nor the exact checkpoints of `log_dqn.dopamine_run.runner`.
"""

import os
import pathlib
from typing import Any

from log_dqn import compat
from log_dqn.checks import check
from log_dqn.dopamine_run import agents, gymnasium_game, request
from log_dqn.run_folder import layout


def check_folder(base_dir: Any) -> None:
    """Checks a runner's folder, or passes a writer of summaries or None.

    Raises:
        ValueError: if it holds a run of `log-dqn train`, whose logs and checkpoints Dopamine's
            runner would overwrite.
    """
    if isinstance(base_dir, (str, os.PathLike)):
        is_ours = pathlib.Path(base_dir, layout.CONFIG).exists()
        check("base_dir", str(base_dir), not is_ours, "without a run of `log-dqn train`")


def create_agent(sess: Any, environment: Any, summary_writer: Any, name: str) -> Any:
    """Creates an agent for Dopamine's runner, with gin's seed, or one of its own.

    Raises:
        ValueError: if a TensorFlow agent is to bootstrap at a time limit: Dopamine's runner reports
            every end of an episode as terminal.
    """
    agents.prepare_tensorflow(name)
    if isinstance(environment, gymnasium_game.GymnasiumGame):
        parameter = f"{request.GYMNASIUM_FACTORY}.bootstrap_at_time_limit"
        allowed = "False for a TensorFlow agent in Dopamine's own runner; `log-dqn train` takes it"
        check(parameter, True, agents.uses_jax(name) or not environment.bootstraps, allowed)
    return agents.create_agent(sess, environment, summary_writer, name=name)


compat.extend_run_experiment(agents.AGENTS, create_agent, check_folder)
