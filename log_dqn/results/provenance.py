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
from log_dqn.cli import gin_files
from log_dqn.cli.words import counted, printable
from log_dqn.results import labels
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

    def text(self, default: bool = True) -> str:
        """Returns it in words, with its default or without."""
        usual = f" (default {self.default!r})" if default else ""
        some = "" if self.runs == self.of else f" in {self.runs} of {counted(self.of, 'run')}"
        return f"{self.parameter} = {self.value!r}{usual}{some}"


def collect(runs: pd.DataFrame, command: str) -> dict[str, Any]:
    """Collects what a report of a table of runs is made with, now, by a command line.

    Returns:
        `version` of the package; `commit` of the checkout that it lies in, with `-dirty` where that
        is changed, None for an installed package; `date` in UTC; `command`; `settings`, the
        hyperparameters of each own agent that are not the default, None where they are not
        recorded or the package ships no gin file of the agent; and `unbound`, those that are
        recorded and that no gin file has, all if there is none.
    """
    found = {a: hyperparameters(rows) for a, rows in labels.by_agent(runs[runs["own"]]).items()}
    return {
        "version": __version__,
        "commit": _commit(pathlib.Path(__file__).resolve().parents[2]),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "settings": {agent: settings for agent, (settings, _) in found.items()},
        "unbound": {agent: unbound for agent, (_, unbound) in found.items()},
    }


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
    """Returns an agent's settings and what is unbound, from its runs; see `collect`."""
    counts: collections.Counter[tuple[bool, str, str, str]] = collections.Counter()
    is_known = True
    for run in rows.itertuples():
        values = configuration.by_short_name(run.parameters)
        defaults = _defaults(values, run.game)
        is_known = is_known and defaults is not None
        for name, value in values.items():
            bound, default = name in (defaults or {}), (defaults or {}).get(name)
            named = name.endswith(".game_name") if bound else _NO_HYPERPARAMETER.fullmatch(name)
            if value != default and not named:
                counts[bound, printable(name), json.dumps(value), json.dumps(default)] += 1
    found = [
        (bound, Hyperparameter(name, json.loads(value), json.loads(default), count, len(rows)))
        for (bound, name, value, default), count in sorted(counts.items())
    ]
    settings = [setting for bound, setting in found if bound]
    return settings if is_known else None, [setting for bound, setting in found if not bound]


# Names, and what changes nothing that is learned.
_NO_HYPERPARAMETER = re.compile(
    r".*\.(.*name|seed|use_locking|.*_prefix|.*_frequency|.*legacy.*|.*checkpoint.*|tf_device)"
    r"|Logger\..*|create_runner\..*|Runner\.(log_every_n|fine_grained_print_to_console)"
    r"|VectorizedRunner\.agent|CollectorDispatcher\..*"
)


def _defaults(values: Mapping[str, Any], game: str) -> dict[str, Any] | None:
    """Reads the parameters of the gin file that the package ships for a run's agent, as data."""
    starts = {"VectorizedRunner.agent": "vectorized_", "create_agent.agent_name": ""}
    for name, prefix in starts.items():
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
    """Returns the end of the name of the gin file for a run's kind of games."""
    if game in games.JAX_GAMES:
        return "_minatar"
    kinds = {
        "create_gym_environment": "_cartpole",
        "create_gymnasium_environment": "_gym",
        "create_jax_environment": "_env",
        "create_host_environment": "_env",
    }
    bound = {name.partition(".")[0] for name in values}
    return next((kind for factory, kind in kinds.items() if factory in bound), "")
