"""From a run's folder to its agent and game, without running code that the folder names.

A run's configuration is taken from `config.json`, which is data. What it refers to must be
Dopamine's or this package's. `operative_config.gin`, from which gin imports what it names, is not
read.
"""

import contextlib
import importlib
import pathlib
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gin
import gymnasium
import numpy as np
import tensorflow as tf
from dopamine.discrete_domains import atari_lib, gym_lib

# For gin, which these register with.
from dopamine.discrete_domains import run_experiment as _run_experiment  # noqa: F401
from dopamine.jax import networks as _jax_networks  # noqa: F401
from dopamine.jax.replay_memory import replay_buffer as _replay_buffer  # noqa: F401

from log_dqn import atari, compat, games, minatar
from log_dqn.checks import check
from log_dqn.cli.gin_files import bound, explained
from log_dqn.cli.settings import CAPACITIES
from log_dqn.cli.shell import explain
from log_dqn.dopamine_run import agents, gymnasium_game, request, saved_run, seeding
from log_dqn.film import players
from log_dqn.film.game import BoardGame, DopamineGame
from log_dqn.jax import networks as _our_jax_networks  # noqa: F401
from log_dqn.run_folder import configuration, layout
from log_dqn.run_folder.checkpoints import CheckpointError
from log_dqn.tf import networks as _our_networks  # noqa: F401
from log_dqn.vectorized import agents as vectorized_agents
from log_dqn.vectorized import environments, jax_environments, runs, start
from log_dqn.vectorized.agents import RunnerSettings
from log_dqn.vectorized.environments import Game
from log_dqn.vectorized.jax_environments import JaxGame
from log_dqn.vectorized.request import own_id

_REMEDY = "there is nothing to play"

# Environments by their factories, each with the parameter that names the game.
_FACTORIES: dict[str, tuple[Callable[[], Any], str]] = {
    "create_environment": (atari.create_environment, "game_name"),
    "create_atari_environment": (atari_lib.create_atari_environment, "game_name"),
    request.MINATAR_FACTORY: (minatar.create_environment, "game_name"),
    "create_gym_environment": (gym_lib.create_gym_environment, "environment_name"),
    request.GYMNASIUM_FACTORY: (gymnasium_game.create_environment, "environment_id"),
}

# A name of gin's, and whether it is called; only optimizers may be.
_REFERENCE = re.compile(r"@(?:[\w.]+/)*([\w.]+)(\(\))?")
_CONSTANT = re.compile(r"%[\w.]+")
_CALLED = ("AdamOptimizer", "RMSPropOptimizer", "adam", "rmsprop_tf")


def load(run_dir: pathlib.Path, seed: int, env: str | None = None) -> players.TrainedAgent:
    """Rebuilds the agent and the game of a run, with the weights of its newest checkpoint.

    The replay memory is not read. `seed` is of what the agent draws, as IQN its quantiles. `env`
    names a vectorized run's environment if it is the user's own, which else isn't imported.
    """
    parameters = configuration.read(run_dir)
    named = [parameters.get(f"{factory}.environment_id") for factory in start.CREATORS]
    allowed = "left out: the run wasn't trained with an --env of train-vectorized"
    check("env", env, env is None or any(named), allowed)
    newest = _newest_checkpoint(run_dir)
    try:
        with compat.quiet(), compat.own_gin_configuration(), _own_random_state():
            if "VectorizedRunner.agent" in parameters:
                return _load_vectorized(run_dir, newest, parameters, env)
            return _load_single(run_dir, newest, parameters, seed)
    except (KeyError, TypeError) as error:
        config = run_dir / layout.CONFIG
        raise ValueError(f"{config} is not this version's: {explain(error)}") from error


@contextlib.contextmanager
def _own_random_state() -> Iterator[None]:
    """Gives the global generators, which loading seeds, their state back."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


_Checkpoint = tuple[pathlib.Path, Mapping[str, Any]]


def _newest_checkpoint(run_dir: pathlib.Path) -> _Checkpoint:
    """Returns the folder and the manifest of the newest usable checkpoint in our layout."""
    skipped = list[str]()
    try:
        found = layout.newest_checkpoint(run_dir, skipped.append, _REMEDY)
    except CheckpointError as error:
        raise CheckpointError("; ".join([str(error), *skipped[-1:]])) from error
    for reason in skipped:
        print(reason, file=sys.stderr)
    if found is None:
        raise ValueError(f"{run_dir} has no checkpoint of this package; {_REMEDY}")
    return found


# Runs of Dopamine's.


def _bind(run_dir: pathlib.Path, parameters: Mapping[str, Any], own: str = "") -> None:
    """Makes gin bind a run's parameters, of what this package, Dopamine and `own` have.

    `own` is the module of the user's environment, whose functions references may call.
    """
    lines = [
        f"{name} = {_in_gin(name, value, own)}"
        for name, value in parameters.items()
        if _is_known(name.rpartition("/")[2].rpartition(".")[0])
    ]
    with explained("--run", str(run_dir)):
        gin.parse_config(lines)
        # Memories aren't read; a small one saves gigabytes.
        gin.parse_config([f"{name} = 1000" for name in CAPACITIES])


def _in_gin(name: str, value: Any, own: str) -> str:
    check("parameter", name, bool(re.fullmatch(r"[\w./]+", name)), "a name of gin's")
    if not isinstance(value, str) or not value.startswith(("@", "%")):
        return repr(_with_tuples(value))
    reference = _REFERENCE.fullmatch(value)
    if reference is None:
        is_allowed = bool(_CONSTANT.fullmatch(value))
    else:
        is_known = _is_known(reference[1])
        may_call = reference[1].rpartition(".")[2] in _CALLED or (
            is_known and gin.get_configurable(reference[1]).__module__ == own
        )
        is_allowed = is_known and (may_call or not reference[2])
    allowed = "of Dopamine, this package or a module that is imported: loading imports none"
    check(name, value, is_allowed, allowed)
    return value


def _is_known(name: str) -> bool:
    """Returns whether gin has something of a name."""
    try:
        return gin.get_configurable(name) is not None
    except ValueError:
        return False


def _with_tuples(value: Any) -> Any:
    """Returns a value with the tuples that are lists in JSON, those in a dictionary too."""
    if isinstance(value, dict):
        return {key: _with_tuples(item) for key, item in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _environment(parameters: Mapping[str, Any]) -> tuple[str, Any]:
    """Returns the name of the configured game, and its environment; gin binds the parameters."""
    factory = str(parameters.get("Runner.create_environment_fn"))
    name = request.configurable(factory)
    allowed = f"one of {', '.join(_FACTORIES)} to be played"
    check("Runner.create_environment_fn", factory, name in _FACTORIES, allowed)
    create, parameter = _FACTORIES[name]
    game = str(bound(f"{name}.{parameter}"))
    if parameter == "game_name":
        games.check_game(game)
    elif parameter == "environment_id":
        _check_registered(game)
    else:
        _check_registered(f"{game}-{bound(f'{name}.version', 'v0')}")
    return game, create()


def _check_registered(environment_id: str) -> None:
    """Checks that gymnasium has an environment, without the import that 'module:id' stands for."""
    module, _, own_id = environment_id.rpartition(":")
    is_there = own_id in gymnasium.registry and (not module or module in sys.modules)
    allowed = "one of gymnasium's own, or of a module that is imported: loading imports none"
    check("env", environment_id, is_there, allowed)


def _load_single(
    run_dir: pathlib.Path, newest: _Checkpoint, parameters: Mapping[str, Any], seed: int
) -> players.TrainedAgent:
    _bind(run_dir, parameters)
    if not agents.uses_jax():
        agents.prepare_tensorflow()
    seeding.seed_everything(seed)
    game, environment = _environment(parameters)
    max_steps = int(parameters["Runner.max_steps_per_episode"])
    folder, manifest = newest
    with tf.Graph().as_default():
        agent = agents.create_agent(None, environment, seed=seed)
        saved_run.load_weights(folder, agent)
    agent.eval_mode = True
    made = players.on_jax if agents.uses_jax() else players.on_tensorflow
    return made(
        agent, game=DopamineGame(game, environment), game_name=game,
        iterations=manifest["iteration"] + 1, max_steps=max_steps,
    )  # fmt: skip


# Runs of vectorized training.


def _trained_on(
    run_dir: pathlib.Path, game: str, parameters: Mapping[str, Any], env: str | None
) -> Game:
    """Returns what a run was trained on: a game, or an environment."""
    most = parameters["VectorizedRunner.max_steps_per_episode"]
    if game in games.JAX_GAMES:
        return jax_environments.create_game(game, most)
    for factory, create in start.CREATORS.items():
        settings = _of(factory, parameters)
        name = settings.get("environment_id")
        if name is not None:
            is_told = env == name or (env is None and ":" not in own_id(name))
            allowed = f"{name!r}, on which the run was trained"
            check("env", env, is_told, f"{allowed}: loading imports nothing that a run names")
            if module := own_id(name).rpartition(":")[0]:
                with contextlib.suppress(Exception, SystemExit):  # `create` says what is wrong.
                    _bind(run_dir, parameters, importlib.import_module(module).__name__)
            return create(most, **_with_tuples(settings))
    return environments.ATARI


def _to_play(name: str, game: Game) -> DopamineGame | BoardGame:
    """Returns a vectorized run's game as it is played for a film."""
    if isinstance(game, JaxGame):
        return BoardGame(game)
    if game.make is not None:
        own = gymnasium_game.GymnasiumGame(game.make(), bootstraps=game.cuts)
        return DopamineGame(own_id(name), own)
    # The frames are the same as vectorized training's.
    return DopamineGame(name, atari.create_environment(name))


def _load_vectorized(
    run_dir: pathlib.Path, newest: _Checkpoint, parameters: Mapping[str, Any], env: str | None
) -> players.TrainedAgent:
    folder, manifest = newest
    # First: the environment's module may have the network too.
    made = _trained_on(run_dir, manifest["game"], parameters, env)
    settings = _of("VectorizedRunner", parameters)
    named = _REFERENCE.fullmatch(str(settings["network"]))
    if named is not None and _is_known(named[1]):
        short = configuration.by_short_name(parameters)
        given = _with_tuples(_of(named[1].rpartition(".")[2], short))
        settings["network"] = gin.get_configurable(named[1])(**given)
    runner = RunnerSettings(**settings)
    agent_class: Any = vectorized_agents.AGENTS[runner.agent]
    agent = agent_class(**_of(agent_class.__name__, parameters))
    game_name, max_steps = manifest["game"], runner.max_steps_per_episode
    game, dtype = _to_play(game_name, made), np.dtype(made.frame_dtype)
    network = start.create_network(runner, made)
    state_shape = (*made.frame_shape, runner.stack_size)
    num_actions = len(game.action_names)
    params = runs.load_params(folder, agent, network, state_shape, num_actions)
    return players.vectorized(
        agent, network, params, num_actions, state_shape=state_shape, dtype=dtype, game=game,
        game_name=game_name, iterations=manifest["iteration"] + 1, max_steps=max_steps,
    )  # fmt: skip


def _of(configurable: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters of a configurable, by their own names."""
    prefix = f"{configurable}."
    return {n.removeprefix(prefix): v for n, v in parameters.items() if n.startswith(prefix)}
