"""Trains one agent on one game: `python -m log_dqn.train --help`."""

import argparse
import contextlib
import logging
import pathlib
import sys
from collections.abc import Sequence

from log_dqn import checks, compat
from log_dqn.cli import gin_files, next_steps, shell, threads, words
from log_dqn.dopamine_run import request


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    parser = shell.Parser(
        prog=shell.started_as("train"),
        description="Trains an agent, or resumes from the newest checkpoint in --base_dir.",
    )
    add = parser.add_argument
    add(
        "--base_dir",
        required=True,
        help="folder of the run, with its logs, metrics, checkpoints and events",
    )
    parser.add_gin_options(
        "the agent's own, such as log_dqn.gin, or log_dqn_minatar.gin for MinAtar, or "
        "log_dqn_gym.gin for --env",
        "LogDQNAgent",
    )
    game = parser.add_mutually_exclusive_group()
    game.add_argument(
        "--game",
        help="a game of Atari or MinAtar, such as MinAtar/Breakout (default: Pong); short for "
        "--gin_bindings=\"create_environment.game_name='X'\", or create_minatar_environment's",
    )
    game.add_argument(
        "--env",
        help="an environment of gymnasium with discrete actions, such as LunarLander-v3, or "
        "MODULE:ID for one of your own; short for "
        "--gin_bindings=\"create_gymnasium_environment.environment_id='X'\"",
    )
    add(
        "--agent",
        help=f"one of {', '.join(request.AGENTS)} (default: log_dqn); "
        "short for --gin_bindings=\"create_agent.agent_name='X'\"",
    )
    add(
        "--seed",
        type=shell.whole,
        help="seed of all random numbers; short for --gin_bindings=seed_everything.seed=X",
    )
    add(
        "--threads",
        type=shell.whole,
        help="threads of the run (default: one a core, whatever OMP_NUM_THREADS says)",
    )
    add("--json", action="store_true", help="print one JSON object per iteration, and nothing else")
    add("--track", action="store_true", help="log to Weights & Biases as well as to TensorBoard")
    add("--restart", action="store_true", help="delete the run in --base_dir, and start over")
    return parser


def _prepare(args: argparse.Namespace, stack: contextlib.ExitStack) -> shell.Training:
    request.check_folder(args.base_dir, args.restart)
    num_threads = threads.chosen(args.threads)
    threads.limit(num_threads)
    asked = request.parse(
        args.gin_files, args.gin_bindings, args.agent, args.game, args.seed, args.env
    )
    checks.check_extra(None, ("tensorflow", "dopamine"))
    if args.track:
        checks.check_extra("wandb", ("wandb",), "--track")
    what = gin_files.named(args.agent, args.gin_files)
    where = asked.game or asked.env
    spoken = sys.stderr if args.json else sys.stdout
    shell.print_start(f"{what}{f' on {where}' if where else ''} in {args.base_dir}", spoken)
    with compat.quiet():
        import absl.logging
        import tensorflow as tf

        from log_dqn.dopamine_run import agents, start
    # Notes on deprecated functions that Dopamine calls, and Dopamine's own log.
    tf.get_logger().setLevel(logging.ERROR)
    absl.logging.set_verbosity(absl.logging.ERROR)
    # A script may train twice in one process: gin's settings and the graph are this run's alone.
    stack.enter_context(compat.own_gin_configuration(keeps_bindings=True))
    start.configure(asked.written)
    if not agents.uses_jax():
        stack.enter_context(tf.Graph().as_default())
    cpu = f"the CPU with {words.counted(num_threads, 'thread')}"
    device = "a GPU" if agents.has_gpu() else cpu
    runner = start.create_runner(
        args.base_dir, asked.written.lines, args.restart, stack, args.json, args.track
    )

    def train() -> int:
        name = agents.agent_name()
        finished = runner.finished_iterations
        resumed = f"; resumed from iteration {finished}" if finished else ""
        gigabytes = runner.replay_bytes / 1e9
        grows = f"; the replay memory grows to {gigabytes:.1f} GB" if gigabytes >= 1 else ""
        line = f"Training {name} on {device}; results go to {args.base_dir}{resumed}{grows}"
        shell.say(line, file=spoken)
        runner.run_experiment()
        folder = pathlib.Path(args.base_dir)
        next_lines = next_steps.lines(
            "train", create_parser(), args, runner.num_iterations,
            filmed=folder if start.can_be_filmed() else None,
            results_dir=next_steps.results_of(folder, asked.env),
        )  # fmt: skip
        shell.say(*next_lines, file=spoken)
        return 0

    return train, runner.stop


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    return shell.run(create_parser(), _prepare, argv)


if __name__ == "__main__":
    sys.exit(main())
