import log_dqn  # noqa: F401  First, as for a user: it decides what TensorFlow writes, else JAX does.

# isort: split

import os
import pathlib
import random
import shutil
import signal
import tempfile
from unittest import mock

import hypothesis
import jax
import numpy as np
import pytest
import tensorflow as tf

from log_dqn import compat
from log_dqn.program import progress
from tests import programs

# What JAX compiles is kept, for the next run of the tests, too: many tests, the programs that they
# start, and pytest's second process compile the same.
COMPILED = pathlib.Path(__file__).parents[1] / ".pytest_cache" / "jax"
for name, value in {
    "jax_compilation_cache_dir": str(COMPILED),
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}.items():
    os.environ[name.upper()] = str(value)
    jax.config.update(name, value)

# The same examples in every run, however slow the machine.
hypothesis.settings.register_profile("seeded", derandomize=True, deadline=None)
hypothesis.settings.load_profile("seeded")

# Hold back TensorFlow's start-up notes, so that pytest's output stays readable.
with compat.quiet():
    import dopamine.discrete_domains.run_experiment  # noqa: F401


def pytest_xdist_auto_num_workers(config):
    """Two processes for the whole suite; tests that are named run in this one, for debuggers."""
    is_whole = config.args_source is config.ArgsSource.TESTPATHS and not config.option.keyword
    return 2 if is_whole else 0


@pytest.fixture(autouse=True)
def seeded():
    """Seeds the global generators, from which Dopamine samples and explores."""
    random.seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def graph():
    """Gives each test a graph and an empty configuration, as a new program has them."""
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
    with tempfile.TemporaryFile() as file:
        monkeypatch.setenv(progress.FILE_VARIABLE, str(file.fileno()))
        yield file.fileno()


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Fills a folder as `programs.run` does, with a copy of what the same arguments gave before."""
    folders = {}

    def fill(base_dir, *arguments):
        if arguments not in folders:
            folders[arguments] = tmp_path_factory.mktemp("trained")
            assert programs.run(folders[arguments], *arguments) == 0
        shutil.copytree(folders[arguments], base_dir, dirs_exist_ok=True)

    return fill
