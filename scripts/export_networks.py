#!/usr/bin/env python3
"""Copies the networks of the study's finished runs into the package, weights alone.

python scripts/export_networks.py results/study/main/loglin_dqn/gamma=0.5/MinAtar-Asterix/1
"""

import argparse
import pathlib
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from log_dqn import __version__, trained
from log_dqn.cli import shell
from log_dqn.results import runs, scores
from log_dqn.run_folder import checkpoints, configuration, data, layout


def export(run: pathlib.Path) -> pathlib.Path:
    """Copies a run's network; returns its folder in the package.

    Raises:
        ValueError: if it isn't a finished run of `{stage}/{agent}/gamma={gamma}/{game}/{seed}`.
    """
    stage, *parts = run.resolve().parts[-5:]
    num_iterations = configuration.read(run).get("VectorizedRunner.num_iterations")
    newest = layout.newest_checkpoint(run, print, "train it again")
    is_whole = newest is not None and newest[1]["iteration"] + 1 == num_iterations
    if newest is None or not is_whole or not parts[1].startswith("gamma="):
        raise ValueError(
            f"run is {str(run)!r}; it must be a finished one of STAGE/AGENT/gamma=G/GAME/N"
        )
    folder, manifest = newest
    leaves = data.load(folder / checkpoints.WEIGHTS)
    # First the online network's, then the target network's, then Adam's count and two means.
    count, rest = divmod(len(leaves) - 1, 4)
    if rest:
        raise ValueError(f"run is {str(run)!r}; it must be one that Adam has trained")
    returns = runs.returns_of(data.load(folder / checkpoints.LOG), "train")
    description: dict[str, Any] = {
        **{name: manifest[name] for name in ("iteration", "game", "seed")},
        "score": round(scores.final_score(returns), 2),
        "command": f"python scripts/study.py run {stage}",
        "version": __version__,
    }
    out = trained.ROOT.joinpath(*parts)
    shutil.rmtree(out, ignore_errors=True)
    checkpoints.write(
        layout.checkpoints_dir(out),
        manifest["iteration"],
        lambda folder: data.save(folder / checkpoints.WEIGHTS, leaves[:count]),
        description,
    )
    shutil.copy(run / layout.CONFIG, out)
    return out


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", type=pathlib.Path, help="a run's folder")
    args = parser.parse_args(argv)

    def work() -> None:
        for run in args.runs:
            print(export(run))

    return shell.run_once(parser.prog, work)


if __name__ == "__main__":
    sys.exit(main())
