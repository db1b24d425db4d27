"""What all tests share. pytest's first process, which only counts, imports nothing that is slow."""

import gc
import os
import pathlib
import random
import shutil
import signal
import tempfile
from unittest import mock

import hypothesis
import numpy as np
import pytest

# What JAX compiles is kept, for the next run of the tests, too: many tests, the programs that they
# start, and pytest's second process compile the same. JAX reads it when it is imported.
os.environ |= {
    "JAX_COMPILATION_CACHE_DIR": str(pathlib.Path(__file__).parents[1] / ".pytest_cache" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    # The lines of code that each operation stems from, for profilers, take time.
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
}
# Compilation is most of what the tests of JAX take. With few optimizations, XLA's older code
# generator for CPUs and one thread it is a third, but with none Seaquest's steps take eight times
# as long. programs.AS_USERS_DO undoes it.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true"
    " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)

# The same examples in every run, however slow the machine.
hypothesis.settings.register_profile("seeded", derandomize=True, deadline=None)
hypothesis.settings.load_profile("seeded")


def pytest_xdist_auto_num_workers(config):
    """A process a core, two to four, for the whole suite; named tests run in this one."""
    is_whole = config.args_source is config.ArgsSource.TESTPATHS and not config.option.keyword
    return min(max(2, len(os.sched_getaffinity(0))), 4) if is_whole else 0


def pytest_collection_modifyitems(items):
    """Whole programs that take a minute come first, so that no process waits for one at the end."""
    long = ("test_kills.py", "test_notebook.py", "test_sweep.py", "test_gpu.py", "test_crash.py")
    items.sort(key=lambda item: item.path.name not in long)


def pytest_collection(session):
    """Holds back TensorFlow's start-up notes, so that pytest's output stays readable."""
    if session.config.option.dist != "no":  # The first process collects nothing.
        return
    from log_dqn import compat

    with compat.quiet():
        import dopamine.discrete_domains.run_experiment  # noqa: F401
    # A tenth of the time would go into looking for garbage among what libraries keep for good.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True)
def seeded():
    """Seeds the global generators, from which Dopamine samples and explores."""
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def graph():
    """Gives each test a graph and an empty configuration, as a new program has them."""
    import tensorflow as tf

    from tests import programs

    programs.forget()
    tf.compat.v1.disable_v2_behavior()
    with tf.Graph().as_default():
        tf.compat.v1.set_random_seed(0)
        yield
    programs.forget()


@pytest.fixture(autouse=True)
def same_process():
    """Takes back what programs set in the process: its environment, its handlers of signals."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    with mock.patch.dict(os.environ):
        yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def numbers(monkeypatch):
    """A file in which training leaves the numbers of its progress, by its number."""
    from log_dqn.cli import progress

    with tempfile.TemporaryFile() as file:
        monkeypatch.setenv(progress.FILE_VARIABLE, str(file.fileno()))
        yield file.fileno()


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Fills a folder as `programs.run` does, with a copy of what the same arguments gave before."""
    from tests import programs

    folders = {}

    def fill(base_dir, *arguments):
        if arguments not in folders:
            folders[arguments] = tmp_path_factory.mktemp("trained")
            assert programs.run(folders[arguments], *arguments) == 0
        shutil.copytree(folders[arguments], base_dir, dirs_exist_ok=True)

    return fill
