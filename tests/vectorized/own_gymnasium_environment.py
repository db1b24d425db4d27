"""Environments of gymnasium, for tests; they are registered when this is imported."""

import gymnasium
import numpy as np
from gymnasium import spaces

from .own_jax_environment import is_truncated, length_of, reward_of


class Clock(gymnasium.Env):
    """`own_jax_environment.Clock`; a seed, or an episode that it didn't end, begins it anew."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    observation_space = spaces.Box(0, 10**9, (2,), np.int32)
    action_space = spaces.Discrete(2)

    def __init__(self, ends=3):
        self._ends, self._episode, self._time = ends, 0, 0

    def _observe(self):
        return np.array([self._episode, self._time], np.int32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        is_over = seed is None and self._time == length_of(self._episode)
        self._episode, self._time = self._episode + 1 if is_over else 0, 0
        return self._observe(), {}

    def step(self, action):
        reward = reward_of(self._episode, self._time)
        self._time += 1
        over = self._time == length_of(self._episode)
        truncated = over and bool(is_truncated(self._episode, self._ends))
        return self._observe(), reward, over and not truncated, truncated, {}

    def render(self):
        return np.full((4, 6, 3), 100 + self._time, np.uint8)


gymnasium.register("Clock-v0", Clock)
