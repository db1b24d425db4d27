"""Measures a device: is it right, how fast, where its time goes.

Needs what vectorized training needs, matplotlib, and gymnax with what that imports: flax, seaborn,
pandas, six. Each step runs in a process of its own, so that the memory of the device is free for
the next, and one that fails leaves the others alone. Its result is in `gpu.json` as soon as it is
there, and in `gpu.md` as a page. Steps that are there and haven't failed are skipped.
"""

import json
import multiprocessing
import os
import pathlib
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import png_file
from matplotlib.figure import Figure

from benchmarks import gpu_steps
from log_dqn.checks import check
from log_dqn.cli import device_memory, shell
from log_dqn.run_folder import checkpoints

Result = dict[str, Any]


def _attempt(step: Callable[[], Result]) -> Result:
    """Returns the result of a step, or why it has failed."""
    try:
        return step()
    except Exception as error:
        traceback.print_exc()
        return {"failed": shell.explain(error)}


def _result(step: Callable[[], Result]) -> Result:
    """Returns the result of a step in a process of its own, or why it has failed."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as process:
        try:
            return process.submit(_attempt, step).result()
        except BrokenProcessPool as error:
            return {"failed": str(error)}


def _page(results: dict[str, Result]) -> str:
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


def _draw(results: dict[str, Result], path: pathlib.Path) -> None:
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
    png_file.write(figure, path)


def _read(path: pathlib.Path) -> dict[str, Result]:
    """Returns earlier results; raises ValueError if there are others in the file."""
    try:
        results: Any = json.loads(path.read_text()) if path.exists() else {}
    except (OSError, ValueError):
        results = None
    fits = isinstance(results, dict) and all(isinstance(part, dict) for part in results.values())
    check("out", str(path.parent), fits, f"a folder whose {path.name} has results of this program")
    return results


def run(out: pathlib.Path, dry_run: bool) -> int:
    """Runs the steps that are missing, and prints the page of each; returns the exit status.

    A dry run does very little of each step, on any device.
    """
    path = out / "gpu.json"
    shell.check_writable("out", str(out))
    results = _read(path)
    device_memory.limit(os.environ)
    if platforms := os.environ.get("JAX_PLATFORMS"):
        os.environ["JAX_PLATFORMS"] = f"{platforms},cpu"  # The CPU's, to compare.
    steps = gpu_steps.steps(gpu_steps.DRY if dry_run else gpu_steps.FULL)
    device = _result(steps.pop("device")) | {"dry run": dry_run}
    if "failed" in device:
        raise ValueError(f"device: {device['failed']}")
    allowed = "a GPU, or --dry-run given"
    check("device", device["device"], dry_run or device["kind"] == "gpu", allowed)
    same = results.setdefault("device", device) == device
    check("out", str(out), same, f"a folder without results of another device: {device}")
    out.mkdir(parents=True, exist_ok=True)
    for name, step in steps.items():
        if "failed" in results.get(name, {"failed": "not run"}):
            results[name] = _result(step)
            checkpoints.replace_file(path, json.dumps(results, indent=1).encode())
            checkpoints.replace_file(path.with_suffix(".md"), _page(results).encode())
            _draw(results, path.with_suffix(".png"))
        print(_page({name: results[name]}), flush=True)
    return int(any("failed" in result for result in results.values()))
