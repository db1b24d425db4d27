"""Compares runs with Dopamine's published baselines and writes tables, figures and a page.

Example:
    python scripts/compare.py --results_dir=results --out=report --games=paper55
"""

import argparse
import contextlib
import itertools
import math
import pathlib
import re
import shlex
import sys
from collections.abc import Iterable, Sequence

from tqdm import tqdm

from log_dqn import games
from log_dqn.program import shell
from log_dqn.results import baselines, comparison, references, report, runs


def _create_parser() -> shell.Parser:
    parser = shell.Parser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # The defaults are those of `Request`.
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    add("--out", type=pathlib.Path, required=True, help="folder for the report")
    add(
        "--results_dir",
        type=pathlib.Path,
        help="holds {agent}[/{setting}]/{game}/{seed}/logs/log_N",
    )
    add(
        "--agents",
        nargs="+",
        type=_names,
        help="agents to show, own or published, in this order; the first is set against the "
        "reference; by default all own ones and "
        f"{', '.join(baselines.DEFAULT_AGENTS)}; also published: "
        "'DQN (Adam + MSE in JAX)', 'Quantile (JAX)'",
    )
    add(
        "--games",
        nargs="+",
        type=_names,
        help=f"games, or the sets {', '.join(games.SETS)}; by default those of the own runs",
    )
    add("--metric", choices=runs.METRICS, help="returns to compare")
    add(
        "--iteration",
        type=_iteration,
        help="how far runs count: 'common' (default), as many emulator frames as all have; "
        "'final', each to its own end; or a number, as many frames as that iteration "
        "ends with; scores average the last 10%% of iterations up to there",
    )
    add("--reference", help="relative scores refer to this agent")
    add(
        "--baselines",
        help="folder or http(s) address of Dopamine's baselines; default: its repository, "
        "downloaded once into your cache folder",
    )
    add(
        "--video_pinball_random",
        type=_video_pinball_random,
        help=f"random score of VideoPinball (default: {references.VIDEO_PINBALL_RANDOM}; other "
        "tables have 0.0)",
    )
    add(
        "--strict",
        action="store_true",
        help="leave out runs whose protocol is not that of the baselines, or not recorded",
    )
    default = comparison.Request.repetitions
    add("--repetitions", type=shell.at_least(1), help=f"bootstrap (default: {default})")
    return parser


def parse_arguments(arguments: Sequence[str]) -> tuple[comparison.Request, pathlib.Path]:
    """Returns what is to be compared and the folder to write to."""
    flags = vars(_create_parser().parse_args(arguments))
    for name in {"agents", "games"} & flags.keys():
        flags[name] = tuple(dict.fromkeys(itertools.chain.from_iterable(flags[name])))
    out = flags.pop("out")
    return comparison.Request(**flags), out


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


def _video_pinball_random(text: str) -> float:
    human = references.references()["VideoPinball"].human
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -math.inf < value < human:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number below the human score {human}")
    return value


def show_progress(title: str, items: Sequence) -> Iterable:
    """A progress bar with the time left."""
    # None: no bar where there is no terminal to draw it on.
    return tqdm(items, f"{title:<20}", file=sys.stderr, dynamic_ncols=True, disable=None)


def notify(line: str) -> None:
    """Writes one line about something missing, above any progress bar."""
    tqdm.write(f"compare: {line}", file=sys.stderr)


def main(arguments: Sequence[str]) -> int:
    """Makes the report; returns the exit status."""
    request, out = parse_arguments(arguments)
    try:
        try:
            compared = comparison.compare(request, notify, show_progress)
        except (OSError, ValueError) as error:
            notify(str(error))
            return 2
        command = shlex.join(["python", "scripts/compare.py", *arguments])
        try:
            report.write(compared, out, command, show_progress)
        except OSError as error:
            notify(f"--out={out}: cannot be written ({error.strerror or error})")
            return 2
    except KeyboardInterrupt:
        return 130
    with contextlib.suppress(BrokenPipeError):
        print(out / "report.html")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
