#!/usr/bin/env python3
"""The study of discount factors on MinAtar: collects what its stages trained, draws the figures.

    bash scripts/minatar_study/main.sh
    python scripts/discount_study.py collect main --results_dir=results/study
    python scripts/discount_study.py report
    python scripts/discount_study.py gradients --results_dir=results/study/epsilon
    python scripts/discount_study.py values --results_dir=results/study/scale

A stage is a shell script of a few commands of `log-dqn train-vectorized`, which may be given other
flags: `--seeds=2-3`, say. What is complete is skipped, and what was stopped is resumed. Collected
scores are added to those that `docs/data` already has, so that a stage may be trained on several
machines.
"""

import argparse
import itertools
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import png_file
from minatar_study import analysis, inspection, tables
from minatar_study.figures import draw_curves

from log_dqn.program import shell
from log_dqn.results import discount, figures
from log_dqn.run_folder import checkpoints

DATA = pathlib.Path(__file__).resolve().parents[1] / "docs" / "data"
FIGURES = DATA.parent / "figures"
STEPS = 50_000
"""Agent steps of an iteration."""

STAGES = sorted(path.stem for path in pathlib.Path(tables.__file__).parent.glob("*.sh"))
"""A stage's runs lie in a folder of its name in `--results_dir`."""

CLAIMED = ("controls", "confirm", "confirm_best")
"""The stages that test the claims, beside the main one; an agent has its best setting there."""


def _notify(line: str) -> None:
    print(f"discount_study.py: {line}", file=sys.stderr)


def _tables() -> dict[pathlib.Path, Mapping[str, type]]:
    """Returns the files of scores and of curves, with their columns."""
    return {
        DATA / "minatar_scores.csv": tables.SCORES,
        DATA / "minatar_curves.csv": tables.CURVES,
    }


def collect(stage: str, results_dir: pathlib.Path) -> None:
    """Adds the scores and the curves of a stage's finished runs to `docs/data`."""
    found = tables.collect(results_dir / stage, stage, _notify)
    DATA.mkdir(parents=True, exist_ok=True)
    texts = {}
    for (path, columns), table in zip(_tables().items(), found, strict=True):
        if path.exists():
            table = tables.merge(tables.read_table(path, columns), table)
        texts[path] = table.to_csv(index=False, float_format="%.6g")
    for path, text in texts.items():
        checkpoints.replace_file(path, text.encode())
        print(path)


def report(folder: str) -> None:
    """Draws the figures of the main stage from `docs/data`, and prints the tables of all stages."""
    shell.check_writable("out", folder)
    out = pathlib.Path(folder)
    all_scores, curves = (tables.read_table(path, columns) for path, columns in _tables().items())
    tables.check_curves(all_scores, curves)
    short = curves[curves["stage"] == "floor"]["iteration"].max() + 1
    curves = curves[curves["stage"] == "main"]
    scores = _whole(all_scores, "main")
    agents = tables.present(scores)
    if len(agents) < 2:
        raise ValueError(
            f"{DATA} has no whole seed of two agents in the stage main, but of "
            f"{' and '.join(agents) or 'none'}; train and collect it first"
        )
    curves = curves.merge(scores[tables.RUN])
    by_gamma = discount.by_gamma(scores)
    drawn = {
        "minatar_gammas": figures.gamma_panels(by_gamma, tables.AGENTS),
        "minatar_curves": draw_curves(curves, STEPS),
    }
    for name, figure in drawn.items():
        png_file.write(figure, out / f"{name}.png")
        print(out / f"{name}.png")
    print(analysis.as_markdown(by_gamma))
    _print_claims(scores)
    for stage, of_stage in all_scores[all_scores["stage"] != "main"].groupby("stage"):
        if stage == "floor":
            of_stage = tables.beside(of_stage, curves, short)
            print(analysis.means(of_stage).to_string(float_format="%.3g"), end="\n\n")
        if stage in CLAIMED:
            print(f"The stage {stage}:\n")
            _print_claims(_whole(analysis.best_settings(of_stage), stage))
        if stage == "controls":
            in_main = scores[scores["game"].isin(of_stage["game"])]
            of_stage = tables.merge(of_stage, in_main)
        print(analysis.as_markdown(analysis.by_setting(of_stage)))


def _whole(all_scores: pd.DataFrame, stage: str) -> pd.DataFrame:
    """Returns what is whole of a stage, and says what is left out."""
    scores, left_out = tables.whole(all_scores[all_scores["stage"] == stage])
    for what in left_out:
        _notify(f"{stage}: runs of {what} are missing; left out")
    return scores


def _print_claims(scores: pd.DataFrame) -> None:
    """Prints the claims of each two agents."""
    for agent, other in itertools.combinations(tables.present(scores), 2):
        print(f"{agent} less {other}:\n")
        print(analysis.as_markdown(analysis.claims(scores, agent, other), "game", ".2f"))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("collect", "gradients", "values"):
        command = commands.add_parser(name)
        if name == "collect":
            command.add_argument("stage", choices=STAGES, metavar="stage", help=", ".join(STAGES))
        command.add_argument("--results_dir", type=shell.folder, required=True)
    commands.add_parser("report").add_argument("--out", default=str(FIGURES))
    args = parser.parse_args(argv)

    def show(table: pd.DataFrame, digits: int) -> None:
        print(table.to_string(index=False, float_format=f"%.{digits}g"))

    def show_values() -> None:
        found = inspection.values(args.results_dir, _notify)
        show(found, 3)
        print(inspection.told(found))

    work: dict[str, Callable[[], int | None]] = {
        "collect": lambda: collect(args.stage, args.results_dir),
        "gradients": lambda: show(inspection.gradients(args.results_dir, _notify), 2),
        "values": show_values,
        "report": lambda: report(args.out),
    }
    return shell.run_once(parser.prog, work[args.command])


if __name__ == "__main__":
    sys.exit(main())
