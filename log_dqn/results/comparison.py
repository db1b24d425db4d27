"""What is compared with what: agents, games, scores, and what is missing."""

import collections
import dataclasses
import math
import pathlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from log_dqn import games
from log_dqn.results import baselines, gamma_scan, protocol, runs, scores, words
from log_dqn.results import references as tables
from log_dqn.results.looks import Look, looks
from log_dqn.results.references import VIDEO_PINBALL_RANDOM
from log_dqn.results.runs import LearningCurve, Notify
from log_dqn.results.scores import Score
from log_dqn.results.words import counted

RunKey = tuple[str, str, str]
"""Agent, game and seed."""

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
        iteration: the last iteration that counts: `common` for the last experience, in emulator
            frames, that all runs have; `final` for each run's own last iteration; a number for
            as many frames as that iteration ends with.
        reference: the agent that relative scores refer to.
        baselines: a folder or an http(s) address.
        video_pinball_random: VideoPinball's random score.
        repetitions: bootstrap repetitions.
        strict: whether runs of another protocol, or one not recorded, are left out.
        cache_dir: where downloaded baselines are kept; the user's cache folder if None.
    """

    results_dir: pathlib.Path | None = None
    agents: tuple[str, ...] | None = None
    games: tuple[str, ...] | None = None
    metric: str = "train"
    iteration: int | str = "common"
    reference: str = baselines.DQN
    baselines: str = baselines.DOPAMINE
    video_pinball_random: float = VIDEO_PINBALL_RANDOM
    repetitions: int = 2000
    strict: bool = False
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
        frames: the emulator frames up to which returns count; None for each run's own end.
        notices: what is missing, unequal or could not be read, a line each.
        standard: whose protocol the others' are compared with.
        reasons: what differs from it, by agent, game and seed of each own run.
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
    frames: int | None
    notices: list[str]
    standard: str = protocol.BASELINES
    reasons: dict[RunKey, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def normalise(self, game: str, score: Any) -> Any:
        """Human-normalised score of a game, NaN for a game without human scores."""
        if game not in self.references:
            return score * math.nan
        return scores.human_normalised(score, *self.references[game])

    def deviations(self, agent: str) -> list[str]:
        """What differs between an agent's protocol and the standard, a phrase each."""
        own = [self.reasons.get(run[:3], ()) for run in self.runs if run.agent == agent]
        of_how_many = collections.Counter(reason for reasons in own for reason in reasons)
        return [
            reason if count == len(own) else f"{reason} in {count} of {len(own)} runs"
            for reason, count in of_how_many.items()
        ]

    def is_unrecorded(self, agent: str) -> bool:
        """Whether an agent's protocol is just not recorded, as far as that is known."""
        return all(map(protocol.is_unrecorded, self.deviations(agent)))

    def protocol_of(self, agent: str) -> str:
        """An agent's protocol in the tables' words: `published`, `same`, or what differs."""
        if agent not in self.own_agents:
            return "published"
        return "; ".join(self.deviations(agent)) or "same"

    def protocol_of_run(self, score: Score) -> str:
        """The same of a score's run."""
        if score.agent not in self.own_agents:
            return "published"
        return "; ".join(self.reasons.get((score.agent, score.game, score.seed), ())) or "same"

    def label(self, agent: str) -> str:
        """How figures and tables name an agent: with a mark where its protocol differs."""
        mark = protocol.UNRECORDED_MARK if self.is_unrecorded(agent) else protocol.MARK
        return baselines.named(agent) + (f" {mark}" if self.deviations(agent) else "")

    def seeds(self, agent: str, games: Iterable[str] | None = None) -> list[int]:
        """The numbers of an agent's seeds on its games, or on some."""
        counts = collections.Counter(score.game for score in self.scores_of(agent))
        return [counts[game] for game in (counts if games is None else games)]

    def name(self, agent: str) -> str:
        """An agent's label with its number of seeds."""
        return f"{self.label(agent)}, {words.seeds(self.seeds(agent))}"

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
        """An agent's learning curves on some games, all at the same experience.

        Returns:
            The emulator frames from value to value, and the runs.
        """
        own = [run for run in self.runs if run.agent == agent and run.game in games]
        step = max(run.frames_per_iteration for run in own)
        every = [scores.every(run.returns, run.frames_per_iteration, step) for run in own]
        return step, [run._replace(returns=c) for run, c in zip(own, every, strict=True)]

    def looks(self) -> dict[str, Look]:
        """How each agent is shown in figures."""
        return looks({agent: self.name(agent) for agent in self.agents})

    @property
    def frame_skip(self) -> int | None:
        """Emulator frames of an agent step; None where that differs from run to run."""
        skips = {(run.protocol or protocol.PUBLISHED).frame_skip for run in self.runs} - {None}
        skips = skips or {protocol.PUBLISHED.frame_skip}
        return skips.pop() if len(skips) == 1 else None

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
        ValueError: a game, the reference or every agent is unknown, no run of `results_dir` can
            be compared, or nothing at all is left to compare.
    """
    if request.metric == "eval" and request.results_dir is None:
        raise ValueError(
            "--metric=eval: it must be 'train' without --results_dir; the published baselines are "
            "training returns"
        )
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
    standard, reasons = _protocols(chosen, [request.reference, *agents])
    if request.strict:
        chosen = _strictly(chosen, reasons, standard, note)
    if request.results_dir is not None and not any(run.protocol for run in chosen):
        raise _nothing_own(request)
    frames = _frames(request.iteration, chosen, note)
    references = tables.references(request.video_pinball_random)
    scored = _scored(chosen, frames, references)
    if not scored:
        raise ValueError(
            f"--iteration={request.iteration}: nothing to compare; none of the "
            f"{counted(len(chosen), 'run')} has scores there"
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
        frames=frames,
        notices=notices,
        standard=standard,
        reasons=reasons,
    )
    for line in _remarks(compared, chosen):
        note(line)
    return compared


def _protocols(
    chosen: list[LearningCurve], agents: Sequence[str]
) -> tuple[str, dict[RunKey, tuple[str, ...]]]:
    """Compares protocols with the baselines', or without any, with the first agent's that has runs.

    Returns:
        Whose protocol the standard is, and what differs from it by own run.
    """
    own = [(run, run.protocol) for run in chosen if run.protocol]
    standard, whose = protocol.BASELINES, "baselines"
    standards = {run.game: protocol.PUBLISHED for run, _ in own}
    if own and len(own) == len(chosen):
        standard = whose = next(a for a in agents if any(run.agent == a for run, _ in own))
        # A game that the first agent has not played is compared with whoever has.
        for run, under in sorted(own, key=lambda pair: pair[0].agent == standard):
            standards[run.game] = under._replace(updates=True)
    return standard, {
        run[:3]: protocol.differences(under, standards[run.game], whose) for run, under in own
    }


def _strictly(
    chosen: list[LearningCurve],
    reasons: dict[RunKey, tuple[str, ...]],
    standard: str,
    note: Notify,
) -> list[LearningCurve]:
    """Leaves out the runs whose protocol differs from the standard."""
    kept = [run for run in chosen if not reasons.get(run[:3])]
    for agent in dict.fromkeys(run.agent for run in chosen):
        own = [run[:3] for run in chosen if run.agent == agent and reasons.get(run[:3])]
        if own:
            different = dict.fromkeys(reason for key in own for reason in reasons[key])
            note(
                f"{agent}: {counted(len(own), 'run')} left out by --strict, not comparable with "
                f"{standard}: {'; '.join(different)}"
            )
    return kept


def _nothing_own(request: Request) -> ValueError:
    return ValueError(f"--results_dir={request.results_dir}: no run of it can be compared")


def _read(
    request: Request, note: Notify, progress: ShowProgress
) -> tuple[list[LearningCurve], list[LearningCurve]]:
    """Reads own and published runs; none of the former bears the name of a published agent."""
    wanted_games = games.select(request.games) if request.games else None
    own = _own_runs(request, wanted_games, note, progress)
    own_folders = {agent for agent, *_ in _found(request.results_dir)}
    if request.results_dir is not None and not own:
        _refuse_unknown(request, _published_names() | own_folders)
        raise _nothing_own(request)
    if wanted_games is None:
        wanted_games = sorted({run.game for run in own}) or list(games.PAPER55)
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
    _refuse_unknown(request, taken | {_own_name(agent, taken) for agent in own_folders})
    return [run._replace(agent=_own_name(run.agent, taken)) for run in own], published


def _own_runs(
    request: Request, wanted_games: list[str] | None, note: Notify, progress: ShowProgress
) -> list[LearningCurve]:
    if request.results_dir is None:
        return []
    return runs.read_runs(
        request.results_dir,
        request.metric,
        note,
        agents=_wanted_folders(request),
        only_games=wanted_games,
        progress=lambda items: progress("Runs", items),
    )


_OWN = " (own runs)"


def _published_names() -> set[str]:
    """Names that stand for published agents, here or in figures, on every game."""
    return {*baselines.AGENTS, *baselines.AGENTS.values()}


def _own_name(agent: str, taken: set[str]) -> str:
    """How an own agent is shown: never by a published one's name."""
    while agent in taken:
        agent += _OWN
    return agent


def _found(results_dir: pathlib.Path | None) -> list[tuple[str, str, str, pathlib.Path]]:
    return runs.find_runs(results_dir) if results_dir else []


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


def _frames(iteration: int | str, chosen: list[LearningCurve], note: Notify) -> int | None:
    """The emulator frames up to which returns count; None for each run's own end."""
    if iteration == "final" or not chosen:
        return None
    longest_iteration = max(run.frames_per_iteration for run in chosen)
    if iteration != "common":
        return (int(iteration) + 1) * longest_iteration
    shortest = min(chosen, key=lambda run: run.frames)
    frames = shortest.frames
    # 198 and 199 (published and own full runs) are as good as equal.
    if frames < 0.95 * max(run.frames for run in chosen):
        note(
            f"all are compared after {words.frames(frames)}, the last that all runs have (set by "
            f"{'/'.join(shortest[:3])}); --iteration=final compares each run at its own end"
        )
    late = dict.fromkeys(run.agent for run in chosen if run.frames_per_iteration > frames)
    if late:
        note(
            f"{', '.join(late)}: no scores before the end of the first iteration, "
            f"{words.frames(longest_iteration)}, which stands in"
        )
    return frames


def _scored(
    chosen: list[LearningCurve], frames: int | None, references: dict[str, tables.Reference]
) -> list[tuple[LearningCurve, Score]]:
    """The runs that have a score after so many frames, each with its score."""
    scored = []
    for run in chosen:
        length = run.frames_per_iteration
        last = len(run.returns) - 1 if frames is None else scores.last_iteration(frames, length)
        score = scores.final_score(run.returns, last)
        if not math.isnan(score):
            reference = references.get(run.game)
            hns = scores.human_normalised(score, *reference) if reference else math.nan
            scored.append((run, Score(*_names(run), last, score, hns, (last + 1) * length)))
    return scored


def _names(run: LearningCurve) -> tuple[str, str, str]:
    return run.game, run.agent, run.seed


def _remarks(compared: Comparison, chosen: list[LearningCurve]) -> Iterator[str]:
    """What is missing or unequal in a comparison, a line each."""
    for agent in compared.agents:
        deviations = compared.deviations(agent)
        if deviations:
            unknown = compared.is_unrecorded(agent)
            yield f"{agent}: {'perhaps ' * unknown}not comparable with {compared.standard}: " + (
                "; ".join(deviations)
            )
    yield from _left_out(compared, chosen)
    if compared.frames is None:
        yield from _unequal_experience(compared)
    for game in compared.games:
        if game not in compared.references:
            yield f"{game}: no human scores; it is in no aggregate and no relative score"
    yield from _unequal_games_and_seeds(compared)
    for agent in compared.agents if compared.common_games else []:
        step, curves = compared.curves(agent, compared.common_games)
        ends = [step * len(run.returns) for run in curves]
        if min(ends) < max(ends):
            yield (
                f"{agent}: its mean, median and IQM curves stop after {words.frames(min(ends))}, "
                "the last that all its runs have (the longest run ends after "
                f"{words.frames(max(ends))})"
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
            f"{agent}: {counted(len(where), 'run has', 'runs have')} no scores after "
            f"{words.frames(compared.frames or 0)}; left out ({games.listing(sorted(set(where)))})"
        )


def _unequal_experience(compared: Comparison) -> Iterator[str]:
    ends = {a: [s.frames for s in compared.scores_of(a)] for a in compared.agents}
    longest = max(map(max, ends.values()))
    for agent, end in ends.items():
        if min(end) < 0.95 * longest:
            yield (
                f"{agent}: its runs end after {words.span(end)} frames, others after "
                f"{words.frames(longest)}; --iteration=common compares all at equal experience"
            )


def _unequal_games_and_seeds(compared: Comparison) -> Iterator[str]:
    common = compared.common_games
    with_human = [game for game in compared.games if game in compared.references]
    for agent in compared.agents:
        played = {score.game for score in compared.scores_of(agent)}
        missing = [game for game in with_human if game not in played]
        if missing:
            yield (
                f"{agent}: no scores on {counted(len(missing), 'game')} "
                f"({games.listing(missing)}); aggregates use the {counted(len(common), 'game')} "
                "that all agents have"
            )
    if not common:
        yield "no game with human scores is common to all agents: there are no aggregates"
        return
    for agent in compared.agents:
        counts = compared.seeds(agent, common)
        if min(counts) != max(counts):
            yield f"{agent}: {words.span(counts)} seeds a game"
        if min(counts) == 1:
            yield f"{agent}: a single seed on some games; it has no intervals"
