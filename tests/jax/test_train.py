"""The whole program with JAX agents."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from log_dqn import atari, train
from log_dqn.run_folder import arrays, data
from tests.programs import (
    NEEDS_MINATAR,
    assert_refused,
    iterations,
    python,
    read_log,
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


def checkpoint(base_dir, iteration):
    return data.load(pathlib.Path(base_dir) / "checkpoints" / str(iteration) / "agent")


def assert_same_run(first, second, last):
    logs = [
        {
            (iteration, key): values
            for iteration, statistics in read_log(base_dir, last).items()
            for key, values in statistics.items()
            if "_episode_" in key
        }
        for base_dir in (first, second)
    ]
    assert logs[0] == logs[1]
    assert len({value for values in logs[0].values() for value in values}) > 1
    np.testing.assert_equal(checkpoint(first, last), checkpoint(second, last))
    # The replay memory, file by file.
    for path in (first / "checkpoints" / str(last)).glob("replay_*"):
        twin = second / "checkpoints" / str(last) / path.name
        assert path.read_bytes() == twin.read_bytes(), path.name


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(CARTPOLE, marks=pytest.mark.slow),
        pytest.param(tiny_minatar("jax_log_dqn"), marks=NEEDS_MINATAR),
        pytest.param(
            ["--agent=jax_rainbow", *tiny("JaxRainbowAgent", True)], marks=pytest.mark.slow
        ),
        pytest.param(
            ["--agent=jax_implicit_quantile", *tiny("JaxImplicitQuantileAgent")],
            marks=pytest.mark.slow,
        ),
        pytest.param(["--agent=full_rainbow", *tiny("JaxDQNAgent", True)], marks=pytest.mark.slow),
    ],
    ids=["cartpole", "minatar", "jax_rainbow", "jax_implicit_quantile", "full_rainbow"],
)
def test_a_stopped_and_resumed_run_equals_one_that_was_not(tmp_path, arguments):
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    assert run(whole, *arguments, "--seed=4", iterations(3)) == 0
    for number in (1, 3):
        assert run(pieces, *arguments, "--seed=4", iterations(number)) == 0
    assert_same_run(whole, pieces, 2)
    tree = checkpoint(whole, 2)["sampling"].get("sum_tree")
    if tree is not None:
        # 8 of a batch have got priorities by their losses, so that they differ.
        assert len(np.unique(tree["nodes"][-128:])) > 8
        assert checkpoint(whole, 2)["max_recorded_priority"] > 1


def terminals(base_dir, iteration):
    path = base_dir / "checkpoints" / str(iteration) / "replay_is_terminal.npy.zst"
    return arrays.load(path)


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
def test_the_whole_program_trains_writes_events_and_resumes(tmp_path, capsys, monkeypatch):
    # In a folder named relatively, which orbax alone would refuse.
    arguments = [
        "--agent=jax_log_dqn", "--seed=3", *tiny("JaxLogDQNAgent"),
        "--gin_bindings=JaxLogDQNAgent.summary_writing_frequency=20",
    ]  # fmt: skip
    first = python("-m", "log_dqn.train", "--base_dir=run", *arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert lines[0] == "Starting jax_log_dqn on Centipede in run"
    start, _, end = lines[1].partition(" with ")
    assert start == "Training jax_log_dqn on the CPU" or "GPU" in start
    assert end.endswith("; results go to run")
    said = [line.split(":")[0] for line in lines[2:]]
    assert said == ["iteration 1/2", "iteration 2/2", "Film it", "Train on, to 4 iterations"]
    assert first.stderr == ""

    events = {}
    for path in (tmp_path / "run").glob("events*"):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                events.setdefault(value.tag, {})[event.step] = float(tf.make_ndarray(value.tensor))
    assert {"Train/AverageReturns", "Eval/AverageReturns"} <= events.keys()
    assert set(events["Train/AverageReturns"]) == {0, 1}
    for tag in ("Losses/Plus", "Losses/Minus", "Values/QPlus", "Values/QMinus"):
        assert set(events[tag]) == {40, 60, 80, 100}
        assert all(np.isfinite(value) and value >= 0 for value in events[tag].values())
    assert "Values/LogActionGap" in events

    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert run("run", *arguments, "--gin_bindings=Runner.num_iterations=3") == 0
    said = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert said == ["iteration 3/3", "Film it", "Train on, to 6 iterations"]
    assert checkpoint(tmp_path / "run", 2)["training_steps"] == 180


def train_on_pong(base_dir, agent, agent_class, gin_file):
    arguments = [f"--base_dir={base_dir}", f"--gin_files={gin_file}", "--seed=1"]
    arguments += [*tiny(agent_class, "rainbow" in agent), "--gin_bindings=Runner.num_iterations=1"]
    assert train.main(arguments) == 0
    assert f"create_agent.agent_name = '{agent}'" in (base_dir / "operative_config.gin").read_text()
    bundle = checkpoint(base_dir, 0)
    online, target = bundle["online_params"], bundle["target_network_params"]
    assert all(np.isfinite(value).all() for value in online)
    # Trained after the last sync: online and target differ.
    assert all((a != b).any() for a, b in zip(online, target, strict=True))
    return bundle


@pytest.mark.slow
def test_dopamines_dqn_trains_with_the_optimizer_of_tensorflow(tmp_path):
    bundle = train_on_pong(tmp_path, "jax_dqn", "JaxDQNAgent", "jax_dqn_rmsprop.gin")
    # The state is the mean of each weight, then the mean square of each.
    mean_square = bundle["optimizer_state"][len(bundle["online_params"]) :]
    # 9 updates (at steps 24, 28, ..., 56) with small gradients, from one: 0.95^9 is left.
    np.testing.assert_allclose(np.median(mean_square[0]), 0.95**9, rtol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "agent_class"),
    [
        ("jax_dqn", "JaxDQNAgent"),
        ("jax_rainbow", "JaxRainbowAgent"),
        ("jax_implicit_quantile", "JaxImplicitQuantileAgent"),
        ("full_rainbow", "JaxDQNAgent"),
    ],
)
def test_dopamines_agents_train(tmp_path, agent, agent_class):
    train_on_pong(tmp_path, agent, agent_class, f"{agent}.gin")


JAX = "--agent=jax_log_dqn"


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (JAX, "--gin_bindings=JaxLogDQNAgent.gamma=1.0", "gamma is 1.0; it must be a"),
        (JAX, "--seed=4294967296", "seed is 4294967296; it must be a whole number"),
        *(
            (
                JAX, f"--gin_bindings={line}",
                f"{line.split('.', 1)[1].replace('=', ' is ')}; it must be",
            )
            for line in (
                "JaxLogDQNAgent.epsilon_decay_period=0",
                "JaxLogDQNAgent.summary_writing_frequency=0", "JaxLogDQNAgent.stack_size=0",
                "JaxLogDQNAgent.observation_shape=84", "JaxLogDQNAgent.optimizer='adagrad'",
                "rmsprop_tf.decay=1", "rmsprop_tf.momentum=2", "rmsprop_tf.epsilon=0",
                "rmsprop_tf.centered=1",
            )
        ),
        (JAX, "--gin_bindings=LogDQNAgent.gamma=0.5", "LogDQNAgent.gamma is 0.5, which"),
        (JAX, "--gin_bindings=JaxDQNAgent.epsilon_eval=0.5", "reads; did you mean"),
        (JAX, "--gin_bindings=JaxLogDQNAgent.seed=1", "JaxLogDQNAgent.seed is 1, which"),
        ("--gin_files=log_dqn.gin", "--gin_files=jax_log_dqn.gin", "which nothing reads; did"),
        ("--agent=full_rainbow", "--gin_bindings=JaxDQNAgent.gamma=3.0", "gamma is 3.0; it must"),
        ("--agent=jax_dqn", "--gin_bindings=JaxDQNAgent.loss_type='x'", "loss_type is 'x'"),
        ("--agent=jax_rainbow", "--gin_bindings=JaxRainbowAgent.num_atoms=0", "num_atoms is 0"),
    ],
)  # fmt: skip
def test_bad_input_is_answered_in_one_line(tmp_path, capsys, first, second, message):
    assert_refused(tmp_path, capsys, [first, second], message)
