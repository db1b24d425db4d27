"""What is compared with what: agents, games, scores, and what is missing."""

import collections
import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from log_dqn import games
from log_dqn.games import listing
from log_dqn.program import words
from log_dqn.program.words import counted
from log_dqn.results import baselines, discount, gamma_scan, protocol, runs, scores
from log_dqn.results.looks import OWN, Look, looks
from log_dqn.results.protocol import Difference
from log_dqn.results.request import DEFAULT_AGENTS, DQN, NAMES, Request, own_name
from log_dqn.results.runs import LearningCurve, Notify
from log_dqn.results.scores import Score
from log_dqn.results.statistics import LEAST_SEEDS

RunKey = tuple[str, str, str]
"""Agent, game and seed."""

ShowProgress = Callable[[str, Sequence], Iterable]
"""Takes a title and a sequence; yields the sequence's items and shows how far it has come."""


@dataclasses.dataclass
class Comparison:
    """Runs and scores that are ready for statistics and figures.

    Attributes:
        references: random and human scores by game; where no game compared has them, 0 and the best
            mean that any agent has on the game, if that is positive.
        agents: the agents that have scores, in the order in which they are shown.
        own_agents: those of them that were read from `results_dir`.
        games: the games that any agent has scores on, by name.
        scores: one for each of the runs.
        common_games: the games with references that all agents have: aggregates use these.
        main: the agent that is set against the reference; None if there is no other agent.
        frames: the emulator frames up to which returns count, on games with human scores or
            published runs; None for each run's own end.
        notices: what is missing, unequal or could not be read, a line each.
        frames_elsewhere: the same on each other game, whose steps are no Atari frames.
        standards: whose protocol the others' are compared with, by game.
        reasons: what differs from it, by agent, game and seed of each own run.
        by_best: whether scores are normalised by the best means instead of human scores.
    """

    request: Request
    references: dict[str, baselines.Reference]
    agents: list[str]
    own_agents: list[str]
    games: list[str]
    runs: list[LearningCurve]
    scores: list[Score]
    common_games: list[str]
    main: str | None
    frames: int | None
    notices: list[str]
    frames_elsewhere: dict[str, int] = dataclasses.field(default_factory=dict)
    standards: dict[str, str] = dataclasses.field(default_factory=dict)
    reasons: dict[RunKey, tuple[Difference, ...]] = dataclasses.field(default_factory=dict)
    by_best: bool = False

    def normalise(self, game: str, score: Any) -> Any:
        """Normalised score of a game, NaN for a game without references."""
        if game not in self.references:
            return score * math.nan
        return scores.human_normalised(score, *self.references[game])

    @property
    def scale(self) -> str:
        """What scores over games are."""
        return "score / best mean of the game" if self.by_best else "human-normalised score"

    @property
    def no_aggregates(self) -> str:
        """Why there is no game to aggregate over."""
        what = "a mean above 0" if self.by_best else "human scores"
        return f"no game with {what} is common to all agents"

    @property
    def standard(self) -> str:
        """Whose protocol the others' are compared with, where something differs."""
        differing = {run[1] for run in self.runs if self.reasons.get(run[:3])}
        return _standard(self.standards, differing or self.games)

    def standard_of(self, agent: str, games: Collection[str] | None = None) -> str:
        """The same for one agent, on all its games or on some."""
        own = self._own(agent, games)
        differing = {run.game for run in own if self.reasons.get(run[:3])}
        return _standard(self.standards, differing, agent)

    def _own(self, agent: str, games: Collection[str] | None) -> list[LearningCurve]:
        return [
            run for run in self.runs if run.agent == agent and (games is None or run.game in games)
        ]

    def differences(
        self, agent: str, games: Collection[str] | None = None
    ) -> list[tuple[Difference, str]]:
        """What differs between an agent's protocol and the standard, on all its games or on some.

        Beside each stands on which runs and games, where it isn't all.
        """
        own = self._own(agent, games)
        found = []
        for reason in dict.fromkeys(r for run in own for r in self.reasons.get(run[:3], ())):
            having = [run for run in own if reason in self.reasons.get(run[:3], ())]
            where = sorted({run.game for run in having})
            of = [run for run in own if run.game in where]
            part = "" if len(having) == len(of) else f" in {len(having)} of {len(of)} runs"
            place = "" if len(of) == len(own) else f" on {listing(where)}"
            found.append((reason, part + place))
        return found

    def deviations(self, agent: str, games: Collection[str] | None = None) -> list[str]:
        """The same, a phrase each."""
        return [f"{reason}{where}" for reason, where in self.differences(agent, games)]

    def is_unrecorded(self, agent: str, games: Collection[str] | None = None) -> bool:
        """Whether an agent's protocol is just not recorded, as far as that is known."""
        return all(r.own == protocol.NOT_RECORDED for r, _ in self.differences(agent, games))

    def protocol_of(self, agent: str, games: Collection[str] | None = None) -> str:
        """An agent's protocol in the tables' words: `published`, `same`, or what differs."""
        if agent not in self.own_agents:
            return "published"
        return "; ".join(self.deviations(agent, games)) or "same"

    def protocol_of_run(self, score: Score) -> str:
        """The same of a score's run."""
        if score.agent not in self.own_agents:
            return "published"
        reasons = self.reasons.get((score.agent, score.game, score.seed), ())
        return "; ".join(map(str, reasons)) or "same"

    def mark(self, agents: Iterable[str], games: Collection[str] | None = None) -> str:
        """What stands behind the name of agents of which one's protocol differs, or nothing."""
        differing = [agent for agent in agents if self.deviations(agent, games)]
        unknown = all(self.is_unrecorded(agent, games) for agent in differing)
        mark = protocol.UNRECORDED_MARK if unknown else protocol.MARK
        return f" {mark}" if differing else ""

    def label(self, agent: str, games: Collection[str] | None = None) -> str:
        """How figures and tables name an agent: with a mark where its protocol differs.

        That counts on all its games or on some, as for all that follows.
        """
        return baselines.named(agent) + self.mark([agent], games)

    def seeds(self, agent: str, games: Iterable[str] | None = None) -> list[int]:
        """The numbers of an agent's seeds on its games, or on some."""
        counts = collections.Counter(score.game for score in self.scores_of(agent))
        return [counts[game] for game in (counts if games is None else games)]

    def name(self, agent: str, games: Collection[str] | None = None) -> str:
        """An agent's label with its number of seeds."""
        return f"{self.label(agent, games)}, {words.seeds(self.seeds(agent, games))}"

    def scores_of(self, agent: str) -> list[Score]:
        """An agent's scores."""
        return [score for score in self.scores if score.agent == agent]

    def mean_scores(self, agent: str) -> dict[str, float]:
        """An agent's score on each of its games, averaged over seeds."""
        by_game: dict[str, list[float]] = {}
        for score in self.scores_of(agent):
            by_game.setdefault(score.game, []).append(score.score)
        return {game: float(np.mean(values)) for game, values in by_game.items()}

    def curves(self, agent: str, games: Collection[str]) -> tuple[int, list[LearningCurve]]:
        """The emulator frames from value to value of an agent's curves on some games, and those."""
        own = [run for run in self.runs if run.agent == agent and run.game in games]
        step = max(run.frames_per_iteration for run in own)
        every = [scores.every(run.returns, run.frames_per_iteration, step) for run in own]
        return step, [run._replace(returns=c) for run, c in zip(own, every, strict=True)]

    def looks(
        self, games: Collection[str] | None = None, agents: Iterable[str] | None = None
    ) -> dict[str, Look]:
        """How each agent is shown in figures over all games, or over some."""
        return looks({a: self.name(a, games) for a in (self.agents if agents is None else agents)})

    def frame_skip(self, games: Collection[str] | None = None) -> int | None:
        """Emulator frames of an agent step, on all games or on some; None where that differs."""
        return _skip(run for run in self.runs if games is None or run.game in games)

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


def _skip(chosen: Iterable[LearningCurve]) -> int | None:
    """Emulator frames of an agent step of some runs; None where that differs."""
    skips = {(run.protocol or protocol.PUBLISHED).frame_skip for run in chosen} - {None}
    skips = skips or {protocol.PUBLISHED.frame_skip}
    return skips.pop() if len(skips) == 1 else None


def _choose(
    request: Request, note: Notify, progress: ShowProgress
) -> tuple[list[LearningCurve], list[LearningCurve], list[str]]:
    """Returns the own runs that were read, the runs to compare, and their agents in order."""
    own, published = _read(request, note, progress)
    agents = _agents(request, own, published)
    chosen = [run for run in own + published if run.agent in agents]
    for agent in agents:
        if not any(run.agent == agent for run in chosen):
            note(f"{agent}: no runs, own or published, on the games compared; left out")
    return own, chosen, agents


def compare(request: Request, notify: Notify, progress: ShowProgress) -> Comparison:
    """Reads everything that was asked for and scores it.

    `notify` is told at once of each thing that is missing or cannot be read; the comparison's
    notices hold the same lines.
    """
    notices: list[str] = []

    def note(line: str) -> None:
        notices.append(words.printable(line))
        notify(notices[-1])

    own, chosen, agents = _choose(request, note, progress)
    standards, reasons = _protocols(chosen, [request.reference, *agents])
    if request.strict:
        chosen = _strictly(chosen, reasons, standards, note)
    if request.results_dir is not None and not any(run.protocol for run in chosen):
        raise _nothing_own(request)
    references = baselines.references()
    elsewhere = _without_baselines(chosen, references)
    frames, by_game = _frames(request.iteration, chosen, elsewhere, note)
    by_best = elsewhere == {run.game for run in chosen}
    if by_best:
        references = _best_means(_scored(chosen, by_game, {}))
    scored = _scored(chosen, by_game, references)
    if not scored:
        raise ValueError(
            f"--iteration={request.iteration}: nothing to compare; none of the "
            f"{counted(len(chosen), 'run')} has scores there"
        )
    kept = [run for run, _ in scored]
    agents = [agent for agent in agents if any(run.agent == agent for run in kept)]
    if by_best:
        request = dataclasses.replace(request, reference=_reference(request, agents))
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
        frames=frames,
        notices=notices,
        frames_elsewhere={game: by_game[game] for game in sorted(elsewhere & by_game.keys())},
        standards=standards,
        reasons=reasons,
        by_best=by_best,
    )
    for line in _remarks(compared, chosen):
        note(line)
    return compared


def _standard(standards: dict[str, str], games: Iterable[str], agent: str | None = None) -> str:
    """Returns, in words, whose protocol an agent's, or all agents', is compared with on games."""
    whose = dict.fromkeys(standards.get(game, protocol.BASELINES) for game in sorted(games))
    return " or ".join("its first run" if name == agent else name for name in whose)


def _protocols(
    chosen: list[LearningCurve], agents: Sequence[str]
) -> tuple[dict[str, str], dict[RunKey, tuple[Difference, ...]]]:
    """Compares protocols with the baselines', or on a game without, with the first agent's there.

    Returns:
        Whose protocol the standard is by game, and what differs from it by own run.
    """
    published = {run.game for run in chosen if run.protocol is None}
    standards, reasons = {}, {}
    for run in sorted(chosen, key=lambda run: agents.index(run.agent)):
        if run.protocol is None or run.game in published:
            standards[run.game] = protocol.BASELINES, "baselines", protocol.PUBLISHED
        else:
            under = run.protocol._replace(updates=True)
            standards.setdefault(run.game, (run.agent, run.agent, under))
    for run in chosen:
        if run.protocol:
            _, whose, standard = standards[run.game]
            reasons[run[:3]] = protocol.differences(run.protocol, standard, whose)
    return {game: whose for game, (whose, *_) in standards.items()}, reasons


def _strictly(
    chosen: list[LearningCurve],
    reasons: dict[RunKey, tuple[Difference, ...]],
    standards: dict[str, str],
    note: Notify,
) -> list[LearningCurve]:
    """Leaves out the runs whose protocol differs from the standard."""
    kept = [run for run in chosen if not reasons.get(run[:3])]
    for agent in dict.fromkeys(run.agent for run in chosen):
        own = [run[:3] for run in chosen if run.agent == agent and reasons.get(run[:3])]
        if own:
            different = dict.fromkeys(reason for key in own for reason in reasons[key])
            standard = _standard(standards, {game for _, game, _ in own}, agent)
            note(
                f"{agent}: {counted(len(own), 'run')} left out by --strict, not comparable with "
                f"{standard}: {'; '.join(map(str, different))}"
            )
    return kept


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
    if request.results_dir is not None and not own:
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


def _without_baselines(chosen: list[LearningCurve], references: Collection[str]) -> set[str]:
    """The games that have neither human scores nor published runs."""
    published = {run.game for run in chosen if run.protocol is None}
    return {run.game for run in chosen} - set(references) - published


def _frames(
    iteration: int | str, chosen: list[LearningCurve], elsewhere: Collection[str], note: Notify
) -> tuple[int | None, dict[str, int]]:
    """The emulator frames up to which returns count.

    Returns:
        Those of the games with human scores or published runs, and those of each game; None and
        nothing for each run's own end.
    """
    if iteration == "final":
        return None, {}
    comparable = [run for run in chosen if run.game not in elsewhere]
    frames = _common_frames(iteration, comparable, "", note) if comparable else None
    by_game = {run.game: frames for run in comparable if frames is not None}
    for game in sorted(elsewhere):
        own = [run for run in chosen if run.game == game]
        by_game[game] = _common_frames(iteration, own, f"{game}: ", note)
    return frames, by_game


def _common_frames(
    iteration: int | str, chosen: list[LearningCurve], where: str, note: Notify
) -> int:
    """The emulator frames that all of some runs have, or that were asked for."""
    longest_iteration = max(run.frames_per_iteration for run in chosen)
    if iteration != "common":
        return (int(iteration) + 1) * longest_iteration
    shortest = min(chosen, key=lambda run: run.frames)
    frames = shortest.frames
    # 198 and 199 (published and own full runs) are as good as equal.
    if frames < 0.95 * max(run.frames for run in chosen):
        own = "own " * (shortest.protocol is not None)
        note(
            f"{where}all are compared after {words.frames(frames, _skip(chosen))}, the last that "
            f"all {own}runs have (set by {'/'.join(shortest[:3])}); --iteration=final compares "
            "each run at its own end"
        )
    late: dict[int, dict[str, None]] = {}
    for run in chosen:
        if run.frames_per_iteration > frames and not math.isnan(run.returns[0]):
            late.setdefault(run.frames_per_iteration, {})[run.agent] = None
    for length, agents in late.items():
        note(
            f"{where}{', '.join(agents)}: no scores before the end of the first iteration, "
            f"{words.frames(length, _skip(chosen))}, which stands in"
        )
    return frames


def _scored(
    chosen: list[LearningCurve], frames: dict[str, int], references: dict[str, baselines.Reference]
) -> list[tuple[LearningCurve, Score]]:
    """The runs that have a score after so many frames of their game, each with its score."""
    scored = []
    for run in chosen:
        length = run.frames_per_iteration
        last = len(run.returns) - 1
        if run.game in frames:
            last = scores.last_iteration(frames[run.game], length)
        score = scores.final_score(run.returns, last)
        if not math.isnan(score):
            reference = references.get(run.game)
            hns = scores.human_normalised(score, *reference) if reference else math.nan
            scored.append(
                (run, Score(run.game, run.agent, run.seed, last, score, hns, (last + 1) * length))
            )
    return scored


def _best_means(scored: list[tuple[LearningCurve, Score]]) -> dict[str, baselines.Reference]:
    """References where there are none: 0, and the best mean of any agent, if that is positive."""
    found = pd.DataFrame([score for _, score in scored], columns=Score._fields)
    best = discount.best_means(found, ["agent"])
    return {game: baselines.Reference(0.0, mean) for game, mean in best.items() if mean > 0}


def _reference(request: Request, agents: Sequence[str]) -> str:
    """The reference; on own games none is published, but the last agent of the first's setting."""
    if request.reference in agents or request.reference != DQN:
        return request.reference
    setting = agents[0].partition("/")[2]
    return [*agents, *(agent for agent in agents[1:] if agent.partition("/")[2] == setting)][-1]


def _remarks(compared: Comparison, chosen: list[LearningCurve]) -> Iterator[str]:
    """What is missing or unequal in a comparison, a line each."""
    for agent in compared.agents:
        deviations = compared.deviations(agent)
        if deviations:
            unknown = compared.is_unrecorded(agent)
            yield (
                f"{agent}: {'perhaps ' * unknown}not comparable with "
                f"{compared.standard_of(agent)}: {'; '.join(deviations)}"
            )
    yield from _left_out(compared, chosen)
    if compared.request.iteration == "final":
        yield from _unequal_experience(compared)
    for game in compared.games:
        if game not in compared.references:
            lacks = "no mean above 0" if compared.by_best else "no human scores"
            yield f"{game}: {lacks}; it is in no aggregate and no relative score"
    yield from _unequal_games_and_seeds(compared)
    for agent in compared.agents if compared.common_games else []:
        step, curves = compared.curves(agent, compared.common_games)
        ends = [step * len(run.returns) for run in curves]
        if not min(ends):
            yield (
                f"{agent}: no mean, median and IQM curves; a run of it ends before the first "
                f"iteration of another ({words.frames(step)})"
            )
        elif min(ends) < max(ends):
            yield (
                f"{agent}: its mean, median and IQM curves stop after {words.frames(min(ends))}, "
                "the last that all its runs have (the longest run ends after "
                f"{words.frames(max(ends))})"
            )
    yield from gamma_scan.participants(compared.runs, compared.scores)[2]


def _left_out(compared: Comparison, chosen: list[LearningCurve]) -> Iterator[str]:
    kept = {run[:3] for run in compared.runs}
    left_out: dict[tuple[str, int], list[str]] = {}
    for run in chosen:
        if run[:3] not in kept:
            frames = compared.frames_elsewhere.get(run.game, compared.frames or 0)
            left_out.setdefault((run.agent, frames), []).append(run.game)
    for (agent, frames), where in left_out.items():
        yield (
            f"{agent}: {counted(len(where), 'run has', 'runs have')} no scores after "
            f"{words.frames(frames)}; left out ({listing(sorted(set(where)))})"
        )


def _unequal_experience(compared: Comparison) -> Iterator[str]:
    elsewhere = _without_baselines(compared.runs, baselines.references())
    for games_compared in (set(compared.games) - elsewhere, *([game] for game in elsewhere)):
        comparable = [score for score in compared.scores if score.game in games_compared]
        longest = max((score.frames for score in comparable), default=0)
        for agent in compared.agents:
            ends = [score.frames for score in comparable if score.agent == agent]
            if ends and min(ends) < 0.95 * longest:
                yield (
                    f"{agent}: its runs end after {words.span(ends)} frames, others after "
                    f"{words.frames(longest)}; --iteration=common compares all at equal experience"
                )


def _unequal_games_and_seeds(compared: Comparison) -> Iterator[str]:
    common = compared.common_games
    normalised = [game for game in compared.games if game in compared.references]
    for agent in compared.agents:
        played = {score.game for score in compared.scores_of(agent)}
        missing = [game for game in normalised if game not in played]
        if missing:
            yield (
                f"{agent}: no scores on {counted(len(missing), 'game')} "
                f"({listing(missing)}); aggregates use the {counted(len(common), 'game')} "
                "that all agents have"
            )
    if not common:
        yield f"{compared.no_aggregates}: there are no aggregates"
        return
    few: dict[str, list[str]] = {}
    for agent in compared.agents:
        counts = compared.seeds(agent, common)
        if min(counts) < LEAST_SEEDS:
            few.setdefault(words.seeds(counts), []).append(agent)
        elif min(counts) != max(counts):
            yield f"{agent}: {words.span(counts)} seeds a game"
    for seeds, agents in few.items():
        yield f"{listing(agents)}: {seeds} a game; intervals need {LEAST_SEEDS}"
