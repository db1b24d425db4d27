#!/usr/bin/env python3
"""How early the published Atari runs show which of two agents ends ahead on a game.

    python scripts/early_order.py

An agent's return at some agent steps is that of the iteration that ends there; at the end it is the
mean of the last tenth of the iterations.
"""

import argparse
import itertools
import sys
from collections.abc import Sequence
from typing import Any

from atari_study import PUBLISHED_STEPS, published_curves

from log_dqn.checks import check
from log_dqn.program import shell, words
from log_dqn.results.request import BASELINES_HELP, DOPAMINE, DQN

STEPS = (500_000, 1_000_000, 2_000_000, 5_000_000, 12_500_000, 25_000_000)
"""Agent steps at which the published agents are compared: iterations end there."""


def leads(runs: Sequence[Any]) -> Any:
    """Returns how far each agent is ahead of each other one on each game.

    Args:
        runs: learning curves under the protocol of the baselines.

    Returns:
        A table with `game`, `agent`, `other`, and in points per episode `end` and a column for each
        of `STEPS`, differences of means over seeds, and one for each text of it ("500,000"): the
        agent's least seed less the other's greatest. Two agents have two rows on a game.

    Raises:
        ValueError: a curve is shorter or longer than the published ones, or a game has other agents
            than the first, or not DQN and another.
    """
    import pandas as pd

    from log_dqn.results import baselines, scores

    length = baselines.LAST_ITERATION + 1
    for run in runs:
        name = f"iterations of {run.agent} on {run.game}"
        check(name, len(run.returns), len(run.returns) == length, str(length))
    rows = [
        {"game": run.game, "agent": run.agent, "end": scores.final_score(run.returns)}
        | {steps: run.returns[steps // PUBLISHED_STEPS - 1] for steps in STEPS}
        for run in runs
    ]
    seeds = pd.DataFrame(rows).groupby(["game", "agent"])
    means, least, greatest = seeds.mean(), seeds.min(), seeds.max()
    agents = sorted({run.agent for run in runs})
    for game, of_game in means.groupby("game"):
        found = [agent for _, agent in of_game.index]
        allowed = f"{DQN} and others, the same on all games"
        check(f"agents on {game}", found, found == agents != [DQN] and DQN in found, allowed)
    pairs = []
    for game, (agent, other) in itertools.product(
        means.index.levels[0], itertools.permutations(agents, 2)
    ):
        lead = means.loc[(game, agent)] - means.loc[(game, other)]
        apart = least.loc[(game, agent)] - greatest.loc[(game, other)]
        clear = {f"{steps:,}": apart[steps] for steps in STEPS}
        pairs.append({"game": game, "agent": agent, "other": other, **lead, **clear})
    return pd.DataFrame(pairs)


def ahead_elsewhere(pairs: Any) -> Any:
    """Returns on how many more of the other games an agent ends ahead than behind; see `leads`."""
    import numpy as np

    won = np.sign(pairs["end"])
    return won.groupby([pairs["agent"], pairs["other"]]).transform("sum") - won


def guesses(pairs: Any) -> str:
    """Returns how often a guess is right that an agent ends ahead of another, as Markdown.

    It is guessed by what is ahead of what at first, or by the other games. Of agents that are equal
    none is ahead. The interval is the bootstrap's over games, of the mean of their shares.

    Args:
        pairs: see `leads`.
    """
    import numpy as np
    from scipy import stats

    def right(ahead: Any) -> tuple[str, str]:
        found = pairs[ahead > 0]
        ends = found["end"] > 0
        of_games = ends.groupby(found["game"]).mean()
        if len(of_games) < 2:
            return "-", "-"
        drawn = stats.bootstrap((of_games,), np.mean, method="percentile", rng=0)
        low, high = drawn.confidence_interval
        # A pair of agents has two rows, of which one leads.
        of_pairs = ends.groupby(found[["agent", "other"]].apply(frozenset, axis=1)).mean()
        text = f"{of_games.mean():.0%} ({low:.0%} to {high:.0%})"
        return text, f"{of_pairs.min():.0%} to {of_pairs.max():.0%}"

    heads = ["guessed by", "right", "worst and best pair", "right where all seeds are ahead"]
    elsewhere, _ = right(ahead_elsewhere(pairs))
    lines = [heads, ["who ends ahead on most other games", elsewhere, "-", "-"]]
    for steps in STEPS:
        clear, _ = right(pairs[f"{steps:,}"])
        lines.append([f"who is ahead at {steps:,} agent steps", *right(pairs[steps]), clear])
    return words.markdown(lines)


def beside_dqn(pairs: Any) -> str:
    """Returns how often agents end ahead of DQN that are behind or ahead at first, as Markdown."""
    beside = pairs[pairs["other"] == DQN]
    early = beside[STEPS[0]]
    lines = [[f"at {STEPS[0]:,} agent steps another agent is", "and ends ahead of DQN"]]
    for where, rows in (("behind DQN", beside[early < 0]), ("ahead of DQN", beside[early > 0])):
        lines.append([where, f"in {(rows['end'] > 0).sum()} of {len(rows)} cases"])
    return words.markdown(lines)


def report(source: str) -> None:
    """Prints the tables of the published curves of all games; raises ValueError without them."""
    from log_dqn import games

    pairs = leads(published_curves(source, games.GAMES))
    print(guesses(pairs), beside_dqn(pairs), sep="\n\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--baselines", default=DOPAMINE, help=BASELINES_HELP)
    args = parser.parse_args(argv)
    return shell.run_once(parser.prog, lambda: report(args.baselines))


if __name__ == "__main__":
    sys.exit(main())
