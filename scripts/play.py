"""Plays a trained TensorFlow agent and films the screen beside the values of its actions.

Example:
    python scripts/play.py --run=results/log_dqn/Pong/0 --out=pong.mp4
"""

import argparse
import logging
import os
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import absl.logging
import numpy as np
from tqdm import tqdm

from log_dqn import compat
from log_dqn.program import shell

SUFFIXES = (".mp4", ".gif")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the run, the film's path, the longest episode and the seed."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--out", type=_film, required=True, help="film to write, .mp4 or .gif")
    parser.add_argument(
        "--max_steps", type=shell.at_least(1), default=3000,
        help="agent steps after which the episode is left (default: %(default)s, 200 s)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="seed of the game (default: 0)")
    return parser.parse_args(arguments)


def _film(text: str) -> pathlib.Path:
    if pathlib.Path(text).suffix not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"{text!r} does not end in {' or '.join(SUFFIXES)}")
    return pathlib.Path(text)


def write_film(run: pathlib.Path, out: pathlib.Path, max_steps: int, seed: int) -> str:
    """Plays an episode and writes it aside, then under its name; returns a line about it."""
    with compat.quiet():
        import tensorflow as tf

        from log_dqn.results import film
    import imageio.v2 as imageio

    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".writing-") as aside:
        tf.get_logger().setLevel(logging.ERROR)
        absl.logging.set_verbosity(absl.logging.ERROR)
        with compat.quiet():
            agent, environment = film.load(run, seed)
        _, iteration = film.newest_weights(run)
        names = environment.environment.unwrapped.get_action_meanings()
        run_name = "/".join(run.resolve().parts[-3:])
        painter = film.Painter(f"{run_name}   iteration {iteration}", names)
        gif = out.suffix == ".gif"
        settings = (
            {"duration": 1000 / film.FRAMES_PER_SECOND, "loop": 0}
            if gif
            # Frames of 1104 x 630 need no scaling to sixteens.
            else {"fps": film.FRAMES_PER_SECOND, "macro_block_size": 2}
        )
        path = pathlib.Path(aside) / out.name
        writer: Any  # A writer, though imageio's stubs say less.
        with imageio.get_writer(path, **settings) as writer:
            steps = tqdm(film.play(agent, environment, max_steps), total=max_steps, unit=" steps")
            for step in steps:
                image = painter.frame(step)
                writer.append_data(np.asarray(image.reduce(2) if gif else image))
        os.replace(path, out)
    return f"{out}: {steps.n} agent steps, score {step.score:g}"


def main(arguments: Sequence[str]) -> int:
    """Writes the film; returns the exit status."""
    flags = parse_arguments(arguments)
    try:
        print(write_film(flags.run, flags.out, flags.max_steps, flags.seed))
    except ModuleNotFoundError as error:
        print(f"play: {error.name} is missing; pip install '.[play]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except ValueError as error:
        print(f"play: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"play: --out={flags.out}: cannot be written ({error.strerror})", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
