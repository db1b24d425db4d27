"""Films a trained agent, with what it expects of each action: `log-dqn play`."""

import argparse
import contextlib
import os
import pathlib
import tempfile
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from log_dqn.checks import check, check_extra, check_seed
from log_dqn.cli import shell
from log_dqn.commands import which_run
from log_dqn.run_folder import configuration, layout, lock

if TYPE_CHECKING:
    from log_dqn.film.players import TrainedAgent

SUFFIXES = (".mp4", ".gif")


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    parser = shell.Parser(
        prog=shell.started_as("play"),
        description="Films a trained agent: the screen, and what the agent expects of each action.",
    )
    which_run.add_options(parser)
    parser.add_argument(
        "--compare", metavar="RUN", type=shell.folder,
        help="folder of another run on the same game, filmed beside the first with the same seed",
    )  # fmt: skip
    parser.add_argument("--out", type=_film, required=True, help="film to write, .mp4 or .gif")
    parser.add_argument(
        "--narrow", action="store_true",
        help="also write a film for phones, 390 pixels wide: NAME_narrow, beside that of --out",
    )  # fmt: skip
    parser.add_argument(
        "--max_steps", type=shell.at_least(1), default=3000,
        help="agent steps after which the episode is cut off (default: %(default)s, 200 seconds)",
    )  # fmt: skip
    parser.add_argument("--seed", type=shell.whole, default=0, help="seed of the game (default: 0)")
    return parser


def _film(text: str) -> pathlib.Path:
    if pathlib.Path(text).suffix not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {' or '.join(SUFFIXES)}")
    return pathlib.Path(text)


def _title(run: pathlib.Path, player: "TrainedAgent") -> str:
    counted = f"{player.iterations} iteration{'s' * (player.iterations != 1)}"
    folder = run.resolve()
    above = layout.results_dir_of(folder)
    named = folder.parts[len(above.parts) if above else 0 :]
    return f"{'/'.join(named)}   after {counted}"


def _load(runs: Sequence[pathlib.Path], seed: int, env: str | None) -> "list[TrainedAgent]":
    """Loads the agents of some runs on one game."""
    # A GPU may be busy with training, and a film needs none.
    players = which_run.load(runs, seed, env, on_cpu=True)
    games = [player.game_name for player in players]
    allowed = f"a run on {games[0]}, as the first is, and not on {games[-1]}"
    check("compare", str(runs[-1]), games[0] == games[-1], allowed)
    return players


def narrow(film: pathlib.Path) -> pathlib.Path:
    """Returns the name of a film's narrow version."""
    return film.with_stem(f"{film.stem}_narrow")


def _films(flags: argparse.Namespace) -> list[pathlib.Path]:
    """Returns the files to be written: the film of `--out`, and its narrow version."""
    return [flags.out, narrow(flags.out)][: 1 + flags.narrow]


def _write(
    players: "Sequence[TrainedAgent]", flags: argparse.Namespace, titles: Sequence[str]
) -> str:
    """Plays an episode of each player and writes it aside, then under its name.

    Returns:
        A line about it.
    """
    import numpy as np
    from tqdm import tqdm

    from log_dqn.film import painter

    out, max_steps = flags.out, flags.max_steps
    names = [path.name for path in _films(flags)]
    layouts = [painter.WIDE, painter.NARROW][: len(names)]
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".writing-") as aside:
        paths = [pathlib.Path(aside) / name for name in names]
        with contextlib.ExitStack() as stack:
            writer = painter.Gif if out.suffix == ".gif" else _mp4
            writers = [stack.enter_context(writer(path)) for path in paths]
            frames = painter.film(players, titles, max_steps, flags.seed, layouts)
            shown = tqdm(frames, total=max_steps, unit=" steps", disable=None)
            for count, (images, last) in enumerate(shown, 1):  # noqa: B007  For the line below.
                for film, image in zip(writers, images, strict=True):
                    film.append_data(np.asarray(image))
        for path in reversed(paths):  # The film of --out appears last.
            os.replace(path, out.with_name(path.name))
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
    runs = [which_run.folder(flags)]
    if flags.compare is not None:
        configuration.check_trained("compare", flags.compare)
        runs.append(flags.compare)
    check_seed(flags.seed)
    for path in _films(flags):
        check("out", str(path), not path.is_dir(), "a file")
    shell.check_writable("the folder of out", str(flags.out.parent))
    if flags.out.suffix == ".mp4":
        check_extra("play", ("imageio", "imageio_ffmpeg"))
    shell.print_start(f"a film of {' beside '.join(map(str, runs))} in {flags.out}")
    players = _load(runs, flags.seed, flags.env)
    titles = [_title(*of) for of in zip(runs, players, strict=True)]
    with lock.writing("out", str(flags.out), "file"):
        print(_write(players, flags, titles))


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the film; returns the exit status."""
    return shell.run_command(create_parser(), _play, arguments)
