import csv
import runpy
import subprocess
import sys

import numpy as np
import pytest

from log_dqn.linear import experiments, figures
from log_dqn.linear.experiments import Options, Table

SCRIPT = "scripts/linear_figures.py"
COLUMNS = {
    "metric_gap": "task,gamma,f_optimal,f_learned",
    "chain_regular": "width,gamma,early,final,early_low,early_high,final_low,final_high",
    "chain_log": "width,gamma,early,final,early_low,early_high,final_low,final_high",
    "kappa_regular": "variant,gamma,kappa",
    "kappa_deterministic": "variant,gamma,kappa",
    "kappa_full": "variant,gamma,kappa",
    "rms_error": "beta_reg,sweep,rms",
    "hypotheses": "variation,width,gamma,early,final",
    "convergence": "schedule,sweep,rms,largest_error_ratio",
}


def program(*arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True
    )


def test_confidence_interval_by_hand():
    # Mean 2, standard deviation 1, and 4.3027 the 97.5% quantile of t with 2 degrees of freedom.
    low, high = figures.confidence_interval(np.array([[1.0, 2.0, 3.0]]))
    np.testing.assert_allclose([low[0], high[0]], [2 - 2.48414, 2 + 2.48414], rtol=1e-5)


def test_intervals_of_performance_stay_between_0_and_1():
    runs = np.array([[[0.0, 0.2, 0.7], [1.0, 1.0, 1.0]]])
    table = figures.with_intervals(
        Table(("width", "gamma", "early", "final"), [(1, 0.5, 0.3, 1.0)], runs)
    )
    half = 4.302653 * np.std([0.0, 0.2, 0.7], ddof=1) / np.sqrt(3)
    assert table.rows[0] == pytest.approx((1, 0.5, 0.3, 1.0, 0.0, min(0.3 + half, 1), 1.0, 1.0))


@pytest.mark.parametrize("name", COLUMNS)
def test_every_figure_is_written(name, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "RMS_SWEEPS", 500)
    monkeypatch.setattr(experiments, "CONVERGENCE_SWEEPS", 500)
    settings = Options(runs=2, sweeps=300, gammas=(0.5, 0.9))
    figures.write(name, experiments.EXPERIMENTS[name](settings), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{name}.csv",
        f"{name}.pdf",
        f"{name}.png",
    ]
    assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.reader((tmp_path / f"{name}.csv").open()))
    assert ",".join(rows[0]) == COLUMNS[name]
    assert len(rows) > 8
    assert {len(row) for row in rows} == {len(rows[0])}


def test_one_run_has_no_intervals(tmp_path):
    settings = Options(sweeps=300, gammas=(0.5, 0.9))
    figures.write("chain_regular", experiments.chain_regular(settings), tmp_path)
    header = (tmp_path / "chain_regular.csv").read_text().splitlines()[0]
    assert header == "width,gamma,early,final"


def test_program(tmp_path):
    done = program("--out", tmp_path / "new" / "folder", "--only", "kappa_full", "metric_gap")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"{tmp_path / 'new' / 'folder' / name}.png, .pdf and .csv"
        for name in ("kappa_full", "metric_gap")
    ]
    assert done.stderr == ""  # No progress bar where there is no terminal.
    names = {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    kinds = ("csv", "pdf", "png")
    assert names == {f"{name}.{kind}" for name in ("kappa_full", "metric_gap") for kind in kinds}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gammas", "0.5", "1.5"], "gamma is 1.5; it must be between 0 and 1"),
        (
            ["--gammas", "0.01", "--only", "metric_gap", "kappa_regular", "chain_log"],
            "k is 200; at gamma 0.01 it must be above 0 and at most 150",
        ),
        (["--only", "kappa"], "unknown figure kappa; the figures are metric_gap, chain_regular"),
        (["--runs", "0"], "runs is 0; it must be 1 or more"),
        (["--runs", "two"], "argument --runs: invalid int value: 'two'"),
    ],
)
def test_bad_input_is_one_line(arguments, message, tmp_path):
    done = program("--out", tmp_path / "figures", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "figures").exists()


def test_empty_out():
    main = runpy.run_path(SCRIPT)["main"]
    with pytest.raises(ValueError, match="--out: the folder's name is empty"):
        main(["--out", ""])


def test_a_discount_factor_given_twice_counts_once(tmp_path, monkeypatch):
    main = runpy.run_path(SCRIPT)["main"]
    seen = []

    def experiment(settings):
        seen.append(settings.gammas)
        return experiments.kappa_regular(settings)

    monkeypatch.setitem(experiments.EXPERIMENTS, "kappa_regular", experiment)
    gammas = ["--gammas", "0.9", "0.5", "0.9"]
    main(["--out", str(tmp_path), "--only", "kappa_regular", *gammas])
    assert seen == [(0.5, 0.9)]


def test_out_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("kept")
    done = program("--out", tmp_path / "file" / "figures")
    assert done.returncode == 2
    assert str(tmp_path / "file") in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "file").read_text() == "kept"


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*arguments, **settings):
        raise OSError("No space left on device")

    monkeypatch.setattr(figures.Figure, "savefig", full)
    table = experiments.kappa_regular(Options())
    with pytest.raises(OSError, match="No space left"):
        figures.write("kappa_regular", table, tmp_path)
    assert list(tmp_path.iterdir()) == []
