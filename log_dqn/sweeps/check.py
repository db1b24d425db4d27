"""Checks the configurations of a sweep, in a process of its own: `python -m log_dqn.sweeps.check`.

Reads a request from standard input and writes the answer to standard output, both JSON. It has
its own process because it imports TensorFlow and fills gin's global configuration.
"""

import inspect
import json
import sys
from typing import Any

import gin

from log_dqn import compat, games, scan
from log_dqn.checks import check_count
from log_dqn.program import gin_files
from log_dqn.program.shell import explain


def _check_update(agent_class: type) -> None:
    """Checks the settings of LogDQN's update, as its agents do when they are created."""
    from log_dqn import log_space
    from log_dqn.single import agents

    if agent_class not in (agents.AGENTS["log_dqn"], agents.AGENTS["jax_log_dqn"]):
        return
    bindings = gin.get_bindings(agent_class.__name__, resolve_references=False)
    names = inspect.signature(log_space.LogUpdate).parameters
    log_space.LogUpdate(**{name: bindings[name] for name in names if name in bindings})


def _uses(agent: str, configurable: str, parameter: str) -> bool:
    """Returns whether a scan of a gin parameter concerns the configured agent.

    An agent's parameter concerns the agents that read it there: `DQNAgent.gamma` not LogDQN,
    which extends DQNAgent and has a gamma of its own. What is no agent's concerns the agents
    whose configuration sets anything of it, such as their optimizer.
    """
    from log_dqn.single import agents

    name = gin.get_configurable(configurable).__name__
    if any(cls.__name__ == name for cls in agents.agent_classes()):
        return f"{name}.{parameter}" in agents.parameters_read(agent).values()
    return bool(gin.get_bindings(configurable, resolve_references=False))


def _length() -> tuple[int, int]:
    """Returns the configured number of iterations and of agent steps in one."""
    from dopamine.discrete_domains import run_experiment

    from log_dqn.single import runner

    parameters = inspect.signature(run_experiment.Runner.__init__).parameters
    names = ("num_iterations", "training_steps", "evaluation_steps")
    counts = {name: parameters[name].default for name in names}
    bindings = gin.get_bindings("Runner")
    counts |= {name: bindings[name] for name in names if name in bindings}
    for name, count in counts.items():
        check_count(name, count)
    evaluates = runner.schedule() == "continuous_train_and_eval"
    return (
        counts["num_iterations"],
        counts["training_steps"] + evaluates * counts["evaluation_steps"],
    )


def check(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Checks all configurations of a sweep.

    Args:
        request: `agents`, `gin_files`, `gin_bindings` and `scans` as given to the sweep, and one
            `game`.

    Returns:
        For each agent the `scans` that concern it, and for each setting `num_iterations` and
        `steps_per_iteration`.

    Raises:
        ValueError: if an agent, a gin name, a file or a value is not what it must be.
    """
    from log_dqn.single import agents, start

    scans = {text: scan.read(text) for text in request["scans"]}

    def configure(agent: str, bindings: list[str]) -> None:
        gin.clear_config()
        start.configure(
            request["gin_files"],
            [*request["gin_bindings"], *bindings],
            game=request["game"],
            agent=agent,
        )

    answer = []
    for agent in request["agents"]:
        configure(agent, [])
        used = []
        for text, (parameter, values) in scans.items():
            with gin_files.explained("scan", text):
                gin.parse_config(f"{parameter} = {values[0]!r}")
            configure(agent, [])
            configurable, _, name = parameter.rpartition(".")
            if _uses(agent, configurable, name):
                used.append(text)
        lengths = []
        for setting in scan.parse(used):
            configure(agent, setting.gin_bindings())
            try:
                agents.check_settings(agent)
                _check_update(agents.AGENTS[agent])
                lengths.append(_length())
            except (ValueError, TypeError) as error:
                where = f" ({agent}/{setting.name})" if setting.name else f" ({agent})"
                raise ValueError(f"{error}{where}") from error
        answer.append(
            {
                "scans": used,
                "num_iterations": [iterations for iterations, _ in lengths],
                "steps_per_iteration": [steps for _, steps in lengths],
            }
        )
    _check_all_are_used(request["agents"], scans, answer)
    return answer


def check_vectorized(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Does what `check` does, for `log_dqn.train_vectorized`."""
    from log_dqn.vectorized import start

    scans = {text: scan.read(text) for text in request["scans"]}

    def configure(agent: str) -> None:
        gin.clear_config()
        small = games.are_small([request["game"]])
        start.configure(request["gin_files"], request["gin_bindings"], agent, small=small)

    answer = []
    for agent in request["agents"]:
        used = []
        configure(agent)
        for text, (parameter, values) in scans.items():
            configurable = parameter.rpartition(".")[0]
            with gin_files.explained("scan", text):
                uses = bool(gin.get_bindings(configurable, resolve_references=False))
                gin.parse_config(f"{parameter} = {values[0]!r}")
            if uses:
                used.append(text)
        configure(agent)  # Without the scans that concern other agents.
        protocols = [setting.protocol for setting in start.read_settings(used, agent)]
        start.check_fits(protocols[0], request["game"])  # They are alike.
        answer.append(
            {
                "scans": used,
                "num_iterations": [protocol.num_iterations for protocol in protocols],
                "steps_per_iteration": [
                    protocol.training_steps + protocol.evaluation_steps for protocol in protocols
                ],
            }
        )
    _check_all_are_used(request["agents"], scans, answer)
    return answer


def _check_all_are_used(
    agents: list[str], scans: dict[str, scan.Scan], answer: list[dict[str, Any]]
) -> None:
    for text, (parameter, _) in scans.items():
        if not any(text in agent["scans"] for agent in answer):
            raise ValueError(
                f"scan is {text!r}; it must be of a parameter that one of the agents uses, and "
                f"{', '.join(agents)} {'do' if len(agents) > 1 else 'does'} not use {parameter}"
            )


def main() -> int:
    """Answers one request; returns the exit status."""
    request = json.load(sys.stdin)
    if not request["vectorized"]:
        with compat.quiet():
            from log_dqn.single import agents  # noqa: F401
    try:
        answer = (check_vectorized if request["vectorized"] else check)(request)
        json.dump({"agents": answer}, sys.stdout)
    except Exception as error:
        # (Whatever a gin file makes a configurable raise; the answer must be one line.)
        json.dump({"error": explain(error)}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
