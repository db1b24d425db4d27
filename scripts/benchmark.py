"""Measures how fast this package trains, beside Dopamine and others, in turn in one run.

    python scripts/benchmark.py                    LogDQN, LogLinDQN and DQN on TensorFlow
    python scripts/benchmark.py --framework=jax    the same of the JAX agents
    python scripts/benchmark.py checkpoint         saving and loading a full replay memory
    python scripts/benchmark.py vectorized         one vectorized run on Atari
    python scripts/benchmark.py minatar            one vectorized run on MinAtar
    python scripts/benchmark.py cores --rounds=8   a run a core against one run on all cores
    python scripts/benchmark.py onednn --rounds=8  TensorFlow with oneDNN against without it
    python scripts/benchmark.py peers --rounds=8   DQN here, in Dopamine, rejax and purejaxrl
    python scripts/benchmark.py gpu --out=DIR      is a GPU right, how fast, where its time goes

Prints tables in Markdown: medians over the rounds, and medians of the ratios to the first row
within a round, each with the range from 10% to 90% of the rounds.
"""

import argparse
import importlib
import pathlib
import sys
from collections.abc import Sequence

from log_dqn.cli import shell

PARTS = ("agents", "checkpoint", "vectorized", "minatar", "cores", "onednn", "peers", "gpu")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = shell.Parser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole, add = shell.at_least(1), parser.add_argument
    add("what", nargs="?", choices=PARTS, default="agents")
    add("--rounds", type=whole, default=60, help="of all but checkpoint and gpu (default: 60)")
    add("--framework", choices=("tf", "jax"), default="tf", help="of agents")
    add("--agent", choices=("log_dqn", "dqn"), default="log_dqn", help="of vectorized")
    add("--seeds", type=whole, nargs="+", default=[1, 8], help="of peers (default: 1 8)")
    add("--capacity", type=whole, default=10_000, help="transitions, of peers (default: 10000)")
    add("--purejaxrl", type=pathlib.Path, metavar="FOLDER", help="a clone of it, for peers")
    add("--out", type=shell.folder, default=pathlib.Path("gpu"), help="of gpu (default: gpu)")
    add("--dry-run", action="store_true", help="of gpu: very little of each step, on any device")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Runs the measurements; returns the exit status."""
    args = parse(arguments)

    def work() -> int | None:
        # Imported here: some parts run where neither TensorFlow nor Dopamine is installed.
        try:
            part = importlib.import_module(f"benchmarks.{args.what}")
        except ModuleNotFoundError as error:
            raise ValueError(f"{args.what}: {error}; it must be installed") from error
        return part.run(args)

    return shell.run_once("benchmark.py", work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
