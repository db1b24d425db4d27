"""Our gin files in Dopamine's own runner."""

import pathlib
import pickle
import re

import gin
import gym
import pytest
import tensorflow as tf
from dopamine.discrete_domains import run_experiment

from log_dqn import compat
from log_dqn.cli import gin_files
from log_dqn.dopamine_run import agents, request
from tests import programs

FILES = sorted(
    path.name
    for path in compat.config_dir().glob("*.gin")
    if not path.name.startswith("vectorized") and not re.search("protocol|^short", path.name)
)
# One for each framework, kind of game and schedule; the others take minutes together.
FAST = (
    "log_dqn.gin", "jax_log_dqn_minatar.gin", "log_dqn_cartpole.gin", "loglin_dqn_gym.gin"
)  # fmt: skip
SIZES = """
Runner.num_iterations = 1
Runner.training_steps = 60
Runner.evaluation_steps = 20
Runner.max_steps_per_episode = 30
WrappedReplayBuffer.replay_capacity = 200
WrappedReplayBuffer.batch_size = 8
WrappedPrioritizedReplayBuffer.replay_capacity = 200
WrappedPrioritizedReplayBuffer.batch_size = 8
ReplayBuffer.max_capacity = 128
ReplayBuffer.batch_size = 8
PrioritizedSamplingDistribution.max_capacity = 128
"""


@pytest.fixture
def load(monkeypatch, tmp_path):
    """Returns a function that reads a gin file as Dopamine's own scripts do, elsewhere."""
    monkeypatch.chdir(tmp_path)
    programs.forget()

    def read(name, *bindings):
        path = str(compat.config_dir() / name)
        *_, agent = gin_files.parse([path], bindings).values("create_agent.agent_name")
        cls = request.AGENTS.get(agent, ":JaxDQNAgent").partition(":")[2]
        known = agents.parameters_read(agent if agent in agents.AGENTS else "jax_dqn")
        sizes = [*SIZES.strip().split("\n"), f"{known['min_replay_history']} = 20"]
        run_experiment.load_gin_configs([name], [*sizes, *bindings])
        return cls

    with tf.Graph().as_default():
        yield read
    programs.forget()


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in FILES]
)
def test_a_gin_file_trains_in_dopamines_runner(load, name, tmp_path):
    is_gym = name.endswith("_gym.gin")
    limit = ["create_gymnasium_environment.bootstrap_at_time_limit = False"] * is_gym
    cls = load(name, *limit)
    runner = run_experiment.create_runner(str(tmp_path / "run"))
    assert type(runner._agent).__name__ == cls
    evaluates = "eval" in gin.query_parameter("create_runner.schedule")
    assert type(runner).__name__ == ("Runner" if evaluates else "TrainRunner")
    runner.run_experiment()
    assert runner._agent.training_steps >= 60  # With updates from the 20th on.
    log = pickle.loads(pathlib.Path(tmp_path, "run/logs/log_0").read_bytes())
    for phase in ("train", "eval") if evaluates else ("train",):
        assert len(log["iteration_0"][f"{phase}_episode_returns"]) >= 1


@pytest.mark.parametrize("agent", ["jax_log_dqn", "jax_quantile"])
def test_a_folder_with_a_run_of_ours_is_refused(load, tmp_path, agent):
    """Dopamine would write over its logs, and delete its checkpoints."""
    load("jax_log_dqn_cartpole.gin", f"create_agent.agent_name = '{agent}'")
    (tmp_path / "config.json").write_text("{}")
    message = f"base_dir is '{tmp_path}'; it must be without a run of `log-dqn train`"
    with pytest.raises(ValueError, match=message):
        run_experiment.create_runner(str(tmp_path))


def test_a_time_limit_that_would_be_learned_as_an_end_is_refused(load, tmp_path):
    load("loglin_dqn_gym.gin")
    message = (
        "create_gymnasium_environment.bootstrap_at_time_limit is True; it must be False for a "
        "TensorFlow agent in Dopamine's own runner"
    )
    with pytest.raises(ValueError, match=message):
        run_experiment.create_runner(str(tmp_path / "run"))


@pytest.mark.parametrize("name", ["jax_quantile", "nobody"])
def test_an_agent_of_dopamines_alone_is_handed_on(load, tmp_path, name):
    load(
        "jax_dqn.gin",
        f"create_agent.agent_name = '{name}'",
        "JaxQuantileAgent.num_atoms = 5",
        "import dopamine.jax.agents.quantile.quantile_agent",
    )
    if name == "nobody":
        with pytest.raises(ValueError, match="Unknown agent: nobody"):
            run_experiment.create_runner(str(tmp_path / "run"))
        return
    agent = run_experiment.create_runner(str(tmp_path / "run"))._agent
    assert type(agent).__name__ == "JaxQuantileAgent" and agent._num_atoms == 5


def test_a_seed_of_gin_is_an_agents(load, tmp_path):
    load("jax_log_dqn_cartpole.gin", "JaxLogDQNAgent.seed = 7")
    assert run_experiment.create_runner(str(tmp_path / "run"))._agent._seed == 7


def test_the_agent_that_a_script_names_is_created(load):
    load("jax_log_dqn_cartpole.gin")
    game = gin.get_configurable("create_gym_environment")()
    agent = run_experiment.create_agent(None, game, agent_name="jax_dqn")
    assert type(agent).__name__ == "JaxDQNAgent"
    game.environment.action_space = gym.spaces.Box(-1, 1, (1,))
    with pytest.raises(ValueError, match=r"^action_space is 'Box.*; it must be discrete"):
        run_experiment.create_agent(None, game, agent_name="jax_dqn")


def test_an_optimizer_may_minimize_in_its_own_way(load, tmp_path):
    load("log_dqn_cartpole.gin")

    class Clips(tf.compat.v1.train.GradientDescentOptimizer):
        def minimize(self, loss, var_list=None):
            pairs = self.compute_gradients(loss, var_list)
            return self.apply_gradients(
                [(tf.clip_by_norm(g, 1.0), v) for g, v in pairs if g is not None]
            )

    with gin.unlock_config():
        gin.bind_parameter("LogDQNAgent.optimizer", Clips(0.01))
    runner = run_experiment.create_runner(str(tmp_path / "run"))
    runner.run_experiment()
    assert runner._agent.training_steps >= 60


@pytest.mark.slow
def test_dopamines_own_program_trains(tmp_path):
    # As docs/python.md prints it, in a process of its own, from a folder without configs/.
    sizes = [f"--gin_bindings={line}" for line in SIZES.strip().split("\n")]
    start = (
        "import log_dqn, runpy; "
        "runpy.run_module('dopamine.discrete_domains.train', run_name='__main__', alter_sys=True)"
    )
    command = ["-c", start, "--gin_files=log_dqn_cartpole.gin", f"--base_dir={tmp_path}", *sizes]
    process = programs.python(*command, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert (tmp_path / "checkpoints/sentinel_checkpoint_complete.0").is_file()
