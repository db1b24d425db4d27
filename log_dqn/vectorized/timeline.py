"""Where a run is, and when it acts, stores, learns and syncs: pure functions of its counters.

The order of things within a step is Dopamine's: the last step's result is stored, an update is run
if one is due, the target network is synced, the next action is chosen. The functions are called in
the order in which they stand here, with scalars of one run or arrays of shape [num_runs]; `xp` is
`numpy` or `jax.numpy`.
"""

import enum
from typing import Any, NamedTuple

import numpy as np


class Phase(enum.IntEnum):
    """What a run is doing."""

    WAITING = 0
    TRAINING = 1
    EVALUATION = 2
    FINISHED = 3


class Rules(NamedTuple):
    """The numbers that decide what happens when; steps are agent steps.

    Attributes:
        num_iterations: iterations of a run.
        training_steps: steps of an iteration's training phase, at least.
        evaluation_steps: steps of its evaluation phase, at least; 0 for none.
        stack_size: observations in a state.
        slots: slots of the replay memory.
        capacity: transitions that it remembers.
        update_horizon: n of the n-step update.
        update_period: steps between updates.
        min_replay_history: transitions stored before training starts.
        target_update_period: steps between syncs of the target network.
        epsilon_train: exploration rate at the end of its schedule.
        epsilon_eval: exploration rate in evaluation.
        epsilon_decay_period: length of the schedule.
    """

    num_iterations: Any
    training_steps: Any
    evaluation_steps: Any
    stack_size: Any
    slots: Any
    capacity: Any
    update_horizon: Any
    update_period: Any
    min_replay_history: Any
    target_update_period: Any
    epsilon_train: Any
    epsilon_eval: Any
    epsilon_decay_period: Any


class Place(NamedTuple):
    """Where a run is.

    Attributes:
        phase: its `Phase`.
        iteration: the iteration that it is in.
        training_steps: actions that it has chosen in training.
        chosen: actions that it has chosen in all.
        stored: steps that it has stored whose result is known.
        phase_steps: steps of its phase so far.
        episode_steps: steps of its episode so far.
        open_steps: those of them that are stored.
        episode_return: unclipped rewards of the episode so far.
        available: transitions that updates of this step sample from.
        begins: whether the next observation is the first of its episode.
        over: whether this step has ended an iteration.
        result_slot: slot of the step whose result is to be stored, or one beyond the last.
        terminal: whether that step ended its episode.
    """

    phase: Any
    iteration: Any
    training_steps: Any
    chosen: Any
    stored: Any
    phase_steps: Any
    episode_steps: Any
    open_steps: Any
    episode_return: Any
    available: Any
    begins: Any
    over: Any
    result_slot: Any
    terminal: Any


class Episode(NamedTuple):
    """An episode, where one has ended.

    Attributes:
        ended: whether one has.
        phase: the phase that it was played in.
        value: its return.
        length: its length in agent steps.
    """

    ended: Any
    phase: Any
    value: Any
    length: Any


class Steps(NamedTuple):
    """What acting has to know of a step; integers.

    Attributes:
        number: of this step among the run's, training and evaluation together.
        begins: whether the observation is the first of its episode.
        slot: slot in which the step is stored, or one beyond the last.
        age: steps of this episode before it, at most stack_size - 1.
        result_slot: slot of the step that led here, or one beyond the last.
        terminal: whether that ended its episode.
    """

    number: Any
    begins: Any
    slot: Any
    age: Any
    result_slot: Any
    terminal: Any


class Draws(NamedTuple):
    """What an update samples from; integers.

    Attributes:
        number: of the update, in training steps.
        oldest: slot at which the oldest transition begins.
        available: number of transitions.
        learns: whether the run has an update now.
    """

    number: Any
    oldest: Any
    available: Any
    learns: Any


def begin(num_runs: int, slots: int) -> Place:
    """Returns the place of runs that wait for their first iteration, numpy arrays [num_runs]."""
    values: dict[str, Any] = {name: np.zeros(num_runs, np.int64) for name in Place._fields}
    values |= {name: np.zeros(num_runs, bool) for name in ("begins", "over", "terminal")}
    return Place(**values)._replace(
        phase=np.full(num_runs, Phase.WAITING),
        episode_return=np.zeros(num_runs),
        result_slot=np.full(num_runs, slots),
    )


def expect(rules: Rules, place: Place, xp: Any = np) -> tuple[Place, Any, Any]:
    """Works out what an update of this step samples from, before its result is known.

    Transitions of an ended episode's last n steps can be drawn one step later than in Dopamine's
    JAX agents, as in its TensorFlow agents.

    Returns:
        The new place, whether the run will learn at this step unless its phase ends with it, and
        whether it will whatever its environment answers.
    """
    training = place.phase == Phase.TRAINING
    # Transitions that this step will find complete if the episode goes on.
    unfinished = xp.minimum(rules.update_horizon, place.open_steps + 1)
    available = xp.where(training, place.stored + 1 - unfinished, place.stored)
    due = (
        training
        & (place.training_steps % rules.update_period == 0)
        & (available > rules.min_replay_history)
    )
    certain = due & (place.phase_steps + 1 < rules.training_steps)
    return place._replace(available=available), due, certain


def record(
    rules: Rules, place: Place, reward: Any, ended: Any, xp: Any = np
) -> tuple[Place, Episode]:
    """Takes in what the last action led to.

    A run whose iteration is over with it waits for the next one.

    Args:
        rules: the run's numbers.
        place: where it is.
        reward: reward as the game gives it.
        ended: whether the episode has ended.
        xp: the array namespace.

    Returns:
        The new place, and the episode that has ended, if one has.
    """
    training = place.phase == Phase.TRAINING
    active = training | (place.phase == Phase.EVALUATION)
    begins = ended & active
    phase_steps = place.phase_steps + active
    episode_steps = place.episode_steps + active
    episode_return = place.episode_return + xp.where(active, reward, 0)
    least = xp.where(training, rules.training_steps, rules.evaluation_steps)
    phase_over = begins & (phase_steps >= least)
    evaluates = phase_over & training & (rules.evaluation_steps > 0)
    over = phase_over & ~evaluates
    iteration = place.iteration + over
    next_phase = xp.where(iteration >= rules.num_iterations, Phase.FINISHED, Phase.WAITING)
    phase = xp.where(over, next_phase, place.phase)
    new = place._replace(
        phase=xp.where(evaluates, Phase.EVALUATION, phase),
        iteration=iteration,
        stored=place.stored + training,
        phase_steps=xp.where(phase_over, 0, phase_steps),
        episode_steps=xp.where(begins, 0, episode_steps),
        open_steps=xp.where(ended, 0, place.open_steps + training),
        episode_return=xp.where(begins, 0, episode_return),
        begins=begins,
        over=over,
        result_slot=xp.where(training, place.stored % rules.slots, rules.slots),
        terminal=ended & training,
    )
    return new, Episode(begins, place.phase, episode_return, episode_steps)


def start(
    rules: Rules, place: Place, step: Any, may_start: Any = True, xp: Any = np
) -> tuple[Place, Any]:
    """Starts an iteration, in a new environment.

    A run waits for at most `update_period` steps, until its last result is stored and its updates
    fall on the steps of the other runs'. It doesn't notice.

    Args:
        rules: the run's numbers.
        place: where it is.
        step: number of this step, the same for all runs.
        may_start: whether the run may.
        xp: the array namespace.

    Returns:
        The new place, and whether the run starts.
    """
    aligned = (step - place.training_steps) % rules.update_period == 0
    starts = (place.phase == Phase.WAITING) & aligned & ~place.over & may_start
    phase = xp.where(starts, Phase.TRAINING, place.phase)
    return place._replace(phase=phase, begins=place.begins | starts), starts


def train(rules: Rules, place: Place, xp: Any = np) -> tuple[Place, Any, Any]:
    """Counts a training step.

    Returns:
        The new place, whether the run has an update at this step, and whether its target network
        is synced after it.
    """
    training = place.phase == Phase.TRAINING
    complete = place.stored - xp.minimum(rules.update_horizon, place.open_steps)
    ready = training & (complete > rules.min_replay_history)
    learns = ready & (place.training_steps % rules.update_period == 0) & (place.available > 0)
    syncs = ready & (place.training_steps % rules.target_update_period == 0)
    return place._replace(training_steps=place.training_steps + training), learns, syncs


def draws(rules: Rules, place: Place, learns: Any, number: Any, xp: Any = np) -> Draws:
    """Returns what the update of this step samples from.

    Args:
        rules: the run's numbers.
        place: where it is.
        learns: whether it has an update.
        number: its training steps before this step.
        xp: the array namespace.
    """
    oldest = xp.maximum(place.available - rules.capacity, 0)
    available = xp.maximum(place.available - oldest, 1)
    return Draws(number, oldest % rules.slots, available, learns)


def epsilon(rules: Rules, place: Place, xp: Any = np) -> Any:
    """Returns the exploration rate; in training DQN's, which decays linearly."""
    in_training = linearly_decaying_epsilon(
        rules.epsilon_decay_period,
        place.training_steps,
        rules.min_replay_history,
        rules.epsilon_train,
        xp,
    )
    training = place.phase == Phase.TRAINING
    return xp.where(training, in_training, rules.epsilon_eval).astype(xp.float32)


def linearly_decaying_epsilon(
    decay_period: Any, step: Any, warmup_steps: Any, epsilon: Any, xp: Any = np
) -> Any:
    """Returns DQN's exploration rate (Mnih et al., 2015), elementwise.

    Args:
        decay_period: agent steps over which it falls.
        step: agent steps of training so far.
        warmup_steps: agent steps for which it stays 1.
        epsilon: what it falls to.
        xp: the array namespace.
    """
    left = (1 - epsilon) * (decay_period + warmup_steps - step) / decay_period
    return epsilon + xp.clip(left, 0, 1 - epsilon)


def act(rules: Rules, place: Place, xp: Any = np) -> tuple[Place, Steps]:
    """Counts the choice of an action, and returns what acting has to know."""
    training = place.phase == Phase.TRAINING
    steps = Steps(
        number=place.chosen,
        begins=place.begins,
        slot=xp.where(training, place.stored % rules.slots, rules.slots),
        age=xp.minimum(place.episode_steps, rules.stack_size - 1),
        result_slot=place.result_slot,
        terminal=place.terminal,
    )
    active = training | (place.phase == Phase.EVALUATION)
    return place._replace(chosen=place.chosen + active), steps
