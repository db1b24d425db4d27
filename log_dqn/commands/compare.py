"""Compares runs with Dopamine's published baselines: `log-dqn compare`."""

import argparse
import functools
import itertools
import pathlib
import re
import shlex
import sys
from collections.abc import Sequence

from tqdm import tqdm

from log_dqn import games
from log_dqn.cli import shell
from log_dqn.results import request as asked
from log_dqn.run_folder import lock


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    parser = shell.Parser(
        prog=shell.started_as("compare"),
        description="Compares runs with Dopamine's published baselines and writes tables, figures "
        "and a page.",
        # The defaults are those of `Request`.
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    add("--out", required=True, help="folder for the report")
    add(
        "--results_dir",
        type=shell.folder,
        help="folder of results, with runs in {agent}[/{setting}]/{game}/{seed}; without it, "
        "only the baselines are compared",
    )
    add(
        "--agents",
        nargs="+",
        type=_names,
        help="own or published agents to show, in this order; the first is compared with the "
        f"reference (default: all own agents, and {', '.join(asked.DEFAULT_AGENTS)}); "
        "also published: 'DQN (Adam + MSE in JAX)', 'Quantile (JAX)'",
    )
    add(
        "--games",
        nargs="+",
        type=_names,
        help=f"games, or the sets {', '.join(games.SETS)} (default: the games of the own runs)",
    )
    add(
        "--metric",
        choices=asked.METRICS,
        help="returns to compare, of training or evaluation (default: train)",
    )
    add(
        "--iteration",
        type=_iteration,
        help="where runs are compared: 'common' (default), at the last emulator frame that all "
        "have; 'final', each at its end; or a number, at the end of that iteration; scores "
        "average the last 10%% of iterations up to there",
    )
    add(
        "--reference",
        help=f"agent that scores are relative to (default: {asked.DQN}; without published runs the "
        "last agent, if possible of the first's setting)",
    )
    add("--baselines", help=asked.BASELINES_HELP)
    add(
        "--strict",
        action="store_true",
        help="leave out runs whose protocol is unknown, or differs from the baselines'",
    )
    default = asked.Request.repetitions
    add("--repetitions", type=shell.at_least(1), help=f"bootstrap repetitions (default: {default})")
    return parser


def _names(text: str) -> list[str]:
    # A setting of a scan has commas of its own: log_dqn/gamma=0.84,c=0.5.
    names = [name.strip() for name in re.split(r",(?![^,/]*=)", text) if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError(f"{text!r} holds no name")
    return names


def _iteration(text: str) -> int | str:
    if text in ("final", "common"):
        return text
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number >= 0, 'common' nor 'final'")
    return int(text)


def notify(line: str) -> None:
    """Writes one line about something missing, above any progress bar."""
    tqdm.write(f"{shell.started_as('compare')}: {line}", file=sys.stderr)


def _compare(arguments: Sequence[str], flags: argparse.Namespace) -> None:
    given = vars(flags)
    for name in {"agents", "games"} & given.keys():
        given[name] = tuple(dict.fromkeys(itertools.chain.from_iterable(given[name])))
    out = given.pop("out")
    request = asked.Request(**given)
    request.check()
    shell.check_writable("out", out)
    shell.print_start(f"a report on {request.results_dir or 'the published baselines'} in {out}")
    from log_dqn.results import comparison, report

    compared = comparison.compare(request, notify)
    folder, command = pathlib.Path(out), shlex.join(["log-dqn", "compare", *arguments])
    with lock.writing("out", out):
        report.write(compared, folder, command)
    print(folder / "report.html")


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the report; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    return shell.run_command(create_parser(), functools.partial(_compare, arguments), arguments)
