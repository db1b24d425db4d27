"""Prints the installed versions, for bug reports: `log-dqn version`."""

import argparse
import importlib.metadata
import platform
from collections.abc import Sequence

from log_dqn import __version__
from log_dqn.cli import shell

_SHOWN = ("dopamine-rl", "tensorflow", "jax", "flax", "numpy", "gymnasium", "ale-py", "ray")


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    return shell.Parser(
        prog=shell.started_as("version"),
        description="Prints the versions of log_dqn, Python and libraries, for bug reports.",
    )


def _print_versions(_: argparse.Namespace) -> None:
    print(f"log_dqn {__version__}\nPython {platform.python_version()}")
    for name in _SHOWN:
        try:
            print(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            print(name, "is not installed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the versions; returns the exit status."""
    return shell.run_command(create_parser(), _print_versions, arguments)
