"""The study's learning curves."""

import pandas as pd
from matplotlib.figure import Figure

from minatar_study.tables import AGENTS, present


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
            for agent in present(of_panel):
                of_agent = of_panel[of_panel["agent"] == agent]
                wide = of_agent.pivot(index="iteration", columns="seed", values="mean_return")
                millions = (wide.index.to_numpy() + 1) * steps_per_iteration / 1e6
                look = AGENTS[agent]
                axes.plot(millions, wide, color=look.colour, alpha=0.4, linewidth=0.7)
                axes.plot(
                    millions, wide.mean(axis=1), linestyle=look.line, color=look.colour,
                    label=look.name,
                )  # fmt: skip
            axes.grid(True, color="0.9")
            axes.spines[["top", "right"]].set_visible(False)
            if game == games[0]:
                axes.set_title(f"gamma {gamma:g}", fontsize=10)
        row[0].set_ylabel(game.rpartition("/")[2])
        row[0].set_ylim(bottom=0)
    grid[0, 0].legend(frameon=False, fontsize=8)
    figure.supxlabel("agent steps (millions)")
    figure.supylabel("mean training return per episode")
    return figure
