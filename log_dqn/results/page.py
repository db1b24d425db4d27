"""The report as one self-contained HTML page."""

import base64
import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from log_dqn.games import listing
from log_dqn.results.comparison import Comparison
from log_dqn.results.figures import label
from log_dqn.results.references import VIDEO_PINBALL_RANDOM
from log_dqn.results.statistics import AGGREGATES, Interval

HEADINGS = {
    "relative": "Relative performance",
    "mean_median": "Mean and median",
    "aggregates": "Aggregates",
    "profile": "Performance profile",
    "improvement": "Probability of improvement",
    "gamma": "Discount factor",
    "learning_curves": "Learning curves",
}

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 72rem; font: 16px/1.5 system-ui, sans-serif;
  color: #1b1f24; background: #fff; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; }
dt { color: #57606a; } dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1rem 0; } figcaption { color: #57606a; font-size: .9rem; }
.wide { overflow-x: auto; -webkit-overflow-scrolling: touch; }
.wide img { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #d8dee4; }
th { vertical-align: bottom; font-weight: 600; } thead th { white-space: normal; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid #0969da; }
th button::after { content: " \\2195"; color: #8c959f; }
th[aria-sort=ascending] button::after { content: " \\2191"; color: #0969da; }
th[aria-sort=descending] button::after { content: " \\2193"; color: #0969da; }
.range { color: #57606a; font-size: .8rem; }
code { font-size: .85rem; overflow-wrap: anywhere; }
li { overflow-wrap: anywhere; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; }
  th:first-child, td:first-child { min-width: 8rem; max-width: 8rem; white-space: normal;
    overflow-wrap: anywhere; } }
"""

_SCRIPT = """
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector('button').addEventListener('click', () => {
    const down = head.getAttribute('aria-sort') === 'descending' ||
      (column === 0 && head.getAttribute('aria-sort') !== 'ascending');
    const sign = down ? 1 : -1;
    const key = (row) => row.cells[column].dataset.value;
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === '' || y === '') return (x === '') - (y === '');
      return sign * (column === 0 ? x.localeCompare(y) : x - y);
    });
    heads.forEach((other) => other.setAttribute('aria-sort', 'none'));
    head.setAttribute('aria-sort', down ? 'ascending' : 'descending');
    table.tBodies[0].append(...rows);
  }));
}
"""


class Shown(NamedTuple):
    """A figure as it is shown on the page."""

    name: str
    caption: str
    png: bytes
    width: float  # CSS pixels


def render(
    comparison: Comparison,
    aggregates: Mapping[str, Interval],
    shown: Sequence[Shown],
    not_made: Sequence[str],
    command: str,
) -> str:
    """Returns the page's HTML. It loads nothing from outside and opens from disk.

    Args:
        comparison: what is compared.
        aggregates: for each agent, `statistics.aggregates`.
        shown: the figures.
        not_made: which figures are not made, and why.
        command: the command line that made the report.
    """
    images = {picture.name: picture for picture in shown}
    order = ["relative", "mean_median", "aggregates", "profile", "improvement", "gamma"]
    title = listing([label(agent) for agent in comparison.own_agents or comparison.agents])
    parts = [
        f"<h1>Results: {_text(title)}</h1>",
        _facts(comparison, command, len(comparison.notices) + len(not_made)),
        "<h2>Aggregates over games</h2>",
        _aggregate_table(comparison, aggregates),
        "<p>IQM and performance profile pool all runs: where games have unequal numbers of seeds, "
        "a game with more seeds counts for more.</p>",
        *(_figure(images[name]) for name in order if name in images),
        "<h2>Games</h2>",
        "<p>Scores are means over seeds, in points per episode. A click on a heading sorts.</p>",
        _game_table(comparison),
        _figure(images["learning_curves"]),
        "<h2>What was compared</h2>",
        _run_table(comparison),
        '<h2 id="missing">Missing or unequal</h2>',
        _list([*comparison.notices, *(f"Figure not made: {line}" for line in not_made)]),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
        f'<link rel="icon" href="data:,">\n<title>Results: {_text(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n" + "\n".join(parts) + "\n"
        f"<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _text(value: object) -> str:
    return html.escape(str(value))


def _facts(comparison: Comparison, command: str, count: int) -> str:
    request = comparison.request
    last = comparison.last_iteration
    iteration = (
        "each run's last 10% of iterations"
        if last is None
        else f"the last 10% of iterations up to {last}"
    )
    if request.iteration == "common":
        iteration += ", the last one that all runs have"
    metric = {"train": "training returns", "eval": "evaluation returns (published: training)"}
    random = request.video_pinball_random
    other = "" if random != VIDEO_PINBALL_RANDOM else " (Wang et al.; other tables have 0.0)"
    facts = {
        "Agents": ", ".join(map(label, comparison.agents)),
        "Relative to": label(request.reference),
        "Games": f"{len(comparison.games)}; aggregates over the {len(comparison.common_games)} "
        "with human scores that all agents have",
        "Scores": f"{metric[request.metric]}, mean of {iteration}",
        "Intervals": f"95%, stratified bootstrap, {request.repetitions:,} repetitions",
        "Own runs": request.results_dir or "none",
        "Baselines": request.baselines,
        "Random and human scores": "Wang et al. (2016), Table 2; VideoPinball's random score is "
        f"{random:g}{other}",
    }
    rows = "".join(f"<dt>{_text(k)}</dt><dd>{_text(v)}</dd>" for k, v in facts.items())
    missing = f'<a href="#missing">{count or "no"} note{"" if count == 1 else "s"}</a>'
    return (
        f"<dl>{rows}<dt>Missing or unequal</dt><dd>{missing}</dd>"
        f"<dt>Command</dt><dd><code>{_text(command)}</code></dd></dl>"
    )


def _figure(picture: Shown) -> str:
    data = base64.b64encode(picture.png).decode()
    heading = HEADINGS[picture.name]
    # On a narrow screen a figure shrinks no further than its text stays readable.
    size = f"max-width: {picture.width:.0f}px; min-width: {0.6 * picture.width:.0f}px"
    return (
        f'<h2>{heading}</h2>\n<figure><div class="wide">'
        f'<img alt="{heading}" style="{size}" src="data:image/png;base64,{data}"></div>'
        f"<figcaption>{_text(picture.caption)}</figcaption></figure>"
    )


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else "<p>Nothing.</p>"


def _table(heads: Sequence[str], rows: Iterable[str], sortable: bool = False) -> str:
    cells = "".join(
        f'<th scope="col" aria-sort="none"><button>{_text(head)}</button></th>'
        if sortable
        else f'<th scope="col">{_text(head)}</th>'
        for head in heads
    )
    kind = ' class="sortable"' if sortable else ""
    return (
        f'<div class="wide"><table{kind}><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table></div>"
    )


def _number(value: float, pattern: str) -> str:
    if math.isnan(value):
        return '<td data-value=""></td>'
    return f'<td data-value="{value:.9g}">{format(value, pattern)}</td>'


def _aggregate_table(comparison: Comparison, aggregates: Mapping[str, Interval]) -> str:
    if not aggregates:
        return "<p>None: no game with human scores is common to all agents.</p>"
    rows = []
    for agent in comparison.agents:
        cells = "".join(
            f'<td>{value:.3f} <span class="range">[{low:.3f}, {high:.3f}]</span></td>'
            for value, low, high in zip(*aggregates[agent], strict=True)
        )
        rows.append(f"<td>{_text(label(agent))}</td>{cells}")
    heads = {"mean": "Mean", "median": "Median", "iqm": "IQM", "optimality_gap": "Optimality gap"}
    return _table(["Agent", *(heads[name] for name in AGGREGATES)], rows)


def _game_table(comparison: Comparison) -> str:
    relative = comparison.relative()
    means = {agent: comparison.mean_scores(agent) for agent in comparison.agents}
    main = comparison.main or comparison.agents[0]
    heads = ["Game", *(["Relative"] if relative else []), f"{label(main)}, human-normalised"]
    heads += [*map(label, comparison.agents), "Human", "Random"]
    rows = []
    for game in comparison.games:
        cells = [f'<td data-value="{_text(game)}">{_text(game)}</td>']
        if relative:
            cells.append(_number(relative.get(game, math.nan), "+.1%"))
        score = means[main].get(game, math.nan)
        cells.append(_number(float(comparison.normalise(game, score)), ".3f"))
        cells += [_number(means[a].get(game, math.nan), ",.1f") for a in comparison.agents]
        reference = comparison.references.get(game)
        cells.append(_number(reference.human if reference else math.nan, ",.1f"))
        cells.append(_number(reference.random if reference else math.nan, ",.1f"))
        rows.append("".join(cells))
    return _table(heads, rows, sortable=True)


def _run_table(comparison: Comparison) -> str:
    rows = []
    for agent in comparison.agents:
        its = [score for score in comparison.scores if score.agent == agent]
        by_game = [sum(s.game == game for s in its) for game in {s.game for s in its}]
        source = "own runs" if agent in comparison.own_agents else "published"
        if source == "published" and any(
            np.isnan(run.returns).any() for run in comparison.runs if run.agent == agent
        ):
            source = "published, final scores only on some or all games"
        rows.append(
            f"<td>{_text(label(agent))}</td><td>{source}</td><td>{len(by_game)}</td>"
            f"<td>{_span(by_game)}</td><td>{_span([s.iteration for s in its])}</td>"
        )
    return _table(["Agent", "From", "Games", "Seeds a game", "At iteration"], rows)


def _span(values: Sequence[int]) -> str:
    return f"{min(values)}" if min(values) == max(values) else f"{min(values)} to {max(values)}"
