"""What is compared with what: agents, games, scores, and what is missing."""

import dataclasses
import math
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from log_dqn import games
from log_dqn.results import baselines, runs, scores
from log_dqn.results import references as tables
from log_dqn.results.references import VIDEO_PINBALL_RANDOM

Progress = Callable[[str, Sequence], Iterable]
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
    runs: list[runs.Run]
    scores: list[scores.Score]
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

    def mean_scores(self, agent: str) -> dict[str, float]:
        """An agent's score on each of its games, averaged over seeds."""
        by_game: dict[str, list[float]] = {}
        for score in self.scores:
            if score.agent == agent:
                by_game.setdefault(score.game, []).append(score.score)
        return {game: float(np.mean(values)) for game, values in by_game.items()}

    def curve_length(self, agent: str) -> int:
        """Iterations that all of an agent's runs on the common games have."""
        return min(_lengths(self.runs, agent, self.common_games))

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


def compare(request: Request, notify: runs.Notify, progress: Progress) -> Comparison:
    """Reads everything that was asked for and scores it.

    Args:
        request: what to compare.
        notify: is told at once of each thing that is missing or cannot be read.
        progress: shows progress over a sequence.

    Returns:
        The comparison; its notices hold what `notify` was told.

    Raises:
        ValueError: a game, the reference or every agent is unknown, or nothing at all is left to
            compare.
    """
    notices: list[str] = []

    def note(line: str) -> None:
        notices.append(line)
        notify(line)

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
    own = _with_other_names(own, taken, note)
    _refuse_unknown(request, taken | {_own_name(a, taken) for a in _folders(request.results_dir)})
    # LogDQN first: unless told otherwise, it is what is set against the reference.
    own_agents = sorted({run.agent for run in own}, key=lambda name: ("log_dqn" not in name, name))
    agents = list(request.agents or (*own_agents, *baselines.DEFAULT_AGENTS))
    agents = list(dict.fromkeys([*agents, request.reference]))
    chosen = [run for run in own + published if run.agent in agents]
    for agent in agents:
        if not any(run.agent == agent for run in chosen):
            note(f"{agent}: no runs, own or published, on the games compared; left out")
    references = tables.references(request.video_pinball_random)
    last = _last_iteration(request.iteration, chosen, note)
    scored, kept = [], []
    for run in chosen:
        score = scores.final_score(run.returns, last)
        if math.isnan(score):
            continue
        kept.append(run)
        iteration = len(run.returns) - 1 if last is None else last
        reference = references.get(run.game)
        hns = scores.human_normalised(score, *reference) if reference else math.nan
        scored.append(scores.Score(run.game, run.agent, run.seed, iteration, score, hns))
    if not scored:
        raise ValueError(
            f"--iteration={request.iteration}: nothing to compare; none of the {len(chosen)} runs "
            "has scores there"
        )
    _note_left_out(chosen, kept, last, note)
    agents = [agent for agent in agents if any(s.agent == agent for s in scored)]
    sources = {agent in own_agents for agent in agents}
    if request.metric == "eval" and sources == {True, False}:
        note("published baselines are training returns; own runs are evaluation returns here")
    if last is None:
        _note_unequal_iterations(agents, scored, note)
    for game in sorted({s.game for s in scored} - references.keys()):
        note(f"{game}: no human scores; it is in no aggregate and no relative score")
    common = _common_games(agents, scored, references, note)
    _note_cut_curves(agents, kept, common, note)
    for line in gamma_settings(kept, scored)[2]:
        note(line)
    others = [agent for agent in agents if agent != request.reference]
    return Comparison(
        request=request,
        references=references,
        agents=agents,
        own_agents=[agent for agent in agents if agent in own_agents],
        games=sorted({score.game for score in scored}),
        runs=kept,
        scores=scored,
        common_games=common,
        main=others[0] if others and request.reference in agents else None,
        last_iteration=last,
        notices=notices,
        own_runs_failed=request.results_dir is not None and not own,
    )


def _own_runs(
    request: Request, wanted_games: list[str] | None, note: runs.Notify, progress: Progress
) -> list[runs.Run]:
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


def _with_other_names(own: list[runs.Run], taken: set[str], note: runs.Notify) -> list[runs.Run]:
    """Renames own agents that are called as a published one is."""
    for agent in sorted({run.agent for run in own} & taken):
        note(f"{agent}: own runs of this name are shown as '{_own_name(agent, taken)}'")
    return [run._replace(agent=_own_name(run.agent, taken)) for run in own]


def _folders(results_dir: pathlib.Path | None) -> list[str]:
    """The agents that have runs in a results folder; none if it cannot be read."""
    return sorted({agent for agent, *_ in _found(results_dir)})


def _games_of(results_dir: pathlib.Path | None) -> list[str]:
    """The published games that a results folder has runs of, or else the paper's 55."""
    found = {games.canonical(folder) for _, folder, *_ in _found(results_dir)}
    return [game for game in games.GAMES if game in found] or list(games.PAPER55)


def _found(results_dir: pathlib.Path | None) -> list[tuple[str, str, str, pathlib.Path]]:
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


def _last_iteration(iteration: int | str, chosen: list[runs.Run], note: runs.Notify) -> int | None:
    if iteration == "final":
        return None
    if iteration == "common" and chosen:
        shortest = min(chosen, key=lambda run: len(run.returns))
        last = len(shortest.returns) - 1
        note(
            f"the common iteration is {last} "
            f"(set by {shortest.agent}/{shortest.game}/{shortest.seed})"
        )
        return last
    return 0 if iteration == "common" else int(iteration)


def _lengths(chosen: list[runs.Run], agent: str, common_games: list[str]) -> list[int]:
    return [len(r.returns) for r in chosen if r.agent == agent and r.game in common_games]


def _note_cut_curves(
    agents: list[str], kept: list[runs.Run], common_games: list[str], note: runs.Notify
) -> None:
    for agent in agents if common_games else []:
        lengths = _lengths(kept, agent, common_games)
        if min(lengths) < max(lengths):
            note(
                f"{agent}: its mean and median curves stop at iteration {min(lengths) - 1}, the "
                f"last one that all its runs have (the longest run ends at {max(lengths) - 1})"
            )


GammaSettings = dict[str, tuple[str, float]]
"""For each agent its class and its discount factor."""


def gamma_settings(
    kept: list[runs.Run], scored: list[scores.Score]
) -> tuple[GammaSettings, list[str], list[str]]:
    """Finds the agents that take part in a scan of discount factors (Appendix C).

    A run's discount factor and its agent's class come from its gin configuration; the published
    DQN has gamma 0.99.

    Returns:
        The agents with one discount factor that have scores on all the games; the games: those
        of the paper's six on which any agent has scores; and a line for each agent that is left
        out, if it is one of a scan.
    """
    lines = []
    gammas: dict[str, set[float]] = {}
    settings: GammaSettings = {}
    for run in kept:
        if run.gamma is not None:
            gammas.setdefault(run.agent, set()).add(run.gamma)
            settings[run.agent] = (str(run.agent_class), run.gamma)
    for agent, its in gammas.items():
        if len(its) > 1:
            listed = ", ".join(f"{gamma:g}" for gamma in sorted(its))
            lines.append(
                f"{agent}: its runs have different discount factors ({listed}) and are averaged "
                "as one agent's; it is not in the gamma figure"
            )
            del settings[agent]
    scan = len(set(settings.values())) > len({agent_class for agent_class, _ in settings.values()})
    if any(score.agent == baselines.DQN for score in scored):
        settings[baselines.DQN] = (baselines.DQN, 0.99)
    six = sorted({score.game for score in scored} & set(games.PAPER6))
    for agent in list(settings):
        missing = sorted(set(six) - {score.game for score in scored if score.agent == agent})
        if missing:
            del settings[agent]
            if scan:
                lines.append(
                    f"{agent}: not in the gamma figure; no scores on {games.listing(missing)}"
                )
    return settings, six, lines


def _note_left_out(
    chosen: list[runs.Run], kept: list[runs.Run], last: int | None, note: runs.Notify
) -> None:
    kept_ids = {id(run) for run in kept}
    for agent in dict.fromkeys(run.agent for run in chosen):
        left_out = [r for r in chosen if r.agent == agent and id(r) not in kept_ids]
        if left_out:
            where = sorted({run.game for run in left_out})
            note(
                f"{agent}: {len(left_out)} runs have no scores at iteration {last}; left out "
                f"({games.listing(where)})"
            )


def _note_unequal_iterations(
    agents: list[str], scored: list[scores.Score], note: runs.Notify
) -> None:
    ends = {a: sorted(s.iteration for s in scored if s.agent == a) for a in agents}
    longest = max(end[-1] for end in ends.values())
    for agent, end in ends.items():
        # 198 and 199 (published and own full runs) are as good as equal.
        if end[0] + 1 < 0.95 * (longest + 1):
            span = f"{end[0]} to {end[-1]}" if end[0] != end[-1] else f"{end[0]}"
            note(
                f"{agent}: its runs end at iteration {span}, others at {longest}; "
                "--iteration=common compares all at one iteration"
            )


def _common_games(
    agents: list[str],
    scored: list[scores.Score],
    references: dict[str, tables.Reference],
    note: runs.Notify,
) -> list[str]:
    with_human = {s.game for s in scored if s.game in references}
    played = {a: {s.game for s in scored if s.agent == a} & with_human for a in agents}
    common = sorted(set.intersection(*played.values()))
    for agent, its_games in played.items():
        missing = sorted(with_human - its_games)
        if missing:
            note(
                f"{agent}: no scores on {len(missing)} games ({games.listing(missing)}); "
                f"aggregates use the {len(common)} games that all agents have"
            )
    if not common:
        note("no game with human scores is common to all agents: there are no aggregates")
    for agent in agents:
        seeds = [sum(s.agent == agent and s.game == g for s in scored) for g in common]
        if seeds and min(seeds) != max(seeds):
            note(f"{agent}: {min(seeds)} to {max(seeds)} seeds a game")
        if seeds and min(seeds) == 1:
            note(f"{agent}: a single seed on some games; its intervals are too narrow")
    return common
