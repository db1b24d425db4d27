"""Reads pickles of plain data and runs nothing that they ask for.

`pickle.load` calls whatever a file names. Here a file may name numpy's numbers and a few
containers; anything else is refused by name. numpy believes the state of a dtype or an array that
it finds in a file. So both are read as a `Record`, and made here from checked parts. A file can
still cost time and memory: a forged one may take for ever.
"""

import collections
import io
import pickle
import re
from collections.abc import Callable, Collection
from typing import IO, Any

import numpy as np

_DTYPE = re.compile(r"[<>=|]?([biufcSU]\d+|\?)")


class UnsafePickleError(ValueError):
    """A pickle needs something that may not be loaded; the message names it."""


class Record:
    """Stands for an object of an admitted class, and has none of its code.

    What stands for an array of numbers or text is made one by `np.asarray`.

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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        try:
            _, shape, of_array, is_fortran, data = self.state
            array = _from_bytes(data, of_array, shape, "F" if is_fortran else "C")
        except UnsafePickleError:
            raise
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise ValueError(f"an array's parts are damaged ({error})") from error
        return array if dtype is None else array.astype(dtype)


class _Function:
    """A function that a pickle may call. A pickle can't set attributes on it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, _: Any) -> None:
        raise UnsafePickleError("refused to set attributes of a function")


def _dtype_of(record: Record) -> np.dtype:
    name = str(record.arguments[0])
    order: Any = record.state[1] if record.state else "="
    if not _DTYPE.fullmatch(name):
        raise UnsafePickleError(f"refused to load numpy.dtype({name!r})")
    return np.dtype(name).newbyteorder(order)


def _from_bytes(data: Any, dtype: Record, shape: Any = (), order: Any = "C") -> np.ndarray:
    data = data.encode("latin1") if isinstance(data, str) else data  # str: of Python 2
    # memoryview: of a number, bytearray would make that many bytes.
    return np.ndarray(shape, _dtype_of(dtype), bytearray(memoryview(data)), order=order)


def _scalar(dtype: Record, data: Any) -> Any:
    return _from_bytes(data, dtype)[()]


# What protocols 0 to 2 write for bytes.
def _bytes(text: str = "", _: str = "latin1") -> bytes:
    return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): Record,
    ("numpy", "dtype"): Record,
    ("_codecs", "encode"): _Function(_bytes),
    ("builtins", "bytes"): _Function(_bytes),
}
for _core in ("numpy.core", "numpy._core"):  # numpy 1 and numpy 2
    _ADMITTED[f"{_core}.multiarray", "_reconstruct"] = Record
    _ADMITTED[f"{_core}.multiarray", "scalar"] = _Function(_scalar)
    _ADMITTED[f"{_core}.numeric", "_frombuffer"] = _Function(_from_bytes)
for _kind in (list, set, collections.OrderedDict, collections.defaultdict):
    _ADMITTED[_kind.__module__, _kind.__name__] = _kind


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, records: Collection[tuple[str, str]]) -> None:
        # latin1: Dopamine's first versions also ran on Python 2.
        super().__init__(io.BytesIO(data), encoding="latin1")
        self._admitted = _ADMITTED | dict.fromkeys(records, Record)

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
        OrderedDict, defaultdict and, for arrays and objects of `records`, `Record`.

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
        raise ValueError(f"damaged or truncated ({str(error) or type(error).__name__})") from error
