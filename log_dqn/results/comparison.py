"""What is compared with what, as one table of runs.

A report goes one way: read (`runs`, `baselines`), align, score (`scores`), `statistics`, draw
(`pictures`, `figures`), write (`report`).
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import pandas as pd

from log_dqn import games
from log_dqn.program import words
from log_dqn.program.words import counted
from log_dqn.results import align, baselines, labels, remarks, runs, scores
from log_dqn.results.looks import OWN
from log_dqn.results.request import DEFAULT_AGENTS, DQN, NAMES, Request, own_name
from log_dqn.results.runs import LearningCurve, Notify

ShowProgress = Callable[[str, Sequence], Iterable]
"""Takes a title and a sequence; yields the sequence's items and shows how far it has come."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Runs and scores that are ready for statistics and figures.

    Attributes:
        request: what was asked for, with the reference in force.
        runs: a row for each run that has a score, in the order in which agents are shown: `agent`,
            `game`, `seed`, `own`, `score`, `normalised`, `frames`, and what `runs`, `align` and
            `scores` say of a run.
        references: random and human scores by game; where no game compared has them, 0 and the best
            mean that any agent has on the game, if that is positive.
        common_games: the games with references that all agents have: aggregates use these.
        main: the agent that is set against the reference; None if there is no other agent.
        needs: what a game needs to be in an aggregate.
        notices: what is missing, unequal or could not be read, a line each.
    """

    request: Request
    runs: pd.DataFrame
    references: dict[str, baselines.Reference]
    common_games: list[str]
    main: str | None
    needs: str
    notices: list[str]

    @property
    def by_best(self) -> bool:
        """Whether scores are normalised by the best means instead of human scores."""
        return self.needs == _BEST

    @property
    def scale(self) -> str:
        """What scores over games are."""
        return "score / best mean of the game" if self.by_best else "human-normalised score"

    @property
    def no_aggregates(self) -> str:
        """Why there is no game to aggregate over."""
        return f"no game with {self.needs} is common to all agents"

    @property
    def games(self) -> list[str]:
        """The games that any agent has scores on, by name."""
        return sorted(self.runs["game"].unique())


_HUMAN, _BEST = "human scores", "a mean above 0"


def compare(request: Request, notify: Notify, progress: ShowProgress) -> Comparison:
    """Reads everything that was asked for and scores it.

    `notify` is told at once of each thing that is missing or cannot be read; the comparison's
    notices hold the same lines.
    """
    notices: list[str] = []

    def note(line: str) -> None:
        notices.append(words.printable(line))
        notify(notices[-1])

    own, published = _read(request, note, progress)
    agents = _agents(request, own, published)
    table = align.tabulate([run for run in own + published if run.agent in agents])
    for agent in agents:
        if agent not in set(table["agent"]):
            note(f"{agent}: no runs, own or published, on the games compared; left out")
    table = align.compare_protocols(table, [request.reference, *agents])
    if request.strict:
        table = align.strictly(table, note)
    if request.results_dir is not None and not table["own"].any():
        raise _nothing_own(request)
    references = baselines.references()
    table = scores.score(align.align(table, request.iteration, references, note))
    kept = align.in_order(table[table["score"].notna()], agents)
    if kept.empty:
        raise ValueError(
            f"--iteration={request.iteration}: nothing to compare; none of the "
            f"{counted(len(table), 'run')} has scores there"
        )
    shown = [*kept["agent"].unique()]
    needs = _HUMAN
    if table["apart"].all():
        best = scores.best_means(kept)
        references = {
            game: baselines.Reference(0.0, mean) for game, mean in best.items() if mean > 0
        }
        needs = _BEST
        request = dataclasses.replace(request, reference=_reference(request, shown))
    others = [agent for agent in shown if agent != request.reference]
    played = [{*rows["game"]} & references.keys() for rows in labels.by_agent(kept).values()]
    for line in remarks.lines(kept, table[table["score"].isna()], played, needs):
        note(line)
    return Comparison(
        request=request,
        runs=scores.normalise(kept, references),
        references=references,
        common_games=sorted(set.intersection(*played)),
        main=others[0] if others and request.reference in shown else None,
        needs=needs,
        notices=notices,
    )


def _nothing_own(request: Request) -> ValueError:
    return ValueError(f"--results_dir={request.results_dir}: no run of it can be compared")


def _read(
    request: Request, note: Notify, progress: ShowProgress
) -> tuple[list[LearningCurve], list[LearningCurve]]:
    """Reads own and published runs; none of the former bears the name of a published agent."""
    wanted_games = games.select(request.games) if request.games else None
    own: list[LearningCurve] = []
    if request.results_dir is not None:
        own = runs.read_runs(
            request.results_dir,
            request.metric,
            note,
            agents=_wanted_folders(request),
            only_games=wanted_games,
            progress=lambda items: progress("Runs", items),
        )
        if not own:
            request.check_agents(NAMES)
            raise _nothing_own(request)
    if wanted_games is None:
        wanted_games = sorted({run.game for run in own}) or list(games.PAPER55)
    published = baselines.load(
        request.baselines,
        wanted_games,
        note,
        progress=lambda items: progress("Published baselines", items),
    )
    taken = NAMES | {run.agent for run in published}
    for agent in sorted({run.agent for run in own} & taken):
        note(f"{agent}: own runs of this name are shown as '{own_name(agent, taken)}'")
    request.check_agents(taken)
    return [run._replace(agent=own_name(run.agent, taken)) for run in own], published


def _wanted_folders(request: Request) -> set[str] | None:
    """The folders of own agents to read; all if None."""
    if request.agents is None:
        return None
    named = {*request.agents, request.reference}
    return named - NAMES | {name.removesuffix(OWN) for name in named if OWN in name}


def _agents(
    request: Request, own: list[LearningCurve], published: list[LearningCurve]
) -> list[str]:
    """The agents asked for, with the reference."""
    # LogDQN first: unless told otherwise, it is what is set against the reference.
    own_agents = sorted({run.agent for run in own}, key=lambda name: ("log" not in name, name))
    wanted = request.agents or (*own_agents, *DEFAULT_AGENTS)
    # On games without baselines, published agents need not be missed that nobody asked for.
    missed = () if published else {*DEFAULT_AGENTS}.difference(request.agents or ())
    return [a for a in dict.fromkeys([*wanted, request.reference]) if a not in missed]


def _reference(request: Request, agents: Sequence[str]) -> str:
    """The reference asked for; without published runs, the last agent with the first's setting."""
    if request.reference in agents or request.reference != DQN:
        return request.reference
    setting = agents[0].partition("/")[2]
    return [*agents, *(agent for agent in agents[1:] if agent.partition("/")[2] == setting)][-1]
