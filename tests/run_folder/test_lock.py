"""Making a run's folder and holding it."""

import contextlib
import os
import pathlib

import pytest

from log_dqn.run_folder import lock


def test_a_folder_is_made_held_and_removed_again(tmp_path):
    folder = tmp_path / "a/b"
    with contextlib.ExitStack() as undo, contextlib.ExitStack() as stack:
        lock.claim(folder, stack, undo)
        assert [path.name for path in folder.iterdir()] == [lock.NAME]
        said = f"process {os.getpid()} on {os.uname().nodename} trains in it"
        with pytest.raises(ValueError, match=rf"folder is .*; it must not be in use, and {said}$"):
            lock.claim(folder, stack, undo)
    assert list(tmp_path.iterdir()) == []


def test_a_parent_that_another_process_removes_in_between_is_made_again(tmp_path, monkeypatch):
    mkdir, removed = pathlib.Path.mkdir, []

    def make(path, *args, **kwargs):
        if path == tmp_path / "a/b" and not removed:
            (tmp_path / "a").rmdir()
            removed.append(path)
        return mkdir(path, *args, **kwargs)

    monkeypatch.setattr(pathlib.Path, "mkdir", make)
    with contextlib.ExitStack() as undo:
        lock.make(tmp_path / "a/b", undo)
        assert removed and (tmp_path / "a/b").is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_is_refused_leaves_what_another_made_meanwhile(tmp_path, monkeypatch):
    folder, mkdir = tmp_path / "a/b", pathlib.Path.mkdir
    with contextlib.ExitStack() as winner:

        def make(path, *args, **kwargs):
            """Lets the other process come first."""
            monkeypatch.setattr(pathlib.Path, "mkdir", mkdir)
            lock.claim(folder, winner, winner)
            return mkdir(path, *args, **kwargs)

        monkeypatch.setattr(pathlib.Path, "mkdir", make)
        for _ in range(2):
            with (
                contextlib.ExitStack() as undo,
                pytest.raises(ValueError, match="it must not be in use"),
            ):
                lock.claim(folder, undo, undo)
            assert (folder / lock.NAME).exists()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    message = f"the run's folder is '{tmp_path}/file/1'; it must be a folder that can be written "
    with (
        contextlib.ExitStack() as undo,
        pytest.raises(ValueError, match=rf"{message}\(Not a directory\)"),
    ):
        lock.claim(tmp_path / "file/1", undo, undo)


def test_what_keeps_a_file_or_a_folder_from_being_written_names_it(tmp_path):
    message = r"out is 'a\.gif'; it must be a file that can be written \(Is a directory\)"
    with pytest.raises(ValueError, match=message), lock.writing("out", "a.gif", "file"):
        tmp_path.write_bytes(b"")
    # What a library raises may have a message alone.
    message = r"out is 'a'; it must be a folder that can be written \(the disk is full\)"
    with pytest.raises(ValueError, match=message), lock.writing("out", "a"):
        raise OSError("the disk is full")


@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", "pipe"])
def test_a_lock_that_is_no_plain_file_is_refused_and_left_alone(tmp_path, kind):
    target, path = tmp_path / "precious", tmp_path / "run" / lock.NAME
    path.parent.mkdir()
    if "link" in kind:
        path.symlink_to(target)
    if kind == "link":
        target.write_text("precious")
    if kind == "folder":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    message = f"{path} is a link, a folder or a device; it must be a plain file"
    with pytest.raises(ValueError, match=message), lock.hold(path.parent):
        pass
    assert target.exists() == (kind == "link")
    assert kind != "link" or target.read_text() == "precious"
