"""Plain data in a JSON file and, as far as it is arrays, a numpy file beside that."""

import json
import pathlib
import zipfile
from collections.abc import Iterable
from typing import Any

import numpy as np

# Stand in the JSON file for an array or bytes: {"array": "0"} is the array of that name.
_ARRAY, _BYTES = "array", "bytes"


def check_finite(weights: Iterable[np.ndarray]) -> None:
    """Checks weights before they are saved; raises FloatingPointError if one is NaN or infinite."""
    if not all(np.isfinite(array).all() for array in weights):
        raise FloatingPointError("the weights are not finite")


def save(path: pathlib.Path, tree: Any) -> None:
    """Writes nested plain data to `path.json`, and the arrays in it to `path.npz`.

    `tree` holds numbers, strings, bytes, booleans, None and arrays, in lists, tuples and dicts by
    strings; anything else is a TypeError. `path` is without the files' suffix.
    """
    arrays: dict[str, np.ndarray] = {}

    def plain(item: Any) -> Any:
        if isinstance(item, np.generic):
            return item.item()
        if not isinstance(item, (np.ndarray, bytes)):
            raise TypeError(f"{type(item).__name__} is no plain data")
        name = str(len(arrays))
        if isinstance(item, bytes):
            arrays[name] = np.frombuffer(item, np.uint8)
            return {_BYTES: name}
        arrays[name] = item
        return {_ARRAY: name}

    path.with_suffix(".json").write_text(json.dumps(tree, default=plain), encoding="utf-8")
    if arrays:
        np.savez(path.with_suffix(".npz"), **arrays)  # type: ignore[arg-type]


def load(path: pathlib.Path) -> Any:
    """Reads what `save` has written; tuples come back as lists, numpy's numbers as Python's.

    Raises:
        ValueError: if a file is damaged, or holds objects.
    """
    arrays: dict[str, np.ndarray] = {}
    if path.with_suffix(".npz").exists():
        try:
            with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
                arrays = dict(file)
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path.name}.npz is damaged ({error})") from error

    def whole(item: dict[str, Any]) -> Any:
        if item.keys() == {_ARRAY}:
            return arrays[item[_ARRAY]]
        return arrays[item[_BYTES]].tobytes() if item.keys() == {_BYTES} else item

    return json.loads(path.with_suffix(".json").read_text("utf-8"), object_hook=whole)
