"""The commands that a program suggests when training has ended, ready to be copied."""

import argparse
import pathlib
import shlex
import shutil
import sys

import log_dqn
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
    program = _program(command)
    shown = []
    if filmed is not None:
        film = [f"--run={filmed}", f"--out={filmed / 'film.gif'}"]
        film += [f"--env={env}"] * (env is not None)
        shown.append(f"Film it: {_typed(program, 'play', *film, f'--max_steps={_FILM_STEPS}')}")
    if results_dir is not None:
        runs = f"--results_dir={results_dir}"
        shown.append(f"Compare it: {_typed(program, 'compare', runs, '--out=report')}")
    more, length = 2 * num_iterations, f"{runner}.num_iterations"
    others = [line for line in flags.gin_bindings if line.partition("=")[0].strip() != length]
    longer = {"restart": False, "gin_bindings": [*others, f"{length}={more}"]}
    options = parser.typed(argparse.Namespace(**{**vars(flags), **longer}))
    return [*shown, f"Train on, to {more} iterations: {_typed(program, command, *options)}"]


def _program(command: str) -> list[str]:
    """Returns the words that start `log-dqn`, as they started this program with its command."""
    started, found = pathlib.Path(sys.argv[0]), shutil.which("log-dqn")
    if started.name == "log-dqn":
        return ["log-dqn" if found and started.samefile(found) else str(started)]
    is_ours = started.resolve().is_relative_to(pathlib.Path(log_dqn.__file__).parent)
    # A script that is `log-dqn` with an agent of its own.
    if sys.argv[1:2] == [command] and not is_ours:
        return [sys.executable, str(started)]
    return [sys.executable, "-m", "log_dqn.commands.main"]


def _typed(program: list[str], *arguments: str) -> str:
    return shlex.join([*program, *arguments])
