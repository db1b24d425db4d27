"""What the tests of whole training programs share."""

import importlib.util
import os
import pathlib
import pickle
import re
import subprocess
import sys

import gin
import pytest
import tensorflow as tf

from log_dqn import compat, train
from log_dqn.run_folder import checkpoints

# Imported before the first run, whose record would else have the optimizer that it creates then.
with compat.quiet():
    from log_dqn.dopamine_run import agents  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Some hundred frames of a game in which even 20 steps of random play score: 2 iterations of 60
# training and 20 evaluation agent steps.
TINY = [
    "--game=Centipede",
    "--gin_bindings=Runner.num_iterations=2",
    "--gin_bindings=Runner.training_steps=60",
    "--gin_bindings=Runner.evaluation_steps=20",
    "--gin_bindings=Runner.max_steps_per_episode=20",
]


# As small, of a smaller network.
CARTPOLE = [
    "--gin_files=log_dqn_cartpole.gin",
    "--gin_bindings=Runner.training_steps=100",
    "--gin_bindings=Runner.evaluation_steps=50",
    "--gin_bindings=LogDQNAgent.min_replay_history=50",
    "--gin_bindings=WrappedReplayBuffer.replay_capacity=220",
    "--gin_bindings=WrappedReplayBuffer.batch_size=8",
]


def iterations(number):
    return f"--gin_bindings=Runner.num_iterations={number}"


def tiny(agent_class="LogDQNAgent"):
    memory = f"Wrapped{'Prioritized' * (agent_class == 'RainbowAgent')}ReplayBuffer"
    sizes = {f"{memory}.replay_capacity": 200, f"{memory}.batch_size": 8}
    if agent_class.startswith("Jax"):
        sizes = {"ReplayBuffer.max_capacity": 100, "ReplayBuffer.batch_size": 8}
    return [
        *TINY,
        *(f"--gin_bindings={name}={size}" for name, size in sizes.items()),
        f"--gin_bindings={agent_class}.min_replay_history=20",
        f"--gin_bindings={agent_class}.target_update_period=40",
        f"--gin_bindings={agent_class}.epsilon_decay_period=40",
    ]


def class_of(agent):
    """The class of LogDQN, LogLinDQN or DQN, on TensorFlow or JAX."""
    return "Jax" * agent.startswith("jax") + "Log" * ("log" in agent) + "DQNAgent"


def few_quantiles(agent_class):
    """Returns bindings that give an implicit quantile agent four samples of each kind."""
    names = ("num_tau_samples", "num_tau_prime_samples", "num_quantile_samples")
    return [f"--gin_bindings={agent_class}.{name}=4" for name in names]


NEEDS_MINATAR = pytest.mark.skipif(
    importlib.util.find_spec("minatar") is None, reason="the extra minatar is not installed"
)


def tiny_minatar(agent, game="MinAtar/Breakout", evaluates=True):
    """Some hundred steps of a MinAtar game, with the agent's own gin file."""
    agent_class = class_of(agent)
    capacity = "ReplayBuffer.max_capacity"
    if not agent.startswith("jax"):
        capacity = "WrappedReplayBuffer.replay_capacity"
    bindings = {
        "Runner.num_iterations": 2, "Runner.training_steps": 150,
        f"{agent_class}.min_replay_history": 50, f"{agent_class}.target_update_period": 40,
        f"{agent_class}.epsilon_decay_period": 100, capacity: 200,
    }  # fmt: skip
    if evaluates:
        bindings["create_runner.schedule"] = "'continuous_train_and_eval'"
        bindings["Runner.evaluation_steps"] = 50
    return [
        f"--agent={agent}",
        f"--game={game}",
        *[f"--gin_bindings={name}={value}" for name, value in bindings.items()],
    ]


# The environment of a program that compiles as without the tests' settings.
AS_USERS_DO = {"XLA_FLAGS": ""}


def python(*arguments, env=(), **settings):
    """Runs Python, with this package, in a process of its own; returns what it wrote."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT), **dict(env)}, **settings,
    )  # fmt: skip


def start(*arguments, **settings):
    """Starts Python, with this package, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)], text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, **settings,
    )  # fmt: skip


def forget():
    """Takes back what gin has been told, and what it has recorded."""
    gin.clear_config()
    gin.config._OPERATIVE_CONFIG.clear()


def no_more_than_the_start(out):
    """Whether a program has printed nothing, or its first line alone."""
    return re.fullmatch(r"(Starting .*\n)?", out) is not None


def read_log(base_dir, number):
    return pickle.loads((pathlib.Path(base_dir) / "logs" / f"log_{number}").read_bytes())


def outcome(base_dir, iteration):
    """What a run has logged, and the checksums of its checkpoint's files."""
    folder = pathlib.Path(base_dir)
    files = checkpoints.read_manifest(folder / "checkpoints" / str(iteration))["files"]
    # They hold how fast the machine was.
    found = {name: files[name] for name in files.keys() - {"log.json", "collector.json"}}
    for name, statistics in read_log(folder, iteration).items():
        same = {key: value for key, value in statistics.items() if "per_second" not in key}
        found |= {f"{name} {key}": value for key, value in same.items()}
    return found


def assert_same_run(first, second, last):
    assert outcome(first, last) == outcome(second, last)


def weights(base_dir, iteration):
    reader = tf.train.load_checkpoint(str(base_dir / "checkpoints" / str(iteration) / "weights"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def run(base_dir, *arguments):
    """Runs the program in this process; returns the exit status."""
    return train.main([f"--base_dir={base_dir}", *arguments])


def refusal(capsys, main, arguments):
    """Runs a program that is to refuse its arguments; returns the line that it says."""
    try:
        status = main(arguments)
    except SystemExit as stop:  # argparse
        status = stop.code
    out, err = capsys.readouterr()
    assert status == 2
    assert no_more_than_the_start(out)
    assert err.endswith("\n") and err.count("\n") == 1
    return err


def assert_refused(tmp_path, capsys, arguments, message, program=train, folder="base_dir"):
    """Asserts that a command line is answered in one line, whose parts `.*` divides."""
    new = tmp_path / "new" / "run"
    err = refusal(capsys, program.main, [f"--{folder}={new}", *arguments])
    name = program.__name__.removeprefix("log_dqn.").replace("_", "-")
    assert err.startswith(f"log-dqn {name}: error: ")
    for part in message.split(".*"):
        assert part in err
    assert not new.parent.exists()
