"""Random and human scores, and the sets of games that results are reported on."""

import csv
import difflib
import importlib.resources
from collections.abc import Iterable, Sequence
from typing import NamedTuple

PAPER6 = ("Alien", "Zaxxon", "Breakout", "DoubleDunk", "SpaceInvaders", "FishingDerby")
"""The games of the paper's hyper-parameter optimization (Appendix C)."""

ATARI5 = ("BattleZone", "DoubleDunk", "NameThisGame", "Phoenix", "Qbert")
"""The subset of Aitchison, Sweetser and Hutter (2022) that predicts the 57-game median."""

WITHOUT_BASELINES = ("Defender", "Surround")
"""Games with human scores for which Dopamine publishes no baselines."""

VIDEO_PINBALL_RANDOM = 16256.9
"""VideoPinball's random score in Wang et al. (2016); several other tables have 0.0."""


class Reference(NamedTuple):
    """Scores of a random policy and of a human player, in points per episode."""

    random: float
    human: float


def read_table(name: str) -> list[dict[str, str]]:
    """Reads one of the package's own CSV files."""
    text = importlib.resources.files("log_dqn.results").joinpath("data", name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def references(video_pinball_random: float = VIDEO_PINBALL_RANDOM) -> dict[str, Reference]:
    """Returns random and human scores of 57 games (Wang et al. 2016, Table 2).

    Args:
        video_pinball_random: the random score of VideoPinball, on which published tables differ.
    """
    table = {
        row["game"]: Reference(float(row["random"]), float(row["human"]))
        for row in read_table("human_random_scores.csv")
    }
    table["VideoPinball"] = table["VideoPinball"]._replace(random=video_pinball_random)
    return table


def paper55() -> list[str]:
    """The games of the paper: those with human scores and published baselines."""
    return [game for game in references() if game not in WITHOUT_BASELINES]


def published_games() -> list[str]:
    """The 60 games for which Dopamine publishes baselines."""
    return list(dict.fromkeys(row["game"] for row in read_table("baseline_final_scores.csv")))


_SETS = {
    "paper55": paper55,
    "paper6": lambda: list(PAPER6),
    "all60": published_games,
    "atari5": lambda: list(ATARI5),
}


def canonical(name: str) -> str | None:
    """Dopamine's spelling of a game, or None for a name that is none's.

    Case and underscores don't matter: Pong, pong, space_invaders.
    """
    known = {game.lower(): game for game in [*published_games(), *WITHOUT_BASELINES]}
    return known.get(name.lower().replace("_", ""))


def listing(names: Sequence[str]) -> str:
    """Names in one line: all of a few, the first five of many."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def select(names: Iterable[str]) -> list[str]:
    """Resolves names of games and of sets of games.

    Args:
        names: games, or `paper55`, `paper6`, `all60`, `atari5`.

    Returns:
        Games in Dopamine's spelling, without repetition.

    Raises:
        ValueError: a name is neither; the message gives the nearest ones.
    """
    chosen: dict[str, None] = {}
    for name in names:
        if name in _SETS:
            chosen.update(dict.fromkeys(_SETS[name]()))
            continue
        game = canonical(name)
        if game is None:
            known = [*published_games(), *WITHOUT_BASELINES, *_SETS]
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}?" if near else f"e.g. {', '.join(known[:3])}"
            raise ValueError(
                f"--games: unknown game {name!r}; allowed are Dopamine's 60 games, Defender, "
                f"Surround, and {', '.join(_SETS)} ({hint})"
            )
        chosen[game] = None
    return list(chosen)


def select_to_train(names: Iterable[str]) -> list[str]:
    """Does what `select` does, for the 60 games that can be trained.

    Raises:
        ValueError: also for the games without baselines, and if no name is given.
    """
    chosen = select(names)
    missing = [game for game in chosen if game in WITHOUT_BASELINES]
    if missing or not chosen:
        raise ValueError(
            f"--games: {listing(missing) or 'no game'}; allowed are the {len(published_games())} "
            f"games of Dopamine's published baselines, and {', '.join(_SETS)}"
        )
    return chosen
