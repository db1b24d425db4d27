import io
import json
import os
import random

import numpy as np
import pytest
import zstandard

from log_dqn.run_folder import arrays, checkpoints


def save(text):
    return lambda folder: (folder / "data").write_text(text)


def write(root, *numbers):
    for number in numbers:
        checkpoints.write(root, number, save(f"content {number}"), {"iteration": number})


def newest(root):
    reports = []
    return checkpoints.newest_usable(root, reports.append, "buy a new disk"), reports


def test_the_last_two_are_kept(tmp_path):
    write(tmp_path, 0, 1, 2)
    assert sorted(os.listdir(tmp_path)) == ["1", "2"]
    (number, manifest), reports = newest(tmp_path)
    assert (number, manifest["iteration"], reports) == (2, 2, [])
    assert (tmp_path / "2" / "data").read_text() == "content 2"


def test_no_checkpoint_at_all(tmp_path):
    assert newest(tmp_path) == (None, [])
    assert newest(tmp_path / "absent") == (None, [])


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[random.Random(0).randrange(len(data))] ^= 4
    path.write_bytes(data)


DAMAGES = {
    "truncated": (lambda f: os.truncate(f / "data", 3), "data has 3 bytes, not 9"),
    "bit-flipped": (lambda f: flip_a_bit(f / "data"), "data is not what was written"),
    "missing file": (lambda f: (f / "data").unlink(), "data is missing"),
    "missing manifest": (lambda f: (f / "manifest.json").unlink(), "manifest.json is missing"),
    "a folder for a manifest": (
        lambda f: ((f / "manifest.json").unlink(), (f / "manifest.json").mkdir()),
        "manifest.json is a folder",
    ),
    "manifest of another iteration": (
        lambda f: (f / "manifest.json").write_text(
            (f / "manifest.json").read_text().replace(f'"iteration": {f.name}', '"iteration": 9')
        ),
        "it is of iteration 9",
    ),
    "empty manifest": (lambda f: os.truncate(f / "manifest.json", 0), "manifest.json is damaged"),
    "foreign manifest": (
        lambda f: (f / "manifest.json").write_text("[1]"),
        "manifest.json is damaged",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_used(tmp_path, damage):
    write(tmp_path, 3, 4)
    hurt, reason = DAMAGES[damage]
    hurt(tmp_path / "4")
    (number, _), reports = newest(tmp_path)
    assert number == 3
    assert reports == [f"checkpoint 4 in {tmp_path} is damaged and is skipped: {reason}"]
    # The next checkpoint of the same iteration takes its place.
    write(tmp_path, 4)
    assert newest(tmp_path)[0][0] == 4

    for folder in ("3", "4"):
        hurt(tmp_path / folder)
    with pytest.raises(checkpoints.CheckpointError, match=r"none .* is usable; buy a new disk$"):
        newest(tmp_path)


def test_a_future_format_is_not_guessed_at(tmp_path):
    write(tmp_path, 0)
    path = tmp_path / "0" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(checkpoints.CheckpointError):
        newest(tmp_path)


def test_a_failed_write_leaves_the_others(tmp_path):
    write(tmp_path, 0, 1)

    def fail(folder):
        (folder / "data").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        checkpoints.write(tmp_path, 2, fail, {"iteration": 2})
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


def test_a_crash_in_writing_is_reported_and_cleaned_up(tmp_path):
    write(tmp_path, 0)
    (tmp_path / ".writing-1").mkdir()
    (tmp_path / ".writing-1" / "data").write_text("half")
    (number, _), reports = newest(tmp_path)
    assert number == 0
    assert reports == [f"checkpoint 1 in {tmp_path} was not finished and is skipped"]
    write(tmp_path, 1)
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


def test_an_unfinished_first_checkpoint_is_a_fresh_start(tmp_path):
    (tmp_path / ".writing-0").mkdir()
    found, reports = newest(tmp_path)
    assert found is None
    assert len(reports) == 1


@pytest.mark.parametrize(
    "array",
    [
        np.random.default_rng(0).integers(256, size=(50, 84, 84), dtype=np.uint8),
        np.arange(7, dtype=np.float64),
        np.empty((0, 4), np.int32),
        np.arange(30_000_000, dtype=np.uint8).reshape(3, -1),  # more than one chunk
    ],
    ids=["frames", "numbers", "empty", "large"],
)
def test_arrays_come_back_as_they_were(tmp_path, array):
    path = tmp_path / "a.npy.zst"
    arrays.save(path, array)
    target = np.full((len(array) + 2, *array.shape[1:]), 7, array.dtype)
    arrays.load_into(path, target)
    np.testing.assert_array_equal(target[: len(array)], array)
    assert (target[len(array) :] == 7).all()


def test_the_file_is_numpys_format_within_zstandard(tmp_path):
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    arrays.save(tmp_path / "a", array)
    with zstandard.open(tmp_path / "a") as file:
        np.testing.assert_array_equal(np.load(io.BytesIO(file.read())), array)


@pytest.mark.parametrize(
    ("hurt", "message"),
    [
        (lambda path: os.truncate(path, path.stat().st_size // 2), "ends early|damaged|EOF"),
        (flip_a_bit, "damaged|doesn't fit|magic"),
    ],
)
def test_a_damaged_array_is_not_taken(tmp_path, hurt, message):
    path = tmp_path / "a"
    array = np.random.default_rng(0).integers(9, size=(1000, 10), dtype=np.uint8)
    arrays.save(path, array)
    hurt(path)
    with pytest.raises(ValueError, match=message):
        arrays.load_into(path, np.empty_like(array))


@pytest.mark.parametrize(
    "target", [np.empty((9, 3), np.uint8), np.empty((10, 4), np.uint8), np.empty((10, 3), np.int8)]
)
def test_an_array_that_does_not_fit_is_not_taken(tmp_path, target):
    arrays.save(tmp_path / "a", np.zeros((10, 3), np.uint8))
    with pytest.raises(ValueError, match=r"holds uint8 of shape \(10, 3\), which doesn't fit"):
        arrays.load_into(tmp_path / "a", target)


def test_replace_file_is_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "log"
    checkpoints.replace_file(path, b"one")
    checkpoints.replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["log"]
    with pytest.raises(OSError, match="Not a directory"):
        checkpoints.replace_file(path / "below", b"three")

    def fail(source, target):
        assert path.read_bytes() == b"two"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.replace_file(path, b"three")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["log"]


def test_an_array_with_more_behind_it_is_not_taken(tmp_path):
    path = tmp_path / "a"
    array = np.arange(10, dtype=np.uint8)
    arrays.save(path, array)
    plain = zstandard.open(path).read()
    path.write_bytes(zstandard.compress(plain + b"x"))
    with pytest.raises(ValueError, match="a is longer than it says"):
        arrays.load_into(path, np.empty_like(array))


def test_pieces_of_bytes_come_back(tmp_path):
    parts = [b"one", b"", b"three" * 10**6]
    arrays.save_parts(tmp_path / "a", parts)
    sizes = [len(part) for part in parts]
    assert list(arrays.load_parts(tmp_path / "a", sizes)) == parts
    for wrong, message in (([3], "longer than it says"), ([*sizes, 1], "ends early")):
        with pytest.raises(ValueError, match=message):
            list(arrays.load_parts(tmp_path / "a", wrong))


def test_a_checkpoint_that_cannot_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    write(tmp_path, 0)

    def fail(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(checkpoints, "_checksum", fail)
    with pytest.raises(OSError, match="Input/output error"):
        newest(tmp_path)


def test_nothing_is_written_through_a_link_or_removed_behind_it(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("precious")
    root = tmp_path / "run"
    root.mkdir()
    (root / ".writing-config").symlink_to(precious / "data")
    checkpoints.replace_file(root / "config", b"new")
    assert (root / "config").read_bytes() == b"new" and not (root / "config").is_symlink()
    (root / ".writing-3").symlink_to(precious)
    write(root, 4)
    assert sorted(os.listdir(root)) == ["4", "config"]
    assert (precious / "data").read_text() == "precious"
