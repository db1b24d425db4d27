#!/usr/bin/env python3
"""Compares Atari's games of 2018, under atari-py, with those under ale-py, or copies their ROMs.

    pip install atari-py==0.1.7
    python scripts/atari_2018.py compare --games=Alien,Assault,Asterix,Breakout,MsPacman,RoadRunner
    python scripts/atari_2018.py copy --out=roms_2018
    PYTHONPATH=roms_2018 log-dqn train ...

The first prints a table in Markdown; a game takes about three minutes of a core. The second makes a
copy of ale-py to train with, that has atari-py's ROMs of the games that atari-py has. atari-py is
compiled when it is installed: this needs a C++ compiler, CMake, make and zlib.
"""

import argparse
import hashlib
import importlib
import importlib.metadata
import itertools
import json
import operator
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from log_dqn import games
from log_dqn.checks import check
from log_dqn.cli import progress, shell, words

VERSION = "0.1.7"
"""Version of atari-py; it is of November 2018."""

SEEDS = (1, 2, 3)
"""Seeds of the episodes whose screens are compared; 0 would be the time of day for atari-py."""


def rom_path(package: Any, game: str) -> pathlib.Path:
    """Returns the ROM of a game, by Dopamine's name, that comes with atari_py or ale_py."""
    name = games.rom_name(game)
    if hasattr(package, "roms"):
        return package.roms.get_rom_path(name)
    return pathlib.Path(package.get_game_path(name))


def start(package: Any, game: str, seed: int, sticky_probability: float = 0.0) -> Any:
    """Returns an emulator with a game, which repeats the last action in a frame by chance.

    Raises:
        OSError: the ROM can't be read.
    """
    ale = package.ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", sticky_probability)
    ale.loadROM(str(rom_path(package, game)))
    return ale


def play(ale: Any, rng: np.random.Generator) -> Iterator[int]:
    """Plays an episode at random over the minimal action set, until the game is over.

    Yields:
        The reward of each agent step, unclipped.
    """
    ale.reset_game()
    actions = ale.getMinimalActionSet()
    while not ale.game_over():
        action = actions[rng.integers(len(actions))]
        yield sum(ale.act(action) for _ in range(games.FRAME_SKIP))


def returns_at_random(ale: Any, num_steps: int) -> list[int]:
    """Returns the returns of two or more whole episodes of a random policy.

    Together they have `num_steps` agent steps or more.
    """
    rng = np.random.default_rng(SEEDS[0])
    done, returns = 0, list[int]()
    while done < num_steps or len(returns) < 2:
        rewards = list(play(ale, rng))
        returns.append(sum(rewards))
        done += len(rewards)
    return returns


def mean_with_error(returns: Sequence[float]) -> str:
    """Returns the mean of returns, and in brackets its standard error."""
    error = np.std(returns, ddof=1) / np.sqrt(len(returns))
    return f"{words.rounded(sum(returns) / len(returns))} ({words.rounded(float(error))})"


def screens(package: Any, game: str, seed: int) -> list[np.ndarray]:
    """Returns the grey screens after the agent steps of an episode, each of shape [rows, 160].

    The actions are at random and never repeated, the same for each package.
    """
    ale = start(package, game, seed)
    steps = play(ale, np.random.default_rng(seed))
    return [np.squeeze(ale.getScreenGrayscale()) for _ in steps]


def equal_steps(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> int:
    """Returns how many agent steps it takes until the screens of two episodes differ."""
    are_equal = itertools.starmap(np.array_equal, zip(first, second, strict=False))
    return sum(itertools.takewhile(bool, are_equal))


def row(game: str, packages: Sequence[Any], num_steps: int) -> list[str]:
    """Returns the cells of a game's row: what differs between atari_py and ale_py.

    Raises:
        OSError: a ROM can't be read.
    """
    roms = [rom_path(package, game).read_bytes() for package in packages]
    differ = sum(itertools.starmap(operator.ne, itertools.zip_longest(*roms)))
    episodes = [[screens(package, game, seed) for package in packages] for seed in SEEDS]
    equal = sum(equal_steps(*both) for both in episodes)
    of_all = sum(max(map(len, both)) for both in episodes)
    cells = [game, str(differ), *(str(len(seen[0])) for seen in episodes[0])]
    cells.append(f"{equal:,} of {of_all:,}")
    for package in packages:
        ale = start(package, game, SEEDS[0], games.STICKY_PROBABILITY)
        cells.append(mean_with_error(returns_at_random(ale, num_steps)))
    return cells


def load() -> list[Any]:
    """Returns atari_py and ale_py; raises ValueError if atari-py's version isn't `VERSION`."""
    try:
        found = importlib.metadata.version("atari-py")
    except importlib.metadata.PackageNotFoundError:
        found = None
    allowed = f"{VERSION}: pip install atari-py=={VERSION}"
    check("the version of atari-py", found, found == VERSION, allowed)
    packages = [importlib.import_module(name) for name in ("atari_py", "ale_py")]
    # atari_py logs errors only, as it is.
    packages[1].ALEInterface.setLoggerMode(packages[1].LoggerMode.Error)
    return packages


def compare(names: Sequence[str], num_steps: int) -> None:
    """Prints the table; raises ValueError for a game that isn't Atari's, or without atari-py."""
    chosen = games.select_atari(names)
    packages = load()
    heads = ["game", "bytes of the ROM that differ", "screen's rows, atari-py"]
    heads += ["screen's rows, ale-py", "equal screens"]
    heads += [f"random policy, {name} (standard error)" for name in ("atari-py", "ale-py")]
    rows = [row(game, packages, num_steps) for game in progress.bar("Games", chosen)]
    print(words.markdown([heads, *rows]))


def copy(out: str) -> None:
    """Makes a folder with a copy of ale_py that has atari_py's ROMs, and its own of other games.

    Raises:
        OSError: the copy fails.
        ValueError: the folder is there, or can't be written, or atari-py isn't there.
    """
    shell.check_writable("out", out)
    folder = pathlib.Path(out).resolve()
    check("out", out, not folder.exists(), "a folder that isn't there yet")
    old, new = load()
    source = pathlib.Path(new.__file__).parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".writing-") as aside:
        whole = pathlib.Path(aside, "whole")
        # A wheel's libraries lie in ale_py.libs.
        for part in (source, *source.parent.glob("ale_py.libs")):
            shutil.copytree(part, whole / part.name)
        roms = whole / "ale_py" / "roms"
        for rom in rom_path(old, "Pong").parent.glob("*.bin"):
            shutil.copy(rom, roms)
        # ale_py loads ROMs with these sums only.
        sums = {rom.name: hashlib.md5(rom.read_bytes()).hexdigest() for rom in roms.glob("*.bin")}
        (roms / "md5.json").write_text(json.dumps(sums))
        whole.rename(folder)
    print(out)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns the exit status."""
    parser = shell.Parser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    compared = commands.add_parser("compare")
    add = compared.add_argument
    add("--games", default="Asterix", help="games with commas (default: %(default)s)")
    steps = "agent steps of a random policy (default: %(default)s)"
    add("--steps", type=shell.at_least(1), default=300_000, help=steps)
    compared.set_defaults(run=lambda args: compare(args.games.split(","), args.steps))
    copied = commands.add_parser("copy")
    copied.add_argument("--out", required=True, help="folder, for PYTHONPATH")
    copied.set_defaults(run=lambda args: copy(args.out))
    args = parser.parse_args(argv)
    return shell.run_once(parser.prog, lambda: args.run(args))


if __name__ == "__main__":
    sys.exit(main())
