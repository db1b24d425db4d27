"""Environments with gymnax's interface, for tests; and many that are wrong."""

import dataclasses
import sys
from typing import NamedTuple

import gin
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from gymnax.environments import spaces


class State(NamedTuple):
    episode: jax.Array
    time: jax.Array


class Params(NamedTuple):
    """How many values `step` returns, as gymnax before 1.0 or since, and how episodes end."""

    values: int = 6
    ends: int = 3


def length_of(episode):
    return 1 + 5 * episode % 7


def reward_of(episode, time):
    return (7 * episode + 3 * time) % 5 - 2


def is_truncated(episode, ends):
    return episode % ends > 0


class Clock:
    """Tells the number of the episode and of the step; actions do nothing.

    Episodes have 1 to 7 steps. Of each `ends`, one is terminated and the others truncated.
    """

    def reset(self, key, params):
        state = State(jnp.int32(0), jnp.int32(0))
        return self._observe(state), state

    def _observe(self, state):
        return jnp.array([state.episode, state.time], jnp.int32)

    def step(self, key, state, action, params):
        reward = reward_of(state.episode, state.time).astype(jnp.float32)
        time = state.time + 1
        over = time == length_of(state.episode)
        truncated = over & is_truncated(state.episode, params.ends)
        terminated = over & ~truncated
        state = State(state.episode + over, jnp.where(over, 0, time))
        ends = (terminated, truncated) if params.values == 6 else (over,)
        return self._observe(state), state, reward, *ends, {}

    def observation_space(self, params):
        return spaces.Box(0, 1e9, (2,), jnp.int32)

    def action_space(self, params):
        return spaces.Discrete(2)


def clock(**settings):
    return Clock(), Params(**settings)


class Still(Clock):
    """An observation of any kind, on which nothing happens; the first episode has three steps."""

    action_names = ("nothing", "more of it")

    def __init__(self, observation, space=None):
        self._observation, self._space = observation, space

    def reset(self, key, params):
        state = State(jnp.int32(6), jnp.int32(0))
        return self._observe(state), state

    def _observe(self, state):
        return self._observation

    def observation_space(self, params):
        return self._space or spaces.Box(-jnp.inf, jnp.inf, self._observation.shape)

    def render(self, state, params):
        return np.full((4, 6, 3), 100 + int(state.time), np.uint8)


def board(channels=2):
    return Still(jnp.eye(6, dtype=bool)[..., None].repeat(channels, -1)), Params()


@gin.configurable
def marked(actions=2):
    """Has as many actions as gin says."""
    environment, params = board()
    environment.action_names = None
    environment.action_space = lambda params: spaces.Discrete(actions)
    return environment, params


class Body(nn.Module):
    """Has a layer that is named as the agents' last one is."""

    width: int

    @nn.compact
    def __call__(self, flat):
        return nn.Dense(self.width, name="Output")(flat)


@gin.configurable
def width(factor=1):
    return 5 * factor


@gin.configurable
def gain(x, by=1.0):
    return by * x


@gin.configurable
class Torso(nn.Module):
    """A network of one's own, without a fault or with one."""

    fault: str = ""
    widths: tuple = (5,)

    @nn.compact
    def __call__(self, states):
        flat = states.reshape(len(states), -1)
        if self.fault == "raises":
            raise RuntimeError("no network\nof it")
        if self.fault == "has no parameters":
            return flat
        if self.fault == "returns no vector":
            return nn.Dense(5)(states)
        if self.fault == "takes any number of states for one":
            return nn.Dense(5)(states[:1].reshape(1, -1))
        if self.fault == "names a layer as the agents' last one":
            return nn.Dense(5, name="Output")(flat)
        if self.fault == "has parameters of two bytes":
            return nn.Dense(5, param_dtype=jnp.bfloat16)(flat)
        for width in self.widths:
            flat = gain(nn.relu(Body(width)(flat)))
        return nn.Dropout(0.5, deterministic=self.fault != "drops")(flat)


class Wrong(Clock):
    def __init__(self, **methods):
        for name, method in methods.items():
            setattr(self, name, method)


class Ends(Clock):
    """Its step returns other values from the reward on."""

    def __init__(self, *values):
        self._values = values

    def step(self, *args):
        return *super().step(*args)[:2], *self._values


class Grows(Clock):
    def step(self, *args):
        observation, *rest = super().step(*args)
        return jnp.append(observation, 0), *rest


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Lines:
    """Its text has two lines, of which the second tells what changes."""

    time: jax.Array
    other: jax.Array

    def __str__(self):
        return f"time {self.time}\nother {self.other}"


class SecondLine(Wrong):
    def reset(self, key, params):
        return jnp.zeros(2, jnp.int32), Lines(jnp.int32(0), jnp.zeros(3))

    def step(self, key, state, action, params):
        values = super().step(key, State(jnp.int32(0), state.time), action, params)
        return values[0], Lines(state.time, jnp.float32(0)), *values[2:]


class Branches(Clock):
    def step(self, key, state, action, params):
        if action > 0:
            return super().step(key, state, action, params)
        return super().step(key, state, action, params)


class Draws(Clock):
    def reset(self, key, params):
        return self._observe(State(int(jax.random.randint(key, (), 0, 3)), 0)), None


def factory_of(environment):
    return lambda: (environment, Params())


def with_actions(space):
    return factory_of(Wrong(action_space=lambda params: space))


no_pair = Clock
no_step = factory_of(Wrong(step=None, action_space=None))
ends_in_floats = factory_of(Ends(np.float32(0), np.float32(1), np.float32(0), {}))
two_truncated = factory_of(Ends(np.float32(0), np.bool_(0), np.zeros(2, bool), {}))
forgets_info = factory_of(Ends(np.float32(0), np.bool_(0), np.bool_(0)))
rewards_a_tree = factory_of(Ends({"a": np.float32(0)}, np.bool_(0), np.bool_(0), {}))
complex_reward = factory_of(Ends(np.complex64(0), np.bool_(0), np.bool_(0), {}))
other_shape = factory_of(Wrong(observation_space=lambda params: spaces.Box(-1.0, 1.0, (7,))))
two_arrays = factory_of(Wrong(_observe=lambda state: {"a": state.time, "b": state.time}))
continuous = with_actions(spaces.Box(-1.0, 1.0, (1,)))
several_of_gymnasium = with_actions(gymnasium.spaces.MultiDiscrete([2, 3]))
many = with_actions(spaces.Discrete(40_000))
grows = factory_of(Grows())
second_line = factory_of(SecondLine())
branches = factory_of(Branches())
draws = factory_of(Draws())


def fails():
    raise RuntimeError("no licence\nfor it")


def leaves():
    sys.exit(3)
