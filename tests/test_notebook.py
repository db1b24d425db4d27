"""The notebook: it is saved with its outputs, and runs from top to bottom."""

import os
import pathlib
import sys

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from log_dqn.results import runs
from tests.programs import NEEDS_MINATAR

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
@NEEDS_MINATAR
def test_it_runs_and_both_agents_learn(tmp_path, monkeypatch):
    # As pip installs it, for a checkout that is not installed.
    command = tmp_path / "log-dqn"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m log_dqn.commands.main "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(PATH, as_version=4)
    where = {"metadata": {"path": str(PATH.parent)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()
    assert pictures(notebook) == ["image/png", "image/png", "image/gif", "image/png"]
    (folder,) = tmp_path.glob("*/runs")
    returns: dict[str, list[np.ndarray]] = {}
    for run in runs.read_runs(folder, "train", print):
        returns.setdefault(run.agent, []).append(run.returns)
    assert [one.shape for one in returns.pop("log_dqn")] == [(6,)]  # Freeway's.
    assert set(returns) == {f"{a}/gamma={g}" for a in ("log_dqn", "dqn") for g in (0.6, 0.99)}
    for of_agent in returns.values():
        # Three seeds: at first one ball in six is caught, at the end half of them or more.
        curve = np.mean(of_agent, axis=0)
        assert curve.shape == (30,) and curve[0] < -0.5 and curve[-5:].mean() > 0
