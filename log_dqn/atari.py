"""Sticky-action Atari as the published Dopamine baselines used it."""

import ale_py
import gin
import gymnasium
from dopamine.discrete_domains import atari_lib

from log_dqn import games

# 30 minutes at 60 frames/s, which is 27,000 agent steps. Dopamine's own factory stops at
# 100,000 frames, so its long episodes are shorter than the published ones.
MAX_FRAMES_PER_EPISODE = 108_000


@gin.configurable
def create_environment(
    game_name: str | None = None, sticky_actions: bool = True, seed: int | None = None
) -> atari_lib.AtariPreprocessing:
    """Creates a game with the minimal action set and Dopamine's preprocessing.

    Frame skip 4, maximum of the last two frames, 84 x 84 grey levels, an episode ends when the
    game is over or after 108,000 frames (27,000 agent steps). Time-outs end an episode as a
    lost game does, as in Dopamine.

    Args:
        game_name: name of the game, as in `games.GAMES`.
        sticky_actions: whether the last action is repeated with probability 0.25 in each frame
            (Machado et al., 2018).
        seed: seed of the game's random numbers; None draws one.

    Raises:
        ValueError: if the game is unknown.
    """
    games.check_game(game_name, minatar=False)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    environment = gymnasium.make(
        f"ALE/{game_name}-v5",
        # Dopamine's preprocessing reads the screen from the emulator itself; grey levels are
        # the cheapest observation to leave unused.
        obs_type="grayscale",
        frameskip=1,
        repeat_action_probability=games.STICKY_PROBABILITY if sticky_actions else 0.0,
        full_action_space=False,
        max_num_frames_per_episode=MAX_FRAMES_PER_EPISODE,
        disable_env_checker=True,
    )
    if seed is not None:
        environment.reset(seed=seed)
    return atari_lib.AtariPreprocessing(environment)
