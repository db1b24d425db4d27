"""Reads pickles of plain data and runs nothing that they ask for.

`pickle.load` calls whatever a file names. Here a file may name numpy's numbers and a few
containers; anything else is refused by name. numpy restores a dtype and an array from a state
which the file controls, and believes it, so that both are read as a `Record`, and made here from
checked parts. A file can still cost time and memory.
"""

import collections
import io
import pickle
import re
from collections.abc import Collection
from typing import IO, Any

import numpy as np

_DTYPE = re.compile(r"[<>=|]?([biufcSU]\d+|\?)")


class UnsafePickleError(ValueError):
    """A pickle needs something that may not be loaded; the message names it."""


class Record:
    """Stands for an object of an admitted class, and has none of its code.

    Attributes:
        arguments: what the object was made with.
        state: what was then set: an object's attributes by name, or an array's parts.
    """

    arguments: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _dtype_of(record: Record) -> np.dtype:
    name = str(record.arguments[0])
    order: Any = record.state[1] if record.state else "="
    if not _DTYPE.fullmatch(name):
        raise UnsafePickleError(f"refused to load numpy.dtype({name!r})")
    return np.dtype(name).newbyteorder(order)


def _from_bytes(data: Any, dtype: Record, shape: Any = (), order: Any = "C") -> np.ndarray:
    data = data.encode("latin1") if isinstance(data, str) else data  # str: of Python 2
    return np.frombuffer(data, _dtype_of(dtype)).reshape(shape, order=order).copy(order)


def array_of(record: Record | np.ndarray) -> np.ndarray:
    """Returns an array of numbers or text that a pickle holds, from what it was read as."""
    if isinstance(record, np.ndarray):  # Protocol 5 has the parts at once.
        return record
    _, shape, dtype, is_fortran, data = record.state
    return _from_bytes(data, dtype, shape, "F" if is_fortran else "C")


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, records: Collection[tuple[str, str]]) -> None:
        # latin1: Dopamine's first versions also ran on Python 2.
        super().__init__(io.BytesIO(data), encoding="latin1")
        arrays = {("numpy", "ndarray"), ("numpy", "dtype")}
        self._admitted: dict[tuple[str, str], Any] = dict.fromkeys({*records, *arrays}, Record)
        for core in ("numpy.core", "numpy._core"):  # numpy 1 and numpy 2
            self._admitted[f"{core}.multiarray", "_reconstruct"] = Record
            self._admitted[f"{core}.multiarray", "scalar"] = self._scalar
            self._admitted[f"{core}.numeric", "_frombuffer"] = self._array
        self._admitted["_codecs", "encode"] = self._bytes  # Protocols 0 to 2 have no bytes.
        for container in (list, set, collections.OrderedDict, collections.defaultdict):
            self._admitted[container.__module__, container.__name__] = container

    # A pickle may set attributes on what it has named; methods take none.
    def _scalar(self, dtype: Record, data: Any) -> Any:
        return _from_bytes(data, dtype)[()]

    def _array(self, *parts: Any) -> np.ndarray:
        return _from_bytes(*parts)

    def _bytes(self, text: str, _: str) -> bytes:
        return text.encode("latin1")

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._admitted[module.replace("__builtin__", "builtins"), name]
        except KeyError:
            raise UnsafePickleError(f"refused to load {module}.{name}") from None

    def persistent_load(self, pid: Any) -> Any:
        raise UnsafePickleError(f"refused to load the persistent object {pid!r}")


def load(file: IO[bytes], records: Collection[tuple[str, str]] = ()) -> Any:
    """Reads one pickle of plain data.

    Args:
        file: an open binary file.
        records: classes, as (module, name), whose objects are read as `Record`.

    Returns:
        The object: numbers, strings, bytes, numpy's scalars, lists, tuples, sets, dicts,
        OrderedDict, defaultdict and `Record`, which `array_of` makes an array of.

    Raises:
        UnsafePickleError: the pickle names something else. Nothing of it has been run.
        ValueError: it is truncated or otherwise not a pickle.
        OSError: the file cannot be read.
    """
    data = file.read()
    try:
        return _Unpickler(data, records).load()
    except UnsafePickleError:
        raise
    # Damaged bytes make the unpickler fail with nearly any exception.
    except Exception as error:
        raise ValueError(f"damaged or truncated ({error or type(error).__name__})") from error
