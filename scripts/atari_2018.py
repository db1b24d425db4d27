#!/usr/bin/env python3
"""Atari's games as the published runs of 2018 had them, under atari-py, beside those of ale-py.

    pip install atari-py==0.1.7
    python scripts/atari_2018.py --games=Alien,Assault,Asterix,Breakout,MsPacman,RoadRunner

Prints a table in Markdown. A game takes about three minutes of a core.
"""

import argparse
import importlib
import importlib.util
import itertools
import operator
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from log_dqn import games
from log_dqn.program import shell, words

PACKAGES = ("atari_py", "ale_py")
"""The emulator of 2018 and today's, which have the same interface."""

_FRAME_SKIP = 4


def game_file(package: Any, game: str) -> pathlib.Path:
    """Returns the file of a game, by Dopamine's name, that comes with one of `PACKAGES`."""
    name = games.rom_name(game)
    if hasattr(package, "roms"):
        return package.roms.get_rom_path(name)
    return pathlib.Path(package.get_game_path(name))


def start(package: Any, game: str, sticky_probability: float) -> Any:
    """Returns an emulator with a game, which repeats the last action in a frame by chance."""
    levels = getattr(package, "LoggerMode", None) or package.ALEInterface.Logger
    package.ALEInterface.setLoggerMode(levels.Error)
    ale = package.ALEInterface()
    ale.setInt("random_seed", 0)
    ale.setFloat("repeat_action_probability", sticky_probability)
    ale.loadROM(str(game_file(package, game)))
    return ale


def play(ale: Any, rng: Any) -> Iterator[int]:
    """Plays an episode at random over the minimal action set, until the game is over.

    Yields:
        The reward of each agent step, unclipped.
    """
    ale.reset_game()
    actions = ale.getMinimalActionSet()
    while not ale.game_over():
        action = actions[rng.integers(len(actions))]
        yield sum(ale.act(action) for _ in range(_FRAME_SKIP))


def returns_at_random(ale: Any, num_steps: int, bar: Any) -> list[int]:
    """Returns those of two or more whole episodes, which have `num_steps` agent steps or more."""
    import numpy as np

    rng = np.random.default_rng(0)
    done, returns = 0, list[int]()
    while done < num_steps or len(returns) < 2:
        rewards = list(play(ale, rng))
        returns.append(sum(rewards))
        done += len(rewards)
        bar.update(len(rewards))
    return returns


def screens(ale: Any) -> list[Any]:
    """Returns the grey screens after the agent steps of an episode at random, shape [210, 160]."""
    import numpy as np

    steps = play(ale, np.random.default_rng(0))
    return [np.squeeze(ale.getScreenGrayscale()) for _ in steps]


def equal_steps(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Returns after how many agent steps, from the first on, two emulators' screens are equal."""
    import numpy as np

    are_equal = itertools.starmap(np.array_equal, zip(first, second, strict=False))
    return sum(itertools.takewhile(bool, are_equal))


def cells(game: str, packages: Sequence[Any], num_steps: int) -> list[str]:
    """Returns a game's row: what differs between two packages."""
    from scipy import stats
    from tqdm import tqdm

    contents = [game_file(package, game).read_bytes() for package in packages]
    differ = sum(itertools.starmap(operator.ne, itertools.zip_longest(*contents)))
    seen = [screens(start(package, game, 0.0)) for package in packages]
    equal = f"{equal_steps(*seen)} of {len(seen[0])}"
    found = [game, str(differ), *(str(len(of_one[0])) for of_one in seen), equal]
    for package in packages:
        ale = start(package, game, 0.25)
        with tqdm(total=num_steps, desc=f"{game}, {package.__name__}", disable=None) as bar:
            returns = returns_at_random(ale, num_steps, bar)
        found.append(f"{sum(returns) / len(returns):.4g} ({stats.sem(returns):.2g})")
    return found


def report(names: Sequence[str], num_steps: int) -> None:
    """Prints the table; raises ValueError for a game that isn't Atari's, or without atari-py."""
    chosen = games.select_to_train(names)
    for game in chosen:
        games.check_game(game, minatar=False)
    if importlib.util.find_spec(PACKAGES[0]) is None:
        raise ValueError(f"{PACKAGES[0]} must be installed: pip install atari-py==0.1.7")
    packages = [importlib.import_module(name) for name in PACKAGES]
    heads = ["game", "bytes that differ", "screen's rows in 2018", "today", "equal screens"]
    heads += ["at random in 2018 (standard error)", "today (standard error)"]
    print(words.markdown([heads, *(cells(game, packages, num_steps) for game in chosen)]))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--games", default="Asterix", help="games with commas (default: %(default)s)"
    )
    parser.add_argument(
        "--steps", type=shell.at_least(1), default=300_000,
        help="agent steps of a policy at random (default: %(default)s)",
    )  # fmt: skip
    args = parser.parse_args(argv)
    return shell.run_once(parser.prog, lambda: report(args.games.split(","), args.steps))


if __name__ == "__main__":
    sys.exit(main())
