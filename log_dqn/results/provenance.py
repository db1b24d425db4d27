"""What a report was made with: version, commit, date, command, and the runs' hyperparameters."""

import collections
import datetime
import json
import pathlib
import subprocess
from collections.abc import Mapping
from typing import Any, NamedTuple

from log_dqn import __version__, games
from log_dqn.program import gin_files
from log_dqn.results.comparison import Comparison
from log_dqn.results.words import counted
from log_dqn.run_folder import configuration


class Setting(NamedTuple):
    """A hyperparameter that is not that of the agent's shipped gin file.

    Attributes:
        parameter: its name, such as `LogDQNAgent.gamma`.
        value: what the runs have.
        default: what the gin file has.
        runs: how many of the agent's runs have it.
        of: how many runs the agent has.
    """

    parameter: str
    value: Any
    default: Any
    runs: int
    of: int

    def __str__(self) -> str:
        some = "" if self.runs == self.of else f" in {self.runs} of {counted(self.of, 'run')}"
        return f"{self.parameter} = {self.value!r} (default {self.default!r}){some}"


class Provenance(NamedTuple):
    """What a report was made with.

    Attributes:
        version: of the package.
        commit: of the checkout that the package lies in, with `-dirty` where that is changed; None
            for an installed package.
        date: in UTC.
        command: the command line.
        settings: the hyperparameters of each own agent that are not the default; None where they
            are not recorded, or the package ships no gin file of the agent.
    """

    version: str
    commit: str | None
    date: str
    command: str
    settings: dict[str, list[Setting] | None]


def collect(comparison: Comparison, command: str) -> Provenance:
    """Collects what a report is made with, now."""
    return Provenance(
        version=__version__,
        commit=_commit(pathlib.Path(__file__).resolve().parents[2]),
        date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        command=command,
        settings={agent: settings(comparison, agent) for agent in comparison.own_agents},
    )


def _commit(checkout: pathlib.Path) -> str | None:
    if not (checkout / ".git").exists():
        return None
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=checkout, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def settings(comparison: Comparison, agent: str) -> list[Setting] | None:
    """Lists an agent's hyperparameters that are not the default; see `Provenance`."""
    own = [run for run in comparison.runs if run.agent == agent]
    counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
    for run in own:
        values = configuration.by_short_name(run.parameters)
        defaults = _defaults(values, run.game)
        if defaults is None:
            return None
        counts.update(
            (name, json.dumps(values[name]), json.dumps(default))
            for name, default in defaults.items()
            if name in values and values[name] != default and not name.endswith(".game_name")
        )
    return [
        Setting(name, json.loads(value), json.loads(default), count, len(own))
        for (name, value, default), count in sorted(counts.items())
    ]


def _defaults(values: Mapping[str, Any], game: str) -> dict[str, Any] | None:
    """The parameters of the gin file that the package ships for a run's agent, read as data."""
    for name, prefix in (
        ("VectorizedRunner.agent", "vectorized_"),
        ("create_agent.agent_name", ""),
    ):
        agent = values.get(name)
        if isinstance(agent, str) and agent.isidentifier():
            small = "_minatar" if game in games.SMALL_GAMES else ""
            path = gin_files.config_dir() / f"{prefix}{agent}{small}.gin"
            if path.is_file():
                text = path.read_text(encoding="utf-8")
                return configuration.by_short_name(configuration.parameters(text))
    return None
