"""What is missing or unequal in a comparison, in words."""

from collections.abc import Iterator

import pandas as pd

from log_dqn.games import listing
from log_dqn.program import words
from log_dqn.program.words import counted
from log_dqn.results import discount, labels
from log_dqn.results.scores import common_games
from log_dqn.results.statistics import LEAST_SEEDS


def lines(runs: pd.DataFrame, left_out: pd.DataFrame, needs: str) -> Iterator[str]:
    """Yields a line for each thing that is missing or unequal.

    Args:
        runs: the table of runs that have a score.
        left_out: that of runs that have none.
        needs: what a game needs to be in an aggregate.
    """
    agents = labels.by_agent(runs)
    for agent, rows in agents.items():
        if deviations := labels.deviations(rows):
            yield (
                f"{agent}: {'perhaps ' * labels.is_unrecorded(rows)}not comparable with "
                f"{labels.standard(rows)}: {'; '.join(deviations)}"
            )
    for (agent, until), rows in left_out.fillna({"until": 0}).groupby(
        ["agent", "until"], sort=False
    ):
        yield (
            f"{agent}: {counted(len(rows), 'run has', 'runs have')} no scores after "
            f"{words.frames(until)}; left out ({listing(sorted(rows['game'].unique()))})"
        )
    yield from _unequal_ends(runs[runs["until"].isna()])
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
    yield from _unequal_seeds(runs[runs["game"].isin(common)])
    yield from _short_curves(runs[runs["game"].isin(common)])
    yield from discount.participants(runs)[1]


def _unequal_ends(runs: pd.DataFrame) -> Iterator[str]:
    """Yields what ends early where each run counts to its own end."""
    groups = runs["game"].where(runs["apart"], "")
    for _, comparable in runs.groupby(groups):
        longest = comparable["frames"].max()
        for agent, rows in labels.by_agent(comparable).items():
            if rows["frames"].min() < 0.95 * longest:
                yield (
                    f"{agent}: its runs end after {words.span(rows['frames'].tolist())} frames, "
                    f"others after {words.frames(longest)}; --iteration=common compares all at "
                    "equal experience"
                )


def _unequal_seeds(runs: pd.DataFrame) -> Iterator[str]:
    few: dict[str, list[str]] = {}
    for agent, rows in labels.by_agent(runs).items():
        counts = rows.groupby("game").size().tolist()
        if min(counts) < LEAST_SEEDS:
            few.setdefault(words.seeds(counts), []).append(agent)
        elif min(counts) != max(counts):
            yield f"{agent}: {words.span(counts)} seeds a game"
    for seeds, agents in few.items():
        yield f"{listing(agents)}: {seeds} a game; intervals need {LEAST_SEEDS}"


def _short_curves(runs: pd.DataFrame) -> Iterator[str]:
    for agent, rows in labels.by_agent(runs).items():
        step = rows["length"].max()
        ends = rows["trained"] // step * step  # See `statistics.curves`.
        if not ends.min():
            yield (
                f"{agent}: no mean, median and IQM curves; a run of it ends before the first "
                f"iteration of another ({words.frames(step)})"
            )
        elif ends.min() < ends.max():
            yield (
                f"{agent}: its mean, median and IQM curves stop after {words.frames(ends.min())}, "
                "the last that all its runs have (the longest run ends after "
                f"{words.frames(ends.max())})"
            )
