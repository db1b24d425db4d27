"""Random and human scores, and the package's own tables."""

import csv
import importlib.resources
from typing import NamedTuple

VIDEO_PINBALL_RANDOM = 16256.9
"""VideoPinball's random score in Wang et al. (2016); several other tables have 0.0."""


class Reference(NamedTuple):
    """Scores of a random policy and of a human player, in points per episode."""

    random: float
    human: float


def read_table(name: str) -> list[dict[str, str]]:
    """Reads one of the package's own CSV files."""
    path = importlib.resources.files("log_dqn.results") / "data" / name
    text = path.read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def references(video_pinball_random: float = VIDEO_PINBALL_RANDOM) -> dict[str, Reference]:
    """Returns random and human scores of 57 games (Wang et al. 2016, Table 2).

    Published tables differ on VideoPinball's random score.
    """
    table = {
        row["game"]: Reference(float(row["random"]), float(row["human"]))
        for row in read_table("human_random_scores.csv")
    }
    table["VideoPinball"] = table["VideoPinball"]._replace(random=video_pinball_random)
    return table
