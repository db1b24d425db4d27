"""Trained networks that come with the package: weights of runs of the MinAtar study.

A network's folder is that of a run, `{agent}/gamma={gamma}/{game}/{seed}/`, and is loaded as one
(`log_dqn.film.loading.load`). The manifest of its checkpoint has the command that trained it, its
score in training, and the version of the package that first contained it.
"""

import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

from log_dqn import games
from log_dqn.checks import check, check_one_of

ROOT = pathlib.Path(__file__).parent
"""The folder of the networks."""


class Network(NamedTuple):
    """A trained network."""

    game: str
    agent: str
    gamma: float
    folder: pathlib.Path


def networks() -> Iterator[Network]:
    """Lists the networks, by agent, discount factor and game."""
    for folder in sorted(ROOT.glob("*/gamma=*/*/*")):
        agent, setting, game, _ = folder.relative_to(ROOT).parts
        name = games.canonical(game) or game
        yield Network(name, agent, float(setting.removeprefix("gamma=")), folder)


def run_dir(
    run: str | os.PathLike[str], game: str | None, agent: str | None, gamma: float | None
) -> pathlib.Path:
    """Returns the folder of a game's network (see `find`); without a game, that of a run.

    `log_dqn.load` takes a game as its `run`.
    """
    if game is not None:
        return find(game, agent, gamma, "run" if run == game else "trained")
    for name, value in (("agent", agent), ("gamma", gamma)):
        check(name, value, value is None, "left out for a run of your own, which has one")
    return pathlib.Path(run)


def find(
    game: str, agent: str | None = None, gamma: float | None = None, option: str = "trained"
) -> pathlib.Path:
    """Returns the folder of a network.

    Args:
        game: game of MinAtar.
        agent: its agent; by default LogLinDQN.
        gamma: its discount factor; by default the larger.
        option: what an error calls the game.

    Raises:
        ValueError: if there is no such network.
    """
    agent = "loglin_dqn" if agent is None else agent
    there = list(networks())
    known = list(dict.fromkeys(network.game for network in there))
    canonical = games.canonical(game)
    check_one_of(option, canonical if canonical in known else game, known)
    of_game = [network for network in there if network.game == canonical]
    check_one_of("agent", agent, dict.fromkeys(network.agent for network in of_game))
    found = {network.gamma: network.folder for network in of_game if network.agent == agent}
    chosen = max(found) if gamma is None else gamma
    allowed = f"{' or '.join(f'{value:g}' for value in sorted(found))} for {agent} on {canonical}"
    check("gamma", chosen, chosen in found, allowed)
    return found[chosen]
