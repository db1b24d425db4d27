#!/usr/bin/env python3
"""Atari's first 500,000 agent steps beside the published DQNs': collects runs, draws the figures.

    bash scripts/atari_study.sh --games=Asterix
    python scripts/atari_study.py collect --results_dir=results/atari
    python scripts/atari_study.py report

The published curves have a point for each 250,000 agent steps, so that two stand beside them.
"""

import argparse
import collections
import itertools
import math
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from log_dqn.program import shell, words
from log_dqn.results.looks import Look, looks
from log_dqn.results.request import (
    AGENTS,
    BASELINES_HELP,
    DOPAMINE,
    DQN,
    JAX_DQN,
    check_source,
    find_runs,
)

DATA = pathlib.Path(__file__).resolve().parents[1] / "docs" / "data" / "atari_curves.csv"
FIGURES = DATA.parents[1] / "figures"

RUN = ["game", "agent", "setting", "seed"]
TYPES = dict.fromkeys(RUN[:3], "str") | {
    "seed": "int64",
    "steps": "int64",
    "mean_return": "float64",
    "episodes": "int64",
    "q_plus": "float64",
}
"""Columns of the curves: a row for each iteration of a run, with the agent steps by its end, as
many an iteration as `Runner.training_steps` says, and the plus head's mean value there, in one
minibatch, where the agent has one."""

BY_STEPS = (
    ("mean_return", 50_000, "Mean return of the iteration that ends there"),
    ("q_plus", 100_000, "Mean value of the plus head"),
)
"""What is shown over time: a column of the curves, each how many agent steps, and its title."""

PUBLISHED_STEPS = 250_000
"""Agent steps of an iteration of the published runs."""

_AT_RANDOM = "random"
"""A policy at random: DQN that learns nothing, and so explores only."""

_NAMES = {
    "dqn/min_replay_history=1000000": _AT_RANDOM,
    "dqn/beta1=0.9,learning_rate=6.25e-05": "dqn/Adam",
    "log_dqn/beta1=0.9,beta_reg=1,learning_rate=6.25e-05": "log_dqn/Adam,beta_reg=1",
    "log_dqn/beta1=0.9,beta_reg=1,c=0.1,learning_rate=6.25e-05": "log_dqn/Adam,beta_reg=1,c=0.1",
    "loglin_dqn/beta1=0.9,learning_rate=6.25e-05": "loglin_dqn/Adam",
}
"""How figures and tables name an agent with its setting, where that says too little."""

_VARIANTS = (("s", ":"), ("^", "-."), ("v", "--"), ("P", ":"), ("X", "-."))
"""Markers and lines of an agent's settings; no agent's own are among them."""


def _notify(line: str) -> None:
    print(f"atari_study.py: {line}", file=sys.stderr)


def _q_plus(folder: pathlib.Path, steps: int) -> dict[int, float]:
    """Returns the last `Values/QPlus` of a run's iterations, of `steps` agent steps each.

    What TensorBoard can't read, because the file is cut, isn't there.
    """
    import tensorboard_events

    from log_dqn import log_space

    events = tensorboard_events.read(folder)
    has = log_space.Q_PLUS in events.Tags()["scalars"]
    points = events.Scalars(log_space.Q_PLUS) if has else []
    return {(p.step - 1) // steps: p.value for p in points if math.isfinite(p.value)}


def _curve(folder: pathlib.Path) -> Iterator[dict[str, Any]]:
    """Yields a row for each iteration in a run's newest readable log.

    Raises:
        ValueError: the log or the configuration lacks what a row needs.
    """
    import numpy as np

    from log_dqn import checks
    from log_dqn.results import runs
    from log_dqn.run_folder import configuration

    name = "Runner.training_steps"
    steps: Any = configuration.read(folder).get(name)
    checks.check_count(name, steps, most=PUBLISHED_STEPS)
    checks.check(name, steps, PUBLISHED_STEPS % steps == 0, f"a divisor of {PUBLISHED_STEPS:,}")
    found = runs.read_run(folder, "train", _notify)
    if found is None:
        return
    log, returns = found
    values = _q_plus(folder, steps)
    for iteration, mean in enumerate(returns):
        # An iteration without a mean may be no dictionary, or not be there.
        entry = log.get(f"iteration_{iteration}", {}) if np.isfinite(mean) else {}
        episodes = np.size(entry.get("train_episode_returns", ()))
        if not episodes:
            raise ValueError(f"iteration {iteration} of its log has no train_episode_returns")
        yield {
            "steps": (iteration + 1) * steps,
            "mean_return": mean,
            "episodes": episodes,
            "q_plus": values.get(iteration),
        }


def _rows(results_dir: pathlib.Path, ends: Mapping[Any, int]) -> Iterator[dict[str, Any]]:
    """Yields the rows of runs on Atari.

    Args:
        results_dir: holds the runs.
        ends: the committed runs' last agent steps, by the values of `RUN`.
    """
    from log_dqn import games
    from log_dqn.checks import check_count

    taken = set()
    for name, of_game, seed, folder in find_runs(results_dir):
        agent, _, setting = name.partition("/")
        where = f"{name} {of_game} {seed}"
        game = games.canonical(of_game)
        if game not in games.GAMES:
            _notify(f"{where}: not a game with published baselines; left out")
            continue
        try:
            check_count("seed", int(seed), 0, shell.LAST_SEED)
            key = (game, agent, setting, int(seed))
            curve = list(_curve(folder))
        except (OSError, ValueError) as error:
            _notify(f"{where}: {shell.explain(error)}; left out")
            continue
        if key in taken:
            _notify(f"{where}: the same run lies in another folder; left out")
            continue
        if not curve:  # Why, has been said.
            continue
        end = curve[-1]["steps"]
        if end < ends.get(key, 0):
            _notify(f"{where}: has {end:,} agent steps, committed are {ends[key]:,}; left out")
            continue
        taken.add(key)
        yield from (dict(zip(RUN, key, strict=True)) | row for row in curve)


def read() -> Any:
    """Returns the committed curves; raises ValueError if the file holds something else."""
    import numpy as np
    import pandas as pd

    from log_dqn import games

    try:
        # An agent's own settings are an empty text; a value that isn't there is none.
        absent = {"q_plus": [""]}
        table = pd.read_csv(DATA, keep_default_na=False, na_values=absent, dtype=TYPES)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{DATA}: damaged ({shell.explain(error)})") from None
    if list(table) != list(TYPES) or not isinstance(table.index, pd.RangeIndex):
        raise ValueError(f"{DATA}: its columns must be {','.join(TYPES)}")
    steps_allowed = (table["steps"] > 0) & ~table.duplicated([*RUN, "steps"])
    for column, is_allowed, allowed in (
        ("game", table["game"].isin(games.GAMES), "a game with published baselines"),
        ("agent", table["agent"] != "", "an agent's name"),
        ("seed", table["seed"] >= 0, "0 or above"),
        ("steps", steps_allowed, "above 0, and once in a run"),
        ("mean_return", np.isfinite(table["mean_return"]), "a finite number"),
        ("episodes", table["episodes"] > 0, "above 0"),
        ("q_plus", ~np.isinf(table["q_plus"]), "a finite number, or absent"),
    ):
        if not is_allowed.all():
            row = int(is_allowed.idxmin())
            value = table[column].tolist()[row]
            raise ValueError(
                f"{DATA}: {column} of row {row + 1} is {value!r}; it must be {allowed}"
            )
    return table


def collect(results_dir: pathlib.Path) -> None:
    """Adds the curves of runs to `docs/data`, as far as they are.

    One that is there, by the values of `RUN`, is replaced, unless it is longer.

    Raises:
        ValueError: there are no runs to add, or `docs/data` holds something else.
    """
    import pandas as pd

    from log_dqn.run_folder import checkpoints

    before = read() if DATA.exists() else pd.DataFrame(columns=list(TYPES)).astype(TYPES)
    ends = before.groupby(RUN)["steps"].max().to_dict()
    table = pd.DataFrame(_rows(results_dir, ends), columns=list(TYPES)).astype(TYPES)
    if table.empty:
        raise ValueError(
            f"--results_dir={results_dir}: no runs on Atari whose returns can be added"
        )
    known = before.set_index(RUN).index.isin(table.set_index(RUN).index)
    table = pd.concat([before[~known], table])
    table = table.sort_values([*RUN, "steps"])
    checkpoints.replace_file(DATA, table.to_csv(index=False, float_format="%.6g").encode())
    print(DATA)


def halves(curves: Any) -> Any:
    """Returns the mean return per episode of each 250,000 agent steps of each run.

    Args:
        curves: a table with the columns of `TYPES`.

    Returns:
        A table with the columns of `RUN`, `half` (0, 1, ...), `mean_return`, and `end`, the agent
        steps at the end of what the half has.
    """
    table = curves.assign(
        half=(curves["steps"] - 1) // PUBLISHED_STEPS,
        total=curves["mean_return"] * curves["episodes"],
    )
    by_half = table.groupby([*RUN, "half"])
    sums = by_half[["total", "episodes"]].sum()
    means = sums["total"] / sums["episodes"]
    return means.rename("mean_return").to_frame().assign(end=by_half["steps"].max()).reset_index()


def published_curves(source: str, games: Sequence[str]) -> list[Any]:
    """Returns the published runs, each with its `game`, `agent` and `returns` by iteration.

    Raises:
        ValueError: some can't be read.
    """
    from log_dqn.results import baselines

    check_source(source)
    unread: list[str] = []
    runs = baselines.load(source, games, unread.append)
    if unread:
        raise ValueError(f"{unread[0]}, and this needs whole curves")
    return runs


def published(source: str, games: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns the published agents' first two points, shape [seeds, 2], by game and agent.

    Raises:
        ValueError: a game's file can't be read, or has fewer than two seeds of DQN, or fewer than
            two points of a run.
    """
    import numpy as np

    found: dict[str, dict[str, list[Any]]] = {game: {DQN: []} for game in games}
    for run in published_curves(source, games):
        found[run.game].setdefault(run.agent, []).append(run.returns[:2])
    for game, agents in found.items():
        if len(agents[DQN]) < 2 or any(len(of) < 2 for of in itertools.chain(*agents.values())):
            raise ValueError(
                f"baselines is {source!r}; it must have two seeds of DQN on {game} or more, and "
                "two iterations of each run"
            )
    return {
        game: {agent: np.array(points) for agent, points in agents.items()}
        for game, agents in found.items()
    }


def smallest_difference(points: Any, others: int) -> float:
    """Returns the least difference between one run and the mean of others that isn't chance.

    Args:
        points: the published seeds' means, shape [seeds], whose spread all runs are taken to have.
        others: how many runs the others are.

    Returns:
        Half of the 95% interval of the difference (Student's t), in points per episode.
    """
    import numpy as np
    from scipy import stats

    spread = points.std(ddof=1) * np.sqrt(1 + 1 / others)
    return float(stats.t.ppf(0.975, len(points) - 1) * spread)


def _named(rows: Any) -> Any:
    """Returns rows with `name`: the agent with its setting, or what `_NAMES` has for it."""
    setting = rows["setting"]
    names = rows["agent"].str.cat(("/" + setting).where(setting != "", ""))
    return rows.assign(name=names.replace(_NAMES)).sort_values(["name", "seed"])


def trained(curves: Any) -> list[str]:
    """Returns the games that an agent was trained on; a policy at random isn't."""
    rows = _named(curves)
    return sorted(rows[rows["name"] != _AT_RANDOM]["game"].unique())


def _of_seeds(points: Any) -> str:
    """Returns the mean of seeds' means, shape [seeds], and the least and the greatest."""
    return "{} ({} to {})".format(*map(words.rounded, (points.mean(), points.min(), points.max())))


def _of_runs(runs: Any, end: int) -> str:
    """Returns each run's mean, and where it ends if before `end` agent steps."""
    return ", ".join(
        words.rounded(run.mean_return) + f" (to {run.end:,})" * (run.end < end)
        for run in runs.itertuples()
    )


def table(curves: Any, found: Mapping[str, Mapping[str, Any]], half: int) -> str:
    """Returns the mean returns of 250,000 agent steps as Markdown: a row an agent, a column a game.

    A policy at random has the mean of its first 250,000 steps, over seeds, in either half.

    Args:
        curves: a table with the columns of `TYPES`.
        found: what `published` returns.
        half: 0 for the first 250,000 steps, 1 for the second.
    """
    means = _named(halves(curves))
    is_random = means["name"] == _AT_RANDOM
    random = means[is_random & (means["half"] == 0)].groupby("game")["mean_return"].mean()
    own = means[~is_random & (means["half"] == half)]
    cells = {_AT_RANDOM: random.map(words.rounded).to_dict()}
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
        for text, all_seeds in (("a run beside", True), ("two runs that vary as", False)):
            cells[f"*least difference shown: {text} {AGENTS[agent]}*"] = {
                game: words.rounded(smallest_difference(of, len(of) if all_seeds else 1))
                for game, of in points[agent].items()
            }
    rows = ([name, *(of.get(game, "-") for game in found)] for name, of in cells.items() if of)
    return words.markdown([["agent", *found], *rows])


def by_steps(curves: Any, column: str, every: int) -> str:
    """Returns a column of the curves as Markdown: a row a run, a column each `every` agent steps.

    Those of a policy at random are left out. Where no iteration ends there, the text is empty.
    """
    rows = _named(curves[curves[column].notna() & (curves["steps"] % every == 0)])
    rows = rows[rows["name"] != _AT_RANDOM]
    if rows.empty:
        return ""
    by_run = rows.pivot_table(index=["game", "name", "seed"], columns="steps", values=column)
    heads = ["game", "agent", "seed", *(f"{steps:,}" for steps in by_run.columns)]
    lines = (
        [*map(str, run), *("-" if math.isnan(v) else words.rounded(v) for v in values)]
        for run, values in zip(by_run.index, by_run.to_numpy(), strict=True)
    )
    return words.markdown([heads, *lines])


def setting_looks(names: Sequence[str]) -> dict[str, Look]:
    """Gives each setting its agent's colour, and one of `_VARIANTS`, again after so many."""
    variants: dict[str, Iterator[tuple[str, str]]] = collections.defaultdict(
        lambda: itertools.cycle(_VARIANTS)
    )
    found = {}
    for name in names:
        agent, _, setting = name.partition("/")
        look = looks({agent: name})[agent]
        if setting:
            marker, line = next(variants[agent])
            look = look._replace(marker=marker, line=line)
        found[name] = look
    return found


def _draw_band(axes: Any, agent: str, points: Any) -> None:
    """Draws the least to the greatest of a published agent's seeds, shape [seeds, iterations]."""
    import numpy as np

    edges = np.arange(points.shape[1] + 1) * PUBLISHED_STEPS / 1000
    low, high = ((*of, of[-1]) for of in (points.min(axis=0), points.max(axis=0)))
    look = looks({agent: f"published {AGENTS[agent]}, {len(points)} seeds"})[agent]
    axes.fill_between(
        edges, low, high, step="post", color=look.colour, alpha=0.35, linewidth=0, label=look.name
    )


def draw(curves: Any, found: Mapping[str, Mapping[str, Any]], bands: Sequence[str]) -> Any:
    """Draws a panel for each game, with the runs' curves on the bands of published seeds.

    Args:
        curves: a table with the columns of `TYPES`.
        found: what `published` returns for the games that an agent was trained on.
        bands: published agents, of which each game has a band, where it has the agent.
    """
    from matplotlib.figure import Figure

    rows = _named(curves)
    settings = setting_looks(list(dict.fromkeys(rows["name"])))
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    columns = min(3, len(found))
    rows_of_panels = -(-len(found) // columns)
    for number, (game, agents) in enumerate(found.items(), 1):
        axes = figure.add_subplot(rows_of_panels, columns, number)
        for agent in bands:
            if agent in agents:
                _draw_band(axes, agent, agents[agent])
        for name, of_name in rows[rows["game"] == game].groupby("name", sort=False):
            look = settings[name]
            for again, (_, run) in enumerate(of_name.groupby("seed")):
                axes.plot(
                    run["steps"] / 1000, run["mean_return"], color=look.colour, marker=look.marker,
                    markersize=4, linestyle=look.line, linewidth=1.2,
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
        frameon=False,
    )  # fmt: skip
    figure.supxlabel("agent steps (thousands)")
    figure.supylabel("mean training return per episode")
    return figure


def _pictures(curves: Any) -> dict[str, tuple[Any, Sequence[str]]]:
    """Returns the curves of each picture, and the published agents' bands, by its file's name.

    LogDQN's settings, which look alike on the scale of what learns, have one with DQN's alone.
    """
    is_log_dqn = curves["agent"] == "log_dqn"
    with_dqn = curves["game"].isin(curves[is_log_dqn]["game"]) & (curves["agent"] == "dqn")
    return {
        "atari.png": (curves[~is_log_dqn | (curves["setting"] == "")], (DQN, JAX_DQN)),
        "atari_log_dqn.png": (curves[is_log_dqn | with_dqn], (DQN,)),
    }


def report(source: str, folder: str) -> None:
    """Draws the figures from `docs/data` and the published curves, and prints the tables.

    Raises:
        ValueError: `docs/data` or the published curves aren't there, or hold something else.
    """
    import png_file

    shell.check_writable("out", folder)
    if not DATA.is_file():
        raise ValueError(f"{DATA}: not a file; collect runs first")
    curves = read()
    games = trained(curves)
    if not games:
        raise ValueError(f"{DATA}: no runs but of a policy at random; collect others first")
    found = published(source, games)
    for name, (shown, bands) in _pictures(curves).items():
        if shown_games := trained(shown):
            path = pathlib.Path(folder) / name
            png_file.write(draw(shown, {game: found[game] for game in shown_games}, bands), path)
            print(path)
    for half, title in enumerate(("first", "second")):
        print(f"\nMean returns of the {title} 250,000 agent steps:\n\n{table(curves, found, half)}")
    for column, every, title in BY_STEPS:
        if text := by_steps(curves, column, every):
            print(f"\n{title}:\n\n{text}")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    collected = commands.add_parser("collect")
    collected.add_argument("--results_dir", type=shell.folder, required=True)
    collected.set_defaults(run=lambda args: collect(args.results_dir))
    reported = commands.add_parser("report")
    reported.add_argument("--baselines", default=DOPAMINE, help=BASELINES_HELP)
    reported.add_argument("--out", default=str(FIGURES), help="folder (default: %(default)s)")
    reported.set_defaults(run=lambda args: report(args.baselines, args.out))
    args = parser.parse_args(argv)
    return shell.run_once(parser.prog, lambda: args.run(args))


if __name__ == "__main__":
    sys.exit(main())
