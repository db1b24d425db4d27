"""The options that name a trained agent, and its loading, for programs in which it plays."""

import argparse
import gc
import logging
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import log_dqn
from log_dqn import compat, trained
from log_dqn.cli import shell
from log_dqn.run_folder import configuration

if TYPE_CHECKING:
    from log_dqn.film.players import TrainedAgent


def add_options(parser: shell.Parser) -> None:
    """Adds `--run`, `--trained` with its `--agent` and `--gamma`, and `--env`."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--run", type=shell.folder, help="folder of the run")
    which.add_argument(
        "--trained", metavar="GAME", help="a game of MinAtar, whose network comes with log_dqn"
    )
    parser.add_argument("--agent", help="with --trained: loglin_dqn (default), log_dqn or dqn")
    parser.add_argument(
        "--gamma",
        type=shell.real,
        help="with --trained, the discount factor: 0.5 or 0.96, for log_dqn 0.5 or 0.8 (default: "
        "the larger)",
    )
    parser.add_argument(
        "--env",
        help="the --env of a run on an environment of your own; its module is imported only then",
    )


def folder(flags: argparse.Namespace) -> pathlib.Path:
    """Returns the folder of the run that the options name; raises ValueError if there is none."""
    found = trained.run_dir(flags.run, flags.trained, flags.agent, flags.gamma)
    configuration.check_trained("run", found)
    return found


def load(
    runs: Sequence[pathlib.Path], seed: int, env: str | None, on_cpu: bool
) -> "list[TrainedAgent]":
    """Loads agents (see `log_dqn.load`), on a device that JAX and TensorFlow choose or the CPU."""
    # What JAX runs at a garbage collection would swallow the exception of a Ctrl-C.
    gc.disable()
    try:
        with compat.quiet():
            import absl.logging
            import jax
            import tensorflow as tf

            if on_cpu:
                jax.config.update("jax_platforms", "cpu")
                tf.config.set_visible_devices([], "GPU")
            tf.get_logger().setLevel(logging.ERROR)
            absl.logging.set_verbosity(absl.logging.ERROR)
        return [log_dqn.load(run, env=env, seed=seed) for run in runs]
    finally:
        gc.enable()
