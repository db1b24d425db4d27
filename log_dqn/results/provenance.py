"""What a report was made with: version, commit, date, command, and the runs' hyperparameters."""

import collections
import datetime
import json
import pathlib
import re
import subprocess
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from log_dqn import __version__, games
from log_dqn.program import gin_files
from log_dqn.program.words import counted, printable
from log_dqn.results import labels
from log_dqn.results.comparison import Comparison
from log_dqn.run_folder import configuration


class Hyperparameter(NamedTuple):
    """A hyperparameter that is not that of the agent's shipped gin file, whose is the default.

    It is named like `LogDQNAgent.gamma`, and `runs` of the agent's runs have the value.
    """

    parameter: str
    value: Any
    default: Any
    runs: int
    of: int

    def __str__(self) -> str:
        default = f" (default {self.default!r})"
        return f"{self.parameter} = {self.value!r}{default}{self._some()}"

    def recorded(self) -> str:
        """The same without a default."""
        return f"{self.parameter} = {self.value!r}{self._some()}"

    def _some(self) -> str:
        return "" if self.runs == self.of else f" in {self.runs} of {counted(self.of, 'run')}"


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
        unbound: those that are recorded and that no gin file has, all if there is none.
    """

    version: str
    commit: str | None
    date: str
    command: str
    settings: dict[str, list[Hyperparameter] | None]
    unbound: dict[str, list[Hyperparameter]]


def collect(comparison: Comparison, command: str) -> Provenance:
    """Collects what a report is made with, now."""
    found = {
        agent: hyperparameters(rows)
        for agent, rows in labels.by_agent(comparison.runs[comparison.runs["own"]]).items()
    }
    return Provenance(
        version=__version__,
        commit=_commit(pathlib.Path(__file__).resolve().parents[2]),
        date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        command=command,
        settings={agent: settings for agent, (settings, _) in found.items()},
        unbound={agent: unbound for agent, (_, unbound) in found.items()},
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


def hyperparameters(
    rows: pd.DataFrame,
) -> tuple[list[Hyperparameter] | None, list[Hyperparameter]]:
    """Returns an agent's settings and what is unbound, from its runs; see `Provenance`."""
    counts: collections.Counter[tuple[bool, str, str, str]] = collections.Counter()
    is_known = True
    for run in rows.itertuples():
        values = configuration.by_short_name(run.parameters)
        defaults = _defaults(values, run.game)
        is_known = is_known and defaults is not None
        known = defaults or {}
        for name, value in values.items():
            bound, default = name in known, known.get(name)
            named = name.endswith(".game_name") if bound else _NO_HYPERPARAMETER.fullmatch(name)
            if value != default and not named:
                counts[bound, printable(name), json.dumps(value), json.dumps(default)] += 1
    settings, others = (
        [
            Hyperparameter(name, json.loads(value), json.loads(default), count, len(rows))
            for (bound, name, value, default), count in sorted(counts.items())
            if bound == wanted
        ]
        for wanted in (True, False)
    )
    return settings if is_known else None, others


# Names, and what changes nothing that is learned.
_NO_HYPERPARAMETER = re.compile(
    r".*\.(.*name|seed|use_locking|.*_prefix|.*_frequency|.*legacy.*|.*checkpoint.*|tf_device)"
    r"|Logger\..*|create_runner\..*|Runner\.(log_every_n|fine_grained_print_to_console)"
    r"|VectorizedRunner\.agent|CollectorDispatcher\..*"
)


def _defaults(values: Mapping[str, Any], game: str) -> dict[str, Any] | None:
    """The parameters of the gin file that the package ships for a run's agent, read as data."""
    for name, prefix in (
        ("VectorizedRunner.agent", "vectorized_"),
        ("create_agent.agent_name", ""),
    ):
        agent = values.get(name)
        if isinstance(agent, str) and agent.isidentifier():
            path = gin_files.config_dir() / f"{prefix}{agent}{_kind(values, game)}.gin"
            if path.is_file():
                lines = gin_files.parse([str(path)], []).lines
                return configuration.by_short_name(
                    configuration.as_json({line.name: line.value for line in lines})
                )
    return None


def _kind(values: Mapping[str, Any], game: str) -> str:
    """The end of the name of the gin file for a run's kind of games."""
    if game in games.SMALL_GAMES:
        return "_minatar"
    for factory, kind in (
        ("create_gym_environment.", "_cartpole"),
        ("create_gymnasium_environment.", "_gym"),
        ("create_jax_environment.", "_env"),
    ):
        if any(name.startswith(factory) for name in values):
            return kind
    return ""
