import multiprocessing
import os
import pathlib
import re
import signal

import pytest

from log_dqn import sweep, train, train_vectorized
from log_dqn.cli import gin_files
from log_dqn.sweeps import check, plan
from tests import programs


def request(agents, scans, gin_files=(), gin_bindings=(), game="Pong", vectorized=False):
    given = list(gin_files), list(gin_bindings)
    return check.SweepOptions(agents, scans, *given, [game], vectorized)


def values(planned, *names):
    """What a plan's configuration has for parameters."""
    [parameters] = planned.parameters.values()
    return [parameters[name] for name in names]


# Appendix C.2.
GAMMAS = "0.84,0.92,0.96,0.98,0.99"


@pytest.mark.slow
def test_the_paper_s_scan():
    scans = [f"LogDQNAgent.gamma={GAMMAS}", "LogDQNAgent.c=0.1,0.5,1,2,5"]
    bindings = ["LogDQNAgent.beta_reg=1.0", "tf.train.RMSPropOptimizer.learning_rate=0.00025"]
    (log_dqn,) = check.plans(request(["log_dqn"], scans, gin_bindings=bindings))
    # 5 x 5 settings, of 200 iterations of 250,000 and 125,000 agent steps.
    assert log_dqn.scans == scans
    assert log_dqn.lengths == [(200, 375_000)] * 25
    (dqn,) = check.plans(request(["dqn"], [f"DQNAgent.gamma={GAMMAS}"]))
    assert [iterations for iterations, _ in dqn.lengths] == [200] * 5


@pytest.mark.slow
def test_a_scan_concerns_the_agents_that_use_its_parameter():
    scans = [
        "RainbowAgent.gamma=0.9,0.95", "ImplicitQuantileAgent.kappa=1.0,2.0",
        "JaxDQNAgent.gamma=0.9,0.8", "DQNAgent.gamma=0.7",
        "WrappedPrioritizedReplayBuffer.batch_size=16", "RMSPropOptimizer.learning_rate=0.1",
    ]  # fmt: skip
    agents = ["c51", "implicit_quantile", "full_rainbow", "dqn", "log_dqn"]
    used = [answer.scans for answer in check.plans(request(agents, scans))]
    assert used == [
        [scans[0], scans[4]], [scans[0], scans[1], scans[4]], [scans[2]], [scans[3], scans[5]],
        [scans[5]],
    ]  # fmt: skip


@pytest.mark.slow
def test_a_binding_is_given_to_the_agents_that_read_it():
    lines = [
        "g = 0.9",
        "LogDQNAgent.gamma = %g",
        "DQNAgent.gamma = 0.8",
        "Runner.num_iterations = 2",
    ]
    log_dqn, dqn = check.plans(request(["log_dqn", "dqn"], [], gin_bindings=lines))
    assert log_dqn.gin_bindings == [*lines[:2], lines[3]]
    assert dqn.gin_bindings == lines[2:]
    with pytest.raises(ValueError, match=r"^RainbowAgent.gamma is 0.7, which nothing reads"):
        check.plans(request(["log_dqn", "dqn"], [], gin_bindings=["RainbowAgent.gamma = 0.7"]))


def test_a_macro_is_used_under_its_whole_name():
    texts = ["DQNAgent.gamma=%gamma", "gamma=0.9", "g=50", "LogDQNAgent.k=%g"]
    used = check._used(gin_files.parse([], texts).lines, texts, ["DQNAgent.gamma"])
    assert used == set(texts[:2])


def test_a_macro_of_a_file_or_of_another_macro_is_used(tmp_path):
    (tmp_path / "my.gin").write_text("LogDQNAgent.gamma = %a\na = 0.9\n")
    texts = ["a = %b", "b = 0.8", "c = 0.7"]
    lines = gin_files.parse([str(tmp_path / "my.gin")], texts).lines
    assert check._used(lines, texts, ["LogDQNAgent.gamma"]) == set(texts[:2])


@pytest.mark.slow
def test_lengths_of_runs():
    bindings = ["Runner.num_iterations=3", "Runner.training_steps=20"]
    tf, jax = check.plans(request(["dqn", "jax_dqn"], [], gin_bindings=bindings))
    assert tf[:4] == ("dqn", [], bindings, [(3, 125_020)])
    # Without evaluation phases.
    assert jax[:4] == ("jax_dqn", [], bindings, [(3, 20)])
    for planned in (tf, jax):
        of = ("create_agent.agent_name", "Runner.training_steps")
        assert values(planned, *of) == [planned.agent, 20]
    (scanned,) = check.plans(request(["dqn"], ["Runner.num_iterations=2,5"]))
    assert [iterations for iterations, _ in scanned.lengths] == [2, 5]


@pytest.mark.parametrize(
    ("agent", "scans", "message"),  # A vectorized agent has settings of its own.
    [
        ("dqm", [], "agent is 'dqm'; it must be one of log_dqn, loglin_dqn, dqn"),
        ("log_dqn", ["LogDQNAgen.gamma=0.9"], r"is 'LogDQNAgen.gamma=0.9'; .*nearest: LogDQNAgent"),
        ("log_dqn", ["LogDQNAgent.gamma=0.9,1.5"], r"gamma is 1.5; .*\(log_dqn/gamma=1.5\)"),
        ("jax_log_dqn", ["JaxLogDQNAgent.k=-1"], "k is -1; it must be a positive number"),
        ("dqn", ["Runner.num_iterations=0"], "num_iterations is 0; it must be a whole number"),
        ("dqn", ["LogDQNAgent.gamma=0.5"], "^LogDQNAgent.gamma is 0.5, .* mean DQNAgent.gamma"),
        (
            "dqn",
            ["seed_everything.seed=1,2"],
            "^seed_everything.seed is 1; it must be left out: the seed is given",
        ),
        (
            "dqn",
            ["create_environment.game_name='Pong','Breakout'"],
            "^create_environment.game_name is 'Pong'; it must be left out: the game is given",
        ),
        ("log_dqn", ["VectorizedLogDQNAgent.c=0"], "c is 0; it must be a positive number"),
        ("log_dqn", ["VectorizedDQNAgent.gamma=0.9"], "did you mean VectorizedLogDQNAgent.gamma"),
        (
            "log_dqn",
            ["VectorizedRunner.batch_size=8,16"],
            "settings that may differ within a command",
        ),
    ],
)
def test_what_is_wrong_is_named(agent, scans, message):
    asked = request([agent], scans, vectorized="Vectorized" in str(scans))
    with pytest.raises(ValueError, match=message):
        check.check_requests(asked)
        check.plans(asked)


def test_vectorized_training_has_settings_of_its_own():
    scans = ["VectorizedLogDQNAgent.gamma=0.9,0.96", "VectorizedDQNAgent.gamma=0.9"]
    bindings = ["VectorizedRunner.num_iterations=3", "VectorizedRunner.evaluation_steps=50"]
    log_dqn, dqn = check.plans(request(["log_dqn", "dqn"], scans, (), bindings, vectorized=True))
    assert log_dqn[:4] == ("log_dqn", scans[:1], bindings, [(3, 250_050)] * 2)
    of = ("VectorizedRunner.agent", "VectorizedLogDQNAgent.gamma", "VectorizedRunner.network")
    assert values(log_dqn, *of) == ["log_dqn", 0.9, "nature"]
    assert dqn.scans == scans[1:]
    for env in ("CartPole-v1", "gymnasium:CartPole-v1"):
        asked = request(["dqn"], [], (), bindings, game=env, vectorized=True)
        check.check_requests(asked)
        [planned] = check.plans(asked)
        assert planned[:4] == ("dqn", [], bindings, [(3, 10_050)])
        assert list(planned.parameters) == [env]


@pytest.fixture
def interruptible():
    """Python's own answer to Ctrl-C; a shell's background process ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_check_leaves_ctrl_c_to_the_sweep(interruptible):
    with sweep._checking(request(["dqm"], [])) as checked:
        [process] = multiprocessing.active_children()
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        ignored = int(re.search(r"SigIgn:\s+(\w+)", status)[1], 16)
        assert ignored & 1 << (signal.SIGINT - 1)
        with pytest.raises(ValueError, match="agent is 'dqm'"):
            checked()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_has_at_most_the_cpus_that_may_be_used(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5})
    check.check_machines(None, 3)
    with pytest.raises(ValueError, match=r"^cpus_per_run is 4; it must be at most 3, the CPUs"):
        check.check_machines(None, 4)


PICTURES = """
import gymnasium
import numpy as np

class Pictures(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (84, 84, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        return np.zeros((84, 84, 3), np.uint8), {}

    def step(self, action):
        return np.zeros((84, 84, 3), np.uint8), 1.0, action == 1, False, {}

gymnasium.register("Pictures-v0", Pictures)
"""


@pytest.mark.slow
@pytest.mark.parametrize("vectorized", [False, True])
def test_finished_runs_of_unlike_environments_are_complete(tmp_path, monkeypatch, vectorized):
    (tmp_path / "pictures_env.py").write_text(PICTURES)
    monkeypatch.syspath_prepend(tmp_path)
    runner, agent = (
        ("VectorizedRunner", "VectorizedDQNAgent") if vectorized else ("Runner", "DQNAgent")
    )
    memory = "VectorizedRunner" if vectorized else "WrappedReplayBuffer"
    bindings = [
        f"{runner}.num_iterations=1", f"{runner}.training_steps=30",
        f"{runner}.evaluation_steps=10", f"{runner}.max_steps_per_episode=20",
        f"{memory}.replay_capacity=200", f"{memory}.batch_size=4",
        f"{agent}.min_replay_history=10",
    ]  # fmt: skip
    if not vectorized:  # Created after the checkpoint is loaded.
        bindings.append("CollectorDispatcher.collectors=('console', 'pickle')")
    # Of JAX and gymnasium; or with the network for vectors and for pictures.
    envs = ["CartPole-v1", "gymnasium:CartPole-v1" if vectorized else "pictures_env:Pictures-v0"]
    lines = [f"--gin_bindings={line}" for line in bindings]
    for env in envs:
        programs.forget()
        if vectorized:
            where = [f"--results_dir={tmp_path}"]
            assert train_vectorized.main(["--agent=dqn", f"--env={env}", *where, *lines]) == 0
        else:
            where = [f"--base_dir={tmp_path}/dqn/{env.replace(':', '-')}/1", "--seed=1"]
            assert train.main(["--agent=dqn", f"--env={env}", *where, *lines]) == 0

    def complete(*more):
        asked = check.SweepOptions(["dqn"], [], [], [*bindings, *more], envs, vectorized)
        of_sweep = plan.Plan(tmp_path, check.plans(asked), envs, range(1, 2), [])
        jobs = of_sweep.vectorized_jobs(1) if vectorized else of_sweep.single_jobs()
        return [plan.is_complete(run) for job in jobs for run in job.runs]

    assert complete() == [True, True]
    assert complete(f"{agent}.gamma=0.5") == [False, False]


@pytest.mark.slow
def test_minatar_has_settings_of_its_own():
    game = "MinAtar/Breakout"
    agents = ["log_dqn", "dqn", "jax_log_dqn", "jax_dqn"]

    for vectorized in (False, True):
        asked = request(agents[: 2 if vectorized else 4], [], game=game, vectorized=vectorized)
        found = check.plans(asked)
        assert [planned[:4] for planned in found] == [
            (agent, [], [], [(20, 50_000)]) for agent in asked.agents
        ]
        named = "VectorizedRunner.agent" if vectorized else "create_agent.agent_name"
        assert [values(planned, named)[0] for planned in found] == asked.agents
    scans = ["adam.learning_rate=0.1", "tf.train.AdamOptimizer.learning_rate=0.1"]
    used = [answer.scans for answer in check.plans(request(agents, scans, game=game))]
    assert used == [scans[1:], scans[1:], scans[:1], scans[:1]]


@pytest.mark.parametrize(
    ("vectorized", "gin_files", "game", "message"),
    [
        (False, ["dqn.gin"], "MinAtar/Freeway", "game is .*; it must be one of Atari's"),
        (False, ["dqn_minatar.gin"], "Pong", "game is 'Pong'; it must be one of MinAtar's"),
        (
            True, ["vectorized_dqn.gin"], "MinAtar/Freeway",
            "network is 'nature'; it must be 'revisiting_rainbow' or 'minatar' for MinAtar",
        ),
        (
            True, ["vectorized_dqn_minatar.gin"], "Pong",
            "network is 'revisiting_rainbow'; it must be 'nature' for Atari",
        ),
    ],
)  # fmt: skip
def test_gin_files_of_other_games_are_refused(vectorized, gin_files, game, message):
    with pytest.raises(ValueError, match=message):
        check.plans(request(["dqn"], [], gin_files, game=game, vectorized=vectorized))
