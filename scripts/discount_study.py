#!/usr/bin/env python3
"""The study of discount factors on MinAtar: trains its stages, collects scores, draws the figures.

    python scripts/discount_study.py train main --results_dir=results/minatar
    python scripts/discount_study.py collect main --results_dir=results/minatar
    python scripts/discount_study.py report
    python scripts/discount_study.py gradients --results_dir=results/minatar/epsilon
    python scripts/discount_study.py values --results_dir=results/minatar/scale

A stage is a few commands of `log_dqn.train_vectorized`, which this program prints as it starts
them. What is complete is skipped, and what was stopped is resumed. With `--seeds=2-3` only those
are trained; collected scores are added to those that `docs/data` already has, so that a stage may
be trained on several machines.
"""

import argparse
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from log_dqn.program import shell

DATA = pathlib.Path(__file__).resolve().parents[1] / "docs" / "data"
FIGURES = DATA.parent / "figures"
ITERATIONS, STEPS = 20, 50_000

GAMMAS = "0.5,0.8,0.9,0.96,0.99"
THREE = "MinAtar/Freeway,MinAtar/Breakout,MinAtar/Asterix"


PREFIXES = {"log_dqn": "VectorizedLogDQNAgent", "dqn": "VectorizedDQNAgent"}
"""The agents' classes, as gin names them."""


def _agent(name: str, games: str, *rest: str, gammas: str = GAMMAS, seeds: str = "5") -> list[str]:
    scan = [f"--scan={PREFIXES[name]}.gamma={gammas}"] if gammas else []
    settings = for_agent(name, rest)
    return [f"--agent={name}", f"--games={games}", f"--seeds={seeds}", *scan, *settings]


def for_agent(name: str, arguments: Iterable[str]) -> list[str]:
    """Returns arguments in which the class of an agent stands for AGENT."""
    return [argument.replace("AGENT", PREFIXES[name]) for argument in arguments]


def bindings(*lines: str) -> list[str]:
    """Returns the arguments for some bindings."""
    return [f"--gin_bindings={line}" for line in lines]


_PAPERS = bindings(
    "AGENT.optimizer='rmsprop_tf'", "AGENT.beta_log=0.0025", "AGENT.beta_reg=0.1", "AGENT.c=0.5"
)
# LogDQN's gin file has what tuning chose for it.
_TUNED = bindings("AGENT.learning_rate=0.0005")
_SHORT_ITERATIONS = 8
_SHORT = bindings(f"VectorizedRunner.num_iterations={_SHORT_ITERATIONS}")
_CATCH = bindings(
    f"VectorizedRunner.num_iterations={_SHORT_ITERATIONS}", "VectorizedRunner.training_steps=10000",
    "AGENT.epsilon_decay_period=20000",
)  # fmt: skip
_TUNING_SEEDS, _BREAKOUT_SEEDS = "6-8", "7-9"
STAGES = {
    # Seeds that are not the study's, 400,000 steps. Tried later, as the others leave out what
    # happens at 0.5: LogDQN's last three kinds; DQN at 0.5, with 0.002 and with another epsilon.
    "tuning": [
        *(
            _agent(
                "log_dqn", games, *_SHORT, f"--scan=AGENT.beta_log={beta_log}",
                f"--scan=AGENT.beta_reg={beta_reg}", f"--scan=AGENT.c={c}",
                gammas=gammas, seeds=_TUNING_SEEDS,
            )
            for beta_log, beta_reg, c, games, gammas in (
                ("0.00025,0.001", 1.0, 2.0, THREE, "0.8,0.99"),
                ("0.00025,0.001,0.0025", 0.1, 0.5, THREE, "0.8,0.99"),
                (0.001, 1.0, 0.5, THREE, "0.8,0.99"),
                (0.0025, 0.1, 0.5, THREE, "0.5"),
                ("0.001,0.0025", 0.1, 2.0, "MinAtar/Freeway,MinAtar/Asterix", "0.5,0.99"),
                (0.0025, 0.3, 1.0, THREE, "0.5,0.8,0.99"),
            )
        ),
        _agent(
            "dqn", THREE, *_SHORT, "--scan=AGENT.learning_rate=0.00012,0.00025,0.0005,0.001,0.002",
            gammas="0.5,0.8,0.99", seeds=_TUNING_SEEDS,
        ),
        _agent(
            "dqn", THREE, *_SHORT, "--scan=AGENT.learning_rate=6.25e-05,0.00025,0.0005",
            "--scan=adam.epsilon=1e-08", gammas="0.5,0.8,0.99", seeds=_TUNING_SEEDS,
        ),
    ],
    # What else was tried for LogDQN and not taken, 400,000 steps.
    "others": [
        _agent(
            "log_dqn", games, *_SHORT, f"--scan=AGENT.beta_log={beta_log}",
            f"--scan=AGENT.beta_reg={beta_reg}", f"--scan=AGENT.c={c}", "--scan=adam.epsilon=1e-08",
            *rest, gammas=gamma, seeds="6-6",
        )
        for beta_log, beta_reg, c, games, gamma, *rest in (
            ("0.00025,0.001", 0.1, 0.5, THREE, "0.8"),
            (6e-05, 0.1, "0.5,2.0", "MinAtar/Freeway", "0.99"),
            ("0.00025,0.001", 0.1, 2.0, "MinAtar/Asterix", "0.99", "--scan=AGENT.k=400"),
            (0.0005, 0.1, 5.0, "MinAtar/Asterix", "0.99", "--scan=AGENT.k=400"),
            (0.0005, 1.0, 2.0, "MinAtar/Asterix", "0.99", "--scan=AGENT.k=400"),
        )
    ],
    # LogDQN with the settings that were chosen first, by what they do at 0.8 and 0.99.
    "first": [
        _agent(
            "log_dqn", "minatar5",
            *bindings("AGENT.beta_log=0.001", "AGENT.beta_reg=1.0", "AGENT.c=2.0"), seeds="1",
        )
    ],
    # A policy that never learns. 400,000 steps.
    "random": [
        _agent(
            "dqn", "minatar5", *_SHORT,
            *bindings("AGENT.epsilon_train=1.0", "AGENT.min_replay_history=1000000"), gammas="",
        )
    ],
    "main": [_agent("log_dqn", "minatar5"), _agent("dqn", "minatar5", *_TUNED)],
    # The paper's settings, and the Atari baseline's optimizer.
    "controls": [
        _agent("log_dqn", THREE, *_PAPERS),
        _agent(
            "dqn", THREE, *bindings("AGENT.optimizer='rmsprop_tf'", "AGENT.learning_rate=0.00025")
        ),
    ],
    # Is the epsilon of RMSProp what stops LogDQN at high discount factors? 400,000 steps.
    "epsilon": [
        _agent(
            "log_dqn", "MinAtar/Freeway,MinAtar/Asterix", *_PAPERS, *_SHORT,
            f"--scan=rmsprop_tf.epsilon={epsilon}", gammas="0.96,0.99", seeds="1",
        )
        for epsilon in ("1e-05", "1e-07", "1e-09", "1e-11")
    ],
    # How c and the step-size decide whether values stay within their bound. 400,000 steps.
    "scale": [
        _agent(
            "log_dqn", THREE, *_SHORT, "--scan=AGENT.beta_log=0.00025,0.001",
            "--scan=AGENT.beta_reg=0.1", "--scan=AGENT.c=0.5,2.0", "--scan=adam.epsilon=1e-08",
            gammas="0.5,0.99", seeds="6-6",
        )
    ],
    # The stage before with beta_reg 1: averages in the log space alone. 400,000 steps.
    "averaging": [
        _agent(
            "log_dqn", "MinAtar/Freeway,MinAtar/Breakout", *_SHORT, "--scan=AGENT.beta_log=0.001",
            "--scan=AGENT.beta_reg=1.0", "--scan=AGENT.c=2.0", "--scan=adam.epsilon=1e-08",
            gammas="0.5", seeds="6-6",
        )
    ],
    # Why LogDQN trails DQN on Breakout at 0.8: one setting is another at a time, and the paper's
    # settings. 400,000 steps.
    "breakout": [
        *(
            _agent(
                "log_dqn", "MinAtar/Breakout", *_SHORT, *map("--scan=AGENT.{}".format, scanned),
                gammas="0.8", seeds=_BREAKOUT_SEEDS,
            )
            for scanned in (
                [], ["k=10,20,50"], ["c=0.5,2.0"], ["beta_reg=0.1,1.0"], ["q_init_plus=0.1"],
                ["minus_head=False"],
            )
        ),
        _agent("dqn", "MinAtar/Breakout", *_SHORT, *_TUNED, gammas="0.8", seeds=_BREAKOUT_SEEDS),
        *(
            _agent(
                "log_dqn", "MinAtar/Breakout", *_PAPERS, *_SHORT,
                f"--scan=rmsprop_tf.epsilon={epsilon}", gammas="0.8", seeds=_BREAKOUT_SEEDS,
            )
            for epsilon in ("1e-05", "1e-09")
        ),
    ],
    # A floor gamma^k of about 0.015, near that of k = 100 at 0.96; at 0.5 and 0.8 also one between.
    # 400,000 steps.
    "floor": [
        _agent(
            "log_dqn", "minatar5", *_SHORT, f"--scan=AGENT.k={k}", gammas=gamma, seeds="3"
        )
        for gamma, k in (("0.5", "6,20"), ("0.8", "20,50"), ("0.9", "40"))
    ],
    # DQN with the settings of MinAtar's authors, with the step-size that they give and with about
    # that which is best on the game in their figures. Their RMSProp, PyTorch's, divides by
    # sqrt(v) + 0.01, this one by sqrt(v + 0.0001): steps are the same where v is far from 0.0001,
    # and at most sqrt(2) times as large.
    "calibration": [
        _agent(
            "dqn", games,
            *bindings(
                "AGENT.optimizer='rmsprop_tf'", "AGENT.learning_rate=0.00025", "AGENT.gamma=0.99",
                "AGENT.update_period=1", "AGENT.min_replay_history=5000",
                "AGENT.epsilon_train=0.1", "AGENT.epsilon_decay_period=100000",
                "VectorizedRunner.network='minatar'", "rmsprop_tf.epsilon=0.0001",
            ),
            *scanned, gammas="",
        )
        for games, *scanned in (
            ("MinAtar/Breakout,MinAtar/Freeway",),
            ("MinAtar/Breakout", "--scan=AGENT.learning_rate=0.002"),
            ("MinAtar/Freeway", "--scan=AGENT.learning_rate=0.0005"),
        )
    ],
    # With and without the minus head. 80,000 steps.
    "signs": [
        *(
            _agent("log_dqn", "bsuite/Catch", *_CATCH, f"--scan=AGENT.minus_head={minus_head}")
            for minus_head in (True, False)
        ),
        _agent("dqn", "bsuite/Catch", *_CATCH, *_TUNED),
    ],
}  # fmt: skip
"""Arguments of the commands of each stage."""


def _folder(text: str) -> pathlib.Path:
    if not text:  # Which `pathlib` takes for the current folder.
        raise argparse.ArgumentTypeError("'' is not the name of a folder")
    return pathlib.Path(text)


def _notify(line: str) -> None:
    print(f"discount_study.py: {line}", file=sys.stderr)


def train(stage: str, results_dir: pathlib.Path, seeds: str | None) -> int:
    """Runs a stage's commands one after the other; returns the first exit status that is not 0."""
    for arguments in STAGES[stage]:
        command = ["-m", "log_dqn.train_vectorized", f"--results_dir={results_dir / stage}"]
        command += [
            f"--seeds={seeds}"
            if seeds is not None and argument.startswith("--seeds=")
            else argument
            for argument in arguments
        ]
        print(shlex.join(["python", *command]), flush=True)
        status = subprocess.run([sys.executable, *command], check=False).returncode
        if status:
            return status
    return 0


def _tables() -> dict[pathlib.Path, Mapping[str, type]]:
    """Returns the files of scores and of curves, with their columns."""
    from log_dqn.results import discount_study

    return {
        DATA / "minatar_scores.csv": discount_study.SCORES,
        DATA / "minatar_curves.csv": discount_study.CURVES,
    }


def collect(stage: str, results_dir: pathlib.Path) -> None:
    """Adds the scores and the curves of a stage's finished runs to `docs/data`."""
    from log_dqn.results import discount_study
    from log_dqn.run_folder import checkpoints

    is_short = all(set(_SHORT) <= set(arguments) for arguments in STAGES[stage])
    iterations = _SHORT_ITERATIONS if is_short else ITERATIONS
    tables = discount_study.collect(results_dir / stage, stage, iterations, _notify)
    DATA.mkdir(parents=True, exist_ok=True)
    texts = {}
    for (path, columns), table in zip(_tables().items(), tables, strict=True):
        if path.exists():
            table = discount_study.merge(discount_study.read_table(path, columns), table)
        texts[path] = table.to_csv(index=False, float_format="%.6g")
    for path, text in texts.items():
        checkpoints.replace_file(path, text.encode())
        print(path)


def gradients(results_dir: pathlib.Path) -> None:
    """Prints the gradients of finished runs beside RMSProp's epsilon."""
    from log_dqn.results import discount_study

    table = discount_study.gradients(results_dir, _notify)
    print(table.to_string(index=False, float_format="%.2g"))


def values(results_dir: pathlib.Path) -> None:
    """Prints the plus head's values at the end of runs beside their scores."""
    from log_dqn.results import discount_study

    table = discount_study.values(results_dir, _notify)
    print(table.to_string(index=False, float_format="%.3g"))


def report(folder: str) -> None:
    """Draws the figures of the main stage from `docs/data`, and prints the tables of all stages."""
    shell.check_writable("out", folder)
    out = pathlib.Path(folder)
    from log_dqn.results import discount_study

    tables = [discount_study.read_table(path, columns) for path, columns in _tables().items()]
    discount_study.check_curves(*tables)
    all_scores = tables[0]
    scores, curves = (table[table["stage"] == "main"] for table in tables)
    scores, games = discount_study.whole_games(scores)
    if games:
        _notify(f"runs of {', '.join(games)} are missing; left out")
    scores, seeds = discount_study.whole_seeds(scores)
    if seeds:
        _notify(f"runs of seeds {seeds} are missing; left out")
    missing = [agent for agent in discount_study.LOOKS if agent not in set(scores["agent"])]
    if missing:
        raise ValueError(
            f"{DATA} has no whole seed of {' and '.join(missing)} in the stage main; train and "
            "collect it first"
        )
    curves = curves[curves["seed"].isin(scores["seed"]) & curves["game"].isin(scores["game"])]
    by_gamma = discount_study.by_gamma(scores)
    figures = {
        "minatar_gammas": discount_study.draw_gammas(by_gamma),
        "minatar_curves": discount_study.draw_curves(curves, STEPS),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(out / f"{name}.png", dpi=110)
        print(out / f"{name}.png")
    print(discount_study.as_markdown(by_gamma))
    print(discount_study.as_markdown(discount_study.claims(scores), "game"))
    for stage, of_stage in all_scores[all_scores["stage"] != "main"].groupby("stage"):
        if stage == "floor":
            of_stage = discount_study.beside(of_stage, curves, _SHORT_ITERATIONS)
            print(discount_study.means(of_stage).to_string(float_format="%.3g"), end="\n\n")
        if stage == "controls":
            whole, _ = discount_study.whole_games(of_stage)
            whole, _ = discount_study.whole_seeds(whole)
            if set(whole["agent"]) == set(discount_study.LOOKS):
                print(discount_study.as_markdown(discount_study.claims(whole), "game"))
            in_main = scores[scores["game"].isin(of_stage["game"])]
            of_stage = discount_study.merge(of_stage, in_main)
        print(discount_study.as_markdown(discount_study.by_setting(of_stage)))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program.

    Args:
        argv: arguments without the program's name; None for the process's.

    Returns:
        The exit status.
    """
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("train", "collect"):
        command = commands.add_parser(name)
        command.add_argument("stage", choices=STAGES)
        command.add_argument("--results_dir", type=_folder, required=True)
        if name == "train":
            command.add_argument("--seeds", help="a count or a range, such as 2-3")
    for name in ("gradients", "values"):
        command = commands.add_parser(name)
        command.add_argument("--results_dir", type=_folder, required=True)
    commands.add_parser("report").add_argument("--out", default=str(FIGURES))
    args = parser.parse_args(argv)
    work: dict[str, Callable[[], int | None]] = {
        "train": lambda: train(args.stage, args.results_dir, args.seeds),
        "collect": lambda: collect(args.stage, args.results_dir),
        "gradients": lambda: gradients(args.results_dir),
        "values": lambda: values(args.results_dir),
        "report": lambda: report(args.out),
    }
    return shell.run_once(parser.prog, work[args.command])


if __name__ == "__main__":
    sys.exit(main())
