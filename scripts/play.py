"""Films a trained agent: the screen beside what the agent expects of each action.

Example:
    python scripts/play.py --run=results/log_dqn/Pong/0 --out=pong.mp4
"""

import argparse
import logging
import os
import pathlib
import sys
import tempfile
import warnings
from collections.abc import Sequence
from typing import Any

import absl.logging
import numpy as np
from tqdm import tqdm

from log_dqn import compat
from log_dqn.program import shell
from log_dqn.run_folder.checkpoints import CheckpointError

SUFFIXES = (".mp4", ".gif")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the runs, the film's path, the longest episode and the seed."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument(
        "--compare", metavar="RUN", type=pathlib.Path,
        help="folder of another run of this game, filmed beside it on the same seed",
    )  # fmt: skip
    parser.add_argument("--out", type=_film, required=True, help="film to write, .mp4 or .gif")
    parser.add_argument(
        "--max_steps", type=shell.at_least(1), default=3000,
        help="agent steps after which the episode is left (default: %(default)s, 200 s)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=shell.at_least(0), default=0, help="seed of the game (default: 0)"
    )
    return parser.parse_args(arguments)


def _film(text: str) -> pathlib.Path:
    if pathlib.Path(text).suffix not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {' or '.join(SUFFIXES)}")
    return pathlib.Path(text)


def _title(run: pathlib.Path, iterations: int) -> str:
    counted = f"{iterations} iteration{'s' * (iterations != 1)}"
    return f"{'/'.join(run.resolve().parts[-3:])}   after {counted}"


def write_film(runs: Sequence[pathlib.Path], out: pathlib.Path, max_steps: int, seed: int) -> str:
    """Plays an episode of each run and writes it aside, then under its name.

    Returns:
        A line about it.
    """
    with compat.quiet():
        import jax
        import tensorflow as tf

        # A GPU may be busy with training, and a film needs none.
        jax.config.update("jax_platforms", "cpu")
        tf.config.set_visible_devices([], "GPU")
        from log_dqn.film import loading, painter
    import imageio.v2 as imageio

    # imageio starts ffmpeg, which is another program at once; JAX's threads stay out of it.
    warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".writing-") as aside:
        tf.get_logger().setLevel(logging.ERROR)
        absl.logging.set_verbosity(absl.logging.ERROR)
        with compat.quiet():
            players = [loading.load(run, seed) for run in runs]
        games = {player.game_name for player in players}
        if len(games) > 1:
            raise ValueError(
                f"--compare is {runs[1]}, a run on {players[1].game_name}; it must be one on "
                f"{players[0].game_name}, as --run is"
            )
        titles = [_title(*of) for of in zip(runs, (p.iterations for p in players), strict=True)]
        settings = (
            {"duration": 1000 / painter.FRAMES_PER_SECOND, "loop": 0}
            if out.suffix == ".gif"
            # The frames need no scaling to sixteens.
            else {"fps": painter.FRAMES_PER_SECOND, "macro_block_size": 2}
        )
        path = pathlib.Path(aside) / out.name
        writer: Any  # A writer, though imageio's stubs say less.
        with imageio.get_writer(path, **settings) as writer:
            frames = painter.film(players, titles, max_steps, seed)
            shown = tqdm(frames, total=max_steps, unit=" steps", disable=None)
            for count, (image, last) in enumerate(shown, 1):  # noqa: B007  For the line below.
                writer.append_data(np.asarray(image))
        os.replace(path, out)
    returns = " and ".join(f"{step.score:g}" for step in last)
    return f"{out}: {count} agent steps, return {returns}"


def main(arguments: Sequence[str]) -> int:
    """Writes the film; returns the exit status."""
    flags = parse_arguments(arguments)
    runs = [flags.run] if flags.compare is None else [flags.run, flags.compare]
    try:
        print(write_film(runs, flags.out, flags.max_steps, flags.seed))
    except ModuleNotFoundError as error:
        print(f"play: {error.name} is missing; pip install '.[play]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except (ValueError, CheckpointError) as error:
        print(f"play: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"play: --out={flags.out}: cannot be written ({error.strerror})", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
