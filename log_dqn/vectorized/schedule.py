"""The runs of a trainer: iterations, phases, episodes, and what is due at a step."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import gin
import numpy as np

from log_dqn import log_space
from log_dqn.checks import check_count, check_one_of
from log_dqn.vectorized import agents, networks, timeline
from log_dqn.vectorized.timeline import Phase


@gin.configurable(name_or_fn="VectorizedRunner")
@dataclasses.dataclass(frozen=True, kw_only=True)
class RunnerSettings:
    """What a run consists of. Steps are agent steps; the defaults are the paper's.

    Attributes:
        agent: name of the agent, as in `agents.AGENTS`.
        num_iterations: iterations of a run.
        training_steps: steps of an iteration's training phase, at least.
        evaluation_steps: steps of its evaluation phase, at least; 0 for none.
        max_steps_per_episode: steps after which an episode ends, as a lost game does.
        replay_capacity: transitions that a run remembers.
        batch_size: transitions of an update.
        stack_size: observations in a state.
        network: name of the network, as in `networks.NETWORKS`.
        precision: of the network's torso, one of `log_space.PRECISIONS`.

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
    stack_size: int = 4
    network: str = "nature"
    precision: str = "float32"

    def __post_init__(self) -> None:
        for name, known in (
            ("agent", agents.AGENTS),
            ("network", networks.NETWORKS),
            ("precision", log_space.PRECISIONS),
        ):
            check_one_of(name, getattr(self, name), known)
        for field in dataclasses.fields(self):
            if field.type in (int, "int"):
                least = 0 if field.name == "evaluation_steps" else 1
                check_count(field.name, getattr(self, field.name), least, agents.MAX_COUNT)

    @property
    def steps_per_iteration(self) -> int:
        """Steps that an iteration is planned to take."""
        return self.training_steps + self.evaluation_steps


def _by_phase() -> dict[Phase, list[Any]]:
    return {Phase.TRAINING: [], Phase.EVALUATION: []}


@dataclasses.dataclass
class Iteration:
    """Episodes of a run's iteration, by phase: returns (unclipped), and lengths in agent steps."""

    returns: dict[Phase, list[float]] = dataclasses.field(default_factory=_by_phase)
    lengths: dict[Phase, list[int]] = dataclasses.field(default_factory=_by_phase)

    def add(self, phase: int, value: float, length: int) -> None:
        """Notes an episode."""
        self.returns[Phase(phase)].append(float(value))
        self.lengths[Phase(phase)].append(int(length))


class Schedule:
    """The runs of a trainer.

    Attributes:
        rules: the numbers that decide what happens when; those of agents have shape [num_runs].
        place: where each run is, arrays of shape [num_runs].
        iterations: each run's iteration's episodes.
    """

    def __init__(
        self, run_agents: Sequence[agents.Agent], runner: RunnerSettings, slots: int
    ) -> None:
        """Initializes the runs, each waiting for its first iteration.

        Args:
            run_agents: each run's agent.
            runner: what a run consists of.
            slots: slots of a run's replay memory.
        """
        names = (
            "min_replay_history", "target_update_period", "epsilon_train", "epsilon_eval",
            "epsilon_decay_period",
        )  # fmt: skip
        self.rules = timeline.Rules(
            num_iterations=runner.num_iterations,
            training_steps=runner.training_steps,
            evaluation_steps=runner.evaluation_steps,
            stack_size=runner.stack_size,
            slots=slots,
            capacity=runner.replay_capacity,
            update_horizon=run_agents[0].update_horizon,
            update_period=run_agents[0].update_period,
            **{name: np.array([getattr(agent, name) for agent in run_agents]) for name in names},
        )
        self.place = timeline.begin(len(run_agents), slots)
        self.iterations = [Iteration() for _ in run_agents]

    @property
    def finished(self) -> bool:
        """Whether all runs are."""
        return bool((self.place.phase == Phase.FINISHED).all())

    def stop(self, run: int) -> None:
        """Takes a run out."""
        self.place.phase[run] = Phase.FINISHED

    # A step, in this order.

    def certain_updates(self) -> np.ndarray:
        """Returns the runs that will learn at this step whatever their environments answer, bools.

        Such updates can be computed while the environments step: their transitions are stored
        already. None is returned if another run may learn as well, so that one call updates all.
        """
        self.place, due, certain = timeline.expect(self.rules, self.place)
        waits = self.place.phase == Phase.WAITING
        return certain & (due == certain).all() & ~waits.any()

    def record(self, rewards: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """Takes in what the last actions led to.

        Args:
            rewards: rewards as the games give them, shape [num_runs].
            ended: whether the episodes have ended, bools, shape [num_runs].

        Returns:
            The runs whose iteration is over, bools, shape [num_runs]. They wait for their next;
            `iterations` has the old one's episodes until it starts.
        """
        self.place, episode = timeline.record(self.rules, self.place, rewards, ended)
        for run in np.flatnonzero(episode.ended):
            self.iterations[run].add(*(part[run] for part in episode[1:]))
        return self.place.over

    def start(self, step: int) -> np.ndarray:
        """Starts the iterations that are due at this step, counted from the start of the program.

        Returns:
            The runs whose iteration starts, and whose environments are to be reset; bools.
        """
        self.place, starts = timeline.start(self.rules, self.place, step)
        self.clear_iterations(starts)
        return starts

    def clear_iterations(self, starts: np.ndarray) -> None:
        """Forgets the episodes of some runs' last iteration, bools of shape [num_runs]."""
        for run in np.flatnonzero(starts):
            self.iterations[run] = Iteration()

    def train(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts a training step.

        Returns:
            The runs that have an update at this step, and those whose target network is synced
            after it; bools, shape [num_runs].
        """
        self.place, learns, syncs = timeline.train(self.rules, self.place)
        return learns, syncs

    def draws(self, learns: np.ndarray, number: np.ndarray) -> timeline.Draws:
        """Returns from what the updates of this step sample; see `timeline.draws`."""
        return timeline.draws(self.rules, self.place, learns, number)

    def epsilons(self) -> np.ndarray:
        """Returns the exploration rates, float32, shape [num_runs]."""
        return timeline.epsilon(self.rules, self.place)

    def steps(self) -> timeline.Steps:
        """Counts the choice of an action, and returns what acting has to know."""
        self.place, steps = timeline.act(self.rules, self.place)
        return steps
