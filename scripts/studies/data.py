"""What is committed of the studies' runs in `docs/data`, and how finished runs are added to it."""

import itertools
import math
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from log_dqn import games
from log_dqn.checks import check
from log_dqn.cli import shell, words
from log_dqn.results import runs, scores
from log_dqn.run_folder import checkpoints, configuration
from studies.stages import STAGES, Job, folder_of, is_atari, is_beyond, planned

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "data"
STEPS = 50_000
"""Agent steps of an iteration of a run on MinAtar."""

_NAME = ["game", "agent", "setting"]
RUN = ["stage", *_NAME, "gamma", "seed"]
ATARI_RUN = [*_NAME, "seed"]
"""The columns that name a run on MinAtar, and on Atari, where stages share runs."""

COLUMNS = [*RUN, "iteration", "mean_return", "deviation"]
"""The columns of a row beyond MinAtar; MinAtar's have no deviation of an iteration's episodes."""

Notify = Callable[[str], None]


def path_of(stage: str) -> pathlib.Path:
    """Returns the file that a stage's runs are in, a row for each of their iterations."""
    where = "atari" if is_atari(stage) else "beyond" if is_beyond(stage) else "minatar"
    return FOLDER / f"{where}_curves.csv"


def read(stage: str) -> pd.DataFrame:
    """Returns the committed curves of the file of a stage; an absent setting is an empty text."""
    absent = {"mean_return": [""]}
    return pd.read_csv(path_of(stage), keep_default_na=False, na_values=absent)


def curves_of(stage: str) -> pd.DataFrame:
    """Returns the committed curves of a vectorized stage's whole runs.

    Raises:
        ValueError: there are none.
    """
    found = _whole(stage)
    if found.empty:
        raise ValueError(f"{path_of(stage)} has no runs of the stage {stage}")
    return found


def _whole(stage: str) -> pd.DataFrame:
    """Returns the curves of a vectorized stage, without runs that were planned to be longer."""
    curves = read(stage)
    curves = curves[curves["stage"] == stage]
    names, plan = curves[_NAME].itertuples(index=False, name=None), planned(stage)
    needed = [plan.get(name, {}).get("VectorizedRunner.num_iterations", 0) for name in names]
    return curves[curves.groupby(RUN)["iteration"].transform("size") >= needed]


def _key(table: pd.DataFrame) -> list[str]:
    """Returns the columns that name a row: those of its run, and of when."""
    return [name for name in (*RUN, "steps", "iteration") if name in table]


def _without_others(before: pd.DataFrame, new: pd.DataFrame, notify: Notify) -> pd.DataFrame:
    """Returns the new rows, without runs that have other returns than before.

    Those are other runs of the same name; `notify` is told.
    """
    run = _key(new)[:-1]
    both = new.merge(before, on=_key(new), suffixes=("", "_before"))
    same = np.isclose(both["mean_return"], both["mean_return_before"], 1e-5, equal_nan=True)
    others = set(both.loc[~same, run].itertuples(index=False, name=None))
    for other in sorted(others):
        notify(f"{' '.join(map(str, other))}: docs/data has another run of this name; left out")
    return new[[name not in others for name in new[run].itertuples(index=False, name=None)]]


def _merge(before: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Returns both tables' rows, sorted; a row that both have stays as it was before."""
    both = pd.concat([before, new]).drop_duplicates(_key(new), keep="first")
    return both.sort_values(_key(new), ignore_index=True)


def collect(stage: str, results_dir: pathlib.Path, notify: Notify) -> str:
    """Adds a stage's finished runs to `docs/data`, on Atari unfinished ones too.

    Returns a line that says how many were new. What is committed stays. `notify` is told of runs
    that are left out.

    Raises:
        ValueError: the folder has no finished run of the stage.
    """
    folder = folder_of(stage, results_dir)
    rows = (_atari if is_atari(stage) else _vectorized)(stage, folder, notify)
    new = pd.DataFrame(rows)
    if new.empty:
        raise ValueError(f"{folder}: no finished runs of the stage {stage}")
    before = read(stage)
    before = before.astype(new[list(before)].dtypes)  # An empty table has no types of its own.
    new = _without_others(before, new[list(before)], notify)
    after = _merge(before, new)
    path = path_of(stage)
    checkpoints.replace_file(path, after.to_csv(index=False, float_format="%.6g").encode())
    found, added = len(new[_key(new)[:-1]].drop_duplicates()), len(after) - len(before)
    return f"{path}: {words.counted(found, 'run')}, {added} new rows"


def missing(stage: str) -> Iterator[tuple[str, Job]]:
    """Yields, seed by seed, the rows of a stage with the games of which `docs/data` lacks a run.

    A run that was planned to be longer is lacking, too.
    """
    curves = read(stage) if is_atari(stage) else _whole(stage).assign(steps=0)
    steps = curves.groupby(ATARI_RUN)["steps"].max().to_dict()
    for seed, job in itertools.product(seeds_of(stage), STAGES[stage]):
        needed = job.atari_steps() if is_atari(stage) else 0
        lacking = {name[0] for name in job.runs() if steps.get((*name, seed), -1) < needed}
        if lacking:
            yield f"{seed}-{seed}", job.on(lacking)


def seeds_of(stage: str) -> range:
    """Returns the seeds that a stage has, once it is whole."""
    return shell.seeds(STAGES[stage][0].seeds)


def scores_of(curves: pd.DataFrame, iterations: int | None = None) -> pd.DataFrame:
    """Returns the scores of vectorized runs, or those that they had after some iterations.

    Returns:
        Columns of `RUN` and `score`: the mean training return of the last tenth of the iterations,
        in points per episode.
    """
    if iterations is not None:
        curves = curves[curves["iteration"] < iterations]
    returns = curves.sort_values("iteration").groupby(RUN)["mean_return"]
    return returns.agg(lambda run: scores.final_score(run.to_numpy())).reset_index(name="score")


def _vectorized(stage: str, folder: pathlib.Path, notify: Notify) -> Iterator[dict[str, Any]]:
    wanted, seeds = planned(stage), {*map(str, seeds_of(stage))}
    for run in runs.read_runs(folder, "train", notify):
        agent, _, setting = run.agent.partition("/")
        parameters = wanted.get((run.game, agent, setting))
        if parameters is None or run.seed not in seeds:
            fault = f"not a run of the stage {stage}"
        elif differs := _differences(parameters, run.parameters):
            fault = differs
        elif len(run.returns) < run.parameters["VectorizedRunner.num_iterations"]:
            fault = "not finished"
        else:
            name = (stage, run.game, agent, setting, run.gamma, int(run.seed))
            path = folder / run.agent / run.game / run.seed
            spreads = _spreads(path, notify) if is_beyond(stage) else itertools.repeat(math.nan)
            for iteration, measured in enumerate(zip(run.returns, spreads, strict=False)):
                yield dict(zip(COLUMNS, (*name, iteration, *measured), strict=True))
            continue
        notify(f"{run.agent} {run.game} {run.seed}: {fault}; left out")


def _differences(planned: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Says how a run's parameters differ from a stage's; empty if they do not."""
    values = configuration.by_short_name(found)
    differs = [
        f"{name} is {values.get(name)!r}, not {value!r}"
        for name, value in configuration.by_short_name(planned).items()
        if values.get(name) != value
    ]
    return f"another configuration than the stage's: {'; '.join(differs)}" * bool(differs)


def _spreads(run: pathlib.Path, notify: Notify) -> list[float]:
    """Returns the standard deviation of the episodes' returns of each iteration."""
    log, returns = runs.read_run(run, "train", notify) or ({}, ())
    episodes = (
        log[f"iteration_{number}"]["train_episode_returns"] for number in range(len(returns))
    )
    return [float(np.std(of_iteration)) for of_iteration in episodes]


def _atari(_: str, folder: pathlib.Path, notify: Notify) -> Iterator[dict[str, Any]]:
    # Of which stage a run is does not show in its folder.
    wanted = {
        name: parameters
        for stage in filter(is_atari, STAGES)
        for name, parameters in planned(stage).items()
    }
    for name, of_game, seed, run in runs.find_runs(folder):
        agent, _, setting = name.partition("/")
        try:
            (game,) = games.select_atari([games.canonical(of_game) or of_game])
            key = dict(zip(ATARI_RUN, (game, agent, setting, int(seed)), strict=True))
            parameters = runs.parameters_of(run, notify)
            if differs := _differences(wanted.get((game, agent, setting), {}), parameters):
                raise ValueError(differs)
            steps: Any = parameters.get("Runner.training_steps")
            check("Runner.training_steps", steps, bool(steps), "in its config.json")
            yield from [key | row for row in _atari_curve(run, steps, notify)]
        except (KeyError, OSError, ValueError) as error:
            notify(f"{name} {of_game} {seed}: {shell.explain(error)}; left out")


def _atari_curve(run: pathlib.Path, steps: int, notify: Notify) -> Iterator[dict[str, Any]]:
    """Yields the rows of a run on Atari, as far as it is, without its name.

    An iteration has `steps` agent steps.
    """
    log, returns = runs.read_run(run, "train", notify) or ({}, ())
    for iteration, value in enumerate(returns):
        yield {
            "steps": (iteration + 1) * steps,
            "mean_return": value,
            "episodes": np.size(log[f"iteration_{iteration}"]["train_episode_returns"]),
        }
