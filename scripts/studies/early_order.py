"""How early the published Atari runs show which of two agents ends ahead on a game.

An agent's return at some agent steps is that of the iteration that ends there; at the end it is the
mean of the last tenth of the iterations.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from log_dqn import games
from log_dqn.program import words
from log_dqn.results import scores
from log_dqn.results.request import DQN
from log_dqn.results.runs import LearningCurve
from log_dqn.results.statistics import t_interval
from studies.atari import PUBLISHED_STEPS, published_curves

STEPS = (500_000, 1_000_000, 2_000_000, 5_000_000, 12_500_000, 25_000_000)
"""Agent steps at which the published agents are compared: iterations end there."""


def leads(runs: Sequence[LearningCurve]) -> pd.DataFrame:
    """Returns how far each agent is ahead of each other one on each game.

    Returns:
        A table with `game`, `agent`, `other`, and in points per episode `end` and a column for each
        of `STEPS`, differences of means over seeds, and one for each text of it ("500,000"): the
        agent's least seed less the other's greatest. Two agents have two rows on a game.
    """
    rows = [
        {"game": run.game, "agent": run.agent, "end": scores.final_score(run.returns)}
        | {steps: run.returns[steps // PUBLISHED_STEPS - 1] for steps in STEPS}
        for run in runs
    ]
    seeds = pd.DataFrame(rows).groupby(["game", "agent"])
    means, least, greatest = seeds.mean(), seeds.min(), seeds.max()
    pairs = []
    for game, of_game in means.groupby("game"):
        for (_, agent), (_, other) in itertools.permutations(of_game.index, 2):
            lead = means.loc[(game, agent)] - means.loc[(game, other)]
            apart = least.loc[(game, agent)] - greatest.loc[(game, other)]
            clear = {f"{steps:,}": apart[steps] for steps in STEPS}
            pairs.append({"game": game, "agent": agent, "other": other, **lead, **clear})
    return pd.DataFrame(pairs)


def guesses(pairs: pd.DataFrame) -> str:
    """Returns how often a guess is right that an agent ends ahead of another, as Markdown.

    It is guessed by what is ahead of what at first, or by on how many more of the other games an
    agent ends ahead than behind. Of agents that are equal none is ahead. The interval is a t
    interval over games.

    Args:
        pairs: see `leads`.
    """

    def right(ahead: pd.Series) -> tuple[str, str]:
        found = pairs[ahead > 0]
        ends = found["end"] > 0
        of_games = ends.groupby(found["game"]).mean().to_numpy()
        if len(of_games) < 2:
            return "-", "-"
        mean, low, high = t_interval(of_games)
        # A pair of agents has two rows, of which one leads.
        of_pairs = ends.groupby(found[["agent", "other"]].apply(frozenset, axis=1)).mean()
        text = f"{mean:.0%} ({low:.0%} to {high:.0%})"
        return text, f"{of_pairs.min():.0%} to {of_pairs.max():.0%}"

    won = np.sign(pairs["end"])
    elsewhere, _ = right(won.groupby([pairs["agent"], pairs["other"]]).transform("sum") - won)
    heads = ["guessed by", "right", "worst and best pair", "right where all seeds are ahead"]
    lines = [heads, ["who ends ahead on most other games", elsewhere, "-", "-"]]
    for steps in STEPS:
        clear, _ = right(pairs[f"{steps:,}"])
        lines.append([f"who is ahead at {steps:,} agent steps", *right(pairs[steps]), clear])
    return words.markdown(lines)


def beside_dqn(pairs: pd.DataFrame) -> str:
    """Returns how often agents end ahead of DQN that are behind or ahead at first, as Markdown."""
    beside = pairs[pairs["other"] == DQN]
    early = beside[STEPS[0]]
    lines = [[f"at {STEPS[0]:,} agent steps another agent is", "and ends ahead of DQN"]]
    for where, rows in (("behind DQN", beside[early < 0]), ("ahead of DQN", beside[early > 0])):
        lines.append([where, f"in {(rows['end'] > 0).sum()} of {len(rows)} cases"])
    return words.markdown(lines)


def report(source: str) -> str:
    """Returns the tables of the published curves of all games; raises ValueError without them."""
    pairs = leads(published_curves(source, games.GAMES))
    return f"{guesses(pairs)}\n\n{beside_dqn(pairs)}"
