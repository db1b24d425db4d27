"""The agents that play: Dopamine's kind on TensorFlow and on JAX, and those trained vectorized."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from dopamine.jax.agents.full_rainbow.full_rainbow_agent import JaxFullRainbowAgent
from dopamine.jax.agents.implicit_quantile.implicit_quantile_agent import JaxImplicitQuantileAgent
from dopamine.jax.agents.rainbow.rainbow_agent import JaxRainbowAgent
from dopamine.tf.agents.implicit_quantile.implicit_quantile_agent import ImplicitQuantileAgent

from log_dqn.film.episode import Values, values_of, values_of_heads
from log_dqn.jax.log_dqn_agent import JaxLogDQNAgent
from log_dqn.tf.log_dqn_agent import LogDQNAgent
from log_dqn.vectorized import agents, networks


class _DopaminePlayer:
    """An agent with Dopamine's interface, whose state is the frames that it has seen."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self.gamma, self.epsilon = agent.gamma, agent.epsilon_eval

    def see(self, observation: Any, begins: bool) -> Values:
        """Takes in an observation, which may be the first of its episode."""
        if begins:
            self._agent._reset_state()
        self._agent._record_observation(observation)
        return self._values()

    def _values(self) -> Values:
        raise NotImplementedError


class TensorFlowPlayer(_DopaminePlayer):
    """One of Dopamine's TensorFlow agents, or LogDQN."""

    def __init__(self, agent: Any) -> None:
        """Takes the agent, with its weights."""
        super().__init__(agent)
        self._fetches = agent._net_outputs
        if isinstance(agent, ImplicitQuantileAgent):
            self._fetches = agent._q_values  # The mean over quantiles that are drawn each time.
        elif not isinstance(agent, LogDQNAgent):
            self._fetches = agent._net_outputs.q_values

    def _values(self) -> Values:
        agent = self._agent
        outputs = agent._sess.run(self._fetches, {agent.state_ph: agent.state})
        if isinstance(agent, LogDQNAgent):
            return values_of_heads(agent._update.rule, *outputs)
        return values_of(outputs)


class JaxPlayer(_DopaminePlayer):
    """One of Dopamine's JAX agents, or LogDQN on JAX."""

    def __init__(self, agent: Any) -> None:
        """Takes the agent, with its weights."""
        super().__init__(agent)
        self._key = agent._rng
        self._apply = jax.jit(self._outputs)

    def _outputs(self, params: Any, state: Any, key: Any) -> Any:
        """Returns Q, or LogDQN's pair of outputs."""
        agent = self._agent
        network = agent.network_def
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

    def _values(self) -> Values:
        agent = self._agent
        self._key, key = jax.random.split(self._key)
        state = agent.preprocess_fn(agent.state)
        outputs = self._apply(agent.online_params, state, key)
        if isinstance(agent, JaxLogDQNAgent):
            return values_of_heads(agent._update.rule, *outputs)
        return values_of(outputs)


class VectorizedPlayer:
    """An agent of vectorized training."""

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
