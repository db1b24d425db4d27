"""From a run's folder to its agent and game, without running code that the folder names.

A run's configuration is taken from `config.json`, which is data. What it refers to must be
Dopamine's or this package's. `operative_config.gin`, from which gin imports what it names, is not
read.
"""

import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gin
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from dopamine.discrete_domains import atari_lib, gym_lib

# For gin, which these register with.
from dopamine.discrete_domains import run_experiment as _run_experiment  # noqa: F401
from dopamine.jax import networks as _jax_networks  # noqa: F401
from dopamine.jax.replay_memory import replay_buffer as _replay_buffer  # noqa: F401

from log_dqn import atari, games, minatar
from log_dqn.checks import check
from log_dqn.film import game as film_game
from log_dqn.film import players
from log_dqn.film.episode import Agent, Game
from log_dqn.jax import networks as _our_jax_networks  # noqa: F401
from log_dqn.program.gin_files import bound, explained
from log_dqn.program.shell import explain
from log_dqn.run_folder import configuration, data, layout
from log_dqn.single import agents, seeding
from log_dqn.tf import networks as _our_networks  # noqa: F401
from log_dqn.vectorized import agents as vectorized_agents
from log_dqn.vectorized import environments, jax_games, networks, runs
from log_dqn.vectorized.schedule import RunnerSettings

_CHECKPOINT = re.compile(r"(?:tf_ckpt-(\d+)|(\d+)/weights)\.index")
_REMEDY = "there is nothing to play"

# Memories aren't read; a small one saves gigabytes.
_MEMORIES = (
    "WrappedReplayBuffer.replay_capacity", "WrappedPrioritizedReplayBuffer.replay_capacity",
    "ReplayBuffer.max_capacity", "PrioritizedSamplingDistribution.max_capacity",
)  # fmt: skip

# Environments by their factories, each with the parameter that names the game.
_FACTORIES: dict[str, tuple[Callable[[], Any], str]] = {
    "create_environment": (atari.create_environment, "game_name"),
    "create_atari_environment": (atari_lib.create_atari_environment, "game_name"),
    agents.MINATAR_FACTORY: (minatar.create_environment, "game_name"),
    "create_gym_environment": (gym_lib.create_gym_environment, "environment_name"),
}

# A name of gin's, and whether it is called; only optimizers may be.
_REFERENCE = re.compile(r"@(?:[\w.]+/)*([\w.]+)(\(\))?")
_CONSTANT = re.compile(r"%[\w.]+")
_CALLED = ("AdamOptimizer", "RMSPropOptimizer", "adam", "rmsprop_tf")


class Player(NamedTuple):
    """An agent in its game.

    Attributes:
        agent: the agent, with the weights of its newest checkpoint.
        game: the game.
        game_name: its name.
        iterations: finished iterations of training.
        max_steps: agent steps after which training left an episode.
    """

    agent: Agent
    game: Game
    game_name: str
    iterations: int
    max_steps: int


def load(run_dir: pathlib.Path, seed: int) -> Player:
    """Rebuilds the agent and the game of a run, with the weights of its newest checkpoint.

    The replay memory is not read.

    Args:
        run_dir: folder of a run.
        seed: seeds the game.

    Raises:
        ValueError: if the folder holds no run, or one that can't be played.
        checkpoints.CheckpointError: if no checkpoint is usable.
        OSError: if a file can't be read.
        ModuleNotFoundError: if what draws the game is not installed.
    """
    parameters = configuration.read(run_dir)
    try:
        if "VectorizedRunner.agent" in parameters:
            return _load_vectorized(run_dir, parameters, seed)
        if "create_agent.agent_name" in parameters:
            return _load_single(run_dir, parameters, seed)
    except (KeyError, TypeError) as error:
        config = run_dir / layout.CONFIG
        raise ValueError(f"{config} is not this version's: {explain(error)}") from error
    raise ValueError(f"{run_dir} is not a run; it has no {layout.CONFIG} that names an agent")


def newest_weights(run_dir: pathlib.Path) -> tuple[str, int]:
    """Finds a run's newest TensorFlow variables, in this package's layout or in Dopamine's.

    Returns:
        The prefix for TensorFlow's `Saver`, and the iteration.

    Raises:
        ValueError: if there are none.
    """
    root = layout.checkpoints_dir(run_dir)
    found = [
        (int(match[1] or match[2]), str(path.with_suffix("")))
        for path in root.glob("**/*.index")
        if (match := _CHECKPOINT.fullmatch(path.relative_to(root).as_posix()))
    ]
    if not found:
        raise ValueError(f"{run_dir} has no checkpoint of a TensorFlow agent in {root}")
    iteration, prefix = max(found)
    return prefix, iteration


def _newest_checkpoint(run_dir: pathlib.Path) -> tuple[pathlib.Path, Mapping[str, Any]]:
    """Returns the folder and the manifest of the newest usable checkpoint in our layout."""
    found = layout.newest_checkpoint(run_dir, lambda skipped: None, _REMEDY)
    if found is None:
        raise ValueError(f"{run_dir} has no checkpoint of this package; {_REMEDY}")
    return found


# Runs of Dopamine's.


def _bind(run_dir: pathlib.Path, parameters: Mapping[str, Any]) -> None:
    """Makes gin bind a run's parameters, of what this package and Dopamine have.

    Raises:
        ValueError: if one refers to anything else, or isn't gin.
    """
    lines = [
        f"{name} = {_in_gin(name, value)}"
        for name, value in parameters.items()
        if _is_known(name.rpartition("/")[2].rpartition(".")[0])
    ]
    gin.clear_config()
    with explained("--run", str(run_dir)):
        gin.parse_config(lines)
        gin.parse_config([f"{name} = 1000" for name in _MEMORIES])


def _in_gin(name: str, value: Any) -> str:
    check("parameter", name, bool(re.fullmatch(r"[\w./]+", name)), "a name of gin's")
    if not isinstance(value, str) or not value.startswith(("@", "%")):
        return repr(_with_tuples(value))
    reference = _REFERENCE.fullmatch(value)
    if reference is None:
        is_allowed = bool(_CONSTANT.fullmatch(value))
    else:
        of_optimizer = reference[1].rpartition(".")[2] in _CALLED
        is_allowed = _is_known(reference[1]) and (of_optimizer or not reference[2])
    allowed = "of Dopamine or of this package: a film runs no other code that a run names"
    check(name, value, is_allowed, allowed)
    return value


def _is_known(name: str) -> bool:
    """Returns whether gin has something of a name."""
    try:
        return gin.get_configurable(name) is not None
    except ValueError:
        return False


def _with_tuples(value: Any) -> Any:
    """Returns a value with the tuples that are lists in JSON."""
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _environment(parameters: Mapping[str, Any]) -> tuple[str, Any]:
    """Returns the name of the configured game, and its environment; gin binds the parameters."""
    factory = str(parameters.get("Runner.create_environment_fn"))
    name = factory.rpartition(".")[2].removeprefix("@")
    allowed = f"one of {', '.join(_FACTORIES)} to be played"
    check("Runner.create_environment_fn", factory, name in _FACTORIES, allowed)
    create, parameter = _FACTORIES[name]
    game = bound(f"{name}.{parameter}")
    if name == "create_gym_environment":
        # gymnasium would import the module that an id "module:game" begins with.
        environment_id = f"{game}-{bound(f'{name}.version', 'v0')}"
        is_known = environment_id in gymnasium.registry
        check("game", environment_id, is_known, "one of gymnasium's own")
    else:
        games.check_game(game)
    return str(game), create()


def _load_single(run_dir: pathlib.Path, parameters: Mapping[str, Any], seed: int) -> Player:
    _bind(run_dir, parameters)
    agents.agent_name()
    agents.prepare_tensorflow()
    seeding.seed_everything(seed)
    game, environment = _environment(parameters)
    played = film_game.DopamineGame(game, environment, seed)
    max_steps = int(parameters["Runner.max_steps_per_episode"])
    agent: Agent
    if agents.uses_jax():
        folder, manifest = _newest_checkpoint(run_dir)
        iteration = manifest["iteration"]
        agent = _jax_player(folder, environment, seed)
    else:
        prefix, iteration = newest_weights(run_dir)
        agent = _tensorflow_player(run_dir, prefix, environment)
    return Player(agent, played, game, iteration + 1, max_steps)


def _tensorflow_player(
    run_dir: pathlib.Path, prefix: str, environment: Any
) -> players.TensorFlowPlayer:
    with tf.Graph().as_default():
        agent = agents.create_agent(None, environment)
        try:
            agent._saver.restore(agent._sess, prefix)
        except Exception as error:  # TensorFlow has many kinds for a damaged checkpoint.
            reason = str(error).splitlines()[0]
            raise ValueError(f"{run_dir}: {prefix} cannot be read: {reason}") from error
    agent.eval_mode = True
    return players.TensorFlowPlayer(agent)


def _jax_player(folder: pathlib.Path, environment: Any, seed: int) -> players.JaxPlayer:
    agent = agents.create_agent(None, environment, seed=seed)
    agent.eval_mode = True
    agent.online_params = _fill(folder, agent.online_params, _saved(folder, "online_params"))
    return players.JaxPlayer(agent)


def _saved(folder: pathlib.Path, name: str) -> Any:
    try:
        return data.load(folder / "agent")[name]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder} cannot be read: {error}") from error


def _fill(folder: pathlib.Path, tree: Any, leaves: list[np.ndarray]) -> Any:
    """Returns a tree with other leaves, of the same shapes."""
    old, structure = jax.tree.flatten(tree)
    if [leaf.shape for leaf in old] != [np.shape(leaf) for leaf in leaves]:
        raise ValueError(f"{folder} cannot be read: its weights are those of another network")
    return jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves])


# Runs of vectorized training.


def _load_vectorized(run_dir: pathlib.Path, parameters: Mapping[str, Any], seed: int) -> Player:
    gin.clear_config()
    protocol = RunnerSettings(**_of("VectorizedRunner", parameters))
    agent_class: Any = vectorized_agents.AGENTS[protocol.agent]
    agent = agent_class(**_of(agent_class.__name__, parameters))
    folder, manifest = _newest_checkpoint(run_dir)
    game_name, max_steps = manifest["game"], protocol.max_steps_per_episode
    game: Game
    if game_name in jax_games.GAMES:
        made = jax_games.create(game_name, max_steps)
        game, frame_shape = film_game.BoardGame(made, seed), made.frame_shape
    else:
        # The frames are the same as vectorized training's.
        environment = atari.create_environment(game_name)
        game = film_game.DopamineGame(game_name, environment, seed)
        frame_shape = environments.FRAME_SHAPE
    network = networks.NETWORKS[protocol.network]
    state_shape = (*frame_shape, protocol.stack_size)
    num_actions = len(game.action_names)
    params = runs.load_params(folder, agent, network, state_shape, num_actions)
    player = players.VectorizedPlayer(agent, network, params, state_shape, num_actions)
    return Player(player, game, game_name, manifest["iteration"] + 1, max_steps)


def _of(configurable: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters of a configurable, by their own names."""
    prefix = f"{configurable}."
    return {n.removeprefix(prefix): v for n, v in parameters.items() if n.startswith(prefix)}
