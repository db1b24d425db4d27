#!/usr/bin/env python3
"""How early the published Atari runs show which agent ends ahead; prints two tables in Markdown.

    python scripts/early_order.py

An agent's return at some agent steps is that of the iteration that ends there, the mean over
seeds; at the end it is the mean of the last tenth of the iterations.
"""

import argparse
import itertools
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from atari_study import PUBLISHED_STEPS

from log_dqn.program import shell, words
from log_dqn.results.request import DOPAMINE, DQN

STEPS = (500_000, 1_000_000, 2_000_000, 5_000_000, 12_500_000, 25_000_000)
"""Agent steps at which the published agents are compared: iterations end there."""


def leads(runs: Iterable[Any]) -> Any:
    """Returns how far each agent is ahead of each other one on each game.

    Args:
        runs: learning curves under the protocol of the baselines.

    Returns:
        A table with `game`, `agent`, `other`, a column for each of `STEPS`, and `end`, in points
        per episode; two agents have two rows on a game.
    """
    import pandas as pd

    from log_dqn.results import baselines, scores

    rows = [
        {
            "game": run.game,
            "agent": baselines.named(run.agent),
            **{steps: run.returns[steps // PUBLISHED_STEPS - 1] for steps in STEPS},
            "end": scores.final_score(run.returns),
        }
        for run in runs
    ]
    means = pd.DataFrame(rows).groupby(["game", "agent"]).mean()
    pairs = [
        {"game": game, "agent": agent, "other": other, **(of.loc[agent] - of.loc[other])}
        for game, of_game in means.groupby("game")
        for of in [of_game.droplevel("game")]
        for agent, other in itertools.permutations(of.index, 2)
    ]
    return pd.DataFrame(pairs)


def as_at_the_end(pairs: Any) -> str:
    """Returns in which part of the pairs the agent ahead at some steps ends ahead, as Markdown.

    The 95% intervals are the bootstrap's over games.
    """
    import numpy as np
    from scipy import stats

    lines = [["agent steps", "the agent ahead then ends ahead"]]
    for steps in STEPS:
        ahead = pairs[pairs[steps] > 0]
        of_games = (ahead["end"] > 0).groupby(ahead["game"]).mean()
        found = stats.bootstrap((of_games,), np.mean, method="percentile", rng=0)
        low, high = found.confidence_interval
        lines.append([f"{steps:,}", f"{of_games.mean():.0%} ({low:.0%} to {high:.0%})"])
    return words.markdown(lines)


def behind(pairs: Any) -> str:
    """Returns on how many games agents are behind DQN at first, and ahead at the end."""
    from log_dqn.results import baselines

    lines = [["agent", f"games on which it is behind DQN at {STEPS[0]:,}", "ends ahead on"]]
    beside = pairs[pairs["other"] == baselines.named(DQN)]
    for agent, rows in beside[beside[STEPS[0]] < 0].groupby("agent"):
        lines.append([agent, str(len(rows)), str((rows["end"] > 0).sum())])
    return words.markdown(lines)


def report(source: str) -> None:
    """Prints the tables of the published curves of all games."""
    from log_dqn import games
    from log_dqn.results import baselines

    unread: list[str] = []
    runs = baselines.load(source, games.GAMES, unread.append)
    if unread:
        raise ValueError(f"{unread[0]}, and their order needs curves")
    least = STEPS[-1] // PUBLISHED_STEPS
    if any(len(run.returns) < least for run in runs) or len({run.agent for run in runs}) < 2:
        raise ValueError(
            f"baselines is {source!r}; it must have two agents or more, and {least} iterations or "
            "more of each"
        )
    pairs = leads(runs)
    print(as_at_the_end(pairs), behind(pairs), sep="\n\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--baselines", default=DOPAMINE, help="as in log-dqn compare")
    args = parser.parse_args(argv)
    return shell.run_once(parser.prog, lambda: report(args.baselines))


if __name__ == "__main__":
    sys.exit(main())
