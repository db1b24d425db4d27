"""Trains one agent on one game: `python -m log_dqn.train --help`."""

import argparse
import contextlib
import logging
import sys
from collections.abc import Sequence

import absl.logging

from log_dqn import compat
from log_dqn.program import shell


def _parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = shell.Parser(
        prog="python -m log_dqn.train",
        description="Trains an agent, or goes on from the newest checkpoint in base_dir.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--base_dir", required=True, help="folder of the run: logs, metrics, checkpoints, events")
    parser.add_gin_options(
        "the agent's own, such as log_dqn.gin, or log_dqn_minatar.gin for MinAtar", "LogDQNAgent"
    )
    add(
        "--game",
        help="game of Atari or MinAtar, such as Pong or MinAtar/Breakout; short for "
        "--gin_bindings=\"create_environment.game_name='X'\", or create_minatar_environment's",
    )
    add(
        "--agent",
        help="log_dqn, dqn, c51, rainbow, implicit_quantile (TensorFlow), jax_log_dqn, jax_dqn, "
        "jax_rainbow, jax_implicit_quantile or full_rainbow (JAX); "
        "short for --gin_bindings=\"create_agent.agent_name='X'\"",
    )
    add(
        "--seed",
        type=int,
        help="seed of all random numbers; short for --gin_bindings=seed_everything.seed=X",
    )
    add("--restart", action="store_true", help="remove the run in base_dir and start over")
    return parser.parse_args(argv)


def _prepare(args: argparse.Namespace, stack: contextlib.ExitStack) -> shell.Training:
    with compat.quiet():
        import tensorflow as tf

        from log_dqn.single import agents, start
    # Notes on deprecated functions that Dopamine calls, and Dopamine's own log.
    tf.get_logger().setLevel(logging.ERROR)
    absl.logging.set_verbosity(absl.logging.ERROR)
    start.configure(args.gin_files, args.gin_bindings, args.game, args.agent, args.seed)
    device = "a GPU" if agents.has_gpu() else "the CPU"
    runner = start.create_runner(args.base_dir, args.restart, stack)

    def train() -> int:
        name = agents.agent_name()
        finished = runner.finished_iterations
        resumed = f"; resumed from iteration {finished}" if finished else ""
        print(f"Training {name} on {device}; results go to {args.base_dir}{resumed}", flush=True)
        runner.run_experiment()
        return 0

    return shell.Training(train, runner.stop)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    args = _parse_args(argv)
    return shell.run("log_dqn.train", lambda stack: _prepare(args, stack))


if __name__ == "__main__":
    sys.exit(main())
