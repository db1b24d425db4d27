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


def play(
    package: Any, game: str, seed: int, num_steps: int = 1, num_episodes: int = 1, **settings: float
) -> Iterator[tuple[Any, list[int]]]:
    """Plays whole episodes at random over the minimal action set, the same for each package.

    Args:
        package: atari_py or ale_py.
        game: by Dopamine's name.
        seed: of the emulator and of the actions.
        num_steps: agent steps that the episodes have together, or more.
        num_episodes: the least number of them.
        **settings: of the emulator, such as the probability of sticky actions.

    Yields:
        After each agent step the emulator, and the unclipped returns of the episodes so far.
    """
    ale, rng = package.ALEInterface(), np.random.default_rng(seed)
    ale.setInt("random_seed", seed)
    for name, value in ({"repeat_action_probability": 0.0} | settings).items():
        ale.setFloat(name, value)
    ale.loadROM(str(rom_path(package, game)))
    actions, returns, done = ale.getMinimalActionSet(), list[int](), 0
    while done < num_steps or len(returns) < num_episodes:
        ale.reset_game()
        returns.append(0)
        while not ale.game_over():
            action = actions[rng.integers(len(actions))]
            returns[-1] += sum(ale.act(action) for _ in range(games.FRAME_SKIP))
            done += 1
            yield ale, returns


def screens(package: Any, game: str, seed: int) -> list[np.ndarray]:
    """Returns the grey screens of an episode without sticky actions, each of shape [rows, 160]."""
    return [np.squeeze(ale.getScreenGrayscale()) for ale, _ in play(package, game, seed)]


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
    sticky = {"repeat_action_probability": games.STICKY_PROBABILITY}
    for package in packages:
        # Two episodes at least, for a standard error.
        *_, (_, returns) = play(package, game, SEEDS[0], num_steps, 2, **sticky)
        error = float(np.std(returns, ddof=1) / np.sqrt(len(returns)))
        cells.append(f"{words.rounded(sum(returns) / len(returns))} ({words.rounded(error)})")
    return cells


def load() -> list[Any]:
    """Returns atari_py and ale_py; raises ValueError if atari-py's version isn't `VERSION`."""
    try:
        found = importlib.metadata.version("atari-py")
    except importlib.metadata.PackageNotFoundError:
        found = None
    allowed = f"{VERSION}: pip install atari-py=={VERSION}"
    check("the version of atari-py", found, found == VERSION, allowed)
    import ale_py
    import atari_py

    # atari_py logs errors only, as it is.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return [atari_py, ale_py]


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
