"""MinAtar (Young and Tian, 2019) for Dopamine's agents, from its authors' package."""

from typing import Any

import gin
import gymnasium
import numpy as np
from dopamine.discrete_domains import gym_lib

from log_dqn import checks, games


class Game(gymnasium.Env):
    """A game with sticky actions, all six actions and rising difficulty, MinAtar's defaults.

    Observations are boards of 10 x 10 x channels, bool. An episode ends when the game does.
    """

    def __init__(self, name: str) -> None:
        """Creates one of `games.MINATAR5`, by its name."""
        import minatar  # An extra.

        own_name = games.rom_name(name.removeprefix("MinAtar/"))
        self._game = minatar.Environment(
            own_name, sticky_action_prob=games.MINATAR_STICKY_PROBABILITY
        )
        self.observation_space = gymnasium.spaces.MultiBinary(self._game.state_shape())
        self.action_space = gymnasium.spaces.Discrete(self._game.num_actions())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode; see gymnasium's Env."""
        super().reset(seed=seed)
        if seed is not None:
            self._game.last_action = 0
        # MinAtar draws its random numbers in numpy's old way, from gymnasium's generator.
        random = np.random.RandomState(self.np_random.bit_generator)
        self._game.random = self._game.env.random = random
        self._game.reset()
        return self._game.state(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Takes a step; see gymnasium's Env."""
        reward, is_over = self._game.act(int(action))
        return self._game.state(), float(reward), is_over, False, {}

    def state_between_episodes(self) -> dict[str, Any]:
        """Returns what the next episodes depend on, as plain data.

        MinAtar's last action outlives an episode: the first action of the next may repeat it.
        """
        state = self.np_random.bit_generator.state
        return {"generator": state, "last_action": int(self._game.last_action)}

    def restore_between_episodes(self, state: dict[str, Any]) -> None:
        """Puts back what `state_between_episodes` returned."""
        self.np_random.bit_generator.state = state["generator"]
        self._game.last_action = state["last_action"]


# A name of its own in gin, where `create_environment` is Atari's.
@gin.configurable("create_minatar_environment")
def create_environment(
    game_name: str | None = None, seed: int | None = None
) -> gym_lib.GymPreprocessing:
    """Creates one of `games.MINATAR5` with Dopamine's interface.

    A seed of None draws the game's random numbers anew.

    Raises:
        ValueError: if the game is unknown, or MinAtar isn't installed.
    """
    games.check_game(game_name, atari=False)
    checks.check_extra("minatar", ("minatar",), str(game_name))
    environment = Game(str(game_name))
    if seed is not None:
        environment.reset(seed=seed)
    return gym_lib.GymPreprocessing(environment)
