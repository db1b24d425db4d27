"""Where a run is, and when it acts, stores, learns and syncs: pure functions of its counters.

The order of things within a step is Dopamine's: the last step's result is stored, an update is run
if one is due, the target network is synced, the next action is chosen. Arrays have the shape
[num_runs], and dtypes of 32 bits. They are numpy's or, in a program of the device, JAX's; `xp` is
`numpy` or `jax.numpy`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from log_dqn.vectorized import agents, replay
from log_dqn.vectorized.agents import RunnerSettings


class Phase:
    """What a run is doing; plain numbers, which NumPy compares in a quarter of an enum's time."""

    WAITING, TRAINING, EVALUATION, FINISHED = range(4)


class Rules(NamedTuple):
    """Settings that decide when a run acts, stores, learns and syncs.

    `slots` is the size of its replay memory. The others are those of `RunnerSettings` and
    `agents.Agent`.
    """

    slots: Any
    training_steps: Any
    evaluation_steps: Any
    replay_capacity: Any
    stack_size: Any
    update_horizon: Any
    update_period: Any
    min_replay_history: Any
    target_update_period: Any
    epsilon_train: Any
    epsilon_eval: Any
    epsilon_decay_period: Any


class Position(NamedTuple):
    """Where a run is.

    Attributes:
        phase: its `Phase`.
        iteration: the iteration that it is in.
        training_steps: actions that it has chosen in training.
        chosen: actions that it has chosen in all.
        stored: steps that it has stored whose result is known.
        phase_steps: steps of its phase so far.
        episode_steps: steps of its episode so far.
        episode_return: unclipped rewards of the episode so far.
    """

    phase: Any
    iteration: Any
    training_steps: Any
    chosen: Any
    stored: Any
    phase_steps: Any
    episode_steps: Any
    episode_return: Any


class Outcome(NamedTuple):
    """What an action led to.

    Attributes:
        frame: the observation, of the next episode where one has ended, shape [num_runs, ...].
        reward: reward as the game gives it, float32.
        ended: whether the episode has ended, bool.
        cut: whether it was cut off where it would have gone on, bool; None where none ever is.
    """

    frame: Any
    reward: Any
    ended: Any
    cut: Any = None


class Episode(NamedTuple):
    """An episode, where one has ended: its phase, its return and its length in agent steps."""

    ended: Any
    phase: Any
    value: Any
    length: Any


class Update(NamedTuple):
    """An update, and what it samples from.

    Attributes:
        number: of the update, in training steps.
        oldest: slot at which the oldest transition begins.
        available: number of transitions.
        learns: whether the run has this update now.
        syncs: whether the target network is synced after it.
    """

    number: Any
    oldest: Any
    available: Any
    learns: Any
    syncs: Any


class Choice(NamedTuple):
    """What is needed to choose an action and to store its step.

    Attributes:
        number: of this choice among the run's, training and evaluation together.
        epsilon: exploration rate.
        slot: slot in which the step is stored, or one beyond the last.
        age: steps of this episode before it, at most stack_size - 1; 0 for the first.
        result_slot: slot of the step that led here, or one beyond the last.
        terminal: whether that ended its episode, and how; see `replay.Memory`.
    """

    number: Any
    epsilon: Any
    slot: Any
    age: Any
    result_slot: Any
    terminal: Any


class Plan(NamedTuple):
    """What a step consists of: the episode that has ended with it, its update, its action."""

    episode: Episode
    update: Update
    choice: Choice


def create_rules(run_agents: Sequence[agents.Agent], runner: RunnerSettings, slots: int) -> Rules:
    """Returns the rules of some runs, whose agents have the same `Agent.shared`."""
    values = [{"slots": slots, **vars(runner), **vars(agent)} for agent in run_agents]
    return Rules(*(_narrow(np.array([v[name] for v in values])) for name in Rules._fields))


def _narrow(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32 if array.dtype.kind == "f" else np.int32)


def begin(num_runs: int) -> Position:
    """Returns the position of runs that wait for their first iteration, numpy arrays."""
    zeros = Position(*np.zeros((len(Position._fields), num_runs), np.int32))
    return zeros._replace(episode_return=np.zeros(num_runs, np.float32))


def starts(rules: Rules, position: Position, step: Any) -> Any:
    """Returns which of the waiting runs start an iteration at a step, in new environments.

    A run waits for at most `update_period` steps, until its last result is stored and its updates
    fall on the same steps as the other runs'. Its results don't depend on the wait. `step` is
    counted from the start of the program.
    """
    aligned = (step - position.training_steps) % rules.update_period == 0
    return (position.phase == Phase.WAITING) & aligned


def update(rules: Rules, position: Position, ended: Any, starting: Any, xp: Any) -> Update:
    """Returns the update of the next step, if episodes have `ended` with the last actions or not.

    It samples only from what was stored before that step, so that it may run while the environment
    steps where `ended` makes no difference. Transitions of an ended episode's last n steps can thus
    be drawn one step later than in Dopamine's JAX agents, as in its TensorFlow agents. `starting`
    is what `starts` returns.
    """
    training = position.phase == Phase.TRAINING
    goes_on = training & ~(ended & (position.phase_steps + 1 >= rules.training_steps))
    stored = position.stored + training
    # Transitions of the last steps, whose end isn't known if the episode goes on.
    incomplete = training * xp.minimum(position.episode_steps + 1, rules.update_horizon)
    ready = (goes_on | starting) & (stored - incomplete * ~ended > rules.min_replay_history)
    available, number = stored - incomplete, position.training_steps
    oldest = xp.maximum(available - rules.replay_capacity, 0)
    return Update(
        number=number,
        oldest=oldest % rules.slots,
        available=xp.maximum(available - oldest, 1),
        learns=ready & (number % rules.update_period == 0) & (available > 0),
        syncs=ready & (number % rules.target_update_period == 0),
    )


def advance(
    rules: Rules, position: Position, outcome: Outcome, starting: Any, xp: Any
) -> tuple[Position, Plan]:
    """Processes the outcome of the last actions; returns the new position and the next step's plan.

    A run that has completed its iteration waits for the next one. The outcome's frame isn't used.
    `starting` is what `starts` returns.
    """
    due = update(rules, position, outcome.ended, starting, xp)
    result_slot = _slot(rules, position, xp)
    terminal = outcome.ended & (position.phase == Phase.TRAINING)
    if outcome.cut is not None:
        terminal = xp.where(outcome.cut, replay.CUT, replay.ENDED) * terminal
    position, episode = _record(rules, position, outcome, starting, xp)
    position = position._replace(
        training_steps=position.training_steps + (position.phase == Phase.TRAINING)
    )
    choice = Choice(
        number=position.chosen,
        epsilon=_epsilon(rules, position, xp),
        slot=_slot(rules, position, xp),
        age=xp.minimum(position.episode_steps, rules.stack_size - 1),
        result_slot=result_slot,
        terminal=terminal,
    )
    position = position._replace(chosen=position.chosen + plays(position))
    return position, Plan(episode, due, choice)


def plays(position: Position) -> Any:
    """Returns whether a run is in a phase."""
    return (position.phase == Phase.TRAINING) | (position.phase == Phase.EVALUATION)


def faults(position: Position, outcome: Outcome, starting: Any, xp: Any) -> Any:
    """Returns, as bool, which runs have a reward or an observation that is not finite."""
    playing = plays(position)
    finite = xp.isfinite(outcome.reward) | ~playing
    if xp.issubdtype(outcome.frame.dtype, np.floating):
        finite &= xp.isfinite(outcome.frame).all(axis=tuple(range(1, outcome.frame.ndim)))
    return (playing | starting) & ~finite


def _slot(rules: Rules, position: Position, xp: Any) -> Any:
    """Returns the slot of a run's next step, or one beyond the last if that isn't stored."""
    training = position.phase == Phase.TRAINING
    return xp.where(training, position.stored % rules.slots, rules.slots)


def _record(
    rules: Rules, position: Position, outcome: Outcome, starting: Any, xp: Any
) -> tuple[Position, Episode]:
    """Counts a step whose result is known; returns the new position and the ended episode."""
    training, active = position.phase == Phase.TRAINING, plays(position)
    ends = outcome.ended & active
    phase_steps = position.phase_steps + active
    episode_steps = position.episode_steps + active
    episode_return = position.episode_return + xp.where(active, outcome.reward, 0)
    least = xp.where(training, rules.training_steps, rules.evaluation_steps)
    phase_over = ends & (phase_steps >= least)
    evaluates = phase_over & training & (rules.evaluation_steps > 0)
    over = phase_over & ~evaluates
    phase = xp.where(evaluates, Phase.EVALUATION, position.phase)
    phase = xp.where(starting, Phase.TRAINING, xp.where(over, Phase.WAITING, phase))
    new = position._replace(
        phase=phase.astype(np.int32),
        iteration=position.iteration + over,
        stored=position.stored + training,
        phase_steps=xp.where(phase_over, 0, phase_steps),
        episode_steps=xp.where(ends, 0, episode_steps),
        episode_return=xp.where(ends, 0, episode_return),
    )
    return new, Episode(ends, position.phase, episode_return, episode_steps)


def _epsilon(rules: Rules, position: Position, xp: Any) -> Any:
    """Returns the exploration rate; in training DQN's (Mnih et al., 2015), decaying linearly."""
    period, least = rules.epsilon_decay_period, rules.epsilon_train
    steps_left = period + rules.min_replay_history - position.training_steps
    left = (1 - least) * steps_left.astype(np.float32) / period.astype(np.float32)
    in_training = least + xp.minimum(xp.maximum(left, 0), 1 - least)
    training = position.phase == Phase.TRAINING
    return xp.where(training, in_training, rules.epsilon_eval)
