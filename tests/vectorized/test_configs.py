"""Settings of vectorized training that replace a gin file's."""

import pytest

from log_dqn.cli import gin_files
from log_dqn.vectorized import request, start


def test_another_optimizer_may_be_chosen_beside_a_file():
    written = request.parse(
        [], ["VectorizedLogDQNAgent.optimizer='rmsprop_tf'"], "log_dqn", "MinAtar/Breakout"
    )
    gin_files.read(written)
    (setting,) = start.read_settings(written.lines, [])
    assert setting.agent.optimizer == "rmsprop_tf"
    assert "adam.epsilon" not in setting.config.parameters
    assert setting.config.parameters["rmsprop_tf.epsilon"] == 0.00001
    own = gin_files.parse([], ["adam.epsilon = 0.1"]).lines
    with pytest.raises(ValueError, match=r"adam.epsilon is 0.1, .* mean rmsprop_tf.epsilon"):
        start.read_settings(own, [])
