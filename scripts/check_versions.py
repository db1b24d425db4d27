"""Checks the package with the oldest and the newest versions that it admits.

    python scripts/check_versions.py                        Python 3.10 to 3.13, all quick tests
    python scripts/check_versions.py --pythons 3.11 --tests tests/jax tests/tf
    python scripts/check_versions.py gpu                    only resolves the extra gpu

Each combination gets an environment of its own, in which the package is installed and imported,
trains CartPole with each framework, and passes the tests. `gpu` asks the resolver whether
TensorFlow and JAX with CUDA fit into one environment, and installs nothing. Prints tables in
Markdown. Needs uv (pip install uv), which also fetches a Python that is missing.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from log_dqn.cli import shell

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
GPU_PYTHONS = ("3.11", "3.12")
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
SHOWN = ("tensorflow", "jax", "flax", "numpy", "gymnasium")
SHOWN_OF_GPU = (
    "tensorflow", "jax", "jax-cuda12-plugin", "nvidia-cuda-runtime-cu12", "nvidia-cudnn-cu12",
    "nvidia-nccl-cu12",
)  # fmt: skip
# Two of CartPole's ten iterations: far enough for updates, syncs, evaluation and checkpoints.
TRAIN = ("-m", "log_dqn.train", "--seed=1", "--gin_bindings=Runner.num_iterations=2")

ROOT = pathlib.Path(__file__).resolve().parents[1]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = shell.Parser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("what", nargs="?", choices=("all", "gpu"), default="all")
    add("--pythons", nargs="+", choices=PYTHONS, default=PYTHONS, metavar="X.Y")
    add("--tests", nargs="+", default=["tests"], help="for pytest (default: all quick tests)")
    flags = parser.parse_args(arguments)
    if flags.what == "gpu" and (flags.pythons, flags.tests) != (PYTHONS, ["tests"]):
        parser.error("--pythons and --tests must be left out with gpu")
    if shutil.which("uv") is None:
        parser.error("uv must be installed: pip install uv")
    return flags


def resolve(python: str, resolution: str, extra: str) -> str | None:
    """Returns the requirements of the package with an extra, each with its one version.

    If no versions fit, uv's words on it are printed, and None is returned.
    """
    command = (
        *("uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"),
        *("--python-version", python, "--resolution", resolution, "--extra", extra, "setup.py"),
    )
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return None
    return done.stdout


def versions(requirements: str, names: Sequence[str]) -> list[str]:
    """Returns the versions of some packages in requirements."""
    found = dict(re.findall(r"^([\w.-]+)==(\S+)", requirements, re.MULTILINE))
    return [found.get(name, "none") for name in names]


def row(cells: Sequence[str]) -> None:
    """Prints a row of a table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def header(cells: Sequence[str]) -> None:
    """Prints the first two rows of a table."""
    row(cells)
    row(["---"] * len(cells))


def last_line(command: Sequence[str | pathlib.Path], log: pathlib.Path) -> str:
    """Runs a command, which writes to a log; returns its last line, and raises if it fails."""
    with log.open("w") as output:
        subprocess.run(command, cwd=ROOT, check=True, stdout=output, stderr=subprocess.STDOUT)
    return (log.read_text().splitlines() or [""])[-1]


def check(python: str, age: str, tests: Sequence[str], folder: pathlib.Path) -> bool:
    """Checks one combination in a folder, and prints its row; returns whether all is well."""
    resolved = resolve(python, RESOLUTIONS[age], "test")
    if resolved is None:
        row([python, age, *["none"] * len(SHOWN), "failed: no versions fit"])
        return False
    requirements = folder / "requirements.txt"
    requirements.write_text(resolved)
    interpreter = folder / "venv" / "bin" / "python"
    install = ("uv", "pip", "install", "--quiet", "--python", interpreter)
    steps: dict[str, list[tuple[str | pathlib.Path, ...]]] = {
        "install": [
            ("uv", "venv", "--quiet", "--python", python, folder / "venv"),
            (*install, "-r", requirements),
            (*install, "--no-deps", ROOT),
        ],
        "import": [
            (interpreter, "-c", "import log_dqn.dopamine_run.runner, log_dqn.vectorized.start")
        ],
    }
    for agent in ("log_dqn", "jax_log_dqn"):
        base_dir = f"--base_dir={folder / agent}"
        steps[agent] = [(interpreter, *TRAIN, f"--gin_files={agent}_cartpole.gin", base_dir)]
    steps["tests"] = [(interpreter, "-m", "pytest", *tests)]
    cells = [python, age, *versions(resolved, SHOWN)]
    log = folder / "log"
    for name, commands in steps.items():
        try:
            last = [last_line(command, log) for command in commands][-1]
        except subprocess.CalledProcessError:
            print(log.read_text(), file=sys.stderr)
            row([*cells, f"failed: {name}"])
            return False
    row([*cells, last])
    return True


def check_gpu() -> bool:
    """Resolves the extra gpu, and prints a table; returns whether versions fit."""
    header(["Python", *SHOWN_OF_GPU])
    fits = True
    for python in GPU_PYTHONS:
        resolved = resolve(python, "highest", "gpu")
        fits = fits and resolved is not None
        row(
            [
                python,
                *(["no versions fit"] if resolved is None else versions(resolved, SHOWN_OF_GPU)),
            ]
        )
    return fits


def main(arguments: Sequence[str]) -> int:
    """Runs the checks; returns the exit status."""
    flags = parse(arguments)
    passed = [check_gpu()]
    if flags.what == "all":
        print()
        header(["Python", "versions", *SHOWN, "install, import, CartPole and tests"])
        for python in flags.pythons:
            for age in RESOLUTIONS:
                with tempfile.TemporaryDirectory(prefix="log_dqn_versions_") as folder:
                    passed.append(check(python, age, flags.tests, pathlib.Path(folder)))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    # Tests start `python -m log_dqn...`, which must be this checkout's.
    os.environ["PYTHONPATH"] = str(ROOT)
    sys.exit(main(sys.argv[1:]))
