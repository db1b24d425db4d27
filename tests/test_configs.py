"""Every shipped gin file, every hyperparameter, against the design's tables."""

import gin
import numpy as np
import pytest
import tensorflow as tf

from log_dqn.program import gin_files
from log_dqn.run_folder import configuration
from log_dqn.single import request, start

OPTIMIZERS = {
    "RMSPropOptimizer": {"decay": 0.95, "momentum": 0.0, "epsilon": 0.00001, "centered": True},
    "AdamOptimizer": {},
}

ATARI_PROTOCOL = {
    "Runner.create_environment_fn": "@atari.create_environment",
    "create_environment.game_name": "Pong",
    "create_environment.sticky_actions": True,
    "create_runner.schedule": "continuous_train_and_eval",
    "Runner.num_iterations": 200,
    "Runner.training_steps": 250_000,
    "Runner.evaluation_steps": 125_000,
    "Runner.max_steps_per_episode": 27_000,
    "Runner.clip_rewards": True,
    "CollectorDispatcher.collectors": ["pickle"],
}


def agent_protocol(agent):
    return {
        f"{agent}.min_replay_history": 20_000,
        f"{agent}.update_period": 4,
        f"{agent}.target_update_period": 8_000,
        f"{agent}.epsilon_train": 0.01,
        f"{agent}.epsilon_eval": 0.001,
        f"{agent}.epsilon_decay_period": 250_000,
        f"{agent}.tf_device": "/gpu:0",
    }


def replay(kind):
    return {f"{kind}.replay_capacity": 1_000_000, f"{kind}.batch_size": 32}


def optimizer(agent, name, learning_rate, **settings):
    settings = {"learning_rate": learning_rate, **OPTIMIZERS[name], **settings}
    return {
        f"{agent}.optimizer": f"@tf.train.{name}()",
        **{f"tf.train.{name}.{key}": value for key, value in settings.items()},
    }


def cartpole(agent, module):
    """What the files for CartPole take from Dopamine: observations of its module's dtype."""
    return {
        f"{agent}.observation_shape": "%gym_lib.CARTPOLE_OBSERVATION_SHAPE",
        f"{agent}.observation_dtype": f"%{module}.CARTPOLE_OBSERVATION_DTYPE",
        f"{agent}.stack_size": "%gym_lib.CARTPOLE_STACK_SIZE",
        "Runner.create_environment_fn": "@gym_lib.create_gym_environment",
    }


LOG_DQN = {
    "create_agent.agent_name": "log_dqn",
    "LogDQNAgent.gamma": 0.96,
    "LogDQNAgent.k": 100,
    "LogDQNAgent.c": 0.5,
    "LogDQNAgent.beta_reg": 0.1,
    "LogDQNAgent.q_init_plus": 1.0,
    "LogDQNAgent.q_init_minus": 0.0,
    "LogDQNAgent.clip_bootstrap": True,
    "LogDQNAgent.clip_inverse": False,
    "LogDQNAgent.head_init": "asymmetric",
    "LogDQNAgent.loss_type": "huber",
    "LogDQNAgent.dtype": "float32",
    "LogDQNAgent.update_horizon": 1,
    **agent_protocol("LogDQNAgent"),
    **optimizer("LogDQNAgent", "RMSPropOptimizer", 0.0025),
    **replay("WrappedReplayBuffer"),
    **ATARI_PROTOCOL,
}

EXPECTED = {
    "log_dqn.gin": LOG_DQN,
    "log_dqn_quick.gin": {
        **LOG_DQN,
        "LogDQNAgent.min_replay_history": 1000,
        "LogDQNAgent.target_update_period": 500,
        "LogDQNAgent.epsilon_decay_period": 5000,
        "Runner.num_iterations": 3,
        "Runner.training_steps": 4000,
        "Runner.evaluation_steps": 1000,
        "WrappedReplayBuffer.replay_capacity": 15_000,
    },
    "log_dqn_cartpole.gin": {
        "create_agent.agent_name": "log_dqn",
        "LogDQNAgent.gamma": 0.96,
        "LogDQNAgent.k": 100,
        "LogDQNAgent.c": 1.0,
        "LogDQNAgent.beta_reg": 0.1,
        "LogDQNAgent.update_horizon": 1,
        "LogDQNAgent.min_replay_history": 500,
        "LogDQNAgent.update_period": 2,
        "LogDQNAgent.target_update_period": 100,
        "LogDQNAgent.tf_device": "/gpu:0",
        **optimizer("LogDQNAgent", "AdamOptimizer", 0.001, epsilon=0.0003125),
        **cartpole("LogDQNAgent", "gym_lib"),
        "LogDQNAgent.network": "@gym_lib.CartpoleDQNNetwork",
        "LogDQNAgent.epsilon_fn": "@tf.agents.dqn.dqn_agent.identity_epsilon",
        "create_gym_environment.environment_name": "CartPole",
        "create_gym_environment.version": "v1",
        "create_runner.schedule": "continuous_train_and_eval",
        "Runner.num_iterations": 10,
        "Runner.training_steps": 1000,
        "Runner.evaluation_steps": 1000,
        "Runner.max_steps_per_episode": 200,
        "CollectorDispatcher.collectors": ["pickle"],
        "WrappedReplayBuffer.replay_capacity": 50_000,
        "WrappedReplayBuffer.batch_size": 128,
    },
    "dqn.gin": {
        "create_agent.agent_name": "dqn",
        "DQNAgent.gamma": 0.99,
        "DQNAgent.update_horizon": 1,
        **agent_protocol("DQNAgent"),
        **optimizer("DQNAgent", "RMSPropOptimizer", 0.00025),
        **replay("WrappedReplayBuffer"),
        **ATARI_PROTOCOL,
    },
    "c51.gin": {
        "create_agent.agent_name": "c51",
        "RainbowAgent.num_atoms": 51,
        "RainbowAgent.vmax": 10.0,
        "RainbowAgent.replay_scheme": "uniform",
        "RainbowAgent.gamma": 0.99,
        "RainbowAgent.update_horizon": 1,
        **agent_protocol("RainbowAgent"),
        **optimizer("RainbowAgent", "AdamOptimizer", 0.00025, epsilon=0.0003125),
        **replay("WrappedPrioritizedReplayBuffer"),
        **ATARI_PROTOCOL,
    },
    "rainbow.gin": {
        "create_agent.agent_name": "rainbow",
        "RainbowAgent.num_atoms": 51,
        "RainbowAgent.vmax": 10.0,
        "RainbowAgent.replay_scheme": "prioritized",
        "RainbowAgent.gamma": 0.99,
        "RainbowAgent.update_horizon": 3,
        **agent_protocol("RainbowAgent"),
        **optimizer("RainbowAgent", "AdamOptimizer", 0.0000625, epsilon=0.00015),
        **replay("WrappedPrioritizedReplayBuffer"),
        **ATARI_PROTOCOL,
    },
    "implicit_quantile.gin": {
        "create_agent.agent_name": "implicit_quantile",
        "ImplicitQuantileAgent.kappa": 1.0,
        "ImplicitQuantileAgent.num_tau_samples": 64,
        "ImplicitQuantileAgent.num_tau_prime_samples": 64,
        "ImplicitQuantileAgent.num_quantile_samples": 32,
        "RainbowAgent.replay_scheme": "uniform",
        "RainbowAgent.gamma": 0.99,
        "RainbowAgent.update_horizon": 3,
        **agent_protocol("RainbowAgent"),
        **optimizer("RainbowAgent", "AdamOptimizer", 0.00005, epsilon=0.0003125),
        **replay("WrappedPrioritizedReplayBuffer"),
        **ATARI_PROTOCOL,
    },
}

JAX_PROTOCOL = {
    **ATARI_PROTOCOL,
    "ReplayBuffer.max_capacity": 1_000_000,
    "ReplayBuffer.batch_size": 32,
}
JAX_TRAIN_PROTOCOL = {
    **{key: value for key, value in JAX_PROTOCOL.items() if key != "Runner.evaluation_steps"},
    "create_runner.schedule": "continuous_train",
}


def jax_agent_protocol(agent):
    return {
        key: value for key, value in agent_protocol(agent).items() if not key.endswith("tf_device")
    }


def adam(agent, learning_rate, eps):
    return {
        f"{agent}.optimizer": "adam",
        "create_optimizer.learning_rate": learning_rate,
        "create_optimizer.eps": eps,
    }


def rmsprop_tf(agent, learning_rate):
    settings = {"learning_rate": learning_rate, **OPTIMIZERS["RMSPropOptimizer"]}
    return {
        f"{agent}.optimizer": "@rmsprop_tf()",
        **{f"rmsprop_tf.{key}": value for key, value in settings.items()},
    }


JAX_LOG_DQN = {
    **{
        f"Jax{key}": value
        for key, value in LOG_DQN.items()
        if key.startswith("LogDQNAgent") and key.split(".")[1] not in ("dtype", "tf_device")
    },
    "create_agent.agent_name": "jax_log_dqn",
    **rmsprop_tf("JaxLogDQNAgent", 0.0025),
    "JaxLogDQNAgent.network": "@jax.networks.NatureDQNNetwork",
    **JAX_PROTOCOL,
}

EXPECTED |= {
    "jax_log_dqn.gin": JAX_LOG_DQN,
    "jax_log_dqn_adam.gin": {**JAX_LOG_DQN, **adam("JaxLogDQNAgent", 0.0000625, 0.00015)},
    "jax_log_dqn_quick.gin": {
        **JAX_LOG_DQN,
        "JaxLogDQNAgent.min_replay_history": 1000,
        "JaxLogDQNAgent.target_update_period": 500,
        "JaxLogDQNAgent.epsilon_decay_period": 5000,
        "Runner.num_iterations": 3,
        "Runner.training_steps": 2000,
        "Runner.evaluation_steps": 1000,
        "ReplayBuffer.max_capacity": 15_000,
    },
    "jax_log_dqn_cartpole.gin": {
        **{
            key.replace("LogDQNAgent", "JaxLogDQNAgent"): value
            for key, value in EXPECTED["log_dqn_cartpole.gin"].items()
            if not key.startswith(("tf.train", "WrappedReplayBuffer", "LogDQNAgent.tf_device"))
        },
        "create_agent.agent_name": "jax_log_dqn",
        "JaxLogDQNAgent.c": 1.0,
        "JaxLogDQNAgent.update_period": 2,
        **adam("JaxLogDQNAgent", 0.001, 0.0003125),
        **cartpole("JaxLogDQNAgent", "jax_networks"),
        "JaxLogDQNAgent.network": "@jax.networks.ClassicControlDQNNetwork",
        "JaxLogDQNAgent.epsilon_fn": "@jax.agents.dqn.dqn_agent.identity_epsilon",
        "ClassicControlDQNNetwork.min_vals": "%jax_networks.CARTPOLE_MIN_VALS",
        "ClassicControlDQNNetwork.max_vals": "%jax_networks.CARTPOLE_MAX_VALS",
        "ClassicControlDQNNetwork.num_layers": 2,
        "ClassicControlDQNNetwork.hidden_units": 512,
        "ReplayBuffer.max_capacity": 50_000,
        "ReplayBuffer.batch_size": 128,
    },
    "jax_dqn.gin": {
        "create_agent.agent_name": "jax_dqn",
        "JaxDQNAgent.gamma": 0.99,
        "JaxDQNAgent.update_horizon": 1,
        "JaxDQNAgent.loss_type": "mse",
        **jax_agent_protocol("JaxDQNAgent"),
        **adam("JaxDQNAgent", 0.0000625, 0.00015),
        **JAX_TRAIN_PROTOCOL,
    },
    "jax_dqn_rmsprop.gin": {
        "create_agent.agent_name": "jax_dqn",
        "JaxDQNAgent.gamma": 0.99,
        "JaxDQNAgent.update_horizon": 1,
        "JaxDQNAgent.loss_type": "huber",
        **jax_agent_protocol("JaxDQNAgent"),
        **rmsprop_tf("JaxDQNAgent", 0.00025),
        **JAX_PROTOCOL,
    },
    "jax_rainbow.gin": {
        "create_agent.agent_name": "jax_rainbow",
        "JaxRainbowAgent.num_atoms": 51,
        "JaxRainbowAgent.vmax": 10.0,
        "JaxRainbowAgent.replay_scheme": "prioritized",
        "JaxRainbowAgent.gamma": 0.99,
        "JaxRainbowAgent.update_horizon": 3,
        **jax_agent_protocol("JaxRainbowAgent"),
        **adam("JaxRainbowAgent", 0.0000625, 0.00015),
        "PrioritizedSamplingDistribution.max_capacity": 1_000_000,
        **JAX_TRAIN_PROTOCOL,
    },
    "jax_implicit_quantile.gin": {
        "create_agent.agent_name": "jax_implicit_quantile",
        "JaxImplicitQuantileAgent.kappa": 1.0,
        "JaxImplicitQuantileAgent.num_tau_samples": 64,
        "JaxImplicitQuantileAgent.num_tau_prime_samples": 64,
        "JaxImplicitQuantileAgent.num_quantile_samples": 32,
        "JaxImplicitQuantileAgent.gamma": 0.99,
        "JaxImplicitQuantileAgent.update_horizon": 3,
        **jax_agent_protocol("JaxImplicitQuantileAgent"),
        **adam("JaxImplicitQuantileAgent", 0.00005, 0.0003125),
        **JAX_TRAIN_PROTOCOL,
    },
    "full_rainbow.gin": {
        "create_agent.agent_name": "full_rainbow",
        "JaxFullRainbowAgent.noisy": True,
        "JaxFullRainbowAgent.dueling": True,
        "JaxFullRainbowAgent.double_dqn": True,
        "JaxFullRainbowAgent.distributional": True,
        "JaxFullRainbowAgent.num_atoms": 51,
        "JaxFullRainbowAgent.vmax": 10.0,
        "JaxFullRainbowAgent.replay_scheme": "prioritized",
        "JaxDQNAgent.gamma": 0.99,
        "JaxDQNAgent.update_horizon": 3,
        **jax_agent_protocol("JaxDQNAgent"),
        **adam("JaxDQNAgent", 0.0000625, 0.00015),
        "PrioritizedSamplingDistribution.max_capacity": 1_000_000,
        **JAX_TRAIN_PROTOCOL,
    },
}

# MinAtar: the settings of Revisiting Rainbow (Obando-Ceron and Castro, 2021); LogDQN's own are the
# paper's.
MINATAR_PROTOCOL = {
    "Runner.create_environment_fn": "@create_minatar_environment",
    "create_minatar_environment.game_name": "MinAtar/Breakout",
    "create_runner.schedule": "continuous_train",
    "Runner.num_iterations": 20,
    "Runner.training_steps": 50_000,
    "Runner.max_steps_per_episode": 1_000_000_000,
    "Runner.clip_rewards": True,
    "CollectorDispatcher.collectors": ["pickle"],
}


def minatar(atari, agent, adam, learning_rate, replay):
    """Returns what a MinAtar file sets: the Atari file's of the agent, but for MinAtar's."""
    of_agent = {name: value for name, value in EXPECTED[atari].items() if name.startswith(agent)}
    return {
        "create_agent.agent_name": EXPECTED[atari]["create_agent.agent_name"],
        **of_agent,
        f"{agent}.network": f"@{'Jax' * agent.startswith('Jax')}RevisitingRainbowNetwork",
        f"{agent}.optimizer": f"@{adam}()",
        f"{agent}.loss_type": "huber",
        f"{agent}.stack_size": 1,
        f"{agent}.min_replay_history": 1000,
        f"{agent}.target_update_period": 1000,
        f"{adam}.learning_rate": learning_rate,
        f"{adam}.beta1": 0.9,
        f"{adam}.beta2": 0.999,
        f"{adam}.epsilon": 0.0003125,
        replay: 100_000,
        f"{replay.split('.')[0]}.batch_size": 32,
        **MINATAR_PROTOCOL,
    }


TF_ADAM, TF_REPLAY = "tf.train.AdamOptimizer", "WrappedReplayBuffer.replay_capacity"
JAX_ADAM, JAX_REPLAY = "adam", "ReplayBuffer.max_capacity"
EXPECTED |= {
    "log_dqn_minatar.gin": minatar("log_dqn.gin", "LogDQNAgent", TF_ADAM, 0.0025, TF_REPLAY),
    "dqn_minatar.gin": minatar("dqn.gin", "DQNAgent", TF_ADAM, 0.00025, TF_REPLAY),
    "jax_log_dqn_minatar.gin": minatar(
        "jax_log_dqn.gin", "JaxLogDQNAgent", JAX_ADAM, 0.0025, JAX_REPLAY
    ),
    "jax_dqn_minatar.gin": minatar("jax_dqn.gin", "JaxDQNAgent", JAX_ADAM, 0.00025, JAX_REPLAY),
}
for name, agent in (("log_dqn", "LogDQNAgent"), ("jax_log_dqn", "JaxLogDQNAgent")):
    # As tuned on MinAtar: docs/minatar_tuning.md.
    EXPECTED[f"{name}_minatar.gin"] |= {f"{agent}.beta_reg": 0.3, f"{agent}.c": 1.0}
del EXPECTED["dqn_minatar.gin"]["DQNAgent.loss_type"]  # It has no other.

# The paper's earlier LogDQN did not average.
EXPECTED["paper_scan.gin"] = {
    **LOG_DQN,
    "LogDQNAgent.beta_reg": 1.0,
    **optimizer("LogDQNAgent", "RMSPropOptimizer", 0.00025),
}

# Environments of gymnasium: Dopamine's settings for LunarLander, with epsilon that decays.
GYM_LOG_DQN = {"gamma": 0.96, "k": 100, "c": 1.0, "beta_reg": 0.1}


def gym(agent_name, agent, own):
    of_agent = {
        **own,
        "update_horizon": 1,
        "min_replay_history": 500,
        "update_period": 4,
        "target_update_period": 100,
        "epsilon_train": 0.01,
        "epsilon_eval": 0.001,
        "epsilon_decay_period": 10_000,
    }
    framework = {
        f"{agent}.tf_device": "/gpu:0",
        **optimizer(agent, "AdamOptimizer", 0.001, epsilon=0.0003125),
        "WrappedReplayBuffer.replay_capacity": 50_000,
        "WrappedReplayBuffer.batch_size": 128,
    }
    if agent_name.startswith("jax"):
        framework = {
            **adam(agent, 0.001, 0.0003125),
            "ReplayBuffer.max_capacity": 50_000,
            "ReplayBuffer.batch_size": 128,
        }
    return {
        "create_agent.agent_name": agent_name,
        **{f"{agent}.{name}": value for name, value in of_agent.items()},
        **framework,
        "Runner.create_environment_fn": "@create_gymnasium_environment",
        "create_gymnasium_environment.environment_id": "CartPole-v1",
        "create_gymnasium_environment.bootstrap_at_time_limit": True,
        "create_runner.schedule": "continuous_train_and_eval",
        "Runner.num_iterations": 100,
        "Runner.training_steps": 4000,
        "Runner.evaluation_steps": 1000,
        "Runner.max_steps_per_episode": 10_000,
        "Runner.clip_rewards": True,
        "CollectorDispatcher.collectors": ["pickle"],
    }


EXPECTED |= {
    "log_dqn_gym.gin": gym("log_dqn", "LogDQNAgent", GYM_LOG_DQN),
    "dqn_gym.gin": gym("dqn", "DQNAgent", {"gamma": 0.99}),
    "jax_log_dqn_gym.gin": gym("jax_log_dqn", "JaxLogDQNAgent", GYM_LOG_DQN),
    "jax_dqn_gym.gin": gym("jax_dqn", "JaxDQNAgent", {"gamma": 0.99, "loss_type": "huber"}),
}

# LogLinDQN: LogDQN's files, with a line above 0.1 of slope 1, and averaging in the log space alone.
for name, agent, rmsprop, adam in (
    ("log_dqn", "LogDQNAgent", "tf.train.RMSPropOptimizer", "tf.train.AdamOptimizer"),
    ("jax_log_dqn", "JaxLogDQNAgent", "rmsprop_tf", "adam"),
):
    loglin = name.replace("log", "loglin")
    line = {
        "create_agent.agent_name": loglin,
        f"{agent}.linear_above": 0.1,
        f"{agent}.c": 0.1,
        f"{agent}.beta_reg": 1.0,
    }
    EXPECTED |= {
        f"{loglin}.gin": EXPECTED[f"{name}.gin"] | line | {f"{rmsprop}.learning_rate": 0.00025},
        f"{loglin}_gym.gin": EXPECTED[f"{name}_gym.gin"] | line,
        f"{loglin}_minatar.gin": EXPECTED[f"{name}_minatar.gin"]
        | line
        | {f"{adam}.learning_rate": 0.0005},
    }


@pytest.fixture(autouse=True)
def clean_gin():
    gin.clear_config()
    yield
    gin.clear_config()


def test_every_file_is_covered():
    names = {path.name for path in gin_files.config_dir().glob("*.gin")}
    # Those of vectorized training have a test of their own.
    assert {name for name in names if not name.startswith("vectorized_")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_hyperparameter(name):
    start.configure(request.check([name], []))
    # References and constants as gin writes them; no other parameter is bound.
    found = configuration.parameters(gin.config_str())
    assert {gin_files.short_name(parameter): value for parameter, value in found.items()} == {
        gin_files.short_name(parameter): value for parameter, value in EXPECTED[name].items()
    }


def test_the_optimizer_is_the_paper_s():
    start.configure(request.check(["log_dqn.gin"], []))
    optimizer = gin.query_parameter("LogDQNAgent.optimizer").scoped_configurable_fn()
    assert isinstance(optimizer, tf.compat.v1.train.RMSPropOptimizer)
    assert (optimizer._learning_rate, optimizer._decay, optimizer._momentum) == (0.0025, 0.95, 0.0)
    assert (optimizer._epsilon, optimizer._centered) == (1e-5, True)
    # beta_log * beta_reg is DQN's step-size (section 5).
    assert optimizer._learning_rate * gin.query_parameter("LogDQNAgent.beta_reg") == pytest.approx(
        0.00025
    )


def test_the_jax_optimizer_is_the_paper_s():
    start.configure(request.check(["jax_log_dqn.gin"], []))
    optimizer = gin.query_parameter("JaxLogDQNAgent.optimizer").scoped_configurable_fn()
    # g = 2: ms = 0.95 + 0.05 * 4 = 1.15, mg = 0.05 * 2 = 0.1.
    step, _ = optimizer.update(np.full(1, 2.0), optimizer.init(np.zeros(1, np.float32)))
    np.testing.assert_allclose(step, [-0.0025 * 2 / np.sqrt(1.15 - 0.01 + 1e-5)], rtol=1e-6)
    assert gin.query_parameter("rmsprop_tf.learning_rate") * gin.query_parameter(
        "JaxLogDQNAgent.beta_reg"
    ) == pytest.approx(0.00025)
