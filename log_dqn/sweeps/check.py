"""Checks the configurations of a sweep, and finds out how long the runs are.

It runs in a process of its own, because it imports TensorFlow and fills gin's global configuration.
"""

import inspect
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

import gin

from log_dqn import checks, compat, games, scan
from log_dqn.program import gin_files
from log_dqn.program.shell import explain
from log_dqn.run_folder import configuration
from log_dqn.single import request as single_request
from log_dqn.sweeps.plan import AgentPlan
from log_dqn.vectorized import request as vectorized_request


class Request(NamedTuple):
    """Options of the sweep, and one of its games."""

    agents: list[str]
    scans: list[str]
    gin_files: list[str]
    gin_bindings: list[str]
    game: str


def check_names(agents: Sequence[str], vectorized: bool) -> None:
    """Checks the names of agents without importing these; raises ValueError if one is unknown."""
    known = vectorized_request.AGENTS if vectorized else single_request.AGENTS
    for agent in agents:
        checks.check("agent", agent, agent in known, f"one of {', '.join(known)}")


def _check_update(agent_class: type) -> None:
    """Checks the settings of LogDQN's update, as its agents do when they are created."""
    from log_dqn import log_space
    from log_dqn.single import agents

    if agent_class not in (agents.AGENTS["log_dqn"], agents.AGENTS["jax_log_dqn"]):
        return
    bindings = gin.get_bindings(agent_class.__name__, resolve_references=False)
    names = inspect.signature(log_space.LogUpdate).parameters
    log_space.LogUpdate(**{name: bindings[name] for name in names if name in bindings})


def _length() -> tuple[int, int]:
    """Returns the configured number of iterations and of agent steps in one."""
    from dopamine.discrete_domains import run_experiment

    from log_dqn.single import runner

    parameters = inspect.signature(run_experiment.Runner.__init__).parameters
    bindings = gin.get_bindings("Runner")
    counts = {}
    for name in ("num_iterations", "training_steps", "evaluation_steps"):
        counts[name] = bindings.get(name, parameters[name].default)
        checks.check_count(name, counts[name])
    evaluates = runner.schedule() == "continuous_train_and_eval"
    steps = counts["training_steps"] + evaluates * counts["evaluation_steps"]
    return counts["num_iterations"], steps


def check(request: Request) -> list[AgentPlan]:
    """Checks all configurations of a sweep of `log_dqn.train`.

    Raises:
        ValueError: if an agent, a gin name, a file or a value is not what it must be.
    """
    with compat.quiet():
        from log_dqn.single import agents, start

    def configure(agent: str, bindings: Sequence[str] = ()) -> None:
        lines = [*request.gin_bindings, *bindings]
        start.configure(request.gin_files, lines, game=request.game, agent=agent)

    def uses(agent: str, configurable: str, parameter: str) -> bool:
        # An agent's parameter concerns the agents that read it there: `DQNAgent.gamma` not
        # LogDQN, which extends DQNAgent and has a gamma of its own. What is no agent's concerns
        # the agents whose configuration sets anything of it, such as their optimizer.
        name = configurable.rpartition("/")[2].rpartition(".")[2]
        if name in {cls.__name__ for cls in agents.agent_classes()}:
            return f"{name}.{parameter}" in agents.parameters_read(agent).values()
        return any(bound == name for bound, _, _ in configuration.bindings())

    def lengths(agent: str, scans: list[str]) -> list[tuple[int, int]]:
        found = []
        for setting in scan.parse(scans):
            gin.clear_config()
            configure(agent, setting.gin_bindings())
            try:
                agents.check_settings(agent)
                _check_update(agents.AGENTS[agent])
                found.append(_length())
            except (ValueError, TypeError) as error:
                where = "/".join(filter(None, (agent, setting.name)))
                raise ValueError(f"{error} ({where})") from error
        return found

    return _plans(request, configure, uses, lengths)


def check_vectorized(request: Request) -> list[AgentPlan]:
    """Does what `check` does, for `log_dqn.train_vectorized`."""
    from log_dqn.vectorized import start

    small = games.are_small([request.game])

    def configure(agent: str) -> None:
        start.configure(request.gin_files, request.gin_bindings, agent, small=small)

    def uses(agent: str, configurable: str, parameter: str) -> bool:
        return bool(gin.get_bindings(configurable, resolve_references=False))

    def lengths(agent: str, scans: list[str]) -> list[tuple[int, int]]:
        protocols = [setting.protocol for setting in start.read_settings(scans, agent)]
        start.check_fits(protocols[0], request.game)  # They are alike.
        return [(p.num_iterations, p.training_steps + p.evaluation_steps) for p in protocols]

    return _plans(request, configure, uses, lengths)


def _plans(
    request: Request,
    configure: Callable[[str], None],
    uses: Callable[[str, str, str], bool],
    lengths: Callable[[str, list[str]], list[tuple[int, int]]],
) -> list[AgentPlan]:
    """Returns the plan of each agent.

    Args:
        request: what to check.
        configure: fills gin's empty configuration for an agent.
        uses: whether a configured agent uses a configurable's parameter.
        lengths: checks an agent's settings in the grid of some scans; gives iterations, and agent
            steps of an iteration, of each.
    """
    scans = {text: scan.read(text) for text in request.scans}
    plans = []
    for agent in request.agents:
        used = []
        for text, (parameter, values) in scans.items():
            gin.clear_config()
            configure(agent)
            configurable, _, name = parameter.rpartition(".")
            with gin_files.explained("scan", text):
                if uses(agent, configurable, name):
                    used.append(text)
                gin.parse_config(f"{parameter} = {values[0]!r}")
        gin.clear_config()
        configure(agent)
        plans.append(AgentPlan(agent, used, lengths(agent, used)))
    for text, (parameter, _) in scans.items():
        if not any(text in plan.scans for plan in plans):
            raise ValueError(
                f"scan is {text!r}; it must be of a parameter that one of the agents uses, and "
                f"{', '.join(request.agents)} {'do' if len(plans) > 1 else 'does'} not use "
                f"{parameter}"
            )
    return plans


def answer(connection: Connection, request: Request, vectorized: bool) -> None:
    """Sends the plans through a connection, or a ValueError of one line."""
    try:
        connection.send((check_vectorized if vectorized else check)(request))
    except Exception as error:  # Whatever a gin file makes a configurable raise.
        connection.send(ValueError(explain(error)))
