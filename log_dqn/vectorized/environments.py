"""Environments that the host steps: Atari as Dopamine preprocesses it, and gymnasium's.

gymnasium is by Towers et al. (2024). `Game` is what the learner knows of any environment, also of
those in JAX.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ale_py
import gin
import gymnasium
import jax
import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium import spaces, wrappers

from log_dqn.checks import check, check_bool, is_installed
from log_dqn.cli import environments, words
from log_dqn.cli.shell import explain
from log_dqn.games import FRAME_SKIP, STICKY_PROBABILITY, rom_name
from log_dqn.vectorized import networks, request
from log_dqn.vectorized.timeline import Outcome

_MOST_FRAMES = 2**31 - 1  # The emulator counts in 32 bits.
MOST_ACTIONS = 2**15 - 1
"""The replay memory stores actions in 16 bits."""


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
        make: makes an environment of gymnasium for a run, checked at each step; None for others.
    """

    name: str
    frame_shape: tuple[int, ...]
    frame_dtype: Any
    num_actions: int
    cuts: bool = False
    prepare: Callable[[jax.Array], jax.Array] | None = None
    is_drawn: bool = True
    make: Callable[[], gymnasium.Env] | None = None

    @property
    def shown(self) -> str:
        """An observation's shape and dtype: float32[4]."""
        return words.array(self.frame_dtype, self.frame_shape)


def check_actions(environment_id: str | None, space: Any) -> int:
    """Returns the number of actions; they must be discrete, and numbered from 0."""
    count: Any = getattr(space, "n", None)
    is_one = isinstance(count, int | np.integer) and getattr(space, "shape", ()) in ((), None)
    is_one &= np.array_equal(getattr(space, "start", 0), 0)
    shown = explain(ValueError(repr(space)))
    allowed = f"one with one discrete action a step, numbered from 0, and not {shown}"
    check("env", environment_id, is_one, allowed)
    allowed = f"one with 1 to {MOST_ACTIONS} actions, and not {count}"
    check("env", environment_id, 1 <= count <= MOST_ACTIONS, allowed)
    return int(count)


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
        """Creates the runs' games, in Dopamine's spelling.

        An episode ends after `max_steps_per_episode` agent steps, as a lost game does.
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
                max_num_frames_per_episode=min(FRAME_SKIP * max_steps_per_episode, _MOST_FRAMES),
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


# A name of its own in gin, where `create_gymnasium_environment` is that of single runs.
@gin.configurable("create_host_environment")
def create_gymnasium(
    max_steps_per_episode: int,
    environment_id: str | None = None,
    bootstrap_at_time_limit: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> Game:
    """Creates an environment of gymnasium with discrete actions.

    Args:
        max_steps_per_episode: agent steps after which an episode is cut off.
        environment_id: 'gymnasium:' and what `gymnasium.make` takes, such as
            'gymnasium:CartPole-v1', or 'gymnasium:module:Id-v0' for one that a module registers.
        bootstrap_at_time_limit: see `jax_environments.create_environment`.
        settings: arguments for the environment, such as {'max_episode_steps': 500}.

    Raises:
        ValueError: if there is no such environment, it can't be made, or doesn't suit the agents;
            see `environments.check_spaces`.
    """
    check_bool("bootstrap_at_time_limit", bootstrap_at_time_limit)
    own_id = request.own_id(environment_id)

    def make() -> gymnasium.Env:
        made = environments.make(own_id, {} if settings is None else settings)
        if not _is_array(made.observation_space):
            made = wrappers.FlattenObservation(made)
        return wrappers.TimeLimit(made, max_steps_per_episode)

    made = make()
    try:
        made.reset(seed=0)
        space: Any = made.observation_space
        dtype = _dtype(space)
        draws_itself = "rgb_array" in made.metadata.get("render_modes", [])
        # gymnasium's own draw by pygame.
        can_draw = ":" in own_id or is_installed("pygame")
        return Game(
            name=str(environment_id), frame_shape=space.shape, frame_dtype=dtype,
            num_actions=check_actions(own_id, made.action_space),
            cuts=bootstrap_at_time_limit, prepare=networks.preparation(space, space.shape, dtype),
            is_drawn=draws_itself and can_draw, make=make,
        )  # fmt: skip
    finally:
        # Each run makes its own, and there may be only one at a time.
        made.close()


def _is_array(space: spaces.Space) -> bool:
    """Returns whether observations are used as they are; others are flattened to a vector."""
    is_number = isinstance(space, spaces.Discrete) and space.start == 0
    return is_number or isinstance(space, spaces.Box | spaces.MultiBinary)


def _dtype(space: spaces.Space) -> str:
    """Returns the dtype of stored observations, which has at most 32 bits."""
    if isinstance(space, spaces.Discrete):
        return "int32"
    dtype = np.dtype(space.dtype)
    # A network sees large whole numbers as float32 too.
    return "float32" if dtype.kind == "f" or dtype.itemsize > 4 else str(dtype)


class GymnasiumGames:
    """One environment of gymnasium a run, with the methods of `AtariGames`.

    They are stepped one after the other. This takes half the time of `SyncVectorEnv` for one
    CartPole, and less time for eight.

    Attributes:
        num_actions: each run's number of actions.
        faults: why environments have stopped, by the index of the run; their rewards are NaN.
    """

    def __init__(self, game: Game, num_runs: int) -> None:
        """Makes the environments; the game has a `make`."""
        assert game.make is not None
        self._name = game.name
        self._environments = [game.make() for _ in range(num_runs)]
        self._frames = np.zeros((num_runs, *game.frame_shape), game.frame_dtype)
        self.num_actions = [game.num_actions] * num_runs
        self.faults = dict.fromkeys(range(num_runs), "it has not been reset")

    def reset(self, runs: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """Begins new episodes in some environments; see `AtariGames.reset`.

        An environment that keeps anything from one episode to the next isn't as a new one.
        """
        for run in np.flatnonzero(runs).tolist():
            self.faults.pop(run, None)
            try:
                self._begin(run, int(seeds[run]))
            except environments.Fault as fault:
                self.faults[run] = str(fault)
        return self._frames.copy()

    def send(self, actions: np.ndarray) -> None:
        """Keeps the runs' actions, shape [num_runs], for `receive`."""
        self._actions = actions.tolist()

    def receive(self) -> Outcome:
        """Takes the step; returns its outcome. After an ended episode the next has begun."""
        num_runs = len(self._environments)
        rewards = np.full(num_runs, np.nan, np.float32)
        ended, cut = np.zeros((2, num_runs), bool)
        for run in [run for run in range(num_runs) if run not in self.faults]:
            try:
                rewards[run], ended[run], cut[run] = self._step(run)
            except environments.Fault as fault:
                self.faults[run] = str(fault)
        return Outcome(self._frames.copy(), rewards, ended, cut)

    def _begin(self, run: int, seed: int | None = None) -> None:
        self._frames[run], _ = self._environments[run].reset(seed=seed)

    def _step(self, run: int) -> tuple[float, bool, bool]:
        """Returns the reward, whether the episode has ended, and whether it was cut off."""
        frame, reward, terminated, truncated, _ = self._environments[run].step(self._actions[run])
        if terminated or truncated:
            self._begin(run)
        else:
            self._frames[run] = frame
        is_cut = bool(truncated and not terminated)
        return environments.as_number(self._name, reward), bool(terminated or truncated), is_cut
