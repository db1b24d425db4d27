"""An environment with a fault."""

import gymnasium
import numpy as np
from gymnasium import spaces

OBSERVATION = np.zeros(2, np.float32)
VECTOR = spaces.Box(-1, 1, (2,), np.float32)


class Faulty(gymnasium.Env):
    """Returns and raises what it is given, from a step on; an episode has five steps."""

    action_space = spaces.Discrete(2)

    seeded = True

    def __init__(self, space=VECTOR, good=OBSERVATION, bad=None, reward=1.0, after=0, **replaced):
        self.observation_space = space
        self._good, self._bad, self._reward, self._after = good, bad, reward, after
        for name, value in replaced.items():
            setattr(self, name, value)
        self._steps = 0

    def reset(self, *, seed=None, options=None):
        if self.seeded:
            super().reset(seed=seed)
        return self._good, {}

    def step(self, action):
        self._steps += 1
        is_bad = self._bad is not None and self._steps > self._after
        if isinstance(self._bad, BaseException) and is_bad:
            raise self._bad
        observation = self._bad if is_bad else self._good
        return observation, self._reward, False, self._steps % 5 == 0, {}


def register(name, limit=None, **settings):
    """Registers an environment; returns its id."""
    gymnasium.registry.pop(f"{name}-v0", None)
    gymnasium.register(f"{name}-v0", Faulty, kwargs=settings, max_episode_steps=limit)
    return f"{name}-v0"
