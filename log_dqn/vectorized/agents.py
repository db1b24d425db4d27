"""The settings of a run and its agent, and the losses of LogDQN and DQN as pure functions."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import gin
import jax
import jax.numpy as jnp
import numpy as np
import optax

from log_dqn import log_space
from log_dqn.checks import (
    as_number,
    check,
    check_bool,
    check_count,
    check_gamma,
    check_one_of,
    check_positive,
    check_rate,
)
from log_dqn.jax import devices, update
from log_dqn.jax.optimizers import OPTIMIZERS
from log_dqn.vectorized import networks, request

OUTPUT = "Output"
"""Name of the output layer."""

MAX_COUNT = 10**9
"""Largest number of steps: the device counts in 32 bits."""

Loss = Callable[..., tuple[jax.Array, dict[str, jax.Array]]]
"""A loss as `update.train_step` takes it."""

Initializer = Callable[..., jax.Array]
"""Returns initial weights, given a key and a shape."""

# Output for an action that the game doesn't have, so that it is never greedy.
_NEVER = 1e9


class Constants(NamedTuple):
    """The numbers of an agent's update, which may differ between the runs of a job.

    Attributes:
        gamma: discount factor.
        learning_rate: of the optimizer.
        update: DQN's gamma^n, or LogDQN's `log_space.UpdateRule`.
    """

    gamma: log_space.Scalar
    learning_rate: log_space.Scalar
    update: Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Agent:
    """What the agents have in common. Periods are in agent steps.

    Attributes:
        gamma: discount factor, in (0, 1).
        update_horizon: n of the n-step update.
        loss_type: 'huber' (delta 1) or 'mse'.
        optimizer: 'rmsprop_tf' or 'adam', each with its settings in gin.
        min_replay_history: transitions stored before training starts.
        update_period: steps between updates.
        target_update_period: steps between syncs of the target network.
        epsilon_train: exploration rate at the end of its schedule.
        epsilon_eval: exploration rate in evaluation.
        epsilon_decay_period: length of the schedule.

    Raises:
        ValueError: if an attribute is outside its range.
    """

    gamma: float
    update_horizon: int = 1
    loss_type: str = "huber"
    optimizer: str = "rmsprop_tf"
    min_replay_history: int = 20000
    update_period: int = 4
    target_update_period: int = 8000
    epsilon_train: float = 0.01
    epsilon_eval: float = 0.001
    epsilon_decay_period: int = 250000

    num_heads: ClassVar[int]
    """Outputs of an action that a game lacks are -`_NEVER` in the first head, the negative in the
    second, and so on, so that values should add the one and take the other."""

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check("gamma", self.gamma, np.float32(self.gamma) < 1, "smaller: float32 rounds it to 1")
        for name in (
            "update_horizon", "update_period", "target_update_period", "epsilon_decay_period"
        ):  # fmt: skip
            check_count(name, getattr(self, name), 1, MAX_COUNT)
        check_count("min_replay_history", self.min_replay_history, 0, MAX_COUNT)
        for name in ("epsilon_train", "epsilon_eval"):
            check_rate(name, getattr(self, name))
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            with np.errstate(over="ignore"):
                is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
                fits = not is_number or np.isfinite(np.float32(as_number(value)))
            fits |= field.name == "linear_above" and value == math.inf
            check(field.name, value, fits, "a number that float32 can hold")
        for name, known in (("loss_type", log_space.LOSSES), ("optimizer", OPTIMIZERS)):
            check_one_of(name, getattr(self, name), known)

    @property
    def shared(self) -> dict[str, Any]:
        """Settings that all runs of a job share, since they are compiled together."""
        names = ("update_horizon", "loss_type", "optimizer", "update_period")
        return {name: getattr(self, name) for name in names}

    @property
    def alike(self) -> "Agent":
        """An agent that all with the same `shared` settings have in common: for caches."""
        # A gamma whose power n float32 holds.
        return type(self)(gamma=0.5 ** (1 / self.update_horizon), **self.shared)

    @property
    def constants(self) -> Constants:
        """The numbers of the update."""
        raise NotImplementedError

    @property
    def head_inits(self) -> tuple[Initializer, ...]:
        """The initializers of the heads' weights."""
        return (networks.glorot_uniform,) * self.num_heads

    def with_columns(self, array: np.ndarray, columns: int) -> np.ndarray:
        """Returns an array of the output layer with `columns` outputs per head.

        The array has the shape [..., num_heads * old columns]. It loses the last outputs of each
        head, or gains zeros.
        """
        heads = array.reshape(*array.shape[:-1], self.num_heads, -1)[..., :columns]
        added = [(0, 0)] * array.ndim + [(0, columns - heads.shape[-1])]
        return np.pad(heads, added).reshape(*array.shape[:-1], -1)

    def outputs(
        self, network: networks.Network, params: dict[str, Any], states: Any, num_actions: Any
    ) -> tuple[jax.Array, ...]:
        """Returns each head's outputs in float32, shape [batch_size, columns]."""
        features = network.apply(params, states)
        with devices.in_precision("float32"):
            outputs = networks.dense(params[OUTPUT], features)
        heads = jnp.split(outputs, self.num_heads, axis=-1)
        exists = jnp.arange(heads[0].shape[-1]) < num_actions
        # The first head adds to an action's value, the second takes from it, and so on.
        signs = itertools.cycle((-_NEVER, _NEVER))
        return tuple(jnp.where(exists, head, next(signs)) for head in heads)

    def action_keys(self, constants: Constants, outputs: tuple[jax.Array, ...]) -> jax.Array:
        """Returns numbers whose largest is the greedy action's, shape [..., columns]."""
        raise NotImplementedError

    def batch_loss(self, constants: Constants) -> Loss:
        """Returns the agent's loss."""
        raise NotImplementedError

    def create_optimizer(self, constants: Constants) -> optax.GradientTransformation:
        """Returns the optimizer."""
        # The learning rate is an array if runs differ in it.
        steps = OPTIMIZERS[self.optimizer](learning_rate=1.0)
        return optax.chain(steps, optax.scale(constants.learning_rate))


def initial_params(
    head_inits: Sequence[Initializer],
    network: networks.Network,
    key: jax.Array,
    state_shape: tuple[int, ...],
    num_actions: int,
    columns: int,
) -> dict[str, Any]:
    """Returns the initial parameters by layer; the output layer has the heads side by side.

    `head_inits` are `Agent.head_inits`. `state_shape` has no batch axis. A head has `columns`
    outputs; those beyond `num_actions` are never used.
    """
    key, *head_keys = jax.random.split(key, 1 + len(head_inits))
    params, inputs = network.init(key, state_shape)
    unused = ((0, 0), (0, columns - num_actions))
    heads = [
        jnp.pad(init(head_key, (inputs, num_actions)), unused)
        for init, head_key in zip(head_inits, head_keys, strict=True)
    ]
    kernel = jnp.concatenate(heads, axis=-1)
    return {**params, OUTPUT: {"kernel": kernel, "bias": jnp.zeros(kernel.shape[-1])}}


@gin.configurable
@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorizedDQNAgent(Agent):
    """DQN (Mnih et al., 2015) with the settings of Dopamine's TensorFlow baseline.

    Attributes:
        learning_rate: of the optimizer; positive.
    """

    gamma: float = 0.99
    learning_rate: float = 0.00025

    num_heads: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("learning_rate", self.learning_rate)

    @property
    def constants(self) -> Constants:
        """The numbers of the update."""
        return Constants(self.gamma, self.learning_rate, self.gamma**self.update_horizon)

    def action_keys(self, constants: Constants, outputs: tuple[jax.Array, ...]) -> jax.Array:
        """Returns the action values, shape [..., columns]."""
        del constants
        return outputs[0]

    def batch_loss(self, constants: Constants) -> Loss:
        """Returns the agent's loss."""

        def loss(outputs: Any, next_outputs: Any, *batch: Any) -> Any:
            return update.dqn_batch_loss(
                constants.update, self.loss_type, outputs[0], next_outputs[0], *batch
            )

        return loss


@gin.configurable
@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorizedLogDQNAgent(log_space.LogUpdate, Agent):
    """LogDQN (paper, section 5); see `log_space.LogUpdate` for the update's settings.

    Attributes:
        beta_log: step-size in the log space, the optimizer's learning rate; positive.
        head_init: 'asymmetric' (weights of the minus head start at zero) or 'symmetric'.
        minus_head: whether the minus head learns. If not, it outputs 0, which stands for
            q_init_minus (at least gamma^k), and negative rewards are never learned.
    """

    beta_log: float = 0.0025
    head_init: str = "asymmetric"
    minus_head: bool = True

    num_heads: ClassVar[int] = 2

    def __post_init__(self) -> None:
        Agent.__post_init__(self)
        log_space.LogUpdate.__post_init__(self)
        check_positive("beta_log", self.beta_log)
        check_one_of("head_init", self.head_init, log_space.HEAD_INITS)
        check_bool("minus_head", self.minus_head)

    @property
    def shared(self) -> dict[str, Any]:
        """Settings that all runs of a job share, since they are compiled together."""
        return {**super().shared, "minus_head": self.minus_head}

    @property
    def constants(self) -> Constants:
        """The numbers of the update."""
        return Constants(self.gamma, self.beta_log, self.rule)

    @property
    def head_inits(self) -> tuple[Initializer, ...]:
        """The initializers of the heads' weights."""
        plus, minus = super().head_inits
        return plus, jax.nn.initializers.zeros if self.head_init == "asymmetric" else minus

    def outputs(
        self, network: networks.Network, params: dict[str, Any], states: Any, num_actions: Any
    ) -> tuple[jax.Array, ...]:
        """Returns each head's outputs in float32, shape [batch_size, columns]."""
        plus, minus = super().outputs(network, params, states, num_actions)
        return plus, minus if self.minus_head else jnp.zeros_like(minus)

    def action_keys(self, constants: Constants, outputs: tuple[jax.Array, ...]) -> jax.Array:
        """Returns numbers that are largest at the largest Q = q_+ - q_-, shape [..., columns]."""
        return constants.update.action_keys((outputs[0], outputs[1]), jnp)

    def batch_loss(self, constants: Constants) -> Loss:
        """Returns the agent's loss."""
        return functools.partial(update.batch_loss, constants.update, self.loss_type)


AGENTS: dict[str, Callable[[], Agent]] = dict(
    zip(
        request.AGENTS,
        (VectorizedLogDQNAgent, VectorizedLogDQNAgent, VectorizedDQNAgent),
        strict=True,
    )
)


@gin.configurable(name_or_fn="VectorizedRunner")
@dataclasses.dataclass(frozen=True, kw_only=True)
class RunnerSettings:
    """The settings of a run. Steps are agent steps; the defaults are the paper's.

    Attributes:
        agent: name of the agent, as in `AGENTS`.
        num_iterations: iterations of a run.
        training_steps: steps of an iteration's training phase, at least.
        evaluation_steps: steps of its evaluation phase, at least; 0 for none.
        max_steps_per_episode: steps after which a game's episode ends, as if lost, and another
            environment's is cut off; see `jax_environments.create_environment`.
        replay_capacity: transitions that a run's replay memory holds.
        batch_size: transitions of an update.
        stack_size: observations in a state.
        network: name of the network, as in `networks.NETWORKS`, or 'by_shape'; or a class of flax
            modules that map a batch of states to features.
        precision: of the network's torso, one of `log_space.PRECISIONS`.
        clip_rewards: whether rewards are clipped to [-1, 1] for learning.
    """

    agent: str = "log_dqn"
    num_iterations: int = 200
    training_steps: int = 250000
    evaluation_steps: int = 125000
    max_steps_per_episode: int = 27000
    replay_capacity: int = 1000000
    batch_size: int = 32
    stack_size: int = 4
    network: Any = "nature"
    precision: str = "float32"
    clip_rewards: bool = True

    def __post_init__(self) -> None:
        for name, known in (
            ("agent", AGENTS),
            ("network", (*networks.NETWORKS, networks.BY_SHAPE)),
            ("precision", log_space.PRECISIONS),
        ):
            if name != "network" or not hasattr(self.network, "init_with_output"):
                check_one_of(name, getattr(self, name), known)
        check_bool("clip_rewards", self.clip_rewards)
        for field in dataclasses.fields(self):
            if field.type in (int, "int"):
                least = 0 if field.name == "evaluation_steps" else 1
                # The replay memory has a byte for a step's place in its stack.
                most = 256 if field.name == "stack_size" else MAX_COUNT
                check_count(field.name, getattr(self, field.name), least, most)
        # Below half of 2^31, since episodes may go on after a phase's last step.
        most = MAX_COUNT // self.steps_per_iteration
        allowed = f"at most {most}, with {self.steps_per_iteration} steps an iteration"
        check("num_iterations", self.num_iterations, self.num_iterations <= most, allowed)

    @property
    def steps_per_iteration(self) -> int:
        """Planned steps of an iteration."""
        return self.training_steps + self.evaluation_steps
