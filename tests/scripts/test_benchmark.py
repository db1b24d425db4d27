"""The one command of all benchmarks: what it parses, and what it prints."""

import sys

import benchmark
import numpy as np
import pytest
from benchmarks import cores, measuring

from tests.programs import refusal
from tests.scripts import SCRIPTS


@pytest.mark.parametrize(
    "flag", ["linear", "--framework=torch", "--rounds=x", "--round=1", "--rounds=0", "--out="]
)
def test_flags_that_are_refused(capsys, flag):
    line = refusal(capsys, benchmark.parse, [flag])
    assert ": error: " in line and flag.split("=")[-1] in line


def test_every_part_has_a_module_and_agents_are_the_default():
    assert benchmark.parse([]).what == "agents"
    assert {benchmark.parse([part]).what for part in benchmark.PARTS} == set(benchmark.PARTS)
    modules = {path.stem for path in (SCRIPTS / "benchmarks").glob("*.py")}
    helpers = {"__init__", "measuring", "agents_tf", "agents_jax", "gpu_steps", "peer_worker"}
    assert modules - helpers == set(benchmark.PARTS)


def test_blocks_run_in_turn_and_the_first_round_does_not_count():
    order = []
    blocks = {name: (lambda name=name: order.append(name) or len(order)) for name in "ab"}
    found = measuring.interleave(blocks, 2, "order")
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert {name: values.tolist() for name, values in found.items()} == {"a": [4, 5], "b": [3, 6]}
    found = measuring.interleave(blocks, 9, "order", seconds=0)
    assert {name: values.tolist() for name, values in found.items()} == {"a": [10], "b": [9]}


def test_a_table_has_the_median_ratio_to_the_first_within_a_round(capsys):
    speeds = {"here": np.array([1000.0, 2000.0, 4000.0]), "peer": np.array([50.0, 3000.0, 2000.0])}
    measuring.print_table("loop", "steps/s", speeds)
    assert capsys.readouterr().out.splitlines() == [
        "| loop | steps/s (10% to 90%) | ratio (10% to 90%) |",
        "| --- | --- | --- |",
        "| here | 2,000 (1,200 to 3,600) | 1.000 (1.000 to 1.000) |",
        "| peer | 2,000 (440 to 2,800) | 0.500 (0.140 to 1.300) |",
        "",
    ]


def test_what_is_not_installed_is_left_out_of_the_cores_part(monkeypatch, capsys):
    monkeypatch.setattr(cores, "_measure", lambda kind, rounds: print(kind, rounds))
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert benchmark.main(["cores", "--rounds=2"]) == 0
    lines = [line.split(": ") for line in capsys.readouterr().out.splitlines() if line]
    missing = "left out; tensorflow must be installed"
    assert [line[:2] for line in lines[:2]] == [
        ["train, TensorFlow", missing], ["train, JAX", missing],
    ]  # fmt: skip
    assert lines[2:] == [["train_vectorized 2"]]


def test_a_tiny_run_of_the_cores_part(monkeypatch, capsys):
    monkeypatch.setattr(cores, "_SECONDS", 2)
    monkeypatch.setattr(cores, "_START", 40)
    monkeypatch.delitem(cores.KINDS, "train, JAX")
    monkeypatch.delitem(cores.KINDS, "train, TensorFlow")
    assert benchmark.main(["cores", "--rounds=2"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:4]
    assert [row.split(" | ")[0] for row in rows] == ["| all cores", "| a core a run"]
    speeds = [float(row.split(" | ")[1].split()[0].replace(",", "")) for row in rows]
    assert min(speeds) > 0 and 0.5 < speeds[1] / speeds[0] < 8


def test_a_tiny_run_of_the_onednn_part(monkeypatch, capsys):
    """Each program has its own value of TensorFlow's variable."""
    monkeypatch.setattr(cores, "_SECONDS", 2)
    monkeypatch.setattr(cores, "_START", 40)
    started = []
    monkeypatch.setattr(
        cores.subprocess, "Popen",
        lambda *args, _start=cores.subprocess.Popen, **settings: (
            started.append(settings["env"]["TF_ENABLE_ONEDNN_OPTS"]) or _start(*args, **settings)
        ),
    )  # fmt: skip
    assert benchmark.main(["onednn", "--rounds=2"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:4]
    assert [row.split(" | ")[0] for row in rows] == ["| without oneDNN", "| with oneDNN"]
    assert started == ["0", "1"]
    assert min(float(row.split(" | ")[1].split()[0].replace(",", "")) for row in rows) > 0


def test_a_program_that_fails_is_said_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(cores, "KINDS", {"train, TensorFlow": ("NoAgent", "Runner", "No.size")})
    assert benchmark.main(["cores", "--rounds=1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("benchmark.py: error: log_dqn.train has ended; it said: ")
    assert "NoAgent" in line


def test_a_folder_that_is_no_clone_of_purejaxrl_is_refused(tmp_path, capsys):
    assert benchmark.main(["peers", f"--purejaxrl={tmp_path}"]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        f"--purejaxrl is {str(tmp_path)!r}; it must be a clone of "
        "https://github.com/luchris429/purejaxrl"
    )
