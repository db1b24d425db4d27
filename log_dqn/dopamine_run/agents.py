"""The agents' classes, the parameters that they read from gin, and the configured agent."""

import contextlib
import inspect
import pkgutil
from typing import Any

import gin
import tensorflow as tf
from dopamine.jax.agents.dqn.dqn_agent import JaxDQNAgent
from dopamine.tf.agents.dqn.dqn_agent import DQNAgent
from dopamine.tf.agents.rainbow.rainbow_agent import RainbowAgent

from log_dqn import compat, minatar
from log_dqn.checks import check, check_one_of
from log_dqn.cli.gin_files import bound
from log_dqn.dopamine_run import gymnasium_game, request
from log_dqn.jax import devices
from log_dqn.tf import graph_hooks

AGENTS: dict[str, Any] = {
    name: pkgutil.resolve_name(place) for name, place in request.AGENTS.items()
}
"""The agents' classes."""


def agent_name() -> str:
    """Returns the agent that the gin configuration names (`create_agent.agent_name`)."""
    name = bound("create_agent.agent_name")
    check_one_of("agent", name, AGENTS)
    return name


def parameters_read(agent: str) -> dict[str, str]:
    """Returns an agent's parameters, each with where gin binds it: {'gamma': 'DQNAgent.gamma'}."""
    # An agent passes its parameters on to its parent of Dopamine, over those that gin binds there.
    read: dict[str, str] = {}
    for cls in reversed(AGENTS[agent].__mro__[:-1]):
        read |= {name: f"{cls.__name__}.{name}" for name in inspect.signature(cls).parameters}
    # `create_agent` gives these.
    given = ("self", "sess", "num_actions", "summary_writer", "seed")
    return {name: binding for name, binding in read.items() if name not in given}


def check_network_fits(agent: str) -> None:
    """Checks that an agent's network, and the states it is given, fit the configured game."""
    read = parameters_read(agent)

    def value(parameter: str, default: Any) -> Any:
        return bound(read[parameter], default)

    network = str(value("network", "@NatureDQNNetwork"))
    factory = request.configurable(bound("Runner.create_environment_fn"))
    if factory != request.MINATAR_FACTORY:
        allowed = "left out, or another, where the game isn't MinAtar's"
        check(read["network"], network, not network.endswith("RevisitingRainbowNetwork"), allowed)
        return
    of_jax = "Jax" * issubclass(AGENTS[agent], JaxDQNAgent)
    allowed = f"@{of_jax}RevisitingRainbowNetwork or another for MinAtar"
    check(read["network"], network, not network.endswith("NatureDQNNetwork"), allowed)
    shape = value("observation_shape", None)
    check(read["observation_shape"], shape, shape is None, "left out for MinAtar: the game has it")
    stack_size = value("stack_size", 4)
    is_one = stack_size == 1 or not isinstance(stack_size, int)  # A reference is taken to be right.
    check(read["stack_size"], stack_size, is_one, "1 for MinAtar")


def _fit_to(game: gymnasium_game.GymnasiumGame, agent: str) -> None:
    """Binds network and stack size for vectors in gin, unless they are bound."""
    on_jax = uses_jax(agent)
    has_plain_memory = on_jax or not issubclass(AGENTS[agent], RainbowAgent)
    allowed = f"False for {agent}, whose replay memory takes every end of an episode for terminal"
    check(
        "bootstrap_at_time_limit", game.bootstraps, has_plain_memory or not game.bootstraps, allowed
    )
    if len(game.observation_space.shape) > 1:
        return
    network = "@jax.networks.ClassicControlDQNNetwork" if on_jax else "@LunarLanderDQNNetwork"
    for parameter, value in {"network": network, "stack_size": "1"}.items():
        name = parameters_read(agent)[parameter]
        if bound(name) is None:
            with gin.unlock_config():  # Dopamine's own scripts lock it once it is read.
                gin.parse_config(f"{name} = {value}")


def uses_jax(agent: str | None = None) -> bool:
    """Returns whether an agent, or else the configured one, is one of Dopamine's JAX agents."""
    return issubclass(AGENTS[agent or agent_name()], JaxDQNAgent)


def has_gpu() -> bool:
    """Returns whether the configured agent finds a GPU."""
    with compat.quiet():  # Without one, the first look for it writes an error.
        if uses_jax():
            return devices.backend() == "gpu"
        return bool(tf.config.list_physical_devices("GPU"))


def prepare_tensorflow(agent: str | None = None) -> None:
    """Sets TensorFlow up before its first use: graphs for its own agents, not for JAX's.

    Beside a JAX agent TensorFlow writes TensorBoard's events only; it must leave the GPU alone,
    whose memory it would take whole.
    """
    if uses_jax(agent):
        # If TensorFlow runs in this process already, it is too late.
        with compat.quiet(), contextlib.suppress(RuntimeError):
            tf.config.set_visible_devices([], "GPU")
    else:
        compat.check_legacy_keras()
        tf.compat.v1.disable_v2_behavior()


def create_agent(
    sess: Any,
    environment: Any,
    summary_writer: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> DQNAgent | JaxDQNAgent:
    """Creates the configured agent. Dopamine's `create_agent` knows only its own agents.

    Args:
        sess: None, since TensorFlow agents make their session.
        environment: the environment.
        summary_writer: for TensorBoard.
        seed: for JAX agents; None for gin's. TensorFlow's take that of their default graph.
        name: the agent's name, if it is not the configured one.

    Raises:
        ValueError: if the environment's actions aren't discrete, or the memory is too small.
    """
    name = name or agent_name()
    actions = environment.action_space
    check("action_space", str(actions), hasattr(actions, "n"), "discrete")
    if isinstance(environment, gymnasium_game.GymnasiumGame):
        _fit_to(environment, name)
    parameters = {"num_actions": int(actions.n), "summary_writer": summary_writer}
    if isinstance(environment.environment.unwrapped, minatar.Game):
        parameters["observation_shape"] = environment.observation_space.shape
    if isinstance(environment, gymnasium_game.GymnasiumGame):
        space = environment.observation_space
        parameters["observation_shape"] = space.shape
        parameters["observation_dtype"] = (
            space.dtype if uses_jax(name) else tf.as_dtype(space.dtype)
        )
    if uses_jax(name):
        return AGENTS[name](**parameters, **({} if seed is None else {"seed": seed}))
    draws_in_graph = name == "implicit_quantile"
    with (
        graph_hooks.collect_losses() as losses,
        graph_hooks.save_random_state() if draws_in_graph else contextlib.nullcontext(),
    ):
        try:
            agent = AGENTS[name](sess, **parameters)
        except MemoryError as error:
            kind = "Prioritized" * issubclass(AGENTS[name], RainbowAgent)
            memory = f"Wrapped{kind}ReplayBuffer.replay_capacity"
            allowed = "less: there is not enough memory for it"
            raise ValueError(f"{memory} is {bound(memory)}; it must be {allowed}") from error
    for loss in losses:  # An optimizer with its own `minimize` has none, and no check.
        graph_hooks.install_loss_check(agent, loss)
    return agent
