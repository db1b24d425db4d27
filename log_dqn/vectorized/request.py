"""What is asked of a job, and the checks of it that don't need JAX."""

from collections.abc import Sequence

from log_dqn.checks import check_one_of
from log_dqn.program import gin_files as files

AGENTS = ("log_dqn", "loglin_dqn", "dqn")
"""Names of the agents."""


def check(
    gin_files: Sequence[str], gin_bindings: Sequence[str], agent: str | None, small: bool
) -> None:
    """Checks names, files and bindings; see `start.configure` for what they are.

    Raises:
        ValueError: if the agent or a file doesn't exist, or a file or binding isn't gin.
    """
    if agent is not None:
        check_one_of("agent", agent, AGENTS)
    files.check(gin_files or [default_file(agent, small)], gin_bindings)


def default_file(agent: str | None, small: bool) -> str:
    """Returns the name of an agent's gin file, for MinAtar or else for Atari."""
    return f"vectorized_{agent or files.DEFAULT_AGENT}{'_minatar' * small}.gin"
