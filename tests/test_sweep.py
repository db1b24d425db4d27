"""The program on a real local Ray, with real training processes."""

import contextlib
import errno
import itertools
import os
import pathlib
import re
import signal
import time

import pytest
import ray
from tensorboard.backend.event_processing import plugin_event_multiplexer

from log_dqn import games, sweep
from log_dqn.commands import compare
from log_dqn.sweeps import cluster, plan, tuning
from tests import programs
from tests.results import synthetic

# Without the game, which the sweep gives.
TINY = [argument for argument in programs.tiny() if not argument.startswith("--game")]
ONE = ["--agents=log_dqn", "--games=Centipede", *TINY]

# Half a minute at most on a quiet machine; but others have much other work.
PATIENCE = 400


def command(results_dir, *arguments):
    return ["-m", "log_dqn.sweep", f"--results_dir={results_dir}", *arguments]


def run(results_dir, *arguments):
    return programs.python(*command(results_dir, *arguments), cwd=programs.ROOT)


@contextlib.contextmanager
def running(results_dir, *arguments):
    """A sweep while it runs, its output in `results_dir.txt`."""
    with open(f"{results_dir}.txt", "a") as output:
        process = programs.start(
            *command(results_dir, *arguments), cwd=programs.ROOT,
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def processes(text):
    """Numbers of the training processes that have a text in their command line."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode()
            if "-m log_dqn.train " in line and text in line and "tethered" not in line:
                found.append(int(path.parent.name))
    return found


def parent(process):
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"PPid:\s+(\d+)", status)[1])


def starts(folder):
    """The Ray nodes on which a run was started."""
    return re.findall(r"^# on .* \(Ray node (\w+)\)", (folder / "output.log").read_text(), re.M)


@pytest.mark.slow
def test_what_dies_is_retried_until_it_is_given_up_and_a_bad_setting_is_not(tmp_path):
    results = tmp_path / "results"
    scan = f"--scan=WrappedReplayBuffer.replay_capacity=200,{10**11}"  # More than machines have.
    one = [word for word in ONE if "replay_capacity" not in word]  # It is scanned.
    of_good = "log_dqn/replay_capacity=200/Centipede"
    killed, given_up = results / of_good / "1", results / of_good / "2"
    bad = results / f"log_dqn/replay_capacity={10**11}/Centipede"
    with running(results, *one, scan, "--seeds=2", "--max_failures=1") as process:
        wait_for((killed / "logs/log_0").exists)
        for number in processes(str(killed)):
            os.kill(number, signal.SIGKILL)
        # Of the other run the worker is killed, which takes the process along, then the process.
        wait_for((given_up / "logs/log_0").exists)
        (number,) = processes(str(given_up))
        os.kill(parent(number), signal.SIGKILL)
        wait_for(lambda: number not in processes(str(given_up)))
        wait_for(lambda: len(starts(given_up)) == 2)
        (number,) = wait_for(lambda: processes(str(given_up)))
        os.kill(number, signal.SIGKILL)
        assert process.wait(PATIENCE) == 1
    output = pathlib.Path(f"{results}.txt").read_text()
    assert plan.progress(killed).iterations == 2 and plan.progress(given_up).iterations == 1
    assert [len(starts(f)) for f in (killed, given_up, bad / "1", bad / "2")] == [2, 2, 1, 1]
    assert "# ended by SIGKILL" in (killed / "output.log").read_text()
    for said in (
        f"{of_good}/1: ended by SIGKILL; to be retried",
        f"{of_good}/1: started again, from iteration 1, on",
        f"{of_good}/1: complete",
        f"{of_good}/2: the worker or its node died; to be retried",
        f"{of_good}/2: started again, from iteration 1, on",
        f"failed: {of_good}/2: ended by SIGKILL (attempt 2, the last)",
        "1 of 4 runs are complete, 3 failed; ",
    ):
        assert said in output
    assert re.search(r"^failed: log_dqn/replay_capacity=10{11}/.*/1: .*capacity", output, re.M)
    # It resumes with the weights that a run has which was not killed. TensorFlow's sums depend on
    # its number of threads: a sweep's run has one, this process that of its first session.
    straight = tmp_path / "straight"
    arguments = ["--seed=1", *programs.tiny(), "--threads=1"]
    done = programs.python("-m", "log_dqn.train", f"--base_dir={straight}", *arguments)
    assert done.returncode == 0, done.stderr
    for key, weight in programs.weights(straight, 1).items():
        assert (programs.weights(killed, 1)[key] == weight).all(), key
    # Nothing of Ray's is left, nor of the processes.
    assert [path.name for path in results.iterdir()] == ["log_dqn"]
    assert not processes(str(results))


@pytest.mark.slow
def test_a_sweep_that_is_killed_repeats_nothing_and_is_compared(tmp_path):
    results = tmp_path / "results"
    scan = "--scan=LogDQNAgent.gamma=0.84,0.92,0.96"
    arguments = ["--agents=log_dqn", "--games=Alien", *TINY, scan]
    folders = {results / f"log_dqn/gamma={gamma}/Alien/1" for gamma in (0.84, 0.92, 0.96)}

    def complete():
        return {folder for folder in folders if plan.progress(folder).iterations == 2}

    with running(results, *arguments) as process:
        wait_for(lambda: complete() and processes(str(results)))
        process.kill()
    wait_for(lambda: not processes(str(results)))
    before = complete()
    assert 1 <= len(before) <= 2
    written = {
        path: path.stat().st_mtime_ns
        for folder in before
        for path in folder.rglob("*")
        if path.is_file()
    }
    done = run(results, *arguments)
    assert done.returncode == 0, done.stderr
    assert f"3 of 3 runs are complete ({len(before)} of them before), 0 failed" in done.stdout
    assert complete() == folders
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert [path.name for path in results.iterdir()] == ["log_dqn"]

    # And again there is nothing to do.
    done = run(results, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    _, end, *_ = done.stdout.splitlines()  # With nothing of TensorFlow's between.
    assert end.startswith("3 of 3 runs are complete (3 of them before), 0 failed")

    names = {str(folder.relative_to(results)) for folder in folders}
    multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(results))
    assert set(multiplexer.Runs()) == names

    baselines = synthetic.write_baselines(tmp_path / "base", ["Alien"], {"DQN": 1})
    status = compare.main(
        [f"--results_dir={results}", f"--out={tmp_path / 'report'}", f"--baselines={baselines}",
         "--repetitions=20"]
    )  # fmt: skip
    assert status == 0
    scores = (tmp_path / "report/scores.csv").read_text()
    assert [scores.count(f"log_dqn/gamma={gamma}") for gamma in (0.84, 0.92, 0.96)] == [1, 1, 1]
    assert (tmp_path / "report/gamma.png").exists()


def pool_threads(process):
    """Counts the threads of TensorFlow's two pools, for parts of operations and for operations."""
    names = [
        path.read_text().strip() for path in pathlib.Path(f"/proc/{process}/task").glob("*/comm")
    ]
    return names.count("tf_Compute")


@pytest.mark.slow
@pytest.mark.parametrize(  # As a scheduler does, and as a terminal.
    ("number", "send", "cpus"), [(signal.SIGTERM, os.kill, 1), (signal.SIGINT, os.killpg, 2)]
)
def test_a_run_has_a_thread_a_cpu_and_stops_with_its_sweep(tmp_path, number, send, cpus):
    if os.cpu_count() < cpus:
        pytest.skip("the machine has one core")
    results = tmp_path / "results"
    folder = results / "log_dqn/Centipede/1"
    with running(results, *ONE, f"--cpus_per_run={cpus}") as process:
        wait_for((folder / "logs/log_0").exists)
        (training,) = processes(str(folder))
        assert pool_threads(training) == 2 * cpus
        send(process.pid, number)
        assert process.wait(PATIENCE) == 128 + number
        assert not processes(str(results))
    assert f"on the CPU with {cpus} thread" in (folder / "output.log").read_text()
    output = pathlib.Path(f"{results}.txt").read_text()
    assert f"stopped by {number.name}; the same command resumes" in output
    assert "Traceback" not in output
    assert [path.name for path in results.iterdir()] == ["log_dqn"]


@pytest.mark.slow
def test_two_nodes_share_the_work(tmp_path):
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    cluster = cluster_utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        results = tmp_path / "results"
        address = f"--ray_address={cluster.address}"
        done = run(results, *ONE, "--seeds=3", address)
        assert done.returncode == 0, done.stderr
        nodes = [starts(results / "log_dqn/Centipede" / seed) for seed in "123"]
        assert [len(started) for started in nodes] == [1, 1, 1]
        assert len({node for (node,) in nodes}) == 2
        too_much = run(tmp_path / "more", *ONE, "--cpus_per_run=2", address)
        assert too_much.returncode == 2
        assert "a node must have as much, and they have 1 CPUs and 0 GPUs" in too_much.stderr
    finally:
        cluster.shutdown()
    assert not (tmp_path / "more").exists()


@pytest.mark.slow
@programs.NEEDS_MINATAR
def test_vectorized_jobs(tmp_path):
    results, names = tmp_path / "results", games.MINATAR5[:2]
    arguments = [
        "--vectorized", "--agents=log_dqn,dqn", f"--games={','.join(names)}", "--games_per_job=5",
        "--seeds=2",
        "--scan=VectorizedLogDQNAgent.gamma=0.9,0.96",
        "--gin_bindings=VectorizedRunner.num_iterations=2",
        "--gin_bindings=VectorizedRunner.training_steps=50",
    ]  # fmt: skip
    done = run(results, *arguments)
    assert done.returncode == 0, done.stderr
    assert "12 of 12 runs are complete, 0 failed" in done.stdout
    for agent in ("log_dqn/gamma=0.9", "log_dqn/gamma=0.96", "dqn"):
        for game, seed in itertools.product(names, "12"):
            folder = results / agent / games.folder_name(game) / seed
            assert plan.progress(folder).iterations == 2
            assert "beta2 = 0.999" in (folder / "operative_config.gin").read_text()
    # What was trained otherwise is not taken for it, and the others are not trained again.
    done = run(results, *arguments, "--gin_bindings=VectorizedDQNAgent.gamma=0.5")
    assert done.returncode == 1
    assert "8 of 12 runs are complete (8 of them before), 4 failed" in done.stdout
    assert "VectorizedDQNAgent.gamma was 0.99 and is 0.5" in done.stdout


# Beside what tests/commands/test_main.py and tests/test_refusals.py have.
BAD = [
    (["--games=bsuite/Catch"], "games is 'bsuite/Catch'; it must be one of Dopamine's 60 Atari"),
    (["--env=CartPole-v1,Pong"], "env is 'Pong'; it must be no game: --games takes these"),
    (["--games=,"], "games is ''; it must be one of Dopamine's 60"),
    (["--agents=,"], "agents is ''; it must be one agent or more"),
    (["--agents=c51", "--vectorized"], "agent is 'c51'; it must be one of log_dqn, loglin_dqn,"),
    (["--games_per_job=2"], "games_per_job is 2; it must be left out: it is for --vectorized with"),
    (["--cpus_per_run=none"], "'none' is not a number of CPUs"),
    (["--gpus_per_run=-1"], "'-1' is not a number of GPUs, 0 or more"),
    (["--ray_address=127.0.0.1:9"], "a Ray head node that is running (Connection refused)"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_said_in_one_line(tmp_path, capsys, arguments, message):
    games = ["--games=Pong"] * (not arguments[0].startswith("--env"))
    arguments = ["--agents=log_dqn", *games, *arguments]
    programs.assert_refused(tmp_path, capsys, arguments, message, sweep, "results_dir")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gpus_per_run=1000"], "gpus_per_run is 1000"),
        (["--scan=LogDQNAgent.gama=0.9"], "LogDQNAgent has no parameter gama (nearest: gamma"),
    ],
)
def test_what_only_ray_or_the_agents_know_is_said_as_well(tmp_path, arguments, message):
    done = run(tmp_path / "results", "--agents=log_dqn", "--games=Pong", *arguments)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert programs.no_more_than_the_start(done.stdout)
    assert line.startswith("log_dqn.sweep: error: ") and message in line
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def without_ray(monkeypatch):
    """Only what starts Ray, or asks the agents, is replaced."""

    @contextlib.contextmanager
    def checking(request):
        parameters = {game: {} for game in request.games}
        yield lambda: [plan.AgentPlan("log_dqn", [], [], [(2, 80)], parameters)]

    monkeypatch.setattr(sweep, "_checking", checking)
    monkeypatch.setattr(ray, "init", lambda **settings: None)
    monkeypatch.setattr(cluster, "resources", lambda *args, **kwargs: {"cpu": 1, "gpu": 0})
    monkeypatch.setattr(cluster, "disconnect", lambda: None)


def test_a_disk_that_fills_up_ends_a_sweep_with_one_line(
    tmp_path, capsys, monkeypatch, without_ray
):
    def run_until_full(jobs, resources, max_failures, folder, shown):
        (pathlib.Path(folder) / "state.json").write_text("{")
        raise OSError(errno.ENOSPC, "No space left on device", f"{folder}/state.json")

    monkeypatch.setattr(tuning, "run", run_until_full)
    results = tmp_path / "results"
    assert sweep.main([f"--results_dir={results}", "--agents=log_dqn", "--games=Pong"]) == 1
    out, err = capsys.readouterr()
    # The first line is the board's.
    board, line = err.splitlines()
    assert "1 run: 0 complete" in board
    assert line.startswith(
        f"log-dqn sweep: stopped in {results}: [Errno 28] No space left on device"
    )
    assert line.endswith("; the same command resumes")
    assert programs.no_more_than_the_start(out)
    assert list(results.iterdir()) == []


def test_a_full_disk_is_named_before_a_sweep_begins(tmp_path, capsys, monkeypatch, without_ray):
    def hold(folder):
        raise OSError(errno.ENOSPC, "No space left on device")  # As where a file is closed.

    monkeypatch.setattr(sweep.lock, "hold", hold)
    message = "results_dir is '.*'; it must be a folder that can be written (No space left on devi"
    programs.assert_refused(tmp_path, capsys, ONE, message, sweep, "results_dir")


def test_ray_that_does_not_start_is_said_in_one_line(tmp_path, capsys, monkeypatch, without_ray):
    def init(**settings):
        raise Exception("The current node timed out during startup.\nThis could happen.")

    monkeypatch.setattr(ray, "init", init)
    message = "error: Ray can't be started: The current node timed out during startup.\n"
    programs.assert_refused(tmp_path, capsys, ONE, message, sweep, "results_dir")


def test_a_folder_of_ray_has_its_name_only_once_it_is_held(tmp_path, monkeypatch):
    hold, names = sweep.lock.hold, []

    def hold_unnamed(folder):
        names.append([path.name for path in tmp_path.iterdir()])
        return hold(folder)

    monkeypatch.setattr(sweep.lock, "hold", hold_unnamed)
    with sweep._ray_folder(tmp_path) as folder:
        assert names[0][0].startswith(".new-sweep-") and len(names) == 1
        assert [str(path) for path in tmp_path.iterdir()] == [folder]
        assert pathlib.Path(folder).name.startswith(".sweep-")
        with sweep._ray_folder(tmp_path) as other:  # It leaves the first, which is held.
            assert {str(path) for path in tmp_path.iterdir()} == {folder, other}
    assert list(tmp_path.iterdir()) == []
