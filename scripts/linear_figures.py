"""Makes the figures of the paper's small-scale experiments.

Writes NAME.png, NAME.pdf and NAME.csv for each experiment; see log_dqn.linear.experiments.
"""

import argparse
import os
import pathlib
import sys
from typing import NoReturn

from log_dqn.linear import experiments, figures
from log_dqn.program import shell


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # One line, without the usage.
        raise ValueError(message)


def _cores() -> int:
    # Those this process may use, where the system can tell.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Returns the command line's options; raises ValueError where one is not allowed."""
    parser = _Parser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, help="folder for the files")
    names = list(experiments.EXPERIMENTS)
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", default=names, help=f"among {', '.join(names)}"
    )
    parser.add_argument("--runs", type=int, default=1, help="independent runs (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default 0)")
    parser.add_argument("--jobs", type=int, default=_cores(), help="threads (default: all cores)")
    parser.add_argument(
        "--gammas",
        type=float,
        nargs="+",
        metavar="GAMMA",
        default=experiments.GAMMAS,
        help="discount factors of the chain scans",
    )
    parser.add_argument(
        "--constant-step-sizes",
        action="store_true",
        help="in the chain scans, no annealing from 1 over the first 10,000 sweeps",
    )
    options = parser.parse_args(arguments)
    if not options.out:
        raise ValueError("argument --out: the folder's name is empty")
    options.out = pathlib.Path(options.out)
    for name in options.only:
        if name not in names:
            raise ValueError(f"unknown figure {name}; the figures are {', '.join(names)}")
    return options


def main(arguments: list[str] | None = None) -> None:
    """Runs the experiments and writes their figures."""
    options = parse(arguments)
    settings = experiments.Settings(
        runs=options.runs,
        seed=options.seed,
        jobs=options.jobs,
        gammas=tuple(sorted(set(options.gammas))),
        annealed=not options.constant_step_sizes,
        progress=True,
    )
    # Before the work, not after it: can everything be computed, and the results be written?
    if "chain_log" in options.only:
        experiments.check_log_gammas(settings)
    shell.check_writable("out", str(options.out))
    options.out.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(options.only):
        figures.write(name, experiments.EXPERIMENTS[name](settings), options.out)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"linear_figures: {error}")
    except KeyboardInterrupt:
        sys.exit("linear_figures: stopped")
