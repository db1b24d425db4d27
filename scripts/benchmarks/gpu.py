"""Measures a device: is it right, how fast, where its time goes.

Needs what vectorized training needs, and gymnax with what that imports: flax, seaborn, pandas, six.
Each step runs in a process of its own, so that the memory of the device is free for the next, and
one that fails leaves the others alone. Its result is in `gpu.json` as soon as it is there. Steps
that are there and haven't failed are skipped.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

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


def _read(path: pathlib.Path) -> dict[str, Result]:
    """Returns earlier results; raises ValueError if there is something else in the file."""
    try:
        results: Any = json.loads(path.read_bytes()) if path.exists() else {}
    except ValueError:
        results = None
    fits = isinstance(results, dict) and all(isinstance(part, dict) for part in results.values())
    check("out", str(path.parent), fits, f"a folder whose {path.name} has results of this program")
    return results


def run(args: argparse.Namespace) -> int:
    """Runs the steps that are missing, and prints the result of each; returns the exit status."""
    path = args.out / "gpu.json"
    shell.check_writable("out", str(args.out))
    results = _read(path)
    device_memory.limit(os.environ)
    if platforms := os.environ.get("JAX_PLATFORMS"):
        os.environ["JAX_PLATFORMS"] = f"{platforms},cpu"  # The CPU's, to compare.
    steps = gpu_steps.steps(gpu_steps.DRY if args.dry_run else gpu_steps.FULL)
    device = _result(steps.pop("device")) | {"dry run": args.dry_run}
    if "failed" in device:
        raise ValueError(f"device: {device['failed']}")
    allowed = "a GPU, or --dry-run given"
    check("device", device["device"], args.dry_run or device["kind"] == "gpu", allowed)
    is_same = results.setdefault("device", device) == device
    check("out", str(args.out), is_same, f"a folder without results of another device: {device}")
    args.out.mkdir(parents=True, exist_ok=True)
    for name, step in steps.items():
        if "failed" in results.get(name, {"failed": "not run"}):
            results[name] = _result(step)
            checkpoints.replace_file(path, json.dumps(results, indent=1).encode())
        print(json.dumps({name: results[name]}, indent=1), flush=True)
    return int(any("failed" in result for result in results.values()))
