"""How many cores a process computes on."""

import os

from log_dqn.checks import check_count

# What the libraries read when they are imported or first used: OpenMP, BLAS, TensorFlow (within an
# operation, and operations side by side), and XLA on a CPU.
_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "NPROC",
)

_CACHE = "JAX_COMPILATION_CACHE_DIR"


def cores() -> int:
    """Returns how many cores the process may use."""
    return len(os.sched_getaffinity(0))


def chosen(option: int | None) -> int:
    """Returns the threads of the option `--threads`, by default one a core.

    Raises:
        ValueError: if there are not as many cores.
    """
    if option is not None:
        check_count("threads", option, most=cores())
    return cores() if option is None else option


def limit(threads: int) -> None:
    """Makes the libraries compute in so many threads; to be called before they are imported."""
    os.environ.update(dict.fromkeys(_VARIABLES, str(threads)))
    # XLA compiles convolutions for a number of threads, and ends the process where there are more;
    # JAX's cache of what it has compiled doesn't know of this.
    if folder := os.environ.get(_CACHE):
        os.environ[_CACHE] = os.path.join(folder, f"{threads}_threads")
