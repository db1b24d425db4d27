"""What differs between the emulators of 2018 and of today, with today's in both places."""

import sys
import types

import numpy as np
import pytest

_TODAY = "from ale_py import ALEInterface, LoggerMode\nfrom ale_py.roms import get_rom_path\n"


@pytest.fixture
def atari_2018(load):
    return load("atari_2018")


@pytest.fixture
def write_2018(tmp_path, monkeypatch):
    """Writes a package atari_py which is today's, but for where it finds a game's file."""

    def write(get_game_path):
        (tmp_path / "atari_py.py").write_text(f"{_TODAY}get_game_path = {get_game_path}\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "atari_py", raising=False)

    return write


class Countdown:
    """A game of six frames, each of which rewards 1; after the end nothing does."""

    def __init__(self):
        self.left = 0

    def reset_game(self):
        self.left = 6

    def getMinimalActionSet(self):
        return [0, 1]

    def game_over(self):
        return self.left == 0

    def act(self, action):
        reward = int(self.left > 0)
        self.left -= reward
        return reward


def test_an_episode_is_played_to_its_end_by_four_frames(atari_2018):
    assert list(atari_2018.play(Countdown(), np.random.default_rng(0))) == [4, 2]


def test_whole_episodes_make_the_returns(atari_2018):
    steps = []
    bar = types.SimpleNamespace(update=steps.append)
    assert atari_2018.returns_at_random(Countdown(), 3, bar) == [6, 6]
    assert steps == [2, 2]
    assert len(atari_2018.returns_at_random(Countdown(), 1, bar)) == 2  # For a standard error.


def test_screens_are_equal_up_to_the_first_that_is_not(atari_2018):
    seen = [np.full((2, 2), value) for value in (1, 2, 3, 4)]
    assert atari_2018.equal_steps(seen, seen[:3]) == 3
    assert atari_2018.equal_steps(seen, [seen[0], seen[1], seen[0], seen[3]]) == 2
    assert atari_2018.equal_steps(seen, [np.ones((3, 2))]) == 0


def test_an_emulator_is_equal_to_itself(atari_2018, write_2018, capsys):
    write_2018("get_rom_path")
    assert atari_2018.main(["--games=Breakout", "--steps=600"]) == 0
    row = capsys.readouterr().out.splitlines()[2].strip("| ").split(" | ")
    assert row[:4] == ["Breakout", "0", "210", "210"]
    equal, steps = map(int, row[4].split(" of "))
    assert equal == steps > 100
    assert row[5] == row[6]


def test_another_file_is_seen(atari_2018, write_2018, tmp_path, capsys):
    from ale_py import roms

    contents = bytearray(roms.get_rom_path("breakout").read_bytes())
    for place in (1908, 1932, 1956):  # Of no code, so that it still plays.
        contents[place] ^= 255
    other = tmp_path / "breakout.bin"
    other.write_bytes(contents)
    write_2018(f"lambda name: {str(other)!r}")
    assert atari_2018.main(["--games=Breakout", "--steps=1"]) == 0
    assert "| Breakout | 3 | 210 | 210 | 0 of " in capsys.readouterr().out


def test_without_the_emulator_of_2018_it_is_one_line(atari_2018, monkeypatch, capsys):
    monkeypatch.setattr(atari_2018, "PACKAGES", ("no_such_atari_py", "ale_py"))
    assert atari_2018.main([]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("error: no_such_atari_py must be installed: pip install atari-py==0.1.7")


def test_another_kind_of_game_is_one_line(atari_2018, capsys):
    assert atari_2018.main(["--games=MinAtar/Breakout"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "error: game is 'MinAtar/Breakout'; it must be one of Dopamine's 60 Atari" in line
