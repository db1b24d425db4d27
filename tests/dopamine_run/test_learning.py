"""LogDQN learns CartPole, on TensorFlow and on JAX; half a minute each on two CPU cores."""

import pathlib
import pickle

import numpy as np
import pytest
from dopamine.discrete_domains import gym_lib

from log_dqn import train
from log_dqn.dopamine_run import seeding


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


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "seed", "number"), [("log_dqn", 1, 5), ("jax_log_dqn", 2, 6)])
def test_it_learns_cartpole(tmp_path, capsys, agent, seed, number):
    arguments = [f"--gin_files={agent}_cartpole.gin", f"--seed={seed}"]
    arguments.append(f"--gin_bindings=Runner.num_iterations={number}")
    assert train.main([f"--base_dir={tmp_path}", *arguments]) == 0
    log = pickle.loads((pathlib.Path(tmp_path) / "logs" / f"log_{number - 1}").read_bytes())
    returns = [log[f"iteration_{i}"]["eval_average_return"][0] for i in range(number)]
    untrained, learned = returns[0], np.mean(returns[-2:])
    random = np.mean(random_policy_returns(100))
    with capsys.disabled():
        print(
            f"\nCartPole, at most 200: {agent} {learned:.0f} after {number},000 agent steps, "
            f"random policy {random:.0f}"
        )
    # A random policy gets about 22, one that leans to one side 9, a perfect one 200.
    assert random < 30
    assert untrained < 60 or "jax" in agent
    assert learned > 100
