"""Draws the figures of the paper's small experiments: `log-dqn figures`."""

import argparse
import math
import pathlib
from collections.abc import Sequence

from log_dqn import checks, games
from log_dqn.cli import shell, threads
from log_dqn.run_folder import lock

NAMES = (
    "metric_gap", "chain_regular", "chain_log", "kappa_regular", "kappa_deterministic",
    "kappa_full", "rms_error", "hypotheses", "convergence",
)  # fmt: skip
"""The experiments, which `log_dqn.linear.experiments` describes."""

_SCANS = "chain_regular", "chain_log", "hypotheses"
"""Those over discount factors. The last bounds its targets, whatever the options say."""

_RANDOM = (*_SCANS, "rms_error", "convergence")
"""Those whose runs differ by their random numbers."""


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    parser = shell.Parser(
        prog=shell.started_as("figures"),
        description="Draws the figures of the paper's small experiments, each as NAME.png and "
        "NAME.pdf, with its numbers in NAME.csv.",
    )
    add = parser.add_argument
    add("--out", required=True, help="folder for the files")
    which = f"figures to draw: {', '.join(NAMES)} (default: all)"
    add("--only", nargs="+", choices=NAMES, metavar="NAME", default=NAMES, help=which)
    of = f"of {games.listing(_RANDOM)}"
    add("--runs", type=shell.at_least(1), default=1, help=f"independent runs {of} (default: 1)")
    add("--seed", type=shell.at_least(0), default=0, help=f"random seed {of} (default: 0)")
    jobs = "threads (default: all cores)"
    add("--jobs", type=shell.at_least(1), default=threads.cores(), help=jobs)
    gammas = "discount factors of the chain scans (default: the paper's)"
    add("--gammas", type=float, nargs="+", metavar="GAMMA", help=gammas)
    constant = "do not anneal the step sizes of the chain scans from 1 over the first 10,000 sweeps"
    add("--constant_step_sizes", action="store_true", help=constant)
    unbounded = "do not bound the targets of chain_regular and chain_log by 1, the largest reward"
    add("--unbounded_targets", action="store_true", help=unbounded)
    return parser


def _make(flags: argparse.Namespace) -> None:
    default = create_parser().get_default
    for name, users in {
        "runs": _RANDOM, "seed": _RANDOM, "gammas": _SCANS, "constant_step_sizes": _SCANS,
        "unbounded_targets": _SCANS[:2],
    }.items():  # fmt: skip
        given = getattr(flags, name)
        is_used = not set(users).isdisjoint(flags.only)
        is_left_out = given == default(name)
        allowed = f"left out without {games.listing(users)}, which alone use it"
        checks.check(name, given, is_used or is_left_out, allowed)
    for gamma in flags.gammas or ():
        checks.check_gamma(gamma)
    shell.check_writable("out", flags.out)
    shell.print_start(f"{games.listing(flags.only)} in {flags.out}")
    from log_dqn.linear import chain, experiments

    options = experiments.Options(
        runs=flags.runs,
        seed=flags.seed,
        jobs=flags.jobs,
        gammas=tuple(sorted(set(flags.gammas or experiments.GAMMAS))),
        annealed=not flags.constant_step_sizes,
        chain=chain.Chain(largest_target=math.inf) if flags.unbounded_targets else chain.Chain(),
    )
    from log_dqn.linear import figures, learning

    for gamma in options.gammas if "chain_log" in flags.only else ():
        learning.mapping_unit(gamma, experiments.K)  # Raises before the work, not after it.

    out = pathlib.Path(flags.out)
    for name in dict.fromkeys(flags.only):
        table = experiments.EXPERIMENTS[name](options)
        with lock.writing("out", flags.out):
            out.mkdir(parents=True, exist_ok=True)
            figures.write(name, table, out)
        print(f"{out / name}.png, .pdf and .csv", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the experiments, writes their figures and says where they are."""
    return shell.run_command(create_parser(), _make, arguments)
