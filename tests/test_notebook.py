"""The notebook: it is saved with its outputs, and runs from top to bottom."""

import os
import pathlib
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from log_dqn.results import runs

ROOT = pathlib.Path(__file__).resolve().parents[1]
PATH = ROOT / "docs" / "log_dqn.ipynb"


def pictures(notebook):
    """The kinds of pictures among the outputs, in order."""
    return [
        kind
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        for kind in output.get("data", ())
        if kind.startswith("image/")
    ]


def test_it_is_saved_as_it_ran_once():
    notebook = nbformat.read(PATH, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert "error" not in [output.output_type for cell in cells for output in cell.outputs]
    assert pictures(notebook) == ["image/png", "image/png", "image/gif", "image/png"]
    assert PATH.stat().st_size < 1_000_000


@pytest.mark.slow
def test_it_runs_and_log_dqn_is_far_ahead(tmp_path, monkeypatch):
    # As pip installs it, for a checkout that is not installed.
    command = tmp_path / "log-dqn"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m log_dqn.commands.main "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(PATH, as_version=4)
    where = {"metadata": {"path": str(PATH.parent)}}
    NotebookClient(notebook, timeout=1800, kernel_name="python3", resources=where).execute()
    assert pictures(notebook) == ["image/png", "image/png", "image/gif", "image/png"]
    (folder,) = tmp_path.glob("*/demo/gamma=0.5")
    curves = {run.agent: run.returns for run in runs.read_runs(folder, "train", print)}
    assert {agent: curve.shape for agent, curve in curves.items()} == {"log_dqn": (6,), "dqn": (6,)}
    assert curves["log_dqn"][-1] > 3 * curves["dqn"][-1] and curves["log_dqn"][-1] > 30
