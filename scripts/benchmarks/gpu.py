"""Everything to be known about a GPU, in one visit: is it right, how fast, where the time goes.

Needs what vectorized training needs, and nothing else. Each step's result is in `gpu.json` as soon
as it is there, and in `gpu.md` as a page; `resume` skips the steps that are.
"""

import argparse
import contextlib
import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest import mock

import discount_study
import gin
import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from benchmarks import minatar, vectorized
from log_dqn import log_space
from log_dqn.checks import check
from log_dqn.program import shell, threads
from log_dqn.run_folder import checkpoints, layout, safe_pickle
from log_dqn.vectorized import agents, networks, placement, replay, training

_NUM_ACTIONS = 6
_ROOT = pathlib.Path(__file__).parents[2]
# Published DQN curves of these rise within the first million steps.
GAMES = ("Pooyan", "KungFuMaster", "Tutankham", "UpNDown", "Asterix")
SMALL_GAME = "MinAtar/Breakout"


class Size(NamedTuple):
    """How much is done.

    Attributes:
        runs: numbers of Atari runs at once, beside as many as fit.
        most_runs: more than these are not tried.
        small_runs: numbers of MinAtar runs at once.
        capacity: transitions that a measured run remembers.
        seconds: of each figure, at least.
        traced_steps: steps of all runs that are traced.
        training: further options of the runs trained on Atari.
        small_training: further options of those of MinAtar's study.
    """

    runs: tuple[int, ...]
    most_runs: int
    small_runs: tuple[int, ...]
    capacity: int
    seconds: float
    traced_steps: int
    training: tuple[str, ...]
    small_training: tuple[str, ...] = ()


FULL = Size((1, 4, 16, 64), 512, (1, 25, 125), 100_000, 6.0, 200, ("--capacity=850000",))
DRY = Size(
    (1,), 2, (1,), 300, 0.2, 8,
    (
        "--capacity=1000", "--gin_bindings=VectorizedRunner.training_steps=120",
        "--gin_bindings=VectorizedRunner.max_steps_per_episode=60",
        "--gin_bindings=VectorizedRunner.num_iterations=1",
    ),
    (
        f"--games={SMALL_GAME}", "--seeds=1", "--gin_bindings=VectorizedRunner.num_iterations=1",
        "--gin_bindings=VectorizedRunner.training_steps=500",
    ),
)  # fmt: skip


def device() -> dict[str, Any]:
    """Returns what this is measured on."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        driver = "none"
    return {
        "device": jax.devices()[0].device_kind,
        "platform": jax.devices()[0].client.platform_version.splitlines()[0],
        "driver": driver,
        "kind": jax.default_backend(),
        "JAX": jax.__version__,
        "CPU cores": threads.cores(),
    }


def _gradients(
    agent: agents.Agent, params: Any, precision: str, dtype: Any
) -> dict[str, np.ndarray]:
    """Returns the gradients of one update from made transitions, by layer."""
    rng = np.random.default_rng(0)
    network = networks.create("nature", precision)
    cast = jax.tree.map(lambda x: np.asarray(x, dtype), params)
    frames = rng.integers(0, 256, (2, 32, 84, 84, 4)).astype(np.uint8)
    batch = (
        rng.integers(0, _NUM_ACTIONS, 32).astype(np.int32), rng.integers(-1, 2, 32).astype(dtype),
        rng.random(32) < 0.1,
    )  # fmt: skip
    # The network in float64 has no `create`, which returns float32.
    network = networks.nature if dtype is np.float64 else network
    constants = jax.tree.map(dtype, agent.constants)

    def loss(params: Any, target_params: Any, frames: Any, batch: Any) -> jax.Array:
        outputs, next_outputs = (
            agent.outputs(network, params, states, _NUM_ACTIONS)
            for params, states in ((params, frames[0]), (target_params, frames[1]))
        )
        return agent.batch_loss(constants)(outputs, next_outputs, *batch)[0]

    target_params = jax.tree.map(lambda x: x * dtype(0.9), cast)
    gradients = jax.jit(jax.grad(loss))(cast, target_params, frames, batch)
    return {layer: np.asarray(leaves["kernel"]) for layer, leaves in gradients.items()}


def right() -> dict[str, Any]:
    """Compares updates with float64, and memory and a whole run with the CPU's."""
    cpu = jax.devices("cpu")[0]
    result: dict[str, Any] = {}
    for name, create in agents.AGENTS.items():
        agent = create()
        params = agent.init(
            networks.nature, jax.random.key(1), (84, 84, 4), _NUM_ACTIONS, _NUM_ACTIONS
        )
        jax.config.update("jax_enable_x64", True)
        with jax.default_device(cpu):
            exact = _gradients(agent, params, "float32", np.float64)
        jax.config.update("jax_enable_x64", False)
        for precision in log_space.PRECISIONS:
            found = _gradients(agent, params, precision, np.float32)
            result[f"{name}'s gradients in {precision}, relative error"] = {
                layer: float(np.linalg.norm(found[layer] - kernel) / np.linalg.norm(kernel))
                for layer, kernel in exact.items()
            }
    result["draws and reads equal the CPU's"] = _same_reads(cpu)
    there, here = in_process("twin", dry_run=False, JAX_PLATFORMS="cpu"), twin()
    same = [our == their for our, their in zip(here["returns"], there["returns"], strict=False)]
    result[f"{SMALL_GAME} beside its twin on the CPU"] = {
        "agent steps": minatar.STEPS,
        "episodes": len(there["returns"]),
        "episodes before the first other return": [*same, False].index(False),
        "largest relative difference of a layer's norm": float(
            np.abs(np.divide(here["norms"], there["norms"]) - 1).max()
        ),
    }
    return result


def twin() -> dict[str, list[float]]:
    """Trains LogDQN on a small game; returns its returns, and the norms of what has changed."""
    player = minatar.Player(SMALL_GAME, "log_dqn", [1])
    norms = [float(np.linalg.norm(leaf)) for leaf in jax.tree.leaves(player.learner.weights.params)]
    return {"returns": player.returns, "norms": norms}


def _same_reads(cpu: Any) -> bool:
    rng = np.random.default_rng(2)
    memory = replay.Memory(
        rng.integers(0, 256, (1000, 84, 84)).astype(np.uint8),
        rng.integers(0, 4, 1000).astype(np.uint8),
        rng.integers(0, _NUM_ACTIONS, 1000).astype(np.int8),
        rng.normal(size=1000).astype(np.float32),
        rng.random(1000) < 0.05,
    )
    found = []
    for place in (jax.devices()[0], cpu):
        with jax.default_device(place):
            slots = replay.draw(jax.random.key(3), 17, 900, 1000, 32, 4, 3)
            steps = replay.read(jax.tree.map(jnp.asarray, memory), slots)
            found.append([slots, *replay.transitions(steps, 4, 0.9)])
    return all(bool((np.asarray(a) == np.asarray(b)).all()) for a, b in zip(*found, strict=True))


def _memory() -> dict[str, float]:
    statistics = jax.devices()[0].memory_stats() or {}
    return {name: statistics[name] / 1e9 for name in ("peak_bytes_in_use",) if name in statistics}


def _atari(num_runs: int, size: Size) -> dict[str, Any]:
    """Measures some Atari runs at once; returns the figures by their name."""
    gin.clear_config()
    with tempfile.TemporaryDirectory() as folder:
        trainer = vectorized.create_trainer("log_dqn", num_runs, size.capacity, folder)
        figures = vectorized.measure(trainer, size.seconds)
        calls = _calls(trainer)
    found = {
        "agent steps/s": figures.steps_per_second,
        "ms a step of all": 1e3 * num_runs / figures.steps_per_second,
        **{f"{name} alone, agent steps/s": speed for name, speed in figures.alone.items()},
        "of the lower ceiling": figures.of_ceiling,
        "replay memory, GB": sum(leaf.nbytes for leaf in trainer.learner.memory) / 1e9,
        **_memory(),
        **{f"calls of {name} a step": number for name, number in calls.items()},
    }
    return {f"Atari, {num_runs} runs": found}


def fast(size: Size) -> dict[str, Any]:
    """Measures Atari and MinAtar for growing numbers of runs."""
    result: dict[str, Any] = {}
    for num_runs in tqdm(size.runs, "Atari", leave=False, disable=None):
        result |= _atari(num_runs, size)
    for num_runs in tqdm(size.small_runs, "MinAtar", leave=False, disable=None):
        player = minatar.Player(SMALL_GAME, "log_dqn", range(num_runs))
        took = vectorized.seconds(player.play, size.seconds)
        result[f"MinAtar, {num_runs} runs"] = {
            "agent steps/s": num_runs * minatar.STEPS / took,
            "ms a step of all": 1e3 * took / minatar.STEPS,
        }
    return result


def most(size: Size) -> dict[str, Any]:
    """Measures as many Atari runs as fit, which may turn out to be too many."""
    agent, problem = agents.VectorizedLogDQNAgent(), vectorized.create_problem(size.capacity)
    room = placement.free()
    num_runs = placement.most_runs(agent, problem, _NUM_ACTIONS, room, size.most_runs)
    return _atari(num_runs, size) if num_runs else {"free memory": str(room)}


def _calls(trainer: training.HostTrainer, steps: int = 16) -> dict[str, float]:
    """Returns how often a step of a trainer starts each program on the device, on average."""
    programs = trainer.learner.programs
    with contextlib.ExitStack() as stack:
        started = {
            name: stack.enter_context(
                mock.patch.object(programs, name, wraps=getattr(programs, name))
            )
            for name in ("act", "learn", "sync_and_learn", "sync", "draw")
        }
        for _ in range(steps):
            trainer.step()
        return {name: program.call_count / steps for name, program in started.items()}


def trace(size: Size) -> dict[str, Any]:
    """Returns the ten longest entries of a trace, in ms a step of all runs."""
    with tempfile.TemporaryDirectory() as folder:
        gin.clear_config()
        trainer = vectorized.create_trainer("log_dqn", size.runs[-1], size.capacity, folder)
        with jax.profiler.trace(folder, create_perfetto_trace=True):
            for _ in range(size.traced_steps):
                trainer.step()
            jax.block_until_ready(trainer.learner.weights)
        (path,) = pathlib.Path(folder).rglob("perfetto_trace.json.gz")
        with gzip.open(path) as file:
            events = json.load(file)["traceEvents"]
    spent, number = Counter[str](), Counter[str]()
    for event in events:
        if "dur" in event:
            spent[event["name"]] += event["dur"] / 1e3
            number[event["name"]] += 1
    return {
        name: {
            "ms a step": took / size.traced_steps,
            "times a step": number[name] / size.traced_steps,
        }
        for name, took in spent.most_common(10)
    }


def learns(size: Size, out: pathlib.Path, until: float) -> dict[str, Any]:
    """Trains LogDQN and DQN on Atari until a time; returns each run's returns by iteration."""
    settings = (
        f"--games={','.join(GAMES)}", "--seeds=2",
        "--gin_bindings=VectorizedRunner.evaluation_steps=0", *size.training,
    )  # fmt: skip
    commands = [(f"--agent={agent}", *settings) for agent in agents.AGENTS]
    result = _train(commands, out / "runs", out / "training.log", until)
    for agent, game, seed, folder in layout.find_runs(out / "runs"):
        result[f"{agent} {game} {seed}"] = [round(value, 1) for value in _returns(folder)]
    return result


def minatar_study(size: Size, out: pathlib.Path, until: float) -> dict[str, Any]:
    """Trains the main stage of MinAtar's study until a time; returns how far its runs are."""
    commands = [(*stage, *size.small_training) for stage in discount_study.STAGES["main"]]
    result = _train(commands, out / "minatar" / "main", out / "minatar.log", until)
    runs: dict[str, list[list[float]]] = defaultdict(list)
    for agent, game, _, folder in layout.find_runs(out / "minatar" / "main"):
        runs[f"{agent} {game}"].append(_returns(folder))
    for name, of_seeds in runs.items():
        result[name] = {
            "seeds": len(of_seeds),
            "iterations": min(map(len, of_seeds)),
            "mean return of the last": float(np.mean([returns[-1] for returns in of_seeds])),
        }
    return result


def _train(
    commands: Sequence[Sequence[str]], results_dir: pathlib.Path, log: pathlib.Path, until: float
) -> dict[str, Any]:
    """Runs `train_vectorized` with some arguments side by side until a time; returns their ends."""
    # Two share the GPU.
    environment = {**_environment(), "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.47"}
    program = (sys.executable, "-m", "log_dqn.train_vectorized", f"--results_dir={results_dir}")
    began = time.monotonic()
    with log.open("a") as output:
        processes = [
            subprocess.Popen([*program, *arguments], env=environment, stdout=output, stderr=output)
            for arguments in commands
        ]
        try:
            for process in processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(until - time.monotonic(), 1))
        finally:  # Also when this program is stopped: nothing else would stop them.
            for process in processes:
                process.terminate()
            statuses = [process.wait() for process in processes]
    result: dict[str, Any] = {"exit status": statuses, "seconds": time.monotonic() - began}
    # Stopped before it could handle it, or when its work was saved.
    if not set(statuses) <= {0, -signal.SIGTERM, 128 + signal.SIGTERM}:
        result["failed"] = f"see {log}"
    return result


def _returns(folder: pathlib.Path) -> list[float]:
    """Returns a run's mean training return of each iteration."""
    with layout.logs(folder)[0].open("rb") as file:
        return [entry["train_average_return"][0] for entry in safe_pickle.load(file).values()]


def _page(results: dict[str, Any]) -> str:
    """Returns the results as Markdown, a table for the numbers that have names in common."""
    lines = ["# On a GPU"]
    for step, result in results.items():
        lines += ["", f"## {step}"]
        columns = None
        for name, value in result.items():
            cells = value if isinstance(value, dict) else {"": value}
            if list(cells) != columns:
                columns = list(cells)
                lines += ["", f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
            lines.append(f"| {name} | {' | '.join(map(_shown, cells.values()))} |")
    return "\n".join([*lines, ""])


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def run(args: argparse.Namespace) -> int:
    """Runs the steps, each in a process of its own, and prints the page.

    Args:
        args: `out`, the folder for the results; `minutes` for all steps; whether to `resume` from
            the results in the folder; whether to do very little of each step (`dry_run`); or the
            one `step` to run and print as JSON.

    Returns:
        The exit status: 0 if every step ended well.
    """
    size = DRY if args.dry_run else FULL
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        "device": device, "right": right, "fast": lambda: fast(size), "most": lambda: most(size),
        "trace": lambda: trace(size),
    }  # fmt: skip
    if args.step:
        print(json.dumps((steps | {"twin": twin})[args.step]()))
        return 0
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    until = time.monotonic() + 60 * args.minutes
    path = args.out / "gpu.json"
    try:
        allowed = "a new folder, or --resume given"
        check("out", str(args.out), args.resume or not path.exists(), allowed)
        shell.check_writable("out", str(args.out))
        results = json.loads(path.read_text()) if path.exists() else {}
        found = results["device"] = in_process("device", args.dry_run)
        is_gpu = found.get("kind") == "gpu"
        check("device", found.get("device"), is_gpu or args.dry_run, "a GPU, or --dry-run given")
        args.out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        shell.print_error("benchmark.py", error)
        return 2
    # These go on from where they were, MinAtar's for a third of the time left.
    trained = {"MinAtar's study": (minatar_study, 1 / 3), "learns": (learns, 1.0)}
    for name in (*steps, *trained):
        if name in trained:
            train, share = trained[name]
            left = max(until - time.monotonic(), 0)
            results[name] = train(size, args.out, time.monotonic() + share * left)
        elif "failed" in results.get(name, {"failed": "not run"}):
            results[name] = in_process(name, args.dry_run)
        checkpoints.replace_file(path, json.dumps(results, indent=1).encode())
        checkpoints.replace_file(path.with_suffix(".md"), _page(results).encode())
        print(_page({name: results[name]}), flush=True)
    return 1 if any("failed" in result for result in results.values()) else 0


def in_process(step: str, dry_run: bool, **environment: str) -> dict[str, Any]:
    """Returns the result of a step that runs in a process of its own, or how that has failed.

    So the memory of the device is free for the next, and one that fails leaves the others alone.
    """
    program = str(_ROOT / "scripts" / "benchmark.py")
    command = [sys.executable, program, "gpu", f"--step={step}", *["--dry-run"] * dry_run]
    done = subprocess.run(
        command,
        env={**_environment(), **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"failed": f"exit status {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def _environment() -> dict[str, str]:
    # Collected wheels are where the caller's says.
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2"}
