"""What is missing or unequal in a comparison, in words."""

from collections.abc import Iterator

import pandas as pd

from log_dqn.cli import words
from log_dqn.cli.words import counted
from log_dqn.games import listing
from log_dqn.results import align, labels
from log_dqn.results.scores import common_games
from log_dqn.results.statistics import LEAST_SEEDS


def lines(
    runs: pd.DataFrame, left_out: pd.DataFrame, needs: str, divides_by_best: bool
) -> Iterator[str]:
    """Yields a line for each thing that is missing or unequal.

    Args:
        runs: the table of runs that have a score.
        left_out: that of runs that have none.
        needs: what a game needs to be in an aggregate.
        divides_by_best: see `comparison.Comparison`.
    """
    agents = labels.by_agent(runs)
    for agent, rows in agents.items():
        if labels.mark(rows):
            yield f"{agent}: {labels.marked_for(rows)}"
    for (agent, until), rows in left_out.groupby(["agent", "until"], sort=False, dropna=False):
        frames = words.frames(until, align.frame_skip(rows)) if until > 0 else ""
        where = f"after {frames}" if frames else "in their last 10% of iterations"
        yield (
            f"{agent}: {counted(len(rows), 'run has', 'runs have')} no scores {where}; left out "
            f"({listing(sorted(rows['game'].unique()))})"
        )
    normalised, common = {*runs.loc[runs["normalised"].notna(), "game"]}, common_games(runs)
    for game in sorted({*runs["game"]} - normalised):
        lacks = needs.removeprefix("a ")
        yield f"{game}: no {lacks}; it is in no aggregate and no relative score"
    for agent, rows in agents.items():
        if missing := sorted(normalised - {*rows["game"]}):
            yield (
                f"{agent}: no scores on {counted(len(missing), 'game')} ({listing(missing)}); "
                f"aggregates use the {counted(len(common), 'game')} that all agents have"
            )
    if not common:
        yield f"no game with {needs} is common to all agents: there are no aggregates"
    few: dict[str, list[str]] = {}
    for agent, rows in labels.by_agent(runs, common).items():
        counts = rows.groupby("game").size().tolist()
        if min(counts) < LEAST_SEEDS:
            few.setdefault(words.seeds(counts), []).append(agent)
    for seeds, with_few in few.items():
        yield f"{listing(with_few)}: {seeds} a game; intervals need {LEAST_SEEDS}"
    for agent, gammas in runs.groupby("agent", sort=False)["gamma"]:
        if gammas.nunique() > 1:
            found = ", ".join(f"{gamma:g}" for gamma in sorted(gammas.dropna().unique()))
            but = (
                "the gamma figure takes them apart"
                if divides_by_best
                else "it is not in the gamma figure"
            )
            yield (
                f"{agent}: its runs have different discount factors ({found}) and are averaged as "
                f"one agent's; {but}"
            )
