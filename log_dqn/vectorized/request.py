"""Checks of a job's options that don't need JAX."""

from collections.abc import Sequence

from log_dqn import checks, games
from log_dqn.cli import gin_files as files

AGENTS = ("log_dqn", "loglin_dqn", "dqn")
"""Names of the agents."""

_GYMNASIUM = "gymnasium:"

FACTORIES = ("create_jax_environment", "create_host_environment")
"""Names in gin of the functions that create environments: in JAX, and of gymnasium."""


_COMMAND = files.Command(
    "train-vectorized", "VectorizedRunner.agent", {"dqn": "VectorizedDQNAgent"}
)


def parse(
    gin_files: Sequence[str],
    gin_bindings: Sequence[str],
    agent: str | None,
    game: str,
    scans: Sequence[str] = (),
    capacity: int | None = None,
) -> files.Written:
    """Checks names, files, bindings and scans; returns what they say as lines of gin.

    Unless gin files name an agent, they extend the agent's own file for `game`, which is one of
    `games.KNOWN` or an environment's id. `capacity` replaces the files' replay capacity.
    """
    if agent is not None:
        checks.check_one_of("agent", agent, AGENTS)
    is_env = game not in games.KNOWN
    bindings = list(gin_bindings)
    if is_env:
        check_environment(game)
        bindings.append(f"{factory(game)}.environment_id = {game!r}")
    written = files.parse_for(
        _COMMAND, gin_files, bindings, scans, agent, lambda name: default_file(name, game)
    )
    if capacity is not None:
        name = "VectorizedRunner.replay_capacity"
        files.check_left_out(written, name, "capacity")
        written.bindings.append(("gin_bindings", f"{name} = {capacity!r}"))
    for one in FACTORIES:
        name = f"{one}.environment_id"
        for value in written.values(name):
            is_right = value is None or (is_env and value == game and one == factory(game))
            checks.check(name, value, is_right, f"left out for {game}: give --env instead")
    return written


def factory(environment_id: str) -> str:
    """Returns which of `FACTORIES` creates an environment."""
    return FACTORIES[is_of_gymnasium(environment_id)]


def is_of_gymnasium(environment_id: str | None) -> bool:
    """Returns whether an environment is one of gymnasium."""
    return str(environment_id).startswith(_GYMNASIUM)


def own_id(environment_id: str | None) -> str:
    """Returns an environment's id without the prefix of gymnasium.

    If it has a colon, the part before the colon is a user's module.
    """
    return str(environment_id).removeprefix(_GYMNASIUM)


def check_environment(environment_id: str | None) -> None:
    """Checks the id of an environment, as far as that needs no import."""
    allowed = "an id of gymnax, MODULE:FACTORY, or gymnasium: followed by an id of gymnasium"
    checks.check("env", environment_id, all(own_id(environment_id).split(":")), allowed)
    game = games.canonical(str(environment_id))
    allowed = f"left out: this is a game, --games={game}"
    checks.check("env", environment_id, game is None, allowed)
    if ":" in str(environment_id):  # Another is gymnax's.
        # It imports gymnasium.
        from log_dqn.cli import environments

        if is_of_gymnasium(environment_id):
            environments.check_id(own_id(environment_id), _GYMNASIUM)
        else:
            environments.check_id(environment_id, of_module="MODULE:FACTORY")


def default_file(agent: str | None, game: str) -> str:
    """Returns the name of an agent's gin file: for Atari, MinAtar or an environment."""
    agent = agent or files.DEFAULT_AGENT
    checks.check_one_of("agent", agent, AGENTS)
    kind = "_minatar" if game in games.JAX_GAMES else "_env" * (game not in games.KNOWN)
    return f"vectorized_{agent}{kind}.gin"
