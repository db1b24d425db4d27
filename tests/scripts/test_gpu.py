"""Everything about a GPU in one visit: what it refuses, keeps and writes; on a CPU, all of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.scripts import SCRIPTS


@pytest.fixture
def gpu(load):
    gpu = load("benchmarks.gpu")
    gpu.main = load("benchmark").main
    return gpu


@pytest.fixture
def steps(gpu, monkeypatch):
    """The steps that ran; each has a result at once."""
    ran = []

    def in_process(step, dry_run, **environment):
        ran.append((step, dry_run, environment))
        return {"device": "NVIDIA H200", "kind": "gpu"} if step == "device" else {"x": 1.0}

    def learns(size, out, until):
        ran.append("learns")
        return {"Pong 1": [-20.5]}

    def minatar_study(size, out, until):
        ran.append("MinAtar's study")
        return {"seeds": 5}

    monkeypatch.setattr(gpu, "in_process", in_process)
    monkeypatch.setattr(gpu, "learns", learns)
    monkeypatch.setattr(gpu, "minatar_study", minatar_study)
    return ran


def test_every_step_is_written(gpu, steps, tmp_path):
    assert gpu.main(["gpu", f"--out={tmp_path / 'out'}"]) == 0
    assert [step[0] for step in steps[:-2]] == ["device", "right", "fast", "most", "trace"]
    assert steps[-2:] == ["MinAtar's study", "learns"]
    results = json.loads((tmp_path / "out" / "gpu.json").read_text())
    assert results["fast"] == {"x": 1.0}
    assert (tmp_path / "out" / "gpu.md").read_text().splitlines()[:8] == [
        "# On a GPU", "", "## device", "", "| |  |", "|---|---|", "| device | NVIDIA H200 |",
        "| kind | gpu |",
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["gpu.json", "gpu.md"]


def test_numbers_with_names_in_common_share_a_table(gpu):
    speeds = {"1 run": {"steps/s": 1234.5, "ms": 0.81}, "4 runs": {"steps/s": 4000.0, "ms": 1.0}}
    assert gpu._page({"fast": speeds}).splitlines()[2:] == [
        "## fast",
        "",
        "| | steps/s | ms |",
        "|---|---|---|",
        "| 1 run | 1.23e+03 | 0.81 |",
        "| 4 runs | 4e+03 | 1 |",
    ]


def test_resuming_keeps_what_is_there_and_trains_on(gpu, steps, tmp_path, capsys):
    (tmp_path / "gpu.json").write_text(json.dumps({"right": {"x": 2.0}, "learns": {}}))
    assert gpu.main(["gpu", f"--out={tmp_path}"]) == 2
    error = capsys.readouterr().err
    assert (
        error
        == f"benchmark.py: error: out is '{tmp_path}'; it must be a new folder, or --resume given\n"
    )
    assert steps == []
    assert gpu.main(["gpu", f"--out={tmp_path}", "--resume"]) == 0
    assert [step[0] for step in steps[:-2]] == ["device", "fast", "most", "trace"]
    results = json.loads((tmp_path / "gpu.json").read_text())
    assert results["right"] == {"x": 2.0}
    assert results["learns"] == {"Pong 1": [-20.5]}


def test_a_step_that_fails_leaves_the_others_alone(gpu, steps, monkeypatch, tmp_path):
    whole = gpu.in_process

    def in_process(step, dry_run):
        return {"failed": "exit status 1"} if step == "fast" else whole(step, dry_run)

    monkeypatch.setattr(gpu, "in_process", in_process)
    assert gpu.main(["gpu", f"--out={tmp_path}"]) == 1
    results = json.loads((tmp_path / "gpu.json").read_text())
    assert results["fast"] == {"failed": "exit status 1"}
    assert results["trace"] == {"x": 1.0}


def test_a_training_that_fails_is_a_step_that_failed(gpu, tmp_path):
    log = tmp_path / "log"
    settings = ("--agent=dqn", "--games=Pong", "--seeds=0")
    result = gpu._train([settings], tmp_path, log, until=time.monotonic() + 60)
    assert result["exit status"] == [2] and result["failed"] == f"see {log}"
    assert "seeds" in log.read_text()


def test_a_step_finds_the_wheels_that_its_caller_finds(gpu, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "wheels/site")
    seen = []

    def run(command, env, **_):
        seen.append((command, env))
        return subprocess.CompletedProcess(command, 0, "a warning\n{}\n")

    monkeypatch.setattr(subprocess, "run", run)
    assert gpu.in_process("most", dry_run=True, JAX_PLATFORMS="cpu") == {}
    ((command, environment),) = seen
    assert command[2:] == ["gpu", "--step=most", "--dry-run"]
    assert environment["PYTHONPATH"] == f"{SCRIPTS.parent}{os.pathsep}wheels/site"
    assert environment["JAX_PLATFORMS"] == "cpu"


def test_no_gpu(gpu, steps, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(gpu, "in_process", lambda *_: {"device": "cpu", "kind": "cpu"})
    assert gpu.main(["gpu", f"--out={tmp_path}"]) == 2
    error = capsys.readouterr().err
    assert error == "benchmark.py: error: device is 'cpu'; it must be a GPU, or --dry-run given\n"
    assert not list(tmp_path.iterdir())


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
    names = ["device", "right", "fast", "most", "trace", "MinAtar's study", "learns"]
    assert list(results) == names
    right = results["right"]
    assert right["draws and reads equal the CPU's"] is True
    for agent in ("log_dqn", "dqn"):
        errors = {
            precision: right[f"{agent}'s gradients in {precision}, relative error"]
            for precision in ("float32", "tf32", "bfloat16")
        }
        assert 1e-8 < max(errors["float32"].values()) < 1e-3
        assert errors["tf32"] == errors["float32"]  # On a CPU.
        assert 1e-3 < max(errors["bfloat16"].values()) < 0.1
    (twin,) = (value for name, value in right.items() if "twin" in name)
    assert twin["episodes before the first other return"] == twin["episodes"] > 300
    assert list(results["fast"]) == ["Atari, 1 runs", "MinAtar, 1 runs"]
    assert list(results["most"]) == ["Atari, 2 runs"]
    for name, speed in (results["fast"] | results["most"]).items():
        assert speed["agent steps/s"] > 1, name
    assert len(results["trace"]) == 10
    study = results["MinAtar's study"]
    assert study.pop("exit status") == [0, 0]
    assert study.pop("seconds") > 0
    assert len(study) == 2 * 5
    assert {(run["seeds"], run["iterations"]) for run in study.values()} == {(1, 1)}
    learned = {name: value for name, value in results["learns"].items() if "log" in name}
    assert len(learned) == 10
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
