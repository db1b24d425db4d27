"""The options of one run, and their checks that need no import of the agents."""

import pathlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from log_dqn import checks, games
from log_dqn.cli import gin_files as files
from log_dqn.cli import shell
from log_dqn.run_folder import layout, lock

AGENTS = {
    "log_dqn": "log_dqn.tf.log_dqn_agent:LogDQNAgent",
    "loglin_dqn": "log_dqn.tf.log_dqn_agent:LogDQNAgent",
    "dqn": "dopamine.tf.agents.dqn.dqn_agent:DQNAgent",
    "c51": "dopamine.tf.agents.rainbow.rainbow_agent:RainbowAgent",
    "rainbow": "dopamine.tf.agents.rainbow.rainbow_agent:RainbowAgent",
    "implicit_quantile": "dopamine.tf.agents.implicit_quantile.implicit_quantile_agent:"
    "ImplicitQuantileAgent",
    "jax_log_dqn": "log_dqn.jax.log_dqn_agent:JaxLogDQNAgent",
    "jax_loglin_dqn": "log_dqn.jax.log_dqn_agent:JaxLogDQNAgent",
    "jax_dqn": "dopamine.jax.agents.dqn.dqn_agent:JaxDQNAgent",
    "jax_rainbow": "dopamine.jax.agents.rainbow.rainbow_agent:JaxRainbowAgent",
    "jax_implicit_quantile": "dopamine.jax.agents.implicit_quantile.implicit_quantile_agent:"
    "JaxImplicitQuantileAgent",
    "full_rainbow": "dopamine.jax.agents.full_rainbow.full_rainbow_agent:JaxFullRainbowAgent",
}
"""The agents: LogDQN's and Dopamine's, for TensorFlow and for JAX, each with where its class is.

LogLinDQN is LogDQN with a `linear_above`, which its gin files set."""


MINATAR_FACTORY = "create_minatar_environment"
"""Name in gin of `minatar.create_environment`."""

GYMNASIUM_FACTORY = "create_gymnasium_environment"
"""Name in gin of `gymnasium_game.create_environment`."""

GAME_PARAMETERS = {
    f"{MINATAR_FACTORY}.game_name": "MinAtar",
    "create_environment.game_name": "Atari",
    "create_atari_environment.game_name": "Atari",
}
"""The parameter with the game of each environment factory, ours and Dopamine's, and its games."""

SEED = "seed_everything.seed"
"""The parameter with a run's seed."""

_COMMAND = files.Command(
    "train",
    "create_agent.agent_name",
    {name: place.partition(":")[2] for name, place in AGENTS.items()},
)


def configurable(reference: Any) -> str:
    """Returns the name, without module and scope, of what a reference of gin is to: `@a.b` is b."""
    return re.split("[@./]", str(reference))[-1]


class Request(NamedTuple):
    """What a run is to read of gin, and its game or the id of its environment of gymnasium."""

    written: files.Written
    game: str | None
    env: str | None


def parse(
    gin_files: Sequence[str],
    gin_bindings: Sequence[str],
    agent: str | None = None,
    game: str | None = None,
    seed: int | None = None,
    env: str | None = None,
    scans: Sequence[str] = (),
) -> Request:
    """Checks what a run is given, and returns it as lines of gin.

    Unless gin files name an agent, they extend the agent's own file for such games. Case doesn't
    matter in a game's name. Of a scan the first value is read.
    """
    if agent is not None:
        checks.check_one_of("agent", agent, AGENTS)
    if game is not None:
        game = games.canonical(game) or game
        games.check_game(game)
        if game in games.MINATAR5:
            checks.check_extra("minatar", ("minatar",), game)
    if env is not None:
        checks.check("env", env, game is None, f"left out beside the game {game}")
        from log_dqn.cli import environments

        environments.check_id(env)
    written = files.parse_for(
        _COMMAND, gin_files, gin_bindings, scans, agent, lambda name: default_file(name, game, env)
    )
    given = {"game": game, "env": env, "seed": seed}
    if seed is not None:
        checks.check_seed(seed)
    parameters = {"seed": SEED} | _parameter_of_game(written, game, env)
    for option, parameter in parameters.items():
        if given[option] is not None:
            files.check_left_out(written, parameter, option)
            line = f"{parameter} = {given[option]!r}"
            written.bindings.append(("gin_bindings", line))
    return Request(written, game, env)


def _parameter_of_game(written: files.Written, game: str | None, env: str | None) -> dict[str, str]:
    """Returns, by its option, the parameter of gin that binds the game or environment, if any."""
    if game is None and env is None:
        return {}
    factories = written.values("Runner.create_environment_fn")
    factory = factories[-1] if factories else "@atari_lib.create_atari_environment"
    but = f"since the environment is {factory}"
    if env is not None:
        is_gymnasium = configurable(factory) == GYMNASIUM_FACTORY
        checks.check("env", env, is_gymnasium, f"left out, {but}")
        return {"env": f"{GYMNASIUM_FACTORY}.environment_id"}
    kind = "MinAtar" if game in games.MINATAR5 else "Atari"
    for parameter, known_kind in GAME_PARAMETERS.items():
        if configurable(factory) == parameter.partition(".")[0]:
            checks.check("game", game, kind == known_kind, f"one of {known_kind}'s, {but}")
            return {"game": parameter}
    raise ValueError(f"game is {game!r}; it must be left out, {but}")


def default_file(agent: str | None, game: str | None, env: str | None = None) -> str:
    """Returns the name of an agent's gin file, for Atari, MinAtar or environments of gymnasium."""
    agent = agent or files.DEFAULT_AGENT
    checks.check_one_of("agent", agent, AGENTS)
    suffix = "_minatar" if game in games.MINATAR5 else "_gym" * (env is not None)
    having = [name for name in AGENTS if (files.config_dir() / f"{name}{suffix}.gin").is_file()]
    allowed = f"one of {', '.join(having)} on {game or env}, or have gin files of its own"
    checks.check("agent", agent, agent in having, allowed)
    return f"{agent}{suffix}.gin"


def check_folder(base_dir: str, restart: bool) -> None:
    """Checks that a run's folder can be trained in, and leaves nothing there.

    With `restart` the run that is there is to be removed.
    """
    shell.check_writable("base_dir", base_dir)
    folder = pathlib.Path(base_dir)
    if (folder / lock.NAME).exists():
        with lock.hold(folder):
            pass
    if restart:
        check_restart(folder)


def check_restart(folder: pathlib.Path) -> None:
    """Checks that what a folder holds is a run, if it holds anything; raises ValueError else."""
    holds_something = layout.files(folder) or layout.has_folders(folder)
    if holds_something and not layout.is_run(folder):
        raise ValueError(
            f"base_dir is {str(folder)!r}; with --restart it must be the folder of a run, "
            f"which holds {layout.GIN_CONFIG}"
        )
