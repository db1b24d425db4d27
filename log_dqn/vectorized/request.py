"""What is asked of a job, and the checks of it that don't need JAX."""

from collections.abc import Sequence

from log_dqn.checks import check_one_of
from log_dqn.program import gin_files as files

AGENTS = ("log_dqn", "loglin_dqn", "dqn")
"""Names of the agents."""


def check(
    gin_files: Sequence[str],
    gin_bindings: Sequence[str],
    agent: str | None,
    small: bool,
    scans: Sequence[str] = (),
) -> files.Written:
    """Checks names, files, bindings and scans; returns what they say.

    Unless gin files name an agent, they build on that agent's own: that for MinAtar where the games
    are `small`, else that for Atari. No agent leaves the configuration's.
    """
    if agent is not None:
        check_one_of("agent", agent, AGENTS)
    to_read = files.complete(
        gin_files, gin_bindings, agent, "VectorizedRunner.agent", {"dqn": "VectorizedDQNAgent"},
        lambda name: default_file(name, small),
    )  # fmt: skip
    return files.parse_checked(to_read, gin_bindings, scans)


def default_file(agent: str | None, small: bool) -> str:
    """Returns the name of an agent's gin file, for MinAtar or else for Atari."""
    agent = agent or files.DEFAULT_AGENT
    check_one_of("agent", agent, AGENTS)
    return f"vectorized_{agent}{'_minatar' * small}.gin"
