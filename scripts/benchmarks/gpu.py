"""Everything to be known about a GPU, in one visit: is it right, how fast, what does it learn.

Needs what vectorized training needs, matplotlib, and gymnax with what that imports: flax, seaborn,
pandas, six. Each step runs in a process of its own, so that the memory of the device is free for
the next, one that fails leaves the others alone, and none takes longer than there is time. Its
result is in `gpu.json` as soon as it is there, and in `gpu.md` as a page; what was said beside it
is in `steps.log`. With `--resume` the steps that are there are skipped, and training goes on.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import discount_study
from matplotlib.figure import Figure

from benchmarks import gpu_steps
from log_dqn.checks import check
from log_dqn.program import device_memory, shell
from log_dqn.results import runs
from log_dqn.run_folder import checkpoints, configuration, layout
from log_dqn.sweeps import tethered

_ROOT = pathlib.Path(__file__).parents[2]
# Published DQN curves of these rise within the first million steps.
GAMES = ("Pooyan", "KungFuMaster", "Tutankham", "UpNDown", "Asterix")
# Agent steps of a point of a published curve.
_PUBLISHED_STEPS = 250_000
_LEAST_SECONDS = 60  # Less is not worth the compilation of what is trained.
_MOST_SECONDS = 240  # Of a step: one that hangs leaves time for the others.
_SECONDS_TO_STOP = 20  # Of training: what it has begun to save is saved, the rest is lost.
_SECONDS_TO_WRITE = 10  # What is found in the end.
_SHARE_OF_TRAINING = 1 / 3  # Of a visit, at least.
_NO_TIME = {"failed": "no time was left"}
# JAX says more after its errors, and the compiler within them.
_REASON = re.compile(r"benchmark\.py: error: (.+)|([\w.]*(?:Error|Exception)(?:: .+)?)")


class Training(NamedTuple):
    """Further options of the runs that are trained; AGENT is the agent's class.

    Attributes:
        atari: of those on Atari.
        small: of those of MinAtar's study.
    """

    atari: tuple[str, ...]
    small: tuple[str, ...] = ()


# Iterations short enough that a visit of ten minutes keeps what it has learned; memories that the
# half of a GPU of 80 GB has room for.
FULL = Training(
    (
        "--capacity=500000",
        *discount_study.bindings(
            "VectorizedRunner.training_steps=25000", "VectorizedRunner.num_iterations=40"
        ),
    )
)
DRY = Training(
    (
        "--capacity=1000",
        *discount_study.bindings(
            "VectorizedRunner.training_steps=120", "VectorizedRunner.num_iterations=1",
            "VectorizedRunner.max_steps_per_episode=60", "AGENT.min_replay_history=80",
            "AGENT.epsilon_decay_period=20",
        ),
    ),
    (
        "--games=MinAtar/Breakout", "--seeds=1",
        *discount_study.bindings(
            "VectorizedRunner.training_steps=500", "VectorizedRunner.num_iterations=1",
            "AGENT.min_replay_history=100",
        ),
    ),
)  # fmt: skip


class Visit:
    """The processes of a visit to a machine."""

    def __init__(self, out: pathlib.Path, until: float, dry_run: bool) -> None:
        """Initializes it.

        Args:
            out: folder of what is found.
            until: when it ends, by `time.monotonic`.
            dry_run: whether very little of each step is done.
        """
        self._out, self._until, self._dry_run = out, until, dry_run
        self._steps_until = until - _SHARE_OF_TRAINING * (until - time.monotonic())

    @property
    def _training(self) -> Training:
        return DRY if self._dry_run else FULL

    def run(self, step: str) -> dict[str, Any]:
        """Returns the result of a step that runs in a process of its own, or how that has failed.

        Args:
            step: its name in `gpu_steps.steps`.
        """
        program = str(_ROOT / "scripts" / "benchmark.py")
        command = [sys.executable, program, "gpu", f"--step={step}", *["--dry-run"] * self._dry_run]
        seconds = min(self._steps_until - time.monotonic(), _MOST_SECONDS)
        if seconds <= 0:
            return _NO_TIME
        with tempfile.TemporaryFile("w+") as said:
            try:
                done = subprocess.run(
                    _tethered(command),
                    env=self._environment(),
                    stdout=subprocess.PIPE,
                    stderr=said,
                    text=True,
                    check=False,
                    timeout=seconds,
                )
            except subprocess.TimeoutExpired:
                done = None
            said.seek(0)
            text = said.read()
        if self._out.exists():
            with (self._out / "steps.log").open("a") as log:
                log.write(f"{step}\n{text}")
        if done is None:
            return {"failed": f"stopped after {seconds:.0f} s"}
        if done.returncode:
            found = [_REASON.match(line) for line in text.splitlines()]
            reasons = [match[1] or match[2] for match in found if match]
            status = f"exit status {done.returncode}"
            last = [f"{status}: {line}" for line in text.splitlines() if line.strip()]
            return {"failed": [status, *(reasons or last)][-1]}
        try:
            return json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            return {"failed": "no result"}

    def atari(self) -> Iterator[dict[str, Any]]:
        """Trains LogDQN and DQN on Atari; yields each run's returns as `_train` does."""
        settings = (
            f"--games={','.join(GAMES)}", "--seeds=2",
            "--gin_bindings=VectorizedRunner.evaluation_steps=0", *self._training.atari,
        )  # fmt: skip
        commands = [
            (f"--agent={agent}", *discount_study.for_agent(agent, settings))
            for agent in discount_study.PREFIXES
        ]
        results_dir = self._out / "runs"
        for result in self._train(commands, results_dir, 1.0):
            for agent, game, seed, folder in layout.find_runs(results_dir):
                if returns := _returns(folder):
                    result[f"{agent} {game} {seed}"] = _by_published_iterations(folder, returns)
            report = f"--results_dir={results_dir} --out={self._out / 'comparison'}"
            yield {**result, "beside the published seeds": f"log-dqn compare {report}"}

    def small_study(self) -> Iterator[dict[str, Any]]:
        """Trains the main stage of MinAtar's study; yields how far its runs are, as `_train`."""
        results_dir = self._out / "minatar" / "main"
        commands = [
            (*stage, *discount_study.for_agent(agent, self._training.small))
            for agent, stage in zip(
                discount_study.PREFIXES, discount_study.STAGES["main"], strict=True
            )
        ]
        for result in self._train(commands, results_dir, 1 / 3):
            returns_of: dict[str, list[list[float]]] = defaultdict(list)
            for agent, game, _, folder in layout.find_runs(results_dir):
                if returns := _returns(folder):
                    returns_of[f"{agent} {game}"].append(returns)
            for name, of_seeds in returns_of.items():
                result[name] = {
                    "seeds": len(of_seeds),
                    "iterations": min(map(len, of_seeds)),
                    "mean return of the last": math.fsum(r[-1] for r in of_seeds) / len(of_seeds),
                }
            yield result

    def _train(
        self, commands: Sequence[Sequence[str]], results_dir: pathlib.Path, share: float
    ) -> Iterator[dict[str, Any]]:
        """Runs `train_vectorized` with some arguments side by side.

        Yields before they are stopped, so that what they have found can be kept if this program is
        then killed, and once more with their ends.

        Args:
            commands: the arguments of each.
            results_dir: where their runs go.
            share: of the time left, that they take.
        """
        began = time.monotonic()
        until = began + share * (self._until - _SECONDS_TO_STOP - _SECONDS_TO_WRITE - began)
        if until - began < _LEAST_SECONDS:
            yield {**_NO_TIME}
            return
        environment = self._environment(gpus=1 / len(commands))
        program = (sys.executable, "-m", "log_dqn.train_vectorized", f"--results_dir={results_dir}")
        log = self._out / "training.log"
        with log.open("a") as output:
            processes = [
                subprocess.Popen(
                    _tethered([*program, *arguments]), env=environment, stdout=output, stderr=output
                )
                for arguments in commands
            ]
            try:
                for process in processes:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(max(until - time.monotonic(), 0))
                seconds = time.monotonic() - began
                result: dict[str, Any] = {"exit status": "not stopped yet", "seconds": seconds}
                yield result
            finally:  # Also when this program is stopped.
                statuses = _stop(processes)
        result["exit status"] = statuses
        # By SIGTERM before it was handled, by its handler, or as a step took too long after it.
        stopped = {-signal.SIGTERM, 128 + signal.SIGTERM, -signal.SIGKILL}
        if not set(statuses) <= {0, *stopped}:
            result["failed"] = f"see {log.name}"
        elif not any(_returns(folder) for *_, folder in layout.find_runs(results_dir)):
            result["failed"] = "no iteration ended in time"
        yield result

    def _environment(self, gpus: float = 1.0) -> dict[str, str]:
        """Returns the environment of a process, which has the GPU or a part of it."""
        # Collected wheels are where the caller's path says.
        path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        wanted = os.environ.get("JAX_PLATFORMS")
        platforms = {"JAX_PLATFORMS": f"{wanted},cpu"} if wanted else {}  # The CPU's to compare.
        environment = {
            "JAX_COMPILATION_CACHE_DIR": str((self._out / "compiled").resolve()),
            **os.environ,
            **platforms,
            "PYTHONPATH": path,
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        if gpus < 1:  # What the user says a process takes is too much for several.
            for name in device_memory.VARIABLES:
                environment.pop(name, None)
        device_memory.limit(environment, gpus)
        return environment


def _tethered(command: Sequence[str]) -> list[str]:
    """Returns a command whose process ends with this one."""
    return [sys.executable, tethered.__file__, str(os.getpid()), *command]


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """Ends processes, and returns their exit statuses."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
    return [process.wait() for process in processes]


def _returns(folder: pathlib.Path) -> list[float]:
    """Returns a run's mean training return of each iteration."""
    found = runs.read_run(folder, "train", lambda _: None)
    return found[0].tolist() if found else []


def _by_published_iterations(folder: pathlib.Path, returns: Sequence[float]) -> dict[str, Any]:
    """Returns how far a run is, and its returns by the iterations of the published curves."""
    steps = configuration.read(folder)["VectorizedRunner.training_steps"]
    number = max(1, _PUBLISHED_STEPS // steps)
    whole = range(0, len(returns) - number + 1, number)
    return {
        "agent steps": len(returns) * steps,
        "mean return of the last": returns[-1],
        f"of each {number * steps:,} steps": [
            round(math.fsum(returns[start : start + number]) / number, 1) for start in whole
        ],
    }


def _page(results: dict[str, dict[str, Any]]) -> str:
    """Returns the results as Markdown, a table for the numbers that have names in common.

    Steps whose names begin alike, up to a comma, share a section, in which each has a row.
    """
    lines, last, columns = ["# On a GPU"], None, None
    for step, result in results.items():
        section, _, row = step.partition(", ")
        if section != last:
            lines += ["", f"## {section}"]
            last, columns = section, None
        for name, value in ({row: result} if row else result).items():
            cells = value if isinstance(value, dict) else {"": value}
            if list(cells) != columns:
                columns = list(cells)
                lines += ["", f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
            lines.append(f"| {name} | {' | '.join(map(_shown, cells.values()))} |")
    return "\n".join([*lines, ""])


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _draw(results: dict[str, dict[str, Any]], path: pathlib.Path) -> None:
    """Draws agent steps per second against the number of runs, beside what limits them."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axes, section in zip(figure.subplots(1, 2), ("Atari", "MinAtar"), strict=True):
        rows = [
            result
            for step, result in results.items()
            if step.startswith(f"{section}, ") and "runs" in result and " in " not in step
        ]
        rows.sort(key=lambda row: row["runs"])
        ending = ", agent steps/s"
        for name in [name for row in rows[:1] for name in row if name.endswith(ending[2:])]:
            style = "--" if name.endswith(ending) else "o-"
            speeds = [row[name] for row in rows]
            label = name.removesuffix(ending) if style == "--" else "all together"
            axes.loglog([row["runs"] for row in rows], speeds, style, label=label)
        axes.set_title(section, fontsize=10)
        axes.set_xlabel("runs at once")
        axes.grid(True, color="0.9")
        if rows:
            axes.legend(frameon=False, fontsize=8)
    figure.supylabel("agent steps/s of all runs", fontsize=10)
    figure.savefig(path, dpi=110)


def _read(path: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Returns the results of earlier visits.

    Raises:
        ValueError: if there are others in the file.
    """
    try:
        results: Any = json.loads(path.read_text()) if path.exists() else {}
    except (OSError, ValueError):
        results = None
    fits = isinstance(results, dict) and all(isinstance(part, dict) for part in results.values())
    check("out", str(path.parent), fits, f"a folder whose {path.name} has results of this program")
    return results


def run(args: argparse.Namespace) -> int:
    """Runs the steps, and prints each one's page.

    Args:
        args: `out`, the folder for the results; `minutes` for all steps; whether to `resume` from
            the results in the folder; whether to do very little of each step (`dry_run`); or the
            one `step` to run and print as JSON.

    Returns:
        The exit status: 0 if every step ended well.

    Raises:
        ValueError: if the folder or the device isn't as it must be.
    """
    steps = gpu_steps.steps(gpu_steps.DRY if args.dry_run else gpu_steps.FULL)
    if args.step is not None:
        check("step", args.step, args.step in steps, f"one of {', '.join(steps)}")
        print(json.dumps(steps[args.step]()))
        return 0
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    visit = Visit(args.out, time.monotonic() + 60 * args.minutes, args.dry_run)
    path = args.out / "gpu.json"
    allowed = "a new folder, or --resume given"
    check("out", str(args.out), args.resume or not path.exists(), allowed)
    shell.check_writable("out", str(args.out))
    results = _read(path)
    found = visit.run("device") | {"dry run": args.dry_run}
    if "failed" in found:
        raise ValueError(f"device: {found['failed']}")
    allowed = "a GPU, or --dry-run given"
    check("device", found["device"], found["kind"] == "gpu" or args.dry_run, allowed)
    before = results.setdefault("device", found)
    for name in ("device", "dry run"):
        allowed = f"{before.get(name)!r}, as in the results of --out={args.out}"
        check(name, found[name], found[name] == before.get(name), allowed)
    args.out.mkdir(parents=True, exist_ok=True)
    trained = {"MinAtar's study": visit.small_study, "learns": visit.atari}
    for name in (*steps, *trained):
        failed = "failed" in results.get(name, {"failed": "not run"})
        once = [visit.run(name) if failed else results[name]] if name in steps else []
        for result in once or trained[name]():
            results[name] = result
            checkpoints.replace_file(path, json.dumps(results, indent=1).encode())
            checkpoints.replace_file(path.with_suffix(".md"), _page(results).encode())
        _draw(results, path.with_suffix(".png"))
        print(_page({name: results[name]}), flush=True)
    return 1 if any("failed" in result for result in results.values()) else 0
