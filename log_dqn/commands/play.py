"""Films a trained agent, the screen beside what it expects of each action: `log-dqn play`."""

import argparse
import functools
import logging
import os
import pathlib
import tempfile
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from log_dqn import compat, trained
from log_dqn.checks import check, check_extra
from log_dqn.program import shell
from log_dqn.run_folder import configuration, layout, lock
from log_dqn.single import request

if TYPE_CHECKING:
    from log_dqn.film.loading import Player

SUFFIXES = (".mp4", ".gif")


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    parser = shell.Parser(
        prog=shell.started_as("play"),
        description="Films a trained agent: the screen beside what the agent expects of each "
        "action.",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--run", type=shell.folder, help="folder of the run")
    which.add_argument(
        "--trained", metavar="GAME", help="a game of MinAtar, on which a network comes with log_dqn"
    )
    parser.add_argument("--agent", help="with --trained: loglin_dqn (default), log_dqn or dqn")
    parser.add_argument(
        "--gamma", type=shell.real, help="with --trained: 0.5, or the larger one (default)"
    )
    parser.add_argument(
        "--compare", metavar="RUN", type=shell.folder,
        help="folder of another run of this game, filmed beside it on the same seed",
    )  # fmt: skip
    parser.add_argument(
        "--env",
        help="MODULE:FACTORY of the run's own JAX environment, which a film else imports not",
    )
    parser.add_argument("--out", type=_film, required=True, help="film to write, .mp4 or .gif")
    parser.add_argument(
        "--max_steps", type=shell.at_least(1), default=3000,
        help="agent steps after which the episode is left (default: %(default)s, 200 s)",
    )  # fmt: skip
    parser.add_argument("--seed", type=shell.whole, default=0, help="seed of the game (default: 0)")
    return parser


def _film(text: str) -> pathlib.Path:
    if pathlib.Path(text).suffix not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {' or '.join(SUFFIXES)}")
    return pathlib.Path(text)


def _check_run(option: str, folder: pathlib.Path) -> None:
    """Checks that a folder holds a run that this package trained; raises ValueError else."""
    if {"create_agent.agent_name", "VectorizedRunner.agent"} & configuration.read(folder).keys():
        return
    lacks = f"no {layout.CONFIG} that names an agent"
    if not folder.is_dir():
        fault = "is no folder"
    elif layout.has_folders(folder):
        fault = f"looks like a run of Dopamine's own, with {lacks}"
    else:
        fault = f"has {lacks}"
    check(option, str(folder), False, f"the folder of a run that log-dqn trained; this one {fault}")


def _title(run: pathlib.Path, player: "Player") -> str:
    counted = f"{player.iterations} iteration{'s' * (player.iterations != 1)}"
    folder = run.resolve()
    above = layout.results_dir_of(folder)
    named = folder.parts[len(above.parts) if above else 0 :]
    return f"{'/'.join(named)}   after {counted}"


def _load(runs: Sequence[pathlib.Path], seed: int, env: str | None) -> "list[Player]":
    """Loads the agents of some runs on one game."""
    with compat.quiet():
        import absl.logging
        import jax
        import tensorflow as tf

        # A GPU may be busy with training, and a film needs none.
        jax.config.update("jax_platforms", "cpu")
        tf.config.set_visible_devices([], "GPU")
        tf.get_logger().setLevel(logging.ERROR)
        absl.logging.set_verbosity(absl.logging.ERROR)
        from log_dqn.film import loading
    # On its own: where a run is refused, what TensorFlow wrote at its start is not shown.
    with compat.quiet():
        players = [loading.load(run, seed, env) for run in runs]
    games = [player.game_name for player in players]
    allowed = f"a run on {games[0]}, as the first is, and not on {games[-1]}"
    check("compare", str(runs[-1]), games[0] == games[-1], allowed)
    return players


def _write(players: "Sequence[Player]", flags: argparse.Namespace, titles: Sequence[str]) -> str:
    """Plays an episode of each player and writes it aside, then under its name.

    Returns:
        A line about it.
    """
    import numpy as np
    from tqdm import tqdm

    from log_dqn.film import painter

    out, max_steps = flags.out, flags.max_steps
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".writing-") as aside:
        path = pathlib.Path(aside) / out.name
        with painter.Gif(path) if out.suffix == ".gif" else _mp4(path) as writer:
            frames = painter.film(players, titles, max_steps, flags.seed)
            shown = tqdm(frames, total=max_steps, unit=" steps", disable=None)
            for count, (image, last) in enumerate(shown, 1):  # noqa: B007  For the line below.
                writer.append_data(np.asarray(image))
        os.replace(path, out)
    returns = " and ".join(f"{step.score:g}" for step in last)
    return f"{out}: {count} agent steps, return {returns}"


def _mp4(path: pathlib.Path) -> Any:
    import imageio.v2 as imageio

    from log_dqn.film import painter

    # imageio starts ffmpeg, which is another program at once; JAX's threads stay out of it.
    warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
    # The frames need no scaling to sixteens.
    return imageio.get_writer(path, fps=painter.FRAMES_PER_SECOND, macro_block_size=2)


def _play(flags: argparse.Namespace) -> None:
    if flags.trained is not None:
        agent = "loglin_dqn" if flags.agent is None else flags.agent
        flags.run = trained.find(flags.trained, agent, flags.gamma)
    else:
        for option in ("agent", "gamma"):
            value = getattr(flags, option)
            check(option, value, value is None, "left out without --trained")
    options = {"run": flags.run, "compare": flags.compare}
    runs = {option: folder for option, folder in options.items() if folder is not None}
    for option, folder in runs.items():
        _check_run(option, folder)
    request.check_seed(flags.seed)
    check("out", str(flags.out), not flags.out.is_dir(), "a file")
    shell.check_writable("the folder of out", str(flags.out.parent))
    if flags.out.suffix == ".mp4":
        check_extra("play", ("imageio", "imageio_ffmpeg"))
    shell.print_start(f"a film of {' beside '.join(map(str, runs.values()))} in {flags.out}")
    players = _load(list(runs.values()), flags.seed, flags.env)
    titles = [_title(*of) for of in zip(runs.values(), players, strict=True)]
    with lock.writing("out", str(flags.out), "file"):
        print(_write(players, flags, titles))


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the film; returns the exit status."""
    parser = create_parser()
    flags = parser.parse_args(arguments)
    return shell.run_once(parser.prog, functools.partial(_play, flags))
