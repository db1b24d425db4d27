"""Makes the figures of the paper's small-scale experiments.

Writes NAME.png, NAME.pdf and NAME.csv for each experiment; see log_dqn.linear.experiments.
"""

import argparse
import os
import pathlib
import sys

from log_dqn.linear import experiments, figures
from log_dqn.program import shell


def _cores() -> int:
    # Those this process may use, where the system can tell.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Returns the command line's options; raises ValueError where one is not allowed."""
    parser = shell.Parser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--out", required=True, help="folder for the files")
    names = list(experiments.EXPERIMENTS)
    add("--only", nargs="+", metavar="NAME", default=names, help=f"among {', '.join(names)}")
    add("--runs", type=int, default=1, help="independent runs (default 1)")
    add("--seed", type=int, default=0, help="random seed (default 0)")
    add("--jobs", type=int, default=_cores(), help="threads (default: all cores)")
    gammas = "discount factors of the chain scans"
    default = experiments.GAMMAS
    add("--gammas", type=float, nargs="+", metavar="GAMMA", default=default, help=gammas)
    constant = "in the chain scans, no annealing from 1 over the first 10,000 sweeps"
    add("--constant-step-sizes", action="store_true", help=constant)
    flags = parser.parse_args(arguments)
    for name in flags.only:
        if name not in names:
            raise ValueError(f"unknown figure {name}; the figures are {', '.join(names)}")
    return flags


def main(arguments: list[str] | None = None) -> None:
    """Runs the experiments, writes their figures and says where they are."""
    flags = parse(arguments)
    options = experiments.Options(
        runs=flags.runs,
        seed=flags.seed,
        jobs=flags.jobs,
        gammas=tuple(sorted(set(flags.gammas))),
        annealed=not flags.constant_step_sizes,
        progress=True,
    )
    # Before the work, not after it: can everything be computed, and the results be written?
    if "chain_log" in flags.only:
        experiments.check_log_gammas(options)
    shell.check_writable("out", flags.out)
    out = pathlib.Path(flags.out)
    out.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(flags.only):
        figures.write(name, experiments.EXPERIMENTS[name](options), out)
        print(f"{out / name}.png, .pdf and .csv", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        shell.print_error("linear_figures", error)
        sys.exit(2)
    except KeyboardInterrupt:
        print("linear_figures: stopped", file=sys.stderr)
        sys.exit(130)
