"""Atari's first 500,000 agent steps beside the published agents': tables and figures.

The published curves have a point for each 250,000 agent steps, a half here. A run on Atari is one
seed, so that a difference is set beside the least one that two runs can show.
"""

import collections
import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from log_dqn.checks import check
from log_dqn.cli import words
from log_dqn.results import baselines
from log_dqn.results.labels import Look, looks
from log_dqn.results.request import AGENTS, DQN, JAX_DQN, check_source
from log_dqn.results.runs import LearningCurve
from studies import data

PUBLISHED_STEPS = 250_000
"""Agent steps of an iteration of the published runs."""

AT_RANDOM = "random"
"""A policy at random: DQN that learns nothing, and so explores only."""

_NAMES = {
    "dqn/min_replay_history=1000000": AT_RANDOM,
    "dqn/beta1=0.9,learning_rate=6.25e-05": "dqn/Adam",
    "log_dqn/beta1=0.9,beta_reg=1,learning_rate=6.25e-05": "log_dqn/Adam,beta_reg=1",
    "log_dqn/beta1=0.9,beta_reg=1,c=0.1,learning_rate=6.25e-05": "log_dqn/Adam,beta_reg=1,c=0.1",
    "loglin_dqn/beta1=0.9,learning_rate=6.25e-05": "loglin_dqn/Adam",
}
"""How figures and tables name an agent with its setting, where that says too little."""

_VARIANTS = (("s", ":"), ("^", "-."), ("v", "--"), ("P", ":"), ("X", "-."))
"""Markers and lines of an agent's settings; no agent's own are among them."""

Published = Mapping[str, Mapping[str, np.ndarray]]
"""The published agents' first two points, shape [seeds, 2], by game and agent."""


def published_curves(source: str, games: Sequence[str], iterations: int) -> list[LearningCurve]:
    """Returns the published runs of so many iterations or more.

    Raises:
        ValueError: a game can't be read, a run is shorter, or a game has no run of DQN.
    """
    check_source(source)
    unread: list[str] = []
    runs = baselines.load(source, games, unread.append)
    if unread:
        raise ValueError(f"{unread[0]}, and this needs whole curves")
    for run in runs:
        name, length = f"the length of {run.agent}'s published run on {run.game}", len(run.returns)
        check(name, length, length >= iterations, f"{iterations} iterations or more")
    for game in games:
        agents = ", ".join(dict.fromkeys(run.agent for run in runs if run.game == game))
        is_there = DQN in agents.split(", ")
        check(f"the list of agents published on {game}", agents, is_there, f"one with {DQN}")
    return runs


def published(source: str, games: Sequence[str]) -> Published:
    """Returns the first two points of the published runs."""
    found: dict[str, dict[str, np.ndarray]] = {game: {} for game in games}
    for (game, agent), runs in itertools.groupby(
        published_curves(source, games, 2), lambda run: (run.game, run.agent)
    ):
        found[game][agent] = np.array([run.returns[:2] for run in runs])
    return found


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns rows with `name`: the agent with its setting, or what `_NAMES` has for it."""
    setting = rows["setting"]
    names = rows["agent"].str.cat(("/" + setting).where(setting != "", ""))
    return rows.assign(name=names.replace(_NAMES)).sort_values(["name", "seed"])


def trained(curves: pd.DataFrame) -> list[str]:
    """Returns the games that an agent was trained on; a policy at random isn't."""
    rows = named(curves)
    return sorted(rows[rows["name"] != AT_RANDOM]["game"].unique())


def halves(curves: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean return per episode of each 250,000 agent steps of each run.

    Returns:
        A table with the columns that name a run, `half` (0, 1, ...), `mean_return`, and `end`, the
        agent steps at the end of what the half has.
    """
    table = curves.assign(
        half=(curves["steps"] - 1) // PUBLISHED_STEPS,
        total=curves["mean_return"] * curves["episodes"],
    )
    by_half = table.groupby([*data.ATARI_RUN, "half"])
    sums = by_half[["total", "episodes"]].sum()
    means = (sums["total"] / sums["episodes"]).rename("mean_return").to_frame()
    return means.assign(end=by_half["steps"].max()).reset_index()


def smallest_difference(points: np.ndarray, others: int) -> float:
    """Returns the least significant difference between one run and the mean of others.

    Args:
        points: the published seeds' means, shape [seeds], whose spread all runs are taken to have.
        others: how many runs the others are.

    Returns:
        Half of the 95% interval of the difference (Student's t), in points per episode.
    """
    spread = points.std(ddof=1) * np.sqrt(1 + 1 / others)
    return float(stats.t.ppf(0.975, len(points) - 1) * spread)


def _of_seeds(points: np.ndarray) -> str:
    return "{} ({} to {})".format(*map(words.rounded, (points.mean(), points.min(), points.max())))


def _of_runs(runs: pd.DataFrame, end: int) -> str:
    """Returns each run's mean, and where it ends if before `end` agent steps."""
    return ", ".join(
        words.rounded(run.mean_return) + f" (to {run.end:,})" * (run.end < end)
        for run in runs.itertuples()
    )


def table(curves: pd.DataFrame, found: Published, half: int) -> str:
    """Returns the mean returns of 250,000 agent steps as Markdown: a row an agent, a column a game.

    A policy at random has the mean of its first 250,000 steps, over seeds, in either half.

    Args:
        curves: committed runs on Atari.
        found: what `published` returns.
        half: 0 for the first 250,000 steps, 1 for the second.
    """
    means = named(halves(curves))
    is_random = means["name"] == AT_RANDOM
    random = means[is_random & (means["half"] == 0)].groupby("game")["mean_return"].mean()
    own = means[~is_random & (means["half"] == half)]
    cells = {AT_RANDOM: random.map(words.rounded).to_dict()}
    points = {
        agent: {game: of[agent][:, half] for game, of in found.items() if agent in of}
        for agent in AGENTS
    }
    for agent, by_game in points.items():
        cells[f"published {AGENTS[agent]}"] = {game: _of_seeds(of) for game, of in by_game.items()}
    end = (half + 1) * PUBLISHED_STEPS
    for name, of_name in own.groupby("name"):
        cells[name] = {game: _of_runs(runs, end) for game, runs in of_name.groupby("game")}
    for agent in (DQN, JAX_DQN):
        for text, all_seeds in (("a run against", True), ("two runs that vary as", False)):
            cells[f"*significant: {text} {AGENTS[agent]}*"] = {
                game: words.rounded(smallest_difference(of, len(of) if all_seeds else 1))
                for game, of in points[agent].items()
            }
    rows = ([name, *(of.get(game, "-") for game in found)] for name, of in cells.items() if of)
    return words.markdown([["score", *found], *rows])


def setting_looks(names: Sequence[str]) -> dict[str, Look]:
    """Gives each setting its agent's colour, and one of `_VARIANTS`, again after so many."""
    found, settings = {}, collections.Counter[str]()
    for name in names:
        agent, _, setting = name.partition("/")
        found[name] = looks({agent: name})[agent]
        if setting:
            marker, line = _VARIANTS[settings[agent] % len(_VARIANTS)]
            found[name] = found[name]._replace(marker=marker, line=line)
            settings[agent] += 1
    return found


def _draw_band(axes: Any, agent: str, points: np.ndarray) -> None:
    """Draws the least to the greatest of a published agent's seeds, shape [seeds, iterations]."""
    edges = np.arange(points.shape[1] + 1) * PUBLISHED_STEPS / 1000
    low, high = ((*of, of[-1]) for of in (points.min(axis=0), points.max(axis=0)))
    look = looks({agent: f"published {AGENTS[agent]}, {len(points)} seeds"})[agent]
    axes.fill_between(
        edges, low, high, step="post", color=look.colour, alpha=0.35, linewidth=0, label=look.name
    )


def draw(curves: pd.DataFrame, found: Published, bands: Sequence[str]) -> Figure:
    """Draws a panel for each game: means of 250,000 agent steps, on the bands of published seeds.

    Args:
        curves: committed runs on Atari.
        found: what `published` returns for the games that an agent was trained on.
        bands: published agents, of which each game has a band, where it has the agent.
    """
    rows = named(halves(curves))
    settings = setting_looks(list(dict.fromkeys(rows["name"])))
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    columns = min(3, len(found))
    for number, (game, agents) in enumerate(found.items(), 1):
        axes = figure.add_subplot(-(-len(found) // columns), columns, number)
        for agent in bands:
            if agent in agents:
                _draw_band(axes, agent, agents[agent])
        for name, of_name in rows[rows["game"] == game].groupby("name", sort=False):
            look = settings[name]
            for again, (_, run) in enumerate(of_name.groupby("seed")):
                # In the middle of the steps that it is the mean of.
                middle = (run["half"] * PUBLISHED_STEPS + run["end"]) / 2000
                axes.plot(
                    middle, run["mean_return"], color=look.colour, marker=look.marker,
                    markersize=5, linestyle=look.line, linewidth=1.2,
                    label=None if again else look.name,
                )  # fmt: skip
        axes.set_title(game)
        axes.grid(True, color="0.92")
        axes.spines[["top", "right"]].set_visible(False)
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles, loc="outside upper center", ncols=3, columnspacing=1,
        handlelength=3.5, frameon=False, fontsize=9,
    )  # fmt: skip
    figure.supxlabel("agent steps (thousands)")
    figure.supylabel("mean training return per episode")
    return figure


def report(source: str, out: pathlib.Path) -> tuple[pd.DataFrame, Published]:
    """Draws the figures from `docs/data` and the published curves, and prints the tables.

    Returns:
        The committed curves, and what `published` returns.
    """
    curves = data.read("atari")
    found = published(source, trained(curves))
    # LogDQN's settings look alike on the scale of what learns, and have a picture with DQN's alone.
    is_log_dqn = curves["agent"] == "log_dqn"
    with_dqn = curves["game"].isin(curves[is_log_dqn]["game"]) & (curves["agent"] == "dqn")
    for name, shown, bands in (
        ("atari.png", curves[~is_log_dqn | (curves["setting"] == "")], (DQN, JAX_DQN)),
        ("atari_log_dqn.png", curves[is_log_dqn | with_dqn], (DQN,)),
    ):
        if games := trained(shown):
            out.mkdir(parents=True, exist_ok=True)
            draw(shown, {game: found[game] for game in games}, bands).savefig(out / name, dpi=150)
            print(out / name)
    for half, title in enumerate(("first", "second")):
        print(f"\nMean returns of the {title} 250,000 agent steps:\n\n{table(curves, found, half)}")
    print()
    return curves, found
