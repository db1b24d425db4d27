"""Runs that stop, die, or find their files damaged."""

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import pickle
import resource
import shutil
import signal
from unittest import mock

import gin
import numpy as np
import pytest
import tensorflow as tf
from dopamine.discrete_domains import run_experiment

from log_dqn import train
from log_dqn.dopamine_run import agents, request, runner, saved_run, start
from log_dqn.run_folder import data, layout, lock
from tests.programs import (
    CARTPOLE,
    assert_same_run,
    few_quantiles,
    iterations,
    read_log,
    run,
    tiny,
)
from tests.vectorized import toys

SLOW = pytest.mark.slow
SEED = "--seed=4"
GYMNASIUM = ["--agent=log_dqn", "--env=CartPole-v1", *CARTPOLE[1:]]
QUANTILES = [
    "--agent=implicit_quantile", *tiny("RainbowAgent"), *few_quantiles("ImplicitQuantileAgent")
]  # fmt: skip


def test_a_vectorized_run_is_not_resumed(tmp_path, capsys):
    short = dataclasses.replace(toys.RUNNER, num_iterations=1, training_steps=60)
    toys.make_trainer(tmp_path, runner=short).train()
    before = sorted(tmp_path.rglob("*"))
    assert run(tmp_path / "1", *CARTPOLE, SEED) == 2
    assert capsys.readouterr().err.endswith(
        f"log-dqn train: error: {tmp_path}/1/checkpoints/0 is of vectorized training; "
        "log_dqn.train_vectorized resumes from it\n"
    )
    assert sorted({*tmp_path.rglob("*")} - {tmp_path / "1" / lock.NAME}) == before


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        pytest.param(["--agent=rainbow", *tiny("RainbowAgent")], 2, marks=SLOW),
        pytest.param(QUANTILES, 2, marks=SLOW),
        (CARTPOLE, 3),
        pytest.param(GYMNASIUM, 2, marks=SLOW),
    ],
    ids=["rainbow", "implicit_quantile", "cartpole", "gymnasium"],
)
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, trained, arguments, number):
    last = number - 1
    trained(tmp_path / "whole", *arguments, SEED, iterations(number))
    trained(tmp_path / "pieces", *arguments, SEED, iterations(1))
    for finished in range(2, number + 1):
        assert run(tmp_path / "pieces", *arguments, SEED, iterations(finished)) == 0
    assert_same_run(tmp_path / "whole", tmp_path / "pieces", last)
    metrics = [
        pickle.loads((tmp_path / name / "metrics" / "pickle" / f"pickle_{last}.pkl").read_bytes())
        for name in ("whole", "pieces")
    ]
    assert set(metrics[0]) == set(metrics[1]) == {f"iteration_{i}" for i in range(number)}
    for iteration, statistics in metrics[0].items():
        for name in ("Train/NumEpisodes", "Train/AverageReturns", "Eval/AverageReturns"):
            assert statistics[name] == metrics[1][iteration][name]


def interrupt(monkeypatch, base_dir, action):
    """Calls `action` before the 15th step after the first checkpoint."""
    original = runner.ResumableRunner._run_one_step
    left = iter(range(15, 0, -1))

    def step_or_act(self, move):
        if (base_dir / "checkpoints" / "0").exists() and next(left, 0) == 1:
            action()
        return original(self, move)

    monkeypatch.setattr(runner.ResumableRunner, "_run_one_step", step_or_act)


@SLOW
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_and_the_next_start_goes_on(
    tmp_path, trained, capsys, monkeypatch, number
):
    pieces = tmp_path / "pieces"

    def stop():
        with pytest.raises(ValueError, match="it must not be in use"), lock.hold(pieces):
            pass
        os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        interrupt(patch, pieces, stop)
        assert run(pieces, *CARTPOLE, SEED, iterations(3)) == 128 + number
    assert capsys.readouterr().err == (
        f"log-dqn train: stopped by {number.name}; the same command resumes from the start of this "
        f"iteration; the last good checkpoint is {pieces}/checkpoints/0\n"
    )
    assert run(pieces, *CARTPOLE, SEED, iterations(3)) == 0
    resumed, *lines = capsys.readouterr().out.splitlines()[1:]
    assert resumed.endswith("; resumed from iteration 1")
    assert [line.split(":")[0] for line in lines[:-2]] == ["iteration 2/3", "iteration 3/3"]
    trained(tmp_path / "whole", *CARTPOLE, SEED, iterations(3))
    assert_same_run(tmp_path / "whole", pieces, 2)


@SLOW
def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_gone_on_from(
    tmp_path, trained, capsys
):
    whole, hurt = tmp_path / "whole", tmp_path / "hurt"
    trained(whole, *CARTPOLE, SEED, iterations(3))
    trained(hurt, *CARTPOLE, SEED, iterations(2))
    capsys.readouterr()
    (hurt / "checkpoints" / "1" / "weights.index").unlink()
    assert run(hurt, *CARTPOLE, SEED, iterations(3)) == 0
    out, err = capsys.readouterr()
    assert err == (
        f"log-dqn train: warning: checkpoint 1 in {hurt}/checkpoints is damaged and is "
        "skipped: weights.index is missing\n"
    )
    assert [line.split(":")[0] for line in out.splitlines()[2:4]] == [
        "iteration 2/3",
        "iteration 3/3",
    ]
    assert_same_run(whole, hurt, 2)

    before = read_log(hurt, 2)
    for number in (1, 2):
        os.truncate(hurt / "checkpoints" / str(number) / "replay_observation.npy.zst", 10)
    assert run(hurt, *CARTPOLE, SEED, iterations(4)) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"log-dqn train: error: none of the checkpoints in {hurt}/checkpoints is usable; "
        "--restart starts over"
    )
    assert read_log(hurt, 2) == before  # nothing was overwritten
    assert run(hurt, *CARTPOLE, SEED, iterations(3), "--restart") == 0
    assert_same_run(whole, hurt, 2)


def test_logs_without_a_checkpoint_are_not_started_over(tmp_path, trained, capsys):
    trained(tmp_path, *CARTPOLE, SEED, iterations(1))
    shutil.rmtree(tmp_path / "checkpoints")
    capsys.readouterr()
    assert run(tmp_path, *CARTPOLE, SEED, iterations(1)) == 2
    assert capsys.readouterr().err == (
        f"log-dqn train: error: {tmp_path} has logs but no checkpoint; --restart starts over\n"
    )
    # As of a --restart that was killed: --restart takes no folder without it.
    (tmp_path / "operative_config.gin").unlink()
    assert run(tmp_path, *CARTPOLE, SEED, iterations(1)) == 2
    assert capsys.readouterr().err.endswith(f"; remove {tmp_path}, or give another base_dir\n")


@pytest.mark.parametrize(
    ("arguments", "change", "difference"),
    [
        pytest.param(
            tiny(), "--game=Breakout",
            "create_environment.game_name was 'Centipede' and is 'Breakout'",
            marks=SLOW,
        ),
        pytest.param(
            tiny(), "--agent=dqn",
            "configuration: create_agent.agent_name was 'log_dqn' and is 'dqn'; ",
            marks=SLOW,
        ),
        (CARTPOLE, "--gin_bindings=LogDQNAgent.c=2", "LogDQNAgent.c was 1.0 and is 2"),
        (CARTPOLE, "--seed=5", "seed_everything.seed was 4 and is 5"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_another_run_is_refused(
    tmp_path, trained, capsys, arguments, change, difference
):
    base = tmp_path / "run"
    trained(base, *arguments, SEED, iterations(1))
    capsys.readouterr()
    before = read_log(base, 0)
    other = tiny("DQNAgent") if "dqn" in change else arguments
    assert run(base, *other, SEED, iterations(2), change) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "is a checkpoint of another configuration: " in err
    assert difference in err
    assert read_log(base, 0) == before


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, capsys):
    # The weights are made to overflow.
    explode = "--gin_bindings=tf.train.RMSPropOptimizer.learning_rate=1e38"
    assert run(tmp_path, *tiny(), SEED, iterations(3), explode) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "stopped at training step " in err
    assert "the loss is not finite: " in err
    assert "in a batch with rewards from " in err
    assert "there is no checkpoint yet" in err


@SLOW
def test_a_full_disk_stops_the_run_and_leaves_the_last_checkpoint(
    tmp_path, trained, capsys, monkeypatch
):
    original = runner.ResumableRunner._checkpoint_experiment
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def with_little_room(self, iteration):
        if iteration == 1:  # No file may grow beyond 1 MB; the weights take 4 MB.
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
        try:
            original(self, iteration)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    with monkeypatch.context() as patch:
        patch.setattr(runner.ResumableRunner, "_checkpoint_experiment", with_little_room)
        assert run(tmp_path / "a", *CARTPOLE, SEED, iterations(3)) == 1
    err = capsys.readouterr().err
    assert "stopped in iteration 2, which can't be saved: " in err
    assert "File too large" in err
    assert err.endswith(f"the last good checkpoint is {tmp_path}/a/checkpoints/0\n")
    assert os.listdir(tmp_path / "a" / "checkpoints") == ["0"]
    assert run(tmp_path / "a", *CARTPOLE, SEED, iterations(3)) == 0
    trained(tmp_path / "b", *CARTPOLE, SEED, iterations(3))
    assert_same_run(tmp_path / "a", tmp_path / "b", 2)


class _Hostile:
    def __reduce__(self):
        return os.mkdir, (str(pathlib.Path(train.__file__).parent / "pwned"),)


@SLOW
def test_a_hostile_checkpoint_runs_nothing(tmp_path, capsys, monkeypatch):
    original = data.save

    def poisoned(path, tree):
        original(path, tree)
        if path.name == "agent":
            np.savez(path.with_suffix(".npz"), **{"0": np.array([_Hostile()])})

    with monkeypatch.context() as patch:
        patch.setattr(data, "save", poisoned)
        assert run(tmp_path, *CARTPOLE, SEED, iterations(1)) == 0
    capsys.readouterr()
    assert run(tmp_path, *CARTPOLE, SEED, iterations(2)) == 2
    err = capsys.readouterr().err
    assert "can't be loaded: Object arrays cannot be loaded" in err
    assert err.count("\n") == 1
    assert not (pathlib.Path(train.__file__).parent / "pwned").exists()


def run_dopamine(folder, agent, agent_class):
    """Trains a run by Dopamine's own runner; returns its replay memory."""
    bindings = [line.removeprefix("--gin_bindings=") for line in tiny(agent_class)[1:]]
    start.configure(request.parse([], bindings, agent, "Centipede", 4).written)
    with tf.Graph().as_default():
        host_runner = run_experiment.Runner(str(folder), agents.create_agent)
        host_runner.run_experiment()
        return host_runner._agent._replay.memory


@SLOW
@pytest.mark.parametrize(
    ("agent", "agent_class"),
    [("dqn", "DQNAgent"), ("rainbow", "RainbowAgent")],
)
def test_dopamines_own_checkpoints_load(tmp_path, capsys, agent, agent_class):
    host = tmp_path / "host"
    memory = run_dopamine(host, agent, agent_class)
    host_weights = tf.train.load_checkpoint(str(host / "checkpoints" / "tf_ckpt-1"))
    capsys.readouterr()

    gin.clear_config()
    loaded = {}
    original = saved_run._load_dopamine

    def look(run_dir, agent):
        state = original(run_dir, agent)
        loaded["memory"] = agent._replay.memory
        variables = tf.compat.v1.global_variables()
        loaded["weights"] = dict(
            zip((v.op.name for v in variables), agent._sess.run(variables), strict=True)
        )
        return state

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saved_run, "_load_dopamine", look)
        assert run(host, f"--agent={agent}", *tiny(agent_class), SEED, iterations(2)) == 0
    out, err = capsys.readouterr()
    assert "is Dopamine's: it holds no random state" in err
    assert out.splitlines()[2] == "This run has finished its 2 iterations."
    np.testing.assert_equal(loaded["memory"]._store, memory._store)
    assert loaded["memory"].add_count == memory.add_count
    assert loaded["memory"].episode_end_indices == memory.episode_end_indices
    if agent == "rainbow":
        np.testing.assert_equal(loaded["memory"].sum_tree.nodes, memory.sum_tree.nodes)
    for name, value in loaded["weights"].items():
        np.testing.assert_array_equal(value, host_weights.get_tensor(name))


@SLOW
def test_a_damaged_dopamine_checkpoint_is_passed_over(tmp_path, capsys):
    host = tmp_path / "host"
    run_dopamine(host, "log_dqn", "LogDQNAgent")
    path = host / "checkpoints" / "$store$_observation_ckpt.1.gz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    os.truncate(host / "checkpoints" / "$store$_action_ckpt.0.gz", 20)
    capsys.readouterr()
    assert run(host, *tiny(), SEED) == 2
    err = capsys.readouterr().err.splitlines()
    assert "checkpoint 1 in" in err[0] and "$store$_observation_ckpt.1.gz" in err[0]
    assert "checkpoint 0 in" in err[1] and "$store$_action_ckpt.0.gz" in err[1]
    assert "none of the checkpoints in" in err[2]
    assert len(err) == 3


@SLOW
@pytest.mark.parametrize("command", [CARTPOLE, GYMNASIUM], ids=["gym", "gymnasium"])
def test_a_run_goes_on_however_its_configuration_is_written(tmp_path, command):
    """With the drawn seed recorded, a macro for a literal, or 1.0 for 1."""
    assert run(tmp_path, *command, "--gin_bindings=LogDQNAgent.c=1", iterations(1)) == 0
    recorded = tmp_path / "operative_config.gin"
    assert run(tmp_path, f"--gin_files={recorded}", iterations(2)) == 0
    macro = ["--gin_bindings=scale = 1.0", "--gin_bindings=LogDQNAgent.c = %scale"]
    assert run(tmp_path, *command, *macro, iterations(3)) == 0
    assert set(read_log(tmp_path, 2)) == {"iteration_0", "iteration_1", "iteration_2"}


def test_a_restart_finds_checkpoints_that_are_kept_elsewhere_through_a_link(
    tmp_path, trained, capsys
):
    base = tmp_path / "run"
    trained(base, *CARTPOLE, SEED, iterations(1))
    (base / "checkpoints").rename(tmp_path / "elsewhere")
    (base / "checkpoints").symlink_to(tmp_path / "elsewhere")
    capsys.readouterr()
    assert run(base, *CARTPOLE, SEED, iterations(1), "--restart") == 0
    assert "iteration 1/1" in capsys.readouterr().out
    assert os.listdir(tmp_path / "elsewhere") == ["0"]


def test_a_restart_keeps_what_runs_do_not_write(tmp_path, trained, capsys):
    trained(tmp_path, *CARTPOLE, SEED, iterations(1))
    notes = ["notes", "checkpoints/notes", "checkpoints/best/weights", "logs/log_of_mine"]
    notes += ["metrics/notes", "metrics/pickle/mine.pkl", "config.json.old"]
    for name in notes:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    # A restart that fails puts all back, and one that succeeds says what is gone.
    before = {path: path.stat().st_ino for path in tmp_path.rglob("*") if path.is_file()}
    assert run(tmp_path, *CARTPOLE, SEED, "--gin_bindings=LogDQNAgent.gamma=2", "--restart") == 2
    assert {p: p.stat().st_ino for p in tmp_path.rglob("*") if p.is_file()} == before
    old = [name for name in os.listdir(tmp_path) if name.startswith("events")]
    capsys.readouterr()
    assert run(tmp_path, *CARTPOLE, SEED, iterations(1), "--restart") == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        f"--restart removed the run in {tmp_path}: 1 of checkpoints, 1 of logs, 1 of metrics, "
        f"config.json, {', '.join(sorted(old))}, operative_config.gin"
    )
    assert [(tmp_path / name).read_text() for name in notes] == notes
    assert not any((tmp_path / name).exists() for name in old)
    assert not list(tmp_path.glob(".*"))


def test_events_of_a_start_without_a_checkpoint_are_removed(tmp_path):
    """TensorBoard would draw both starts as one curve; those of a resumed run belong to it."""
    old = tmp_path / "events.out.tfevents.1.here"
    old.touch()
    for name in ("config.json", "operative_config.gin"):
        assert not layout.events(tmp_path)  # Another program's.
        (tmp_path / name).write_text("{}")
    assert layout.events(tmp_path) == [old]
    assert run(tmp_path, *CARTPOLE, iterations(1)) == 0
    first = layout.events(tmp_path)
    assert first and old not in first
    assert run(tmp_path, *CARTPOLE, iterations(2)) == 0
    assert set(first) <= set(layout.events(tmp_path))


def test_what_a_killed_restart_has_left_is_named_and_kept(tmp_path, capsys):
    # In a container the next start has the number of the killed one.
    left = tmp_path / f".restart-{os.getpid()}"
    left.mkdir()
    (left / "config.json").write_text("the old run's")
    assert run(tmp_path, *CARTPOLE, iterations(1)) == 0
    out, err = capsys.readouterr()
    said = "a --restart that was killed has left the run before it in"
    assert err == f"log-dqn train: warning: {said} {left}\n"
    assert "removed" not in out
    assert (left / "config.json").read_text() == "the old run's"


@SLOW
def test_a_crash_between_checkpoint_and_results_is_made_good(tmp_path, monkeypatch, capsys):
    def die(self, *_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runner.ResumableRunner, "_report", die)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, *CARTPOLE, SEED, iterations(1))
    assert not (tmp_path / "logs" / "log_0").exists()
    capsys.readouterr()
    assert run(tmp_path, *CARTPOLE, SEED, iterations(1), "--json") == 0
    assert json.loads(capsys.readouterr().out)["iteration"] == 1
    assert run(tmp_path, *CARTPOLE, SEED, iterations(1), "--json") == 0
    assert capsys.readouterr().out == ""
    assert set(read_log(tmp_path, 0)) == {"iteration_0"}
    metrics = (tmp_path / "metrics" / "pickle" / "pickle_0.pkl").read_bytes()
    assert set(pickle.loads(metrics)) == {"iteration_0"}


@SLOW
def test_a_full_disk_when_a_run_goes_on_stops_it_cleanly(tmp_path, trained, capsys, monkeypatch):
    trained(tmp_path, *CARTPOLE, SEED, iterations(1))
    capsys.readouterr()

    def find_no_space(self, iteration):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(runner.ResumableRunner, "_write_results", find_no_space)
        assert run(tmp_path, *CARTPOLE, SEED, iterations(2)) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "No space left on device" in err
    assert err.endswith(f"the last good checkpoint is {tmp_path}/checkpoints/0\n")
    assert run(tmp_path, *CARTPOLE, SEED, iterations(2)) == 0


@SLOW
def test_a_run_whose_reader_has_gone_stops_cleanly_and_goes_on(tmp_path, capsys, monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            if "iteration" in text:
                raise BrokenPipeError(32, "Broken pipe")
            return len(text)

    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", Closed())
        assert run(tmp_path, *CARTPOLE, SEED, iterations(2)) == 1
    assert capsys.readouterr().err == (
        "log-dqn train: stopped, since what it prints can't be written: [Errno 32] Broken pipe; "
        "the same command resumes\n"
    )
    assert run(tmp_path, *CARTPOLE, SEED, iterations(2)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[2:4]] == ["iteration 1/2", "iteration 2/2"]


def test_a_restart_moves_last_what_shows_that_a_folder_is_a_runs(tmp_path, monkeypatch):
    """What --restart needs to take a folder for a run's goes last, and comes back first."""
    names = ["log_0", "config.json", "operative_config.gin"]
    for path in (tmp_path / "logs" / names[0], *(tmp_path / name for name in names[1:])):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    move, moved = start._move, []
    monkeypatch.setattr(
        start, "_move", lambda path, *to: (moved.append(path.name), move(path, *to))
    )
    monkeypatch.setattr(runner, "create_runner", mock.Mock(side_effect=ValueError("no")))
    with contextlib.ExitStack() as stack, pytest.raises(ValueError, match="no"):
        start.create_runner(str(tmp_path), [], True, stack)
    assert set(moved[:3]) == set(moved[3:]) == set(names)
    assert moved[2] == moved[3] == "operative_config.gin"


def test_what_a_restart_that_fails_has_moved_comes_back(tmp_path):
    old, folder = tmp_path / "old", tmp_path / "run"
    for name in ("logs/log_0", "config.json"):
        (old / name).parent.mkdir(parents=True, exist_ok=True)
        (old / name).write_text(name)
    folder.mkdir()
    (folder / "notes.txt").write_text("the user's")
    start._put_back(old, folder)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {"logs/log_0", "config.json", "notes.txt"} and not old.exists()
