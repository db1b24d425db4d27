"""What differs between atari-py and ale-py, with stand-ins for the former."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import types
from unittest.mock import Mock

import ale_py.roms
import atari_2018
import numpy as np
import pytest

# ale-py under the names of atari-py.
_STAND_IN = """
from ale_py import ALEInterface
from ale_py.roms import get_rom_path as get_game_path
"""

# atari-py with ROMs beside it.
_WITH_ROMS = """
import pathlib

def get_game_path(name):
    return str(pathlib.Path(__file__).with_name(f"{name}.bin"))
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a stand-in for atari-py."""

    def write(module):
        (tmp_path / "atari_py.py").write_text(module)
        monkeypatch.setattr(importlib.metadata, "version", lambda _: "0.1.7")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "atari_py", raising=False)

    return write


class Countdown:
    """A game of some frames, each of which rewards 1; after the end nothing does."""

    def __init__(self, frames, rows):
        self.frames = frames
        self.left = 0
        self.screen = np.arange(rows)[:, None] * np.ones(3)
        self.settings = []
        self.actions = []

    def set(self, name, value):
        self.settings.append((name, value))

    setInt = setFloat = set

    def loadROM(self, path):
        pass

    def reset_game(self):
        self.left = self.frames

    def getMinimalActionSet(self):
        return [0, 1]

    def game_over(self):
        return self.left == 0

    def act(self, action):
        self.actions.append(action)
        reward = int(self.left > 0)
        self.left -= reward
        return reward

    def getScreenGrayscale(self):
        return self.screen[:, :, None]


def test_screens_are_equal_until_they_differ():
    seen = [np.full((2, 2), value) for value in (1, 2, 3, 4)]
    assert atari_2018.equal_steps(seen, seen[:3]) == 3
    assert atari_2018.equal_steps(seen, [seen[0], seen[1], seen[0], seen[3]]) == 2
    assert atari_2018.equal_steps(seen, [np.ones((3, 2))]) == 0


def test_a_row_says_of_which_emulator_each_number_is(tmp_path):
    made = {"old": [], "new": []}

    def package(name, contents, **settings):
        rom = tmp_path / name
        rom.write_bytes(contents)

        def create():
            made[name].append(Countdown(**settings))
            return made[name][-1]

        return types.SimpleNamespace(
            __name__=name, ALEInterface=create, get_game_path=lambda game: rom
        )

    old = package("old", b"abcd", frames=40, rows=6)
    new = package("new", b"abxyz", frames=80, rows=5)
    # Ten steps of three episodes and two, since one has no standard error; no screen is equal.
    assert atari_2018.row("Pong", [old, new], num_steps=21) == [
        "Pong", "3", "6", "5", "0 of 60", "40 (0)", "80 (0)"
    ]  # fmt: skip
    for of_one in made.values():
        assert [ale.settings for ale in of_one] == [
            [("random_seed", seed), ("repeat_action_probability", sticky)]
            for seed, sticky in ((1, 0.0), (2, 0.0), (3, 0.0), (1, 0.25))
        ]
        # An episode has its seed's actions for each emulator.
        first, second, third, again = (ale.actions[:40] for ale in of_one)
        assert first == again and first != second != third != first
    assert [len(of_one[3].actions) for of_one in made.values()] == [120, 160]


def test_an_emulator_is_equal_to_itself(install, capsys):
    install(_STAND_IN)
    assert atari_2018.main(["compare", "--games=Breakout", "--steps=600"]) == 0
    row = capsys.readouterr().out.splitlines()[2].strip("| ").split(" | ")
    assert row[:4] == ["Breakout", "0", "210", "210"]
    equal, steps = row[4].split(" of ")
    assert int(equal) == int(steps) > 300
    assert row[5] == row[6]


def test_a_copy_of_the_emulator_has_the_roms_of_2018(install, tmp_path, capsys):
    install(_WITH_ROMS)
    # Another game's, so that it can be told which is played.
    shutil.copy(ale_py.roms.get_rom_path("breakout"), tmp_path / "pong.bin")
    out = tmp_path / "new" / "roms"
    assert atari_2018.main(["copy", f"--out={out}"]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    actions = (
        "from ale_py import ALEInterface, roms; ale = ALEInterface()\n"
        "for game in ('pong', 'surround'):\n"
        "  ale.loadROM(roms.get_rom_path(game)); print(len(ale.getMinimalActionSet()), end=' ')"
    )
    command = [sys.executable, "-c", actions]
    for path, number in (("", "6 5"), (str(out), "4 5")):
        env = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, env=env, text=True, capture_output=True, check=True)
        assert done.stdout.strip() == number
    assert atari_2018.main(["copy", f"--out={out}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"error: out is {str(out)!r}; it must be a folder that isn't there yet")
    assert [path.name for path in out.parent.iterdir()] == ["roms"]


def test_a_copy_that_fails_leaves_nothing(install, tmp_path, capsys):
    install(_WITH_ROMS)
    (tmp_path / "pong.bin").mkdir()
    assert atari_2018.main(["copy", f"--out={tmp_path / 'new' / 'roms'}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Is a directory" in line and not list((tmp_path / "new").iterdir())


@pytest.mark.parametrize(
    ("arguments", "version", "said"),
    [
        ("copy --out=", "0.1.7", "out is ''; it must be the name of a folder"),
        ("compare", None, "the version of atari-py is None; it must be 0.1.7: pip install atari"),
        ("compare", "0.2.9", "the version of atari-py is '0.2.9'; it must be 0.1.7: pip install"),
        (
            "compare --games=MinAtar/Breakout", "0.1.7",
            "games is 'MinAtar/Breakout'; it must be one of Dopamine's 60 Atari",
        ),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line(monkeypatch, capsys, arguments, version, said):
    found = [version or importlib.metadata.PackageNotFoundError]
    monkeypatch.setattr(importlib.metadata, "version", Mock(side_effect=found))
    assert atari_2018.main(arguments.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"error: {said}" in line
