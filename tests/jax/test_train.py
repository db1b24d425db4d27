"""The whole program with JAX agents."""

import pathlib
import pickle
import subprocess
import sys

import gin
import gymnasium
import jax
import numpy as np
import pytest
import tensorflow as tf

from log_dqn import train

# Some hundred frames of Pong: 2 iterations of 60 training and 20 evaluation agent steps.
TINY = [
    "--gin_bindings=Runner.num_iterations=2",
    "--gin_bindings=Runner.training_steps=60",
    "--gin_bindings=Runner.evaluation_steps=20",
    "--gin_bindings=Runner.max_steps_per_episode=20",
    "--gin_bindings=ReplayBuffer.max_capacity=200",
    "--gin_bindings=ReplayBuffer.batch_size=8",
]


def tiny(agent_class):
    return [
        *TINY,
        f"--gin_bindings={agent_class}.min_replay_history=20",
        f"--gin_bindings={agent_class}.target_update_period=40",
        f"--gin_bindings={agent_class}.epsilon_decay_period=40",
    ]


@pytest.fixture(autouse=True)
def fresh():
    def clear():
        gin.clear_config()
        gin.config._OPERATIVE_CONFIG.clear()

    clear()
    with tf.Graph().as_default():
        yield
    clear()


def checkpoint(base_dir, iteration):
    return pickle.loads((pathlib.Path(base_dir) / "checkpoints" / f"ckpt.{iteration}").read_bytes())


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


class Ring:
    """Seven places in a ring; one step to the right is rewarded at each. Draws nothing."""

    def __init__(self):
        self.environment = self
        self.action_space = gymnasium.spaces.Discrete(3)
        self.game_over = False

    def _observe(self):
        return np.array([self.place % 2, self.place % 3, self.place % 7, self.steps / 20.0])

    def reset(self, seed=None):
        self.place = self.steps = 0
        self.game_over = False
        return self._observe()

    def step(self, action):
        reward = float(action == self.place % 3)
        self.place = (self.place + int(action)) % 7
        self.steps += 1
        self.game_over = self.steps == 20
        return self._observe(), reward, self.game_over, {}


@gin.configurable(module="test_train")
def create_ring():
    return Ring()


def run_ring(base_dir, iterations, seed=4):
    gin.clear_config()
    gin.config._OPERATIVE_CONFIG.clear()
    arguments = [
        "--gin_files=jax_log_dqn_cartpole.gin",
        "--gin_bindings=Runner.create_environment_fn=@test_train.create_ring",
        "--gin_bindings=ClassicControlDQNNetwork.hidden_units=16",
        "--gin_bindings=JaxLogDQNAgent.epsilon_fn=@jax.agents.dqn.dqn_agent.linearly_decaying_epsilon",
        f"--gin_bindings=Runner.num_iterations={iterations}",
        *(line for line in tiny("JaxLogDQNAgent") if "num_iterations" not in line),
    ]
    assert train.main([f"--base_dir={base_dir}", f"--seed={seed}", *arguments]) == 0
    bundle = checkpoint(base_dir, iterations - 1)
    log = pickle.loads((pathlib.Path(base_dir) / "logs" / f"log_{iterations - 1}").read_bytes())
    returns = [
        log[f"iteration_{i}"][f"{mode}_episode_returns"]
        for i in range(iterations)
        for mode in ("train", "eval")
    ]
    return returns, leaves(
        [bundle[key] for key in ("online_params", "target_params", "optimizer_state", "rng")]
    )


def test_a_stopped_and_resumed_run_equals_one_that_was_not(tmp_path):
    returns, state = run_ring(tmp_path / "whole", 4)
    run_ring(tmp_path / "stopped", 2)
    resumed_returns, resumed_state = run_ring(tmp_path / "stopped", 4)
    assert resumed_returns == returns
    assert len({value for values in returns for value in values}) > 3
    for value, resumed in zip(state, resumed_state, strict=True):
        np.testing.assert_array_equal(value, resumed)


def test_the_seed_decides_returns_and_weights(tmp_path):
    first, again, other = (
        run_ring(tmp_path / name, 2, seed) for name, seed in (("a", 5), ("b", 5), ("c", 6))
    )
    assert first[0] == again[0] != other[0]
    for value, same in zip(first[1], again[1], strict=True):
        np.testing.assert_array_equal(value, same)
    assert any(
        (value != different).any() for value, different in zip(first[1], other[1], strict=True)
    )


def test_the_whole_program_trains_writes_events_and_resumes(tmp_path):
    # In a folder named relatively, which orbax alone would refuse.
    command = [
        sys.executable, "-m", "log_dqn.train", "--agent=jax_log_dqn", "--base_dir=run", "--seed=3",
        *tiny("JaxLogDQNAgent"),
        "--gin_bindings=JaxLogDQNAgent.summary_writing_frequency=20",
    ]  # fmt: skip
    first = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert lines[0] == "Training jax_log_dqn on the CPU; results go to run" or "GPU" in lines[0]
    assert [line.split(":")[0] for line in lines[1:]] == ["iteration 1/2", "iteration 2/2"]
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

    command.append("--gin_bindings=Runner.num_iterations=3")
    second = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert [line.split(":")[0] for line in second.stdout.splitlines()[1:]] == ["iteration 3/3"]
    assert checkpoint(tmp_path / "run", 2)["training_steps"] == 180


def train_on_pong(base_dir, agent, agent_class, gin_file):
    arguments = [f"--base_dir={base_dir}", f"--gin_files={gin_file}", "--seed=1"]
    arguments += [*tiny(agent_class), "--gin_bindings=Runner.num_iterations=1"]
    if "rainbow" in agent:
        arguments.append("--gin_bindings=PrioritizedSamplingDistribution.max_capacity=200")
    assert train.main(arguments) == 0
    assert f"create_agent.agent_name = '{agent}'" in (base_dir / "operative_config.gin").read_text()
    bundle = checkpoint(base_dir, 0)
    online, target = leaves(bundle["online_params"]), leaves(bundle["target_params"])
    assert all(np.isfinite(value).all() for value in online)
    # Trained after the last sync: online and target differ.
    assert all((a != b).any() for a, b in zip(online, target, strict=True))
    return bundle


def test_dopamines_dqn_trains_with_the_optimizer_of_tensorflow(tmp_path):
    bundle = train_on_pong(tmp_path, "jax_dqn", "JaxDQNAgent", "jax_dqn_rmsprop.gin")
    mean_square = leaves(bundle["optimizer_state"][0].nu)
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gin_bindings=JaxLogDQNAgent.gamma=1.0"], "gamma is 1.0; it must be between 0 and 1"),
        (["--gin_bindings=JaxLogDQNAgent.loss_type='x'"], "loss_type is 'x'; it must be one of"),
        (["--gin_bindings=JaxLogDQNAgent.gama=1"], "parameter named 'gama'"),
        (["--seed=4294967296"], "seed is 4294967296; it must be a whole number"),
    ],
)
def test_bad_input_is_answered_in_one_line(tmp_path, capsys, arguments, message):
    base_dir = tmp_path / "run"
    assert train.main([f"--base_dir={base_dir}", "--agent=jax_log_dqn", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1 and message in err
    assert not base_dir.exists()
