"""LogDQN learns CartPole, on TensorFlow and on JAX."""

import numpy as np
import pytest

from tests.programs import iterations, read_log, run


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "seed", "number"), [("log_dqn", 1, 5), ("jax_log_dqn", 2, 6)])
def test_it_learns_cartpole(tmp_path, agent, seed, number):
    memory = "ReplayBuffer" if "jax" in agent else "WrappedReplayBuffer"
    smaller = ("Runner.evaluation_steps=400", f"{memory}.batch_size=32")
    arguments = [f"--gin_files={agent}_cartpole.gin", f"--seed={seed}"]
    arguments += [iterations(number), *(f"--gin_bindings={line}" for line in smaller)]
    assert run(tmp_path, *arguments) == 0
    log = read_log(tmp_path, number - 1)
    returns = [log[f"iteration_{i}"]["eval_average_return"][0] for i in range(number)]
    # A random policy gets about 22, one that leans to one side 9, a perfect one 200.
    assert returns[0] < 60 or "jax" in agent
    assert np.mean(returns[-2:]) > 100, returns
