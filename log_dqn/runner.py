"""Dopamine's training loop with LogDQN among its agents, seeds, and one line of progress."""

import os
from typing import Any

import gin
from dopamine.discrete_domains import run_experiment
from dopamine.tf.agents.dqn import dqn_agent
from dopamine.tf.agents.implicit_quantile import implicit_quantile_agent
from dopamine.tf.agents.rainbow import rainbow_agent

from log_dqn import progress, seeding
from log_dqn.tf import log_dqn_agent

AGENTS = {
    "log_dqn": log_dqn_agent.LogDQNAgent,
    "dqn": dqn_agent.DQNAgent,
    "c51": rainbow_agent.RainbowAgent,
    "rainbow": rainbow_agent.RainbowAgent,
    "implicit_quantile": implicit_quantile_agent.ImplicitQuantileAgent,
}


def agent_name() -> str:
    """Returns the agent that the gin configuration names (`create_agent.agent_name`).

    Raises:
        ValueError: if it names none, or an unknown one.
    """
    try:
        name = gin.query_parameter("create_agent.agent_name")
    except ValueError:
        name = None
    if name not in AGENTS:
        raise ValueError(f"agent is {name!r}; it must be one of {', '.join(AGENTS)}")
    return name


def create_agent(sess: Any, environment: Any, summary_writer: Any = None) -> dqn_agent.DQNAgent:
    """Creates the configured agent. Dopamine's own `create_agent` admits no others than its own.

    Args:
        sess: None; the agent makes its session.
        environment: environment with a discrete action space.
        summary_writer: directory for the agent's TensorBoard summaries.

    Returns:
        The agent.

    Raises:
        ValueError: if the agent is unknown, or one of its parameters is outside its range.
    """
    agent_class = AGENTS[agent_name()]
    return agent_class(
        sess, num_actions=int(environment.action_space.n), summary_writer=summary_writer
    )


def operative_config() -> str:
    """Returns the gin configuration in force, in gin's language."""
    return (
        f"{gin.operative_config_str()}\n"
        "# Parameters for create_agent:\n"
        "# ==============================================================================\n"
        f"create_agent.agent_name = {agent_name()!r}\n"
    )


class ProgressRunner(run_experiment.Runner):
    """Dopamine's Runner with seeds, one line of progress and a record of the configuration.

    Configured in gin as `Runner`.
    """

    def __init__(self, base_dir: str) -> None:
        """Builds environment and agent, and loads the newest checkpoint if there is one.

        Args:
            base_dir: folder of the run.

        Raises:
            ValueError: if a setting is outside its range.
        """
        seed = seeding.seed_everything()
        super().__init__(base_dir, create_agent)
        seeding.seed_environment(self._environment, seed)
        self._fine_grained_print_to_console_enabled = False
        with open(os.path.join(base_dir, "operative_config.gin"), "w", encoding="utf-8") as file:
            file.write(operative_config())

    def run_experiment(self) -> None:
        """Runs the iterations that are left; see Dopamine's Runner for what an iteration is."""
        steps_per_iteration = self._steps_per_iteration()
        with progress.create(
            initial=self._start_iteration * steps_per_iteration,
            total=self._num_iterations * steps_per_iteration,
        ) as self._progress:
            for iteration in range(self._start_iteration, self._num_iterations):
                self._progress.set_description_str(self._title(iteration), refresh=False)
                statistics = self._run_one_iteration(iteration)
                self._log_experiment(iteration, statistics)
                self._checkpoint_experiment(iteration)
                self._collector_dispatcher.flush()
                # Episodes run to their end, so phases overshoot; keep to the plan's count.
                self._progress.n = (iteration + 1) * steps_per_iteration
                self._report(iteration, statistics)
        if self._summary_writer is not None:
            self._summary_writer.flush()
        self._collector_dispatcher.close()

    def _steps_per_iteration(self) -> int:
        """Agent steps that an iteration is planned to take."""
        return self._training_steps + self._evaluation_steps

    def _title(self, iteration: int) -> str:
        return f"iteration {min(iteration + 1, self._num_iterations)}/{self._num_iterations}"

    def _run_one_step(self, action: int) -> tuple[Any, float, bool]:
        self._progress.update()
        return super()._run_one_step(action)

    def _report(self, iteration: int, statistics: dict[str, list[Any]]) -> None:
        """Prints a finished iteration's line, and shows its return in the progress line."""
        results = [
            f"{mode} return {statistics[f'{mode}_average_return'][0]:.2f} "
            f"({len(statistics[f'{mode}_episode_returns'])} episodes)"
            for mode in ("train", "eval")
            if f"{mode}_average_return" in statistics
        ]
        self._progress.set_postfix_str(results[0], refresh=False)
        self._progress.print_line(
            f"{self._title(iteration)}: {', '.join(results)}, "
            f"{statistics['train_average_steps_per_second'][0]:.0f} training steps/s, "
            f"{self._progress.time_left()} left"
        )


class ProgressTrainRunner(ProgressRunner, run_experiment.TrainRunner):
    """Training phases only; configured in gin as `Runner` and `TrainRunner`."""

    def _steps_per_iteration(self) -> int:
        return self._training_steps


def create_runner(base_dir: str) -> ProgressRunner:
    """Creates the runner of the configured schedule (`create_runner.schedule`).

    Args:
        base_dir: folder of the run.

    Returns:
        The runner.

    Raises:
        ValueError: if the schedule is unknown, or a setting is outside its range.
    """
    runners: dict[str, type[ProgressRunner]] = {
        "continuous_train_and_eval": ProgressRunner,
        "continuous_train": ProgressTrainRunner,
    }
    try:
        schedule = gin.query_parameter("create_runner.schedule")
    except ValueError:
        schedule = "continuous_train_and_eval"
    if schedule not in runners:
        raise ValueError(f"schedule is {schedule!r}; it must be one of {', '.join(runners)}")
    return runners[schedule](base_dir)
