"""The devices that JAX computes on."""

import os
from contextlib import AbstractContextManager
from typing import Any

import jax
from jaxlib import xla_client


def backend() -> str:
    """Starts JAX's devices where they aren't yet, and returns their platform."""
    try:
        return jax.default_backend()
    # JAX has no other way to say it, nor any words where there is no plugin.
    except (AssertionError, RuntimeError) as error:
        wanted = os.environ.get("JAX_PLATFORMS")
        reason = (str(error).splitlines() or ["there is none such"])[0]
        if not wanted:
            raise ValueError(
                f"JAX's device doesn't start ({reason}); JAX_PLATFORMS=cpu takes the CPU instead"
            ) from error
        raise ValueError(
            f"JAX_PLATFORMS is {wanted!r}; it must be left out, or name a platform that JAX finds "
            f"({reason})"
        ) from error


def side_by_side(count: int) -> list[jax.Device | None]:
    """Returns a device for each of some threads whose programs are to run at the same time.

    None stands for JAX's default. A CPU must be limited to a thread.

    Reason: from JAX 0.7 on, a CPU's programs take turns on their client's thread, whoever calls
    them; so each further device is of a client of its own.
    Can go: with a setting by which a program keeps to the thread that calls it.
    """
    if jax.__version_info__ < (0, 7) or jax.default_backend() != "cpu":
        return [None] * count
    clients: list[Any] = [xla_client.make_cpu_client(asynchronous=False) for _ in range(count - 1)]
    return [None, *(client.local_devices()[0] for client in clients)]


def in_precision(precision: str) -> AbstractContextManager[None]:
    """Returns a context in which products of float32 numbers are in one of `log_space.PRECISIONS`.

    JAX's own default is TF32 on a GPU that has it. With 'bfloat16' products of float32 numbers are
    in float32: what is rounded is for the caller to round.
    """
    return jax.default_matmul_precision("tensorfloat32" if precision == "tf32" else "highest")
