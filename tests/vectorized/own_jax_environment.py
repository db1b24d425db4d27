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
class Torso(nn.Module):
    """A network of one's own."""

    @nn.compact
    def __call__(self, states):
        return nn.relu(nn.Dense(5)(states.reshape(len(states), -1)))


@gin.configurable
class Torso4(nn.Module):
    """Its output is no vector of features."""

    @nn.compact
    def __call__(self, states):
        return nn.Dense(5)(states)


@gin.configurable
class TorsoOfOne(nn.Module):
    """Takes any number of states for one."""

    @nn.compact
    def __call__(self, states):
        return nn.Dense(5)(states[:1].reshape(1, -1))


@gin.configurable
class TorsoFails(nn.Module):
    def __call__(self, states):
        raise RuntimeError("no network\nof it")


@gin.configurable
class TorsoDrops(nn.Module):
    @nn.compact
    def __call__(self, states):
        return nn.Dropout(0.5, deterministic=False)(nn.Dense(5)(states.reshape(len(states), -1)))


@gin.configurable
class TorsoOfNothing(nn.Module):
    def __call__(self, states):
        return states.reshape(len(states), -1)


class Wrong(Clock):
    def __init__(self, **methods):
        for name, method in methods.items():
            setattr(self, name, method)


def no_pair():
    return Clock()


def no_step():
    return Wrong(step=None, action_space=None), Params()


def fails():
    raise RuntimeError("no licence\nfor it")


def leaves():
    sys.exit(3)


class Ends(Clock):
    """Its step returns other values from the reward on."""

    def __init__(self, *values):
        self._values = values

    def step(self, *args):
        return *super().step(*args)[:2], *self._values


def ends_in_floats():
    return Ends(jnp.float32(0), jnp.float32(1), jnp.float32(0), {}), Params()


def two_truncated():
    return Ends(jnp.float32(0), jnp.bool_(0), jnp.zeros(2, bool), {}), Params()


def forgets_info():
    return Ends(jnp.float32(0), jnp.bool_(0), jnp.bool_(0)), Params()


def rewards_a_tree():
    return Ends({"a": jnp.float32(0)}, jnp.bool_(0), jnp.bool_(0), {}), Params()


def complex_reward():
    return Ends(jnp.complex64(0), jnp.bool_(0), jnp.bool_(0), {}), Params()


def other_shape():
    return Wrong(observation_space=lambda params: spaces.Box(-1.0, 1.0, (7,))), Params()


def continuous():
    return Wrong(action_space=lambda params: spaces.Box(-1.0, 1.0, (1,))), Params()


def several_of_gymnasium():
    space = gymnasium.spaces.MultiDiscrete([2, 3])
    return Wrong(action_space=lambda params: space), Params()


def many(count=40_000):
    return Wrong(action_space=lambda params: spaces.Discrete(count)), Params()


def two_arrays():
    return Wrong(_observe=lambda state: {"a": state.time, "b": state.time}), Params()


class Grows(Clock):
    def step(self, *args):
        observation, *rest = super().step(*args)
        return jnp.append(observation, 0), *rest


def grows():
    return Grows(), Params()


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Lines:
    """Its text has two lines, of which the second tells what changes."""

    time: jax.Array
    other: jax.Array

    def __str__(self):
        return f"time {self.time}\nother {self.other}"


class SecondLine(Wrong):
    def step(self, key, state, action, params):
        values = super().step(key, State(jnp.int32(0), state.time), action, params)
        return values[0], Lines(state.time, jnp.float32(0)), *values[2:]


def second_line():
    zero = jnp.int32(0)
    first = jnp.zeros(2, jnp.int32), Lines(zero, jnp.zeros(3))
    return SecondLine(reset=lambda key, params: first), Params()


class Branches(Clock):
    def step(self, key, state, action, params):
        if action > 0:
            return super().step(key, state, action, params)
        return super().step(key, state, action, params)


def branches():
    return Branches(), Params()


class Draws(Clock):
    def reset(self, key, params):
        return self._observe(State(int(jax.random.randint(key, (), 0, 3)), 0)), None


def draws():
    return Draws(), Params()
