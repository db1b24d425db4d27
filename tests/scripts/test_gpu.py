"""Everything about a GPU in one visit: what it refuses, keeps and writes; on a CPU, all of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from unittest import mock

import jax
import numpy as np
import pytest

from tests.scripts import SCRIPTS


@pytest.fixture
def gpu(load):
    gpu = load("benchmarks.gpu")
    gpu.main = load("benchmark").main
    return gpu


FOUND = {"device": "NVIDIA H200", "kind": "gpu"}
STEPS = [
    "device", "gradients", "reads", "twin", "Atari, 1 run", "Atari, 4 runs", "Atari, 16 runs",
    "Atari, 64 runs", "Atari, as many as fit", "Atari, 16 runs in tf32",
    "Atari, 16 runs in bfloat16", "MinAtar, 1 run", "MinAtar, 25 runs", "MinAtar, 125 runs",
    "trace",
]  # fmt: skip


@pytest.fixture
def steps(gpu, monkeypatch):
    """The steps that ran; each has a result at once."""
    ran = []

    def run(visit, step):
        ran.append(step)
        return FOUND if step == "device" else {"x": 1.0}

    def training(name, found):
        def train(visit):
            ran.append(name)
            yield {"exit status": "not stopped yet"}
            # What is there before the programs are stopped is kept, whatever comes.
            kept = json.loads((visit._out / "gpu.json").read_text())[name]
            assert kept == {"exit status": "not stopped yet"}
            yield found

        return train

    monkeypatch.setattr(gpu.Visit, "run", run)
    monkeypatch.setattr(gpu.Visit, "atari", training("learns", {"Pong 1": [-20.5]}))
    monkeypatch.setattr(gpu.Visit, "small_study", training("MinAtar's study", {"seeds": 5}))
    return ran


def test_every_step_is_written(gpu, steps, tmp_path):
    out = tmp_path / "out"
    assert gpu.main(["gpu", f"--out={out}"]) == 0
    assert steps == [*STEPS, "MinAtar's study", "learns"]
    results = json.loads((out / "gpu.json").read_text())
    assert list(results) == [*STEPS, "MinAtar's study", "learns"]
    assert results["Atari, 4 runs"] == {"x": 1.0}
    lines = (out / "gpu.md").read_text().splitlines()
    assert lines[:8] == [
        "# On a GPU", "", "## device", "", "| |  |", "|---|---|", "| device | NVIDIA H200 |",
        "| kind | gpu |",
    ]  # fmt: skip
    atari = lines.index("## Atari")
    assert lines[atari + 2 : atari + 6] == [
        "| | x |", "|---|---|", "| 1 run | 1 |", "| 4 runs | 1 |",
    ]  # fmt: skip
    assert lines.count("## Atari") == 1
    assert sorted(path.name for path in out.iterdir()) == ["gpu.json", "gpu.md", "gpu.png"]


def test_what_is_not_installed_is_said_before_the_first_step(load, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert load("benchmark").main(["gpu", f"--out={tmp_path}", "--minutes=0"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("benchmark.py: error: gpu: import of matplotlib.figure halted")
    assert error.endswith("; it must be installed\n") and error.count("\n") == 1


def test_speeds_are_drawn_against_the_number_of_runs(gpu, tmp_path, monkeypatch):
    figures = []
    figure_class = __import__("matplotlib.figure").figure.Figure
    monkeypatch.setattr(figure_class, "savefig", lambda figure, *_, **__: figures.append(figure))

    def speeds(runs):
        return {
            "runs": runs, "agent steps/s": 100.0 * runs, "updates alone, agent steps/s": 150.0,
        }  # fmt: skip

    gpu._draw(
        {
            "Atari, as many as fit": speeds(90), "Atari, 1 run": speeds(1),
            "Atari, 16 runs in tf32": speeds(16), "Atari, 4 runs": {"failed": "no time was left"},
        },
        tmp_path / "x.png",
    )  # fmt: skip
    atari, minatar = figures[0].axes
    assert {line.get_label(): (*line.get_xdata(), *line.get_ydata()) for line in atari.lines} == {
        "all together": (1, 90, 100.0, 9000.0), "updates alone": (1, 90, 150.0, 150.0),
    }  # fmt: skip
    assert not minatar.lines


def test_resuming_keeps_what_is_there_and_trains_on(gpu, steps, tmp_path, capsys):
    kept = {
        "device": {**FOUND, "dry run": False}, "gradients": {"x": 2.0}, "learns": {},
        "reads": {"failed": "no time was left"},
    }  # fmt: skip
    (tmp_path / "gpu.json").write_text(json.dumps(kept))
    assert gpu.main(["gpu", f"--out={tmp_path}"]) == 2
    error = capsys.readouterr().err
    assert (
        error
        == f"benchmark.py: error: out is '{tmp_path}'; it must be a new folder, or --resume given\n"
    )
    assert steps == []
    assert gpu.main(["gpu", f"--out={tmp_path}", "--resume"]) == 0
    assert steps[:2] == ["device", "reads"] and "gradients" not in steps
    results = json.loads((tmp_path / "gpu.json").read_text())
    assert results["gradients"] == {"x": 2.0}
    assert results["reads"] == {"x": 1.0}
    assert results["learns"] == {"Pong 1": [-20.5]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "out is 'DIR'; it must be a folder whose gpu.json has results of this program"),
        ("[]", "out is 'DIR'; it must be a folder whose gpu.json has results of this program"),
        ('{"reads": 3}', "out is 'DIR'; it must be a folder whose gpu.json has results of this"),
        ('{"device": {"device": "NVIDIA A100", "dry run": false}}',
         "device is 'NVIDIA H200'; it must be 'NVIDIA A100', as in the results of --out=DIR"),
        ('{"device": {"device": "NVIDIA H200", "dry run": true}}',
         "dry run is False; it must be True, as in the results of --out=DIR"),
    ],
)  # fmt: skip
def test_results_of_another_visit_are_not_resumed(gpu, steps, tmp_path, capsys, text, said):
    (tmp_path / "gpu.json").write_text(text)
    assert gpu.main(["gpu", f"--out={tmp_path}", "--resume"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"benchmark.py: error: {said.replace('DIR', str(tmp_path))}")
    assert error.count("\n") == 1
    assert steps in ([], ["device"])
    assert [path.name for path in tmp_path.iterdir()] == ["gpu.json"]
    assert (tmp_path / "gpu.json").read_text() == text


def test_a_step_that_fails_leaves_the_others_alone(gpu, steps, monkeypatch, tmp_path):
    whole = gpu.Visit.run

    def run(visit, step):
        failed = {"failed": "out of memory"}
        return failed if step in ("twin", "Atari, 4 runs") else whole(visit, step)

    monkeypatch.setattr(gpu.Visit, "run", run)
    assert gpu.main(["gpu", f"--out={tmp_path}"]) == 1
    results = json.loads((tmp_path / "gpu.json").read_text())
    assert results["Atari, 4 runs"] == results["twin"] == {"failed": "out of memory"}
    assert results["trace"] == {"x": 1.0}


def visit(gpu, out, seconds=600.0, dry_run=True):
    return gpu.Visit(out, time.monotonic() + seconds, dry_run)


def test_a_training_that_fails_is_a_step_that_failed(gpu, tmp_path):
    settings = ("--agent=dqn", "--games=Pong", "--seeds=0")
    *_, result = visit(gpu, tmp_path)._train([settings], tmp_path / "runs", 1.0)
    assert result["exit status"] == [2] and result["failed"] == "see training.log"
    assert "seeds" in (tmp_path / "training.log").read_text()


IGNORES = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: None); "


@pytest.mark.parametrize(
    ("code", "status"),
    [("", -signal.SIGTERM), (IGNORES, -signal.SIGKILL), ("import sys; sys.exit(143)", 143)],
)
def test_training_ends_when_the_time_is_over(gpu, monkeypatch, tmp_path, code, status):
    monkeypatch.setattr(gpu, "_LEAST_SECONDS", 0)
    monkeypatch.setattr(gpu, "_SECONDS_TO_STOP", 0.3)
    monkeypatch.setattr(gpu, "_SECONDS_TO_WRITE", 1.5)
    program = [sys.executable, "-c", f"{code}\nimport time\ntime.sleep(60)"]
    monkeypatch.setattr(gpu, "_tethered", lambda command: program)
    before, result = visit(gpu, tmp_path, 4)._train([(), ()], tmp_path / "runs", 1.0)
    assert before is result and result["exit status"] == [status, status]
    assert 0 < result["seconds"] < 3.9
    assert result["failed"] == "no iteration ended in time"


def test_trainings_side_by_side_share_the_gpu(gpu, monkeypatch, tmp_path):
    names = ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION")
    code = f"import os; print(*map(os.environ.get, {names}))"
    monkeypatch.setattr(gpu, "_tethered", lambda command: [sys.executable, "-c", code])
    for name in names:
        list(visit(gpu, tmp_path)._train([(), ()], tmp_path / "runs", 1.0))
        monkeypatch.setenv(name, "0.9")
    list(visit(gpu, tmp_path)._train([(), ()], tmp_path / "runs", 1.0))
    assert (tmp_path / "training.log").read_text() == 6 * "0.475 None\n"


def test_no_training_where_no_time_is_left(gpu, tmp_path):
    failed = {"failed": "no time was left"}
    # Thirty seconds are for what comes after it.
    assert list(visit(gpu, tmp_path, 85)._train([()], tmp_path / "runs", 1.0)) == [failed]
    assert list(visit(gpu, tmp_path, 205)._train([()], tmp_path / "runs", 1 / 3)) == [failed]
    assert visit(gpu, tmp_path, -1).run("device") == failed
    assert not list(tmp_path.iterdir())


# What JAX 0.11 says after an error.
TRAILER = (
    "--------------------\nFor simplicity, JAX has removed its internal frames from the traceback "
    "of the following exception. Set JAX_TRACEBACK_FILTERING=off to include these.\n"
)


@pytest.fixture
def ended(monkeypatch):
    """Ends every process of a step with this; notes commands and environments."""
    process, started = {"status": 0, "out": "{}", "err": ""}, []

    def run(command, env, stderr, **_):
        started.append((command, env))
        stderr.write(process["err"])
        if process["status"] is None:
            raise subprocess.TimeoutExpired(command, 1)
        return subprocess.CompletedProcess(command, process["status"], process["out"])

    monkeypatch.setattr(subprocess, "run", run)
    return process, started


def test_a_step_finds_the_wheels_that_its_caller_finds(gpu, ended, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", "wheels/site")
    assert visit(gpu, tmp_path).run("trace") == {}
    ((command, environment),) = ended[1]
    assert command[-3:] == ["gpu", "--step=trace", "--dry-run"]
    assert environment["PYTHONPATH"] == f"{SCRIPTS.parent}{os.pathsep}wheels/site"
    assert environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.95"
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    visit(gpu, tmp_path).run("trace")
    assert ended[1][1][1]["JAX_PLATFORMS"] == "cuda,cpu"


@pytest.mark.parametrize(
    ("status", "out", "err", "result"),
    [
        (0, 'a warning\n{"x": 1}\n', "", {"x": 1}),
        (
            1,
            "",
            f"Traceback\n  line\nx.JaxRuntimeError: 64 GB\nmore of it\n{TRAILER}",
            {"failed": "x.JaxRuntimeError: 64 GB"},
        ),
        (1, "", "AssertionError\n", {"failed": "AssertionError"}),
        (None, "", "compiling\n", {"failed": "stopped after 240 s"}),
        (2, "", "benchmark.py: error: x is 3\n", {"failed": "x is 3"}),
        (-9, "", "", {"failed": "exit status -9"}),
        # XLA, before there is a folder for what it says.
        (-6, "", "noise\nF x.cc] a flag\n\n", {"failed": "exit status -6: F x.cc] a flag"}),
        (0, "", "", {"failed": "no result"}),
        (0, '{"x": 1}\nbye\n', "", {"failed": "no result"}),
    ],
)
def test_how_a_step_has_ended(gpu, ended, tmp_path, status, out, err, result):
    ended[0].update(status=status, out=out, err=err)
    assert visit(gpu, tmp_path).run("trace") == result
    assert (tmp_path / "steps.log").read_text() == f"trace\n{err}"


def test_a_third_of_a_visit_is_kept_for_training(gpu, ended, tmp_path):
    ended[0].update(status=None)
    assert visit(gpu, tmp_path, 90.4).run("trace") == {"failed": "stopped after 60 s"}


def test_what_runs_have_found_is_there_before_they_are_stopped(gpu, monkeypatch, tmp_path):
    ends = {"exit status": "not stopped yet"}

    def train(*_):
        yield ends
        ends["exit status"] = [143]
        yield ends

    runs = [("dqn", "Pong", seed, tmp_path / seed) for seed in "12"]
    monkeypatch.setattr(gpu.Visit, "_train", train)
    monkeypatch.setattr(gpu.layout, "find_runs", lambda _: runs)
    monkeypatch.setattr(gpu, "_returns", lambda folder: [float(folder.name)])
    monkeypatch.setattr(gpu, "_by_published_iterations", lambda _, returns: {"last": returns[-1]})
    rows = {"dqn Pong 1": {"last": 1.0}, "dqn Pong 2": {"last": 2.0}}
    options = f"--results_dir={tmp_path / 'runs'} --out={tmp_path / 'comparison'}"
    compare = {"beside the published seeds": f"log-dqn compare {options}"}
    before, after = visit(gpu, tmp_path).atari()
    assert before == {"exit status": "not stopped yet", **rows, **compare}
    assert after == {"exit status": [143], **rows, **compare}
    ends.clear()
    study = {"dqn Pong": {"seeds": 2, "iterations": 1, "mean return of the last": 1.5}}
    before = next(visit(gpu, tmp_path).small_study())
    assert before == study


def test_returns_by_the_iterations_of_the_published_curves(gpu, monkeypatch, tmp_path):
    config = {"VectorizedRunner.training_steps": 25_000}
    monkeypatch.setattr(gpu.configuration, "read", lambda folder: config)
    returns = [*range(10), *[20.0] * 10, 7.0]
    assert gpu._by_published_iterations(tmp_path, returns) == {
        "agent steps": 525_000, "mean return of the last": 7.0,
        "of each 250,000 steps": [4.5, 20.0],
    }  # fmt: skip


def test_only_a_gpus_streams_count(load):
    of_gpu = load("benchmarks.gpu_steps").of_gpu
    names = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        for pid, name in ((1, "/device:GPU:0"), (7, "/host:CPU"))
    ] + [
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": {"name": name}}
        for pid, thread, name in ((1, 3, "Stream #3"), (1, 4, "XLA Modules"), (7, 3, "Stream"))
    ]
    kernel, module, host = (
        {"name": name, "pid": pid, "tid": thread, "dur": 2.0}
        for name, pid, thread in (("gemm", 1, 3), ("jit_act", 1, 4), ("wait", 7, 3))
    )
    assert of_gpu([*names, kernel, module, host]) == [kernel]
    assert of_gpu([*names, host]) == []


@pytest.mark.parametrize(
    ("error", "failed"),
    [(0.001, None), (0.02, "log_dqn in float32: above 0.01"), (np.nan, "log_dqn in float32")],
)
def test_gradients_that_are_off_fail(load, monkeypatch, error, failed):
    steps = load("benchmarks.gpu_steps")
    monkeypatch.setattr(steps.agents, "AGENTS", {"log_dqn": steps.agents.VectorizedLogDQNAgent})

    def gradients(agent, params, precision, dtype):
        off = error if precision == "float32" and dtype is np.float32 else 0.0
        return {"Conv_0": np.ones(4), "Conv_1": np.ones(4) * (1 + off)}

    monkeypatch.setattr(steps, "_gradients", gradients)
    result = steps.gradients()
    assert result["log_dqn in float32"] == pytest.approx(
        {"Conv_0": 0, "Conv_1": error}, nan_ok=True
    )
    assert ("failed" in result) == (failed is not None)
    assert (failed or "") in result.get("failed", "")


def test_the_precision_in_force_is_said(load):
    steps = load("benchmarks.gpu_steps")
    assert steps.device()["JAX's own precision"] == "None"
    with jax.default_matmul_precision("tensorfloat32"):
        assert steps.device()["JAX's own precision"] == "tensorfloat32"


GB = 10**9
NO_MEMORY = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 9 GB\nmore of it")
LITTLE = "Room(device=1000000000, host=500000000000)"


@pytest.mark.parametrize(
    ("errors", "free", "tried", "result"),
    [
        ([], [80], [92], {"runs": 92}),
        ([NO_MEMORY], [80, 80], [92, 80], {"runs": 80}),
        # What the failure has left behind counts, lest the memories go to the host.
        ([ValueError("no room")], [80, 40], [92, 45], {"runs": 45}),
        (3 * [NO_MEMORY], 3 * [80], [92, 80, 70],
         {"failed": "70 runs: RESOURCE_EXHAUSTED: 9 GB"}),
        ([NO_MEMORY], [80, 1], [92],
         {"failed": f"none fits in {LITTLE}; before: 92 runs: RESOURCE_EXHAUSTED: 9 GB"}),
        ([], [1], [], {"failed": f"none fits in {LITTLE}; before: not tried"}),
    ],
)  # fmt: skip
def test_as_many_runs_as_fit(load, monkeypatch, errors, free, tried, result):
    # A run takes 0.706 GB for its memory, 0.065 for weights and 0.08 for updates; 1 GB is reserved.
    steps = load("benchmarks.gpu_steps")
    rooms = [steps.placement.Room(gigabytes * GB, 500 * GB) for gigabytes in free]
    monkeypatch.setattr(steps.placement, "free", lambda: rooms.pop(0))
    ran, left = [], list(errors)

    def atari(_, num_runs):
        ran.append(num_runs)
        if left:
            raise left.pop(0)
        return {"runs": num_runs}

    monkeypatch.setattr(steps, "atari", atari)
    assert steps.most(steps.FULL) == result
    assert ran == tried and not rooms


@pytest.mark.parametrize(
    ("kernel", "returns", "played", "failed"),
    [
        ([3.0, 4.0], [1.0, 2.0], [0.0, 5.0, 1.0], None),
        ([3.0, 4.004], [1.0, 2.0], [0.0, 6.0, 1.0], None),
        ([3.0, 4.006], [1.0, 2.0], [0.0, 5.0, 1.0], "weights differ by more than 0.001"),
        ([3.0, np.nan], [1.0, 2.0], [0.0, 5.0, 1.0], "weights differ by more than 0.001"),
        ([3.0, 4.0], [1.0, 3.0], [0.0, 5.0, 1.0], "other returns at random"),
    ],
)
def test_a_twin_that_is_off_fails(load, monkeypatch, kernel, returns, played, failed):
    steps = load("benchmarks.gpu_steps")

    def player(kernel, returns):
        # The second layer is large, and the same.
        weights = mock.Mock(params={"Conv_0": np.array(kernel), "Output": np.array([1e6])})
        return mock.Mock(learner=mock.Mock(weights=weights), returns=returns)

    cpu = [player([3.0, 4.0], [1.0, 2.0]), player([], [0.0, 5.0, 1.0])]
    create = mock.Mock(side_effect=[player(kernel, returns), player([], played), *cpu])
    monkeypatch.setattr(steps.minatar, "Player", create)
    result = steps.twin()
    difference = result["relative differences of the weights after them"]
    assert difference["['Conv_0']"] == pytest.approx((kernel[1] - 4) / 5, nan_ok=True)
    assert result["of them before the first other return"] == (3 if played[1] == 5 else 1)
    assert result.get("failed") == failed


def test_no_gpu(gpu, steps, monkeypatch, tmp_path, capsys):
    found = {"device": "cpu", "kind": "cpu"}
    monkeypatch.setattr(gpu.Visit, "run", lambda *_: found)
    assert gpu.main(["gpu", f"--out={tmp_path}"]) == 2
    error = capsys.readouterr().err
    assert error == "benchmark.py: error: device is 'cpu'; it must be a GPU, or --dry-run given\n"
    found = {"failed": "RuntimeError: Unable to initialize backend 'cuda'"}
    assert gpu.main(["gpu", f"--out={tmp_path}", "--dry-run"]) == 2
    error = capsys.readouterr().err
    assert error == f"benchmark.py: error: device: {found['failed']}\n"
    assert not list(tmp_path.iterdir())


def test_results_that_are_a_folder_are_refused(gpu, steps, tmp_path, capsys):
    (tmp_path / "gpu.json").mkdir()
    assert gpu.main(["gpu", f"--out={tmp_path}", "--resume"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"benchmark.py: error: out is '{tmp_path}'; it must be a folder whose ")
    assert steps == []


@pytest.mark.parametrize("step", ["nonsense", ""])
def test_no_such_step(gpu, tmp_path, capsys, step):
    assert gpu.main(["gpu", f"--step={step}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"benchmark.py: error: step is '{step}'; it must be one of device, ")
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_dry_run_of_everything(tmp_path):
    program = (sys.executable, str(SCRIPTS / "benchmark.py"), "gpu", "--dry-run", "--minutes=8")
    command = [*program, f"--out={tmp_path}"]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS.parent), "JAX_PLATFORMS": "cpu"}

    def run(*arguments):
        done = subprocess.run([*command, *arguments], env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads((tmp_path / "gpu.json").read_text())

    results = run()
    assert list(results) == [
        "device", "gradients", "reads", "twin", "Atari, 1 run", "Atari, as many as fit",
        "Atari, 1 run in tf32", "Atari, 1 run in bfloat16", "MinAtar, 1 run", "trace",
        "MinAtar's study", "learns",
    ]  # fmt: skip
    for agent in ("log_dqn", "dqn"):
        errors = {
            precision: results["gradients"][f"{agent} in {precision}"]
            for precision in ("float32", "tf32", "bfloat16")
        }
        assert 1e-8 < max(errors["float32"].values()) < 1e-3
        assert errors["tf32"] == errors["float32"]  # On a CPU.
        assert 1e-3 < max(errors["bfloat16"].values()) < 0.1
    assert set(results["reads"].values()) == {True} and len(results["reads"]) == 6
    twin = results["twin"]
    differences = twin.pop("relative differences of the weights after them")
    assert len(differences) == 4 and set(differences.values()) == {0}
    same, episodes, before = twin.values()
    assert same and before == episodes > 100
    for name, speed in results.items():
        if name.startswith(("Atari, ", "MinAtar, ")):
            assert speed["agent steps/s"] > 1, name
    assert results["Atari, as many as fit"]["runs"] == 2
    assert len(results["trace"]) == 10
    study = results["MinAtar's study"]
    assert study.pop("exit status") == [0, 0]
    assert study.pop("seconds") > 0
    assert len(study) == 2 * 5
    assert {(run["seeds"], run["iterations"]) for run in study.values()} == {(1, 1)}
    learned = {name: value for name, value in results["learns"].items() if "dqn" in name}
    assert len(learned) == 20
    assert {run["agent steps"] for run in learned.values()} == {120}
    assert results["learns"]["exit status"] == [0, 0]

    # Stopped while it trains on Atari, and resumed.
    shutil.rmtree(tmp_path / "runs")
    process = subprocess.Popen([*command, "--resume"], env=environment)
    while not list(tmp_path.glob("runs/*/*/*/logs/log_0")):
        assert process.poll() is None
        time.sleep(0.2)
    process.terminate()
    assert process.wait() == 128 + signal.SIGTERM
    begun = len(list(tmp_path.glob("runs/*/*/*/logs/log_0")))
    assert 1 <= begun < 20
    again = run("--resume")
    assert {name: value for name, value in again["learns"].items() if name != "seconds"} == {
        name: value for name, value in results["learns"].items() if name != "seconds"
    }
