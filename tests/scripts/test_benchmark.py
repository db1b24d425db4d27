"""The one command of all benchmarks: what it parses, and what it prints."""

import re
import sys

import numpy as np
import pytest

from tests.scripts import SCRIPTS

PARTS = (
    "agents",
    "checkpoint",
    "vectorized",
    "minatar",
    "gpu",
    "linear",
    "sweep",
    "cores",
    "peers",
)


@pytest.fixture
def benchmark(load):
    return load("benchmark")


def test_every_part_parses_and_agents_are_the_default(benchmark):
    assert benchmark.parse([]).what == "agents"
    for part in PARTS:
        args = benchmark.parse([part, "--rounds=1"])
        assert (args.what, args.rounds) == (part, 1)


def test_flags_of_the_parts(benchmark):
    assert benchmark.parse(["--framework=jax"]).framework == "jax"
    assert benchmark.parse(["checkpoint", "--game=Asterix"]).game == "Asterix"
    args = benchmark.parse(["vectorized", "--runs", "1", "2", "--agent=dqn", "--seconds=0.5"])
    assert (args.runs, args.agent, args.capacity, args.seconds) == ([1, 2], "dqn", 10_000, 0.5)


@pytest.mark.parametrize(
    "flag",
    [
        "--game=Pnog", "--framework=torch", "--rounds=x", "--round=1", "--rounds=0", "--seconds=0",
        "--seconds=nan", "--minutes=-1",
    ],
)  # fmt: skip
def test_flags_that_are_refused(benchmark, capsys, flag):
    with pytest.raises(SystemExit) as exit_:
        benchmark.parse(["checkpoint", flag])
    assert exit_.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert ": error: " in line
    assert flag.split("=")[-1] in line


def test_parts_have_a_module_each(benchmark):
    modules = {path.stem for path in (SCRIPTS / "benchmarks").glob("*.py")}
    helpers = {"__init__", "measuring", "gpu_steps", "peer_worker"}
    assert modules - helpers == {"agents_tf", "agents_jax", *PARTS[1:]}


def test_a_tiny_run_of_the_linear_part(benchmark, monkeypatch, capsys):
    from benchmarks import linear

    monkeypatch.setattr(linear, "REPEATS", 1)
    monkeypatch.setattr(linear.experiments, "WIDTHS", (2,))
    benchmark.main(["linear"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [["regular", "2"], ["logarithmic", "2"]]
    for line in lines[2:]:
        slow, fast, ratio = map(float, re.findall(r"[\d.]+(?= ms| us|x)", line))
        # Printed with two digits after the point, and the ratio without any.
        assert ratio == pytest.approx(1e3 * slow / fast, rel=0.05)


def test_blocks_are_timed_in_turn_and_the_first_round_does_not_count(benchmark):
    from benchmarks import measuring

    order = []
    blocks = {name: (lambda name=name: order.append(name)) for name in ("b", "a")}
    seconds = measuring.interleave(blocks, 2, "order")
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert {name: times.shape for name, times in seconds.items()} == {"a": (2,), "b": (2,)}


def test_a_ratio_is_the_median_of_neighbouring_blocks(benchmark, capsys):
    from benchmarks import measuring

    # Medians 2 and 2, but ratios 1/2, 1 and 3, whose 10% and 90% are 0.6 and 2.6.
    measuring.print_ratio("acting", np.array([1.0, 2.0, 6.0]), np.array([2.0, 2.0, 2.0]), "ms")
    line = capsys.readouterr().out
    assert line.split()[:4] == ["acting", "2", "2", "ms"]
    assert "ratio 1.000 (10% to 90% of blocks: 0.600 to 2.600)" in line


def test_a_program_that_fails_is_said_in_one_line(benchmark, monkeypatch, capsys):
    from benchmarks import sweep

    monkeypatch.setattr(sweep, "RUNS", 0)
    assert benchmark.main(["sweep", "--rounds=1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("benchmark.py: error: log_dqn.sweep has ended; it said: ")
    assert "seeds is" in line


def test_what_is_not_installed_is_left_out_of_the_cores_part(benchmark, monkeypatch, capsys):
    from benchmarks import cores

    monkeypatch.setattr(
        cores, "_measure", lambda kind, _: dict.fromkeys(("all", "one"), np.ones(2))
    )
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert benchmark.main(["cores", "--rounds=2"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split(";")[0] for line in lines[:2]] == [
        "train, TensorFlow: left out", "train, JAX: left out",
    ]  # fmt: skip
    assert "; tensorflow must be installed: " in lines[0]
    assert lines[2].startswith("train_vectorized")


@pytest.mark.slow
def test_a_tiny_run_of_the_cores_part(benchmark, monkeypatch, capsys):
    from benchmarks import cores

    monkeypatch.setattr(cores, "_SECONDS", 2)
    monkeypatch.setattr(cores, "_START", 40)
    monkeypatch.setattr(cores, "KINDS", {"train_vectorized": cores.KINDS["train_vectorized"]})
    benchmark.main(["cores", "--rounds=2"])
    _, line = capsys.readouterr().out.splitlines()
    together, one, ratio = map(float, re.findall(r"\d[\d.e+]*(?= |$)", line)[:3])
    assert together > 0 and one > 0 and 0.5 < ratio < 8


def test_a_table_of_peers_has_ratios_over_the_first_within_a_round(benchmark):
    from benchmarks import peers

    speeds = {"here": np.array([1000.0, 2000.0, 4000.0]), "peer": np.array([500.0, 3000.0, 2000.0])}
    assert peers.table(speeds)[2:] == [
        "| here | 2,000 (1,200 to 3,600) | 1.00 (1.00 to 1.00) |",
        "| peer | 2,000 (800 to 2,800) | 0.50 (0.50 to 1.30) |",
    ]


def test_a_folder_that_is_no_clone_of_purejaxrl_is_refused(benchmark, tmp_path, capsys):
    assert benchmark.main(["peers", f"--purejaxrl={tmp_path}"]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        f"--purejaxrl is {str(tmp_path)!r}; it must be a clone of "
        "https://github.com/luchris429/purejaxrl"
    )
