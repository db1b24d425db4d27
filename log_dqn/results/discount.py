"""Returns against the discount factor, also over games without human scores.

There, scores are normalised by the best mean that any agent has on the game.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from log_dqn.results import statistics

OVER_GAMES = "over games"


def best_means(table: pd.DataFrame, of: Sequence[str] = ("agent", "gamma")) -> pd.Series:
    """Returns each game's best mean score of any agent at any discount factor.

    The table has columns `game,score` and those that say what one mean is `of`.
    """
    return table.groupby(["game", *of])["score"].mean().groupby("game").max()


def normalise(table: pd.DataFrame) -> pd.DataFrame:
    """Divides scores by the best mean on their game."""
    return table.assign(score=table["score"] / table["game"].map(best_means(table)))


def array_of(
    table: pd.DataFrame, agent: str, gammas: Sequence[float], games: Sequence[str]
) -> np.ndarray:
    """Arranges an agent's scores, shape [num_seeds, num_games, num_gammas]."""
    of_agent = table[table["agent"] == agent]
    cells = of_agent.set_index(["seed", "game", "gamma"])["score"]
    seeds = sorted(of_agent["seed"].unique())
    index = pd.MultiIndex.from_product([seeds, games, gammas])
    return cells.reindex(index).to_numpy().reshape(len(seeds), len(games), len(gammas))


def by_gamma(table: pd.DataFrame, repetitions: int = 2000) -> pd.DataFrame:
    """Returns the statistics of each agent at each discount factor, with 95% intervals.

    Takes columns `agent,gamma,game,seed,score`, and returns
    `agent,gamma,game,statistic,value,low,high`: the mean on each game in points per episode, and
    mean and IQM of normalised scores over games.
    """
    games, gammas = sorted(table["game"].unique()), sorted(table["gamma"].unique())
    table = table.assign(seed=table.groupby(["agent", "gamma", "game"]).cumcount())
    normalised = normalise(table)
    rows = []
    # Each has its own seeds, which are numbered, and is taken by itself.
    for agent, gamma in itertools.product(dict.fromkeys(table["agent"]), gammas):
        parts = [
            (game, statistics.mean_over_seeds, array_of(table, agent, [gamma], [game]))
            for game in games
        ]
        normal = array_of(normalised, agent, [gamma], games)
        for game, statistic, part in [*parts, (OVER_GAMES, statistics.mean_median_iqm, normal)]:
            found = statistics.interval_of_enough_seeds(statistic, part, repetitions=repetitions)
            numbers = np.concatenate(found, axis=1)
            # Rows of `mean_median_iqm`; a game alone has the first only.
            names = {"mean": 0, "iqm": 2} if game == OVER_GAMES else {"mean": 0}
            rows += [
                (agent, gamma, game, name, *map(float, numbers[i])) for name, i in names.items()
            ]
    columns = ["agent", "gamma", "game", "statistic", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)
