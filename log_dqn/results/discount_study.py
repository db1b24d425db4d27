"""The study of discount factors on small games: scores, intervals, tables and figures.

A table has a row for each run: `stage,game,agent,setting,gamma,seed,score`. A score is the mean
training return of the last tenth of the iterations. Over games, scores are normalised by the best
mean that any agent has at any discount factor on that game.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from log_dqn import compat
from log_dqn.games import canonical
from log_dqn.results import runs, scores, statistics
from log_dqn.results.looks import looks
from log_dqn.results.request import find_runs
from log_dqn.run_folder import checkpoints, configuration, data, layout

_RUN = {"stage": str, "game": str, "agent": str, "setting": str, "gamma": float, "seed": int}

RUN = list(_RUN)
"""The columns that name a run, in a table's order."""

SCORES = {**_RUN, "score": float}
CURVES = {**_RUN, "iteration": int, "mean_return": float}
"""The columns of the tables of scores and of curves, with their types."""

LOOKS = looks({"log_dqn": "LogDQN", "dqn": "DQN"})
"""How the agents are shown."""

_AGENTS = " or ".join(LOOKS)

_OVER_GAMES = "over games"

_Q_PLUS = "Values/QPlus"


def collect(
    results_dir: pathlib.Path, stage: str, num_iterations: int, notify: runs.Notify
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Reads the finished runs of a stage.

    Args:
        results_dir: folder with `{agent}/{setting}/{game}/{seed}/`.
        stage: name of the stage.
        num_iterations: iterations of a finished run.
        notify: is told of what can't be read or isn't finished.

    Returns:
        The scores, and the curves with a row for each iteration: `iteration,mean_return`.

    Raises:
        ValueError: if there are no finished runs, or an agent's runs here differ in more than what
            is scanned, or those of one setting at all.
    """
    rows, points = [], []
    common: dict[tuple[str, frozenset[str] | str], dict[str, Any]] = {}
    for curve in runs.read_runs(results_dir, "train", notify):
        run = f"{curve.agent} {curve.game} {curve.seed}"
        if fault := _fault(curve, num_iterations):
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


def _fault(curve: runs.LearningCurve, num_iterations: int) -> str | None:
    """Returns why a run is not one of the study's finished ones; None if it is."""
    faults = {
        f"its agent is not {_AGENTS}": curve.agent.partition("/")[0] not in LOOKS,
        "not finished": len(curve.returns) < num_iterations,
        f"no discount factor in its {layout.CONFIG}": curve.gamma is None,
        "its seed is not a number": not curve.seed.isdecimal(),
    }
    return next((fault for fault, is_there in faults.items() if is_there), None)


def read_table(path: pathlib.Path, columns: Mapping[str, type]) -> pd.DataFrame:
    """Reads a table of scores or of curves from a CSV file.

    Args:
        path: the file.
        columns: `SCORES` or `CURVES`.

    Raises:
        ValueError: if it has not these columns, something else in them, another agent than those
            of `LOOKS`, or a row twice.
    """
    try:
        # Without a scan a setting is empty, which isn't a missing number.
        texts = pd.read_csv(path, keep_default_na=False, dtype=str)
        if list(texts) != list(columns):
            raise ValueError(
                f"the columns are {', '.join(texts)}; they must be {', '.join(columns)}"
            )
        table = texts.astype(dict(columns))
    except FileNotFoundError as error:
        raise ValueError(f"{path}: not a file; collect a stage first") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    not_finite = ~np.isfinite(table.select_dtypes("number")).all(axis=1)
    for fault, rows in (
        ("a number that is not finite", not_finite),
        (f"another agent than {_AGENTS}", ~table["agent"].isin(LOOKS)),
    ):
        if rows.any():
            raise ValueError(f"{path} has {fault}: {_named(table[rows])}")
    again = table.duplicated(_key(table))
    if again.any():
        raise ValueError(f"{path} has a row twice: {_named(table[again])}")
    return table


def check_curves(scores_of: pd.DataFrame, curves: pd.DataFrame) -> None:
    """Checks that every run that has a score has a whole curve, which gives that score.

    Raises:
        ValueError: if one has none, or another; it names the first.
    """
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


def whole_games(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Returns the rows of the games that each agent has at each discount factor, and the others.

    Args:
        table: scores of one stage.
    """
    cells = table[["agent", "game", "gamma"]].drop_duplicates()
    per_game = cells.groupby("game").size()
    whole = per_game.index[per_game == table["agent"].nunique() * table["gamma"].nunique()]
    return table[table["game"].isin(whole)], sorted(set(per_game.index) - set(whole))


def whole_seeds(table: pd.DataFrame) -> tuple[pd.DataFrame, list[int]]:
    """Returns the rows of the seeds of which no run is missing, and the other seeds.

    Args:
        table: scores of one stage.
    """
    runs_of_seed = table.groupby("seed").size()
    cells = table[["agent", "game", "gamma"]].drop_duplicates()
    whole = runs_of_seed.index[runs_of_seed == len(cells)]
    return table[table["seed"].isin(whole)], sorted(set(runs_of_seed.index) - set(whole))


def scores_after(curves: pd.DataFrame, num_iterations: int) -> pd.DataFrame:
    """Returns the scores that runs would have if they had ended after some of their iterations.

    Args:
        curves: what `collect` returns.
        num_iterations: how many of a run's iterations count; a shorter run's score is NaN.
    """
    returns = curves.sort_values("iteration").groupby(RUN)["mean_return"]
    found = returns.agg(lambda run: scores.final_score(run.to_numpy(), num_iterations - 1))
    return found.reset_index(name="score")


def beside(of_stage: pd.DataFrame, curves: pd.DataFrame, num_iterations: int) -> pd.DataFrame:
    """Sets the scores of a stage of short runs beside those of longer ones, cut as short.

    Args:
        of_stage: scores of the stage.
        curves: of the longer runs.
        num_iterations: of the short runs.

    Returns:
        The scores of both, as of that stage, with the seeds and discount factors that both have.
    """
    (stage,) = of_stage["stage"].unique()
    cut = scores_after(curves, num_iterations).assign(stage=stage)
    for column in ("seed", "gamma"):
        common = set(of_stage[column]) & set(cut[column])
        of_stage, cut = (table[table[column].isin(common)] for table in (of_stage, cut))
    return merge(of_stage, cut)


def gradients(results_dir: pathlib.Path, notify: runs.Notify) -> pd.DataFrame:
    """Sets the gradients at the end of runs beside the epsilon that RMSProp adds to their variance.

    They are read from the optimizer's state in the runs' newest checkpoints: its decaying means of
    the gradient and of its square, of each weight.

    Args:
        results_dir: folder with `{agent}/{setting}/{game}/{seed}/`.
        notify: is told of checkpoints that are skipped.

    Returns:
        Columns `game,agent,gamma,epsilon,rms,above`: the root of the mean square gradient over all
        weights, and the share of weights whose gradient has a variance above epsilon.

    Raises:
        ValueError: if there are no runs, or none was trained with RMSProp.
        checkpoints.CheckpointError: if a run has no usable checkpoint.
    """
    rows = []
    for agent, game, _, folder in find_runs(results_dir):
        config = configuration.read(folder)
        if "rmsprop_tf.epsilon" not in config:
            continue
        checkpoint = layout.newest_checkpoint(folder, notify, "train it again")
        if checkpoint is None:
            continue
        leaves = data.load(checkpoint[0] / checkpoints.WEIGHTS)
        # Weights, the target network's, then the two means, each a quarter of the arrays.
        quarter = len(leaves) // 4
        mean, square = (
            np.concatenate([leaf.ravel() for leaf in leaves[start : start + quarter]])
            for start in (2 * quarter, 3 * quarter)
        )
        epsilon = config["rmsprop_tf.epsilon"]
        name = agent.partition("/")[0]
        _, gamma = runs.gamma_of(config) or (None, np.nan)
        above = float((square - mean**2 > epsilon).mean())
        rows.append((canonical(game), name, gamma, epsilon, float(np.sqrt(square.mean())), above))
    if not rows:
        raise ValueError(f"--results_dir={results_dir}: no runs with RMSProp")
    columns = ["game", "agent", "gamma", "epsilon", "rms", "above"]
    return pd.DataFrame(rows, columns=columns).sort_values(columns[:4], ignore_index=True)


def values(results_dir: pathlib.Path, notify: runs.Notify) -> pd.DataFrame:
    """Sets what LogDQN's plus head says at the end of runs, so far, beside what they return.

    Rewards are clipped to 1, so that no value is above 1 / (1 - gamma) in truth.

    Args:
        results_dir: folder with `{agent}/{setting}/{game}/{seed}/`, with TensorBoard's events.
        notify: is told of runs of LogDQN without such values.

    Returns:
        Columns `game,setting,score,q_plus,bound`: the mean training return of the last tenth of
        the iterations, the median of the last tenth of `Values/QPlus`, and 1 / (1 - gamma).

    Raises:
        ValueError: if there are no runs, or none has such values.
    """
    with compat.quiet():
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    rows = []
    for agent, game, seed, folder in find_runs(results_dir):
        name, _, setting = agent.partition("/")
        if name != "log_dqn":  # No other has a plus head.
            continue
        _, gamma = runs.gamma_of(configuration.read(folder)) or (None, np.nan)
        with compat.quiet():  # It may import TensorFlow.
            events = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
        tags = ("Train/AverageReturns", _Q_PLUS)
        if not set(tags) <= set(events.Tags()["scalars"]):
            notify(f"{agent} {game} {seed}: no {' or '.join(tags)} in its events; left out")
            continue
        returns, q_plus = (np.array([point.value for point in events.Scalars(tag)]) for tag in tags)
        tenth = q_plus[-max(1, len(q_plus) // 10) :]
        score = scores.final_score(returns)
        rows.append((canonical(game), setting, score, np.median(tenth), 1 / (1 - gamma)))
    if not rows:
        raise ValueError(f"--results_dir={results_dir}: no runs with {_Q_PLUS}")
    columns = ["game", "setting", "score", "q_plus", "bound"]
    return pd.DataFrame(rows, columns=columns).sort_values(columns[:2], ignore_index=True)


def best_means(table: pd.DataFrame) -> pd.Series:
    """Returns each game's best mean score of any agent at any discount factor."""
    return table.groupby(["game", "agent", "gamma"])["score"].mean().groupby("game").max()


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

    Args:
        table: scores of one stage.
        repetitions: bootstrap samples.

    Returns:
        Columns `agent,gamma,game,statistic,value,low,high`: the mean on each game in points per
        episode, and mean and IQM of normalised scores over games.
    """
    games, gammas = sorted(table["game"].unique()), sorted(table["gamma"].unique())
    normalised = normalise(table)
    rows = []
    for agent in _agents(table):
        parts = [(game, array_of(table, agent, gammas, [game])) for game in games]
        for game, part in [*parts, (_OVER_GAMES, array_of(normalised, agent, gammas, games))]:
            found = statistics.interval_of_enough_seeds(
                statistics.mean_median_iqm, part, repetitions=repetitions
            )
            mean, _, iqm = np.stack(found, axis=2)
            names = {"mean": mean, "iqm": iqm} if game == _OVER_GAMES else {"mean": mean}
            for name, bounds in names.items():
                rows += [
                    (agent, gamma, game, name, *map(float, bound))
                    for gamma, bound in zip(gammas, bounds, strict=True)
                ]
    columns = ["agent", "gamma", "game", "statistic", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def by_setting(table: pd.DataFrame, repetitions: int = 2000) -> pd.DataFrame:
    """Returns the mean score of the seeds of each setting, with 95% intervals.

    Args:
        table: scores of any stages.
        repetitions: bootstrap samples.

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

    Args:
        table: scores of one stage.

    Returns:
        Index `gamma,agent,setting`; a column for each game, and `mean`.
    """
    found = _without_gamma(table).pivot_table("score", ["gamma", "agent", "setting"], "game")
    return found.assign(mean=(found / found.max()).mean(axis=1))


def _without_gamma(table: pd.DataFrame) -> pd.DataFrame:
    settings = table["setting"].str.replace("^gamma=[^,]*,?", "", regex=True)
    return table.assign(setting=settings)


def claims(table: pd.DataFrame, repetitions: int = 2000) -> pd.DataFrame:
    """Tests the paper's two claims, each with a 95% interval.

    That low discount factors become usable: LogDQN's mean normalised score less DQN's at the same
    discount factor. That the best becomes better: the same, each at its best discount factor, one
    for all games or one for each; it is chosen again in each bootstrap sample. The intervals are
    over seeds, of the games and best means as they are.

    Args:
        table: scores of one stage, of LogDQN and DQN.
        repetitions: bootstrap samples.

    Returns:
        Columns `claim,game,value,low,high`, for each game and over games.
    """
    games, gammas = sorted(table["game"].unique()), sorted(table["gamma"].unique())
    normalised = normalise(table)
    both = [array_of(normalised, agent, gammas, games) for agent in ("log_dqn", "dqn")]

    def chosen(scored: np.ndarray) -> np.ndarray:
        """Returns means at each discount factor and at the best two, by game and over games."""
        of_games = scored.mean(axis=0)
        over_games = of_games[:, of_games.mean(axis=0).argmax()]
        columns = np.column_stack([of_games, over_games, of_games.max(axis=1)])
        return np.vstack([columns, columns.mean(axis=0)])

    def difference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return chosen(x) - chosen(y)

    found = statistics.interval_of_enough_seeds(difference, *both, repetitions=repetitions)
    best = " and ".join(f"{gammas[scored.mean(axis=(0, 1)).argmax()]:g}" for scored in both)
    names = [
        *(f"at gamma {gamma:g}" for gamma in gammas),
        f"each at the gamma that is best over games ({best})",
        "each at the gamma that is best on each game",
    ]
    rows = [
        (name, game, *map(float, bounds))
        for game, *of_game in zip([*games, _OVER_GAMES], *found, strict=True)
        for name, *bounds in zip(names, *of_game, strict=True)
    ]
    return pd.DataFrame(rows, columns=["claim", "game", "value", "low", "high"])


def _agents(table: pd.DataFrame) -> list[str]:
    return [agent for agent in LOOKS if agent in set(table["agent"])]


def _short(game: str) -> str:
    return game.rpartition("/")[2]


def draw_gammas(rows: pd.DataFrame) -> Figure:
    """Draws returns against the discount factor, a panel for each game and one over games.

    Args:
        rows: what `by_gamma` returns.
    """
    wanted = rows[(rows["game"] != _OVER_GAMES) | (rows["statistic"] == "iqm")]
    panels = [*sorted(set(wanted["game"]) - {_OVER_GAMES}), _OVER_GAMES]
    gammas = sorted(wanted["gamma"].unique())
    figure = Figure(figsize=(9.6, 3.0 * -(-len(panels) // 3)), layout="constrained")
    axes = figure.subplots(-(-len(panels) // 3), 3, squeeze=False).ravel()
    for panel, game in zip(axes, panels, strict=False):
        for agent in _agents(wanted):
            of_agent = wanted[(wanted["agent"] == agent) & (wanted["game"] == game)]
            of_agent = of_agent.sort_values("gamma")
            at = [gammas.index(gamma) for gamma in of_agent["gamma"]]
            look = LOOKS[agent]
            panel.plot(
                at, of_agent["value"], look.marker, linestyle=look.line, color=look.colour,
                label=look.name,
            )  # fmt: skip
            panel.fill_between(
                at, of_agent["low"], of_agent["high"], color=look.colour, alpha=0.2, linewidth=0
            )
        over_games = game == _OVER_GAMES
        panel.set_title("IQM over games" if over_games else _short(game), fontsize=10)
        if over_games:
            panel.set_ylabel("return / best mean of the game", fontsize=8)
        panel.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
        panel.set_ylim(bottom=0)
        panel.grid(True, axis="y", color="0.9")
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in axes[len(panels) :]:
        panel.set_visible(False)
    axes[0].legend(frameon=False)
    figure.supxlabel("discount factor")
    figure.supylabel("mean training return, last 10% of steps")
    return figure


def draw_curves(curves: pd.DataFrame, steps_per_iteration: int) -> Figure:
    """Draws learning curves, a row for each game and a column for each discount factor.

    Args:
        curves: what `collect` returns, of one stage.
        steps_per_iteration: agent steps.
    """
    games, gammas = sorted(curves["game"].unique()), sorted(curves["gamma"].unique())
    figure = Figure(figsize=(2.1 * len(gammas) + 0.6, 1.7 * len(games)), layout="constrained")
    grid = figure.subplots(len(games), len(gammas), squeeze=False, sharex=True, sharey="row")
    for row, game in zip(grid, games, strict=True):
        for axes, gamma in zip(row, gammas, strict=True):
            of_panel = curves[(curves["game"] == game) & (curves["gamma"] == gamma)]
            for agent in _agents(of_panel):
                of_agent = of_panel[of_panel["agent"] == agent]
                wide = of_agent.pivot(index="iteration", columns="seed", values="mean_return")
                millions = (wide.index.to_numpy() + 1) * steps_per_iteration / 1e6
                look = LOOKS[agent]
                axes.plot(millions, wide, color=look.colour, alpha=0.4, linewidth=0.7)
                axes.plot(
                    millions, wide.mean(axis=1), linestyle=look.line, color=look.colour,
                    label=look.name,
                )  # fmt: skip
            axes.grid(True, color="0.9")
            axes.spines[["top", "right"]].set_visible(False)
            if game == games[0]:
                axes.set_title(f"gamma {gamma:g}", fontsize=10)
        row[0].set_ylabel(_short(game))
        row[0].set_ylim(bottom=0)
    grid[0, 0].legend(frameon=False, fontsize=8)
    figure.supxlabel("agent steps (millions)")
    figure.supylabel("mean training return per episode")
    return figure


def as_markdown(table: pd.DataFrame, across: str = "gamma") -> str:
    """Returns a table of values with intervals as Markdown.

    Args:
        table: with the columns `value,low,high`, and others that name a row.
        across: the name that makes the columns, if the table has it.
    """
    shown = table.assign(
        value=[
            f"{value:.3g}" + ("" if np.isnan(low) else f" ({low:.3g} to {high:.3g})")
            for value, low, high in zip(table["value"], table["low"], table["high"], strict=True)
        ]
    ).drop(columns=["low", "high"])
    if across in shown:
        names = [column for column in shown if column not in (across, "value")]
        shown = shown.pivot(index=names, columns=across, values="value").fillna("-").reset_index()
    lines = [shown.columns, ["---"] * len(shown.columns), *shown.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"
