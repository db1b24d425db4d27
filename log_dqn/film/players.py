"""Trained agents: Dopamine's, on TensorFlow and on JAX, and vectorized ones."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from dopamine.jax.agents.full_rainbow.full_rainbow_agent import JaxFullRainbowAgent
from dopamine.jax.agents.implicit_quantile.implicit_quantile_agent import JaxImplicitQuantileAgent
from dopamine.jax.agents.rainbow.rainbow_agent import JaxRainbowAgent
from dopamine.tf.agents.implicit_quantile.implicit_quantile_agent import ImplicitQuantileAgent

from log_dqn import log_space
from log_dqn.checks import check, check_rate
from log_dqn.film.game import BoardGame, DopamineGame
from log_dqn.jax.log_dqn_agent import JaxLogDQNAgent
from log_dqn.tf.log_dqn_agent import LogDQNAgent
from log_dqn.vectorized import agents, networks


def random_action(generator: np.random.Generator, epsilon: float, num_actions: int) -> int | None:
    """Returns a random action with probability epsilon, else None for the greedy one."""
    explores = generator.random() < epsilon
    return int(generator.integers(num_actions)) if explores else None


class Values(NamedTuple):
    """An agent's values in one state.

    Attributes:
        q: Q, shape [num_actions].
        heads: ln q_+ and ln q_- of LogDQN, shape [2, num_actions]; None for other agents.
        keys: numbers whose largest is the greedy action's, shape [num_actions].
    """

    q: np.ndarray
    heads: np.ndarray | None
    keys: np.ndarray

    @property
    def q_plus(self) -> np.ndarray | None:
        """q_+ of LogDQN, shape [num_actions]; None for other agents."""
        return None if self.heads is None else np.exp(self.heads[0])

    @property
    def q_minus(self) -> np.ndarray | None:
        """q_- of LogDQN, shape [num_actions]; None for other agents."""
        return None if self.heads is None else np.exp(self.heads[1])

    def action(self, epsilon: float = 0.0, generator: np.random.Generator | None = None) -> int:
        """Returns the greedy action, or with probability epsilon a random one."""
        check_rate("epsilon", float(epsilon))
        generator = np.random.default_rng() if generator is None else generator
        action = random_action(generator, epsilon, len(self.q))
        return int(self.keys.argmax()) if action is None else action


def values_of(outputs: Any, rule: log_space.UpdateRule | None = None) -> Values:
    """Returns the values of Q, or by LogDQN's rule of a pair: `num_actions` numbers each."""
    if rule is None:
        return Values(np.ravel(outputs).astype(float), None, np.ravel(outputs))
    plus, minus = map(np.ravel, outputs)
    heads = np.stack(rule.log_values((plus, minus))).astype(float)
    q_plus, q_minus = np.exp(heads)
    return Values(q_plus - q_minus, heads, rule.action_keys((plus, minus)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedAgent:
    """A trained agent and its game, with the weights of the run's newest checkpoint.

    Attributes:
        agent: Dopamine's agent, or the settings of a vectorized one.
        compute: maps a state to its values.
        keys: maps states, shape [batch_size, *state_shape], to keys, shape [batch_size,
            num_actions], within JAX; None for Dopamine's agents.
        state_shape: shape of a state: an observation's, then how many of them a state holds.
        dtype: type of an observation.
        gamma: discount factor.
        epsilon: exploration rate in evaluation.
        game: the game that it was trained on, with `reset` and `step`.
        game_name: the game's name.
        iterations: finished iterations of training.
        max_steps: agent steps after which training left an episode.
    """

    agent: Any
    compute: Callable[[np.ndarray], Values] = dataclasses.field(repr=False)
    keys: Callable[[jax.Array], jax.Array] | None = dataclasses.field(default=None, repr=False)
    state_shape: tuple[int, ...]
    dtype: np.dtype
    gamma: float
    epsilon: float
    game: DopamineGame | BoardGame
    game_name: str
    iterations: int
    max_steps: int

    def values(self, observation: Any) -> Values:
        """Returns the agent's value of each action.

        Args:
            observation: an observation of the game, or the last ones if a state holds several (see
                `stack`). Its shape is `state_shape`; axes of length 1 may be left out.

        Raises:
            ValueError: if it has another shape, or a number that is not of `dtype` or not finite.
        """
        return self.compute(self._checked(observation, self.state_shape))

    def act(
        self,
        observation: Any,
        epsilon: float = 0.0,
        generator: np.random.Generator | None = None,
    ) -> int:
        """Returns the greedy action, or with probability epsilon a random one.

        The observation is that of `values`. Without a generator, each call uses a new one.
        """
        return self.values(observation).action(epsilon, generator)

    def stack(self, observation: Any, state: np.ndarray | None = None) -> np.ndarray:
        """Returns the state after one more observation of the game, such as an Atari frame.

        Args:
            observation: of the game.
            state: the state before; None at the start of an episode, for zeros.

        Returns:
            Shape `state_shape`, the new observation last.
        """
        frame = self._checked(observation, self.state_shape[:-1])
        if state is None:
            state = np.zeros(self.state_shape, self.dtype)
        return np.concatenate([state[..., 1:], frame[..., None]], axis=-1)

    def _checked(self, observation: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Returns an observation of a shape, and of `dtype`."""
        array = np.asarray(observation)
        fits = [n for n in array.shape if n != 1] == [n for n in shape if n != 1]
        is_stack = shape == self.state_shape and shape[-1] > 1
        stacks = f", {self.state_shape[-1]} observations (see stack)" * is_stack
        check("the observation's shape", array.shape, fits, f"{shape}{stacks}")
        with np.errstate(invalid="ignore", over="ignore"):
            cast = array.astype(self.dtype)
        kept = np.isfinite(cast) if self.dtype.kind == "f" else cast == array
        for wrong in array[~kept][:1].tolist():
            check("a number of the observation", wrong, False, f"a finite {self.dtype}")
        return cast.reshape(shape)


def _of_dopamine(agent: Any, dtype: Any, **others: Any) -> TrainedAgent:
    return TrainedAgent(
        agent=agent, state_shape=(*agent.observation_shape, agent.stack_size),
        dtype=np.dtype(dtype), gamma=agent.gamma, epsilon=agent.epsilon_eval, **others,
    )  # fmt: skip


def on_tensorflow(agent: Any, **of_game: Any) -> TrainedAgent:
    """Returns one of Dopamine's TensorFlow agents, or LogDQN, with its game's attributes."""
    rule, fetches = None, agent._net_outputs
    if isinstance(agent, LogDQNAgent):
        rule = agent._update.rule
    elif isinstance(agent, ImplicitQuantileAgent):
        fetches = agent._q_values  # The mean over quantiles that are drawn each time.
    else:
        fetches = fetches.q_values

    def compute(state: np.ndarray) -> Values:
        return values_of(agent._sess.run(fetches, {agent.state_ph: state[None]}), rule)

    dtype = agent.observation_dtype.as_numpy_dtype
    return _of_dopamine(agent, dtype, compute=compute, **of_game)


def on_jax(agent: Any, **of_game: Any) -> TrainedAgent:
    """Returns one of Dopamine's JAX agents, or LogDQN on JAX, with its game's attributes."""
    network, of_next = agent.network_def, agent._rng
    rule = agent._update.rule if isinstance(agent, JaxLogDQNAgent) else None

    @jax.jit
    def apply(params: Any, state: Any, key: Any) -> Any:
        """Returns Q, or LogDQN's pair of outputs."""
        if rule is not None:
            outputs = network.apply(params, state)
            return outputs.plus, outputs.minus
        if isinstance(agent, JaxImplicitQuantileAgent):
            samples = agent.num_quantile_samples
            outputs = network.apply(params, state, num_quantiles=samples, rng=key)
            return outputs.quantile_values.mean(axis=0)
        if isinstance(agent, JaxFullRainbowAgent):
            settings = {"key": key, "eval_mode": True, "support": agent._support}
            return network.apply(params, state, **settings).q_values
        if isinstance(agent, JaxRainbowAgent):
            return network.apply(params, state, support=agent._support).q_values
        return network.apply(params, state).q_values

    def compute(state: np.ndarray) -> Values:
        nonlocal of_next
        of_next, key = jax.random.split(of_next)
        # As Dopamine's own state, which is in double precision.
        state = agent.preprocess_fn(state.astype(float))
        return values_of(apply(agent.online_params, state, key), rule)

    return _of_dopamine(agent, agent.observation_dtype, compute=compute, **of_game)


@functools.lru_cache
def _functions(
    agent: agents.Agent, network: networks.Network, num_actions: int
) -> tuple[Callable[..., Any], Callable[..., jax.Array]]:
    """Returns functions of parameters and states, so that those of like agents compile once.

    They compute an agent's outputs, and, given its constants too, its keys.
    """

    def outputs(params: Any, states: Any) -> Any:
        return agent.outputs(network, params, states, num_actions)

    def keys(constants: agents.Constants, params: Any, states: Any) -> jax.Array:
        return agent.action_keys(constants, outputs(params, states))

    return jax.jit(outputs), keys


def vectorized(
    agent: agents.Agent, network: networks.Network, params: Any, num_actions: int, **others: Any
) -> TrainedAgent:
    """Returns an agent of vectorized training.

    Args:
        agent: its settings.
        network: its network.
        params: its parameters, without unused columns.
        num_actions: number of actions.
        others: the other attributes of `TrainedAgent`.
    """
    outputs, keys = _functions(agent.alike, network, num_actions)

    def compute(state: np.ndarray) -> Values:
        found = outputs(params, state[None])
        rule = getattr(agent, "rule", None)  # LogDQN's.
        return values_of(found if rule else agent.action_keys(agent.constants, found), rule)

    return TrainedAgent(
        agent=agent, compute=compute, keys=jax.tree_util.Partial(keys, agent.constants, params),
        gamma=agent.gamma, epsilon=agent.epsilon_eval, **others,
    )  # fmt: skip
