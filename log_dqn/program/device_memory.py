"""How much of a GPU's memory JAX takes: three quarters, unless it is told."""

from collections.abc import MutableMapping

# What says it; JAX's plugin for GPUs refuses both together.
VARIABLES = ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION")
# Of a GPU; the driver and the libraries want the rest.
_MOST = 0.95


def limit(environment: MutableMapping[str, str], gpus: float = 1.0) -> None:
    """Makes processes take their part of a GPU, at most 1, where the user hasn't said how much.

    Their environment is changed; it may be the own, before JAX starts.
    """
    if not any(name in environment for name in VARIABLES):
        environment[VARIABLES[0]] = f"{_MOST * gpus:g}"
