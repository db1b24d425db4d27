"""Plays episodes with a trained agent and says its mean return: `log-dqn evaluate`."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence

from log_dqn.checks import LAST_SEED, check_count, check_rate
from log_dqn.cli import shell, words
from log_dqn.commands import which_run


def create_parser() -> shell.Parser:
    """Returns the parser of the command line."""
    parser = shell.Parser(
        prog=shell.started_as("evaluate"),
        description="Measures the mean return of a trained agent, with its 95% interval over "
        "episodes (Student's t). The agent learns nothing meanwhile.",
    )
    which_run.add_options(parser)
    add = parser.add_argument
    add(
        "--episodes",
        type=shell.at_least(1),
        default=30,
        help="number of episodes (default: %(default)s)",
    )
    add("--seed", type=shell.whole, default=0, help="seed of the first episode (default: 0)")
    add(
        "--epsilon",
        type=shell.real,
        help="exploration rate (default: the agent's in evaluation phases)",
    )
    add(
        "--max_steps", type=shell.at_least(1), default=27_000,
        help="agent steps after which an episode is cut off (default: %(default)s, as on Atari)",
    )  # fmt: skip
    add("--json", action="store_true", help="print one JSON object, and nothing else")
    return parser


def _evaluate(flags: argparse.Namespace) -> None:
    run, epsilon = which_run.folder(flags), flags.epsilon
    check_count("episodes", flags.episodes, 1, LAST_SEED + 1)
    check_count("seed", flags.seed, 0, LAST_SEED + 1 - flags.episodes)
    if epsilon is not None:
        check_rate("epsilon", epsilon)
    spoken = sys.stderr if flags.json else sys.stdout
    shell.print_start(f"{words.counted(flags.episodes, 'episode')} of {run}", spoken)
    (agent,) = which_run.load([run], flags.seed, flags.env, on_cpu=False)
    from tqdm import tqdm

    from log_dqn.film import evaluation

    agent = agent if epsilon is None else dataclasses.replace(agent, epsilon=epsilon)
    seeds = range(flags.seed, flags.seed + flags.episodes)
    with tqdm(total=flags.episodes, unit=" episodes", disable=None) as bar:
        found = evaluation.evaluate(agent, seeds, flags.max_steps, bar.update)
    mean, interval = found.returns.mean(), found.interval
    if flags.json:
        numbers = {
            "run": str(run), "game": agent.game_name, "iterations": agent.iterations,
            "seed": flags.seed, "epsilon": agent.epsilon, "mean_return": mean,
            "interval": interval, "returns": found.returns.tolist(),
            "lengths": found.lengths.tolist(),
        }  # fmt: skip
        print(json.dumps(numbers))
        return
    within = f", 95% interval {interval[0]:g} to {interval[1]:g}" if interval else ""
    lengths = found.lengths
    print(
        f"{agent.game_name}, epsilon {agent.epsilon:g}: mean return {mean:g}{within}\n"
        f"Lengths: mean {lengths.mean():g}, {lengths.min()} to {lengths.max()} agent steps"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluates the agent; returns the exit status."""
    return shell.run_command(create_parser(), _evaluate, arguments)
