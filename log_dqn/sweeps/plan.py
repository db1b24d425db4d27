"""The runs of a sweep, the commands that train them, and how far each has come on disk."""

import collections
import dataclasses
import itertools
import json
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from log_dqn import scan
from log_dqn.games import KNOWN, folder_name
from log_dqn.run_folder import configuration, layout

# The scope, and the name without modules, of a reference of gin's.
_REFERENCE = re.compile(r"@((?:\w+/)*)(?:\w+\.)*(\w+(?:\(\))?)")
_WHICH_RUN = re.compile(r".*\.(game_name|environment_id)|seed_everything\.seed")


def game_or_env(name: str) -> dict[str, Any]:
    """Returns `log_dqn.train`'s option for a game or, if it is none, an environment."""
    return {"game" if name in KNOWN else "env": name}


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep.

    Attributes:
        name: its folder's path below the results.
        folder: its folder.
        num_iterations: its iterations when it is finished.
        steps_per_iteration: planned agent steps of an iteration.
        parameters: those of its configuration; see `comparable`.
    """

    name: str
    folder: pathlib.Path
    num_iterations: int
    steps_per_iteration: int
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)


class RunProgress(NamedTuple):
    """How far a run has come.

    Attributes:
        iterations: finished iterations.
        average_return: mean training return of the last finished iteration, if known.
        steps_per_second: agent steps per second of its training phase, if known.
    """

    iterations: int = 0
    average_return: float | None = None
    steps_per_second: float | None = None


@dataclasses.dataclass(frozen=True)
class Job:
    """One process that trains one or more runs, and resumes them when it is started again.

    Attributes:
        arguments: for the Python interpreter.
        runs: the runs.
        output: the file that the process prints to.
    """

    arguments: tuple[str, ...]
    runs: tuple[PlannedRun, ...]
    output: pathlib.Path


class AgentPlan(NamedTuple):
    """An agent, the scans and gin bindings that concern it, and the lengths of its settings.

    A length is the iterations of a run and the agent steps of one. `parameters` are those of the
    first setting's configuration, by game or environment; see `comparable`.
    """

    agent: str
    scans: list[str]
    gin_bindings: list[str]
    lengths: list[tuple[int, int]]
    parameters: Mapping[str, dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Plan:
    """A sweep over games in Dopamine's spelling, or ids of environments of gymnasium.

    Its gin files are those of all runs; none for the agents' own.
    """

    results_dir: pathlib.Path
    agents: list[AgentPlan]
    games: list[str]
    seeds: range
    gin_files: list[str]

    def _runs(
        self, agent: AgentPlan, games: list[str], seeds: Iterable[int]
    ) -> Iterator[tuple[PlannedRun, scan.Setting]]:
        """Yields an agent's runs, each with its setting."""
        of_settings = zip(scan.parse(agent.scans), agent.lengths, strict=True)
        for (setting, length), game, seed in itertools.product(of_settings, games, seeds):
            # Copies of the whole would make large what is sent to the workers.
            values = collections.ChainMap(comparable(setting.bindings), agent.parameters[game])
            folder = layout.run_dir(self.results_dir, agent.agent, setting.name, game, seed)
            name = str(folder.relative_to(self.results_dir))
            yield PlannedRun(name, folder, length[0], length[1], values), setting

    def _gin(self, agent: AgentPlan) -> tuple[str, ...]:
        return (
            *(f"--gin_files={name}" for name in self.gin_files),
            *(f"--gin_bindings={line}" for line in agent.gin_bindings),
        )

    def single_jobs(self) -> list[Job]:
        """Returns one process of `log_dqn.train` for each run.

        All games and settings come with the first seed, then with the second, ....
        """
        jobs = []
        for seed, game, agent in itertools.product(self.seeds, self.games, self.agents):
            for run, setting in self._runs(agent, [game], [seed]):
                arguments = (
                    *("-m", "log_dqn.train", f"--base_dir={run.folder}"),
                    f"--agent={agent.agent}",
                    *(f"--{option}={name}" for option, name in game_or_env(game).items()),
                    f"--seed={seed}",
                    *self._gin(agent),
                    *(f"--gin_bindings={line}" for line in setting.gin_bindings()),
                )
                jobs.append(Job(arguments, (run,), run.folder / "output.log"))
        return jobs

    def vectorized_jobs(self, games_per_job: int) -> list[Job]:
        """Returns processes of `log_dqn.train_vectorized`.

        Each trains some games, or one environment, with all seeds and settings of an agent.
        """
        jobs = []
        is_env = not set(self.games) <= set(KNOWN)
        for start in range(0, len(self.games), games_per_job):
            games = self.games[start : start + games_per_job]
            for agent in self.agents:
                arguments = (
                    *("-m", "log_dqn.train_vectorized", f"--results_dir={self.results_dir}"),
                    f"--agent={agent.agent}",
                    f"--env={games[0]}" if is_env else f"--games={','.join(games)}",
                    f"--seeds={self.seeds[0]}-{self.seeds[-1]}",
                    *self._gin(agent),
                    *(f"--scan={text}" for text in agent.scans),
                )
                runs = tuple(run for run, _ in self._runs(agent, games, self.seeds))
                output = self.results_dir / agent.agent / f"output_{folder_name(games[0])}.log"
                jobs.append(Job(arguments, runs, output))
        return jobs


def comparable(bound: Mapping[str, Any]) -> dict[str, Any]:
    """Returns by short names the parameters that tell two configurations apart.

    That is no macro or scoped name, which can be written in several ways, and not which game and
    seed it is: the folder says so, and a gin file may name others. Of a reference to a configurable
    the modules are left out.
    """
    kept = {
        name: _REFERENCE.sub(r"configurable \1\2", value) if isinstance(value, str) else value
        for name, value in configuration.as_json(bound).items()
        if "/" not in name
    }
    named = configuration.by_short_name(kept)
    return {
        name: value
        for name, value in named.items()
        if not _WHICH_RUN.fullmatch(name) and not re.search("[@%]", json.dumps(value))
    }


def progress(folder: pathlib.Path) -> RunProgress:
    """Reads how far a run has come from its newest readable log; its folder need not exist.

    Iterations count from the first up to the first gap.
    """
    from log_dqn.run_folder import safe_pickle  # It imports NumPy.

    try:
        logs = layout.logs(folder)
    except OSError:
        return RunProgress()
    for path in logs:
        try:
            with path.open("rb") as file:
                log = safe_pickle.load(file)
            statistics: dict[str, Any] = {}
            iterations = 0
            while f"iteration_{iterations}" in log:
                statistics = log[f"iteration_{iterations}"]
                iterations += 1
            last = {name: values[-1] for name, values in statistics.items() if values}
        except (ValueError, TypeError, LookupError, AttributeError, OSError):
            continue  # A log that can't be read gives way to the one before.
        return RunProgress(
            iterations,
            last.get("train_average_return"),
            last.get("train_average_steps_per_second"),
        )
    return RunProgress()


def progress_of(run: PlannedRun) -> RunProgress:
    """Does what `progress` does; a run with another configuration has not begun.

    It is started, and refuses.
    """
    try:
        then = comparable(configuration.read(run.folder))
    except ValueError:  # Training writes it again.
        then = {}
    differs = then and configuration.differences(then, run.parameters)
    return RunProgress() if differs else progress(run.folder)


def is_complete(run: PlannedRun) -> bool:
    """Returns whether a run's log has all its iterations; see `progress_of`."""
    return progress_of(run).iterations >= run.num_iterations
