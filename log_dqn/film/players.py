"""The agents that play: Dopamine's kind on TensorFlow and on JAX, and those trained vectorized."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from dopamine.jax.agents.full_rainbow.full_rainbow_agent import JaxFullRainbowAgent
from dopamine.jax.agents.implicit_quantile.implicit_quantile_agent import JaxImplicitQuantileAgent
from dopamine.jax.agents.rainbow.rainbow_agent import JaxRainbowAgent
from dopamine.tf.agents.implicit_quantile.implicit_quantile_agent import ImplicitQuantileAgent

from log_dqn import log_space
from log_dqn.jax.log_dqn_agent import JaxLogDQNAgent
from log_dqn.tf.log_dqn_agent import LogDQNAgent
from log_dqn.vectorized import agents, networks


class Values(NamedTuple):
    """What an agent makes of each action.

    Attributes:
        q: Q, shape [num_actions].
        heads: ln q_+ and ln q_- of LogDQN, shape [2, num_actions]; None for other agents.
        keys: numbers that are largest where the agent's choice is, shape [num_actions].
    """

    q: np.ndarray
    heads: np.ndarray | None
    keys: np.ndarray


def values_of(q: Any) -> Values:
    """Returns the values of an agent that learns Q; takes `num_actions` numbers of any shape."""
    q = np.ravel(q)
    return Values(q.astype(float), None, q)


def values_of_heads(rule: log_space.UpdateRule, plus: Any, minus: Any) -> Values:
    """Returns the values of LogDQN; each output has `num_actions` numbers, of any shape."""
    outputs = np.ravel(plus), np.ravel(minus)
    heads = np.stack(rule.log_values(outputs)).astype(float)
    q_plus, q_minus = np.exp(heads)
    return Values(q_plus - q_minus, heads, rule.action_keys(outputs))


class DopaminePlayer:
    """An agent with Dopamine's interface, whose state is the frames that it has seen.

    Attributes:
        gamma: discount factor.
        epsilon: exploration rate in evaluation.
    """

    def __init__(self, agent: Any, values: Callable[[], Values]) -> None:
        """Takes the agent, with its weights, and what it makes of its state."""
        self._agent, self._values = agent, values
        self.gamma, self.epsilon = agent.gamma, agent.epsilon_eval

    def see(self, observation: Any, begins: bool) -> Values:
        """Takes in an observation, which may be the first of its episode."""
        if begins:
            self._agent._reset_state()
        self._agent._record_observation(observation)
        return self._values()


def on_tensorflow(agent: Any) -> DopaminePlayer:
    """Returns what plays one of Dopamine's TensorFlow agents, or LogDQN."""
    fetches = agent._net_outputs
    if isinstance(agent, ImplicitQuantileAgent):
        fetches = agent._q_values  # The mean over quantiles that are drawn each time.
    elif not isinstance(agent, LogDQNAgent):
        fetches = agent._net_outputs.q_values

    def values() -> Values:
        outputs = agent._sess.run(fetches, {agent.state_ph: agent.state})
        if isinstance(agent, LogDQNAgent):
            return values_of_heads(agent._update.rule, *outputs)
        return values_of(outputs)

    return DopaminePlayer(agent, values)


def on_jax(agent: Any) -> DopaminePlayer:
    """Returns what plays one of Dopamine's JAX agents, or LogDQN on JAX."""
    network, of_next = agent.network_def, agent._rng

    @jax.jit
    def apply(params: Any, state: Any, key: Any) -> Any:
        """Returns Q, or LogDQN's pair of outputs."""
        if isinstance(agent, JaxLogDQNAgent):
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

    def values() -> Values:
        nonlocal of_next
        of_next, key = jax.random.split(of_next)
        outputs = apply(agent.online_params, agent.preprocess_fn(agent.state), key)
        if isinstance(agent, JaxLogDQNAgent):
            return values_of_heads(agent._update.rule, *outputs)
        return values_of(outputs)

    return DopaminePlayer(agent, values)


class VectorizedPlayer:
    """An agent of vectorized training; with the attributes of `DopaminePlayer`."""

    def __init__(
        self,
        agent: agents.Agent,
        network: networks.Network,
        params: Any,
        state_shape: tuple[int, ...],
        num_actions: int,
    ) -> None:
        """Takes the agent's settings and its parameters, without columns that are never used."""
        self._agent = agent
        self._params = params
        self._state_shape = state_shape
        self._apply = jax.jit(
            lambda params, state: agent.outputs(network, params, state[None], num_actions)
        )
        self.gamma, self.epsilon = agent.gamma, agent.epsilon_eval

    def see(self, observation: Any, begins: bool) -> Values:
        """Takes in an observation, which may be the first of its episode."""
        frame = np.reshape(observation, (*self._state_shape[:-1], 1))
        if begins:
            self._state = np.zeros(self._state_shape, frame.dtype)
        self._state = np.concatenate([self._state[..., 1:], frame], axis=-1)
        outputs = self._apply(self._params, jnp.asarray(self._state))
        if isinstance(self._agent, agents.VectorizedLogDQNAgent):
            return values_of_heads(self._agent.rule, *outputs)
        return values_of(outputs[0])
