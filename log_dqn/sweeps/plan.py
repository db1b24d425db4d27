"""The runs of a sweep, the commands that train them, and how far each has come on disk."""

import dataclasses
import os
import pathlib
from typing import Any, NamedTuple

from log_dqn import scan
from log_dqn.games import folder_name
from log_dqn.run_folder import layout, safe_pickle


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a sweep.

    Attributes:
        name: agent, setting if there is one, game and seed, with slashes between.
        folder: where it lies.
        num_iterations: iterations until it is complete.
        steps_per_iteration: agent steps that an iteration is planned to take.
    """

    name: str
    folder: pathlib.Path
    num_iterations: int
    steps_per_iteration: int


class Progress(NamedTuple):
    """How far a run has come.

    Attributes:
        iterations: finished iterations.
        average_return: mean training return of the last one, if it is known.
        steps_per_second: agent steps per second in its training phase, if they are known.
    """

    iterations: int = 0
    average_return: float | None = None
    steps_per_second: float | None = None


@dataclasses.dataclass(frozen=True)
class Job:
    """One process that trains one or more runs, and goes on with them when it is started again.

    Attributes:
        name: what to call it.
        arguments: arguments for the Python interpreter.
        runs: the runs it trains.
        output: file for what it prints.
    """

    name: str
    arguments: tuple[str, ...]
    runs: tuple[Run, ...]
    output: pathlib.Path


class Settings(NamedTuple):
    """The settings of one agent, with what is known of their configurations.

    Attributes:
        agent: name of the agent.
        settings: settings of the scan that concern it.
        num_iterations: for each setting, the iterations of a run.
        steps_per_iteration: for each setting, the agent steps of an iteration.
    """

    agent: str
    settings: list[scan.Setting]
    num_iterations: list[int]
    steps_per_iteration: list[int]


def single_runs(
    results_dir: pathlib.Path,
    agents: list[Settings],
    games: list[str],
    seeds: int,
    gin_files: list[str],
    gin_bindings: list[str],
) -> list[Job]:
    """Plans one process of `log_dqn.train` for each run.

    Args:
        results_dir: folder of all results.
        agents: agents and their settings.
        games: games in Dopamine's spelling.
        seeds: number of seeds; they are 1, 2, ....
        gin_files: gin files of all runs; none for the agents' own.
        gin_bindings: gin bindings of all runs.

    Returns:
        The jobs: all games and settings with the first seed, then with the second, ....
    """
    jobs = []
    for seed in range(1, seeds + 1):
        for game in games:
            for agent, settings, *lengths in agents:
                for setting, num_iterations, steps in zip(settings, *lengths, strict=True):
                    folder = scan.run_folder(results_dir, agent, setting, game, seed)
                    name = str(folder.relative_to(results_dir))
                    arguments = (
                        *("-m", "log_dqn.train", f"--base_dir={folder}"),
                        *(f"--agent={agent}", f"--game={game}", f"--seed={seed}"),
                        *(f"--gin_files={name}" for name in gin_files),
                        *(f"--gin_bindings={line}" for line in gin_bindings),
                        *(f"--gin_bindings={line}" for line in setting.gin_bindings()),
                    )
                    run = Run(name, folder, num_iterations, steps)
                    jobs.append(Job(name, arguments, (run,), folder / "output.log"))
    return jobs


def vectorized_runs(
    results_dir: pathlib.Path,
    agents: list[Settings],
    games: list[str],
    seeds: int,
    gin_files: list[str],
    gin_bindings: list[str],
    scans: list[list[str]],
    games_per_job: int,
) -> list[Job]:
    """Plans processes of `log_dqn.train_vectorized`, each for all seeds and settings of some games.

    Args:
        results_dir: see `single_runs`, as all down to gin_bindings.
        agents: agents and their settings.
        games: games.
        seeds: number of seeds.
        gin_files: gin files.
        gin_bindings: gin bindings.
        scans: for each agent, the scans that concern it.
        games_per_job: number of games that a process trains.

    Returns:
        The jobs.
    """
    jobs = []
    for start in range(0, len(games), games_per_job):
        its_games = games[start : start + games_per_job]
        for (agent, settings, *lengths), its_scans in zip(agents, scans, strict=True):
            runs_of_job = []
            for setting, num_iterations, steps in zip(settings, *lengths, strict=True):
                for game in its_games:
                    for seed in range(1, seeds + 1):
                        folder = scan.run_folder(results_dir, agent, setting, game, seed)
                        name = str(folder.relative_to(results_dir))
                        runs_of_job.append(Run(name, folder, num_iterations, steps))
            arguments = (
                *("-m", "log_dqn.train_vectorized", f"--results_dir={results_dir}"),
                *(f"--agent={agent}", f"--games={','.join(its_games)}", f"--seeds={seeds}"),
                *(f"--gin_files={name}" for name in gin_files),
                *(f"--gin_bindings={line}" for line in gin_bindings),
                *(f"--scan={text}" for text in its_scans),
            )
            name = f"{agent}/{','.join(its_games)}"
            output = results_dir / agent / f"output_{folder_name(its_games[0])}.log"
            jobs.append(Job(name, arguments, tuple(runs_of_job), output))
    return jobs


def progress(folder: pathlib.Path) -> Progress:
    """Reads how far a run has come from its newest readable log.

    Args:
        folder: folder of the run; it need not exist.

    Returns:
        The progress; iterations count from the first up to the first gap.
    """
    try:
        logs = layout.logs(folder)
    except OSError:
        return Progress()
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
        return Progress(
            iterations,
            last.get("train_average_return"),
            last.get("train_average_steps_per_second"),
        )
    return Progress()


def is_complete(run: Run) -> bool:
    """Returns whether a run's log has all its iterations."""
    return progress(run.folder).iterations >= run.num_iterations


def check_writable(folder: pathlib.Path) -> None:
    """Checks that files can be written in a folder, and leaves nothing there.

    Args:
        folder: the folder; it and its parents need not exist.

    Raises:
        ValueError: if it can't be made, or not be written in.
    """
    made = []
    try:
        for path in reversed((folder, *folder.parents)):
            if not path.exists():
                path.mkdir()
                made.append(path)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(
            f"results_dir is {str(folder)!r}; it must be a folder that can be written "
            f"({error.strerror})"
        ) from error
    finally:
        for path in reversed(made):
            path.rmdir()
