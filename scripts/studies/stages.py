"""The stages of the studies, from the rows of stages.csv, and the commands that train them."""

import ast
import csv
import itertools
import math
import pathlib
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from log_dqn import games, scan
from log_dqn.cli import gin_files

TUNED = ("MinAtar/Asterix", "MinAtar/Breakout", "MinAtar/Freeway")
"""The games on which settings were chosen; MinAtar's other two are held out."""


class Job(NamedTuple):
    """One command: an agent of a row, or one of its environments; stages.csv explains the cells."""

    stage: str
    seeds: str
    agent: str
    games: str
    scan: str = ""
    fixed: str = ""

    def chosen(self) -> list[str]:
        """Returns the games, or environments by the names of their runs' folders."""
        if is_beyond(self.stage):
            return [self.games.replace(":", "-")]
        return games.select_to_train(self.games.split(","))

    def bindings(self, words: str) -> list[str]:
        """Returns settings with the full names of their parameters; gin files are none."""
        of = "Vectorized" * (not is_atari(self.stage)) + "LogDQNAgent"
        owner = of.replace("Log", "") if self.agent == "dqn" else of
        pairs = (word.partition("=") for word in words.split() if not word.endswith(".gin"))
        return [f"{name if '.' in name else f'{owner}.{name}'}={value}" for name, _, value in pairs]

    def atari_steps(self) -> int:
        """Returns the agent steps of a run on Atari, by the row's gin files and settings."""
        files = [word for word in self.fixed.split() if word.endswith(".gin")]
        written = gin_files.parse(files, self.bindings(self.fixed))
        lengths = ("Runner.num_iterations", "Runner.training_steps")
        return math.prod(written.values(name)[-1] for name in lengths)

    def on(self, games: Collection[str]) -> "Job":
        """Returns the row with those of its games that are given."""
        kept = [game for game in self.chosen() if game in games]
        # An environment's id is not its folder's name.
        return self if is_beyond(self.stage) and kept else self._replace(games=",".join(kept))

    def command(self, seeds: str, results_dir: pathlib.Path) -> list[str]:
        """Returns the words behind `log-dqn`."""
        words = ["train-vectorized", f"--agent={self.agent}"]
        if is_atari(self.stage):
            words = ["sweep", f"--agents={self.agent}", "--cpus_per_run=1"]
        words.append(f"--{'env' if is_beyond(self.stage) else 'games'}={self.games}")
        words.append(f"--seeds={seeds}")
        words.append(f"--results_dir={folder_of(self.stage, results_dir)}")
        words += [f"--gin_files={word}" for word in self.fixed.split() if word.endswith(".gin")]
        words += [f"--gin_bindings={word}" for word in self.bindings(self.fixed)]
        return words + [f"--scan={word}" for word in self.bindings(self.scan)]

    def runs(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        """Returns the parameters that the row gives its runs, by game, agent and setting.

        Parameters that gin configures, such as an optimizer's class, are left out.
        """
        pairs = (word.split("=", 1) for word in self.bindings(self.fixed))
        fixed = {name: ast.literal_eval(value) for name, value in pairs if "@" not in value}
        settings = scan.parse(self.bindings(self.scan))
        return {
            (game, self.agent, setting.name): fixed | dict(setting.bindings)
            for setting, game in itertools.product(settings, self.chosen())
        }


def _rows() -> Iterator[Job]:
    lines = pathlib.Path(__file__).with_name("stages.csv").read_text("utf-8").splitlines()
    _, *rows = csv.reader((line for line in lines if not line.startswith("#")), delimiter=";")
    return (Job(*map(str.strip, row)) for row in rows)


def is_beyond(stage: str) -> bool:
    """Returns whether a stage is on environments in JAX beyond MinAtar, a command for each."""
    return stage.startswith("beyond")


STAGES: dict[str, list[Job]] = {}
for _job in _rows():
    _games = _job.games.split(",") if is_beyond(_job.stage) else [_job.games]
    for _agent, _of in itertools.product(_job.agent.split(","), _games):
        STAGES.setdefault(_job.stage, []).append(_job._replace(agent=_agent, games=_of))


def is_atari(stage: str) -> bool:
    """Returns whether a stage is on Atari, where stages share a folder and a file."""
    return stage.startswith("atari")


def folder_of(stage: str, results_dir: pathlib.Path) -> pathlib.Path:
    """Returns the folder of a stage's runs."""
    return results_dir / ("atari" if is_atari(stage) else stage)


def planned(stage: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Returns `Job.runs` of all of a stage's rows."""
    return {name: given for job in STAGES[stage] for name, given in job.runs().items()}
