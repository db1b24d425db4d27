"""The program of the study of discount factors."""

import pytest


@pytest.fixture
def study(load):
    return load("discount_study")


HEADER = "stage,game,agent,setting,gamma,seed"


@pytest.mark.parametrize(
    ("row", "missing"),
    [
        ("epsilon,MinAtar/Freeway,log_dqn,x,0.96,1", "log_dqn and dqn"),
        ("main,MinAtar/Freeway,log_dqn,x,0.96,1", "dqn"),
    ],
)
def test_no_report_before_both_agents_are_collected(
    study, tmp_path, monkeypatch, capsys, row, missing
):
    monkeypatch.setattr(study, "DATA", tmp_path)
    (tmp_path / "minatar_scores.csv").write_text(f"{HEADER},score\n{row},1.5\n")
    (tmp_path / "minatar_curves.csv").write_text(f"{HEADER},iteration,mean_return\n{row},0,1.5\n")
    assert study.main(["report", f"--out={tmp_path / 'figures'}"]) == 2
    line = f"{tmp_path} has no whole seed of {missing} in the stage main; train and collect it"
    error = capsys.readouterr().err
    assert f": error: {line}" in error and error.count("\n") == 1
    assert not (tmp_path / "figures").exists()


def test_no_report_where_nothing_can_be_written(study, tmp_path, capsys):
    file = tmp_path / "figures"
    file.write_text("mine")
    assert study.main(["report", f"--out={file}"]) == 2
    error = capsys.readouterr().err
    assert f"error: out is '{file}'; it must be a folder that can be written" in error
    assert error.count("\n") == 1
