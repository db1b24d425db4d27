"""Checks the configurations of a sweep, and finds out how long the runs are.

But for names and machines, it runs in a process of its own, because it imports TensorFlow and fills
gin's global configuration.
"""

import inspect
import socket
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

import gin

from log_dqn import checks, compat, games, scan
from log_dqn.program import gin_files, threads
from log_dqn.program.shell import explain
from log_dqn.run_folder import configuration
from log_dqn.single import request as single_request
from log_dqn.sweeps.plan import AgentPlan
from log_dqn.vectorized import request as vectorized_request


class SweepOptions(NamedTuple):
    """Options of the sweep, one of its games, and whether `log_dqn.train_vectorized` trains it."""

    agents: list[str]
    scans: list[str]
    gin_files: list[str]
    gin_bindings: list[str]
    game: str
    vectorized: bool


def check_names(agents: Sequence[str], vectorized: bool) -> None:
    """Checks the names of agents without importing these; raises ValueError if one is unknown."""
    known = vectorized_request.AGENTS if vectorized else single_request.AGENTS
    for agent in agents:
        checks.check("agent", agent, agent in known, f"one of {', '.join(known)}")


def check_machines(ray_address: str | None, cpus_per_run: float) -> None:
    """Checks, without importing Ray, what runs are to be trained on.

    Args:
        ray_address: see `cluster.connect`.
        cpus_per_run: CPUs of a run, which this machine must have where it is used alone.

    Raises:
        ValueError: if there is nothing at the address, or this machine lets it use fewer CPUs.
    """
    if ray_address is None:
        most = threads.cores()
        allowed = f"at most {most}, the CPUs that may be used here"
        checks.check("cpus_per_run", cpus_per_run, cpus_per_run <= most, allowed)
    elif ray_address != "auto":
        host, _, port = ray_address.rpartition(":")
        is_address = host and "://" not in host and port.isdecimal() and 0 < int(port) < 65536
        allowed = "auto, or the HOST:PORT of a Ray head node"
        checks.check("ray_address", ray_address, bool(is_address), allowed)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        except (OSError, UnicodeError) as error:  # A host's name may not be one.
            reason = getattr(error, "strerror", None) or error
            allowed = f"the address of a Ray head node that is running ({reason})"
            checks.check("ray_address", ray_address, False, allowed)


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


class _Single:
    """What is asked of `log_dqn.train`'s configurations."""

    def __init__(self, request: SweepOptions) -> None:
        with compat.quiet():
            from log_dqn.single import agents, start
        self._request, self._agents, self._start = request, agents, start

    def configure(self, agent: str, bindings: Sequence[str] = ()) -> None:
        """Fills gin's configuration, which it empties, for an agent."""
        gin.clear_config()
        lines = [*self._request.gin_bindings, *bindings]
        self._start.configure(self._request.gin_files, lines, game=self._request.game, agent=agent)

    def uses(self, agent: str, configurable: str, parameter: str) -> bool:
        """Returns whether a configured agent uses a configurable's parameter."""
        # An agent's parameter concerns the agents that read it there: `DQNAgent.gamma` not
        # LogDQN, which extends DQNAgent and has a gamma of its own. What is no agent's concerns
        # the agents whose configuration sets anything of it, such as their optimizer.
        name = configurable.rpartition("/")[2].rpartition(".")[2]
        if name in {cls.__name__ for cls in self._agents.agent_classes()}:
            return f"{name}.{parameter}" in self._agents.parameters_read(agent).values()
        return any(bound == name for bound, _, _ in configuration.bindings())

    def lengths(self, agent: str, scans: list[str]) -> list[tuple[int, int]]:
        """Checks an agent's settings in the grid of some scans; returns each one's lengths."""
        found = []
        for setting in scan.parse(scans):
            self.configure(agent, setting.gin_bindings())
            try:
                self._agents.check_settings(agent)
                _check_update(self._agents.AGENTS[agent])
                found.append(_length())
            except (ValueError, TypeError) as error:
                where = "/".join(filter(None, (agent, setting.name)))
                raise ValueError(f"{error} ({where})") from error
        return found


class _Vectorized:
    """The same of `log_dqn.train_vectorized`'s."""

    def __init__(self, request: SweepOptions) -> None:
        from log_dqn.vectorized import start

        self._request, self._start = request, start

    def configure(self, agent: str) -> None:
        """See `_Single`."""
        gin.clear_config()
        small = games.are_small([self._request.game])
        files, bindings = self._request.gin_files, self._request.gin_bindings
        self._start.configure(files, bindings, agent, small=small)

    def uses(self, agent: str, configurable: str, parameter: str) -> bool:
        """See `_Single`."""
        return bool(gin.get_bindings(configurable, resolve_references=False))

    def lengths(self, agent: str, scans: list[str]) -> list[tuple[int, int]]:
        """See `_Single`."""
        self.configure(agent)
        runners = [setting.runner for setting in self._start.read_settings(scans, agent)]
        self._start.check_fits(runners[0], self._request.game)  # They are alike.
        return [(r.num_iterations, r.training_steps + r.evaluation_steps) for r in runners]


def check(request: SweepOptions) -> list[AgentPlan]:
    """Checks all configurations of a sweep; returns the plan of each agent.

    Raises:
        ValueError: if an agent, a gin name, a file or a value is not what it must be.
    """
    program = _Vectorized(request) if request.vectorized else _Single(request)
    scans = {text: scan.read(text) for text in request.scans}
    plans = []
    for agent in request.agents:
        used = []
        for text, (parameter, values) in scans.items():
            program.configure(agent)
            configurable, _, name = parameter.rpartition(".")
            with gin_files.explained("scan", text):
                if program.uses(agent, configurable, name):
                    used.append(text)
                gin.parse_config(f"{parameter} = {values[0]!r}")
        plans.append(AgentPlan(agent, used, program.lengths(agent, used)))
    for text, (parameter, _) in scans.items():
        if not any(text in plan.scans for plan in plans):
            raise ValueError(
                f"scan is {text!r}; it must be of a parameter that one of the agents uses, and "
                f"{', '.join(request.agents)} {'do' if len(plans) > 1 else 'does'} not use "
                f"{parameter} ({gin_files.parameters_like(parameter)})"
            )
    return plans


def answer(connection: Connection, request: SweepOptions) -> None:
    """Sends the plans through a connection, or a ValueError of one line."""
    try:
        connection.send(check(request))
    except Exception as error:  # Whatever a gin file makes a configurable raise.
        connection.send(ValueError(explain(error)))
