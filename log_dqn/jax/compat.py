"""Workarounds for faults of dopamine-rl 4.1.2's JAX agents; importing it applies them.

Beside `log_dqn.compat`, apart from it because these import Dopamine.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import absl.logging
import numpy as np
import optax
from dopamine.jax.agents.dqn import dqn_agent
from dopamine.jax.agents.full_rainbow import full_rainbow_agent
from dopamine.jax.agents.quantile import quantile_agent
from dopamine.jax.agents.rainbow import rainbow_agent
from dopamine.jax.replay_memory import accumulator, elements, replay_buffer, samplers, sum_tree

from log_dqn.checks import check
from log_dqn.compat import OPTIMIZERS

_create_optimizer = dqn_agent.create_optimizer


def create_optimizer(optimizer: optax.GradientTransformation | str) -> optax.GradientTransformation:
    """Returns the optimizer itself, or creates the one that Dopamine knows by that name.

    Reason: Dopamine's JAX agents take an optimizer's name only, and their RMSProp starts its mean
    square at zero, where TensorFlow 1's, with which DQN's baseline was made, starts at one.
    Can go: when they take optax optimizers.

    Raises:
        ValueError: if it is neither.
    """
    if isinstance(optimizer, optax.GradientTransformation):
        return optimizer
    allowed = f"one of {', '.join(map(repr, OPTIMIZERS))}, or an optimizer of optax: @rmsprop_tf()"
    check("optimizer", optimizer, optimizer in OPTIMIZERS, allowed)
    return _create_optimizer(optimizer)


class TransitionAccumulator(accumulator.TransitionAccumulator):
    """Turns steps of an episode into transitions, its last steps too.

    Reason: at a terminal step Dopamine's own stores the step before again and again (with frames
    of the state missing), marked terminal, and never the terminal step itself: the last reward
    of an episode is never learned from with 1-step updates
    (github.com/google/dopamine/issues/228). Dopamine's TensorFlow replay memory, with which the
    baselines were made, does it as here.
    Can go: when that issue is closed.
    """

    def accumulate(
        self, transition: elements.TransitionElement
    ) -> Iterator[elements.ReplayElement]:
        """Adds a step, and yields the transitions that it completes.

        Args:
            transition: observation, action taken on it, reward that followed, whether that ended
                the episode (`is_terminal`), or whether it was cut off (`episode_end`). What
                follows the step at which an episode is cut off is unknown, so transitions that
                need it are left out; those before it bootstrap.

        Yields:
            n-step transitions.
        """
        self._trajectory.append(transition)
        last = len(self._trajectory) - 1
        if last >= self._update_horizon:
            yield self._replay_element(last - self._update_horizon, is_terminal=False)
        if transition.is_terminal:
            for start in range(max(0, last - self._update_horizon + 1), last + 1):
                yield self._replay_element(start, is_terminal=True)
        if transition.is_terminal or transition.episode_end:
            self._trajectory.clear()

    def _replay_element(self, start: int, is_terminal: bool) -> elements.ReplayElement:
        """Makes the transition of at most n steps that begins at a step of the trajectory."""
        steps = list(self._trajectory)
        rewards = [step.reward for step in steps[start : start + self._update_horizon]]
        return elements.ReplayElement(
            state=self._stack(steps, start),
            action=steps[start].action,
            reward=sum(self._gamma**i * reward for i, reward in enumerate(rewards)),
            next_state=self._stack(steps, len(steps) - 1),
            is_terminal=is_terminal,
            episode_end=is_terminal,
        )

    def _stack(self, steps: list[Any], end: int) -> np.ndarray:
        """Stacks the observations up to a step's, with zeros before the first."""
        observation = steps[end].observation
        stack = np.zeros((*observation.shape, self._stack_size), observation.dtype)
        for i in range(min(self._stack_size, end + 1)):
            stack[..., -1 - i] = steps[end - i].observation
        return stack


class SumTree(sum_tree.SumTree):
    """A tree of priorities with a leaf more than the replay memory's capacity.

    Reason: Dopamine's JAX replay memory adds a transition before it removes the oldest. A tree for
    2^n of them has no leaf for that one: training stops with an IndexError when they are full.
    Can go: when it removes first.
    """

    def __init__(self, capacity: int) -> None:
        """Creates a tree for `capacity` transitions."""
        super().__init__(capacity + 1)


def first_value(name: str) -> property:
    """Returns an attribute that keeps the first value that it is given.

    Reason: JaxRainbowAgent and others note their `replay_scheme`, and JaxDQNAgent's
    constructor, which they call then, sets it to 'uniform': they never sample by priority.
    Can go: when it doesn't.
    """
    return property(lambda self: vars(self)[name], lambda self, x: vars(self).setdefault(name, x))


def silence_sampler() -> None:
    """Keeps a line of Dopamine's JAX replay memory off the terminal.

    Reason: JaxDQNAgent gives every transition a priority, None, and the uniform sampler logs that
    it ignores it.
    Can go: when the agent gives none where nothing is prioritized.
    """
    absl.logging.get_absl_logger().addFilter(
        lambda record: "UniformDistribution.add" not in str(record.msg)
    )


def give_replay_memory_defaults() -> None:
    """Lets a JAX agent be made without gin, as a TensorFlow agent can.

    Reason: Dopamine's JAX agents give their replay memory neither capacity nor batch size, and it
    has no defaults. These are its TensorFlow replay memory's, and the published baselines'.
    Can go: when it has.
    """
    capacity = {"max_capacity": 1_000_000}
    init = inspect.unwrap(replay_buffer.ReplayBuffer.__init__)  # Beneath gin's.
    init.__kwdefaults__ |= {**capacity, "batch_size": 32}
    init = inspect.unwrap(samplers.PrioritizedSamplingDistribution.__init__)
    init.__kwdefaults__ |= capacity


give_replay_memory_defaults()
for prioritized in (
    rainbow_agent.JaxRainbowAgent,
    full_rainbow_agent.JaxFullRainbowAgent,
    quantile_agent.JaxQuantileAgent,
):
    prioritized._replay_scheme = first_value("_replay_scheme")
dqn_agent.create_optimizer = create_optimizer
accumulator.TransitionAccumulator = TransitionAccumulator
sum_tree.SumTree = SumTree
silence_sampler()
