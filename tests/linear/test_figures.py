import csv
import math

import numpy as np
import pandas as pd
import pytest

from log_dqn.commands import linear_figures
from log_dqn.linear import experiments, figures
from log_dqn.linear.experiments import Options, Table
from tests.programs import python

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


def test_confidence_interval_by_hand():
    # Mean 2, standard deviation 1, and 4.3027 the 97.5% quantile of t with 2 degrees of freedom.
    low, high = figures.confidence_interval(np.array([[1.0, 2.0, 3.0]]))
    np.testing.assert_allclose([low[0], high[0]], [2 - 2.48414, 2 + 2.48414], rtol=1e-5)


def test_intervals_of_performance_stay_between_0_and_1():
    runs = np.array([[[0.0, 0.2, 0.7], [1.0, 1.0, 1.0]]])
    rows = pd.DataFrame([(1, 0.5, 0.3, 1.0)], columns=["width", "gamma", "early", "final"])
    table = figures.with_intervals(Table(rows, runs))
    half = 4.302653 * np.std([0.0, 0.2, 0.7], ddof=1) / np.sqrt(3)
    assert [*table.rows.iloc[0]] == pytest.approx(
        (1, 0.5, 0.3, 1.0, 0.0, min(0.3 + half, 1), 1.0, 1.0)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", COLUMNS)
def test_every_figure_is_written(name, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "RMS_SWEEPS", 500)
    monkeypatch.setattr(experiments, "CONVERGENCE_SWEEPS", 500)
    settings = Options(runs=3, sweeps=300, gammas=(0.5, 0.9))
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


@pytest.mark.parametrize("runs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_fewer_than_three_runs_have_no_intervals(tmp_path, runs):
    """With two, Student's t has one degree of freedom."""
    table = experiments.chain_regular(Options(runs=runs, sweeps=300, gammas=(0.5, 0.9)))
    figures.write("chain_regular", table, tmp_path)
    header = (tmp_path / "chain_regular.csv").read_text().splitlines()[0]
    assert header == "width,gamma,early,final"
    figure = figures.draw("chain_regular", table)
    assert [axes.collections[:] for axes in figure.axes] == [[], []]
    title = f"Chain task, regular Q-learning\n{runs} run{'s' * (runs - 1)}"
    assert figure.get_suptitle() == title


def test_bands_on_a_logarithmic_axis():
    """Wide ones too are symmetric there, and never reach 0."""
    runs = np.array([[1.0, 2.0, 3.0], [0.1, 0.1, 1.0]])
    low, high = figures.interval_on_log_axis(runs)
    # Half of the interval of the first mean is 2.48414, and of the second 1.29076.
    np.testing.assert_allclose(high, [2 * np.exp(2.48414 / 2), 0.4 * np.exp(1.29076 / 0.4)], 1e-4)
    np.testing.assert_allclose(low * high, runs.mean(axis=1) ** 2)
    assert (low > 0).all()
    rows = [
        (name, sweep, 0.4, 0.5) for name in ("all conditions", "beta_reg = 1") for sweep in (1, 9)
    ]
    columns = ["schedule", "sweep", "rms", "largest_error_ratio"]
    table = Table(pd.DataFrame(rows, columns=columns), np.full((4, 2, 3), [0.1, 0.1, 1.0]))
    figure = figures.draw("convergence", table)
    for band in figure.axes[0].collections:
        np.testing.assert_allclose(band.get_paths()[0].vertices[:, 1].min(), low[1])
    assert figure.axes[1].collections[:] == []


def test_small_discount_factors_are_on_the_axis():
    rows = pd.DataFrame({"width": 1, "gamma": [0.03, 0.05], "early": 0.5, "final": 0.5})
    for axes in figures.draw("chain_regular", Table(rows)).axes:
        low, high = axes.get_xlim()
        assert low < 0.03 and high > 1


def test_every_figure_says_what_it_is():
    assert tuple(experiments.EXPERIMENTS) == linear_figures.NAMES
    assert set(figures.FIGURES) == set(experiments.EXPERIMENTS)
    titles = [title for title, _ in figures.FIGURES.values()]
    assert len(set(titles)) == len(titles)


def test_tasks_are_drawn_in_cells_of_one_size():
    figure = figures.draw("metric_gap", experiments.metric_gaps(Options()))
    drawings = figure.axes[:3]
    sizes = {(np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())) for axes in drawings}
    assert sizes == {(9, 4)}


@pytest.mark.slow
def test_program(tmp_path):
    out, names = tmp_path / "new" / "folder", ("kappa_full", "metric_gap")
    done = python("-m", "log_dqn.commands.main", "figures", "--out", out, "--only", *names)
    assert done.returncode == 0
    first, *lines = done.stdout.splitlines()
    assert first == f"Starting kappa_full, metric_gap in {out}"
    assert lines == [f"{out / name}.png, .pdf and .csv" for name in names]
    assert done.stderr == ""  # No progress bar where there is no terminal.
    files = {f"{name}.{kind}" for name in names for kind in ("csv", "pdf", "png")}
    assert {path.name for path in out.iterdir()} == files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--gammas", "0.01", "--only", "metric_gap", "kappa_regular", "chain_log"],
            "gamma is 0.01; it must be at least 0.0317 with k = 200, so that gamma^k is a double",
        ),
        (
            ["--gammas", "0.5", "--only", "metric_gap"],
            "gammas is [0.5]; it must be left out without chain_regular, chain_log, hypotheses",
        ),
        (
            ["--runs", "3", "--only", "metric_gap", "kappa_full"],
            "runs is 3; it must be left out without chain_regular, chain_log, hypotheses, rms_err",
        ),
        (
            ["--seed", "7", "--only", "metric_gap", "kappa_full"],
            "seed is 7; it must be left out without chain_regular, chain_log, hypotheses, rms_err",
        ),
        (
            ["--constant_step_sizes", "--only", "rms_error"],
            "constant_step_sizes is True; it must be left out without chain_regular, chain_log, hy",
        ),
        (
            ["--unbounded_targets", "--only", "hypotheses"],
            "unbounded_targets is True; it must be left out without chain_regular, chain_log, whic",
        ),
    ],
)
def test_bad_input_is_one_line(arguments, message, tmp_path, capsys):
    assert linear_figures.main(["--out", str(tmp_path / "figures"), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (tmp_path / "figures").exists()


def test_a_discount_factor_given_twice_counts_once(tmp_path, monkeypatch):
    seen = []

    def experiment(settings):
        seen.append((settings.gammas, settings.chain.largest_target))
        return experiments.kappa_regular(settings)

    monkeypatch.setitem(experiments.EXPERIMENTS, "chain_regular", experiment)
    monkeypatch.setattr(figures, "write", lambda *_: None)
    gammas = ["--gammas", "0.9", "0.5", "0.9"]
    for more, bound in (([], 1), (["--unbounded_targets"], math.inf)):
        linear_figures.main(["--out", str(tmp_path), "--only", "chain_regular", *gammas, *more])
        assert seen.pop() == ((0.5, 0.9), bound)


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*arguments, **settings):
        raise OSError("No space left on device")

    monkeypatch.setattr(figures.Figure, "savefig", full)
    table = experiments.kappa_regular(Options())
    with pytest.raises(OSError, match="No space left"):
        figures.write("kappa_regular", table, tmp_path)
    assert list(tmp_path.iterdir()) == []
