"""Random and human scores, and the package's own tables."""

import csv
import importlib.resources
from typing import NamedTuple


class Reference(NamedTuple):
    """Scores of a random policy and of a human player, in points per episode."""

    random: float
    human: float


def read_table(name: str) -> list[dict[str, str]]:
    """Reads one of the package's own CSV files."""
    path = importlib.resources.files("log_dqn.results") / "data" / name
    text = path.read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def references() -> dict[str, Reference]:
    """Returns random and human scores of 57 games (Wang et al. 2016, Table 2).

    VideoPinball's random score is 16256.9 there, and 0.0 in several other tables, with which DQN's
    mean over 55 games is 2.31 instead of 3.05, and no median another.
    """
    return {
        row["game"]: Reference(float(row["random"]), float(row["human"]))
        for row in read_table("human_random_scores.csv")
    }
