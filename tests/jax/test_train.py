"""The whole program with JAX agents."""

import itertools
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from log_dqn import atari
from log_dqn.run_folder import arrays, data
from tests.programs import (
    NEEDS_MINATAR,
    assert_refused,
    assert_same_run,
    few_quantiles,
    iterations,
    outcome,
    run,
    tiny_minatar,
)
from tests.programs import tiny as tiny_tf

CARTPOLE = [
    "--gin_files=jax_log_dqn_cartpole.gin",
    "--gin_bindings=Runner.training_steps=100",
    "--gin_bindings=Runner.evaluation_steps=50",
    "--gin_bindings=JaxLogDQNAgent.min_replay_history=50",
    "--gin_bindings=ReplayBuffer.max_capacity=220",
    "--gin_bindings=ReplayBuffer.batch_size=8",
]


def tiny(agent_class, is_prioritized=False):
    binding = "--gin_bindings=PrioritizedSamplingDistribution.max_capacity=100"
    return [*tiny_tf(agent_class), *[binding] * is_prioritized]


QUANTILES = [
    "--agent=jax_implicit_quantile", *tiny("JaxImplicitQuantileAgent"),
    *few_quantiles("JaxImplicitQuantileAgent"),
]  # fmt: skip


def checkpoint(base_dir, iteration):
    return data.load(pathlib.Path(base_dir) / "checkpoints" / str(iteration) / "agent")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(CARTPOLE, marks=pytest.mark.slow),
        pytest.param(tiny_minatar("jax_log_dqn"), marks=NEEDS_MINATAR),
        pytest.param(
            ["--agent=jax_rainbow", *tiny("JaxRainbowAgent", True)], marks=pytest.mark.slow
        ),
        pytest.param(QUANTILES, marks=pytest.mark.slow),
    ],
    ids=["cartpole", "minatar", "jax_rainbow", "jax_implicit_quantile"],
)
def test_a_stopped_and_resumed_run_equals_one_that_was_not(tmp_path, arguments):
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    assert run(whole, *arguments, "--seed=4", iterations(3)) == 0
    for number in (1, 3):
        assert run(pieces, *arguments, "--seed=4", iterations(number)) == 0
    assert_same_run(whole, pieces, 2)
    episodes = [found for name, found in outcome(whole, 2).items() if "_episode_" in name]
    assert len(set(itertools.chain(*episodes))) > 1


def terminals(base_dir, iteration):
    path = base_dir / "checkpoints" / str(iteration) / "replay_is_terminal.npy.zst"
    return arrays.load(path)


@pytest.mark.slow
def test_an_episode_cut_off_bootstraps_if_only_the_runner_cut_it(tmp_path, monkeypatch):
    # CartPole's pole stands for longer than 5 steps; each episode loses the step it was cut at.
    cut = "--gin_bindings=Runner.max_steps_per_episode=5"
    assert run(tmp_path / "cartpole", *CARTPOLE, "--seed=4", iterations(1), cut) == 0
    np.testing.assert_array_equal(terminals(tmp_path / "cartpole", 0), np.zeros(80))
    # The emulator's own limit, which ends at the same step, ends the game.
    monkeypatch.setattr(atari, "MAX_FRAMES_PER_EPISODE", 80)
    arguments = ["--agent=jax_log_dqn", *tiny("JaxLogDQNAgent"), "--seed=4", iterations(1)]
    assert run(tmp_path / "atari", *arguments) == 0
    np.testing.assert_array_equal(
        terminals(tmp_path / "atari", 0), [step % 20 == 19 for step in range(60)]
    )


def test_weights_that_are_not_finite_are_not_saved(tmp_path, capsys):
    explode = "--gin_bindings=create_optimizer.learning_rate=1e38"
    status = run(tmp_path, *CARTPOLE, "--seed=4", iterations(3), explode)
    err = capsys.readouterr().err
    assert status == 1
    assert "can't be saved: the weights are not finite; there is no checkpoint yet" in err


@pytest.mark.slow
def test_a_run_in_a_relative_folder_writes_events_and_resumes(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)  # orbax alone would refuse the folder.
    arguments = [
        "--agent=jax_log_dqn", "--seed=3", *tiny("JaxLogDQNAgent"),
        "--gin_bindings=JaxLogDQNAgent.summary_writing_frequency=20",
    ]  # fmt: skip
    assert run("run", *arguments) == 0
    out, err = capfd.readouterr()
    start, said, *lines = out.splitlines()
    assert (start, err) == ("Starting jax_log_dqn on Centipede in run", "")
    assert re.fullmatch(r"Training jax_log_dqn on .*; results go to run", said)
    assert [line.split(":")[0] for line in lines[:2]] == ["iteration 1/2", "iteration 2/2"]
    events = {}
    for path in (tmp_path / "run").glob("events*"):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                events.setdefault(value.tag, {})[event.step] = float(tf.make_ndarray(value.tensor))
    assert "Eval/AverageReturns" in events and set(events["Train/AverageReturns"]) == {0, 1}
    for tag in ("Losses/Plus", "Losses/Minus", "Values/QPlus", "Values/QMinus"):
        assert set(events[tag]) == {40, 60, 80, 100}
        assert all(np.isfinite(value) and value >= 0 for value in events[tag].values())
    assert run("run", *arguments, iterations(3)) == 0
    assert "\niteration 3/3" in capfd.readouterr().out
    assert checkpoint(tmp_path / "run", 2)["training_steps"] == 180


@pytest.mark.slow
def test_dopamines_dqn_trains_with_the_optimizer_of_tensorflow(tmp_path):
    arguments = ["--gin_files=jax_dqn_rmsprop.gin", "--seed=1", *tiny("JaxDQNAgent"), iterations(1)]
    assert run(tmp_path, *arguments) == 0
    bundle = checkpoint(tmp_path, 0)
    online, target = bundle["online_params"], bundle["target_network_params"]
    # Trained after the last sync: online and target differ.
    assert all((a != b).any() for a, b in zip(online, target, strict=True))
    # The state is the mean of each weight, then the mean square of each.
    mean_square = bundle["optimizer_state"][len(online) :]
    # 9 updates (at steps 24, 28, ..., 56) with small gradients, from one: 0.95^9 is left.
    np.testing.assert_allclose(np.median(mean_square[0]), 0.95**9, rtol=1e-2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("--seed=4294967296", "seed is 4294967296; it must be a whole number"),
        ("--gin_bindings=JaxLogDQNAgent.seed=1", "JaxLogDQNAgent.seed is 1, which"),
    ],
)
def test_bad_input_is_answered_in_one_line(tmp_path, capsys, wrong, message):
    assert_refused(tmp_path, capsys, ["--agent=jax_log_dqn", wrong], message)
