"""Every gin file of vectorized training, every hyperparameter."""

import dataclasses
import math

import gin
import pytest

from log_dqn.program import gin_files
from log_dqn.vectorized import agents, request, schedule, start

RUNNER = {
    "num_iterations": 200, "training_steps": 250_000, "evaluation_steps": 125_000,
    "max_steps_per_episode": 27_000, "replay_capacity": 1_000_000, "batch_size": 32,
}  # fmt: skip
# What the Atari files leave at its default.
ATARI = {
    "stack_size": 4, "network": "nature", "precision": "float32", "clip_rewards": True
}  # fmt: skip
SCHEDULE = {
    "loss_type": "huber", "update_horizon": 1, "min_replay_history": 20_000, "update_period": 4,
    "target_update_period": 8_000, "epsilon_train": 0.01, "epsilon_eval": 0.001,
    "epsilon_decay_period": 250_000,
}  # fmt: skip
LOG_DQN = {
    "gamma": 0.96, "k": 100, "c": 0.5, "beta_reg": 0.1, "beta_log": 0.0025, "q_init_plus": 1.0,
    "q_init_minus": 0.0, "clip_bootstrap": True, "clip_inverse": False, "head_init": "asymmetric",
    "minus_head": True, **SCHEDULE,
}  # fmt: skip
DQN = {"gamma": 0.99, "learning_rate": 0.00025, **SCHEDULE}
MINATAR_RUNNER = {
    "num_iterations": 20, "training_steps": 50_000, "evaluation_steps": 0, "stack_size": 1,
    "max_steps_per_episode": 1_000_000_000, "replay_capacity": 100_000,
    "network": "revisiting_rainbow",
}  # fmt: skip
ENV_RUNNER = {
    **MINATAR_RUNNER, "training_steps": 10_000, "max_steps_per_episode": 10_000,
    "network": "by_shape",
}  # fmt: skip
MINATAR = {"optimizer": "adam", "min_replay_history": 1000, "target_update_period": 1000}
ENV = {
    **MINATAR, "gamma": 0.99, "update_horizon": 3, "target_update_period": 200,
    "epsilon_train": 0.05, "epsilon_decay_period": 20_000,
}  # fmt: skip
LOGLIN = {"linear_above": 0.1, "c": 0.1, "beta_reg": 1.0}
OPTIMIZERS = {
    "adam": {"beta1": 0.9, "beta2": 0.999, "epsilon": 0.0003125},
    "rmsprop_tf": {"decay": 0.95, "momentum": 0.0, "epsilon": 0.00001, "centered": True},
}


def config(agent, settings, **runner):
    class_name = "VectorizedDQNAgent" if agent == "dqn" else "VectorizedLogDQNAgent"
    optimizer = settings.get("optimizer", "rmsprop_tf")
    return {
        "VectorizedRunner": {"agent": agent, **RUNNER, **runner},
        class_name: settings,
        optimizer: OPTIMIZERS[optimizer],
    }


QUICK = {"min_replay_history": 1000, "target_update_period": 500, "epsilon_decay_period": 5000}
EXPECTED = {
    "vectorized_log_dqn.gin": config("log_dqn", LOG_DQN),
    "vectorized_dqn.gin": config("dqn", DQN),
    "vectorized_log_dqn_quick.gin": config(
        "log_dqn", LOG_DQN | QUICK, num_iterations=3, training_steps=2000, evaluation_steps=1000,
        replay_capacity=15_000,
    ),
    "vectorized_log_dqn_minatar.gin": config(
        "log_dqn", LOG_DQN | MINATAR | {"beta_reg": 0.3, "c": 1.0}, **MINATAR_RUNNER
    ),
    "vectorized_loglin_dqn.gin": config("loglin_dqn", LOG_DQN | LOGLIN | {"beta_log": 0.00025}),
    "vectorized_loglin_dqn_minatar.gin": config(
        "loglin_dqn", LOG_DQN | MINATAR | LOGLIN | {"beta_log": 0.0005}, **MINATAR_RUNNER
    ),
    "vectorized_dqn_minatar.gin": config("dqn", DQN | MINATAR, **MINATAR_RUNNER),
    "vectorized_log_dqn_env.gin": config(
        "log_dqn", LOG_DQN | ENV | {"beta_reg": 0.3, "c": 1.0, "k": 400, "beta_log": 0.001},
        **ENV_RUNNER,
    ),
    "vectorized_loglin_dqn_env.gin": config(
        "loglin_dqn", LOG_DQN | ENV | {
            "linear_above": 1.0, "c": 1.0, "beta_reg": 1.0, "k": 400, "beta_log": 0.00025,
            "clip_bootstrap": False,
        }, **ENV_RUNNER,
    ),
    "vectorized_dqn_env.gin": config("dqn", DQN | ENV, **ENV_RUNNER),
}  # fmt: skip


def test_every_file_is_covered():
    names = {path.name for path in gin_files.config_dir().glob("vectorized_*.gin")}
    assert {name for name in names if not name.endswith("_protocol.gin")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_hyperparameter(name):
    gin.parse_config_file(gin_files.find_gin_file(name))
    bound = {
        selector.rsplit(".", 1)[-1]: parameters
        for (_, selector), parameters in gin.config._CONFIG.items()
    }
    assert bound == EXPECTED[name]
    # What a file sets is what its objects get, and every field is set.
    protocol = schedule.RunnerSettings()
    agent = agents.AGENTS[protocol.agent]()
    class_name = type(agent).__name__
    assert dataclasses.asdict(protocol) == {**ATARI, **EXPECTED[name]["VectorizedRunner"]}
    assert dataclasses.asdict(agent) == {
        **({"linear_above": math.inf} if "k" in dataclasses.asdict(agent) else {}),
        "optimizer": "rmsprop_tf",
        **EXPECTED[name][class_name],
    }


def test_the_files_are_the_defaults():
    # So that the paper's settings stand in one place more, where they can be compared.
    default = dataclasses.asdict(agents.VectorizedLogDQNAgent())
    assert default == {"optimizer": "rmsprop_tf", "linear_above": math.inf, **LOG_DQN}
    assert dataclasses.asdict(schedule.RunnerSettings()) == {"agent": "log_dqn", **RUNNER, **ATARI}
    assert agents.VectorizedDQNAgent().learning_rate == 0.00025


def test_another_optimizer_may_be_chosen_beside_a_file():
    written = request.parse(
        [], ["VectorizedLogDQNAgent.optimizer='rmsprop_tf'"], "log_dqn", "MinAtar/Breakout"
    )
    start.configure(written)
    (setting,) = start.read_settings(written.lines, [])
    assert setting.agent.optimizer == "rmsprop_tf"
    assert "adam.epsilon" not in setting.config.parameters
    assert setting.config.parameters["rmsprop_tf.epsilon"] == 0.00001
    own = gin_files.parse([], ["adam.epsilon = 0.1"]).lines
    with pytest.raises(ValueError, match=r"adam.epsilon is 0.1, .* mean rmsprop_tf.epsilon"):
        start.read_settings(own, [])
