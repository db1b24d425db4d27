"""What returns were obtained under, read from a run's configuration, and what differs.

Published returns are compared with a run's only if both were obtained under one protocol. That of
Dopamine's baselines is `PUBLISHED` (Castro et al., 2018; Machado et al., 2018).
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from log_dqn import games
from log_dqn.program import words
from log_dqn.run_folder import configuration

BASELINES = "the published baselines"

MARK, UNRECORDED_MARK = "†", "‡"
"""Stand at the name of an agent whose protocol differs, or is not recorded."""


def meanings(standard: str) -> dict[str, str]:
    """What the marks stand for, where protocols are compared with that of `standard`."""
    return {MARK: f"another protocol than {standard}", UNRECORDED_MARK: "protocol not recorded"}


_LARGEST_COUNT = 10**12
_ATARI = f"Dopamine's {len(games.GAMES)} Atari games"
_TRAINING_STEPS, _LONGEST_EPISODE = 250_000, 27_000  # agent steps
# Episodes end there at the latest: in `atari.create_environment`, and in Dopamine's own.
_EPISODE_LIMITS = {
    "create_environment": games.FRAME_SKIP * _LONGEST_EPISODE,
    "create_atari_environment": 100_000,
}


class Protocol(NamedTuple):
    """What returns were obtained under. None stands for what is not recorded.

    `_FIELDS` says what each field is; replay memory and batches are counted in transitions.
    """

    games: str
    returns: str
    training_steps: int | None
    frames_per_episode: int | None
    frame_skip: int | None
    sticky_actions: bool | None
    terminal_on_life_loss: bool | None
    replay_capacity: int | None
    min_replay_history: int | None
    update_period: int | None
    batch_size: int | None
    updates: bool | None

    @property
    def frames_per_iteration(self) -> int:
        """Emulator frames of an iteration's training phase; the baselines' if not recorded."""
        return (self.training_steps or _TRAINING_STEPS) * (self.frame_skip or games.FRAME_SKIP)


PUBLISHED = Protocol(
    games=_ATARI,
    returns="training",
    training_steps=_TRAINING_STEPS,
    frames_per_episode=games.FRAME_SKIP * _LONGEST_EPISODE,
    frame_skip=games.FRAME_SKIP,
    sticky_actions=True,
    terminal_on_life_loss=False,
    replay_capacity=1_000_000,
    min_replay_history=20_000,
    update_period=4,
    batch_size=32,
    updates=True,
)
"""The protocol of Dopamine's published Atari baselines."""

PUBLISHED_GAMMA = 0.99
"""The discount factor of all published agents."""

_FIELDS = {
    "games": "game",
    "returns": "returns",
    "training_steps": "agent steps an iteration",
    "frames_per_episode": "longest episode in frames",
    "frame_skip": "frames an agent step",
    "sticky_actions": "sticky actions",  # with probability 0.25
    "terminal_on_life_loss": "ends with a life",
    "replay_capacity": "replay capacity",
    "min_replay_history": "agent steps before learning",
    "update_period": "agent steps an update",
    "batch_size": "batch size",
    "updates": "any update",
}
"""How each field is called in words."""

_ATARI_ONLY = ("frame_skip", "sticky_actions", "terminal_on_life_loss")

_NO_LIMIT = 10**9
"""Episodes of as many frames have no limit, by Dopamine's convention."""

_KNOWN = ("games", "returns", "frame_skip", "training_steps")
"""The fields that may be known without a configuration."""

NOT_RECORDED = "not recorded"


class Difference(NamedTuple):
    """What differs from a standard, as a table shows it.

    Where nothing is recorded, the field is `protocol`, and there is no standard value.
    """

    field: str
    own: str
    standard: str
    whose: str

    def __str__(self) -> str:
        return f"{self.field} {self.own}" + (
            f" ({self.whose}: {self.standard})" * bool(self.standard)
        )


_BUFFERS = (
    "WrappedPrioritizedReplayBuffer", "WrappedReplayBuffer", "OutOfGraphPrioritizedReplayBuffer",
    "OutOfGraphReplayBuffer", "VectorizedRunner",
)  # fmt: skip
"""The one in force first: a prioritized buffer's configuration also has the plain one's."""


def recorded(
    parameters: Mapping[str, Any],
    game: str,
    metric: str,
    num_iterations: int,
    logged_steps: int | None = None,
) -> Protocol:
    """Reads the protocol of a run from the parameters of its configuration.

    It has finished `num_iterations`. By the log, whose last episode goes on beyond its end, a
    training phase has `logged_steps` agent steps; that is used where the parameters don't tell.
    """
    values = configuration.by_short_name(parameters)

    def count(*names: str) -> int | None:
        known = (values[name] for name in names if type(values.get(name)) is int)
        return next((value for value in known if 0 <= value <= _LARGEST_COUNT), None)

    def flag(*names: str) -> bool | None:
        return next((values[name] for name in names if type(values.get(name)) is bool), None)

    played = _game(values, game)
    training_steps = count("Runner.training_steps", "VectorizedRunner.training_steps")
    if training_steps is None and logged_steps is not None:
        training_steps = _steps_of_log(logged_steps)
    # What the vectorized runner has no parameter for stands in `vectorized.environments`.
    is_atari = played in (*games.GAMES, *games.WITHOUT_BASELINES)
    vectorized = is_atari and any(name.startswith("VectorizedRunner.") for name in values)
    skip = None if is_atari else 1
    skip = games.FRAME_SKIP if vectorized else count("AtariPreprocessing.frame_skip") or skip
    steps = count("Runner.max_steps_per_episode", "VectorizedRunner.max_steps_per_episode")
    # After these frames the configured games end an episode by themselves.
    limits = [
        limit
        for factory, limit in _EPISODE_LIMITS.items()
        if any(name.startswith(f"{factory}.") for name in values)
    ]
    sticky = flag("create_environment.sticky_actions", "create_atari_environment.sticky_actions")
    life_loss = flag("AtariPreprocessing.terminal_on_life_loss")
    history = count(*agent_parameters(values, "min_replay_history"))
    updates = None
    if training_steps is not None and history is not None:
        updates = num_iterations * training_steps > history
    return Protocol(
        games=_ATARI if game == played in games.GAMES else played,
        returns="training" if metric == "train" else "evaluation",
        training_steps=training_steps or None,
        frames_per_episode=min([steps * skip, *limits]) if steps and skip else None,
        frame_skip=skip,
        sticky_actions=vectorized or sticky,
        terminal_on_life_loss=False if vectorized else life_loss,
        replay_capacity=count(
            *(f"{buffer}.replay_capacity" for buffer in _BUFFERS), "ReplayBuffer.max_capacity"
        ),
        min_replay_history=history,
        update_period=count(*agent_parameters(values, "update_period")),
        batch_size=count(*(f"{buffer}.batch_size" for buffer in (*_BUFFERS, "ReplayBuffer"))),
        updates=updates,
    )


def _game(values: Mapping[str, Any], game: str) -> str:
    """Returns the game that the parameters name, or else the one given."""
    names = (values[name] for name in values if re.fullmatch(r".*_environment\..*_(name|id)", name))
    played = next((name for name in names if isinstance(name, str)), game)
    return words.printable(games.canonical(played) or played)


def _steps_of_log(logged_steps: int) -> int:
    """Returns the agent steps that an iteration was to have, by those that it had."""
    if 0 <= logged_steps - _TRAINING_STEPS < _LONGEST_EPISODE:
        return _TRAINING_STEPS
    # Two digits: the last episodes of other seeds are of other lengths.
    return int(float(f"{logged_steps:.2g}"))


def agent_parameters(values: Mapping[str, Any], parameter: str) -> list[str]:
    """Returns the short names of an agent's parameter, that of the class in force first.

    A LogDQN agent, or Rainbow, may also bind those of the Dopamine agent that it extends.
    """
    names = [n for n in values if n.partition(".")[0].endswith("Agent")]
    names = [n for n in names if n.partition(".")[2] == parameter]
    return sorted(names, key=lambda n: ("LogDQN" not in n, n.startswith(("DQN", "JaxDQN")), n))


def differences(own: Protocol, standard: Protocol, whose: str) -> tuple[Difference, ...]:
    """Lists what differs from a standard, which is `whose`, such as the `baselines`'.

    What the standard doesn't record is not compared.
    """
    found = [
        Difference(field, _shown(name, value), _shown(name, usual), whose)
        for name, field in _FIELDS.items()
        for value, usual in [(getattr(own, name), getattr(standard, name))]
        if usual not in (value, None)
        and not (value is None and name in _ATARI_ONLY and own.games != standard.games)
    ]
    if any(getattr(own, name) is not None for name in _FIELDS if name not in _KNOWN):
        return tuple(found)
    known = (one for one in found if one.own != NOT_RECORDED)
    return (*known, Difference("protocol", NOT_RECORDED, "", whose))


def _shown(name: str, value: str | int | bool | None) -> str:
    if value is None:
        return NOT_RECORDED
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "no limit" if name == "frames_per_episode" and value >= _NO_LIMIT else f"{value:,}"
