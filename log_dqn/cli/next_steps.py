"""The commands that a program suggests when training has ended, ready to be copied."""

import argparse
import pathlib
import shlex
import shutil
import sys

from log_dqn import games
from log_dqn.cli.shell import Parser
from log_dqn.run_folder import layout

_FILM_STEPS = 300  # Agent steps: 20 seconds.


def results_of(run: pathlib.Path, env: str | None) -> pathlib.Path | None:
    """Returns the folder of results that holds a run, if one does; see `layout.run_dir`.

    `env` is the environment of gymnasium that the run trained on, or None.
    """
    is_game = games.canonical(run.parent.name) or run.parent.name == games.folder_name(env or "/")
    return layout.results_dir_of(run) if is_game else None


def lines(
    command: str,
    parser: Parser,
    flags: argparse.Namespace,
    num_iterations: int,
    *,
    filmed: pathlib.Path | None = None,
    results_dir: pathlib.Path | None = None,
    env: str | None = None,
    runner: str = "Runner",
) -> list[str]:
    """Returns a line for each suggestion.

    Args:
        command: the command of `log-dqn` that has trained.
        parser: the command's.
        flags: the command's.
        num_iterations: iterations of a run.
        filmed: folder of a run that can be filmed, if there is one.
        results_dir: folder of results with the runs, if their folders are `layout.run_dir`'s.
        env: the `--env` that filming needs.
        runner: the runner whose `num_iterations` is bound in gin.
    """
    shown = []
    if filmed is not None:
        film = [f"--run={filmed}", f"--out={filmed / 'film.gif'}"]
        film += [f"--env={env}"] * (env is not None)
        shown.append(f"Film it: {_typed('play', *film, f'--max_steps={_FILM_STEPS}')}")
    if results_dir is not None:
        runs = f"--results_dir={results_dir}"
        shown.append(f"Compare it: {_typed('compare', runs, '--out=report')}")
    more, length = 2 * num_iterations, f"{runner}.num_iterations"
    others = [line for line in flags.gin_bindings if line.partition("=")[0].strip() != length]
    longer = {"restart": False, "gin_bindings": [*others, f"{length}={more}"]}
    options = parser.typed(argparse.Namespace(**{**vars(flags), **longer}))
    return [*shown, f"Train on, to {more} iterations: {_typed(command, *options)}"]


def _typed(*arguments: str) -> str:
    """Returns a command line of `log-dqn`, started in the same way as this program."""
    started, found = pathlib.Path(sys.argv[0]), shutil.which("log-dqn")
    if started.name != "log-dqn":
        program = [sys.executable, "-m", "log_dqn.commands.main"]
    else:
        program = ["log-dqn" if found and started.samefile(found) else str(started)]
    return shlex.join([*program, *arguments])
