"""LogDQN on JAX learns CartPole, as on TensorFlow."""

import pathlib
import pickle

import gin
import numpy as np
import pytest

from log_dqn import train


@pytest.fixture(autouse=True)
def clean_gin():
    gin.clear_config()
    yield
    gin.clear_config()


@pytest.mark.slow
def test_jax_log_dqn_learns_cartpole(tmp_path, capsys):
    arguments = ["--gin_files=jax_log_dqn_cartpole.gin", "--seed=2"]
    arguments.append("--gin_bindings=Runner.num_iterations=6")
    assert train.main([f"--base_dir={tmp_path}", *arguments]) == 0
    log = pickle.loads((pathlib.Path(tmp_path) / "logs" / "log_5").read_bytes())
    learned = [log[f"iteration_{i}"]["eval_average_return"][0] for i in (4, 5)]
    with capsys.disabled():
        print(f"\nCartPole, at most 200: {np.mean(learned):.0f} after 6,000 agent steps")
    # A random policy gets about 22, one that leans to one side 9, a perfect one 200.
    assert np.mean(learned) > 100
