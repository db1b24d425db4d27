"""Lists the sets of games, or the games of some sets: `log-dqn games`."""

import argparse
import textwrap
from collections.abc import Sequence

from log_dqn import checks, games
from log_dqn.cli import shell


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    parser = shell.Parser(
        prog=shell.started_as("games"),
        description="Lists all sets of games, or the games of the given sets, one a line.",
    )
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"one of {', '.join(games.SETS)}")
    return parser


def _listing() -> str:
    """Returns all sets with their games."""
    sets = {
        **games.SETS,
        "without baselines, for compare only": games.WITHOUT_BASELINES,
        "small, vectorized only": tuple(set(games.JAX_GAMES) - set(games.MINATAR5)),
        "of gymnax, for train-vectorized --env": games.GYMNAX,
    }
    return "\n".join(
        textwrap.fill(
            f"{name} ({len(members)}): {', '.join(members)}",
            width=100,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        for name, members in sets.items()
    )


def _show(flags: argparse.Namespace) -> None:
    for name in flags.sets:
        checks.check_one_of("SET", name, games.SETS)
    print("\n".join(games.select(flags.sets)) if flags.sets else _listing())


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the list; returns the exit status."""
    return shell.run_command(create_parser(), _show, arguments)
