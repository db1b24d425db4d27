import importlib
import pathlib
import sys

import pytest

from tests.scripts import SCRIPTS


@pytest.fixture
def load(monkeypatch):
    """Imports a module of `scripts/`, as for a program that is run, for one test."""
    monkeypatch.syspath_prepend(SCRIPTS)
    yield importlib.import_module
    for name, module in list(sys.modules.items()):
        if pathlib.Path(getattr(module, "__file__", None) or "/").is_relative_to(SCRIPTS):
            del sys.modules[name]
