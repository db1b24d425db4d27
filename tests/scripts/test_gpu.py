"""What is measured on a GPU: what it refuses, keeps and writes; on a CPU, all of it."""

import functools
import json
import os
import sys
from unittest import mock

import benchmark
import jax
import numpy as np
import pytest
from benchmarks import gpu, gpu_steps

from log_dqn import log_space
from log_dqn.vectorized import networks
from tests.vectorized import toys

FOUND = {"device": "NVIDIA H200", "kind": "gpu"}


@pytest.fixture
def steps(monkeypatch):
    """The steps, each with a result at once."""
    steps = {
        "device": functools.partial(dict, FOUND),
        "twin": functools.partial(dict, y=2),
        "Atari, 1 run": functools.partial(dict, x=1.0),
        "Atari, 4 runs": functools.partial(dict, x=4.0),
    }
    monkeypatch.setattr(gpu_steps, "steps", lambda size: dict(steps))
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    return steps


@pytest.mark.slow
def test_every_step_is_written_though_some_fail_and_only_those_are_repeated(steps, tmp_path):
    out = tmp_path / "out"
    steps |= {"twin": functools.partial(int, "x"), "Atari, 4 runs": functools.partial(os._exit, 3)}
    assert benchmark.main(["gpu", f"--out={out}"]) == 1
    results = json.loads((out / "gpu.json").read_text())
    assert list(results) == ["device", "twin", "Atari, 1 run", "Atari, 4 runs"]
    assert "invalid literal" in results["twin"]["failed"]
    assert "terminated" in results["Atari, 4 runs"]["failed"]
    assert results["Atari, 1 run"] == {"x": 1.0}

    steps["twin"] = steps["Atari, 4 runs"] = functools.partial(dict, x=4.0)
    steps["Atari, 1 run"] = functools.partial(int, "is not repeated")
    assert benchmark.main(["gpu", f"--out={out}"]) == 0
    assert json.loads((out / "gpu.json").read_text()) == results | {
        "twin": {"x": 4.0},
        "Atari, 4 runs": {"x": 4.0},
    }
    assert [path.name for path in out.iterdir()] == ["gpu.json"]


@pytest.fixture
def at_once(monkeypatch):
    """Runs each step in this process."""
    monkeypatch.setattr(gpu, "_result", lambda step: step())


def test_a_step_has_most_of_the_gpu_and_the_cpu_beside_it(steps, at_once, monkeypatch, tmp_path):
    monkeypatch.delenv("XLA_PYTHON_CLIENT_MEM_FRACTION")
    assert benchmark.main(["gpu", f"--out={tmp_path}"]) == 0
    assert os.environ["JAX_PLATFORMS"] == "cuda,cpu"
    assert os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.95"


@pytest.mark.parametrize(
    ("found", "arguments", "said"),
    [
        ({"device": "cpu", "kind": "cpu"}, [], "device is 'cpu'; it must be a GPU"),
        ({"failed": "no backend 'cuda'"}, ["--dry-run"], "device: no backend 'cuda'"),
    ],
)
def test_no_gpu(steps, at_once, tmp_path, capsys, found, arguments, said):
    steps["device"] = functools.partial(dict, found)
    assert benchmark.main(["gpu", f"--out={tmp_path}", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"benchmark.py: error: {said}") and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"device": {"device": "NVIDIA A100"}}', "a folder without"),
        *((text, "a folder whose gpu.json has") for text in ("{", "[]", "3", "null")),
        ('{"reads": 3}', "a folder whose gpu.json has"),
    ],
)
def test_other_results_are_kept(steps, at_once, tmp_path, capsys, text, said):
    (tmp_path / "gpu.json").write_text(text)
    assert benchmark.main(["gpu", f"--out={tmp_path}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"benchmark.py: error: out is '{tmp_path}'; it must be {said} results of"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["gpu.json"]
    assert (tmp_path / "gpu.json").read_text() == text


def test_what_is_not_installed_is_said_before_the_first_step(monkeypatch, tmp_path, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)
    assert benchmark.main(["gpu", f"--out={tmp_path}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("benchmark.py: error: gpu: import of jax halted")
    assert line.endswith("; it must be installed")


def test_only_a_gpus_streams_count():
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
    assert gpu_steps.of_gpu([*names, kernel, module, host]) == [kernel]
    assert gpu_steps.of_gpu([*names, host]) == []


@pytest.mark.parametrize(
    ("error", "failed"),
    [(0.001, None), (0.02, "log_dqn in float32: above 0.01"), (np.nan, "log_dqn in float32")],
)
def test_gradients_that_are_off_fail(monkeypatch, error, failed):
    monkeypatch.setattr(
        gpu_steps.agents, "AGENTS", {"log_dqn": gpu_steps.agents.VectorizedLogDQNAgent}
    )

    def gradients(agent, params, precision, dtype):
        off = error if precision == "float32" and dtype is np.float32 else 0.0
        return {"Conv_0": np.ones(4), "Conv_1": np.ones(4) * (1 + off)}

    monkeypatch.setattr(gpu_steps, "_gradients", gradients)
    result = gpu_steps.gradients()
    assert result["log_dqn in float32"] == pytest.approx(
        {"Conv_0": 0, "Conv_1": error}, nan_ok=True
    )
    assert ("failed" in result) == (failed is not None)
    assert (failed or "") in result.get("failed", "")


def test_the_precision_in_force_is_said():
    assert gpu_steps.device()["JAX's own precision"] == "None"
    with jax.default_matmul_precision("tensorfloat32"):
        assert gpu_steps.device()["JAX's own precision"] == "tensorfloat32"


def test_as_many_runs_as_fit(monkeypatch):
    # A run takes 0.706 GB for its memory, and 0.081 and 0.07 for weights and updates; 1 GB is kept.
    monkeypatch.setattr(gpu_steps, "atari", lambda _, num_runs: num_runs)
    for gigabytes, num_runs in ((80, 92), (40, 45)):
        monkeypatch.setattr(
            gpu_steps.pool, "free_memory", functools.partial(int, gigabytes * 10**9)
        )
        assert gpu_steps.most(gpu_steps.FULL) == num_runs
    monkeypatch.setattr(gpu_steps.pool, "free_memory", lambda: 10**9)
    with pytest.raises(ValueError, match="batch_size is 32; it must be smaller"):
        gpu_steps.most(gpu_steps.FULL)


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
def test_a_twin_that_is_off_fails(monkeypatch, kernel, returns, played, failed):
    def player(kernel, returns):
        # The second layer is large, and the same.
        weights = mock.Mock(params={"Conv_0": np.array(kernel), "Output": np.array([1e6])})
        return mock.Mock(learner=mock.Mock(weights=weights), returns=returns)

    cpu = [player([3.0, 4.0], [1.0, 2.0]), player([], [0.0, 5.0, 1.0])]
    create = mock.Mock(side_effect=[player(kernel, returns), player([], played), *cpu])
    monkeypatch.setattr(gpu_steps.minatar, "Player", create)
    result = gpu_steps.twin()
    difference = result["relative differences of the weights after them"]
    assert difference["['Conv_0']"] == pytest.approx((kernel[1] - 4) / 5, nan_ok=True)
    assert result["of them before the first other return"] == (3 if played[1] == 5 else 1)
    assert result.get("failed") == failed


@pytest.mark.slow
def test_a_dry_run_of_everything(at_once, monkeypatch, tmp_path):
    # LogLinDQN's agent, without its gin file, is LogDQN's.
    both = {name: gpu_steps.agents.AGENTS[name] for name in ("log_dqn", "dqn")}
    monkeypatch.setattr(gpu_steps.agents, "AGENTS", both)
    create, measured = gpu_steps.vectorized.create_problem, []

    def problem(*arguments):  # Nature's network takes long to compile, and `gradients` has it.
        measured.append(create(*arguments))
        return measured[-1]._replace(network=toys.small_network)

    monkeypatch.setattr(gpu_steps.vectorized, "create_problem", problem)
    assert benchmark.main(["gpu", "--dry-run", f"--out={tmp_path}"]) == 0
    of_nature = [networks.create("nature", precision) for precision in log_space.PRECISIONS]
    assert {problem.network for problem in measured} == set(of_nature)
    results = json.loads((tmp_path / "gpu.json").read_text())
    assert list(results) == [
        "device", "gradients", "reads", "twin", "Atari, 1 run", "Atari, as many as fit",
        "Atari, 1 run in tf32", "Atari, 1 run in bfloat16", "MinAtar, 1 run", "trace",
    ]  # fmt: skip
    for agent in both:
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
