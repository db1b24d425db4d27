import collections
import pathlib

from log_dqn import scan, train
from log_dqn.sweeps import plan
from tests.results import synthetic


def settings(agent, *scans, bindings=(), parameters=()):
    count = len(scan.parse(scans))
    of_all = collections.defaultdict(lambda: plan.comparable(dict(parameters)))
    return plan.AgentPlan(agent, list(scans), list(bindings), [(2, 80)] * count, of_all)


def test_a_run_is_the_training_program():
    log_dqn = settings("log_dqn", "LogDQNAgent.c=0.5,1", bindings=["Runner.num_iterations=2"])
    games = ["Pong", "Alien"]
    planned = plan.Plan(
        pathlib.Path("/results"),
        [log_dqn, settings("dqn")],
        games,
        range(1, 3),
        ["log_dqn_quick.gin"],
    )
    jobs = planned.single_jobs()
    assert [job.runs[0].name for job in jobs[:6]] == [
        f"{agent}/{game}/1" for game in games for agent in ("log_dqn/c=0.5", "log_dqn/c=1", "dqn")
    ]
    assert [job.arguments[5] for job in jobs] == ["--seed=1"] * 6 + ["--seed=2"] * 6
    assert jobs[1].arguments == (
        "-m", "log_dqn.train", "--base_dir=/results/log_dqn/c=1/Pong/1", "--agent=log_dqn",
        "--game=Pong", "--seed=1", "--gin_files=log_dqn_quick.gin",
        "--gin_bindings=Runner.num_iterations=2", "--gin_bindings=LogDQNAgent.c = 1",
    )  # fmt: skip
    assert jobs[2].arguments[6:] == ("--gin_files=log_dqn_quick.gin",)
    (run,) = jobs[1].runs
    assert run == plan.PlannedRun("log_dqn/c=1/Pong/1", jobs[1].output.parent, 2, 80)
    assert train.create_parser().parse_args(jobs[1].arguments[2:]).seed == 1


def test_games_of_minatar_are_games_and_environments_of_gymnasium_are_not():
    names = ["my:Own/X-v0", "MinAtar/Asterix"]
    planned = plan.Plan(pathlib.Path("/r"), [settings("dqn")], names, range(3, 4), [])
    own, game = (job.arguments[2:6] for job in planned.single_jobs())
    base_dir = "--base_dir=/r/dqn/my-Own-X-v0/3"
    assert own == (base_dir, "--agent=dqn", "--env=my:Own/X-v0", "--seed=3")
    base_dir = "--base_dir=/r/dqn/MinAtar-Asterix/3"
    assert game == (base_dir, "--agent=dqn", "--game=MinAtar/Asterix", "--seed=3")


def test_progress_is_the_newest_readable_log_s(tmp_path):
    assert plan.progress(tmp_path / "none") == plan.RunProgress()
    synthetic.write_log(tmp_path, [1.0, 2.5], config=None)
    newest = synthetic.write_log(tmp_path, [1.0, 2.5, 4.0], config=None)
    assert plan.progress(tmp_path) == (3, 4.0, 100.5)
    newest.write_bytes(newest.read_bytes()[:-20])
    assert plan.progress(tmp_path) == (2, 2.5, 100.5)
    run = plan.PlannedRun("r", tmp_path, 3, 80)
    assert not plan.is_complete(run)
    synthetic.write_log(tmp_path, [1.0, 2.5, 4.0], config=None)
    assert plan.is_complete(run)


def test_a_finished_run_of_another_configuration_is_not_complete(tmp_path):
    """It is started, and refuses to resume in its own words."""
    now = {
        "LogDQNAgent.c": 0.5, "LogDQNAgent.gamma": 0.9, "LogDQNAgent.k": 100,
        "Runner.num_iterations": 2, "A.of": [0.9, "@f()"], "s/LogDQNAgent.c": 1,
        "create_environment.game_name": "Pong", "seed_everything.seed": 7,
        "A.by": "@my.own.f()", "A.in": "@s/f()", "A.fn": "%m",
    }  # fmt: skip
    agent = settings("log_dqn", "LogDQNAgent.c=0.5,1", parameters=now)
    planned = plan.Plan(tmp_path, [agent], ["Alien"], range(1, 2), [])
    runs = [job.runs[0] for job in planned.single_jobs()]
    # The folder says which game and seed it is; the modules of a name are those that are imported.
    then = now | {
        "Runner.num_iterations": 5, "s/LogDQNAgent.c": 2.0, "A.by": "@own.f()",
        "create_environment.game_name": "Alien", "seed_everything.seed": 1,
    }  # fmt: skip

    def write(config, run=runs[0]):
        synthetic.write_log(run.folder, [1.0, 2.0], config=config)
        return plan.is_complete(run)

    assert write(then)
    assert not write(then, runs[1]) and write(then | {"LogDQNAgent.c": 1.0}, runs[1])
    # Training writes a damaged file again.
    (runs[0].folder / "config.json").write_text("{")
    assert plan.is_complete(runs[0])
    # Gin leaves out a default such as linear_above's, infinity.
    others = {
        "LogDQNAgent.gamma": 0.8, "LogDQNAgent.c": 1.0, "LogDQNAgent.k": 7, "A.by": "@g()",
        "LogDQNAgent.linear_above": 0.1,
    }  # fmt: skip
    pairs = [*others.items(), ("A.by", "@f"), ("A.by", "f"), ("A.in", "@r/f()")]
    for name, value in pairs:
        assert not write(then | {name: value})
    del then["LogDQNAgent.gamma"]
    assert not write(then)


def test_a_vectorized_job_has_all_seeds_and_settings_of_some_games():
    agents = [settings("log_dqn", "A.c=0.5,1", bindings=["A.k=2"]), settings("dqn")]
    games = ["Pong", "Alien", "Zaxxon"]
    planned = plan.Plan(pathlib.Path("/results"), agents, games, range(1, 3), ["log_dqn_quick.gin"])
    jobs = planned.vectorized_jobs(games_per_job=2)
    assert [job.arguments[3:5] for job in jobs] == [
        (f"--agent={agent}", f"--games={of_job}")
        for of_job in ("Pong,Alien", "Zaxxon")
        for agent in ("log_dqn", "dqn")
    ]
    assert [run.name for run in jobs[2].runs] == [
        f"log_dqn/c={c}/Zaxxon/{seed}" for c in ("0.5", "1") for seed in "12"
    ]
    assert jobs[0].arguments == (
        "-m", "log_dqn.train_vectorized", "--results_dir=/results", "--agent=log_dqn",
        "--games=Pong,Alien", "--seeds=1-2", "--gin_files=log_dqn_quick.gin",
        "--gin_bindings=A.k=2", "--scan=A.c=0.5,1",
    )  # fmt: skip
    assert str(jobs[0].output) == "/results/log_dqn/output_Pong.log"


def test_a_vectorized_job_of_minatar_writes_beside_its_runs():
    planned = plan.Plan(
        pathlib.Path("/results"), [settings("dqn")], ["MinAtar/Asterix"], range(1, 2), []
    )
    (job,) = planned.vectorized_jobs(games_per_job=1)
    assert str(job.output) == "/results/dqn/output_MinAtar-Asterix.log"
    assert str(job.runs[0].folder) == "/results/dqn/MinAtar-Asterix/1"
    assert "--games=MinAtar/Asterix" in job.arguments


def test_a_vectorized_job_has_one_environment():
    names = ["CartPole-v1", "corridor:make"]
    planned = plan.Plan(pathlib.Path("/r"), [settings("dqn")], names, range(1, 3), [])
    jobs = planned.vectorized_jobs(games_per_job=1)
    assert [job.arguments[4] for job in jobs] == ["--env=CartPole-v1", "--env=corridor:make"]
    assert [str(job.output) for job in jobs] == [
        "/r/dqn/output_CartPole-v1.log", "/r/dqn/output_corridor-make.log",
    ]  # fmt: skip
    assert [run.name for run in jobs[1].runs] == ["dqn/corridor-make/1", "dqn/corridor-make/2"]
