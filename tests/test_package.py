"""What the package says of itself."""

import importlib.metadata
import pathlib
import re

import pytest

import log_dqn

ROOT = pathlib.Path(__file__).resolve().parents[1]


def test_the_version_stands_once():
    number = re.compile(rf'"{re.escape(log_dqn.__version__)}"')
    sources = [ROOT / "setup.py", *ROOT.glob("log_dqn/**/*.py"), ROOT / "CITATION.cff"]
    found = [path for path in sources if number.search(path.read_text("utf-8"))]
    assert found == [ROOT / "log_dqn" / "__init__.py"]


def test_the_installed_package_has_the_version_and_its_types():
    try:
        distribution = importlib.metadata.distribution("log_dqn")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("log_dqn is not installed")
    assert distribution.version == log_dqn.__version__
    assert (pathlib.Path(log_dqn.__file__).parent / "py.typed").is_file()
