"""Scores against the discount factor: of the paper's scan (Appendix C), and of scans on own games.

On games without human scores, scores are normalised by the best mean that any agent has on the
game.
"""

import numpy as np
import pandas as pd

from log_dqn import games
from log_dqn.results import statistics
from log_dqn.results.protocol import PUBLISHED_GAMMA
from log_dqn.results.request import DQN

OVER_GAMES = "over games"


def by_gamma(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean of each agent at each discount factor, with its 95% t interval over seeds.

    Takes columns `agent,gamma,game,score,normalised`, a row a run, and returns
    `agent,gamma,game,value,low,high`: on each game in points per episode, and over games of
    normalised scores; NaN where a game is missing.
    """
    games, rows = sorted(table["game"].unique()), []
    normalised = table.assign(score=table["normalised"])
    parts = [(game, [game], table[table["game"] == game]) for game in games]
    for name, of_games, part in [*parts, (OVER_GAMES, games, normalised)]:
        for key, cells in part.groupby(["agent", "gamma"], sort=False):
            matrix = statistics.score_matrix(cells, of_games, "score")
            weights = [1 / len(of_games)] * len(of_games)
            found = statistics.t_interval(*matrix.T, weights=weights, least=statistics.LEAST_SEEDS)
            rows.append((*key, name, *map(float, found)))
    return pd.DataFrame(rows, columns=["agent", "gamma", "game", "value", "low", "high"])


def without_gamma(agent: str) -> str:
    """Returns a name without its discount factor: log_dqn/c=2 for log_dqn/gamma=0.9,c=2."""
    name, _, setting = agent.partition("/")
    others = (value for value in setting.split(",") if not value.startswith("gamma="))
    return "/".join(filter(None, [name, ",".join(others)]))


def scanned(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns what `by_gamma` takes: the runs whose discount factor is known.

    Agents are named by `without_gamma`.
    """
    known = runs[runs["gamma"].notna()]
    table = known.assign(agent=known["agent"].map(without_gamma))
    # `log_dqn` and `log_dqn/gamma=0.96` are one agent, so that a seed of both counts once.
    run = ["agent", "gamma", "game", "seed"]
    return table[[*run, "score", "normalised"]].drop_duplicates(run)


def participants(runs: pd.DataFrame) -> pd.DataFrame:
    """Finds the runs that take part in the paper's scan.

    A run's discount factor and its agent's class come from its configuration.

    Returns:
        Of each agent with one discount factor the runs on the paper's six games, if it has all of
        these that any agent has, with its `agent_class` and `gamma`; none if no class has two
        discount factors.
    """
    of_agents = runs[runs["gamma"].notna()].groupby("agent")
    gammas = of_agents["gamma"].agg(["nunique", "first"])
    table = runs.assign(
        gamma=runs["agent"].map(
            gammas.loc[gammas["nunique"] == 1, "first"].to_dict() | {DQN: PUBLISHED_GAMMA}
        ),
        agent_class=runs["agent"].map(of_agents["agent_class"].max().to_dict() | {DQN: DQN}),
    ).dropna(subset="gamma")
    table = table.sort_values("agent", key=lambda agents: agents == DQN, kind="stable")
    six = {*runs["game"]} & {*games.PAPER6}
    table = table[table["game"].isin(six)]
    table = table[table.groupby("agent")["game"].transform("nunique") == len(six)]
    is_scan = table.groupby("agent_class")["gamma"].nunique().max() > 1
    return table if is_scan else table[:0]


def points(table: pd.DataFrame) -> pd.DataFrame:
    """Returns mean and median over the paper's six games against the discount factor.

    Agents of one class and gamma (folders with other values of c, say) are represented by the
    best mean and the best median among them, as in the paper.

    Args:
        table: what `participants` returns.

    Returns:
        Columns `agent_class,gamma,mean,median,agents`; `agents` is their number.
    """
    six, rows = sorted(table["game"].unique()), []
    for name, of_class in table.groupby("agent_class", sort=False):
        for gamma, of_gamma in of_class.groupby("gamma"):
            matrices = [statistics.score_matrix(r, six) for _, r in of_gamma.groupby("agent")]
            mean, median, *_ = np.max([statistics.aggregates(m) for m in matrices], axis=0)
            rows.append((name, gamma, mean, median, len(matrices)))
    return pd.DataFrame(rows, columns=["agent_class", "gamma", "mean", "median", "agents"])


def caption(points: pd.DataFrame) -> str:
    """Returns, in words, which points are of several agents."""
    several = [
        f"{point.agents} agents of {point.agent_class} at {point.gamma:g}"
        for point in points[points["agents"] > 1].itertuples()
    ]
    if not several:
        return "each point is one agent"
    return f"best mean and best median, each over the {', '.join(several)}; else one agent"
