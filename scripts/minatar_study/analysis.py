"""The study's statistics as tables, with 95% bootstrap intervals."""

import numpy as np
import pandas as pd

from log_dqn.program import words
from log_dqn.results import discount, gamma_scan, statistics
from log_dqn.results.discount import OVER_GAMES


def by_setting(table: pd.DataFrame, repetitions: int = 2000) -> pd.DataFrame:
    """Returns the mean score of the seeds of each setting, with 95% intervals.

    Returns:
        Columns `game,agent,stage,setting,gamma,seeds,value,low,high`, in points per episode; a
        setting is named without its discount factor.
    """
    key = ["game", "agent", "stage", "setting", "gamma"]
    rows = []
    for name, scores_of in _without_gamma(table).groupby(key)["score"]:
        column = scores_of.to_numpy()[:, None]
        found = statistics.interval_of_enough_seeds(
            statistics.mean_over_seeds, column, repetitions=repetitions
        )
        rows.append((*name, len(column), *(float(part[0]) for part in found)))
    return pd.DataFrame(rows, columns=[*key, "seeds", "value", "low", "high"])


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Returns each setting's mean score on each game, and over games, there as part of the largest.

    Returns:
        Index `gamma,agent,setting`; a column for each game, and `mean`.
    """
    found = _without_gamma(table).pivot_table("score", ["gamma", "agent", "setting"], "game")
    return found.assign(mean=(found / found.max()).mean(axis=1))


def best_settings(table: pd.DataFrame) -> pd.DataFrame:
    """Returns each agent's rows of one setting, whose `means` over games are the highest.

    A setting with fewer runs than another of its agent is not whole, and none.
    """
    named = _without_gamma(table)
    runs_of = named.groupby(["agent", "setting"])["score"].transform("size")
    is_whole = runs_of == runs_of.groupby(table["agent"]).transform("max")
    found = means(table[is_whole])["mean"].groupby(["agent", "setting"]).mean()
    best = found.groupby("agent").idxmax()
    return table[named[["agent", "setting"]].apply(tuple, axis=1).isin(best)]


def _without_gamma(table: pd.DataFrame) -> pd.DataFrame:
    # A setting is an agent's name after the slash.
    return table.assign(setting=("/" + table["setting"]).map(gamma_scan.without_gamma))


def claims(
    table: pd.DataFrame, agent: str = "log_dqn", other: str = "dqn", repetitions: int = 2000
) -> pd.DataFrame:
    """Compares two agents as the paper's two claims do, each with a 95% interval.

    That low discount factors become usable: an agent's mean normalised score less another's at the
    same discount factor. That the best becomes better: the same, each at its best discount factor,
    one for all games or one for each; it is chosen again in each bootstrap sample. The intervals
    are over seeds, of the games and best means (of all agents in the table) as they are.

    Returns:
        Columns `claim,game,value,low,high`, for each game and over games; of a table with one
        discount factor, the first claim alone.
    """
    games, gammas = sorted(table["game"].unique()), sorted(table["gamma"].unique())
    normalised = discount.normalise(table)
    both = [discount.array_of(normalised, name, gammas, games) for name in (agent, other)]

    def chosen(scored: np.ndarray) -> np.ndarray:
        """Returns means at each discount factor and at the best two, by game and over games."""
        of_games = scored.mean(axis=0)
        over_games = of_games[:, of_games.mean(axis=0).argmax()]
        columns = np.column_stack([of_games, over_games, of_games.max(axis=1)])
        return np.vstack([columns, columns.mean(axis=0)])

    def difference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return chosen(x) - chosen(y)

    bounds = statistics.interval_of_enough_seeds(difference, *both, repetitions=repetitions)
    best = " and ".join(f"{gammas[scored.mean(axis=(0, 1)).argmax()]:g}" for scored in both)
    names = [
        *(f"at gamma {gamma:g}" for gamma in gammas),
        f"each at the gamma that is best over games ({best})",
        "each at the gamma that is best on each game",
    ]
    rows = [
        (name, game, *map(float, interval))
        for game, *of_game in zip([*games, OVER_GAMES], *bounds, strict=True)
        for name, *interval in zip(names, *of_game, strict=True)
    ]
    found = pd.DataFrame(rows, columns=["claim", "game", "value", "low", "high"])
    # With one discount factor, the best is that one.
    return found if len(gammas) > 1 else found[found["claim"] == names[0]]


def as_markdown(table: pd.DataFrame, across: str = "gamma", form: str = ".3g") -> str:
    """Returns a table of values with intervals as Markdown: `value,low,high` and names of a row.

    The name `across`, if the table has it, makes the columns.
    """

    def text(number: float) -> str:
        shown = f"{number:{form}}"
        return shown if float(shown) else shown.removeprefix("-")

    shown = table.assign(
        value=[
            text(value) + ("" if np.isnan(low) else f" ({text(low)} to {text(high)})")
            for value, low, high in zip(table["value"], table["low"], table["high"], strict=True)
        ]
    ).drop(columns=["low", "high"])
    if across in shown:
        names = [column for column in shown if column not in (across, "value")]
        shown = shown.pivot(index=names, columns=across, values="value").fillna("-").reset_index()
    return words.markdown([[*map(str, row)] for row in (shown.columns, *shown.to_numpy())]) + "\n"
