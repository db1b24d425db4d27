"""What is compared with what, as one table of runs.

A report goes one way: read (`runs`, `baselines`), align, score (`scores`), `statistics`, draw
(`pictures`, `figures`), write (`report`).
"""

import dataclasses
import pathlib
from typing import cast

import pandas as pd

from log_dqn import games
from log_dqn.checks import check
from log_dqn.cli import words
from log_dqn.cli.words import counted
from log_dqn.results import align, baselines, remarks, runs, scores
from log_dqn.results.request import DEFAULT_AGENTS, DQN, NAMES, OWN, Request, find_runs, own_name
from log_dqn.results.runs import LearningCurve, Notify


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Runs and scores that are ready for statistics and figures.

    Attributes:
        request: the options, with the reference that is used.
        runs: a row for each run that has a score, in the order in which agents are shown: `agent`,
            `game`, `seed`, `own`, `score`, `normalised`, `frames`, `differs`, and what `runs`,
            `align` and `scores` say of a run.
        divides_by_best: whether scores are divided by the best mean of a game, since no game has
            human scores.
        notices: what is missing, unequal or could not be read, a line each.
    """

    request: Request
    runs: pd.DataFrame
    divides_by_best: bool
    notices: list[str]

    @property
    def games(self) -> list[str]:
        """The games that any agent has scores on, by name."""
        return sorted(self.runs["game"].unique())

    @property
    def common_games(self) -> list[str]:
        """The games with normalised scores of all agents: aggregates use these."""
        return scores.common_games(self.runs)

    @property
    def main(self) -> str | None:
        """The agent that is compared with the reference; None if there is no other agent."""
        agents = [*self.runs["agent"].unique()]
        others = [agent for agent in agents if agent != self.reference]
        return others[0] if others and self.reference in agents else None

    @property
    def reference(self) -> str:
        """The agent that relative scores refer to."""
        return _reference(self.request)

    @property
    def scale(self) -> str:
        """What scores over games are."""
        return "score / best mean of the game" if self.divides_by_best else "human-normalised score"

    @property
    def normalised(self) -> str:
        """The name of normalised scores in files."""
        return "normalised" if self.divides_by_best else "hns"

    @property
    def needs(self) -> str:
        """What a game needs to be in an aggregate."""
        return "a mean above 0" if self.divides_by_best else "human scores"


def compare(request: Request, notify: Notify) -> Comparison:
    """Reads the runs and scores them.

    `notify` is told at once of each thing that is missing or cannot be read; the comparison's
    notices hold the same lines.
    """
    notices: list[str] = []

    def note(line: str) -> None:
        notices.append(words.printable(line))
        notify(notices[-1])

    own, published = _read(request, note)
    agents = _agents(request, own, published)
    table = align.tabulate(own + published, agents)
    for agent in agents:
        if agent not in set(table["agent"]):
            note(f"{agent}: no runs, own or published, on the games compared; left out")
    if table.empty:
        raise (
            _nothing_own(request)
            if own
            else ValueError(
                f"--games={','.join(request.games or ())}: no published runs, and no --results_dir"
            )
        )
    used = request if published else _with_reference(request, table)
    table = align.compare_protocols(table, _reference(used))
    if request.strict:
        table = align.strictly(table, note)
    if request.results_dir is not None and not table["own"].any():
        raise _nothing_own(request)
    references = baselines.references()
    table = scores.score(align.align(table, request.iteration, references.index, note))
    kept = table[table["score"].notna()]
    allowed = f"an iteration at which one of the {counted(len(table), 'run')} has a score"
    check("iteration", request.iteration, not kept.empty, allowed)
    if not published:  # The one from before may have no scores.
        used = _with_reference(request, kept)
    divides_by_best = bool(table["apart"].all())
    if divides_by_best:
        best = scores.best_means(kept)
        references = pd.DataFrame({"random": 0.0, "human": best[best > 0]})
    compared = Comparison(used, scores.normalise(kept, references), divides_by_best, notices)
    left_out = table[table["score"].isna()]
    for line in remarks.lines(compared.runs, left_out, compared.needs, divides_by_best):
        note(line)
    return compared


def _nothing_own(request: Request) -> ValueError:
    folder = cast(pathlib.Path, request.results_dir)
    agents, on_games, *_ = zip(*find_runs(folder), strict=True)
    has = f"{games.listing(sorted({*agents}))} on {games.listing(sorted({*on_games}))}"
    return ValueError(
        f"--results_dir={folder}: no run of it can be compared; it has {words.printable(has)}"
    )


def _read(request: Request, note: Notify) -> tuple[list[LearningCurve], list[LearningCurve]]:
    """Reads own and published runs; none of the former bears the name of a published agent."""
    wanted = request.chosen_games() or None
    own: list[LearningCurve] = []
    if request.results_dir is not None:
        folders = _wanted_folders(request)
        own = runs.read_runs(request.results_dir, request.metric, note, folders, wanted)
        if not own:
            request.check_agents(NAMES)
            raise _nothing_own(request)
    wanted = wanted or sorted({run.game for run in own}) or list(games.PAPER55)
    published = baselines.load(request.baselines, wanted, note)
    taken = NAMES | {run.agent for run in published}
    for agent in sorted({run.agent for run in own} & taken):
        note(f"{agent}: own runs of this name are shown as '{own_name(agent, taken)}'")
    request.check_agents(taken)
    return [run._replace(agent=own_name(run.agent, taken)) for run in own], published


def _wanted_folders(request: Request) -> set[str] | None:
    """Returns the folders of own agents to read; all if None."""
    if request.agents is None:
        return None
    named = {*request.agents, _reference(request)}
    return named - NAMES | {name.removesuffix(OWN) for name in named if OWN in name}


def _agents(
    request: Request, own: list[LearningCurve], published: list[LearningCurve]
) -> list[str]:
    """Returns the chosen agents, with the reference."""
    # LogDQN first: by default it is compared with the reference.
    own_agents = sorted({run.agent for run in own}, key=lambda name: ("log" not in name, name))
    wanted = request.agents or (*own_agents, *DEFAULT_AGENTS)
    # On games without baselines, published agents that weren't chosen are not missing.
    chosen = {*(request.agents or ()), request.reference}
    missed = () if published else {*DEFAULT_AGENTS} - chosen
    return [a for a in dict.fromkeys([*wanted, _reference(request)]) if a not in missed]


def _reference(request: Request) -> str:
    return request.reference or DQN


def _with_reference(request: Request, table: pd.DataFrame) -> Request:
    """Returns a request with a reference among own runs.

    Unless one was asked for, that is the table's last agent with the first's setting.
    """
    agents = [*table["agent"].unique()]
    if request.reference is not None:
        return request
    setting = agents[0].partition("/")[2]
    alike = (agent for agent in agents[1:] if agent.partition("/")[2] == setting)
    return dataclasses.replace(request, reference=[*agents, *alike][-1])
