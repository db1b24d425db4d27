"""What a run tells other programs of its iterations."""

import json
import os
import sys
from unittest import mock

import pytest

from log_dqn.dopamine_run import reports
from tests.programs import CARTPOLE, iterations, python, run


def test_the_numbers_of_an_iteration():
    statistics = {
        "train_episode_lengths": [3, 4], "train_episode_returns": [1.0, 2.0],
        "train_average_return": [1.5], "eval_episode_returns": [7.0], "eval_average_return": [7.0],
        "train_average_steps_per_second": [20],
    }  # fmt: skip
    assert reports.record(1, 3, statistics) == {
        "iteration": 2, "num_iterations": 3, "train_episodes": 2, "train_average_return": 1.5,
        "eval_episodes": 1, "eval_average_return": 7.0, "train_average_steps_per_second": 20.0,
    }  # fmt: skip


@pytest.mark.slow
def test_json_alone_on_standard_output(tmp_path, capsys):
    command = ["--json", "--seed=1", *CARTPOLE, iterations(2)]
    assert run(tmp_path, *command) == 0
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["iteration"], line["num_iterations"]) for line in lines] == [(1, 2), (2, 2)]
    first_words = [line.split()[0] for line in err.splitlines()]
    assert first_words == ["Starting", "Training", "Film", "Train"]
    assert run(tmp_path, *command) == 0
    out, err = capsys.readouterr()
    assert out == "" and "This run has finished its 2 iterations." in err


@pytest.mark.slow
def test_tracking_goes_on_with_the_same_run_and_restarts_with_another(
    tmp_path, capsys, monkeypatch
):
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    command = ["--track", "--seed=1", *CARTPOLE, iterations(2)]
    name = tmp_path / "wandb" / "run_id"

    def written():
        return sorted(tmp_path.glob(f"wandb/offline-run-*-{name.read_text()}/*.wandb"))

    assert run(tmp_path, *command, iterations(1)) == 0
    assert capsys.readouterr().err == ""
    (first,) = written()
    logged = first.read_bytes()
    for part in (b"train_average_return", b"eval_episodes", b"LogDQNAgent.gamma"):
        assert part in logged
    assert run(tmp_path, *command) == 0
    assert len(written()) == 2
    before = name.read_text()
    assert run(tmp_path, *command, "--restart") == 0
    assert name.read_text() != before and len(written()) == 1


def test_a_name_that_a_kill_has_left_empty_is_drawn_again_and_kept(tmp_path, monkeypatch):
    init = mock.Mock()
    monkeypatch.setitem(sys.modules, "wandb", mock.Mock(init=init))
    name = tmp_path / "wandb" / "run_id"
    name.parent.mkdir()
    name.touch()
    ids = []
    for _ in range(2):
        reports.Tracker(tmp_path, {})
        ids.append(init.call_args.kwargs["id"])
    assert len(ids[0]) == 8 and ids == [name.read_text()] * 2


@pytest.mark.slow
def test_tracking_where_nobody_is_logged_in_leaves_nothing_behind(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    nobody = {"HOME": str(tmp_path), "NETRC": str(tmp_path / "none")}
    arguments = [f"--base_dir={tmp_path / 'run'}", "--track", *CARTPOLE]
    done = python("-m", "log_dqn.train", *arguments, env=nobody)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert "track is True; it must be left out, or WANDB_MODE be offline" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_tracking_with_a_setting_that_cannot_be_names_it(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="the extra wandb is not installed")
    wandb.teardown()  # It reads its settings once in a process.
    monkeypatch.setenv("WANDB_MODE", "nowhere")
    with pytest.raises(ValueError, match="Biases refuses: mode: Input should be 'online'"):
        reports.Tracker(tmp_path, {})
