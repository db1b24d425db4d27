"""In what precision a device multiplies float32 numbers."""

from contextlib import AbstractContextManager

import jax


def in_precision(precision: str) -> AbstractContextManager[None]:
    """Returns a context whose products are in one of `log_space.PRECISIONS`.

    JAX's own default is TF32 on a GPU that has it. With 'bfloat16' products of float32 numbers are
    in float32: what is rounded is for the caller to round.
    """
    return jax.default_matmul_precision("tensorfloat32" if precision == "tf32" else "highest")
