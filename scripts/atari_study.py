#!/usr/bin/env python3
"""Atari's first 500,000 agent steps beside the published DQN's: collects runs, draws the figure.

    bash scripts/atari_study.sh --games=Asterix
    python scripts/atari_study.py collect --results_dir=results/atari
    python scripts/atari_study.py report

The published curves have a point for each 250,000 agent steps, so that two stand beside them.
"""

import argparse
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from log_dqn.program import shell
from log_dqn.results.request import DOPAMINE, find_runs

DATA = pathlib.Path(__file__).resolve().parents[1] / "docs" / "data" / "atari_curves.csv"
FIGURES = DATA.parents[1] / "figures"

RUN = ["game", "agent", "setting", "seed"]
COLUMNS = [*RUN, "steps", "mean_return", "episodes", "q_plus"]
"""Of the curves: a row for each iteration of a run, with the agent steps at its end, and the plus
head's mean value there, where the agent has one."""

PUBLISHED_STEPS = 250_000
"""Agent steps of an iteration of the published runs."""

_RANDOM = "min_replay_history=1000000"
"""The setting of DQN that learns nothing, and so explores only: a policy at random."""


def _notify(line: str) -> None:
    print(f"atari_study.py: {line}", file=sys.stderr)


def _q_plus(folder: pathlib.Path, ends: Sequence[int]) -> Iterator[float | None]:
    """Yields the last of a run's `Values/QPlus` up to each of `ends`, in agent steps."""
    import tensorboard_events

    from log_dqn import log_space

    events = tensorboard_events.read(folder)
    has = log_space.Q_PLUS in events.Tags()["scalars"]
    points = events.Scalars(log_space.Q_PLUS) if has else []
    for end in ends:
        yield next((point.value for point in reversed(points) if point.step <= end), None)


def _rows(results_dir: pathlib.Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of finished runs on Atari."""
    from log_dqn import games
    from log_dqn.run_folder import configuration, layout, safe_pickle

    for name, game, seed, folder in find_runs(results_dir):
        agent, _, setting = name.partition("/")
        try:
            config = configuration.read(folder)
            planned, steps = (config[f"Runner.{n}"] for n in ("num_iterations", "training_steps"))
            with layout.log_path(folder, planned - 1).open("rb") as file:
                log = safe_pickle.load(file)
            run = dict(zip(RUN, (games.canonical(game), agent, setting, int(seed)), strict=True))
        except (KeyError, OSError, ValueError) as error:
            _notify(f"{name} {game} {seed}: no finished run of log-dqn train ({error}); left out")
            continue
        if run["game"] not in games.GAMES:
            _notify(f"{name} {game} {seed}: not on Atari; left out")
            continue
        ends = [(iteration + 1) * steps for iteration in range(planned)]
        values = _q_plus(folder, ends)
        for iteration, (end, q_plus) in enumerate(zip(ends, values, strict=True)):
            returns = log[f"iteration_{iteration}"]["train_episode_returns"]
            yield {
                **run,
                "steps": end,
                "mean_return": sum(returns) / max(len(returns), 1),
                "episodes": len(returns),
                "q_plus": q_plus,
            }


def read() -> Any:
    """Returns the committed curves; raises ValueError if they have other columns."""
    import pandas as pd

    # An agent's own settings are an empty text; a value that isn't there is none.
    table = pd.read_csv(DATA, keep_default_na=False, na_values={"q_plus": [""]})
    if list(table) != COLUMNS:
        raise ValueError(f"{DATA}: its columns must be {','.join(COLUMNS)}")
    return table


def collect(results_dir: pathlib.Path) -> None:
    """Adds the curves of finished runs to `docs/data`; a run that is there is replaced."""
    import pandas as pd

    from log_dqn.run_folder import checkpoints

    table = pd.DataFrame(_rows(results_dir), columns=COLUMNS)
    if table.empty:
        raise ValueError(f"--results_dir={results_dir}: no finished runs")
    if DATA.exists():
        before = read()
        known = before.set_index(RUN).index.isin(table.set_index(RUN).index)
        table = pd.concat([before[~known], table])
    table = table.sort_values([*RUN, "steps"])
    checkpoints.replace_file(DATA, table.to_csv(index=False, float_format="%.6g").encode())
    print(DATA)


def halves(curves: Any) -> Any:
    """Returns the mean return per episode of each 250,000 agent steps of each run.

    Args:
        curves: a table with `COLUMNS`.

    Returns:
        A table with the columns of `RUN`, `half` (0, 1, ...) and `mean_return`.
    """
    table = curves.assign(
        half=(curves["steps"] - 1) // PUBLISHED_STEPS,
        total=curves["mean_return"] * curves["episodes"],
    )
    sums = table.groupby([*RUN, "half"])[["total", "episodes"]].sum()
    return (sums["total"] / sums["episodes"]).rename("mean_return").reset_index()


def published(source: str, games: Sequence[str]) -> dict[str, Any]:
    """Returns the published DQN's first two points, shape [seeds, 2], by game.

    Raises:
        ValueError: if a game's file can't be read.
    """
    import numpy as np

    from log_dqn.results import baselines

    runs = [run for run in baselines.load(source, games, _notify) if run.agent == "DQN"]
    found = {
        game: np.array([run.returns[:2] for run in runs if run.game == game]) for game in games
    }
    for game, points in found.items():
        if np.isnan(points).any():
            raise ValueError(f"baselines is {source!r}; it must have the curves of {game}")
    return found


def smallest_difference(points: Any, seeds: int) -> float:
    """Returns the least difference of means that so many seeds show beside the published ones.

    Args:
        points: the published seeds' means, shape [seeds], whose spread both are taken to have.
        seeds: own seeds.

    Returns:
        Half of the 95% interval of the difference (Student's t), as a part of the published mean.
    """
    import numpy as np
    from scipy import stats

    spread = points.std(ddof=1) * np.sqrt(1 / seeds + 1 / len(points))
    return float(stats.t.ppf(0.975, len(points) - 1) * spread / abs(points.mean()))


def _named(rows: Any) -> Any:
    """Returns rows with `name`: the agent with its setting, or `random`."""
    setting = rows["setting"]
    names = rows["agent"].str.cat(("/" + setting).where(setting != "", ""))
    return rows.assign(name=names.where(setting != _RANDOM, "random")).sort_values(["name", "seed"])


def table(curves: Any, beside: Mapping[str, Any]) -> str:
    """Returns the second 250,000 agent steps as Markdown: a row a game, a column an agent.

    A policy at random has the mean of its first 250,000 steps, over seeds.
    """
    means = _named(halves(curves))
    random = means[(means["name"] == "random") & (means["half"] == 0)]
    random = random.groupby("game")["mean_return"].mean()
    last = means[(means["name"] != "random") & (means["half"] == 1)]
    names = list(dict.fromkeys(last["name"]))
    lines = [["game", "random", "published DQN (least to greatest seed)", *names, "shown from"]]
    for game, points in beside.items():
        second = points[:, 1]
        at_random = f"{random[game]:.3g}" if game in random.index else "-"
        cells = [game, at_random]
        cells.append(f"{second.mean():.3g} ({second.min():.3g} to {second.max():.3g})")
        own = [
            last[(last["game"] == game) & (last["name"] == name)]["mean_return"] for name in names
        ]
        cells += [", ".join(f"{value:.3g}" for value in returns) or "-" for returns in own]
        most = max(map(len, own), default=0)
        cells.append(f"{smallest_difference(second, most):.0%}" if most else "-")
        lines.append(cells)
    return _markdown(lines)


def values_table(curves: Any) -> str:
    """Returns the plus heads' mean values as Markdown: a row a run, a column each 100,000 steps."""
    from math import isnan

    rows = curves[curves["q_plus"].notna() & (curves["steps"] % 100_000 == 0)]
    by_run = _named(rows).pivot_table(
        index=["game", "name", "seed"], columns="steps", values="q_plus"
    )
    lines = [["game", "agent", "seed", *(f"{steps:,}" for steps in by_run.columns)]]
    for run, values in zip(by_run.index, by_run.to_numpy(), strict=True):
        lines.append([*map(str, run), *("-" if isnan(v) else f"{v:.3g}" for v in values)])
    return _markdown(lines)


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    """Returns a table of which the first line is the head."""
    return "\n".join(
        f"| {' | '.join(x)} |" for x in [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    )


def draw(curves: Any, beside: Mapping[str, Any]) -> Any:
    """Draws a panel for each game that an agent was trained on.

    Each has the runs' curves on the band of the published seeds.
    """
    import numpy as np
    from matplotlib.figure import Figure

    from log_dqn.results.looks import looks

    rows = _named(curves)
    trained = set(rows[rows["name"] != "random"]["game"])
    beside = {game: points for game, points in beside.items() if game in trained}
    found = looks({name: name for name in dict.fromkeys(rows["name"])})
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    columns = min(3, len(beside))
    rows_of_panels = -(-len(beside) // columns)
    for number, (game, points) in enumerate(beside.items(), 1):
        axes = figure.add_subplot(rows_of_panels, columns, number)
        edges = np.arange(points.shape[1] + 1) * PUBLISHED_STEPS / 1000
        low, high = ((*of, of[-1]) for of in (points.min(axis=0), points.max(axis=0)))
        axes.fill_between(
            edges, low, high, step="post", color="0.8", label=f"published DQN, {len(points)} seeds"
        )
        for name, of_name in rows[rows["game"] == game].groupby("name", sort=False):
            look = found[name]
            for again, (_, run) in enumerate(of_name.groupby("seed")):
                axes.plot(
                    run["steps"] / 1000, run["mean_return"], color=look.colour, marker=look.marker,
                    markersize=3, linestyle=look.line, linewidth=1.2,
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
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=5, frameon=False)
    figure.supxlabel("agent steps (thousands)")
    figure.supylabel("mean training return per episode")
    return figure


def report(source: str, folder: str) -> None:
    """Draws the figure from `docs/data` and the published curves, and prints the tables."""
    shell.check_writable("out", folder)
    if not DATA.is_file():
        raise ValueError(f"{DATA}: not a file; collect runs first")
    curves = read()
    if (curves["setting"] == _RANDOM).all():
        raise ValueError(f"{DATA}: no runs but of a policy at random; collect others first")
    beside = published(source, sorted(curves["game"].unique()))
    path = pathlib.Path(folder) / "atari.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(curves, beside).savefig(path, dpi=110)
    print(path)
    print(table(curves, beside))
    if curves["q_plus"].notna().any():
        print(f"\nMean value of the plus head:\n\n{values_table(curves)}")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("collect").add_argument("--results_dir", type=shell.folder, required=True)
    reported = commands.add_parser("report")
    reported.add_argument("--baselines", default=DOPAMINE, help="as in log-dqn compare")
    reported.add_argument("--out", default=str(FIGURES), help="folder (default: %(default)s)")
    args = parser.parse_args(argv)
    if args.command == "collect":
        return shell.run_once(parser.prog, lambda: collect(args.results_dir))
    return shell.run_once(parser.prog, lambda: report(args.baselines, args.out))


if __name__ == "__main__":
    sys.exit(main())
