"""The scan of discount factors (paper, Appendix C): who takes part, and what it shows."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from log_dqn import games
from log_dqn.results import statistics
from log_dqn.results.protocol import PUBLISHED_GAMMA
from log_dqn.results.request import DQN
from log_dqn.results.runs import LearningCurve
from log_dqn.results.scores import Score

Point = tuple[float, float, float, int]
"""Discount factor, best mean, best median, number of agents."""


def participants(
    runs: Iterable[LearningCurve], scores: Sequence[Score]
) -> tuple[dict[str, tuple[str, float]], list[str], list[str]]:
    """Finds the agents that take part.

    A run's discount factor and its agent's class come from its configuration; the published DQN
    has gamma 0.99.

    Returns:
        Class and gamma of each agent with one discount factor that has scores on all the games;
        the games: those of the paper's six on which any agent has scores; and a line for each
        agent that is left out, if it is one of a scan.
    """
    lines = []
    found: dict[str, set[tuple[str, float]]] = {}
    for run in runs:
        if run.gamma is not None:
            found.setdefault(run.agent, set()).add((str(run.agent_class), run.gamma))
    settings = {}
    for agent, different in found.items():
        gammas = sorted({gamma for _, gamma in different})
        if len(gammas) == 1:
            settings[agent] = max(different)
            continue
        lines.append(
            f"{agent}: its runs have different discount factors "
            f"({', '.join(f'{gamma:g}' for gamma in gammas)}) and are averaged as one agent's; it "
            "is not in the gamma figure"
        )
    scan = len(set(settings.values())) > len({agent_class for agent_class, _ in settings.values()})
    if any(score.agent == DQN for score in scores):
        settings[DQN] = (DQN, PUBLISHED_GAMMA)
    six = sorted({score.game for score in scores} & set(games.PAPER6))
    for agent in list(settings):
        missing = sorted(set(six) - {score.game for score in scores if score.agent == agent})
        if missing:
            del settings[agent]
            if scan:
                lines.append(
                    f"{agent}: not in the gamma figure; no scores on {games.listing(missing)}"
                )
    return settings, six, lines


def points(
    runs: Iterable[LearningCurve], scores: Sequence[Score]
) -> tuple[dict[str, list[Point]], int]:
    """Mean and median over the paper's six games against the discount factor.

    Agents of one class and gamma (folders with other values of c, say) are represented by the
    best mean and the best median among them, as in the paper.

    Returns:
        The points of each class by gamma, and the number of games. Nothing if no class has two
        discount factors.
    """
    settings, six, _ = participants(runs, scores)
    aggregates: dict[str, dict[float, list[np.ndarray]]] = {}
    for agent, (agent_class, gamma) in settings.items() if six else ():
        matrix = statistics.score_matrix(scores, agent, six)
        by_gamma = aggregates.setdefault(agent_class, {})
        by_gamma.setdefault(gamma, []).append(statistics.aggregates(matrix))
    if not any(len(by_gamma) > 1 for by_gamma in aggregates.values()):
        return {}, 0
    best: dict[str, list[Point]] = {}
    for agent_class, by_gamma in aggregates.items():
        for gamma, rows in sorted(by_gamma.items()):
            mean, median, *_ = np.max(rows, axis=0).tolist()
            best.setdefault(agent_class, []).append((gamma, mean, median, len(rows)))
    return best, len(six)


def without_gamma(agent: str) -> str:
    """An agent's name without its discount factor: log_dqn/c=2 for log_dqn/gamma=0.9,c=2."""
    name, _, setting = agent.partition("/")
    others = (value for value in setting.split(",") if not value.startswith("gamma="))
    return "/".join(filter(None, [name, ",".join(others)]))


def table(
    runs: Iterable[LearningCurve], scores: Sequence[Score], games: Sequence[str]
) -> pd.DataFrame:
    """Returns what `discount.by_gamma` takes: the runs whose discount factor is known.

    Agents are named by `without_gamma`.
    """
    gammas = {run[:3]: run.gamma for run in runs}
    rows = []
    for score in scores:
        gamma = gammas[score.agent, score.game, score.seed]
        if gamma is not None and score.game in games:
            rows.append((without_gamma(score.agent), gamma, score.game, score.seed, score.score))
    columns = ["agent", "gamma", "game", "seed", "score"]
    # A run may lie in `log_dqn` and in `log_dqn/gamma=0.96`, which are one agent.
    return pd.DataFrame(rows, columns=columns).drop_duplicates()


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
