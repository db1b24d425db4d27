"""Trains runs together: one step of all runs at a time, with their checkpoints and logs."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from log_dqn.cli import divergence, shell
from log_dqn.cli.progress import Progress
from log_dqn.run_folder import layout
from log_dqn.vectorized import runs as run_files
from log_dqn.vectorized import timeline
from log_dqn.vectorized.agents import RunnerSettings
from log_dqn.vectorized.environments import AtariGames, Game, GymnasiumGames
from log_dqn.vectorized.learner import SUMMARY_PERIOD, Learner, Problem
from log_dqn.vectorized.runs import COUNTERS, Ended, Events, LatestCheckpoint, Log, Run
from log_dqn.vectorized.timeline import Episode, Outcome, Phase, Position


class Workload(NamedTuple):
    """What a trainer trains.

    Attributes:
        runs: the runs; their agents have the same `Agent.shared`.
        runner: settings of each.
        found: each run's checkpoint to resume from, or None to start.
        checkpoint_replay: whether checkpoints hold the replay memory.
        environment: the environment that all play, or None if they play known games.
    """

    runs: Sequence[Run]
    runner: RunnerSettings
    found: Sequence[LatestCheckpoint | None]
    checkpoint_replay: bool = False
    environment: Game | None = None


class Trainer:
    """Some runs that learn together: their checkpoints, logs, events and progress.

    A subclass says how the runs play.

    Attributes:
        learner: what acts and learns.
        position: where each run is.
        failures: why runs were left out, by their index.
    """

    def __init__(
        self,
        workload: Workload,
        problem: Problem,
        num_actions: Sequence[int],
        progress: Progress,
        shown_as: Sequence[int],
    ) -> None:
        """Creates networks and memories, and loads checkpoints.

        Args:
            workload: what it trains.
            problem: what the runs share.
            num_actions: each run's number of actions.
            progress: progress of these runs and of others.
            shown_as: indices of the runs in `progress`.
        """
        self._runs, self._runner = workload.runs, workload.runner
        self._checkpoint_replay = workload.checkpoint_replay
        run_agents = [run.agent for run in workload.runs]
        seeds = [run.seed for run in workload.runs]
        self._progress, self._shown_as = progress, list(shown_as)
        self.learner = Learner(run_agents, problem, workload.runner, num_actions, seeds)
        self.position = timeline.begin(len(seeds))
        self._episodes: list[list[Ended]] = [[] for _ in workload.runs]
        self._logs: list[Log] = [{} for _ in workload.runs]
        self._events = [Events(run.folder) for run in workload.runs]
        self._training_began, self._training_seconds = np.zeros((2, len(workload.runs)))
        self._watches = [divergence.Watch() for _ in workload.runs]
        self._faults = np.full(len(seeds), -1)
        self._reasons: Mapping[int, str] = {}
        self.failures: dict[int, str] = {}
        for index, checkpoint in enumerate(workload.found):
            if checkpoint is not None:
                self._resume(index, checkpoint)

    def _resume(self, index: int, found: LatestCheckpoint) -> None:
        self._logs[index] = found.log
        self.position.iteration[index] = found.iterations
        counters = run_files.load(found, self.learner, index)
        for name in COUNTERS:
            getattr(self.position, name)[index] = counters[name]
        folder, events = self._runs[index].folder, self._events[index]
        run_files.restore_results(folder, found.log, found.iterations - 1, events)

    @property
    def finished(self) -> bool:
        """Whether all runs are."""
        return bool((self.position.phase == Phase.FINISHED).all())

    def train(self, stop_signal: Callable[[], int | None] = lambda: None) -> None:
        """Runs what is left of the runs.

        A run whose loss or weights are no longer finite is left out from there on; see `failures`.

        Args:
            stop_signal: returns the number of a signal to stop before the next step, or None.

        Raises:
            RunStopped: if a file can't be written, or a signal is to stop it. The checkpoints of
                finished iterations are intact.
        """
        try:
            while not self.finished:
                if (number := stop_signal()) is not None:
                    raise stopped_by(number)
                self.step()
        except OSError as error:
            raise shell.RunStopped(
                f"stopped, since results can't be saved: {error}; the checkpoints of finished "
                "iterations are intact"
            ) from error
        finally:
            for events in self._events:
                events.close()

    def step(self) -> None:
        """Plays a step or more, and writes the results, events and checkpoints that are due."""
        old, began = self.position, time.monotonic()
        position, episodes = self._play()
        position.phase[position.iteration >= self._runner.num_iterations] = Phase.FINISHED
        self.position = position
        for step, run in np.argwhere(episodes.ended):
            self._episodes[run].append(tuple(part[step, run] for part in episodes[1:]))
        trained = (old.phase != Phase.EVALUATION) & (position.phase != Phase.TRAINING)
        ends = episodes.ended & (episodes.phase == Phase.TRAINING)
        # What was played after the last of them is evaluation, or other runs'.
        share = 1 - ends[::-1].argmax(axis=0) / len(ends)
        first = np.maximum(began, self._training_began)
        seconds = first - self._training_began + share * (time.monotonic() - first)
        self._training_seconds[trained] = seconds[trained]
        for run in np.flatnonzero(self._faults >= 0).tolist():
            if run not in self.failures:
                where = f"stopped at step {self._faults[run]}, counted from the run's start"
                why = self._reasons.get(run, "the game's reward or observation is not finite")
                self._fail(run, f"{where}: {why}")
        self._summarize(old.training_steps, position.training_steps)
        for run in np.flatnonzero(position.iteration > old.iteration).tolist():
            if run not in self.failures:
                self._end_iteration(run)
        before = np.where(position.phase == Phase.EVALUATION, self._runner.training_steps, 0)
        running = position.phase != Phase.FINISHED
        done = before + position.phase_steps
        self._progress.report(position.iteration, done, running, self._shown_as)

    def _play(self) -> tuple[Position, Episode]:
        """Plays a step or more; returns the new position, and episodes by step and run."""
        raise NotImplementedError

    def _begin_iterations(self, starting: np.ndarray) -> np.ndarray:
        """Begins the iterations of some runs; returns the seeds of their environments."""
        self._training_began[starting] = time.monotonic()
        seeds = np.zeros(len(starting), np.int64)
        for index in np.flatnonzero(starting).tolist():
            self._episodes[index] = []
            iteration = int(self.position.iteration[index])
            seeds[index] = environment_seed(self._runs[index].seed, iteration)
        return seeds

    def _end_iteration(self, index: int) -> None:
        """Saves a run after an iteration."""
        run, log = self._runs[index], self._logs[index]
        entry = run_files.statistics(self._episodes[index], self._training_seconds[index])
        iteration = len(log)
        log[f"iteration_{iteration}"] = entry
        counters = {name: int(getattr(self.position, name)[index]) for name in COUNTERS}
        try:
            run_files.save(run, self.learner, index, counters, log, self._checkpoint_replay)
        except FloatingPointError as error:
            self._fail(
                index, f"stopped after iteration {iteration + 1}, which isn't saved: {error}"
            )
            return
        self._events[index].write(run_files.scalars(entry), iteration)
        run_files.write_results(run.folder, log, iteration)
        self._report(index, iteration, entry)
        runaway = self._watches[index].end_iteration()
        if runaway is not None:
            self._progress.print_line(f"{run.title}: {runaway}", sys.stderr)

    def _report(self, index: int, iteration: int, entry: dict[str, list[Any]]) -> None:
        """Prints a finished iteration's line."""
        results = ", ".join(layout.results(entry))
        title, num_iterations = self._runs[index].title, self._runner.num_iterations
        self._progress.print_line(f"{title}: iteration {iteration + 1}/{num_iterations}: {results}")

    def _summarize(self, first: np.ndarray, end: np.ndarray) -> None:
        """Writes the events of the updates from a training step on, and before another."""
        if ((end - 1) // SUMMARY_PERIOD > (first - 1) // SUMMARY_PERIOD).any():
            number, statistics = jax.device_get(self.learner.summary)
            finite = self.learner.step_functions.compiled_is_finite(self.learner.weights)
            for run in np.flatnonzero((number >= first) & (number < end)).tolist():
                values = {tag: float(of_runs[run]) for tag, of_runs in statistics.items()}
                if run not in self.failures:
                    self._write_summary(run, int(number[run]), values, bool(finite[run]))

    def _write_summary(
        self, index: int, number: int, values: dict[str, float], is_finite: bool
    ) -> None:
        """Writes the statistics of a run's update as events; stops the run if it has diverged."""
        self._events[index].write(values, number)
        self._watches[index].see(values)
        # LogDQN's values may be too large for float32 where their logarithms, and losses, are not.
        for tag, value in values.items():
            if tag.startswith("Losses/") and not np.isfinite(value):
                self._fail(index, f"stopped at training step {number}: {tag} is {value}")
                return
        if not is_finite:
            self._fail(index, f"stopped at training step {number}: the weights are not finite")

    def _fail(self, index: int, message: str) -> None:
        self.position.phase[index] = Phase.FINISHED
        self.failures[index] = f"{self._runs[index].title}: {message}"
        others = "" if self.finished else "; the other runs go on"
        program = shell.started_as("train-vectorized")
        self._progress.print_line(f"{program}: {self.failures[index]}{others}", sys.stderr)


class HostTrainer(Trainer):
    """Trains runs in lockstep whose environments the host steps."""

    def __init__(
        self,
        workload: Workload,
        problem: Problem,
        environments: AtariGames | GymnasiumGames,
        *shown: Any,
    ) -> None:
        """Takes the runs' environments, and the arguments of `Trainer`."""
        super().__init__(workload, problem, environments.num_actions, *shown)
        self._environments, self._reasons = environments, environments.faults
        num_runs = len(self._runs)
        self._nothing = Outcome(
            np.zeros((num_runs, *problem.frame_shape), problem.frame_dtype),
            np.zeros(num_runs, np.float32),
            *np.zeros((2, num_runs), bool),
        )
        self._step = 0

    def _play(self) -> tuple[Position, Episode]:
        """Runs a step of every run."""
        rules, learner, old = self.learner.rules, self.learner, self.position
        starting = timeline.starts(rules, old, self._step)
        # Updates run on the device while the environments step, unless the step's end decides.
        due, if_ended = (
            timeline.update(rules, old, ended, starting, np) for ended in (np.False_, np.True_)
        )
        is_sure = (due.learns == if_ended.learns).all()
        if is_sure and due.learns.any():
            learner.learn(due)
        outcome = self._environments.receive() if self._step else self._nothing
        if starting.any():
            first = self._environments.reset(starting, self._begin_iterations(starting))
            begins = starting.reshape(-1, *[1] * (first.ndim - 1))
            outcome = outcome._replace(frame=np.where(begins, first, outcome.frame))
        self._faults = np.where(timeline.faults(old, outcome, starting, np), old.chosen, -1)
        position, plan = timeline.advance(rules, old, outcome, starting, np)
        if not is_sure and plan.update.learns.any():
            learner.learn(plan.update)  # One call updates all.
        if plan.update.syncs.any():
            learner.sync(plan.update.syncs)
        actions = learner.act(outcome.frame, outcome.reward, plan.choice)
        left = (position.phase != Phase.FINISHED) & (
            position.iteration < self._runner.num_iterations
        )
        if left.any():
            self._environments.send(actions)
        self._step += 1
        return position, Episode(*(part[None] for part in plan.episode))


def stopped_by(signal_number: int) -> shell.RunStopped:
    """Returns the error of a trainer that a signal has stopped."""
    return shell.stopped_by(signal_number, " from the start of each run's iteration")


def environment_seed(seed: int, iteration: int) -> int:
    """Returns the seed of a run's environment at the start of an iteration.

    Every iteration begins with an environment as new, so that a run can resume from there without
    the emulator's state.
    """
    return int(np.random.SeedSequence([seed, iteration]).generate_state(1)[0] >> 1)
