"""The environments of vectorized runs, and sticky-action Atari as Dopamine preprocesses it."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ale_py
import jax
import numpy as np
from ale_py.vector_env import AtariVectorEnv

from log_dqn.cli import words
from log_dqn.games import FRAME_SKIP, STICKY_PROBABILITY, rom_name
from log_dqn.vectorized.timeline import Outcome


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Game:
    """An environment, as the learner sees it.

    Attributes:
        name: the game's name, or an environment's id.
        frame_shape: shape of an observation.
        frame_dtype: its dtype.
        num_actions: number of actions; the largest of all games for Atari.
        cuts: whether outcomes say which episodes a time limit has cut off.
        prepare: maps states to what the network sees; None for the states themselves.
        is_drawn: whether a film can show it.
    """

    name: str
    frame_shape: tuple[int, ...]
    frame_dtype: Any
    num_actions: int
    cuts: bool = False
    prepare: Callable[[jax.Array], jax.Array] | None = None
    is_drawn: bool = True

    @property
    def shown(self) -> str:
        """An observation's shape and dtype: float32[4]."""
        return words.array(self.frame_dtype, self.frame_shape)


ATARI = Game(name="Atari", frame_shape=(84, 84), frame_dtype="uint8", num_actions=18)
"""Any game of Atari."""


class AtariGames:
    """One Atari game a run, stepped together.

    Minimal action set, frame skip 4, maximum of the last two frames, 84 x 84 grey levels; the last
    action is repeated with probability 0.25 in each frame; an episode ends when the game is over
    or at its longest. The frames are `log_dqn.atari.create_environment`'s.

    Attributes:
        num_actions: each run's number of actions.
        faults: why environments failed, by the index of the run; Atari's never do.
    """

    faults: Mapping[int, str] = {}

    def __init__(self, games: Sequence[str], max_steps_per_episode: int) -> None:
        """Creates the games of the runs.

        Args:
            games: each run's game, in Dopamine's spelling.
            max_steps_per_episode: agent steps after which an episode ends, as a lost game does.
        """
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._num_runs = len(games)
        self._runs = {
            game: np.array([i for i, other in enumerate(games) if other == game])
            for game in dict.fromkeys(games)
        }
        self._environments = {
            game: AtariVectorEnv(
                rom_name(game),
                len(runs),
                autoreset_mode="SameStep",
                stack_num=1,
                img_height=ATARI.frame_shape[0],
                img_width=ATARI.frame_shape[1],
                frameskip=FRAME_SKIP,
                repeat_action_probability=STICKY_PROBABILITY,
                max_num_frames_per_episode=FRAME_SKIP * max_steps_per_episode,
                # Defaults of `AtariVectorEnv` that differ from Dopamine.
                noop_max=0,
                use_fire_reset=False,
                episodic_life=False,
                reward_clipping=False,
            )
            for game, runs in self._runs.items()
        }
        self.num_actions = [len(self._environments[game].ale.get_action_set()) for game in games]
        for environment in self._environments.values():
            # It lets none be reset alone before all have been.
            environment.reset(seed=0)

    def reset(self, runs: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """Begins new episodes in some games, as new environments with these seeds would.

        Args:
            runs: which runs, bool, shape [num_runs].
            seeds: from 0 to 2^31 - 1, shape [num_runs]; those of other runs are ignored.

        Returns:
            Observations, shape [num_runs, ...]; those of other runs are meaningless.
        """
        frames = np.zeros((self._num_runs, *ATARI.frame_shape), np.uint8)
        for game, environment in self._environments.items():
            mine = self._runs[game]
            if runs[mine].any():
                frames[mine] = environment.reset(
                    seed=seeds[mine][runs[mine]], options={"reset_mask": runs[mine]}
                )[0][:, 0]
        return frames

    def send(self, actions: np.ndarray) -> None:
        """Starts a step with the runs' actions, shape [num_runs], and returns at once."""
        for game, environment in self._environments.items():
            environment.send(actions[self._runs[game]])

    def receive(self) -> Outcome:
        """Returns the outcome of the step. After an ended episode the next has begun."""
        outcome = Outcome(
            np.empty((self._num_runs, *ATARI.frame_shape), np.uint8),
            np.empty(self._num_runs, np.float32),
            *np.zeros((2, self._num_runs), bool),
        )
        for game, environment in self._environments.items():
            mine = self._runs[game]
            frames, rewards, terminations, truncations, _ = environment.recv()
            outcome.frame[mine] = frames[:, 0]
            outcome.reward[mine] = rewards
            outcome.ended[mine] = terminations | truncations
        return outcome
