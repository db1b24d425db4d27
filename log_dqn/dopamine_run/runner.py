"""Dopamine's training loop with seeds, safe checkpoints and one line of progress."""

import contextlib
import errno
import functools
import inspect
import json
import os
import pathlib
import re
import secrets
import signal
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import gin
import tensorflow as tf
from dopamine.discrete_domains import run_experiment

from log_dqn import compat
from log_dqn.cli import divergence, environments, progress, settings, words
from log_dqn.cli.gin_files import bound
from log_dqn.cli.shell import REPAIR, RunStopped, say
from log_dqn.dopamine_run import agents, gymnasium_game, reports, request, saved_run, seeding
from log_dqn.run_folder import checkpoints, configuration, layout
from log_dqn.tf import graph_hooks, time_limit

# The disk is full, a quota is used up, or a file has grown too large; in any library's error.
_NO_ROOM = [*map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))]

# Training steps after which the weights are looked at. A finite loss says nothing of them: where a
# CPU computes, relu makes 0 of NaN.
_WEIGHTS_PERIOD = 500

# What TensorFlow agents' replay memory says when it finds no transitions for a batch.
_NO_BATCH, _TOO_SHORT = "Max sample attempts", "Cannot sample a batch"

compat.measure_by_a_steady_clock()


def schedule() -> str:
    """Returns the configured schedule, one of `settings.SCHEDULES`."""
    return bound("create_runner.schedule", settings.SCHEDULES[0])


def operative() -> configuration.Configuration:
    """Returns all settings that gin has configured so far."""
    # Dopamine's create_agent and create_runner are configured, but not called.
    return configuration.operative(
        create_agent={"agent_name": agents.agent_name()}, create_runner={"schedule": schedule()}
    )


def length() -> tuple[int, int]:
    """Returns the configured number of iterations, and of agent steps of an iteration."""
    defaults = inspect.signature(run_experiment.Runner).parameters
    iterations, training, evaluation = (
        bound(f"Runner.{name}", defaults[name].default)
        for name in ("num_iterations", "training_steps", "evaluation_steps")
    )
    return iterations, training + (schedule() == settings.SCHEDULES[0]) * evaluation


class ResumableRunner(run_experiment.Runner):
    """Dopamine's Runner with seeds, safe checkpoints and one line of progress.

    Configured in gin as `Runner`. A run that is stopped, or dies, resumes from the start of the
    iteration it was in.
    """

    _has_evaluation = True

    def __init__(self, base_dir: str, as_json: bool = False, track: bool = False) -> None:
        """Builds environment and agent, and loads the newest checkpoint if there is one.

        Finished iterations are printed in words or, with `as_json`, as JSON. With `track` they are
        logged to Weights & Biases too.
        """
        self._folder = pathlib.Path(base_dir)
        self._stop_signal: int | None = None
        agents.prepare_tensorflow()
        self._found = saved_run.find(self._folder)
        if bound("seed_everything.seed") is None:
            # One that is drawn is recorded like one that is given, and kept when a run resumes.
            _, manifest = self._found or (None, {})
            seed = manifest.get("config", {}).get("seed_everything.seed")
            seed = secrets.randbits(31) if seed is None else seed
            gin.parse_config(f"seed_everything.seed = {seed}")
        self._seed = seeding.seed_everything()
        super().__init__(base_dir, functools.partial(agents.create_agent, seed=self._seed))
        self._fine_grained_print_to_console_enabled = False
        self._watch = divergence.Watch()
        spec = getattr(self._environment.environment, "spec", None)
        self._game_name = spec.id if spec else type(self._environment).__name__
        self._is_checked = isinstance(self._environment, gymnasium_game.GymnasiumGame)
        self._longest_episode = 0
        if agents.uses_jax():
            self._agent.see_statistics = self._watch.see
        else:
            graph_hooks.watch_summaries(self._agent, self._watch.see)
        saved_run.restore_metrics(self._collector_dispatcher, self._metrics)
        config = operative()  # With what was created after the checkpoint was loaded.
        configuration.write(self._folder, config)
        self._as_json = as_json
        self._tracker = reports.Tracker(self._folder, config.parameters) if track else None

    @property
    def num_iterations(self) -> int:
        """Iterations that the run has when it is finished."""
        return self._num_iterations

    @property
    def finished_iterations(self) -> int:
        """Iterations that an earlier start has finished."""
        return self._start_iteration

    @property
    def replay_bytes(self) -> int:
        """Bytes that the replay memory takes once it is full, of a TensorFlow agent."""
        memory = getattr(self._agent._replay, "memory", None)
        return sum(array.nbytes for array in memory._store.values()) if memory else 0

    def stop(self, signal_number: int) -> None:
        """Makes `run_experiment` raise RunStopped before its next step, for a signal handler."""
        self._stop_signal = signal_number

    def run_experiment(self) -> None:
        """Runs the iterations that are left; see Dopamine's Runner for what an iteration is.

        Raises:
            RunStopped: if the loss is no longer finite, a file can't be written, or `stop` was
                called. The checkpoint of the last finished iteration is intact.
        """
        if self._start_iteration >= self._num_iterations:
            end = f"This run has finished its {self._num_iterations} iterations."
            say(end, file=sys.stderr if self._as_json else None)
        training_steps = self._num_iterations * self._training_steps
        settings.warn_without_updates("train", self._agent, training_steps)
        steps = self._training_steps + self._has_evaluation * self._evaluation_steps
        with progress.Progress(
            [self._start_iteration], self._num_iterations, steps, self._agent.min_replay_history
        ) as self._progress:
            if self._start_iteration:
                # The run may have died between its checkpoint and what follows that.
                last = self._start_iteration - 1
                if not layout.log_path(self._folder, last).exists():
                    self._report(last)
                with self._stopping_cleanly(last):
                    self._write_results(last)
            for iteration in range(self._start_iteration, self._num_iterations):
                self._iteration, self._iteration_steps = iteration, 0
                with self._stopping_cleanly(iteration):
                    self._logger[f"iteration_{iteration}"] = self._run_one_iteration(iteration)
                with self._stopping_cleanly(iteration):
                    self._checkpoint_experiment(iteration)
                self._report(iteration)
                with self._stopping_cleanly(iteration):
                    self._write_results(iteration)
                runaway = self._watch.end_iteration()
                if runaway is not None:
                    self._progress.print_line(runaway, sys.stderr)
        self._collector_dispatcher.close()
        if self._tracker is not None:
            self._tracker.close()

    @contextlib.contextmanager
    def _stopping_cleanly(self, iteration: int) -> Iterator[None]:
        """Turns errors that stop a run, and are no fault of the program, into RunStopped."""
        try:
            yield
        except tf.errors.InvalidArgumentError as error:
            match = re.search(rf"\[({graph_hooks.NOT_FINITE}.*)\]", error.message)
            if match is None:
                raise
            details = match[1].replace("] [", " ")
            step = self._agent.training_steps
            raise self._stopped(f"at training step {step}: {details}") from error
        except (FloatingPointError, OSError, tf.errors.OpError, RuntimeError) as error:
            if _NO_BATCH in str(error):
                raise self._nothing_to_learn() from error
            if _TOO_SHORT in str(error):
                raise self._learns_too_early() from error
            is_of_run = isinstance(error, FloatingPointError | OSError)
            full = next((said for said in _NO_ROOM if said in str(error)), None)
            reason = full or (is_of_run and str(error))
            if not reason:
                raise
            where = f"in iteration {iteration + 1}, which can't be saved"
            raise self._stopped(f"{where}: {reason}") from error

    def _stopped(self, why: str, status: int = 1, then: str = "") -> RunStopped:
        root = layout.checkpoints_dir(self._folder)
        finished = checkpoints.iterations(root)
        last = "there is no checkpoint yet"
        if finished:
            last = f"the last good checkpoint is {root / str(finished[-1])}"
        return RunStopped(f"stopped {why}; {last}{then}", status)

    @contextlib.contextmanager
    def _stopping_at_faults(self) -> Iterator[None]:
        """Turns a fault of the environment into RunStopped, which names the step."""
        try:
            yield
        except environments.Fault as fault:
            where = f"at step {self._iteration_steps} of iteration {self._iteration + 1}"
            then = f"; {REPAIR}"
            if fault.__cause__ is not None:
                then += "\n" + "".join(traceback.format_exception(fault.__cause__)).rstrip()
            raise self._stopped(f"{where}: {fault}", then=then) from fault

    def _write_results(self, iteration: int) -> None:
        """Writes logs, metrics and events, for other programs.

        It comes after the iteration's report: if the log is missing, the report is repeated.
        """
        layout.write_log(self._folder, self._logger.data, iteration, self._logger._logs_duration)
        self._collector_dispatcher.flush()
        if self._summary_writer is not None:
            self._summary_writer.flush()

    def _initialize_checkpointer_and_maybe_resume(self, checkpoint_file_prefix: str) -> None:
        """Seeds the environment, and loads the newest usable checkpoint, ours or Dopamine's."""
        del checkpoint_file_prefix
        seeding.seed_environment(self._environment, self._seed)
        self._config = operative()
        self._start_iteration = 0
        self._metrics: dict[str, Any] = {}
        if self._found is not None:
            state = saved_run.load(
                self._folder,
                self._found,
                self._agent,
                self._environment,
                self._config.parameters,
            )
            self._start_iteration = state.iteration + 1
            self._logger.data = state.log
            self._metrics = state.metrics

    def _checkpoint_experiment(self, iteration: int) -> None:
        metrics = saved_run.metrics_of(self._collector_dispatcher)
        state = saved_run.Finished(iteration, self._logger.data, metrics)
        saved_run.save(self._folder, state, self._agent, self._environment, self._config.parameters)

    def _end_episode(self, reward: float, terminal: bool = True) -> None:
        """Tells the agent that an episode is over, and whether it has ended or was cut off."""
        game, agent, on_jax = self._environment, self._agent, agents.uses_jax()
        if isinstance(game, gymnasium_game.GymnasiumGame):
            terminal = terminal or not game.bootstraps
        if isinstance(game, gymnasium_game.GymnasiumGame) and not terminal and not on_jax:
            time_limit.end_episode(agent, reward)
        else:
            super()._end_episode(reward, terminal)
        if agent.eval_mode:
            return
        self._longest_episode = max(self._longest_episode, self._episode_steps)
        # TensorFlow's memory says it itself.
        if on_jax and agent.training_steps > agent.min_replay_history and not agent._replay._memory:
            raise self._nothing_to_learn()

    def _nothing_to_learn(self) -> RunStopped:
        steps = words.counted(self._agent.update_horizon, "step")
        read = agents.parameters_read(agents.agent_name())
        cuts = f"{request.GYMNASIUM_FACTORY}.bootstrap_at_time_limit=False learns from cuts as ends"
        is_gym = isinstance(self._environment, gymnasium_game.GymnasiumGame)
        return self._stopped(
            f"at training step {self._agent.training_steps}: there is nothing to learn from: an "
            f"update needs update_horizon, {steps}, after a state, and the longest episode had "
            f"{max(self._longest_episode, self._episode_steps)} when it was cut off; lower "
            f"{read['update_horizon']}, raise {read['min_replay_history']}, or let episodes be "
            f"longer{f'; {cuts}' * is_gym}"
        )

    def _learns_too_early(self) -> RunStopped:
        agent, read = self._agent, agents.parameters_read(agents.agent_name())
        least = agent._replay.memory._stack_size - 1 + agent.update_horizon
        return self._stopped(
            f"at training step {agent.training_steps}: {read['min_replay_history']} is "
            f"{agent.min_replay_history}; it must be at least {least}, the stack_size - 1 + the "
            "update_horizon"
        )

    def _initialize_episode(self) -> int:
        self._episode_steps = 0
        with self._stopping_at_faults():
            observation = self._environment.reset()
            environments.check_observation(self._game_name, observation)
        return self._agent.begin_episode(observation)

    def _run_one_step(self, action: int) -> tuple[Any, float, bool]:
        if self._stop_signal is not None:
            raise self._stopped(
                f"by {signal.Signals(self._stop_signal).name}; the same command resumes from the "
                "start of this iteration",
                status=128 + self._stop_signal,
            )
        if self._agent.training_steps % _WEIGHTS_PERIOD == 0 and not self._agent.eval_mode:
            saved_run.check_weights(self._agent)
        self._iteration_steps += 1
        self._episode_steps += 1
        self._progress.report(self._iteration, self._iteration_steps)
        with self._stopping_at_faults():
            observation, reward, is_terminal = super()._run_one_step(action)
            if not self._is_checked:
                environments.check_observation(self._game_name, observation)
            return observation, environments.as_number(self._game_name, reward), is_terminal

    def _report(self, iteration: int) -> None:
        """Prints a finished iteration's line, and shows its return in the progress line."""
        self._progress.report(iteration + 1, 0)
        statistics = self._logger.data[f"iteration_{iteration}"]
        results = layout.results(statistics)
        self._progress.result = results[0]
        title = f"iteration {iteration + 1}/{self._num_iterations}"
        line = f"{title}: {', '.join([*results, self._progress.pace])}"
        numbers = reports.record(iteration, self._num_iterations, statistics)
        self._progress.print_line(json.dumps(numbers) if self._as_json else line)
        if self._tracker is not None:
            self._tracker.log(numbers)


class ResumableTrainRunner(ResumableRunner):
    """Training phases only; configured in gin as `Runner`.

    Dopamine's TrainRunner is not inherited: its constructor passes Dopamine's environment on,
    over the one that gin binds.
    """

    _has_evaluation = False
    _run_one_iteration = run_experiment.TrainRunner._run_one_iteration
    _save_tensorboard_summaries = run_experiment.TrainRunner._save_tensorboard_summaries


def create_runner(base_dir: str, as_json: bool = False, track: bool = False) -> ResumableRunner:
    """Creates the runner of the configured schedule (`create_runner.schedule`).

    The arguments are those of `ResumableRunner`.
    """
    evaluates = schedule() == settings.SCHEDULES[0]
    runner = ResumableRunner if evaluates else ResumableTrainRunner
    return runner(base_dir, as_json, track)
