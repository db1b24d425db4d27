"""Dopamine's training loop with seeds, safe checkpoints and one line of progress."""

import contextlib
import errno
import functools
import os
import pathlib
import pickle
import re
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from dopamine.discrete_domains import run_experiment
from dopamine.metrics import pickle_collector

from log_dqn.checks import check, check_count
from log_dqn.jax import agent_checkpoint as jax_agent_checkpoint
from log_dqn.program import progress
from log_dqn.program.gin_files import bound
from log_dqn.program.stopping import RunStopped
from log_dqn.run_folder import checkpoints, configuration, safe_pickle
from log_dqn.single import agents, random_state, seeding
from log_dqn.tf import agent_checkpoint, graph_hooks

# What can be done where a run can't go on.
_REMEDY = "--restart starts over"


def schedule() -> str:
    """Returns the configured schedule, `continuous_train_and_eval` unless gin says otherwise."""
    return bound("create_runner.schedule", "continuous_train_and_eval")


def operative_config() -> str:
    """Returns the gin configuration in force, in gin's language, a parameter a line."""
    # Dopamine's create_agent and create_runner are configured, but not called.
    return (
        f"{configuration.operative()}\n"
        f"# Parameters for create_agent:\n{configuration.RULE}\n"
        f"create_agent.agent_name = {agents.agent_name()!r}\n\n"
        f"# Parameters for create_runner:\n{configuration.RULE}\n"
        f"create_runner.schedule = {schedule()!r}\n"
    )


def _full_disk(error: Exception) -> str | None:
    """Returns the system's words if an error is for want of disk space, whoever raised it."""
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        if getattr(error, "errno", None) == number or os.strerror(number) in str(error):
            return os.strerror(number)
    return None


class ProgressRunner(run_experiment.Runner):
    """Dopamine's Runner with seeds, safe checkpoints and one line of progress.

    Configured in gin as `Runner`. A run that is stopped, or dies, goes on from the start of the
    iteration it was in.
    """

    _has_evaluation = True

    def __init__(self, base_dir: str) -> None:
        """Builds environment and agent, and loads the newest checkpoint if there is one.

        Args:
            base_dir: folder of the run.

        Raises:
            ValueError: if a setting is outside its range.
            checkpoints.CheckpointError: if there are checkpoints, but none can be gone on from.
        """
        self._folder = pathlib.Path(base_dir)
        self._stop_signal: int | None = None
        agents.prepare_tensorflow()
        self._seed = seeding.seed_everything()
        self._agent_checkpoint = jax_agent_checkpoint if agents.uses_jax() else agent_checkpoint
        super().__init__(base_dir, functools.partial(agents.create_agent, seed=self._seed))
        self._fine_grained_print_to_console_enabled = False
        self._restore_metrics()
        # A seed that was drawn is recorded like one that was given.
        config = self._config.replace(
            "seed_everything.seed = None", f"seed_everything.seed = {self._seed}"
        )
        checkpoints.replace_file(self._folder / "operative_config.gin", config.encode())

    def _create_directories(self) -> None:
        # Called once Dopamine's Runner knows its settings, before anything is written.
        counts = {
            "num_iterations": self._num_iterations,
            "training_steps": self._training_steps,
        }
        if self._has_evaluation:
            counts["evaluation_steps"] = self._evaluation_steps
        # (None would let episodes go on over the end of an iteration, where no checkpoint of the
        # environment is exact.)
        counts["max_steps_per_episode"] = self._max_steps_per_episode
        for name, value in counts.items():
            check_count(name, value)
        check("use_legacy_logger", self._use_legacy_logger, self._use_legacy_logger, "True")
        super()._create_directories()

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
            print(f"This run has finished its {self._num_iterations} iterations.", flush=True)
        steps_per_iteration = self._steps_per_iteration()
        with progress.create(
            initial=self._start_iteration * steps_per_iteration,
            total=self._num_iterations * steps_per_iteration,
        ) as self._progress:
            if self._start_iteration:
                # The run may have died between its checkpoint and what follows that.
                last = self._start_iteration - 1
                with self._stopping_cleanly(last):
                    self._write_results(last)
            for iteration in range(self._start_iteration, self._num_iterations):
                self._progress.set_description_str(self._title(iteration), refresh=False)
                with self._stopping_cleanly(iteration):
                    statistics = self._run_one_iteration(iteration)
                    self._logger[f"iteration_{iteration}"] = statistics
                    self._checkpoint_experiment(iteration)
                    self._write_results(iteration)
                # Episodes run to their end, so phases overshoot; keep to the plan's count.
                self._progress.n = (iteration + 1) * steps_per_iteration
                self._report(iteration, statistics)
        self._collector_dispatcher.close()

    @contextlib.contextmanager
    def _stopping_cleanly(self, iteration: int) -> Iterator[None]:
        """Turns what must stop a run, and is no fault of the program, into RunStopped."""
        try:
            yield
        except tf.errors.InvalidArgumentError as error:
            raise self._stopped_by_loss(error) from error
        except FloatingPointError as error:
            raise RunStopped(
                f"stopped after iteration {iteration + 1}, which can't be saved: {error}; "
                f"{self._last_checkpoint()}"
            ) from error
        except (OSError, tf.errors.OpError, RuntimeError) as error:
            reason = _full_disk(error) or (isinstance(error, OSError) and str(error))
            if not reason:
                raise
            raise RunStopped(
                f"stopped in iteration {iteration + 1}, which can't be saved: {reason}; "
                f"{self._last_checkpoint()}"
            ) from error

    def _write_results(self, iteration: int) -> None:
        """Writes what others read of a run: logs, metrics and events."""
        self._write_log(iteration)
        self._collector_dispatcher.flush()
        if self._summary_writer is not None:
            self._summary_writer.flush()

    def _last_checkpoint(self) -> str:
        finished = checkpoints.iterations(self._folder / "checkpoints")
        if not finished:
            return "there is no checkpoint yet"
        return f"the last good checkpoint is {self._folder / 'checkpoints' / str(finished[-1])}"

    def _stopped_by_loss(self, error: tf.errors.InvalidArgumentError) -> Exception:
        match = re.search(rf"\[({graph_hooks.NOT_FINITE}.*)\]", error.message)
        if match is None:
            return error
        details = match[1].replace("] [", " ")
        return RunStopped(
            f"stopped at training step {self._agent.training_steps}: {details}; "
            f"{self._last_checkpoint()}"
        )

    def _initialize_checkpointer_and_maybe_resume(self, checkpoint_file_prefix: str) -> None:
        """Loads the newest usable checkpoint, ours or Dopamine's."""
        del checkpoint_file_prefix
        seeding.seed_environment(self._environment, self._seed)
        self._config = operative_config()
        self._start_iteration = 0
        self._metrics: dict[str, Any] = {}
        root = self._folder / "checkpoints"

        def report(message: str) -> None:
            print(f"log_dqn.train: warning: {message}", file=sys.stderr, flush=True)

        sentinels = sorted(
            int(path.suffix[1:]) for path in root.glob("sentinel_checkpoint_complete.*")
        )
        try:
            newest = checkpoints.newest_usable(root, report, _REMEDY)
        except checkpoints.CheckpointError:
            if not sentinels:
                raise
            newest = None
        if newest is not None:
            self._load_or_refuse(root / str(newest[0]), newest[1])
        elif sentinels:
            self._load_dopamine(root, sentinels, report)
        elif any((self._folder / "logs").glob(f"{self._logging_file_prefix}_*")):
            raise checkpoints.CheckpointError(
                f"{self._folder} has logs but no checkpoint; {_REMEDY}"
            )

    def _load_or_refuse(self, folder: pathlib.Path, manifest: dict[str, Any]) -> None:
        try:
            self._load(folder, manifest)
        except (ValueError, KeyError, tf.errors.OpError) as error:
            message = getattr(error, "message", None) or str(error)
            raise checkpoints.CheckpointError(
                f"{folder} can't be loaded: {message.splitlines()[0]}; {_REMEDY}"
            ) from error

    def _load(self, folder: pathlib.Path, manifest: dict[str, Any]) -> None:
        then = configuration.parameters(manifest["config"])
        now = configuration.parameters(self._config)
        # A seed that wasn't given was drawn; not given again, it is kept.
        then["seed_everything.seed"] = manifest["seed"]
        if now["seed_everything.seed"] is None:
            now["seed_everything.seed"] = manifest["seed"]
        differences = configuration.differences(then, now)
        if differences:
            raise checkpoints.CheckpointError(
                f"{folder} is a checkpoint of another configuration: {'; '.join(differences)}"
            )
        with open(folder / "state.pickle", "rb") as file:
            state = safe_pickle.load(file)
        self._agent_checkpoint.load(self._agent, folder, state["agent"])
        random_state.restore(self._environment, state["random"])
        self._logger.data = state["logs"]
        self._metrics = state["metrics"]
        self._start_iteration = manifest["iteration"] + 1
        self._seed = manifest["seed"]

    def _load_dopamine(
        self, root: pathlib.Path, sentinels: list[int], report: Callable[[str], None]
    ) -> None:
        """Loads the newest usable checkpoint of Dopamine's own runner."""
        if agents.uses_jax():
            raise checkpoints.CheckpointError(
                f"{root} holds Dopamine's checkpoints, which are read of TensorFlow agents only; "
                f"{_REMEDY}"
            )
        for iteration in reversed(sentinels):
            try:
                bundle = agent_checkpoint.load_dopamine(self._agent, root, iteration)
            except (ValueError, KeyError, FileNotFoundError, tf.errors.OpError) as error:
                message = str(getattr(error, "message", None) or error).splitlines()[0]
                report(f"checkpoint {iteration} in {root} is damaged and is passed over: {message}")
                continue
            report(
                f"checkpoint {iteration} in {root} is Dopamine's: it holds no random state, and "
                "doesn't say of which game and configuration it is"
            )
            self._logger.data = bundle["logs"]
            self._start_iteration = bundle["current_iteration"] + 1
            written = (self._folder / "metrics" / "pickle").glob("pickle_*.pkl")
            numbers = [int(path.stem.removeprefix("pickle_")) for path in written]
            self._metrics = {"statistics": {}, "file_number": max(numbers, default=-1) + 1}
            return
        raise checkpoints.CheckpointError(f"none of the checkpoints in {root} is usable; {_REMEDY}")

    def _checkpoint_experiment(self, iteration: int) -> None:
        def save(folder: pathlib.Path) -> None:
            state = {
                "agent": self._agent_checkpoint.save(self._agent, folder),
                "random": random_state.capture(self._environment),
                "logs": self._logger.data,
                "metrics": self._metrics_state(),
            }
            (folder / "state.pickle").write_bytes(pickle.dumps(state))

        checkpoints.write(
            self._folder / "checkpoints",
            iteration,
            save,
            {"iteration": iteration, "seed": self._seed, "config": self._config},
        )

    def _write_log(self, iteration: int) -> None:
        """Writes Dopamine's `logs/log_N` whole or not at all, and removes old ones."""
        folder = self._folder / "logs"
        name = f"{self._logging_file_prefix}_{{}}"
        checkpoints.replace_file(
            folder / name.format(iteration),
            pickle.dumps(self._logger.data, protocol=pickle.HIGHEST_PROTOCOL),
        )
        (folder / name.format(iteration - self._logger._logs_duration)).unlink(missing_ok=True)

    def _pickle_collector(self) -> pickle_collector.PickleCollector | None:
        collectors = self._collector_dispatcher._collectors
        return next((c for c in collectors if c.get_name() == "pickle"), None)

    def _metrics_state(self) -> dict[str, Any]:
        collector = self._pickle_collector()
        if collector is None:
            return {}
        return {
            "statistics": {key: dict(value) for key, value in collector._statistics.items()},
            # The file that is written after this checkpoint, and again when it is gone on from.
            "file_number": collector._file_number,
        }

    def _restore_metrics(self) -> None:
        collector = self._pickle_collector()
        if collector is not None and self._metrics:
            for key, value in self._metrics["statistics"].items():
                collector._statistics[key].update(value)
            collector._file_number = self._metrics["file_number"]

    def _steps_per_iteration(self) -> int:
        """Agent steps that an iteration is planned to take."""
        return self._training_steps + self._has_evaluation * self._evaluation_steps

    def _title(self, iteration: int) -> str:
        return f"iteration {min(iteration + 1, self._num_iterations)}/{self._num_iterations}"

    def _run_one_step(self, action: int) -> tuple[Any, float, bool]:
        if self._stop_signal is not None:
            raise RunStopped(
                f"stopped by {signal.Signals(self._stop_signal).name}; the same command goes on "
                f"from the start of this iteration; {self._last_checkpoint()}",
                status=128 + self._stop_signal,
            )
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


class ProgressTrainRunner(ProgressRunner):
    """Training phases only; configured in gin as `Runner`.

    Dopamine's TrainRunner is not inherited: its constructor passes Dopamine's environment on,
    over the one that gin binds.
    """

    _has_evaluation = False
    _run_one_iteration = run_experiment.TrainRunner._run_one_iteration
    _save_tensorboard_summaries = run_experiment.TrainRunner._save_tensorboard_summaries


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
    name = schedule()
    check("schedule", name, name in runners, f"one of {', '.join(runners)}")
    return runners[name](base_dir)
