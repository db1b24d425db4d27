"""What a user might register: `--env=tests.dopamine_run.own_environment:Own/Vector-v0`."""

import gymnasium
import numpy as np
from gymnasium import spaces

TIME_LIMIT = 5

OBSERVATIONS = {
    "Vector": spaces.Box(np.array([0, -np.inf], np.float32), np.array([8, np.inf], np.float32)),
    "Picture": spaces.Box(0, 255, (48, 40, 3), np.uint8),
    "Grey": spaces.Box(0, 255, (48, 40, 1), np.uint8),
    "Bits": spaces.Box(0, 1, (48, 40), np.uint8),
    "Board": spaces.MultiBinary((4, 4, 2)),
    "Number": spaces.Discrete(16),
    "Dictionary": spaces.Dict(a=spaces.Discrete(3), b=spaces.Box(-2, 2, (2,), np.float32)),
    "Sequence": spaces.Sequence(spaces.Discrete(3)),
    "Unknown": spaces.Space((3,), np.float32),
}


class Own(gymnasium.Env):
    """An environment that never ends by itself, with the same reward at each step."""

    def __init__(self, observation, ends_after=None, reward=1.0):
        self.observation_space = OBSERVATIONS[observation]
        self.action_space = spaces.Discrete(2)
        self._ends_after = ends_after
        self._reward = reward

    def _observation(self):
        self.observation_space.seed(int(self.np_random.integers(1000)))
        return self.observation_space.sample()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return self._observation(), {}

    def step(self, action):
        self._steps += 1
        return self._observation(), self._reward, self._steps == self._ends_after, False, {}


for name in OBSERVATIONS:
    gymnasium.register(
        f"Own/{name}-v0", Own, max_episode_steps=TIME_LIMIT, kwargs={"observation": name}
    )
gymnasium.register("Own/Continuous-v0", lambda: gymnasium.make("Pendulum-v1"))
