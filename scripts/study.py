#!/usr/bin/env python3
"""The studies behind the pages: trains a stage, collects its runs into docs/data, reports.

    python scripts/study.py run mechanism --results_dir=results/study
    python scripts/study.py collect mechanism --results_dir=results/study
    python scripts/study.py report mechanism

A stage is some rows of the table scripts/studies/stages.csv. Without --seeds, `run` trains those
of a stage's runs that docs/data lacks, seed by seed; what was stopped is resumed. `collect` adds
finished runs to those of docs/data. `report` prints tables, with 95% t intervals over seeds.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Sequence

from studies.stages import STAGES, is_atari

from log_dqn.checks import check
from log_dqn.cli import shell
from log_dqn.results.request import BASELINES_HELP, DOPAMINE

FIGURES = pathlib.Path(__file__).resolve().parents[1] / "docs" / "figures"
PUBLISHED = "early_order"
"""A report on the published runs alone."""


def _notify(line: str) -> None:
    print(f"study.py: {line}", file=sys.stderr)


def run(stage: str, seeds: str | None, games: str | None, results_dir: pathlib.Path) -> int:
    """Runs the commands of a stage; returns the exit status of the first that fails, or 0."""
    from studies import data

    if seeds is not None:
        shell.seeds(seeds)
    jobs = STAGES[stage]
    known = sorted({game for job in jobs for game in job.chosen()})
    only = known if games is None else games.split(",")
    check("games", games, set(only) <= set(known), f"some of {','.join(known)}")
    todo = [(seeds, job) for job in jobs] if seeds else list(data.missing(stage))
    if not todo:
        print(f"docs/data has all runs of {stage}; --seeds={jobs[0].seeds} trains them again")
    for some, job in todo:
        own = job.on(only)
        if own.games and (status := _train(own.command(some, results_dir))):
            return status
    return 0


def _train(words: Sequence[str]) -> int:
    """Runs `log-dqn`, which saves its runs if a signal stops it; returns a shell's exit status."""
    command = [sys.executable, "-m", "log_dqn.commands.main", *words]
    # For jumanji_games, behind what the user has there, such as other ROMs.
    paths = os.environ.get("PYTHONPATH"), str(pathlib.Path(__file__).with_name("studies"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with subprocess.Popen(command, env=environment) as process:
        # Ctrl-C reaches the process by itself.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
        status = process.wait()
    return status if status >= 0 else 128 - status  # Negative: the signal that killed it.


def report(chosen: str, source: str, folder: str) -> None:
    """Prints the tables of a stage or of all, and draws the figures of those that have some."""
    from studies import atari, data, decisions, early_order, equal_optimizers, minatar

    shell.check_writable("out", folder)
    out, stages = pathlib.Path(folder), [chosen]
    if chosen == "all":
        there = {*data.read("main")["stage"], *data.read("beyond")["stage"]}
        stages = [*(stage for stage in STAGES if stage in there), "atari", PUBLISHED]
    for stage in stages:
        if stage == PUBLISHED:
            print(early_order.report(source))
        elif is_atari(stage):
            print(equal_optimizers.decide(*atari.report(source, out)))
        elif stage == "beyond_choice":
            print(decisions.choice())
        else:
            scores = minatar.report(stage, out)
            if stage == "beyond":
                print(decisions.equal_discounts(scores))
                print(decisions.best_discounts(scores))
                rising = ", ".join(decisions.still_rising(data.curves_of(stage))) or "none"
                print(f"Continued to 1,000,000 agent steps, since curves rose: {rising}.\n")
            if stage in decisions.DECISIONS:
                print(decisions.decide(stage, scores))


def collect(stage: str, results_dir: pathlib.Path) -> None:
    """Adds a stage's finished runs to `docs/data`."""
    from studies import data

    print(data.collect(stage, results_dir, _notify))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    programs = parser.add_subparsers(required=True)
    for work in (run, collect, report):
        programs.add_parser(work.__name__).set_defaults(work=work)
    of, default = programs.choices, pathlib.Path("results/study")
    for name in ("run", "collect"):
        of[name].add_argument("stage", choices=STAGES, metavar="stage", help=", ".join(STAGES))
        of[name].add_argument("--results_dir", type=shell.folder, default=default)
    add = of["run"].add_argument
    add("--seeds", help="N or A-B (default: of the runs that docs/data lacks)")
    add("--games", help="games of the stage with commas (default: all)")
    add = of["report"].add_argument
    stages = (*STAGES, PUBLISHED, "all")
    add("chosen", nargs="?", choices=stages, metavar="stage", default="all")
    add("--baselines", dest="source", default=DOPAMINE, help=BASELINES_HELP)
    add("--out", dest="folder", default=str(FIGURES), help="folder (default: %(default)s)")
    given = vars(parser.parse_args(argv))
    return shell.run_once(parser.prog, lambda: given.pop("work")(**given))


if __name__ == "__main__":
    sys.exit(main())
