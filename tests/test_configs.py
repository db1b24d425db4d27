"""Every shipped gin file, every hyperparameter, against the design's tables."""

import gin
import pytest

from log_dqn.program import gin_files
from log_dqn.run_folder import configuration
from log_dqn.single import request, start

OPTIMIZERS = {
    "RMSPropOptimizer": {"decay": 0.95, "momentum": 0.0, "epsilon": 0.00001, "centered": True},
    "AdamOptimizer": {},
}


def of(name, **settings):
    """The settings of one class or function, as gin names them."""
    return {f"{name}.{key}": value for key, value in settings.items()}


def runner(iterations, training_steps, evaluation_steps, max_steps_per_episode, **settings):
    """Of a run with evaluation phases, or with None without."""
    if evaluation_steps is not None:
        settings["evaluation_steps"] = evaluation_steps
    return {
        "create_runner.schedule": "continuous_train"
        + "_and_eval" * ("evaluation_steps" in settings),
        "CollectorDispatcher.collectors": ["pickle"],
        **of("Runner", num_iterations=iterations, training_steps=training_steps, **settings),
        "Runner.max_steps_per_episode": max_steps_per_episode,
    }


def atari(evaluation_steps=125_000):
    return {
        "Runner.create_environment_fn": "@atari.create_environment",
        **of("create_environment", game_name="Pong", sticky_actions=True),
        **runner(200, 250_000, evaluation_steps, 27_000, clip_rewards=True),
    }


def agent_protocol(agent):
    return {
        **of(agent, min_replay_history=20_000, update_period=4, target_update_period=8_000),
        **of(agent, epsilon_train=0.01, epsilon_eval=0.001, epsilon_decay_period=250_000),
        **({} if agent.startswith("Jax") else {f"{agent}.tf_device": "/gpu:0"}),
    }


def replay(kind, replay_capacity=1_000_000, batch_size=32):
    return of(kind, replay_capacity=replay_capacity, batch_size=batch_size)


def jax_replay(max_capacity=1_000_000, batch_size=32):
    return of("ReplayBuffer", max_capacity=max_capacity, batch_size=batch_size)


def optimizer(agent, name, learning_rate, **settings):
    settings = {"learning_rate": learning_rate, **OPTIMIZERS[name], **settings}
    return {f"{agent}.optimizer": f"@tf.train.{name}()", **of(f"tf.train.{name}", **settings)}


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
    **of("LogDQNAgent", gamma=0.96, k=100, c=0.5, beta_reg=0.1, q_init_plus=1.0, q_init_minus=0.0),
    **of("LogDQNAgent", clip_bootstrap=True, clip_inverse=False, head_init="asymmetric"),
    **of("LogDQNAgent", loss_type="huber", dtype="float32", update_horizon=1),
    **agent_protocol("LogDQNAgent"),
    **optimizer("LogDQNAgent", "RMSPropOptimizer", 0.0025),
    **replay("WrappedReplayBuffer"),
    **atari(),
}
QUICK = {"min_replay_history": 1000, "target_update_period": 500, "epsilon_decay_period": 5000}


def rainbow(agent_name, learning_rate, epsilon, update_horizon, replay_scheme, **settings):
    """An agent on Dopamine's Rainbow; `settings` are its own."""
    return {
        "create_agent.agent_name": agent_name,
        **of("RainbowAgent", gamma=0.99, update_horizon=update_horizon),
        **of("RainbowAgent", replay_scheme=replay_scheme, **settings),
        **agent_protocol("RainbowAgent"),
        **optimizer("RainbowAgent", "AdamOptimizer", learning_rate, epsilon=epsilon),
        **replay("WrappedPrioritizedReplayBuffer"),
        **atari(),
    }


QUANTILES = {
    "kappa": 1.0, "num_tau_samples": 64, "num_tau_prime_samples": 64, "num_quantile_samples": 32
}  # fmt: skip

EXPECTED = {
    "log_dqn.gin": LOG_DQN,
    "log_dqn_quick.gin": {
        **LOG_DQN,
        **of("LogDQNAgent", **QUICK),
        **of("Runner", num_iterations=3, training_steps=4000, evaluation_steps=1000),
        "WrappedReplayBuffer.replay_capacity": 15_000,
    },
    "log_dqn_cartpole.gin": {
        "create_agent.agent_name": "log_dqn",
        **of("LogDQNAgent", gamma=0.96, k=100, c=1.0, beta_reg=0.1, update_horizon=1),
        **of("LogDQNAgent", min_replay_history=500, update_period=2, target_update_period=100),
        **of("LogDQNAgent", tf_device="/gpu:0", network="@gym_lib.CartpoleDQNNetwork"),
        "LogDQNAgent.epsilon_fn": "@tf.agents.dqn.dqn_agent.identity_epsilon",
        **optimizer("LogDQNAgent", "AdamOptimizer", 0.001, epsilon=0.0003125),
        **cartpole("LogDQNAgent", "gym_lib"),
        **of("create_gym_environment", environment_name="CartPole", version="v1"),
        **runner(10, 1000, 1000, 200),
        **replay("WrappedReplayBuffer", 50_000, 128),
    },
    "dqn.gin": {
        "create_agent.agent_name": "dqn",
        **of("DQNAgent", gamma=0.99, update_horizon=1),
        **agent_protocol("DQNAgent"),
        **optimizer("DQNAgent", "RMSPropOptimizer", 0.00025),
        **replay("WrappedReplayBuffer"),
        **atari(),
    },
    "c51.gin": rainbow("c51", 0.00025, 0.0003125, 1, "uniform", num_atoms=51, vmax=10.0),
    "rainbow.gin": rainbow(
        "rainbow", 0.0000625, 0.00015, 3, "prioritized", num_atoms=51, vmax=10.0
    ),
    "implicit_quantile.gin": {
        **rainbow("implicit_quantile", 0.00005, 0.0003125, 3, "uniform"),
        **of("ImplicitQuantileAgent", **QUANTILES),
    },
}


def adam(agent, learning_rate, eps):
    settings = of("create_optimizer", learning_rate=learning_rate, eps=eps)
    return {f"{agent}.optimizer": "adam", **settings}


def rmsprop_tf(agent, learning_rate):
    settings = {"learning_rate": learning_rate, **OPTIMIZERS["RMSPropOptimizer"]}
    return {f"{agent}.optimizer": "@rmsprop_tf()", **of("rmsprop_tf", **settings)}


JAX_LOG_DQN = {
    **{
        f"Jax{key}": value
        for key, value in LOG_DQN.items()
        if key.startswith("LogDQNAgent") and key.split(".")[1] not in ("dtype", "tf_device")
    },
    "create_agent.agent_name": "jax_log_dqn",
    **rmsprop_tf("JaxLogDQNAgent", 0.0025),
    "JaxLogDQNAgent.network": "@jax.networks.NatureDQNNetwork",
    **jax_replay(),
    **atari(),
}


def jax_agent(agent_name, agent, optimizer, update_horizon=1, evaluation_steps=None, **settings):
    """One of Dopamine's agents; `settings` are its own."""
    return {
        "create_agent.agent_name": agent_name,
        **of(agent, gamma=0.99, update_horizon=update_horizon, **settings),
        **agent_protocol(agent),
        **optimizer,
        **jax_replay(),
        **atari(evaluation_steps),
    }


EXPECTED |= {
    "jax_log_dqn.gin": JAX_LOG_DQN,
    "jax_log_dqn_adam.gin": {**JAX_LOG_DQN, **adam("JaxLogDQNAgent", 0.0000625, 0.00015)},
    "jax_log_dqn_quick.gin": {
        **JAX_LOG_DQN,
        **of("JaxLogDQNAgent", **QUICK),
        **of("Runner", num_iterations=3, training_steps=2000, evaluation_steps=1000),
        "ReplayBuffer.max_capacity": 15_000,
    },
    "jax_log_dqn_cartpole.gin": {
        **{
            key.replace("LogDQNAgent", "JaxLogDQNAgent"): value
            for key, value in EXPECTED["log_dqn_cartpole.gin"].items()
            if not key.startswith(("tf.train", "WrappedReplayBuffer", "LogDQNAgent.tf_device"))
        },
        "create_agent.agent_name": "jax_log_dqn",
        **adam("JaxLogDQNAgent", 0.001, 0.0003125),
        **cartpole("JaxLogDQNAgent", "jax_networks"),
        "JaxLogDQNAgent.network": "@jax.networks.ClassicControlDQNNetwork",
        "JaxLogDQNAgent.epsilon_fn": "@jax.agents.dqn.dqn_agent.identity_epsilon",
        "ClassicControlDQNNetwork.min_vals": "%jax_networks.CARTPOLE_MIN_VALS",
        "ClassicControlDQNNetwork.max_vals": "%jax_networks.CARTPOLE_MAX_VALS",
        **of("ClassicControlDQNNetwork", num_layers=2, hidden_units=512),
        **jax_replay(50_000, 128),
    },
    "jax_dqn.gin": jax_agent(
        "jax_dqn", "JaxDQNAgent", adam("JaxDQNAgent", 0.0000625, 0.00015), loss_type="mse"
    ),
    "jax_dqn_rmsprop.gin": jax_agent(
        "jax_dqn", "JaxDQNAgent", rmsprop_tf("JaxDQNAgent", 0.00025), 1, 125_000, loss_type="huber"
    ),
    "jax_rainbow.gin": {
        **jax_agent(
            "jax_rainbow", "JaxRainbowAgent", adam("JaxRainbowAgent", 0.0000625, 0.00015), 3,
            num_atoms=51, vmax=10.0, replay_scheme="prioritized",
        ),
        "PrioritizedSamplingDistribution.max_capacity": 1_000_000,
    },
    "jax_implicit_quantile.gin": jax_agent(
        "jax_implicit_quantile", "JaxImplicitQuantileAgent",
        adam("JaxImplicitQuantileAgent", 0.00005, 0.0003125), 3, **QUANTILES,
    ),
    "full_rainbow.gin": {
        **jax_agent(
            "full_rainbow", "JaxDQNAgent", adam("JaxDQNAgent", 0.0000625, 0.00015), 3
        ),
        **of("JaxFullRainbowAgent", noisy=True, dueling=True, double_dqn=True),
        **of("JaxFullRainbowAgent", distributional=True, num_atoms=51, vmax=10.0),
        "JaxFullRainbowAgent.replay_scheme": "prioritized",
        "PrioritizedSamplingDistribution.max_capacity": 1_000_000,
    },
}  # fmt: skip


def minatar(atari_file, agent, adam, learning_rate, replay):
    """Returns what a MinAtar file sets: the Atari file's of the agent, but for MinAtar's.

    MinAtar's are the settings of Revisiting Rainbow (Obando-Ceron and Castro, 2021); LogDQN's own
    are the paper's.
    """
    of_atari = EXPECTED[atari_file]
    return {
        "create_agent.agent_name": of_atari["create_agent.agent_name"],
        **{name: value for name, value in of_atari.items() if name.startswith(agent)},
        f"{agent}.network": f"@{'Jax' * agent.startswith('Jax')}RevisitingRainbowNetwork",
        f"{agent}.optimizer": f"@{adam}()",
        **of(agent, loss_type="huber", stack_size=1),
        **of(agent, min_replay_history=1000, target_update_period=1000),
        **of(adam, learning_rate=learning_rate, beta1=0.9, beta2=0.999, epsilon=0.0003125),
        replay: 100_000,
        f"{replay.split('.')[0]}.batch_size": 32,
        "Runner.create_environment_fn": "@create_minatar_environment",
        "create_minatar_environment.game_name": "MinAtar/Breakout",
        **runner(20, 50_000, None, 1_000_000_000, clip_rewards=True),
    }


TF = "tf.train.AdamOptimizer", 0.0025, "WrappedReplayBuffer.replay_capacity"
JAX = "adam", 0.0025, "ReplayBuffer.max_capacity"
EXPECTED |= {
    "log_dqn_minatar.gin": minatar("log_dqn.gin", "LogDQNAgent", *TF),
    "dqn_minatar.gin": minatar("dqn.gin", "DQNAgent", TF[0], 0.00025, TF[2]),
    "jax_log_dqn_minatar.gin": minatar("jax_log_dqn.gin", "JaxLogDQNAgent", *JAX),
    "jax_dqn_minatar.gin": minatar("jax_dqn.gin", "JaxDQNAgent", JAX[0], 0.00025, JAX[2]),
}
for name, agent in (("log_dqn", "LogDQNAgent"), ("jax_log_dqn", "JaxLogDQNAgent")):
    # As tuned on MinAtar: docs/reports/minatar_appendix.md.
    EXPECTED[f"{name}_minatar.gin"] |= of(agent, beta_reg=0.3, c=1.0)
del EXPECTED["dqn_minatar.gin"]["DQNAgent.loss_type"]  # It has no other.

# The paper's earlier LogDQN did not average.
EXPECTED["paper_scan.gin"] = {
    **LOG_DQN,
    "LogDQNAgent.beta_reg": 1.0,
    **optimizer("LogDQNAgent", "RMSPropOptimizer", 0.00025),
}


def gym(agent_name, agent, **own):
    """Environments of gymnasium: Dopamine's settings for LunarLander, with epsilon that decays."""
    framework = {
        f"{agent}.tf_device": "/gpu:0",
        **optimizer(agent, "AdamOptimizer", 0.001, epsilon=0.0003125),
        **replay("WrappedReplayBuffer", 50_000, 128),
    }
    if agent_name.startswith("jax"):
        framework = {**adam(agent, 0.001, 0.0003125), **jax_replay(50_000, 128)}
    return {
        "create_agent.agent_name": agent_name,
        **of(agent, update_horizon=1, min_replay_history=500, update_period=4, **own),
        **of(agent, target_update_period=100, epsilon_train=0.01, epsilon_eval=0.001),
        f"{agent}.epsilon_decay_period": 10_000,
        **framework,
        "Runner.create_environment_fn": "@create_gymnasium_environment",
        "create_gymnasium_environment.environment_id": "CartPole-v1",
        "create_gymnasium_environment.bootstrap_at_time_limit": True,
        **runner(100, 4000, 1000, 10_000, clip_rewards=True),
    }


GYM_LOG_DQN = {"gamma": 0.96, "k": 100, "c": 1.0, "beta_reg": 0.1}
EXPECTED |= {
    "log_dqn_gym.gin": gym("log_dqn", "LogDQNAgent", **GYM_LOG_DQN),
    "dqn_gym.gin": gym("dqn", "DQNAgent", gamma=0.99),
    "jax_log_dqn_gym.gin": gym("jax_log_dqn", "JaxLogDQNAgent", **GYM_LOG_DQN),
    "jax_dqn_gym.gin": gym("jax_dqn", "JaxDQNAgent", gamma=0.99, loss_type="huber"),
}

# LogLinDQN: LogDQN's files, with a line above 0.1 of slope 1, and averaging in the log space alone.
for name, agent, rmsprop, own_adam in (
    ("log_dqn", "LogDQNAgent", "tf.train.RMSPropOptimizer", "tf.train.AdamOptimizer"),
    ("jax_log_dqn", "JaxLogDQNAgent", "rmsprop_tf", "adam"),
):
    loglin = name.replace("log", "loglin")
    line = {
        "create_agent.agent_name": loglin, **of(agent, linear_above=0.1, c=0.1, beta_reg=1.0)
    }  # fmt: skip
    for suffix, learning_rate in (
        ("", {f"{rmsprop}.learning_rate": 0.00025}),
        ("_gym", {}),
        ("_minatar", {f"{own_adam}.learning_rate": 0.0005}),
    ):
        EXPECTED[f"{loglin}{suffix}.gin"] = EXPECTED[f"{name}{suffix}.gin"] | line | learning_rate

# The gin file for short runs: docs/reports/atari.md.
EXPECTED["loglin_dqn_short.gin"] = {
    **EXPECTED["loglin_dqn.gin"],
    **optimizer("LogDQNAgent", "AdamOptimizer", 0.0000625, epsilon=0.00015),
    "create_runner.schedule": "continuous_train",
    **of("Runner", num_iterations=10, training_steps=50_000),
    "WrappedReplayBuffer.replay_capacity": 500_000,
}


def test_every_file_is_covered():
    names = {path.name for path in gin_files.config_dir().glob("*.gin")}
    # Those of vectorized training have a test of their own; the others' protocols are included.
    names = {name for name in names if not name.startswith("vectorized_")}
    assert {name for name in names if not name.endswith(("_protocol.gin", "short.gin"))} | {
        "loglin_dqn_short.gin"
    } == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_hyperparameter(name):
    start.configure(request.parse([name], []))
    # References and constants as gin writes them; no other parameter is bound.
    found = configuration.parameters(gin.config_str())
    assert {gin_files.short_name(parameter): value for parameter, value in found.items()} == {
        gin_files.short_name(parameter): value for parameter, value in EXPECTED[name].items()
    }
