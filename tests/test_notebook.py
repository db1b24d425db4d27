"""The notebook: it is saved with its outputs, and runs from top to bottom."""

import os
import re
import sys

import pytest

from log_dqn.results import runs
from tests.programs import ROOT

pytestmark = pytest.mark.slow
PATH = ROOT / "docs" / "log_dqn.ipynb"
# As pip installs it, for a checkout that is not installed; but its demo trains for 5,000 steps.
COMMAND = f"""#!{sys.executable}
import sys
from log_dqn.commands import demo, main
demo._ITERATIONS, demo._STEPS, demo._FILM_STEPS = 2, 2_500, 20
for lines in demo._SETTINGS.values():
    lines.append("VectorizedRunner.training_steps=2500")
sys.exit(main.main())
"""


def outputs(notebook):
    """What the cells have put out, in order."""
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def pictures(notebook):
    """The kinds of pictures among the outputs, in order."""
    kinds = [kind for output in outputs(notebook) for kind in output.get("data", ())]
    return [kind for kind in kinds if kind.startswith("image/")]


def test_it_is_saved_as_it_ran_once_and_log_dqn_is_far_ahead():
    import nbformat

    notebook = nbformat.read(PATH, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert "error" not in [output.output_type for output in outputs(notebook)]
    assert pictures(notebook) == ["image/png", "image/png", "image/gif", "image/png"]
    assert PATH.stat().st_size < 1_000_000
    said = "".join(output.get("text", "") for output in outputs(notebook))
    log_dqn, dqn = map(float, re.search(r"return is ([\d.]+), DQN's ([\d.]+)", said).groups())
    assert log_dqn > 3 * dqn and log_dqn > 30


def test_it_runs(tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    command = tmp_path / "log-dqn"
    command.write_text(COMMAND)
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(PATH, as_version=4)
    for cell in notebook.cells:  # Where the package is installed, its command comes first.
        cell.source = cell.source.replace("log-dqn demo", f"{command} demo")
    where = {"metadata": {"path": str(PATH.parent)}}
    NotebookClient(notebook, timeout=1800, kernel_name="python3", resources=where).execute()
    assert pictures(notebook) == ["image/png", "image/png", "image/gif", "image/png"]
    (folder,) = tmp_path.glob("*/demo/gamma=0.5")
    curves = {run.agent: run.returns for run in runs.read_runs(folder, "train", print)}
    assert {agent: curve.shape for agent, curve in curves.items()} == {"log_dqn": (2,), "dqn": (2,)}
    # The demo's page shows them, and its files are there.
    page = (folder.parent / "demo.html").read_text("utf-8")
    shown = dict(re.findall("<td>(.*)</td><td>(.*)</td>", page))
    names = {"LogDQN": "log_dqn", "DQN": "dqn"}
    assert shown == {name: f"{curves[agent][-1]:.1f}" for name, agent in names.items()}
    files = re.findall(r'(?:src|srcset|href)="([^":]+)"', page)
    assert len(files) > 3
    for file in files:
        assert (folder.parent / file).stat().st_size > 1000
