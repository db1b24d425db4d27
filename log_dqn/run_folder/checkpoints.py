"""Checkpoint folders that are complete or absent.

A checkpoint is a folder `checkpoints/{iteration}` of files and a manifest with their sizes and
checksums. It is written under another name, synchronised to disk and renamed, so that a crash
at any moment leaves the checkpoints before it as they were. The last two are kept.
"""

import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

KEPT = 2
_MANIFEST = "manifest.json"
_FORMAT = 2
_WRITING = ".writing-"

AGENT, WEIGHTS, RANDOM, LOG, METRICS = "agent", "weights", "random", "log", "collector"
"""Names of a checkpoint's files, without their suffixes."""

Report = Callable[[str], None]
"""Is told, in one line each, of checkpoints that are skipped."""


class CheckpointError(Exception):
    """A checkpoint cannot be used; the message says which, and why."""


def _checksum(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _synchronise(path: pathlib.Path) -> None:
    """Makes a file, or the entries of a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: pathlib.Path, data: bytes) -> None:
    """Writes a file whole, or leaves what was there before as it was."""
    aside = path.with_name(f"{_WRITING}{path.name}")
    try:
        aside.unlink(missing_ok=True)  # It may be a link, which writing would follow.
        aside.write_bytes(data)
        _synchronise(aside)
        os.replace(aside, path)
    except BaseException:  # A signal's exit, too.
        aside.unlink(missing_ok=True)
        raise
    _synchronise(path.parent)


def replay_array(folder: pathlib.Path, name: str) -> pathlib.Path:
    """Returns the file of an array of the replay memory."""
    return folder / f"replay_{name}.npy.zst"


def replay_parts(folder: pathlib.Path, name: str) -> pathlib.Path:
    """Returns the file of what the replay memory holds in pieces of bytes."""
    return folder / f"replay_{name}.zst"


def iterations(root: pathlib.Path) -> list[int]:
    """Returns the iterations whose checkpoints are there, damaged ones included, in order."""
    return sorted(int(path.name) for path in root.glob("*") if path.name.isdecimal())


def unfinished(root: pathlib.Path) -> list[int]:
    """Returns the iterations whose checkpoints a crash has left half-written, in order."""
    names = (path.name.removeprefix(_WRITING) for path in root.glob(f"{_WRITING}*"))
    return sorted(int(name) for name in names if name.isdecimal())


def write(
    root: pathlib.Path,
    iteration: int,
    save: Callable[[pathlib.Path], None],
    description: dict[str, Any],
) -> None:
    """Writes a checkpoint, and then removes those before the last two.

    Where it can't be written, the others are kept.

    Args:
        root: folder of the checkpoints.
        iteration: the finished iteration, which names the checkpoint.
        save: writes the checkpoint's files into a folder.
        description: what else the checkpoint is of; JSON.
    """
    root.mkdir(parents=True, exist_ok=True)
    for number in unfinished(root):
        left = root / f"{_WRITING}{number}"
        if left.is_symlink():
            left.unlink()
        else:
            shutil.rmtree(left)
    aside = root / f"{_WRITING}{iteration}"
    try:
        aside.mkdir()
        save(aside)
        files = {
            path.name: {"bytes": path.stat().st_size, "sha256": _checksum(path)}
            for path in sorted(aside.iterdir())
        }
        manifest = {"format": _FORMAT, "iteration": iteration, **description, "files": files}
        (aside / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        for path in aside.iterdir():
            _synchronise(path)
        _synchronise(aside)
        folder = root / str(iteration)
        if folder.exists():  # Damaged: the run would have resumed from a usable one.
            shutil.rmtree(folder)
        aside.rename(folder)
        _synchronise(root)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    for number in iterations(root):
        if number not in range(iteration - KEPT + 1, iteration + 1):
            # What can't be removed now is tried again after the next checkpoint.
            shutil.rmtree(root / str(number), ignore_errors=True)


def read_manifest(folder: pathlib.Path) -> dict[str, Any]:
    """Checks the files in a checkpoint's folder and returns its manifest.

    That holds its iteration, and the description given to `write`.

    Raises:
        CheckpointError: if a file is missing, truncated or altered, or of another iteration.
        OSError: if a file can't be read, which says nothing of what is in it.
    """
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
        if manifest["format"] != _FORMAT:
            raise CheckpointError(f"its format is {manifest['format']}, not {_FORMAT}")
        if manifest["iteration"] != int(folder.name):
            raise CheckpointError(f"it is of iteration {manifest['iteration']}")
        for name, expected in files.items():
            path = folder / pathlib.PurePath(name).name
            if not path.is_file():
                raise CheckpointError(f"{name} is missing")
            if path.stat().st_size != expected["bytes"]:
                raise CheckpointError(
                    f"{name} has {path.stat().st_size} bytes, not {expected['bytes']}"
                )
            if _checksum(path) != expected["sha256"]:
                raise CheckpointError(f"{name} is not what was written")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CheckpointError(f"{_MANIFEST} is missing") from error
    except IsADirectoryError as error:
        raise CheckpointError(f"{_MANIFEST} is a folder") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{_MANIFEST} is damaged") from error
    return manifest


def newest_usable(
    root: pathlib.Path, report: Report, remedy: str
) -> tuple[int, dict[str, Any]] | None:
    """Finds the newest checkpoint whose files are all as written.

    Args:
        root: folder of the checkpoints.
        report: is told, in one line each, of checkpoints that are skipped.
        remedy: what can be done if none is usable, for the error.

    Returns:
        Its iteration and manifest; None if no checkpoint was ever completed.

    Raises:
        CheckpointError: if there are checkpoints, but none is usable.
    """
    for number in unfinished(root):
        report(f"checkpoint {number} in {root} was not finished and is skipped")
    candidates = iterations(root)
    for number in reversed(candidates):
        try:
            return number, read_manifest(root / str(number))
        except CheckpointError as error:
            report(f"checkpoint {number} in {root} is damaged and is skipped: {error}")
    if candidates:
        raise CheckpointError(f"none of the checkpoints in {root} is usable; {remedy}")
    return None
