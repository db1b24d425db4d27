"""LogDQN learns CartPole; half a minute on two CPU cores."""

import pathlib
import pickle

import gin
import numpy as np
import pytest
import tensorflow as tf
from dopamine.discrete_domains import gym_lib

from log_dqn import train
from log_dqn.single import seeding


@pytest.fixture(autouse=True)
def fresh():
    gin.clear_config()
    with tf.Graph().as_default():
        yield
    gin.clear_config()


def random_policy_returns(episodes):
    environment = gym_lib.create_gym_environment("CartPole", "v1")
    seeding.seed_environment(environment, 0)
    rng = np.random.default_rng(0)
    returns = []
    for _ in range(episodes):
        environment.reset()
        returns.append(0.0)
        while not environment.game_over and returns[-1] < 200:
            returns[-1] += environment.step(int(rng.integers(2)))[1]
        environment.game_over = False
    return returns


def test_log_dqn_learns_cartpole(tmp_path, capsys):
    arguments = ["--gin_files=log_dqn_cartpole.gin", "--seed=1"]
    arguments.append("--gin_bindings=Runner.num_iterations=5")
    assert train.main([f"--base_dir={tmp_path}", *arguments]) == 0
    log = pickle.loads((pathlib.Path(tmp_path) / "logs" / "log_4").read_bytes())
    learned = [log[f"iteration_{i}"]["eval_average_return"][0] for i in (3, 4)]
    untrained = log["iteration_0"]["eval_average_return"][0]
    random = np.mean(random_policy_returns(100))
    with capsys.disabled():
        print(
            f"\nCartPole, at most 200: LogDQN {np.mean(learned):.0f} after 5,000 agent steps, "
            f"random policy {random:.0f}"
        )
    # A random policy gets about 22, one that leans to one side 9, a perfect one 200.
    assert random < 30
    assert untrained < 60
    assert np.mean(learned) > 100
