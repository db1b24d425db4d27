import random
import tempfile

import hypothesis
import numpy as np
import pytest

import log_dqn  # noqa: F401  (makes Dopamine importable)
from log_dqn import compat
from log_dqn.program import progress

# The same examples in every run, however slow the machine.
hypothesis.settings.register_profile("seeded", derandomize=True, deadline=None)
hypothesis.settings.load_profile("seeded")

# Hold back TensorFlow's start-up notes, so that pytest's output stays readable.
with compat.quiet():
    import dopamine.discrete_domains.run_experiment  # noqa: F401


@pytest.fixture(autouse=True)
def seeded():
    """Seeds the global generators, from which Dopamine samples and explores."""
    random.seed(0)
    np.random.seed(0)


@pytest.fixture
def numbers(monkeypatch):
    """A file in which training leaves the numbers of its progress, by its number."""
    with tempfile.TemporaryFile() as file:
        monkeypatch.setenv(progress.FILE_VARIABLE, str(file.fileno()))
        yield file.fileno()
