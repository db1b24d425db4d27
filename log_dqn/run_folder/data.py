"""Plain data in a JSON file and, as far as it is arrays, a numpy file beside that."""

import json
import pathlib
import zipfile
from typing import Any

import numpy as np

# Stands in the JSON file for an array or bytes: {"array": "0"} is the array of that name.
_ARRAY, _BYTES = "array", "bytes"


def save(path: pathlib.Path, tree: Any) -> None:
    """Writes nested plain data to `path.json`, and the arrays in it to `path.npz`.

    Args:
        path: the files' path without their suffix.
        tree: numbers, strings, bytes, booleans, None and arrays, in lists, tuples and dicts by
            strings.

    Raises:
        OSError: if a file can't be written.
    """
    arrays: dict[str, np.ndarray] = {}

    def named(kind: str, array: Any) -> dict[str, str]:
        name = str(len(arrays))
        arrays[name] = np.asarray(array)
        return {kind: name}

    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: plain(value) for key, value in item.items()}
        if isinstance(item, (list, tuple)):
            return [plain(value) for value in item]
        if isinstance(item, bytes):
            return named(_BYTES, np.frombuffer(item, np.uint8))
        if isinstance(item, np.ndarray):
            return named(_ARRAY, item)
        return item.item() if isinstance(item, np.generic) else item

    text = json.dumps(plain(tree))
    path.with_suffix(".json").write_text(text, encoding="utf-8")
    if arrays:
        np.savez(path.with_suffix(".npz"), **arrays)  # type: ignore[arg-type]


def load(path: pathlib.Path) -> Any:
    """Reads what `save` has written; tuples come back as lists, numpy's numbers as Python's.

    Args:
        path: the files' path without their suffix.

    Raises:
        ValueError: if a file is damaged, or holds objects.
        OSError: if a file can't be read.
    """
    tree = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    arrays: dict[str, np.ndarray] = {}
    if path.with_suffix(".npz").exists():
        try:
            with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
                arrays = dict(file)
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path.name}.npz is damaged ({error})") from error

    def whole(item: Any) -> Any:
        if isinstance(item, list):
            return [whole(value) for value in item]
        if not isinstance(item, dict):
            return item
        if len(item) == 1:
            ((kind, name),) = item.items()
            if kind == _ARRAY:
                return arrays[name]
            if kind == _BYTES:
                return arrays[name].tobytes()
        return {key: whole(value) for key, value in item.items()}

    return whole(tree)
