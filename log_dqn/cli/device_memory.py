"""Limits how much of a GPU's memory JAX takes; its default is three quarters."""

from collections.abc import MutableMapping

# Either sets the share; JAX's plugin for GPUs refuses both together.
VARIABLES = ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION")
# The driver and the libraries need the rest.
_MOST = 0.95


def limit(environment: MutableMapping[str, str], gpus: float = 1.0) -> None:
    """Limits the GPU memory of processes, unless the user has set a limit.

    Args:
        environment: environment variables of the processes, changed in place. They may be this
            process's own before JAX starts.
        gpus: the processes' share of a GPU, at most 1.
    """
    if not any(name in environment for name in VARIABLES):
        environment[VARIABLES[0]] = f"{_MOST * gpus:g}"
