"""What is compared with what: agents, games, scores, and what is missing."""

import dataclasses
import math
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from log_dqn import games
from log_dqn.results import baselines, gamma_scan, runs, scores
from log_dqn.results import references as tables
from log_dqn.results.references import VIDEO_PINBALL_RANDOM
from log_dqn.results.runs import LearningCurve, Notify
from log_dqn.results.scores import Score

ShowProgress = Callable[[str, Sequence], Iterable]
"""Takes a title and a sequence; yields the sequence's items and shows how far it has come."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What the user asked for.

    Attributes:
        results_dir: holds `{agent}/{game}/{seed}/`; None compares the baselines alone.
        agents: the agents in the order in which they are shown, of which the first is set against
            the reference; all of `results_dir` (LogDQN first) and the four TensorFlow baselines
            if None.
        games: games or sets of games; those of `results_dir` if None, or else `paper55`.
        metric: `train` or `eval`.
        iteration: the last iteration that counts: a number, `final` for each run's own last one,
            or `common` for the last one that all runs have.
        reference: the agent that relative scores refer to.
        baselines: a folder or an http(s) address.
        video_pinball_random: VideoPinball's random score.
        repetitions: bootstrap repetitions.
        cache_dir: where downloaded baselines are kept; the user's cache folder if None.
    """

    results_dir: pathlib.Path | None = None
    agents: tuple[str, ...] | None = None
    games: tuple[str, ...] | None = None
    metric: str = "train"
    iteration: int | str = "final"
    reference: str = baselines.DQN
    baselines: str = baselines.DOPAMINE
    video_pinball_random: float = VIDEO_PINBALL_RANDOM
    repetitions: int = 2000
    cache_dir: pathlib.Path | None = None


@dataclasses.dataclass
class Comparison:
    """Runs and scores that are ready for statistics and figures.

    Attributes:
        request: what the user asked for.
        references: random and human scores by game.
        agents: the agents that have scores, in the order in which they are shown.
        own_agents: those of them that were read from `results_dir`.
        games: the games that any agent has scores on, by name.
        runs: the learning curves.
        scores: one for each run.
        common_games: the games with human scores that all agents have: aggregates use these.
        main: the agent that is set against the reference; None if there is no other agent.
        last_iteration: the last iteration that counts; None for each run's own last one.
        notices: what is missing, unequal or could not be read, a line each.
        own_runs_failed: whether `results_dir` was given and gave no run.
    """

    request: Request
    references: dict[str, tables.Reference]
    agents: list[str]
    own_agents: list[str]
    games: list[str]
    runs: list[LearningCurve]
    scores: list[Score]
    common_games: list[str]
    main: str | None
    last_iteration: int | None
    notices: list[str]
    own_runs_failed: bool

    def normalise(self, game: str, score: Any) -> Any:
        """Human-normalised score of a game, NaN for a game without human scores."""
        if game not in self.references:
            return score * math.nan
        return scores.human_normalised(score, *self.references[game])

    def scores_of(self, agent: str) -> list[Score]:
        """An agent's scores."""
        return [score for score in self.scores if score.agent == agent]

    def mean_scores(self, agent: str) -> dict[str, float]:
        """An agent's score on each of its games, averaged over seeds."""
        by_game: dict[str, list[float]] = {}
        for score in self.scores_of(agent):
            by_game.setdefault(score.game, []).append(score.score)
        return {game: float(np.mean(values)) for game, values in by_game.items()}

    def curve_lengths(self, agent: str) -> list[int]:
        """The numbers of iterations of an agent's runs on the common games."""
        return [
            len(run.returns)
            for run in self.runs
            if run.agent == agent and run.game in self.common_games
        ]

    def relative(self) -> dict[str, float]:
        """Performance of the main agent relative to the reference on each game that both have."""
        if self.main is None:
            return {}
        reference = self.mean_scores(self.request.reference)
        return {
            game: scores.relative_to(score, reference[game], *self.references[game])
            for game, score in self.mean_scores(self.main).items()
            if game in reference and game in self.references
        }


def compare(request: Request, notify: Notify, progress: ShowProgress) -> Comparison:
    """Reads everything that was asked for and scores it.

    `notify` is told at once of each thing that is missing or cannot be read; the comparison's
    notices hold the same lines.

    Raises:
        ValueError: a game, the reference or every agent is unknown, or nothing at all is left to
            compare.
    """
    notices: list[str] = []

    def note(line: str) -> None:
        notices.append(line)
        notify(line)

    own, published = _read(request, note, progress)
    agents = _agents(request, own)
    chosen = [run for run in own + published if run.agent in agents]
    for agent in agents:
        if not any(run.agent == agent for run in chosen):
            note(f"{agent}: no runs, own or published, on the games compared; left out")
    last = _last_iteration(request.iteration, chosen, note)
    references = tables.references(request.video_pinball_random)
    scored = _scored(chosen, last, references)
    if not scored:
        raise ValueError(
            f"--iteration={request.iteration}: nothing to compare; none of the {len(chosen)} runs "
            "has scores there"
        )
    kept = [run for run, _ in scored]
    agents = [agent for agent in agents if any(run.agent == agent for run in kept)]
    others = [agent for agent in agents if agent != request.reference]
    played = [{r.game for r in kept if r.agent == agent} & references.keys() for agent in agents]
    compared = Comparison(
        request=request,
        references=references,
        agents=agents,
        own_agents=[agent for agent in agents if any(run.agent == agent for run in own)],
        games=sorted({run.game for run in kept}),
        runs=kept,
        scores=[score for _, score in scored],
        common_games=sorted(set.intersection(*played)),
        main=others[0] if others and request.reference in agents else None,
        last_iteration=last,
        notices=notices,
        own_runs_failed=request.results_dir is not None and not own,
    )
    for line in _remarks(compared, chosen):
        note(line)
    return compared


def _read(
    request: Request, note: Notify, progress: ShowProgress
) -> tuple[list[LearningCurve], list[LearningCurve]]:
    """Reads own and published runs; none of the former bears the name of a published agent."""
    wanted_games = games.select(request.games) if request.games else None
    own = _own_runs(request, wanted_games, note, progress)
    if wanted_games is None:
        wanted_games = sorted({run.game for run in own}) or _games_of(request.results_dir)
    published = baselines.load(
        request.baselines,
        wanted_games,
        note,
        request.cache_dir,
        progress=lambda items: progress("Published baselines", items),
    )
    taken = _published_names() | {run.agent for run in published}
    for agent in sorted({run.agent for run in own} & taken):
        note(f"{agent}: own runs of this name are shown as '{_own_name(agent, taken)}'")
    own_folders = {agent for agent, *_ in _found(request.results_dir)}
    _refuse_unknown(request, taken | {_own_name(agent, taken) for agent in own_folders})
    return [run._replace(agent=_own_name(run.agent, taken)) for run in own], published


def _own_runs(
    request: Request, wanted_games: list[str] | None, note: Notify, progress: ShowProgress
) -> list[LearningCurve]:
    if request.results_dir is None:
        return []
    try:
        found = runs.read_runs(
            request.results_dir,
            request.metric,
            note,
            agents=_wanted_folders(request),
            only_games=wanted_games,
            progress=lambda items: progress("Runs", items),
        )
    except (OSError, ValueError) as error:
        note(f"{error}; only published baselines are compared")
        return []
    if not found:
        note(f"--results_dir={request.results_dir}: no run of it can be compared")
    return found


_OWN = " (own runs)"


def _published_names() -> set[str]:
    """Names that stand for published agents, here or in figures, on every game."""
    return {*baselines.AGENTS, *baselines.AGENTS.values()}


def _own_name(agent: str, taken: set[str]) -> str:
    """How an own agent is shown: never by a published one's name."""
    while agent in taken:
        agent += _OWN
    return agent


def _games_of(results_dir: pathlib.Path | None) -> list[str]:
    """The published games that a results folder has runs of, or else the paper's 55."""
    found = {games.canonical(folder) for _, folder, *_ in _found(results_dir)}
    return [game for game in games.GAMES if game in found] or list(games.PAPER55)


def _found(results_dir: pathlib.Path | None) -> list[tuple[str, str, str, pathlib.Path]]:
    """The runs of a results folder; none if it cannot be read."""
    try:
        return runs.find_runs(results_dir) if results_dir else []
    except (OSError, ValueError):
        return []


def _wanted_folders(request: Request) -> set[str] | None:
    """The folders of own agents to read; all if None."""
    if request.agents is None:
        return None
    named = {*request.agents, request.reference}
    return named - _published_names() | {name.removesuffix(_OWN) for name in named if _OWN in name}


def _refuse_unknown(request: Request, known: set[str]) -> None:
    for flag, named in (("agents", request.agents), ("reference", (request.reference,))):
        if named and not known.intersection(named):
            raise ValueError(
                f"--{flag}={','.join(named)}: unknown; known are "
                + ", ".join(sorted(known - set(baselines.AGENTS.values()) | set(baselines.AGENTS)))
            )


def _agents(request: Request, own: list[LearningCurve]) -> list[str]:
    """The agents asked for, with the reference."""
    # LogDQN first: unless told otherwise, it is what is set against the reference.
    own_agents = sorted({run.agent for run in own}, key=lambda name: ("log_dqn" not in name, name))
    wanted = request.agents or (*own_agents, *baselines.DEFAULT_AGENTS)
    return list(dict.fromkeys([*wanted, request.reference]))


def _last_iteration(iteration: int | str, chosen: list[LearningCurve], note: Notify) -> int | None:
    if iteration == "final":
        return None
    if iteration != "common":
        return int(iteration)
    if not chosen:
        return 0
    shortest = min(chosen, key=lambda run: len(run.returns))
    last = len(shortest.returns) - 1
    note(f"the common iteration is {last} (set by {'/'.join(shortest[:3])})")
    return last


def _scored(
    chosen: list[LearningCurve], last: int | None, references: dict[str, tables.Reference]
) -> list[tuple[LearningCurve, Score]]:
    """The runs that have a score at the last iteration that counts, each with its score."""
    scored = []
    for run in chosen:
        score = scores.final_score(run.returns, last)
        if not math.isnan(score):
            iteration = len(run.returns) - 1 if last is None else last
            reference = references.get(run.game)
            hns = scores.human_normalised(score, *reference) if reference else math.nan
            scored.append((run, Score(run.game, run.agent, run.seed, iteration, score, hns)))
    return scored


def _remarks(compared: Comparison, chosen: list[LearningCurve]) -> Iterator[str]:
    """What is missing or unequal in a comparison, a line each."""
    yield from _left_out(compared, chosen)
    own_and_published = 0 < len(compared.own_agents) < len(compared.agents)
    if compared.request.metric == "eval" and own_and_published:
        yield "published baselines are training returns; own runs are evaluation returns here"
    if compared.last_iteration is None:
        yield from _unequal_iterations(compared)
    for game in compared.games:
        if game not in compared.references:
            yield f"{game}: no human scores; it is in no aggregate and no relative score"
    yield from _unequal_games_and_seeds(compared)
    for agent in compared.agents if compared.common_games else []:
        lengths = compared.curve_lengths(agent)
        if min(lengths) < max(lengths):
            yield (
                f"{agent}: its mean and median curves stop at iteration {min(lengths) - 1}, the "
                f"last one that all its runs have (the longest run ends at {max(lengths) - 1})"
            )
    yield from gamma_scan.participants(compared.runs, compared.scores)[2]


def _left_out(compared: Comparison, chosen: list[LearningCurve]) -> Iterator[str]:
    kept = {run[:3] for run in compared.runs}
    left_out: dict[str, list[str]] = {}
    for run in chosen:
        if run[:3] not in kept:
            left_out.setdefault(run.agent, []).append(run.game)
    for agent, where in left_out.items():
        yield (
            f"{agent}: {len(where)} runs have no scores at iteration {compared.last_iteration}; "
            f"left out ({games.listing(sorted(set(where)))})"
        )


def _unequal_iterations(compared: Comparison) -> Iterator[str]:
    ends = {a: [s.iteration for s in compared.scores_of(a)] for a in compared.agents}
    longest = max(map(max, ends.values()))
    for agent, end in ends.items():
        # 198 and 199 (published and own full runs) are as good as equal.
        if min(end) + 1 < 0.95 * (longest + 1):
            yield (
                f"{agent}: its runs end at iteration {span(end)}, others at {longest}; "
                "--iteration=common compares all at one iteration"
            )


def span(values: Sequence[int]) -> str:
    """The least and the greatest of some numbers, in words."""
    return f"{min(values)}" if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _unequal_games_and_seeds(compared: Comparison) -> Iterator[str]:
    common = compared.common_games
    with_human = [game for game in compared.games if game in compared.references]
    for agent in compared.agents:
        played = {score.game for score in compared.scores_of(agent)}
        missing = [game for game in with_human if game not in played]
        if missing:
            yield (
                f"{agent}: no scores on {len(missing)} games ({games.listing(missing)}); "
                f"aggregates use the {len(common)} games that all agents have"
            )
    if not common:
        yield "no game with human scores is common to all agents: there are no aggregates"
        return
    for agent in compared.agents:
        seeds = [sum(s.game == game for s in compared.scores_of(agent)) for game in common]
        if min(seeds) != max(seeds):
            yield f"{agent}: {span(seeds)} seeds a game"
        if min(seeds) == 1:
            yield f"{agent}: a single seed on some games; its intervals are too narrow"
