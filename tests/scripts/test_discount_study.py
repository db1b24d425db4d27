"""The program of the study of discount factors."""

import pathlib
import sys

import pytest

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts"


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    import discount_study

    yield discount_study
    del sys.modules["discount_study"]


def test_no_report_before_the_main_stage_is_collected(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "DATA", tmp_path)
    header = "stage,game,agent,setting,gamma,seed"
    row = "epsilon,MinAtar/Freeway,log_dqn,x,0.96,1"
    (tmp_path / "minatar_scores.csv").write_text(f"{header},score\n{row},1.5\n")
    (tmp_path / "minatar_curves.csv").write_text(f"{header},iteration,mean_return\n{row},0,1.5\n")
    assert study.main(["report", f"--out={tmp_path / 'figures'}"]) == 2
    line = f"{tmp_path} has no run of the stage main; train and collect it first\n"
    error = capsys.readouterr().err
    assert error.endswith(f": error: {line}") and error.count("\n") == 1
    assert not (tmp_path / "figures").exists()
