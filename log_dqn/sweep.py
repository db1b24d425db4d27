"""Trains many agents on many games with many seeds: `python -m log_dqn.sweep --help`."""

import argparse
import contextlib
import multiprocessing
import os
import pathlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence

from log_dqn import checks, games, scan
from log_dqn.cli import next_steps, shell
from log_dqn.run_folder import lock
from log_dqn.sweeps import check, plan


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    parser = shell.Parser(
        prog=shell.started_as("sweep"),
        description="Trains every agent on every game with every seed, as many runs at a time as "
        "fit on this machine or a Ray cluster. The same command resumes it.",
    )
    add = parser.add_argument
    add("--results_dir", required=True, help="folder of runs, {agent}[/{setting}]/{game}/{seed}")
    add(
        "--agents",
        required=True,
        type=_names,
        help="agents with commas (see log-dqn train); --scan is for those that have the parameter",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--games",
        type=_names,
        help="games or sets with commas: Pong, paper55, paper6, all60, atari5; or minatar5",
    )
    where.add_argument(
        "--env", type=_names, help="environments with commas, see log-dqn train --help or, with "
        "--vectorized, log-dqn train-vectorized --help",
    )  # fmt: skip
    add("--seeds", default="1", help="seeds of each game: N for 1 to N, or A-B (default: 1)")
    parser.add_scan_option("LogDQNAgent")
    parser.add_gin_options("each agent's own", "LogDQNAgent")
    add(
        "--cpus_per_run",
        type=shell.finite(float, 0.01, "number of CPUs, at least 0.01"),
        default=1,
        help="CPUs of a run, and its threads (default: %(default)s)",
    )
    add(
        "--gpus_per_run",
        type=shell.finite(float, 0, "number of GPUs, 0 or more"),
        help="GPUs of a run: 0.25 puts four runs on each (default: 0.25 if there are GPUs, else 0)",
    )
    add(
        "--vectorized",
        action="store_true",
        help="train all seeds and settings of a game in one process of log-dqn train-vectorized, "
        "which gets --cpus_per_run and --gpus_per_run (default: 1 GPU if there are GPUs)",
    )
    add(
        "--games_per_job",
        type=shell.at_least(1),
        default=1,
        help="with --vectorized and --games, games of a process (default: %(default)s)",
    )
    add("--ray_address", help="HOST:PORT of a Ray cluster, or auto (default: this machine alone)")
    add(
        "--max_failures",
        type=shell.at_least(0),
        default=3,
        help="how often a run that dies is started again (default: %(default)s)",
    )
    return parser


@contextlib.contextmanager
def _checking(options: check.SweepOptions) -> Iterator[Callable[[], list[plan.AgentPlan]]]:
    """Starts the check of all configurations in a process of its own; gives what waits for it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=check.answer, args=(theirs, options), daemon=True)
    # Ctrl-C, which reaches both processes, is the sweep's to answer; this one inherits that.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    process.start()
    signal.signal(signal.SIGINT, before)
    theirs.close()

    def wait() -> list[plan.AgentPlan]:
        try:
            answer = ours.recv()
        except EOFError:
            process.join()
            raise ValueError(
                f"the check of the configuration ended with {process.exitcode}"
            ) from None
        if isinstance(answer, ValueError):
            raise answer
        return answer

    try:
        yield wait
    finally:
        process.kill()
        process.join()


@contextlib.contextmanager
def _ray_folder(results_dir: pathlib.Path) -> Iterator[str]:
    """Makes a hidden folder for Ray's own files, which all nodes must see, and removes it.

    Folders of sweeps that were killed are removed as well.
    """
    with contextlib.ExitStack() as undo, contextlib.ExitStack() as stack:
        with lock.writing("results_dir", str(results_dir)):
            lock.make(results_dir, undo)
            for left in results_dir.glob(".sweep-*"):
                with contextlib.suppress(ValueError, OSError), lock.hold(left):
                    shutil.rmtree(left)
            # Locked before it has the name by which others find and remove it.
            new = pathlib.Path(tempfile.mkdtemp(prefix=".new-sweep-", dir=results_dir))
            folder = new.with_name(new.name.replace("new-", ""))
            for path in (folder, new):
                stack.callback(shutil.rmtree, path, ignore_errors=True)
            stack.enter_context(lock.hold(new))
            new.rename(folder)
        undo.pop_all()
        yield str(folder)


def _last_lines(
    args: argparse.Namespace, results_dir: pathlib.Path, first: plan.PlannedRun, has_failures: bool
) -> list[str]:
    where = f"Results are in {results_dir}; tensorboard --logdir={results_dir} shows them"
    if has_failures:
        return [where]
    lines = next_steps.lines(
        "sweep", create_parser(), args, first.num_iterations,
        filmed=None if args.env else first.folder, results_dir=results_dir,
        runner="VectorizedRunner" if args.vectorized else "Runner",
    )  # fmt: skip
    return [where, *lines]


def _prepare(args: argparse.Namespace, stack: contextlib.ExitStack) -> shell.Training:
    shell.check_writable("results_dir", args.results_dir)
    checks.check_extra("sweep", ("ray", "rich"))
    checks.check("agents", "", bool(args.agents), "one agent or more")
    if args.env is None:
        chosen = games.select_to_train(args.games, catch=args.vectorized)
    else:
        checks.check("env", "", bool(args.env), "an environment or more")
        for name in args.env:
            checks.check("env", name, name not in games.KNOWN, "no game: --games takes these")
        chosen = args.env
    seeds = shell.seeds(args.seeds)
    divides = args.vectorized and args.env is None
    allowed = "left out: it is for --vectorized with --games"
    checks.check("games_per_job", args.games_per_job, divides or args.games_per_job == 1, allowed)
    of_minatar = [game for game in chosen if game in games.MINATAR5]
    if of_minatar and not args.vectorized:
        checks.check_extra("minatar", ("minatar",), of_minatar[0])
    scan.parse(args.scan)
    check.check_machines(args.ray_address, args.cpus_per_run, args.gpus_per_run)
    # For the working directories of other processes.
    args.gin_files = [os.path.abspath(n) if os.path.isfile(n) else n for n in args.gin_files]
    results_dir = pathlib.Path(os.path.abspath(args.results_dir))
    options = (args.agents, args.scan, args.gin_files, args.gin_bindings)
    asked = check.SweepOptions(*options, chosen, args.vectorized)
    check.check_requests(asked)
    shell.print_start(
        f"a sweep of {games.listing(args.agents)} on {games.listing(chosen)} in {results_dir}"
    )
    checked = stack.enter_context(_checking(asked))
    from log_dqn.sweeps import board, cluster, tuning

    cluster.connect(args.ray_address)
    stack.callback(cluster.disconnect)
    resources = cluster.resources(
        args.cpus_per_run, args.gpus_per_run, default_gpus=1 if args.vectorized else 0.25
    )
    planned = plan.Plan(results_dir, checked(), chosen, seeds, args.gin_files)
    jobs = planned.vectorized_jobs(args.games_per_job) if args.vectorized else planned.single_jobs()
    to_do = [job for job in jobs if not all(map(plan.is_complete, job.runs))]
    skipped = sum(len(job.runs) for job in jobs) - sum(len(job.runs) for job in to_do)
    shown = board.Board(to_do, skipped, sys.stderr)
    folder = stack.enter_context(_ray_folder(results_dir)) if to_do else ""

    def train() -> int:
        signals: list[int] = []
        if to_do:
            try:
                with shown:
                    signals = tuning.run(to_do, resources, args.max_failures, folder, shown)
            except OSError as error:
                why = f"stopped in {results_dir}: {error}; the same command resumes"
                raise shell.RunStopped(why) from error
        shell.say(*shown.summary())
        if signals:
            raise shell.stopped_by(signals[0])
        shell.say(*_last_lines(args, results_dir, jobs[0].runs[0], bool(shown.failures())))
        return 1 if shown.failures() else 0

    return train, lambda number: sys.exit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status, which is 1 if a run failed."""
    return shell.run(create_parser(), _prepare, argv)


if __name__ == "__main__":
    sys.exit(main())
