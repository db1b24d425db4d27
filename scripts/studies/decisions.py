"""What docs/reports/plan.md decides by the stages `mechanism`, `best_again` and `beyond`."""

import collections
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from log_dqn.checks import check
from log_dqn.cli import words
from log_dqn.results.statistics import t_interval
from studies import data
from studies.minatar import (
    by_agent,
    claims,
    contrast,
    contrasts,
    parts_of,
    status,
    text_of,
    without_gamma_in,
)
from studies.stages import planned

LOGLIN, LINE, START, DQN = "LogLinDQN", "line only", "no optimistic start", "DQN"
VARIANTS = {
    ("loglin_dqn", ""): LOGLIN,
    ("loglin_dqn", "linear_above=1e-09,c=1e-09"): LINE,
    ("loglin_dqn", "q_init_plus=0"): START,
    ("dqn", ""): DQN,
}
"""The variants of LogLinDQN, by agent and setting without the discount factor."""

Scores = dict[str, np.ndarray]
"""Normalised scores at a discount factor by variant, shape [seeds, games] each."""


def gap_left(scores: Scores, variant: str) -> float:
    """Returns which part of the gap between DQN and LogLinDQN a variant leaves open.

    0 is LogLinDQN's mean, 1 DQN's; NaN if LogLinDQN isn't above DQN, so that there is no gap.
    """
    own, dqn, loglin = (float(scores[name].mean()) for name in (variant, DQN, LOGLIN))
    return (loglin - own) / (loglin - dqn) if loglin > dqn else np.nan


def is_superior(scores: Scores, other: str) -> bool:
    """Returns whether LogLinDQN is superior to another variant."""
    return status(contrast(scores[LOGLIN], scores[other]).difference) == "superior"


def logarithm_does_it(scores: Scores) -> bool:
    """Returns whether LogLinDQN is superior to the line, and that closes less than half the gap."""
    return is_superior(scores, LINE) and gap_left(scores, LINE) > 0.5


def mechanism(scores: pd.DataFrame) -> str:
    """Answers question 1, does the logarithm do it?, with the tables behind the answer."""
    keys = without_gamma_in(scores)[["agent", "setting"]].itertuples(index=False, name=None)
    scores = scores.assign(agent=[VARIANTS[key] for key in keys])
    agents, parts = by_agent(scores), parts_of(sorted(scores["game"].unique()))
    left, said = [["gamma", "games", LINE, START]], []
    for gamma in agents[DQN]:
        tuned, held_out = (
            {name: of[gamma][:, parts[part]] for name, of in agents.items()}
            for part in ("tuned", "held out")
        )
        for part, group in (("tuned", tuned), ("held out", held_out)):
            cells = (f"{gap_left(group, name):.2f}" for name in (LINE, START))
            left.append([f"{gamma:g}", part, *cells])
            if gap_left(group, START) > 0.5:
                said.append(
                    f"At {gamma:g}, {part} games: {START} loses over half, so that part does it."
                )
        does_it = logarithm_does_it(tuned) and logarithm_does_it(held_out)
        does = "does it" if does_it else "is not shown to do it"
        said.append(f"At {gamma:g} the logarithm {does}.")
        if not is_superior(held_out, DQN):
            said.append(
                f"At {gamma:g} LogLinDQN is not called better: held-out games don't show it."
            )
    return "\n\n".join(
        [
            contrasts(scores, LOGLIN, [LINE, START, DQN]),
            *(
                f"{one} less {other}:\n\n{claims(scores, one, other)}"
                for one, other in ((LOGLIN, LINE), (LOGLIN, DQN), (LINE, DQN))
            ),
            "Part of the gap between LogLinDQN (0) and DQN (1) that a variant leaves open:",
            words.markdown(left),
            "\n".join(said),
        ]
    )


def best_again(scores: pd.DataFrame) -> str:
    """Answers question 3, is LogLinDQN's best DQN's?, with the table behind the answer."""
    agents = by_agent(scores)
    (own,), (dqn,) = (agents[name].values() for name in ("loglin_dqn", "dqn"))
    decided = {
        "superior": "is better than DQN's",
        "as good as": "is as good as DQN's",
        "worse": "is worse than DQN's",
        "neither": "is not shown to be as good as DQN's",
    }[status(contrast(own, dqn).difference)]
    tables = contrasts(scores, "loglin_dqn", ["dqn"]), claims(scores, "loglin_dqn", "dqn")
    return "\n\n".join([*tables, f"LogLinDQN's best {decided}."])


LOW, HIGH = 0.9, (0.96, 0.99)
"""The largest low discount factor, and the high ones, of question 2."""

FIRST = 10
"""Iterations after which the plan says whether a game's runs are continued."""

CHOOSING = 2
"""The first seeds, which choose the best discount factor; the others decide."""


def _points(of_game: pd.DataFrame, gammas: Sequence[float]) -> dict[str, pd.DataFrame]:
    """Returns a game's scores by agent, in points: rows are seeds, columns discount factors."""
    return {
        agent: of_agent.pivot(index="seed", columns="gamma", values="score").reindex(columns=gammas)
        for agent, of_agent in of_game.groupby("agent")
    }


def _less(own: pd.Series, there: pd.Series, form: str) -> str:
    """Returns the difference of the means of two agents' seeds, or "-" if one has none."""
    if own.isna().all() or there.isna().all():
        return "-"
    return text_of(t_interval(own.to_numpy(), there.to_numpy()), form)


def _in_points(rows: list[list[str]]) -> str:
    """Returns a table of differences, headed."""
    return f"Differences in points (Welch's t over seeds):\n\n{words.markdown(rows)}\n"


def equal_discounts(scores: pd.DataFrame) -> str:
    """Returns the agents' mean scores less each other's at each discount factor, in points."""
    gammas = sorted(scores["gamma"].unique())
    rows = [["game", "agents", *map("{:g}".format, gammas)]]
    for game, of_game in scores.groupby("game"):
        tables = _points(of_game, gammas)
        for first, second in itertools.combinations(reversed(tables), 2):
            cells = (_less(tables[first][gamma], tables[second][gamma], ".3f") for gamma in gammas)
            rows.append([game, f"{first} less {second}", *cells])
    return _in_points(rows)


def best_discounts(scores: pd.DataFrame) -> str:
    """Returns each agent's mean score at its best discount factor less those at all, in points."""
    gammas = sorted(scores["gamma"].unique())
    rows = [["game", "agent", "best", *map("less {:g}".format, gammas)]]
    for game, of_game in scores.groupby("game"):
        for agent, table in _points(of_game, gammas).items():
            best = table.mean().idxmax()
            cells = ("-" if g == best else _less(table[best], table[g], ".2f") for g in gammas)
            rows.append([game, agent, f"{best:g}", *cells])
    return _in_points(rows)


def low_discounts(scores: pd.DataFrame) -> str:
    """Answers question 2, where does a low discount factor win?, game by game, with tables."""
    margins = (f"LogLinDQN's best less this at {gamma:g}" for gamma in HIGH)
    rows, said = [["game", "agent", "best gamma", "score there", *margins]], []
    for game, of_game in scores.groupby("game"):
        tables = _points(of_game, sorted(of_game["gamma"].unique()))
        best = {agent: float(t[:CHOOSING].mean().idxmax()) for agent, t in tables.items()}
        decide = {agent: table[CHOOSING:] for agent, table in tables.items()}
        own, wins = decide["loglin_dqn"][best["loglin_dqn"]], best["loglin_dqn"] <= LOW
        for agent, table in decide.items():
            there = text_of(t_interval(table[best[agent]].to_numpy()))
            less = [t_interval(own.to_numpy(), table[gamma].to_numpy()) for gamma in HIGH]
            wins = wins and all(each.low > 0 for each in less)
            rows.append([game, agent, f"{best[agent]:g}", there, *map(text_of, less)])
        said.append(f"{game}: a low discount factor {'wins' if wins else 'is not shown to win'}.")
    return "\n\n".join([words.markdown(rows), "\n".join(said)])


def still_rising(curves: pd.DataFrame) -> list[str]:
    """Returns the games of question 2 whose runs the plan continues after `FIRST` iterations.

    There the mean curve of an agent's best discount factor, by its last mean score, rises by over
    10% in the last fifth.
    """
    found = []
    for (game, _), of_agent in curves[curves["iteration"] < FIRST].groupby(["game", "agent"]):
        means = of_agent.pivot_table("mean_return", "iteration", "gamma")
        best = means[means.iloc[-1].idxmax()].to_numpy()
        before = best[-1 - len(best) // 5]
        if best[-1] - before > 0.1 * abs(before) and game not in found:
            found.append(game)
    return found


def choice() -> str:
    """Returns which games are in question 2, by the runs that choose them, as Markdown.

    Raises:
        ValueError: a game has no run of one of both stages.
    """
    random = data.curves_of("beyond_random").groupby("game")
    least = random["mean_return"].mean()
    spread = random["deviation"].mean()
    needed = (2 * least).where(least > 0, least + spread)
    scores = data.scores_of(data.curves_of("beyond_choice"))
    best = scores.groupby("game")["score"].max()
    lacking = sorted({*best.index} ^ {*least.index})
    check("the stages beyond_choice and beyond_random", lacking, not lacking, "of the same games")
    rows = [["game", "random policy", "DQN's best", "needed", "in"]]
    for game in best.index:
        cells = (f"{part[game]:.3g}" for part in (least, best, needed))
        # To double is enough; a deviation must be exceeded.
        is_in = (np.greater_equal if least[game] > 0 else np.greater)(best[game], needed[game])
        rows.append([game, *cells, "yes" if is_in else "no"])
    return words.markdown(rows)


DECISIONS: dict[str, Callable[[pd.DataFrame], str]] = {
    "mechanism": mechanism,
    "best_again": best_again,
    "beyond": low_discounts,
}


def decide(stage: str, scores: pd.DataFrame) -> str:
    """Returns the answer by the scores of a stage; before all seeds are whole, how many are.

    Question 1 is decided at each discount factor alone, question 2 on each game, question 3 over
    all.
    """

    def part_of(game: str, setting: str) -> str:
        return {"mechanism": setting.partition(",")[0], "beyond": game}.get(stage, "all")

    seeds = data.seeds_of(stage)
    parts = pd.Series(map(part_of, scores["game"], scores["setting"]), scores.index)
    runs = scores.groupby([parts, "seed"]).size()
    needed = collections.Counter(part_of(game, setting) for game, _, setting in planned(stage))
    whole = {
        part: sum(runs.get((part, seed), 0) == number for seed in seeds)
        for part, number in needed.items()
    }
    lacking = {part: number for part, number in whole.items() if number < len(seeds)}
    decided = scores[~parts.isin(list(lacking))]
    said = [] if decided.empty else [DECISIONS[stage](decided)]
    for part, number in lacking.items():
        said.append(f"{part}: {number} of {len(seeds)} seeds: no verdict before all are there.")
    return "\n\n".join(said)
