"""Checks the package with the oldest and the newest versions that it admits.

    python scripts/check_versions.py                        Python 3.10 to 3.13, all quick tests
    python scripts/check_versions.py --pythons 3.11 --tests tests/jax tests/tf

Each combination gets an environment of its own, in which the package is installed and imported,
trains CartPole with each framework, and passes the tests. Prints a table in Markdown. Needs uv
(pip install uv), which also fetches a Python that is missing.
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
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
SHOWN = ("tensorflow", "jax", "flax", "numpy", "gymnasium")
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
    add("--pythons", nargs="+", choices=PYTHONS, default=PYTHONS, metavar="X.Y")
    add("--tests", nargs="+", default=["tests"], help="for pytest (default: all quick tests)")
    flags = parser.parse_args(arguments)
    if shutil.which("uv") is None:
        parser.error("uv must be installed: pip install uv")
    return flags


def row(cells: Sequence[str]) -> None:
    """Prints a row of the table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def check(python: str, age: str, tests: Sequence[str], folder: pathlib.Path) -> bool:
    """Checks one combination in a folder, and prints its row; returns whether all is well."""
    requirements, interpreter = folder / "requirements.txt", folder / "venv" / "bin" / "python"
    resolve = ("uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--extra", "test")
    versions = ("--python-version", python, "--resolution", RESOLUTIONS[age])
    install = ("uv", "pip", "install", "--quiet", "--python", interpreter)
    agents = {
        agent: (
            interpreter, *TRAIN, f"--gin_files={agent}_cartpole.gin",
            f"--base_dir={folder / agent}",
        )
        for agent in ("log_dqn", "jax_log_dqn")
    }  # fmt: skip
    steps: dict[str, tuple[str | pathlib.Path, ...]] = {
        "no versions fit": (*resolve, *versions, "--output-file", requirements, "setup.py"),
        "environment": ("uv", "venv", "--quiet", "--python", python, folder / "venv"),
        "requirements": (*install, "-r", requirements),
        "install": (*install, "--no-deps", ROOT),
        "import": (interpreter, "-c", "import log_dqn.vectorized.start"),
        **agents,
        "tests": (interpreter, "-m", "pytest", *tests),
    }
    outcome = ""
    for name, command in steps.items():
        done = subprocess.run(
            command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode:
            print(done.stdout, file=sys.stderr)
            outcome = f"failed: {name}"
            break
        outcome = (done.stdout.splitlines() or [""])[-1]
    resolved = requirements.read_text() if requirements.exists() else ""
    found = dict(re.findall(r"^([\w.-]+)==(\S+)", resolved, re.MULTILINE))
    row([python, age, *(found.get(name, "none") for name in SHOWN), outcome])
    return not outcome.startswith("failed")


def main(arguments: Sequence[str]) -> int:
    """Runs the checks; returns the exit status."""
    flags = parse(arguments)
    head = ["Python", "versions", *SHOWN, "install, CartPole and tests"]
    row(head)
    row(["---"] * len(head))
    passed = []
    for python in flags.pythons:
        for age in RESOLUTIONS:
            with tempfile.TemporaryDirectory(prefix="log_dqn_versions_") as folder:
                passed.append(check(python, age, flags.tests, pathlib.Path(folder)))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    # Tests start `python -m log_dqn...`, which must be this checkout's.
    os.environ["PYTHONPATH"] = str(ROOT)
    sys.exit(main(sys.argv[1:]))
