"""Scores against the discount factor: of the paper's scan (Appendix C), and of scans on own games.

On games without human scores, scores are normalised by the best mean that any agent has on the
game.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from log_dqn import games
from log_dqn.results import labels, scores, statistics
from log_dqn.results.protocol import PUBLISHED_GAMMA
from log_dqn.results.request import DQN

OVER_GAMES = "over games"

Point = tuple[float, float, float, int]
"""Discount factor, best mean, best median, number of agents."""


def normalise(table: pd.DataFrame) -> pd.DataFrame:
    """Divides scores by the best mean of any agent at any discount factor on their game."""
    best = scores.best_means(table, ["agent", "gamma"])
    return table.assign(score=table["score"] / table["game"].map(best))


def by_gamma(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean of each agent at each discount factor, with its 95% t interval over seeds.

    Takes columns `agent,gamma,game,score`, a row a run, and returns
    `agent,gamma,game,value,low,high`: on each game in points per episode, and over games of
    normalised scores; NaN where a game is missing.
    """
    games, rows = sorted(table["game"].unique()), []
    parts = [(game, [game], table[table["game"] == game]) for game in games]
    for name, of_games, part in [*parts, (OVER_GAMES, games, normalise(table))]:
        for key, cells in part.groupby(["agent", "gamma"], sort=False):
            matrix = statistics.score_matrix(cells, of_games, "score")
            weights = [1 / len(of_games)] * len(of_games)
            found = statistics.t_interval(*matrix.T, weights=weights, least=statistics.LEAST_SEEDS)
            rows.append((*key, name, *map(float, found)))
    return pd.DataFrame(rows, columns=["agent", "gamma", "game", "value", "low", "high"])


def without_gamma(agent: str) -> str:
    """An agent's name without its discount factor: log_dqn/c=2 for log_dqn/gamma=0.9,c=2."""
    name, _, setting = agent.partition("/")
    others = (value for value in setting.split(",") if not value.startswith("gamma="))
    return "/".join(filter(None, [name, ",".join(others)]))


def scanned(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns what `by_gamma` takes: the runs whose discount factor is known.

    Agents are named by `without_gamma`.
    """
    known = runs[runs["gamma"].notna()]
    table = known.assign(agent=known["agent"].map(without_gamma))
    # A run may lie in `log_dqn` and in `log_dqn/gamma=0.96`, which are one agent.
    return table[["agent", "gamma", "game", "seed", "score"]].drop_duplicates()


def participants(
    runs: pd.DataFrame,
) -> tuple[dict[str, tuple[str, float]], list[str], list[str]]:
    """Finds the agents that take part in the paper's scan.

    A run's discount factor and its agent's class come from its configuration.

    Returns:
        Class and gamma of each agent with one discount factor that has scores on all the games;
        the games: those of the paper's six on which any agent has scores; and a line for each
        agent that is left out, if it is one of a scan.
    """
    lines, settings = [], {}
    for agent, rows in labels.by_agent(runs[runs["gamma"].notna()]).items():
        gammas = sorted(set(rows["gamma"]))
        if len(gammas) == 1:
            settings[agent] = str(rows["agent_class"].astype(str).max()), gammas[0]
            continue
        lines.append(
            f"{agent}: its runs have different discount factors "
            f"({', '.join(f'{gamma:g}' for gamma in gammas)}) and are averaged as one agent's; it "
            "is not in the gamma figure"
        )
    scan = len(set(settings.values())) > len({agent_class for agent_class, _ in settings.values()})
    if DQN in set(runs["agent"]):
        settings[DQN] = (DQN, PUBLISHED_GAMMA)
    six = sorted({*runs["game"]} & {*games.PAPER6})
    for agent in list(settings):
        missing = sorted({*six} - {*runs.loc[runs["agent"] == agent, "game"]})
        if missing:
            del settings[agent]
            if scan:
                lines.append(
                    f"{agent}: not in the gamma figure; no scores on {games.listing(missing)}"
                )
    return settings, six, lines


def points(runs: pd.DataFrame) -> tuple[dict[str, list[Point]], int]:
    """Mean and median over the paper's six games against the discount factor.

    Agents of one class and gamma (folders with other values of c, say) are represented by the
    best mean and the best median among them, as in the paper.

    Returns:
        The points of each class by gamma, and the number of games. Nothing if no class has two
        discount factors.
    """
    settings, six, _ = participants(runs)
    if not six or len(set(settings.values())) == len({name for name, _ in settings.values()}):
        return {}, 0
    agents = labels.by_agent(runs)
    rows = []
    for agent, setting in settings.items():
        mean, median, *_ = statistics.aggregates(statistics.score_matrix(agents[agent], six))
        rows.append((*setting, mean, median))
    table = pd.DataFrame(rows, columns=["class", "gamma", "mean", "median"])
    best = table.groupby(["class", "gamma"], sort=False).agg(
        mean=("mean", "max"), median=("median", "max"), agents=("mean", "size")
    )
    return {
        name: [*of_class.droplevel("class").sort_index().itertuples(name=None)]
        for name, of_class in best.groupby("class", sort=False)
    }, len(six)


def caption(points: Mapping[str, Sequence[Point]]) -> str:
    """Says which points stand for several agents."""
    several = [
        f"{n} agents of {name} at {gamma:g}"
        for name, rows in points.items()
        for gamma, _, _, n in rows
        if n > 1
    ]
    if not several:
        return "each point is one agent"
    return f"best mean and best median, each over the {', '.join(several)}; else one agent"
