"""Where each run is: iterations, phases, episodes, and when it acts, stores, learns and syncs.

Host arithmetic on arrays of shape [num_runs]. The order of things within a run is Dopamine's: the
last step is stored, an update is run if one is due, the target network is synced, the next action
is chosen.

A run waits at the start of an iteration, for at most `update_period` steps, until its last result
is stored and its updates fall on the steps of the others'. It doesn't notice: its environment is
reset when it goes on.
"""

import dataclasses
import enum
from collections.abc import Sequence

import gin
import numpy as np

from log_dqn.checks import check
from log_dqn.vectorized import agents
from log_dqn.vectorized.learner import Draws, Steps


@gin.configurable(name_or_fn="VectorizedRunner")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Protocol:
    """What a run consists of. Steps are agent steps; the defaults are the paper's.

    Attributes:
        agent: name of the agent, as in `agents.AGENTS`.
        num_iterations: iterations of a run.
        training_steps: steps of an iteration's training phase, at least.
        evaluation_steps: steps of its evaluation phase, at least; 0 for none.
        max_steps_per_episode: steps after which an episode ends, as a lost game does.
        replay_capacity: transitions that a run remembers.
        batch_size: transitions of an update.

    Raises:
        ValueError: if an attribute is outside its range.
    """

    agent: str = "log_dqn"
    num_iterations: int = 200
    training_steps: int = 250000
    evaluation_steps: int = 125000
    max_steps_per_episode: int = 27000
    replay_capacity: int = 1000000
    batch_size: int = 32

    def __post_init__(self) -> None:
        names = agents.AGENTS
        check("agent", self.agent, self.agent in names, f"one of {', '.join(names)}")
        for field in dataclasses.fields(self)[1:]:
            least = 0 if field.name == "evaluation_steps" else 1
            agents.check_count(field.name, getattr(self, field.name), least)


class Phase(enum.IntEnum):
    """What a run is doing."""

    WAITING = 0
    TRAINING = 1
    EVALUATION = 2
    FINISHED = 3


@dataclasses.dataclass
class Iteration:
    """Episodes of a run's iteration, by phase: returns (unclipped), and lengths in agent steps."""

    returns: dict[Phase, list[float]]
    lengths: dict[Phase, list[int]]


class Schedule:
    """The runs of a job.

    Attributes:
        phase: each run's `Phase`.
        iteration: the iteration that it is in.
        training_steps: actions that it has chosen in training.
        chosen: actions that it has chosen in all.
        stored: steps that it has stored whose result is known.
        phase_steps: steps of its phase so far.
        iterations: its iteration's episodes.
    """

    def __init__(
        self,
        run_agents: Sequence[agents.Agent],
        protocol: Protocol,
        stack_size: int,
        slots: int,
    ) -> None:
        """Initializes the runs, each waiting for its first iteration.

        Args:
            run_agents: each run's agent.
            protocol: what a run consists of.
            stack_size: observations in a state.
            slots: slots of a run's replay memory.
        """
        self._protocol = protocol
        self._stack_size = stack_size
        self._slots = slots
        self._update_horizon = run_agents[0].update_horizon
        self._update_period = run_agents[0].update_period
        settings = {
            name: np.array([getattr(agent, name) for agent in run_agents])
            for name in (
                "min_replay_history", "target_update_period", "epsilon_train", "epsilon_eval",
                "epsilon_decay_period",
            )
        }  # fmt: skip
        self._min_replay_history = settings["min_replay_history"]
        self._target_update_period = settings["target_update_period"]
        self._epsilons = settings
        num_runs = len(run_agents)
        self.phase = np.full(num_runs, Phase.WAITING)
        self.iteration, self.training_steps, self.chosen, self.stored, self.phase_steps = np.zeros(
            (5, num_runs), np.int64
        )
        # Steps of the episode so far, and those of them that are stored.
        self._episode_steps, self._open_steps = np.zeros((2, num_runs), np.int64)
        self._episode_returns = np.zeros(num_runs)
        self._begins, self._over = np.zeros((2, num_runs), bool)
        self._result_slots = np.full(num_runs, slots)
        self._terminals = np.zeros(num_runs, bool)
        self._available = np.zeros(num_runs, np.int64)
        self.iterations = [_new_iteration() for _ in run_agents]

    @property
    def finished(self) -> bool:
        """Whether all runs are."""
        return bool((self.phase == Phase.FINISHED).all())

    def stop(self, run: int) -> None:
        """Takes a run out of the job."""
        self.phase[run] = Phase.FINISHED

    # A step, in this order.

    def certain_updates(self) -> np.ndarray:
        """Returns the runs that will learn at this step whatever their environments answer.

        Such updates can be computed while the environments step: their transitions are stored
        already. Transitions of an ended episode's last n steps can be drawn one step later than
        in Dopamine's JAX agents, as in its TensorFlow agents.

        Returns:
            Bools, shape [num_runs].
        """
        training = self.phase == Phase.TRAINING
        n = self._update_horizon
        # Transitions that this step will find complete if the episode goes on.
        self._available = np.where(
            training, self.stored + 1 - np.minimum(n, self._open_steps + 1), self.stored
        )
        return (
            training
            & (self.training_steps % self._update_period == 0)
            & (self._available > self._min_replay_history)
            & (self.phase_steps + 1 < self._protocol.training_steps)
        )

    def record(self, rewards: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """Takes in what the last actions led to.

        Args:
            rewards: rewards as the games give them, shape [num_runs].
            ended: whether the episodes have ended, bools, shape [num_runs].

        Returns:
            The runs whose iteration is over, bools, shape [num_runs]. They wait for their next;
            `iterations` has the old one's episodes until it starts.
        """
        training = self.phase == Phase.TRAINING
        active = training | (self.phase == Phase.EVALUATION)
        self._result_slots = np.where(training, self.stored % self._slots, self._slots)
        self._terminals = ended & training
        self.stored += training
        self._open_steps = np.where(ended, 0, self._open_steps + training)
        self.phase_steps += active
        self._episode_steps += active
        self._episode_returns += np.where(active, rewards, 0.0)
        self._begins = ended & active
        self._over = np.zeros(len(ended), bool)
        for run in np.flatnonzero(self._begins).tolist():
            self._over[run] = self._end_episode(run)
        return self._over

    def _end_episode(self, run: int) -> bool:
        """Notes an episode; returns whether the run's iteration is over with it."""
        phase = Phase(self.phase[run])
        self.iterations[run].returns[phase].append(float(self._episode_returns[run]))
        self.iterations[run].lengths[phase].append(int(self._episode_steps[run]))
        self._episode_returns[run] = self._episode_steps[run] = 0
        evaluation_steps = self._protocol.evaluation_steps
        in_training = phase == Phase.TRAINING
        if self.phase_steps[run] < (
            self._protocol.training_steps if in_training else evaluation_steps
        ):
            return False
        self.phase_steps[run] = 0
        if in_training and evaluation_steps:
            self.phase[run] = Phase.EVALUATION
            return False
        self.iteration[run] += 1
        is_last = self.iteration[run] >= self._protocol.num_iterations
        self.phase[run] = Phase.FINISHED if is_last else Phase.WAITING
        return True

    def start(self, step: int) -> np.ndarray:
        """Starts iterations.

        Args:
            step: number of this step in the job.

        Returns:
            The runs whose iteration starts, and whose environments are to be reset; bools.
        """
        aligned = (step - self.training_steps) % self._update_period == 0
        starts = (self.phase == Phase.WAITING) & aligned & ~self._over
        self.phase[starts] = Phase.TRAINING
        self._begins |= starts
        for run in np.flatnonzero(starts):
            self.iterations[run] = _new_iteration()
        return starts

    def train(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts a training step.

        Returns:
            The runs that have an update at this step, and those whose target network is synced
            after it; bools, shape [num_runs].
        """
        training = self.phase == Phase.TRAINING
        complete = self.stored - np.minimum(self._update_horizon, self._open_steps)
        ready = training & (complete > self._min_replay_history)
        learns = ready & (self.training_steps % self._update_period == 0) & (self._available > 0)
        syncs = ready & (self.training_steps % self._target_update_period == 0)
        self.training_steps += training
        return learns, syncs

    def draws(self, learns: np.ndarray, number: np.ndarray) -> Draws:
        """Returns from what the updates of this step sample.

        Args:
            learns: which runs have one.
            number: their training steps before this step's.
        """
        oldest = np.maximum(self._available - self._protocol.replay_capacity, 0)
        return Draws(
            number=number.astype(np.int32),
            oldest=(oldest % self._slots).astype(np.int32),
            available=np.maximum(self._available - oldest, 1).astype(np.int32),
            learns=learns,
        )

    def epsilons(self) -> np.ndarray:
        """Returns the exploration rates, float32, shape [num_runs]."""
        settings = self._epsilons
        in_training = agents.linearly_decaying_epsilon(
            settings["epsilon_decay_period"],
            self.training_steps,
            settings["min_replay_history"],
            settings["epsilon_train"],
        )
        training = self.phase == Phase.TRAINING
        return np.where(training, in_training, settings["epsilon_eval"]).astype(np.float32)

    def steps(self) -> Steps:
        """Counts the choice of an action, and returns what acting has to know."""
        training = self.phase == Phase.TRAINING
        steps = Steps(
            number=self.chosen.astype(np.int32),
            begins=self._begins,
            slot=np.where(training, self.stored % self._slots, self._slots).astype(np.int32),
            age=np.minimum(self._episode_steps, self._stack_size - 1).astype(np.int32),
            result_slot=self._result_slots.astype(np.int32),
            terminal=self._terminals,
        )
        self.chosen += training | (self.phase == Phase.EVALUATION)
        return steps


def _new_iteration() -> Iteration:
    return Iteration(
        {Phase.TRAINING: [], Phase.EVALUATION: []}, {Phase.TRAINING: [], Phase.EVALUATION: []}
    )
