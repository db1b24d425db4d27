"""How early the published Atari runs show which of two agents ends ahead on a game.

An agent's return at some agent steps is that of the iteration that ends there; at the end it is the
mean of the last tenth of the iterations.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from log_dqn import games
from log_dqn.cli import words
from log_dqn.results import scores
from log_dqn.results.runs import LearningCurve
from log_dqn.results.statistics import t_interval
from studies.atari import PUBLISHED_STEPS, published_curves

STEPS = (500_000, 1_000_000, 2_000_000, 5_000_000, 12_500_000, 25_000_000)
"""Agent steps at which the published agents are compared: iterations end there."""


def leads(runs: Sequence[LearningCurve]) -> pd.DataFrame:
    """Returns how far each agent is ahead of each other one on each game.

    Returns:
        A table with `game`, `agent`, `other`, and in points per episode `end` and a column for each
        of `STEPS`: differences of means over seeds. Two agents have two rows on a game.
    """
    rows = [
        {"game": run.game, "agent": run.agent, "end": scores.final_score(run.returns)}
        | {steps: run.returns[steps // PUBLISHED_STEPS - 1] for steps in STEPS}
        for run in runs
    ]
    pairs = []
    for game, means in pd.DataFrame(rows).groupby(["game", "agent"]).mean().groupby("game"):
        for one, other in itertools.permutations(means.index, 2):
            names = {"game": game, "agent": one[1], "other": other[1]}
            pairs.append(names | (means.loc[one] - means.loc[other]).to_dict())
    return pd.DataFrame(pairs)


def guesses(pairs: pd.DataFrame) -> str:
    """Returns how often a guess is right that an agent ends ahead of another, as Markdown.

    It is guessed by what is ahead of what at first, or by on how many more of the other games an
    agent ends ahead than behind. Of agents that are equal none is ahead. The interval is a t
    interval over games.

    Args:
        pairs: see `leads`.
    """

    def right(ahead: pd.Series) -> str:
        ends = pairs["end"][ahead > 0] > 0
        of_games = ends.groupby(pairs["game"]).mean().to_numpy()
        return "{:.0%} ({:.0%} to {:.0%})".format(*map(float, t_interval(of_games)))

    won = np.sign(pairs["end"])
    elsewhere = won.groupby([pairs["agent"], pairs["other"]]).transform("sum") - won
    lines = [["guessed by", "right"], ["who ends ahead on most other games", right(elsewhere)]]
    lines += [[f"who is ahead at {steps:,} agent steps", right(pairs[steps])] for steps in STEPS]
    return words.markdown(lines)


def report(source: str) -> str:
    """Returns the table of the published curves of all games; raises ValueError without them."""
    iterations = STEPS[-1] // PUBLISHED_STEPS
    return guesses(leads(published_curves(source, games.GAMES, iterations)))
