"""The command `log-dqn`: one word for each program, which alone is imported."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from log_dqn import games
from log_dqn.cli import shell
from log_dqn.dopamine_run import request
from log_dqn.vectorized import request as vectorized_request


class Command(NamedTuple):
    """A program.

    Attributes:
        module: where it is: a module with `create_parser` and `main`.
        summary: what it does.
        example: arguments that it may be given.
    """

    module: str
    summary: str
    example: str


COMMANDS = {
    "demo": Command(
        "log_dqn.commands.demo",
        "train LogLinDQN and DQN in two minutes, and show the results on a page",
        "--out=demo",
    ),
    "train": Command(
        "log_dqn.train",
        "train one agent on one game",
        "--agent=log_dqn --game=Pong --seed=1 --base_dir=results/log_dqn/Pong/1",
    ),
    "train-vectorized": Command(
        "log_dqn.train_vectorized",
        "train many runs at once on one device",
        "--games=MinAtar/Breakout --results_dir=results",
    ),
    "sweep": Command(
        "log_dqn.sweep",
        "train many agents, games and seeds, on one or several machines",
        "--agents=log_dqn,dqn --games=Pong,Asterix --seeds=5 --results_dir=results",
    ),
    "compare": Command(
        "log_dqn.commands.compare",
        "compare runs with Dopamine's published baselines",
        "--results_dir=results --out=report",
    ),
    "play": Command(
        "log_dqn.commands.play",
        "film a trained agent, with the values of its actions",
        "--trained=MinAtar/Asterix --out=asterix.gif",
    ),
    "evaluate": Command(
        "log_dqn.commands.evaluate",
        "measure the mean return of a trained agent",
        "--trained=MinAtar/Asterix --episodes=30",
    ),
    "figures": Command(
        "log_dqn.commands.linear_figures",
        "draw the figures of the paper's small experiments",
        "--out=figures",
    ),
    "games": Command("log_dqn.commands.list_games", "list the sets of games", "paper6"),
    "version": Command(
        "log_dqn.commands.versions", "print the versions of log_dqn and its libraries", ""
    ),
}

# What the shell completes an option with, by the option's name, or by the command and that.
_FOLDERS = ("base_dir", "results_dir", "run", "compare", "baselines")
_FILES = ("gin_files", "out")
_CHOICES = {
    ("train", "game"): (*games.GAMES, *games.MINATAR5),
    ("train", "agent"): tuple(request.AGENTS),
    ("train-vectorized", "agent"): vectorized_request.AGENTS,
}


def overview() -> str:
    """Returns the list of commands, with an example of each."""
    width = max(map(len, COMMANDS))
    lines = ["usage: log-dqn COMMAND [options]", ""]
    for name, command in COMMANDS.items():
        lines += [
            f"  {name:<{width}}  {command.summary}",
            f"  {'':<{width}}  log-dqn {name} {command.example}".rstrip(),
        ]
    lines += [
        "",
        "log-dqn COMMAND --help lists the options of a command.",
        'eval "$(log-dqn --print-completion bash)" completes them with TAB (also zsh, tcsh).',
    ]
    return "\n".join(lines)


def _completion(of_shell: str) -> str:
    """Returns the script that completes the command and its options in a shell."""
    import shtab

    parser = argparse.ArgumentParser(prog="log-dqn")
    commands = parser.add_subparsers()
    for name, command in COMMANDS.items():
        own = importlib.import_module(command.module).create_parser()
        for action in own._actions:
            if (name, action.dest) in _CHOICES:
                action.choices = _CHOICES[name, action.dest]
            elif action.dest in _FOLDERS:
                action.complete = shtab.DIRECTORY
            elif action.dest in _FILES:
                action.complete = shtab.FILE
        commands.add_parser(name, help=command.summary, parents=[own], add_help=False)
    return shtab.complete(parser, of_shell)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads a command line that names no command."""
    parser = shell.Parser(prog="log-dqn", usage=overview(), add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--print-completion", choices=("bash", "zsh", "tcsh"))
    parser.add_argument("command", nargs="?", choices=COMMANDS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    # For modules of the user's own, as with `python -m`: environments, and what gin files import.
    sys.path.append("")
    if arguments and arguments[0] in COMMANDS:
        program = importlib.import_module(COMMANDS[arguments[0]].module)
        return program.main(arguments[1:])
    flags = _parse(arguments)
    of_shell = flags.print_completion
    return shell.run_once(
        "log-dqn", lambda: print(_completion(of_shell) if of_shell else overview())
    )


if __name__ == "__main__":
    sys.exit(main())
