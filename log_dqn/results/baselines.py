"""What runs are compared with: random and human scores, and Dopamine's published Atari baselines.

These come from a folder, an address, or the package itself. One JSON file a game holds the training
returns of each agent, seed and iteration as rows {"Iteration": int, "Value": float, "Agent": str},
ordered by agent, then seed, then iteration. Where a game's file cannot be read, the final scores
that travel with the package stand in.
"""

import contextlib
import hashlib
import importlib.resources
import itertools
import json
import pathlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
import platformdirs
import requests

from log_dqn.cli import progress
from log_dqn.games import GAMES, listing
from log_dqn.results.request import DOPAMINE, is_address
from log_dqn.results.runs import LARGEST_RETURN, LearningCurve, Notify
from log_dqn.run_folder import checkpoints

LAST_ITERATION = 198
TIMEOUT = 30.0  # Seconds without a byte after which a download is given up.


def read_table(name: str) -> pd.DataFrame:
    """Reads one of the package's own CSV files."""
    with (importlib.resources.files("log_dqn.results") / "data" / name).open() as file:
        return pd.read_csv(file, dtype={"seed": str}, float_precision="round_trip")


def references() -> pd.DataFrame:
    """Returns `random` and `human` scores of 57 games (Wang et al. 2016, Table 2), a row a game.

    VideoPinball's random score is 16256.9 there, and 0.0 in several other tables, with which DQN's
    mean over 55 games is 2.31 instead of 3.05, and no median another.
    """
    return read_table("human_random_scores.csv").set_index("game")


def parse(text: str | bytes, game: str) -> list[LearningCurve]:
    """Splits the rows of one game's file into runs, one for each agent and seed.

    Seeds are numbered in the file's order.

    Raises:
        ValueError: the content is not JSON, or not such rows.
    """
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(rows, list) or not rows or not all(map(_is_row, rows)):
        raise ValueError("is not a list of rows {Iteration, Value, Agent}")
    runs = []
    for agent, agent_rows in itertools.groupby(rows, lambda row: row["Agent"]):
        curves: list[list[float]] = []
        for row in agent_rows:
            if row["Iteration"] == 0:
                curves.append([])
            if not curves or row["Iteration"] != len(curves[-1]):
                raise ValueError(f"lacks iterations of {agent}")
            curves[-1].append(row["Value"])
        runs += [
            LearningCurve(agent, game, str(seed), np.array(c)) for seed, c in enumerate(curves)
        ]
    return runs


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and type(row.get("Iteration")) is int
        and type(row.get("Value")) in (int, float)
        and abs(row["Value"]) <= LARGEST_RETURN
        and type(row.get("Agent")) is str
    )


def final_runs(games: Collection[str]) -> list[LearningCurve]:
    """Returns the final scores that come with the package, as runs that have only an end.

    A run for each of the four TensorFlow agents and five seeds, of 199 iterations, whose last value
    is the mean of its last 20 iterations and whose other values are NaN, so that its final score
    (see `scores.final_score`) is the published one.
    """
    unknown = [np.nan] * LAST_ITERATION
    table = read_table("baseline_final_scores.csv")
    return [
        LearningCurve(run.agent, run.game, run.seed, np.array([*unknown, run.score]))
        for run in table[table["game"].isin(games)].itertuples()
    ]


def load(source: str, games: Sequence[str], notify: Notify) -> list[LearningCurve]:
    """Reads the published runs of some games.

    Args:
        source: a folder, or an http(s) address to whose end `/pong.json` is added.
        games: the games, in Dopamine's spelling; those without published runs are left out.
        notify: is told of each file that cannot be read, for which `final_runs` stand in.
    """
    games = [game for game in games if game in GAMES]
    downloads = _Downloads(source) if is_address(source) else None
    runs: list[LearningCurve] = []
    failed: dict[str, list[str]] = {}
    for game in progress.bar("Published baselines", games):
        try:
            name = f"{game.lower()}.json"
            content = downloads.read(name) if downloads else pathlib.Path(source, name).read_bytes()
            runs += parse(content, game)
        except (OSError, ValueError) as error:
            failed.setdefault(_reason(error), []).append(game)
    for reason, names in failed.items():
        notify(
            f"baselines of {listing(names)} from {source}: {reason}; only the final scores that "
            "travel with the package are known"
        )
    return runs + final_runs(set(games) - {run.game for run in runs})


_NO_ANSWER = (requests.ConnectionError, requests.Timeout)


def _reason(error: Exception) -> str:
    """Returns why one file could not be read, in words that don't name the file."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.exceptions.SSLError):
        return "no secure connection"
    if isinstance(error, _NO_ANSWER):
        return "no connection, or no answer in time"
    if isinstance(error, requests.RequestException):
        return "the download broke off"
    if isinstance(error, OSError):
        return str(error.strerror).lower()
    return str(error)


class _Downloads:
    """Files under one address, each downloaded once and kept whole or not at all.

    Dopamine's own files are held against their published hashes, those of other addresses against
    their form. An address that doesn't answer is not tried again; kept files are still read.
    """

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        digest = hashlib.sha256(self._address.encode()).hexdigest()
        self._folder = platformdirs.user_cache_path("log_dqn") / f"baselines-{digest[:12]}"
        published = read_table("baseline_files.csv").set_index("file")["sha256"].to_dict()
        self._hashes = published if self._address == DOPAMINE else {}
        self._silent: Exception | None = None

    def read(self, name: str) -> bytes:
        """Returns a file's content, downloading it if it is not in the cache or damaged there."""
        kept = self._folder / name
        if kept.exists():
            with contextlib.suppress(ValueError):
                return self._checked(name, kept.read_bytes())
        if self._silent is not None:
            raise self._silent
        try:
            response = requests.get(f"{self._address}/{name}", timeout=TIMEOUT)
        except _NO_ANSWER as error:
            self._silent = error
            raise
        response.raise_for_status()
        content = self._checked(name, response.content)
        with contextlib.suppress(OSError):  # What can't be kept is downloaded again next time.
            self._folder.mkdir(parents=True, exist_ok=True)
            checkpoints.replace_file(kept, content)
        return content

    def _checked(self, name: str, content: bytes) -> bytes:
        """Returns a file's content; raises ValueError if it is damaged."""
        if not self._hashes:
            parse(content, game="")
        elif hashlib.sha256(content).hexdigest() != self._hashes[name]:
            raise ValueError("is not the file that Dopamine published")
        return content
