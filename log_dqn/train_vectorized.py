"""Trains many runs on one device: `python -m log_dqn.train_vectorized --help`."""

import argparse
import contextlib
import os
import pathlib
import sys
import warnings
from collections.abc import Sequence

from log_dqn import compat, games, scan
from log_dqn.checks import check_extra
from log_dqn.cli import device_memory, gin_files, next_steps, shell, threads, words
from log_dqn.vectorized import request


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    parser = shell.Parser(
        prog=shell.started_as("train-vectorized"),
        description="Trains runs of one agent at once on one device: every game, setting and seed. "
        "The same command resumes them.",
    )
    add = parser.add_argument
    add(
        "--results_dir",
        required=True,
        help="folder of results; runs go to {agent}[/{setting}]/{game}/{seed}",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--games",
        help="games or sets with commas: Pong,Asterix, paper55, paper6, all60 or atari5; or "
        "MinAtar/Breakout or minatar5",
    )
    where.add_argument(
        "--env",
        help="an environment with discrete actions. In JAX: an id of gymnax, such as CartPole-v1, "
        "or MODULE:FACTORY, your own function that returns (environment, parameters). On the host: "
        "gymnasium:CartPole-v1, or gymnasium:MODULE:ID of one that your module registers",
    )
    add("--seeds", default="1", help="seeds of each game: N for 1 to N, or A-B (default: 1)")
    agents = ", ".join(request.AGENTS)
    add("--agent", help=f"one of {agents} (default: {gin_files.DEFAULT_AGENT})")
    parser.add_gin_options(
        "vectorized_{agent}.gin, vectorized_{agent}_minatar.gin for MinAtar, or "
        "vectorized_{agent}_env.gin for --env",
        "VectorizedLogDQNAgent",
    )
    parser.add_scan_option("VectorizedLogDQNAgent")
    add(
        "--capacity",
        type=shell.at_least(1),
        help="transitions in a run's replay memory; short for "
        "--gin_bindings=VectorizedRunner.replay_capacity=N",
    )
    add(
        "--threads",
        type=shell.whole,
        help="cores to use on a CPU, each for one run (default: all)",
    )
    add(
        "--checkpoint_replay",
        action="store_true",
        help="save the replay memories too, so that runs resume exactly; without it, a resumed run "
        "fills its memory again before it learns",
    )
    return parser


def _chosen(args: argparse.Namespace) -> list[str]:
    """Returns the games, or the one environment, that are trained."""
    if args.env is None:
        return games.select_to_train(args.games.split(","))
    request.check_environment(args.env)
    return [args.env]


def _next_lines(
    args: argparse.Namespace, filmed: pathlib.Path | None, num_iterations: int
) -> list[str]:
    return next_steps.lines(
        "train-vectorized", create_parser(), args, num_iterations,
        filmed=filmed, results_dir=pathlib.Path(args.results_dir), runner="VectorizedRunner",
        env=args.env if ":" in request.own_id(args.env) else None,
    )  # fmt: skip


def _prepare(args: argparse.Namespace, stack: contextlib.ExitStack) -> shell.Training | None:
    shell.check_writable("results_dir", args.results_dir)
    num_threads = threads.chosen(args.threads)
    seeds = shell.seeds(args.seeds)
    chosen = _chosen(args)
    is_atari = args.env is None and not games.are_jax_games(chosen)
    check_extra(None, ("zstandard",))
    written = request.parse(
        args.gin_files, args.gin_bindings, args.agent, chosen[0], args.scan, args.capacity
    )
    num_runs = len(scan.parse(args.scan)) * len(chosen) * len(seeds)
    what = gin_files.named(args.agent, args.gin_files)
    shell.print_start(f"{what} on {games.listing(chosen)} in {args.results_dir}")
    device_memory.limit(os.environ)
    # Several runs are computed side by side, and an operation of a small game is too small to be
    # divided: on one core a run of MinAtar is a third faster.
    one_core_a_run = not is_atari or num_runs > 1
    threads_of_run = 1 if one_core_a_run else num_threads
    threads.limit(threads_of_run)
    with compat.quiet():
        import jax

        from log_dqn.jax import devices
        from log_dqn.vectorized import start, training

        # JAX computes the programs of several threads one after the other if it may return before.
        jax.config.update("jax_cpu_enable_async_dispatch", not one_core_a_run)
    # A run may read what another is still writing to the user's cache; it then compiles it itself.
    warnings.filterwarnings("ignore", "Error reading persistent compilation cache", UserWarning)
    devices.backend()  # Not quietly: it may end the process, or say why it is no GPU.
    # A script may train twice in one process.
    stack.enter_context(compat.own_gin_configuration(keeps_bindings=True))
    gin_files.read(written)
    settings = start.read_settings(written.lines, args.scan)
    runner = settings[0].runner
    planned = start.plan_runs(pathlib.Path(args.results_dir), settings, chosen, seeds)
    environment = settings[0].environment
    filmed = planned[0].folder if environment is None or environment.is_drawn else None
    next_lines = _next_lines(args, filmed, runner.num_iterations)
    with contextlib.ExitStack() as undo:
        job_runs, found = start.claim_unfinished(planned, runner.num_iterations, stack, undo)
        if not job_runs:
            print(*next_lines, sep="\n", flush=True)
            return None
        workload = training.Workload(job_runs, runner, found, args.checkpoint_replay, environment)
        pool = start.create_pool(workload, num_threads, threads_of_run)
        undo.pop_all()

    def train() -> int:
        pool.train()
        if pool.failures:  # Said again: a sweep reads the last line, and others print after it.
            failed = words.counted(len(pool.failures), "run")
            raise shell.RunStopped(f"{failed} failed: {'; '.join(pool.failures)}")
        shell.say(*next_lines)
        return 0

    return train, pool.stop


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    return shell.run(create_parser(), _prepare, argv)


if __name__ == "__main__":
    sys.exit(main())
