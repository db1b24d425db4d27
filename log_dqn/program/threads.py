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


def check_option(threads: int | None) -> None:
    """Checks the option `--threads`; raises ValueError unless there are as many cores."""
    if threads is not None:
        check_count("threads", threads, most=cores())


def limit(threads: int) -> None:
    """Makes the libraries compute in so many threads; to be called before they are imported."""
    os.environ.update(dict.fromkeys(_VARIABLES, str(threads)))
    # XLA compiles convolutions for a number of threads, and ends the process where there are more;
    # JAX's cache of what it has compiled doesn't know of this.
    if folder := os.environ.get(_CACHE):
        os.environ[_CACHE] = os.path.join(folder, f"{threads}_threads")
