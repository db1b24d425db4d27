"""Any environment of gymnasium with discrete actions, for Dopamine's agents."""

from collections.abc import Mapping
from typing import Any

import gin
import gymnasium
import numpy as np
from dopamine.discrete_domains import gym_lib
from gymnasium import spaces, wrappers

from log_dqn.checks import check_bool
from log_dqn.cli import environments

# Side of a picture that DQN's network is made for.
_SIDE = 84


class GymnasiumGame(gym_lib.GymPreprocessing):
    """An environment with the interface of Dopamine's wrappers.

    Attributes:
        bootstraps: whether agents bootstrap at a time limit. If not, an episode that is cut off
            counts as ended.
    """

    def __init__(self, environment: gymnasium.Env, bootstraps: bool) -> None:
        """Takes an environment, and whether to bootstrap at its time limit."""
        super().__init__(environment)
        self.bootstraps = bootstraps

    def step(self, action: int) -> tuple[np.ndarray, Any, bool, dict[str, Any]]:
        """Takes a step.

        Returns:
            The observation, the reward, whether the step ended the episode for learning, and the
            environment's own information. `game_over` says whether the episode is over.
        """
        observation, reward, terminated, truncated, info = self.environment.step(action)
        self.game_over = terminated or truncated
        return observation, reward, terminated or (truncated and not self.bootstraps), info


def _as_picture(environment: gymnasium.Env) -> gymnasium.Env:
    """Makes pictures grey, and of 84 x 84."""
    shape = environment.observation_space.shape
    if shape is not None and len(shape) == 3 and shape[2] == 3:
        environment = wrappers.GrayscaleObservation(environment)
    return wrappers.ReshapeObservation(
        wrappers.ResizeObservation(environment, (_SIDE, _SIDE)), (_SIDE, _SIDE)
    )


def _as_vector(environment: gymnasium.Env) -> gymnasium.Env:
    """Makes a vector of any observation, with bounded components scaled to [-1, 1]."""
    environment = wrappers.FlattenObservation(environment)
    space: Any = environment.observation_space
    center, half = environments.scaling(space.low.astype(float), space.high.astype(float))
    return wrappers.TransformObservation(
        environment,
        lambda observation: ((observation - center) / half).astype(np.float32),
        spaces.Box(-np.inf, np.inf, space.shape, np.float32),
    )


# A name of its own in gin, where `create_environment` is Atari's.
@gin.configurable("create_gymnasium_environment")
def create_environment(
    environment_id: str | None = None,
    bootstrap_at_time_limit: bool = True,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> GymnasiumGame:
    """Creates an environment with Dopamine's interface.

    Pictures become grey and 84 x 84. Other observations become vectors, with bounded components
    scaled to [-1, 1]: dictionaries and boards are flattened, discrete states one-hot.

    Args:
        environment_id: id of gymnasium, such as 'LunarLander-v3', or 'module:Id-v0' for one that a
            module registers when it is imported.
        bootstrap_at_time_limit: whether an episode that a time limit cuts off has not ended (Pardo
            et al., 2018, "Time limits in reinforcement learning"). If False, it counts as ended.
        settings: arguments for the environment, such as {'max_episode_steps': 500}.
        seed: seed of the environment's random numbers; None draws one.

    Raises:
        ValueError: if there is no such environment, it can't be made, or doesn't suit the agents;
            see `environments.check_spaces`.
    """
    check_bool("bootstrap_at_time_limit", bootstrap_at_time_limit)
    environment = environments.make(environment_id, {} if settings is None else settings)
    picture = environments.is_picture(environment.observation_space)
    environment = (_as_picture if picture else _as_vector)(environment)
    if seed is not None:
        environment.reset(seed=seed)
    return GymnasiumGame(environment, bootstrap_at_time_limit)
