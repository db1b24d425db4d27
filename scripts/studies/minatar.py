"""The tables and figures of the stages on MinAtar, from the committed curves.

Intervals are 95% t intervals over seeds, Welch's for a difference of two agents.
"""

import itertools
import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from log_dqn.cli import words
from log_dqn.results import figures
from log_dqn.results.discount import OVER_GAMES, without_gamma
from log_dqn.results.labels import looks
from log_dqn.results.scores import divided_by_best
from log_dqn.results.statistics import Interval, t_interval
from studies import data
from studies.stages import TUNED, is_beyond

AGENTS = looks({"loglin_dqn": "LogLinDQN", "log_dqn": "LogDQN", "dqn": "DQN"})
"""The agents, in the order in which they are compared, and how they are shown."""

CLAIMED = ("main", "controls", "confirm", "confirm_best")
"""The stages that compare agents, each with its best setting there."""

DRAWN = {"main": "minatar", "beyond": "beyond"}
"""The stages with figures against the discount factor, and how their names begin."""

MARGIN = 0.05
"""What an agent may lose in mean normalised score and still be as good as another."""

LEAST_SEEDS = 5
"""If no setting has so many seeds, a table has the least and the greatest, not an interval."""


class Contrast(NamedTuple):
    """How far one agent is above another.

    Attributes:
        difference: of the means over games of normalised scores, with Welch's interval over seeds.
        of_games: the same with the paired t interval over games, as if they were a sample.
        log_ratio: the mean over games of ln(mean score of the one / of the other).
    """

    difference: Interval
    of_games: Interval
    log_ratio: float


def contrast(one: np.ndarray, other: np.ndarray) -> Contrast:
    """Compares two agents by their normalised scores, shape [seeds, games] each."""
    means, others = one.mean(axis=0), other.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # A mean may be 0.
        log_ratio = float(np.log(means / others).mean())
    seeds = t_interval(one.mean(axis=1), other.mean(axis=1))
    return Contrast(seeds, t_interval(means - others), log_ratio)


def normalise(scores: pd.DataFrame) -> pd.DataFrame:
    """Divides scores by the best mean of any agent and setting on their game."""
    return divided_by_best(scores, ["agent", "setting"])


def by_agent(scores: pd.DataFrame) -> dict[str, dict[float, np.ndarray]]:
    """Returns the normalised scores of agents by discount factor, shape [seeds, games]."""
    return {
        agent: {
            gamma: rows.pivot(index="seed", columns="game", values="score").to_numpy()
            for gamma, rows in of_agent.groupby("gamma")
        }
        for agent, of_agent in normalise(scores).groupby("agent")
    }


def present(scores: pd.DataFrame) -> list[str]:
    """Returns the agents of a table, in the order of `AGENTS`."""
    return [agent for agent in AGENTS if agent in set(scores["agent"])]


def text_of(found: Interval, form: str = ".3g") -> str:
    """Returns a value with its interval, if it has one."""

    def text(number: float) -> str:
        shown = f"{number:{form}}"
        return shown if float(shown) else shown.removeprefix("-")

    value, low, high = map(text, map(float, found))
    return value if np.isnan(found.low) else f"{value} ({low} to {high})"


def markdown(rows: pd.DataFrame, across: str = "") -> str:
    """Returns a table with `cell` as Markdown; the column `across` has the names of its columns."""
    if across:
        index = [column for column in rows if column not in (across, "cell")]
        rows = rows.pivot(index=index, columns=across, values="cell").fillna("-").reset_index()
    return words.markdown([[*map(str, row)] for row in (rows.columns, *rows.to_numpy())])


def by_setting(scores: pd.DataFrame) -> str:
    """Returns the mean score of each setting's seeds, in points per episode, as Markdown."""
    cells = without_gamma_in(scores).groupby(["game", "agent", "setting", "gamma"])["score"]
    few = cells.size().max() < LEAST_SEEDS
    rows = []
    for key, of_setting in cells:
        seeds = of_setting.to_numpy()
        found = t_interval(seeds)
        if few and len(seeds) > 1:
            found = Interval(found.value, seeds.min(), seeds.max())
        rows.append((*key, len(seeds), text_of(found)))
    table = pd.DataFrame(rows, columns=["game", "agent", "setting", "gamma", "seeds", "cell"])
    what = "least to greatest seed" if few else "95% t interval over seeds"
    return f"Mean score ({what}):\n\n{markdown(table, 'gamma')}"


def over_games(scores: pd.DataFrame) -> pd.DataFrame:
    """Returns each agent's mean score on each game, and normalised over games, with intervals.

    Returns:
        Columns `agent,game,gamma,value,low,high`.
    """
    normalised = normalise(scores)
    per_seed = normalised.groupby(["agent", "gamma", "seed"])["score"].mean().reset_index()
    both = scores
    if scores["game"].nunique() > 1:
        both = pd.concat([scores, per_seed.assign(game=OVER_GAMES)])
    rows = [
        (*key, *map(float, t_interval(of.to_numpy())))
        for key, of in both.groupby(["agent", "game", "gamma"])["score"]
    ]
    return pd.DataFrame(rows, columns=["agent", "game", "gamma", "value", "low", "high"])


def means(scores: pd.DataFrame) -> str:
    """Returns mean scores, and their mean over games, each as part of the largest, as Markdown."""
    named = without_gamma_in(scores)
    found = named.pivot_table("score", ["gamma", "agent", "setting"], "game")
    table = found.assign(mean=(found / found.max()).mean(axis=1)).reset_index()
    return markdown(table.map(lambda cell: cell if isinstance(cell, str) else f"{cell:.3g}"))


def best_settings(scores: pd.DataFrame) -> pd.DataFrame:
    """Returns each agent's rows of the setting whose normalised mean over games is the highest."""
    of_settings = without_gamma_in(normalise(scores)).groupby(["agent", "setting"])["score"].mean()
    best = of_settings.groupby("agent").idxmax()
    named = without_gamma_in(scores)[["agent", "setting"]].apply(tuple, axis=1)
    return scores[named.isin(best)]


def without_gamma_in(scores: pd.DataFrame) -> pd.DataFrame:
    """Names settings without their discount factor."""
    # A setting is an agent's name after the slash.
    return scores.assign(setting=("/" + scores["setting"]).map(without_gamma))


def claims(scores: pd.DataFrame, one: str, other: str) -> str:
    """Compares two agents as the paper's two claims do, on each game and over games, as Markdown.

    That low discount factors become usable: one agent's mean normalised score less the other's at
    the same discount factor. That the best becomes better: each at its best discount factor, one
    for all games or one for each. The interval doesn't know that the same seeds chose it. The last
    row is of the one's lowest discount factor less the other's best.
    """
    games = [*sorted(scores["game"].unique()), OVER_GAMES]
    agents = by_agent(scores)
    gammas = list(agents[one])
    # Shape [gammas, seeds, games] each.
    both = [np.stack([*agents[name].values()]) for name in (one, other)]
    over = [array.mean(axis=(1, 2)).argmax() for array in both]
    best = " and ".join(f"{gammas[index]:g}" for index in over)
    compared = {
        f"at gamma {gamma:g}": [a[index] for a in both] for index, gamma in enumerate(gammas)
    }
    if len(gammas) > 1:
        compared["each at the gamma that is best on each game"] = [*map(_best_on_each_game, both)]
        compared[f"each at the gamma that is best over games ({best})"] = [
            array[index] for array, index in zip(both, over, strict=True)
        ]
        low, high = gammas[0], gammas[over[1]]
        compared[f"at gamma {low:g}, the other at its best ({high:g})"] = [
            both[0][0],
            both[1][over[1]],
        ]
    rows = []
    for claim, pair in compared.items():
        # The mean over games is one more column.
        found = t_interval(*(np.column_stack([array, array.mean(axis=1)]) for array in pair))
        cells = (text_of(Interval(*parts), ".2f") for parts in zip(*found, strict=True))
        rows.append([claim, *cells])
    return words.markdown([["claim", *games], *rows])


def at_best_on_each_game(scores: pd.DataFrame, agent: str) -> np.ndarray:
    """Returns normalised scores with an agent's best setting on each game, shape [seeds, games]."""
    settings = normalise(scores).query("agent == @agent").groupby("setting")
    tables = [rows.pivot(index="seed", columns="game", values="score") for _, rows in settings]
    return _best_on_each_game(np.stack(tables))


def _best_on_each_game(array: np.ndarray) -> np.ndarray:
    """Returns the row with the best mean over seeds on each game, of shape [rows, seeds, games]."""
    best = array.mean(axis=1).argmax(axis=0)
    return np.take_along_axis(array, best[None, None], axis=0)[0]


def status(difference: Interval) -> str:
    """Returns what the interval of a difference says of the first agent, as the plan has it."""
    if difference.low > 0:
        return "superior"
    if difference.high < 0:
        return "worse"
    return "as good as" if difference.low > -MARGIN else "neither"


def parts_of(games: Sequence[str]) -> dict[str, np.ndarray]:
    """Returns which of the games tuned LogLinDQN, which are held out, and all, by name."""
    is_tuned = np.isin(games, TUNED)
    return {"tuned": is_tuned, "held out": ~is_tuned, "all": is_tuned | True}


def contrasts(scores: pd.DataFrame, one: str, others: Sequence[str]) -> str:
    """Compares an agent with others on the tuned games, the held-out ones, and all, as Markdown."""
    agents, parts = by_agent(scores), parts_of(sorted(scores["game"].unique()))
    heads = ["difference", "games as the sample", "mean ln ratio", "status"]
    rows = [["gamma", "games", f"{one} less", *heads]]
    for (gamma, own), (part, which), other in itertools.product(
        agents[one].items(), parts.items(), others
    ):
        if which.any():
            found = contrast(own[:, which], agents[other][gamma][:, which])
            cells = [*(text_of(each, ".3f") for each in found[:2]), f"{found.log_ratio:.2f}"]
            rows.append([f"{gamma:g}", part, other, *cells, status(found.difference)])
    return words.markdown(rows)


def beside(stage: pd.DataFrame, main: pd.DataFrame) -> pd.DataFrame:
    """Returns a stage's scores with those of the study's LogDQN and DQN after as many iterations.

    Both tables are curves; games, discount factors and seeds are those that both have.
    """
    length = stage["iteration"].max() + 1
    longer = data.scores_of(main[main["agent"].isin(["log_dqn", "dqn"])], length)
    scores = data.scores_of(stage)
    for column in ("game", "gamma", "seed"):
        common = set(scores[column]) & set(longer[column])
        scores, longer = (table[table[column].isin(common)] for table in (scores, longer))
    return pd.concat([scores, longer.assign(setting=longer["setting"] + ",the study's")])


def title(game: str) -> str:
    """Returns a game's name without its library's: Pac man for jumanji_games-pac_man."""
    name = re.sub("^jumanji_games-(.)", lambda found: found[1].upper(), game)
    return re.sub("-(bsuite|misc)$", "", name).replace("_", " ")


def draw_curves(curves: pd.DataFrame) -> Figure:
    """Draws learning curves of seeds and their mean, a row a game, a column a discount factor."""
    games, gammas = sorted(curves["game"].unique()), sorted(curves["gamma"].unique())
    figure = Figure(figsize=(2.1 * len(gammas) + 0.6, 1.7 * len(games) + 0.8), layout="constrained")
    grid = figure.subplots(len(games), len(gammas), squeeze=False, sharex=True, sharey="row")
    for (row, game), (column, gamma) in itertools.product(enumerate(games), enumerate(gammas)):
        axes = grid[row, column]
        of_panel = curves[(curves["game"] == game) & (curves["gamma"] == gamma)]
        for agent in present(of_panel):
            of_agent = of_panel[of_panel["agent"] == agent]
            wide = of_agent.pivot(index="iteration", columns="seed", values="mean_return")
            millions = (wide.index.to_numpy() + 1) * data.STEPS / 1e6
            colour, line = AGENTS[agent].colour, AGENTS[agent].line
            axes.plot(millions, wide, color=colour, alpha=0.4, linewidth=0.7)
            mean = wide.mean(axis=1)
            axes.plot(millions, mean, linestyle=line, color=colour, label=AGENTS[agent].name)
        axes.grid(True, color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
        if row == 0:
            axes.set_title(f"gamma {gamma:g}", fontsize=10)
        if column == 0:
            axes.set_ylabel(game.rpartition("/")[2])
    for axes in grid[:, 0]:  # After all panels of a row, since set_ylim ends their autoscaling.
        axes.set_ylim(bottom=0)
    grid[0, 0].legend(frameon=False, fontsize=8)
    figure.supxlabel("agent steps (millions)")
    figure.supylabel("mean training return")
    return figure


def report(stage: str, out: pathlib.Path) -> pd.DataFrame:
    """Prints the tables of a stage, and draws its figures, if it has any.

    Returns:
        The scores of the stage's runs; see `data.scores_of`.

    Raises:
        ValueError: `docs/data` has no run of the stage.
    """
    curves = data.curves_of(stage)
    scores = shown = data.scores_of(curves)
    print(f"The stage {stage}, {words.counted(len(scores), 'run')}:\n")
    if stage in DRAWN:
        table = over_games(scores)
        if is_beyond(stage):  # Each of its games is decided alone.
            table = table[table["game"] != OVER_GAMES]
        named = table.assign(game=table["game"].map(title))
        drawn = {f"{DRAWN[stage]}_gammas": figures.gamma_panels(named, AGENTS)}
        if stage == "main":
            drawn["minatar_curves"] = draw_curves(curves)
        out.mkdir(parents=True, exist_ok=True)
        for name, figure in drawn.items():
            figure.savefig(out / f"{name}.png", dpi=150)
            print(out / f"{name}.png")
        cells = [text_of(Interval(*row)) for row in table[["value", "low", "high"]].to_numpy()]
        print(markdown(table[["agent", "game", "gamma"]].assign(cell=cells), "gamma"), end="\n\n")
    else:
        if stage == "floor":
            shown = beside(curves, data.curves_of("main"))
            print(means(shown), end="\n\n")
        print(by_setting(shown), end="\n\n")
    if stage in CLAIMED and any(data.missing(stage)):
        print("Agents are not compared before all runs of the stage are there.\n")
    elif stage in CLAIMED:
        best = best_settings(scores)
        for one, other in itertools.combinations(present(best), 2):
            print(f"{AGENTS[one].name} less {AGENTS[other].name}:\n\n{claims(best, one, other)}\n")
            print(f"{contrasts(best, one, [other])}\n")
            if len(scores) > len(best) and scores["gamma"].nunique() == 1:
                both = (at_best_on_each_game(scores, agent).mean(axis=1) for agent in (one, other))
                found = text_of(t_interval(*both), ".2f")
                print(f"Each with its best setting on each game, chosen afterwards: {found}\n")
    return scores
