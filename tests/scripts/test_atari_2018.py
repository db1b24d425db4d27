"""What differs between atari-py and ale-py, with stand-ins for the former."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import types
from unittest.mock import Mock

import ale_py.roms
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
def atari_2018(load):
    return load("atari_2018")


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

    def __init__(self, frames=6, rows=2):
        self.frames = frames
        self.left = 0
        self.screen = np.arange(rows)[:, None] * np.ones(3)
        self.sticky = []
        self.seeds = []
        self.actions = []

    def setInt(self, name, value):
        assert name == "random_seed"
        self.seeds.append(value)

    def setFloat(self, name, value):
        assert name == "repeat_action_probability"
        self.sticky.append(value)

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


def test_whole_episodes_make_the_returns(atari_2018):
    assert atari_2018.returns_at_random(Countdown(), 5) == [6, 6, 6]
    assert len(atari_2018.returns_at_random(Countdown(), 1)) == 2  # For a standard error.


def test_a_mean_has_its_standard_error(atari_2018):
    assert atari_2018.mean_with_error([4, 8]) == "6 (2)"
    assert atari_2018.mean_with_error([10_000, 20_000]) == "15,000 (5,000)"


def test_screens_are_equal_until_they_differ(atari_2018):
    seen = [np.full((2, 2), value) for value in (1, 2, 3, 4)]
    assert atari_2018.equal_steps(seen, seen[:3]) == 3
    assert atari_2018.equal_steps(seen, [seen[0], seen[1], seen[0], seen[3]]) == 2
    assert atari_2018.equal_steps(seen, [np.ones((3, 2))]) == 0


def test_a_row_says_of_which_emulator_each_number_is(atari_2018, tmp_path):
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

    old = package("old", b"abcd", frames=4, rows=6)
    new = package("new", b"abxyz", frames=8, rows=5)
    # One step of three episodes and two; no screen is equal.
    assert atari_2018.row("Pong", [old, new], num_steps=9) == [
        "Pong", "3", "6", "5", "0 of 6", "4 (0)", "8 (0)"
    ]  # fmt: skip
    for of_one in made.values():
        assert [ale.sticky for ale in of_one] == [[0.0], [0.0], [0.0], [0.25]]
        assert [ale.seeds for ale in of_one] == [[1], [2], [3], [1]]


def test_an_episode_has_its_seed_s_actions_for_each_emulator(atari_2018):
    games = [Countdown(frames=80) for _ in range(4)]
    for game, seed in zip(games, (1, 2, 3, 1), strict=True):
        package = types.SimpleNamespace(ALEInterface=lambda game=game: game)
        package.get_game_path = lambda name: name
        assert len(atari_2018.screens(package, "Pong", seed)) == 20
    first, second, third, again = (game.actions for game in games)
    assert first == again
    assert first != second != third != first


def test_an_emulator_is_equal_to_itself(atari_2018, install, capsys):
    install(_STAND_IN)
    assert atari_2018.main(["compare", "--games=Breakout", "--steps=600"]) == 0
    row = capsys.readouterr().out.splitlines()[2].strip("| ").split(" | ")
    assert row[:4] == ["Breakout", "0", "210", "210"]
    equal, steps = row[4].split(" of ")
    assert int(equal) == int(steps) > 300
    assert row[5] == row[6]


def test_a_copy_of_the_emulator_has_the_roms_of_2018(atari_2018, install, tmp_path, capsys):
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


@pytest.mark.parametrize("out", ["", "roms"])
def test_a_copy_that_fails_is_one_line_and_leaves_nothing(
    atari_2018, install, tmp_path, monkeypatch, capsys, out
):
    install(_WITH_ROMS)
    (tmp_path / "pong.bin").mkdir()
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert atari_2018.main(["copy", f"--out={out}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert ("Is a directory" if out else "out is ''; it must be the name of a folder") in line
    assert not list(folder.iterdir())


@pytest.mark.parametrize("version", [None, "0.2.9"])
def test_without_the_emulator_of_2018_it_is_one_line(atari_2018, monkeypatch, capsys, version):
    found = [version or importlib.metadata.PackageNotFoundError]
    monkeypatch.setattr(importlib.metadata, "version", Mock(side_effect=found))
    assert atari_2018.main(["compare"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    said = f"the version of atari-py is {version!r}; it must be 0.1.7: pip install atari-py==0.1.7"
    assert line.endswith(f"error: {said}")


def test_another_kind_of_game_is_one_line(atari_2018, capsys):
    assert atari_2018.main(["compare", "--games=MinAtar/Breakout"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "error: games is 'MinAtar/Breakout'; it must be one of Dopamine's 60 Atari" in line
