import os
import re
import signal

import gin
import numpy as np
import pytest
import tensorflow as tf

from log_dqn import train
from log_dqn.cli import progress, threads, words
from log_dqn.compat import config_dir
from log_dqn.dopamine_run import request, start
from log_dqn.run_folder import configuration
from tests.programs import (
    CARTPOLE,
    NEEDS_MINATAR,
    assert_refused,
    assert_same_run,
    class_of,
    iterations,
    python,
    read_log,
    run,
    tiny,
    tiny_minatar,
    weights,
)

SLOW = pytest.mark.slow


@SLOW
def test_the_whole_program_trains(tmp_path):
    arguments = [*tiny(), "--seed=3", "--threads=1", f"--base_dir={tmp_path}"]
    first = python("-m", "log_dqn.train", *arguments)
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert lines[0] == f"Starting log_dqn on Centipede in {tmp_path}"
    expected = f"Training log_dqn on the CPU with 1 thread; results go to {tmp_path}"
    assert lines[1] == expected or "GPU" in lines[1]
    offered = ["Film it", "Train on, to 4 iterations"]
    assert [line.split(":")[0] for line in lines[2:]] == [
        "iteration 1/2",
        "iteration 2/2",
        *offered,
    ]
    assert first.stderr == ""

    log = read_log(tmp_path, 1)
    assert set(log) == {"iteration_0", "iteration_1"}
    for statistics in log.values():
        # Three episodes of 20 steps in training, one in evaluation.
        assert statistics["train_episode_lengths"] == [20, 20, 20]
        assert statistics["eval_episode_lengths"] == [20]
        assert statistics["train_average_return"] == [np.mean(statistics["train_episode_returns"])]
    assert (tmp_path / "metrics" / "pickle").is_dir()

    tags = {
        value.tag
        for path in tmp_path.glob("events*")
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
    }
    assert {"Train/AverageReturns", "Eval/AverageReturns"} <= tags


def test_a_run_computes_in_the_threads_it_names_whatever_the_shell_set(
    tmp_path, capsys, monkeypatch
):
    variables = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
    for variable in variables:
        monkeypatch.setenv(variable, "99")
    assert run(tmp_path, *CARTPOLE, iterations(1)) == 0
    named = words.counted(threads.cores(), "thread")
    line = capsys.readouterr().out.splitlines()[1]
    assert f" on the CPU with {named};" in line or "GPU" in line
    assert {os.environ[variable] for variable in variables} == {str(threads.cores())}


def test_the_seed_decides_the_weights(tmp_path, trained):
    # That the same seed gives the same run is tested below.
    trained(tmp_path / "first", "--seed=1", *CARTPOLE, iterations(2))
    assert run(tmp_path / "other", "--seed=6", *CARTPOLE, iterations(2)) == 0
    other = weights(tmp_path / "other", 1)
    for name, value in weights(tmp_path / "first", 1).items():
        if name.endswith("kernel") and name.startswith("Online"):
            assert (value != other[name]).any(), name


@pytest.mark.parametrize("agent", ["dqn", pytest.param("c51", marks=SLOW)])
def test_dopamines_agents_train(tmp_path, agent):
    agent_class = "DQNAgent" if agent == "dqn" else "RainbowAgent"
    arguments = [f"--base_dir={tmp_path}", f"--agent={agent}", "--seed=1", *tiny(agent_class)]
    assert train.main([*arguments, "--gin_bindings=Runner.num_iterations=1"]) == 0
    assert set(read_log(tmp_path, 0)) == {"iteration_0"}
    assert f"create_agent.agent_name = '{agent}'" in (tmp_path / "operative_config.gin").read_text()
    trained = weights(tmp_path, 0)
    assert all(np.isfinite(value).all() for value in trained.values())
    # Trained after the last sync: online and target differ.
    for name in (f"fully_connected{i}/{w}" for i in ("", "_1") for w in ("kernel", "bias")):
        assert (trained[f"Online/{name}"] != trained[f"Target/{name}"]).any()


@NEEDS_MINATAR
@pytest.mark.parametrize(
    ("agent", "game"),
    [
        # Of 10, 7, 6 and 4 channels.
        ("log_dqn", "MinAtar/Seaquest"),
        pytest.param("dqn", "MinAtar/Freeway", marks=SLOW),
        pytest.param("jax_log_dqn", "MinAtar/SpaceInvaders", marks=SLOW),
        ("jax_dqn", "MinAtar/Asterix"),
    ],
)
def test_minatar_trains_with_settings_of_its_own(tmp_path, capsys, agent, game):
    # Freeway's episodes take 2,501 steps; all that ends them is the game.
    assert run(tmp_path, "--seed=1", *tiny_minatar(agent, game, evaluates=False)) == 0
    assert capsys.readouterr().err == ""
    log = read_log(tmp_path, 1)
    for statistics in log.values():
        assert sum(statistics["train_episode_lengths"]) >= 150
        if game == "MinAtar/Freeway":
            assert statistics["train_episode_lengths"] == [2501]
        assert not any(name.startswith("eval") for name in statistics)
    recorded = (tmp_path / "operative_config.gin").read_text()
    assert f"create_minatar_environment.game_name = '{game}'" in recorded
    assert "Runner.create_environment_fn = @create_minatar_environment" in recorded
    assert "RevisitingRainbowNetwork" in recorded
    assert "observation_shape" not in recorded


def test_the_recorded_configuration_makes_the_same_run(tmp_path, trained, numbers):
    trained(tmp_path / "a", "--seed=1", *CARTPOLE, iterations(2))
    recorded = tmp_path / "a" / "operative_config.gin"
    assert run(tmp_path / "b", f"--gin_files={recorded}") == 0
    assert progress.read(numbers).fraction == 1
    assert (tmp_path / "b" / "operative_config.gin").read_text() == recorded.read_text()
    assert "CollectorDispatcher.collectors = ('pickle',)\n" in recorded.read_text()
    np.testing.assert_equal(weights(tmp_path / "a", 1), weights(tmp_path / "b", 1))
    logs = [read_log(tmp_path / name, 1)["iteration_1"] for name in ("a", "b")]
    for statistic in ("train_episode_returns", "eval_episode_returns"):
        assert logs[0][statistic] == logs[1][statistic]


def binding(text):
    return f"--gin_bindings={text}"


MINATAR = "--game=MinAtar/Breakout"

QUICK, OF_MINATAR = "--gin_files=log_dqn_quick.gin", "--gin_files=log_dqn_minatar.gin"
# Beside what tests/commands/test_main.py and tests/test_refusals.py have.
BAD_INPUT = [
    (["--game=bsuite/Catch"], "game is 'bsuite/Catch'; it must be one of Dopamine's 60 Atari"),
    (["--gin_files=log_dqn.gin", MINATAR], "one of Atari's, since .* @atari.create_environment"),
    (
        [binding("Runner.create_environment_fn=@my_create_environment"), "--game=Pong"],
        "game is 'Pong'; it must be left out, since the environment is @my_create_environment",
    ),
    ([OF_MINATAR, "--game=Pong"], "game is 'Pong'; it must be one of MinA"),
    (["--agent=rainbow", MINATAR], "jax_loglin_dqn, jax_dqn on MinAtar/Breakout, or have gin"),
    ([binding("create_environment.game_name='MinAtar/Breakout'")], "'MinAtar/Breakout'; .* 60 Ata"),
    ([OF_MINATAR, binding("create_minatar_environment.game_name='Pong'")], "'Pong'; .* MinAtar's"),
    ([MINATAR, binding("LogDQNAgent.stack_size=4")], "stack_size is 4; it must be 1 for MinAtar"),
    ([MINATAR, binding("LogDQNAgent.observation_shape=(84, 84)")], "(84, 84); it must be left out"),
    (
        [
            MINATAR,
            "--agent=jax_dqn",
            binding("import dopamine.jax.networks"),
            binding("JaxDQNAgent.network=@jax.networks.NatureDQNNetwork"),
        ],
        "network is '@jax.networks.NatureDQNNetwork'; it must be @JaxRevisitingRainbowNet",
    ),
    (
        [
            binding("import log_dqn.tf.networks"),
            binding("LogDQNAgent.network=@RevisitingRainbowNetwork"),
        ],
        "network is '@RevisitingRainbowNetwork'; it must be left out, or another, where the game",
    ),
    ([binding("create_agent.agent_name='x'")], "agent is 'x'; it must be one of log_dqn"),
    ([binding("LogDQNAgnt.gamma=0.5")], "there is no LogDQNAgnt in gin (nearest: LogDQNA"),
    ([binding("LogDQNAgent.gamma=")], "gin_bindings is 'LogDQNAgent.gamma='; it must be gin"),
    ([binding("gamma=0.5")], "gamma is 0.5, a macro that nothing reads; .* LogDQNAgent.gamma?"),
    ([binding("gamma=0.5"), binding("LogDQNAgent.k=%gama")], "gamma is 0.5, a macro that nothing"),
    ([binding("LogDQNAgent.gamma=%macro")], "gamma is '%macro'; it must be a macro that a line"),
    ([binding("DQNAgent.gamma=0.5")], "DQNAgent.gamma is 0.5, which nothing reads; .* LogDQNAgent"),
    ([binding("train/LogDQNAgent.gamma=0.5")], "train/LogDQNAgent.gamma is 0.5, which nothing"),
    ([binding("create_agent.debug_mode=True")], "create_agent.debug_mode is True, which nothing"),
    (
        [binding("tf.train.AdamOptimizer.learning_rate=0.5")],
        "is 0.5, .* RMSPropOptimizer.learning_",
    ),
    ([binding("LogDQNAgent.beta_log=0.1")], "beta_log is .*learning rate: RMSPropOptimizer.learni"),
    (
        ["--env=Acrobot-v1", "--agent=loglin_dqn", binding("LogDQNAgent.beta_log=0.1")],
        "learning rate: AdamOptimizer.learning_rate",
    ),
    (
        ["--env=Acrobot-v1", "--agent=jax_loglin_dqn", binding("JaxLogDQNAgent.beta_log=0.1")],
        "learning rate: create_optimizer.learning_rate",
    ),
    (
        [binding("Runner.beta_log=0.1")],
        "Configurable 'Runner' doesn't have a parameter named 'beta_log'",
    ),
    (
        ["--agent=jax_rainbow", binding("ReplayBuffer.max_capacity=1000001")],
        "Distribution.max_capacity is 1000000; it must be at least 1000001, as ReplayBuffer.max_",
    ),
    (["--gin_files=configs"], "gin_files is 'configs'; it must be the path of a gin file"),
    ([binding("seed_everything.seed=1.5")], "seed is 1.5; it must be a whole number from 0"),
    (["--threads=1000"], "threads is 1000; it must be a whole number from 1 to "),
    (["--seed=x"], "seed is 'x'; it must be a whole number from 0 to 4294967295"),
    ([binding("Runner.max_steps_per_episode=None")], "max_steps_per_episode is None; it must be"),
    (["--gin_files=log_dqn_cartpole.gin", "--game=Pong"], "game is 'Pong'; it must be left out,"),
    (
        ["--game=Pong", binding("atari.create_environment.game_name='Breakout'")],
        "create_environment.game_name is 'Breakout'; it must be left out: the game is given",
    ),
    (
        ["--game=Pong", "--seed=1", binding("seed_everything.seed=2")],
        "seed_everything.seed is 2; it must be left out: the seed is given",
    ),
    (
        ["--env=CartPole-v1", binding("create_gymnasium_environment.environment_id='Acrobot-v1'")],
        "environment_id is 'Acrobot-v1'; it must be left out: the env is given",
    ),
    *(
        (["--game=Pong", binding(f"{name}={value}")], f"{name} is {value}; it must be {default}")
        for name, value, default in (
            ("Runner.log_every_n", 10, "1: each"),
            ("Runner.checkpoint_file_prefix", "'mine'", "'ckpt', or left out"),
            ("LogDQNAgent.max_tf_checkpoints_to_keep", 20, "4, or left out"),
            ("create_environment.seed", 5, "None, or left out"),
        )
    ),
    ([QUICK, "--agent=c51"], "agent is 'c51'; it must be 'log_dqn',"),
    ([binding("LogDQNAgent.min_replay_history=100.5")], "100.5; it must be a whole number, at lea"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT)
def test_bad_input_is_answered_in_one_line(tmp_path, capsys, arguments, message):
    assert_refused(tmp_path, capsys, arguments, message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"import nosuchmodule\n", "No module named 'nosuchmodule' (in "),
        (b"LogDQNAgent.gamma = \n", "it must be gin that can be read"),
        (b"\xff\xfe\x00binary", "it must be gin that can be read"),
        (b"include 'self.gin'\n", "it must be gin that can be read: it includes itself, or is"),
    ],
)
def test_a_bad_gin_file_is_named(tmp_path, capsys, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "self.gin").write_bytes(content)
    arguments = ["--agent=log_dqn", "--gin_files=self.gin"]
    assert_refused(tmp_path, capsys, arguments, f"error: gin_files is 'self.gin'; .*{message}")


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (1, "WIDTH = widht * 2", "name 'widht' is not defined (NameError in {file}, line 3)"),
        (
            2, "json.loads('[1')",
            "Expecting ',' delimiter: line 1 column 3 (char 2) (JSONDecodeError in {file}, line 3)",
        ),
        (3, "raise SystemExit(4)", "it calls sys.exit(4) (SystemExit in {file}, line 3)"),
    ],
)  # fmt: skip
def test_a_slip_in_a_module_that_gin_imports_is_named(
    tmp_path, capsys, monkeypatch, number, code, said
):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / f"with_a_slip{number}.py"
    file.write_text(f"import json\n\n{code}\n")
    binding = f"import {file.stem}"
    said = f"gin_bindings is '{binding}'; it must be gin that can be read: {said}\n"
    arguments = ["--agent=log_dqn", f"--gin_bindings={binding}"]
    assert_refused(tmp_path, capsys, arguments, said.format(file=file))


def test_a_line_of_gin_that_never_ends_names_no_file_of_python(tmp_path, capsys):
    arguments = ["--agent=log_dqn", "--gin_bindings=LogDQNAgent.gamma = (1,"]
    assert_refused(tmp_path, capsys, arguments, "EOF in multi-line statement\n")


def test_a_gin_file_of_one_line_builds_on_the_agent_s_own(tmp_path):
    own = tmp_path / "own.gin"
    own.write_text("LogDQNAgent.gamma = 0.9\n")
    start.configure(request.parse([str(own)], [], agent="log_dqn").written)
    assert gin.query_parameter("LogDQNAgent.gamma") == 0.9
    assert gin.query_parameter("Runner.num_iterations") == 200
    gin.clear_config()
    named = ["create_agent.agent_name = 'log_dqn'"]
    start.configure(request.parse([str(own)], named).written)
    assert gin.query_parameter("Runner.num_iterations") == 200
    with pytest.raises(ValueError, match=r"include 'log_dqn_minatar.gin' in it, or give --agent="):
        request.parse([str(own)], [], game="MinAtar/Breakout")
    own.write_text("RainbowAgent.gamma = 0.9\n")
    with pytest.raises(
        ValueError, match=r"own.gin'; .*include 'c51.gin' in it, or give --agent=c51"
    ):
        request.parse([str(own)], [])


@pytest.mark.parametrize(
    ("gin_files", "agent", "gamma"),
    [
        # LogLinDQN's file includes LogDQN's.
        ([], "log_dqn", 0.96), ([], "loglin_dqn", 0.96), (["loglin_dqn.gin"], None, 0.96),
        (["log_dqn.gin"], None, 0.123), (["my.gin"], None, 0.123),
    ],
)  # fmt: skip
def test_a_copy_in_the_working_directory_is_read_if_the_user_names_it(
    tmp_path, monkeypatch, gin_files, agent, gamma
):
    shipped = (config_dir() / "log_dqn.gin").read_text()
    copy = shipped.replace("LogDQNAgent.gamma = 0.96", "LogDQNAgent.gamma = 0.123")
    (tmp_path / "log_dqn.gin").write_text(copy)
    (tmp_path / "my.gin").write_text("include 'log_dqn.gin'\n")
    monkeypatch.chdir(tmp_path)
    written = request.parse(gin_files, [], game="Pong", agent=agent).written
    assert written.values("LogDQNAgent.gamma")[-1] == gamma
    start.configure(written)
    assert gin.query_parameter("LogDQNAgent.gamma") == gamma


@pytest.mark.parametrize(
    ("game", "name"),
    [("pong", "Pong"), ("Ms_Pacman", "MsPacman"), ("minatar-breakout", "MinAtar/Breakout")],
)
def test_a_game_is_named_in_any_case(game, name):
    start.configure(request.parse([], [], game=game).written)
    factory = "create_minatar_environment" if "MinAtar" in name else "create_environment"
    assert gin.query_parameter(f"{factory}.game_name") == name


@pytest.mark.parametrize("agent", ["log_dqn", pytest.param("jax_log_dqn", marks=SLOW)])
def test_a_script_trains_twice_as_in_two_processes(tmp_path, agent):
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    of_script = f"{class_of(agent)}.allow_partial_reload"
    gin.bind_parameter(of_script, True)
    arguments = [*tiny(class_of(agent)), f"--agent={agent}", "--seed=1"]
    assert run(tmp_path / "first", *arguments) == 0
    # What this agent has more than the other, it leaves to nobody.
    assert run(tmp_path / "other", *tiny(), "--agent=loglin_dqn", "--seed=1") == 0
    assert run(tmp_path / "again", *arguments) == 0
    assert_same_run(tmp_path / "first", tmp_path / "again", 1)
    recorded = configuration.read(tmp_path / "again")
    assert recorded == configuration.read(tmp_path / "first")
    assert not [name for name in recorded if name.endswith("linear_above")]
    assert configuration.by_short_name(recorded)[of_script] is True
    assert gin.query_parameter(of_script) is True
    with pytest.raises(ValueError, match="'LogDQNAgent' has no "):
        gin.query_parameter("LogDQNAgent.linear_above")
    assert handlers == {number: signal.getsignal(number) for number in handlers}


def test_a_drawn_seed_is_recorded_and_kept(tmp_path):
    assert train.main([f"--base_dir={tmp_path}", *CARTPOLE, iterations(1)]) == 0
    drawn = re.search(
        r"seed_everything.seed = (\d+)", (tmp_path / "operative_config.gin").read_text()
    )
    assert run(tmp_path, *CARTPOLE, iterations(2)) == 0
    assert drawn[0] in (tmp_path / "operative_config.gin").read_text()


def test_a_run_that_ends_before_it_learns_is_warned_of(tmp_path, capsys):
    history = "--gin_bindings=LogDQNAgent.min_replay_history=100"
    assert run(tmp_path, *CARTPOLE, history, iterations(1)) == 0
    assert capsys.readouterr().err == (
        "log-dqn train: warning: nothing is learned: a run trains for 100 agent steps, and the "
        "agent learns after 100, its LogDQNAgent.min_replay_history\n"
    )
    assert run(tmp_path, *CARTPOLE, history, iterations(2)) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_gin_file_in_dopamines_own_style(tmp_path):
    path = tmp_path / "dqn.gin"
    path.write_text(
        """
        import dopamine.discrete_domains.atari_lib
        import dopamine.discrete_domains.run_experiment
        import dopamine.tf.agents.dqn.dqn_agent
        import dopamine.tf.replay_memory.circular_replay_buffer
        import gin.tf.external_configurables

        DQNAgent.optimizer = @tf.train.RMSPropOptimizer()
        tf.train.RMSPropOptimizer.learning_rate = 0.00025
        atari_lib.create_atari_environment.game_name = 'Pong'
        create_agent.agent_name = 'dqn'
        """.replace("        ", "")
    )
    arguments = [a for a in tiny("DQNAgent") if not a.startswith("--game")]
    assert train.main([f"--base_dir={tmp_path / 'run'}", f"--gin_files={path}",
                       "--game=Breakout", *arguments]) == 0  # fmt: skip
    recorded = (tmp_path / "run" / "operative_config.gin").read_text()
    assert "create_atari_environment.game_name = 'Breakout'" in recorded
