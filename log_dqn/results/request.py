"""The options of a report, and their checks before anything is read."""

import dataclasses
import functools
import pathlib
import urllib.parse
from collections.abc import Collection

from log_dqn import games
from log_dqn.checks import check
from log_dqn.cli.words import printable
from log_dqn.run_folder import layout

METRICS = {"train": "training", "eval": "evaluation"}
"""What returns are of, by the name of the metric."""

DOPAMINE = (
    "https://raw.githubusercontent.com/google/dopamine/"
    "8842298e89cfe42c80ea71f63913017696785f0f/baselines/atari/data"
)
"""Dopamine's public repository, at the commit whose files `baseline_files.csv` has hashes of."""

BASELINES_HELP = (
    "folder or http(s) address of Dopamine's baselines (default: its repository, downloaded once "
    "into your cache folder)"
)

DQN = "DQN"
JAX_DQN = "DQN (Adam + MSE in JAX)"
AGENTS = {
    DQN: "DQN (TensorFlow: RMSProp, Huber)",
    "C51": "C51",
    "Rainbow": "Rainbow",
    "IQN": "IQN",
    "Quantile (JAX)": "Quantile (JAX)",
    JAX_DQN: "DQN (JAX: Adam, MSE)",
}
"""Published names of the agents, and how figures name them: the two DQNs are different agents."""

OWN = " (own runs)"
"""Appended to the name of own runs if a published agent has the same name."""

NAMES = frozenset({*AGENTS, *AGENTS.values()})
"""Names of the published agents, here and in figures."""

DEFAULT_AGENTS = (DQN, "C51", "Rainbow", "IQN")
"""The TensorFlow agents of Castro et al. (2018), which the paper compares with."""


@dataclasses.dataclass(frozen=True)
class Request:
    """The options of `log-dqn compare`; see its `--help`.

    Without `results_dir` only the baselines are compared. `agents` are shown in their order, and
    the first is compared with the reference; by default LogDQN's come first. Without a reference
    it is DQN, or where nothing is published one of the own agents.
    """

    results_dir: pathlib.Path | None = None
    agents: tuple[str, ...] | None = None
    games: tuple[str, ...] | None = None
    metric: str = "train"
    iteration: int | str = "common"
    reference: str | None = None
    baselines: str = DOPAMINE
    repetitions: int = 2000
    strict: bool = False

    def check(self) -> None:
        """Checks names and folders."""
        if self.metric == "eval" and self.results_dir is None:
            raise ValueError(
                "--metric=eval: it must be 'train' without --results_dir; the published baselines "
                "are training returns"
            )
        self.chosen_games()
        check_source(self.baselines)
        if self.baselines == DOPAMINE:  # Other files may hold other agents.
            self.check_agents(NAMES)

    def chosen_games(self) -> list[str]:
        """Returns the names of the games that are asked for; none for all.

        Environments of own runs are known by their folders, such as Acrobot-v1.
        """
        played = {game for _, game, *_ in self._own_runs if game.isprintable()}
        own = sorted(game for game in played if games.canonical(game) is None)
        folders = {name: games.folder_name(name) for name in self.games or ()}
        names = [folder if folder in own else name for name, folder in folders.items()]
        return games.select(names, own)

    @functools.cached_property
    def _own_runs(self) -> list[tuple[str, str, str, pathlib.Path]]:
        return [] if self.results_dir is None else find_runs(self.results_dir)

    def check_agents(self, taken: Collection[str]) -> None:
        """Checks that one of the agents, and the reference, is published or has own runs.

        The names of published agents are `taken`.
        """
        # Names that figures alone have are no agent's.
        there = {*taken, *(own_name(agent, taken) for agent, *_ in self._own_runs)}
        known = there - set(AGENTS.values()) | set(AGENTS)
        reference = None if self.reference is None else (self.reference,)
        for flag, named in (("agents", self.agents), ("reference", reference)):
            is_known = not named or bool(known.intersection(named))
            allowed = f"among {', '.join(map(printable, sorted(known)))}"
            check(flag, ",".join(named or ()), is_known, allowed)


def named(agent: str) -> str:
    """Returns the name of an agent in figures and tables."""
    return AGENTS.get(agent, agent)


def own_name(agent: str, taken: Collection[str]) -> str:
    """Returns the name by which an own agent is shown: never a published one's."""
    while agent in taken:
        agent += OWN
    return agent


def is_address(source: str) -> bool:
    """Returns whether a source of baselines is an http(s) address."""
    try:
        parts = urllib.parse.urlsplit(source)
        _ = parts.port  # Raises for one that is not a number.
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def check_source(baselines: str) -> None:
    """Raises ValueError if a source of baselines is neither an address nor a folder of them."""
    is_source = is_address(baselines) or (
        baselines and any(pathlib.Path(baselines).glob("[a-z]*.json"))
    )
    allowed = "a folder that holds files such as pong.json, or an http(s) address"
    check("baselines", baselines, bool(is_source), allowed)


def find_runs(results_dir: pathlib.Path) -> list[tuple[str, str, str, pathlib.Path]]:
    """Does what `layout.find_runs` does; refuses what is no folder, or holds no run."""
    name, value = "results_dir", str(results_dir)
    check(name, value, results_dir.is_dir(), "an existing folder")
    found = layout.find_runs(results_dir)
    allowed = (
        "a folder that holds {agent}/{game}/{seed}/logs/log_N or "
        "{agent}/{setting}/{game}/{seed}/logs/log_N, where a setting is such as gamma=0.5"
    )
    check(name, value, bool(found), allowed)
    return found
