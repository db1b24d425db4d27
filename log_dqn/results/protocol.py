"""What returns were obtained under, read from a run's configuration, and what differs.

Published returns are compared with a run's only if both were obtained under one protocol. That of
Dopamine's baselines is `PUBLISHED` (Castro et al., 2018; Machado et al., 2018).
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from log_dqn import games
from log_dqn.cli import words
from log_dqn.results.request import METRICS
from log_dqn.run_folder import configuration

BASELINES = "the published baselines"

MARK, UNRECORDED_MARK = "†", "‡"
"""Stand at the name of an agent whose protocol differs, or is not recorded."""


def meanings(standard: str) -> dict[str, str]:
    """Returns what the marks stand for, where protocols are compared with that of `standard`."""
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
    """What returns were obtained under; the defaults are the published baselines' protocol.

    None stands for what is not recorded. The fields are called in words as they are here. Replay
    memory and batches are counted in transitions; actions stick with probability 0.25.
    """

    game: str = _ATARI
    returns: str = "training"
    agent_steps_an_iteration: int | None = _TRAINING_STEPS
    longest_episode_in_frames: int | None = games.FRAME_SKIP * _LONGEST_EPISODE
    frames_an_agent_step: int | None = games.FRAME_SKIP
    sticky_actions: bool | None = True
    ends_with_a_life: bool | None = False
    replay_capacity: int | None = 1_000_000
    agent_steps_before_learning: int | None = 20_000
    agent_steps_an_update: int | None = 4
    batch_size: int | None = 32
    any_update: bool | None = True

    @property
    def frames_per_iteration(self) -> int:
        """Emulator frames of an iteration's training phase; the baselines' if not recorded."""
        steps = self.agent_steps_an_iteration or _TRAINING_STEPS
        return steps * (self.frames_an_agent_step or games.FRAME_SKIP)


PUBLISHED = Protocol()
"""The protocol of Dopamine's published Atari baselines."""

PUBLISHED_GAMMA = 0.99
"""The discount factor of all published agents."""

_ATARI_ONLY = ("frames_an_agent_step", "sticky_actions", "ends_with_a_life")

_NO_LIMIT = 10**9
"""Episodes of as many frames have no limit, by Dopamine's convention."""

_KNOWN = ("game", "returns", "frames_an_agent_step", "agent_steps_an_iteration")
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

    def first(kind: type, *names: str) -> Any:
        known = (values[name] for name in names if type(values.get(name)) is kind)
        return next((value for value in known if 0 <= value <= _LARGEST_COUNT), None)

    played = _game(values, game)
    training_steps = first(int, "Runner.training_steps", "VectorizedRunner.training_steps")
    if training_steps is None and logged_steps is not None:
        training_steps = _steps_of_log(logged_steps)
    # What the vectorized runner has no parameter for stands in `vectorized.environments`.
    is_atari = played in (*games.GAMES, *games.WITHOUT_BASELINES)
    vectorized = is_atari and any(name.startswith("VectorizedRunner.") for name in values)
    skip = None if is_atari else 1
    skip = games.FRAME_SKIP if vectorized else first(int, "AtariPreprocessing.frame_skip") or skip
    steps = first(int, "Runner.max_steps_per_episode", "VectorizedRunner.max_steps_per_episode")
    # After these frames the configured games end an episode by themselves.
    limits = [
        limit
        for factory, limit in _EPISODE_LIMITS.items()
        if any(name.startswith(f"{factory}.") for name in values)
    ]
    sticky = [f"{factory}.sticky_actions" for factory in _EPISODE_LIMITS]
    life_loss = first(bool, "AtariPreprocessing.terminal_on_life_loss")
    history = first(int, *agent_parameters(values, "min_replay_history"))
    capacities = [
        *(f"{buffer}.replay_capacity" for buffer in _BUFFERS),
        "ReplayBuffer.max_capacity",
    ]
    updates = None
    if training_steps is not None and history is not None:
        updates = num_iterations * training_steps > history
    return Protocol(
        game=_ATARI if game == played in games.GAMES else played,
        returns=METRICS[metric],
        agent_steps_an_iteration=training_steps or None,
        longest_episode_in_frames=min([steps * skip, *limits]) if steps and skip else None,
        frames_an_agent_step=skip,
        sticky_actions=vectorized or first(bool, *sticky),
        ends_with_a_life=False if vectorized else life_loss,
        replay_capacity=first(int, *capacities),
        agent_steps_before_learning=history,
        agent_steps_an_update=first(int, *agent_parameters(values, "update_period")),
        batch_size=first(int, *(f"{b}.batch_size" for b in (*_BUFFERS, "ReplayBuffer"))),
        any_update=updates,
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
        Difference(name.replace("_", " "), _shown(name, value), _shown(name, usual), whose)
        for name, value, usual in zip(Protocol._fields, own, standard, strict=True)
        if usual not in (value, None)
        and not (value is None and name in _ATARI_ONLY and own.game != standard.game)
    ]
    if any(getattr(own, name) is not None for name in Protocol._fields if name not in _KNOWN):
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
    unlimited = name == "longest_episode_in_frames" and value >= _NO_LIMIT
    return "no limit" if unlimited else f"{value:,}"
