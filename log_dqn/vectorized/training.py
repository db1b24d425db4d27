"""The loop of many runs that learn together, a step of all at a time."""

import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from log_dqn.program import divergence, shell
from log_dqn.program.progress import Progress
from log_dqn.program.stopping import RunStopped
from log_dqn.run_folder import layout
from log_dqn.vectorized import runs as run_files
from log_dqn.vectorized.environments import AtariGames, Results
from log_dqn.vectorized.learner import Learner, Problem
from log_dqn.vectorized.runs import Counters, Events, LatestCheckpoint, Log, Run
from log_dqn.vectorized.schedule import RunnerSettings, Schedule
from log_dqn.vectorized.timeline import Phase

# Training steps between a run's events, as in Dopamine.
SUMMARY_PERIOD = 500


class Workload(NamedTuple):
    """What a trainer trains.

    Attributes:
        runs: the runs; their agents are alike in `Agent.shared`.
        runner: what each consists of.
        found: each run's checkpoint to resume from, or None to start.
        checkpoint_replay: whether checkpoints hold the replay memory.
    """

    runs: Sequence[Run]
    runner: RunnerSettings
    found: Sequence[LatestCheckpoint | None]
    checkpoint_replay: bool = False


class _Update(NamedTuple):
    """An update: who learned, and statistics."""

    learns: np.ndarray
    statistics: dict[str, jax.Array]


class Trainer:
    """Some runs that learn together: their checkpoints, logs, events and progress.

    A subclass says what a step is.

    Attributes:
        learner: what acts and learns.
        schedule: where each run is.
        failures: why runs were left out, by their index.
    """

    def __init__(
        self,
        workload: Workload,
        problem: Problem,
        num_actions: Sequence[int],
        progress: Progress,
        shown_as: Sequence[int],
        on_host: bool = False,
    ) -> None:
        """Creates networks and memories, and loads checkpoints.

        Args:
            workload: what it trains.
            problem: what the runs learn from.
            num_actions: each run's number of actions.
            progress: progress of these runs and of others.
            shown_as: indices of the runs there.
            on_host: whether the replay memories are kept in the host's memory.

        Raises:
            checkpoints.CheckpointError: if a checkpoint doesn't fit.
        """
        self._runs, self._runner = workload.runs, workload.runner
        self._checkpoint_replay = workload.checkpoint_replay
        run_agents = [run.agent for run in workload.runs]
        seeds = [run.seed for run in workload.runs]
        self._progress, self._shown_as = progress, list(shown_as)
        self.learner = Learner(run_agents, problem, num_actions, seeds, on_host)
        self.schedule = Schedule(run_agents, workload.runner, self.learner.slots)
        self._logs: list[Log] = [{} for _ in workload.runs]
        self._events = [Events(run.folder) for run in workload.runs]
        self._training_began, self._training_seconds = np.zeros((2, len(workload.runs)))
        self._watches = [divergence.Watch() for _ in workload.runs]
        self._stop_signal: int | None = None
        self.failures: dict[int, str] = {}
        for index, checkpoint in enumerate(workload.found):
            if checkpoint is not None:
                self._resume(index, checkpoint)

    def _resume(self, index: int, found: LatestCheckpoint) -> None:
        schedule = self.schedule
        self._logs[index] = found.log
        schedule.place.iteration[index] = found.iterations
        if found.iterations >= self._runner.num_iterations:
            schedule.stop(index)
            return
        counters = run_files.load(found, self.learner, index)
        for name, value in counters._asdict().items():
            getattr(schedule.place, name)[index] = value
        # The run may have died between its checkpoint and what follows that.
        run_files.write_results(self._runs[index].folder, found.log, found.iterations - 1)

    def stop(self, signal_number: int) -> None:
        """Makes `train` raise RunStopped before its next step, for a signal handler."""
        self._stop_signal = signal_number

    def train(self) -> None:
        """Runs what is left of the runs.

        A run whose loss or weights are no longer finite is left out from there on; see `failures`.

        Raises:
            RunStopped: if a file can't be written, or `stop` was called. The checkpoints of
                finished iterations are intact.
        """
        try:
            while not self.schedule.finished:
                if self._stop_signal is not None:
                    raise stopped_by(self._stop_signal)
                self.step()
        except OSError as error:
            raise RunStopped(
                f"stopped, since results can't be saved: {error}; the checkpoints of finished "
                "iterations are intact"
            ) from error
        finally:
            for events in self._events:
                events.close()

    def step(self) -> None:
        """Runs a step of every run."""
        raise NotImplementedError

    def _show_progress(self) -> None:
        """Shows how far the runs are."""
        place = self.schedule.place
        before = np.where(place.phase == Phase.EVALUATION, self._runner.training_steps, 0)
        running = place.phase != Phase.FINISHED
        self._progress.report(place.iteration, before + place.phase_steps, running, self._shown_as)

    def _environment_seeds(self, starts: np.ndarray) -> np.ndarray:
        """Returns the seeds of the environments of runs whose iteration starts; 0 for others."""
        seeds = np.zeros(len(starts), np.int64)
        for index in np.flatnonzero(starts).tolist():
            iteration = int(self.schedule.place.iteration[index])
            seeds[index] = environment_seed(self._runs[index].seed, iteration)
        return seeds

    def _end_iteration(self, index: int) -> None:
        """Saves a run after an iteration."""
        run, schedule, log = self._runs[index], self.schedule, self._logs[index]
        episodes = schedule.iterations[index]
        steps = sum(episodes.lengths[Phase.TRAINING])
        entry = run_files.statistics(episodes, steps / self._training_seconds[index])
        iteration = len(log)
        log[f"iteration_{iteration}"] = entry
        counters = Counters(
            **{name: int(getattr(schedule.place, name)[index]) for name in Counters._fields}
        )
        try:
            run_files.save(run, self.learner, index, counters, log, self._checkpoint_replay)
        except FloatingPointError as error:
            self._fail(
                index, f"stopped after iteration {iteration + 1}, which isn't saved: {error}"
            )
            return
        run_files.write_results(run.folder, log, iteration)
        self._events[index].write(run_files.scalars(entry), iteration)
        self._report(index, iteration, entry)
        runaway = self._watches[index].end_iteration()
        if runaway is not None:
            self._progress.print_line(f"{run.title}: {runaway}", sys.stderr)

    def _report(self, index: int, iteration: int, entry: dict[str, list[Any]]) -> None:
        """Prints a finished iteration's line."""
        results = ", ".join(layout.results(entry))
        title, num_iterations = self._runs[index].title, self._runner.num_iterations
        self._progress.print_line(f"{title}: iteration {iteration + 1}/{num_iterations}: {results}")

    def _summarize(self, updates: Sequence[_Update], number: np.ndarray) -> None:
        """Writes the events that are due, and stops runs that have diverged."""
        due = (number % SUMMARY_PERIOD == 0) & (number > 0)
        for update in updates:
            chosen = np.flatnonzero(update.learns & due)
            if chosen.size:
                statistics = {tag: np.atleast_1d(v) for tag, v in update.statistics.items()}
                for run in chosen.tolist():
                    values = {tag: float(of_runs[run]) for tag, of_runs in statistics.items()}
                    self._write_summary(run, int(number[run]), values)

    def _write_summary(self, index: int, number: int, values: dict[str, float]) -> None:
        """Writes the statistics of a run's update as events; stops the run if it has diverged."""
        self._events[index].write(values, number)
        self._watches[index].see(values)
        # LogDQN's values may be too large for float32 where their logarithms, and losses, are not.
        for tag, value in values.items():
            if tag.startswith("Losses/") and not np.isfinite(value):
                self._fail(index, f"stopped at training step {number}: {tag} is {value}")
                break

    def _fail(self, index: int, message: str) -> None:
        self.schedule.stop(index)
        self.failures[index] = message
        others = "" if self.schedule.finished else "; the other runs go on"
        program = shell.started_as("train-vectorized")
        title = self._runs[index].title
        self._progress.print_line(f"{program}: {title}: {message}{others}", sys.stderr)


class HostTrainer(Trainer):
    """Some runs in lockstep, a step of all at a time, whose environments the host steps."""

    def __init__(
        self,
        workload: Workload,
        problem: Problem,
        environments: AtariGames,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Creates networks and memories, and loads checkpoints.

        Args:
            workload: what it trains.
            problem: what the runs learn from.
            environments: one for each run.
            *args: `Trainer`'s further arguments.
            **kwargs: `Trainer`'s further arguments.

        Raises:
            checkpoints.CheckpointError: if a checkpoint doesn't fit.
        """
        super().__init__(workload, problem, environments.num_actions, *args, **kwargs)
        self._environments = environments
        self._frame_shape, self._frame_dtype = problem.frame_shape, problem.frame_dtype
        self._step = 0

    def step(self) -> None:
        """Runs a step of every run."""
        schedule = self.schedule
        number = schedule.place.training_steps.copy()
        certain = schedule.certain_updates()
        # Updates run on the device while the environments step.
        updates = self._learn(certain, number)
        results = self._environments.receive() if self._step else self._before_the_first_step()
        over = self._record(results)
        frames = self._start_iterations(results.frames)
        learns, syncs = schedule.train()
        updates += self._learn(learns & ~certain, number)
        if syncs.any():
            self.learner.sync(syncs)
        actions = self._act(frames, np.clip(results.rewards, -1, 1).astype(np.float32))
        if not schedule.finished:
            self._environments.send(actions)
        self._step += 1
        for index in np.flatnonzero(over).tolist():
            self._end_iteration(index)
        # The actions have been waited for, and so the updates are done.
        self._summarize(updates, number)
        self._show_progress()

    def _before_the_first_step(self) -> Results:
        num_runs = len(self._runs)
        frames = np.zeros((num_runs, *self._frame_shape), self._frame_dtype)
        return Results(frames, np.zeros(num_runs), np.zeros(num_runs, bool))

    def _learn(self, learns: np.ndarray, number: np.ndarray) -> list[_Update]:
        if not learns.any():
            return []
        return [_Update(learns, self.learner.learn(self.schedule.draws(learns, number)))]

    def _act(self, frames: np.ndarray, rewards: np.ndarray) -> np.ndarray:
        """Chooses each run's action; of runs that are over, only the last result is stored."""
        schedule = self.schedule
        chosen = self.learner.act(frames, rewards, schedule.epsilons(), schedule.steps())
        return np.asarray(chosen).reshape(len(self._runs))

    def _record(self, results: Results) -> np.ndarray:
        schedule = self.schedule
        trained = schedule.place.phase == Phase.TRAINING
        over = schedule.record(results.rewards, results.ended)
        trained &= schedule.place.phase != Phase.TRAINING
        self._training_seconds[trained] = time.monotonic() - self._training_began[trained]
        return over

    def _start_iterations(self, frames: np.ndarray) -> np.ndarray:
        """Starts the iterations that are due; returns the observations, with the new ones."""
        starts = self.schedule.start(self._step)
        if not starts.any():
            return frames
        self._training_began[starts] = time.monotonic()
        first = self._environments.reset(starts, self._environment_seeds(starts))
        return np.where(starts.reshape(-1, *[1] * (frames.ndim - 1)), first, frames)


def stopped_by(signal_number: int) -> RunStopped:
    """Returns what a trainer that a signal has stopped raises."""
    return RunStopped(
        f"stopped by {signal.Signals(signal_number).name}; the same command resumes from the start "
        "of each run's iteration",
        status=128 + signal_number,
    )


def environment_seed(seed: int, iteration: int) -> int:
    """Returns the seed of a run's environment at the start of an iteration.

    Every iteration begins with an environment as new, so that a run can resume from there without
    the emulator's state.
    """
    return int(np.random.SeedSequence([seed, iteration]).generate_state(1)[0] >> 1)
