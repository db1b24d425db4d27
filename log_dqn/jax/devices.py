"""The devices that JAX computes on."""

import os

import jax


def backend() -> str:
    """Starts JAX's devices where they aren't yet, and returns their platform.

    Raises:
        ValueError: if the platforms that the user wants aren't here, or a device doesn't start.
    """
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
