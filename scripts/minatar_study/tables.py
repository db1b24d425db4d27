"""The study's tables of scores and of curves: collected from runs, read and checked.

A table has a row for each run: `stage,game,agent,setting,gamma,seed,score`. A score is the mean
training return of the last tenth of the iterations.
"""

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from log_dqn.results import runs, scores
from log_dqn.results.looks import looks
from log_dqn.run_folder import configuration, layout

_RUN = {"stage": str, "game": str, "agent": str, "setting": str, "gamma": float, "seed": int}

RUN = list(_RUN)
"""The columns that name a run, in a table's order."""

SCORES = {**_RUN, "score": float}
CURVES = {**_RUN, "iteration": int, "mean_return": float}
"""The columns of the tables of scores and of curves, with their types."""

AGENTS = looks({"loglin_dqn": "LogLinDQN", "log_dqn": "LogDQN", "dqn": "DQN"})
"""The agents, in the order in which they are set against each other, and how they are shown."""

_NAMES = " or ".join(AGENTS)


def collect(
    results_dir: pathlib.Path, stage: str, notify: runs.Notify
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Reads the finished runs of a stage; `notify` is told of what can't be read or isn't finished.

    An agent's runs may differ in what is scanned alone, and those of one setting not at all.

    Returns:
        The scores, and the curves with a row for each iteration: `iteration,mean_return`.
    """
    rows, points = [], []
    common: dict[tuple[str, frozenset[str] | str], dict[str, Any]] = {}
    for curve in runs.read_runs(results_dir, "train", notify):
        run = f"{curve.agent} {curve.game} {curve.seed}"
        if fault := _fault(curve):
            notify(f"{run}: {fault}; left out")
            continue
        agent, _, setting = curve.agent.partition("/")
        scanned = frozenset(value.partition("=")[0] for value in setting.split(","))
        fixed = {
            name: value
            for name, value in curve.parameters.items()
            if scanned.isdisjoint({name, name.rpartition(".")[2]})
        }
        for key, parameters in (((agent, scanned), fixed), ((agent, setting), curve.parameters)):
            known = common.setdefault(key, dict(parameters))
            # An older version's runs lack a parameter that came later.
            then, now = {**parameters, **known}, {**known, **parameters}
            if differences := configuration.differences(then, now):
                raise ValueError(
                    f"{run} has another configuration than the runs before it: "
                    f"{'; '.join(differences)}"
                )
            known.update(parameters)
        values = (stage, curve.game, agent, setting, curve.gamma, int(curve.seed))
        name = dict(zip(RUN, values, strict=True))
        rows.append({**name, "score": scores.final_score(curve.returns)})
        points += [
            {**name, "iteration": iteration, "mean_return": value}
            for iteration, value in enumerate(curve.returns)
        ]
    if not rows:
        raise ValueError(f"--results_dir={results_dir}: no finished runs")
    return (
        pd.DataFrame(rows).sort_values(RUN, ignore_index=True),
        pd.DataFrame(points).sort_values([*RUN, "iteration"], ignore_index=True),
    )


def _fault(curve: runs.LearningCurve) -> str | None:
    """Returns why a run is not one of the study's finished ones; None if it is."""
    planned = curve.parameters.get("VectorizedRunner.num_iterations", 0)
    faults = {
        f"its agent is not {_NAMES}": curve.agent.partition("/")[0] not in AGENTS,
        "not finished": len(curve.returns) < planned,
        f"no discount factor in its {layout.CONFIG}": curve.gamma is None,
        "its seed is not a number": not curve.seed.isdecimal(),
    }
    return next((fault for fault, is_there in faults.items() if is_there), None)


def read_table(path: pathlib.Path, columns: Mapping[str, type]) -> pd.DataFrame:
    """Reads a table of scores or of curves from a CSV file, with the columns `SCORES` or `CURVES`.

    Refuses other columns and agents, what is no number, and a row that is there twice.
    """
    try:
        # Without a scan a setting is empty, which isn't a missing number.
        texts = pd.read_csv(path, keep_default_na=False, dtype=str)
        if list(texts) != list(columns):
            raise ValueError(
                f"the columns are {', '.join(texts)}; they must be {', '.join(columns)}"
            )
        table = texts.astype(dict(columns))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ValueError(f"{path}: not a file; collect a stage first") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    not_finite = ~np.isfinite(table.select_dtypes("number")).all(axis=1)
    for fault, rows in (
        ("a number that is not finite", not_finite),
        (f"another agent than {_NAMES}", ~table["agent"].isin(AGENTS)),
    ):
        if rows.any():
            raise ValueError(f"{path} has {fault}: {_named(table[rows])}")
    again = table.duplicated(_key(table))
    if again.any():
        raise ValueError(f"{path} has a row twice: {_named(table[again])}")
    return table


def check_curves(scores_of: pd.DataFrame, curves: pd.DataFrame) -> None:
    """Checks that every run that has a score has a whole curve, which gives that score."""
    merged = scores_of.merge(curves[RUN].drop_duplicates(), how="left", indicator=True)
    without = merged[merged["_merge"] == "left_only"]
    if len(without):
        raise ValueError(
            f"{len(without)} runs have a score but no curve, first {_named(without)}; collect "
            "their stage again"
        )
    of_runs = curves.sort_values("iteration").groupby(RUN)
    found = of_runs.agg(
        last=("iteration", "max"), size=("iteration", "size"),
        found=("mean_return", lambda run: scores.final_score(run.to_numpy())),
    ).reset_index()  # fmt: skip
    both = scores_of.merge(found)
    # The files have six digits.
    fits = (both["last"] + 1 == both["size"]) & np.isclose(both["score"], both["found"], 1e-4)
    if not fits.all():
        raise ValueError(
            f"the score and the curve of {_named(both[~fits])} don't belong together; collect its "
            "stage again"
        )


def present(table: pd.DataFrame) -> list[str]:
    """Returns the agents of a table, in the order of `AGENTS`."""
    return [agent for agent in AGENTS if agent in set(table["agent"])]


def _key(table: pd.DataFrame) -> list[str]:
    return [*RUN, "iteration"] if "iteration" in table else RUN


def _named(rows: pd.DataFrame) -> str:
    """Names the first row."""
    return ", ".join(f"{name} {rows.iloc[0][name]}" for name in _key(rows))


def merge(before: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Returns both tables' rows, sorted; of a run that both have, those of `new`."""
    key = _key(new)
    both = pd.concat([before, new]).drop_duplicates(key, keep="last")
    return both.sort_values(key, ignore_index=True)


def whole(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Returns the rows of one stage without what is not whole, and names what is left out.

    Whole are the games that each agent has at each discount factor, and an agent's seeds of which
    no run on them is missing.
    """
    gammas = table["gamma"].nunique()
    cells = table[["agent", "game", "gamma"]].drop_duplicates()
    per_game = cells.groupby("game").size()
    games = per_game.index[per_game == table["agent"].nunique() * gammas]
    left_out = [", ".join(sorted(set(per_game.index) - set(games)))]
    table = table[table["game"].isin(games)]
    runs_of = table.groupby(["agent", "seed"])["score"].transform("size")
    is_whole = runs_of == len(games) * gammas
    for agent, seeds in table[~is_whole].groupby("agent")["seed"]:
        left_out.append(f"{agent}'s seeds {sorted(set(seeds))}")
    return table[is_whole], [name for name in left_out if name]


def scores_after(curves: pd.DataFrame, num_iterations: int) -> pd.DataFrame:
    """Returns the scores that runs would have if they had ended after some of their iterations.

    A shorter run's score is NaN.
    """
    returns = curves.sort_values("iteration").groupby(RUN)["mean_return"]
    found = returns.agg(lambda run: scores.final_score(run.to_numpy(), num_iterations - 1))
    return found.reset_index(name="score")


def beside(of_stage: pd.DataFrame, curves: pd.DataFrame, num_iterations: int) -> pd.DataFrame:
    """Sets LogDQN's scores of a stage of short runs beside its and DQN's longer ones, cut as short.

    Returns both as of that stage, with the seeds and discount factors that both have.
    """
    (stage,) = of_stage["stage"].unique()
    curves = curves[curves["agent"].isin(["log_dqn", "dqn"])]
    cut = scores_after(curves, num_iterations).assign(stage=stage)
    for column in ("seed", "gamma"):
        common = set(of_stage[column]) & set(cut[column])
        of_stage, cut = (table[table[column].isin(common)] for table in (of_stage, cut))
    return merge(of_stage, cut)
