import importlib
import pathlib
import sys

import pytest

from tests.scripts import SCRIPTS


def pytest_collection_modifyitems(items):
    """Marks all of this folder as slow: studies and benchmarks, on which no agent depends."""
    folder = pathlib.Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker("slow")


@pytest.fixture
def load(monkeypatch):
    """Imports a module of `scripts/`, as for a program that is run, for one test."""
    monkeypatch.syspath_prepend(SCRIPTS)
    before = set(sys.modules)  # What other tests hold stays the one that programs import.
    yield importlib.import_module
    for name, module in list(sys.modules.items()):
        if name not in before and pathlib.Path(
            getattr(module, "__file__", None) or "/"
        ).is_relative_to(SCRIPTS):
            del sys.modules[name]
