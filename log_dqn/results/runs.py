"""Reads finished and unfinished runs from Dopamine's logs.

One run is a folder `{results_dir}/{agent}[/{setting}]/{game}/{seed}/` with a folder `logs/` in
it; a setting of a scan, such as `gamma=0.84,c=0.5`, counts as an agent of its own. Dopamine keeps
its last four logs; each holds the statistics of all iterations so far.
"""

import contextlib
import pathlib
import re
import types
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from log_dqn import games
from log_dqn.cli import progress, shell
from log_dqn.cli.words import counted, printable
from log_dqn.results import protocol
from log_dqn.results.protocol import PUBLISHED, Protocol
from log_dqn.results.request import find_runs
from log_dqn.run_folder import configuration, layout, safe_pickle

LARGEST_RETURN = 1e15
"""What is larger is no return of a game, and would be lost in doubles or overflow in sums."""

_ITERATION = re.compile(r"iteration_(\d+)")

Notify = Callable[[str], None]
"""Takes one line about something that is missing or could not be read."""


class LearningCurve(NamedTuple):
    """The learning curve of one agent on one game with one seed.

    Attributes:
        agent: its name, with its setting if it is one of a scan (`log_dqn/gamma=0.84,c=0.5`).
        game: Dopamine's spelling of the game.
        seed: name of the run's folder, or index of a published run.
        returns: mean return per episode (unclipped rewards) of each iteration, shape
            [num_iterations]; NaN where it is not known.
        agent_class: the agent that a run was started with, or its class, where that is recorded.
        gamma: its discount factor, where that is recorded.
        own: whether the run was read from disk; the others are published.
        protocol: what the returns were obtained under.
        parameters: the parameters of its configuration, as in `configuration.Configuration`.
    """

    agent: str
    game: str
    seed: str
    returns: np.ndarray
    agent_class: str | None = None
    gamma: float | None = None
    own: bool = False
    protocol: Protocol = PUBLISHED
    parameters: Mapping[str, Any] = types.MappingProxyType({})


def returns_of(log: Any, metric: str) -> np.ndarray:
    """Extracts the mean return of each iteration from a log of Dopamine.

    Args:
        log: what `Logger` pickles: {'iteration_0': {'train_average_return': [x], ...}, ...}.
            Older versions give numbers in place of lists, or only the episodes' returns.
        metric: `train` or `eval`.

    Returns:
        Mean returns, shape [num_iterations], up to the last iteration with such statistics; NaN
        where it has no return, as no episode ended. Empty if the log has no return at all.

    Raises:
        ValueError: the log has another shape, or a return beyond `LARGEST_RETURN`.
    """
    if not isinstance(log, dict):
        raise ValueError(f"holds a {type(log).__name__}, not Dopamine's statistics")
    known: dict[int, float] = {}
    num_iterations = 0
    for key, statistics in log.items():
        match = _ITERATION.fullmatch(key) if isinstance(key, str) else None
        if match is None or not isinstance(statistics, dict):
            continue
        if any(str(name).startswith(f"{metric}_") for name in statistics):
            num_iterations = max(num_iterations, int(match[1]) + 1)
        names = (f"{metric}_average_return", f"{metric}_episode_returns")
        if name := next((name for name in names if name in statistics), None):
            try:
                values = np.asarray(statistics[name], float)
            except (ArithmeticError, TypeError, ValueError):
                raise ValueError(f"{key}: {name} is not a number") from None
            if (np.abs(values) > LARGEST_RETURN).any():
                raise ValueError(f"{key}: {name} is beyond {LARGEST_RETURN:g}")
            if values.size and np.isfinite(values.mean()):
                known[int(match[1])] = values.mean()
    if num_iterations > 10**6:
        raise ValueError(f"has an iteration number {num_iterations - 1}")
    returns = np.full(num_iterations if known else 0, np.nan)
    returns[[*known]] = [*known.values()]
    return returns


def training_steps_of(log: layout.Log) -> int | None:
    """Finds how many agent steps an iteration's training phase has, from the episodes in a log.

    A phase ends with the episode that passes its steps, so that the least sum is the nearest. None
    where the log has no lengths of episodes.
    """
    sums = []
    for statistics in log.values():
        lengths = statistics.get("train_episode_lengths") if isinstance(statistics, dict) else None
        with contextlib.suppress(ArithmeticError, TypeError, ValueError):
            sums.append(int(np.sum(np.asarray(lengths, float))))
    return min((steps for steps in sums if steps > 0), default=None)


def read_run(
    run_dir: pathlib.Path, metric: str, notify: Notify
) -> tuple[layout.Log, np.ndarray] | None:
    """Reads a run's newest readable log; `notify` is told of each that cannot be read.

    Returns:
        The log and its mean returns, as of `returns_of`; None if there is no readable log.
    """
    try:
        found = layout.logs(run_dir)
    except OSError as error:
        notify(f"{run_dir}: {error.strerror}; left out")
        return None
    if not found:
        notify(f"{run_dir}: no logs yet; left out")
    for path in found:
        try:
            with path.open("rb") as file:
                log = safe_pickle.load(file)
            return log, returns_of(log, metric)
        except _UNREADABLE as error:
            notify(f"{path}: {getattr(error, 'strerror', None) or shell.explain(error)}; left out")
    return None


# A file may hold anything: numbers that no double holds, or more than the memory does.
_UNREADABLE = (ArithmeticError, ValueError, TypeError, MemoryError, RecursionError, OSError)


def gamma_of(parameters: Mapping[str, Any]) -> tuple[str, float] | None:
    """Finds the agent and its discount factor among a run's parameters; None if they don't say.

    The agent is what the run was started with, as two may be of one class, and else its class.
    """
    values = configuration.by_short_name(parameters)
    names = (values.get(which) for which in ("VectorizedRunner.agent", "create_agent.agent_name"))
    agent = next((name for name in names if isinstance(name, str)), None)
    for name in protocol.agent_parameters(values, "gamma"):
        value = values[name]
        if isinstance(value, (int, float)) and 0 <= value <= 1:
            return printable(agent or name.partition(".")[0]), float(value)
    return None


def read_runs(
    results_dir: pathlib.Path,
    metric: str,
    notify: Notify,
    agents: Collection[str] | None = None,
    only_games: Collection[str] | None = None,
) -> list[LearningCurve]:
    """Reads all runs under a results folder.

    Of `agents` and `only_games`, or all if None, returns those that could be read, sorted by agent,
    game and seed; `notify` is told of what could not.
    """
    found: dict[tuple[str, str, str], pathlib.Path] = {}
    first: dict[tuple[str, str], pathlib.Path] = {}
    for path in layout.closed_folders(results_dir):
        agent = path.relative_to(results_dir).parts[0]
        if agents is None or agent in {name.partition("/")[0] for name in agents}:
            notify(f"{path}: it may not be read; left out")
    for agent, folder, seed, path in find_runs(results_dir):
        game = games.canonical(folder) or folder
        if any("\udc80" <= letter <= "\udcff" for letter in f"{agent}/{folder}/{seed}"):
            notify(f"{path}: its name is not UTF-8; left out")
            continue
        if (agents is None or agent in agents) and (only_games is None or game in only_games):
            # The seeds of `pong/` beside `Pong/` would count twice.
            if first.setdefault((agent, game), path.parent) == path.parent:
                found[agent, game, seed] = path
            else:
                notify(f"{path}: the same agent and game as {first[agent, game]}; left out")
    curves = []
    without_returns: dict[str, list[str]] = {}
    for (agent, game, seed), path in progress.bar("Runs", [*found.items()]):
        if (read := read_run(path, metric, notify)) is None:
            continue
        log, returns = read
        if not len(returns):
            without_returns.setdefault(agent, []).append(game)
            continue
        parameters = parameters_of(path, notify)
        steps = training_steps_of(log)
        under = protocol.recorded(parameters, game, metric, len(returns), steps)
        agent_class, gamma = gamma_of(parameters) or (None, None)
        curves.append(
            LearningCurve(agent, game, seed, returns, agent_class, gamma, True, under, parameters)
        )
    for agent, played in without_returns.items():
        where = games.listing(list(dict.fromkeys(played)))
        count = counted(len(played), "run has", "runs have")
        notify(f"{agent}: {count} no {metric}_average_return; left out ({where})")
    return sorted(curves, key=lambda run: (run.agent, run.game, seed_key(run.seed)))


def parameters_of(run_dir: pathlib.Path, notify: Notify) -> dict[str, Any]:
    """Reads a run's parameters; if the file is damaged, returns none and calls `notify`."""
    try:
        return configuration.read(run_dir)
    except ValueError as error:
        notify(f"{error}; the run is taken as one without it")
        return {}


def seed_key(seed: str) -> tuple[int, str]:
    """Sorts seeds as numbers where they are numbers."""
    return (int(seed), "") if seed.isdecimal() else (2**63, seed)
