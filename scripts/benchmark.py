"""Measures this package against Dopamine, side by side in one run.

    python scripts/benchmark.py              LogDQN against LogLinDQN and DQN, interleaved
    python scripts/benchmark.py --framework=jax    the same of the JAX agents
    python scripts/benchmark.py checkpoint   saving and loading a full replay memory
    python scripts/benchmark.py vectorized   many runs at once, and what limits them
    python scripts/benchmark.py minatar      the loop as one program on MinAtar
    python scripts/benchmark.py gpu --out=DIR   is a GPU right, how fast, where its time goes
    python scripts/benchmark.py cores --rounds=8   a run a core against one run on all cores
    python scripts/benchmark.py linear       the chain task's kernels against plain Python
    python scripts/benchmark.py sweep --rounds=1   a sweep of 8 runs against 8 runs by hand
    python scripts/benchmark.py peers --rounds=8   DQN here, in Dopamine, rejax and purejaxrl

A line of two agents gives both medians and the median of the ratios of neighbouring blocks, with
its range. A ratio is LogDQN's over the other's.
"""

import argparse
import importlib
import pathlib
import sys
from collections.abc import Sequence

from benchmarks import measuring

from log_dqn import games
from log_dqn.cli import shell

# A part is imported where it runs: TensorFlow's agents and JAX's want a process of their own, and
# the vectorized part runs where neither TensorFlow nor Dopamine is installed.
PARTS = (
    "agents",
    "checkpoint",
    "vectorized",
    "minatar",
    "cores",
    "gpu",
    "linear",
    "sweep",
    "peers",
)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = shell.Parser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", nargs="?", choices=PARTS, default="agents")
    parser.add_argument("--framework", choices=("tf", "jax"), default="tf", help="of agents")
    parser.add_argument(
        "--rounds",
        type=shell.at_least(1),
        default=60,
        help="blocks of each figure, sweeps (default: 60)",
    )
    parser.add_argument(
        "--game", choices=games.GAMES, default="Pong", metavar="GAME",
        help="game of checkpoint (default: Pong)",
    )  # fmt: skip
    vectorized = parser.add_argument_group("of vectorized")
    add = vectorized.add_argument
    add(
        "--runs",
        type=shell.at_least(1),
        nargs="*",
        default=[],
        help="runs in one call (default: 1 on a CPU, else 1 2 4 8 16)",
    )
    add("--agent", choices=("log_dqn", "dqn"), default="log_dqn", help="default: log_dqn")
    add(
        "--capacity",
        type=shell.at_least(1),
        default=10_000,
        help="transitions of a run, also of peers (default: 10000)",
    )
    seconds = shell.number(0.1, "seconds, at least 0.1")
    add("--seconds", type=seconds, default=8.0, help="of each figure, at least (default: 8)")
    add = parser.add_argument_group("of peers").add_argument
    add("--seeds", type=shell.at_least(1), nargs="+", default=[1, 8], help="default: 1 8")
    add("--purejaxrl", type=pathlib.Path, metavar="FOLDER", help="a clone of purejaxrl")
    gpu = parser.add_argument_group("of gpu")
    add = gpu.add_argument
    add("--out", type=pathlib.Path, default=pathlib.Path("gpu"), help="folder (default: gpu)")
    add("--dry-run", action="store_true", help="very little of each step, on any device")
    parser.add_argument("--measure_memory_of", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Runs the measurements; returns the exit status."""
    args = parse(arguments)
    return shell.run_once("benchmark.py", lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    name = f"agents_{args.framework}" if args.what == "agents" else args.what
    try:
        part = importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        raise ValueError(f"{args.what}: {error}; it must be installed") from error
    if args.measure_memory_of:
        measuring.print_peak_memory(part, args.measure_memory_of)
    elif args.what == "agents":
        measuring.compare_agents(args.framework, part, args.rounds)
    elif args.what == "checkpoint":
        part.run(args.game)
    elif args.what == "vectorized":
        part.run(args.runs, args.agent, args.capacity, args.seconds, args.rounds)
    elif args.what == "minatar":
        part.run("MinAtar/Freeway", args.rounds)
    elif args.what == "peers":
        part.run(args.rounds, args.capacity, args.seeds, args.purejaxrl)
    elif args.what == "gpu":
        return part.run(args.out, args.dry_run)
    elif args.what in ("cores", "sweep"):
        part.run(args.rounds)
    else:
        part.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
