"""Reads pickles of plain data and runs nothing that they ask for.

`pickle.load` calls whatever a file names. Here a file may name numpy arrays and numbers and the
containers of `collections` and of Python itself; anything else is refused by name.

Three things beside that list need care. numpy restores a dtype and an array from a state which
the file controls, and believes it: a forged state makes it take any number for a pointer. So
both are rebuilt here from checked parts (plain numbers, strings and objects; no structured
dtypes). A pickle may set attributes on what it has named; what is handed out here takes none. And
a dictionary's key may be a tuple that holds another twice, which holds another twice, ...: its
hash takes years. So no tuple of tuples may stand in two places.
"""

import collections
import io
import math
import pickle
import re
from collections.abc import Callable, Collection
from typing import IO, Any, ClassVar

import numpy as np

_DTYPE = re.compile(r"[<>=|]?(?:[biufc]\d+|\?|[SU]\d+|O\d*)")


class UnsafePickleError(ValueError):
    """A pickle needs something that may not be loaded; the message names it."""


class DamagedPickleError(ValueError):
    """A pickle is truncated, or otherwise not what `pickle` writes."""


class _Admitted:
    """A function that a pickle may call. A pickle cannot set attributes on it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise UnsafePickleError(f"refused to set a {type(state).__name__} on a function")


class Record:
    """Stands for an object of an admitted class: its attributes, and none of its code."""

    __slots__ = ("attributes",)

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, dict):
            raise UnsafePickleError(f"refused to set a {type(state).__name__} on an object")
        self.attributes = state


class _DType:
    """Stands for a `numpy.dtype` while its pickle is read."""

    __slots__ = ("dtype", "used")

    def __init__(self, spec: Any, *_: Any) -> None:
        if not isinstance(spec, str) or not _DTYPE.fullmatch(spec):
            raise UnsafePickleError(f"refused to load numpy.dtype({spec!r})")
        self.dtype = np.dtype(spec)
        self.used = False

    def __setstate__(self, state: Any) -> None:
        _, byte_order, subarray, names, fields, *_ = state
        if subarray is not None or names or fields:
            raise UnsafePickleError("refused to load a structured numpy.dtype")
        self.dtype = self.dtype.newbyteorder(byte_order)


class _Array:
    """Stands for a `numpy.ndarray` while its pickle is read."""

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array = np.empty(0)

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        self.array = _array(data, dtype, shape, "F" if fortran else "C")


def _array(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    """Builds an array from the raw bytes (or the list of objects) of its elements."""
    plain = _plain_dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if order not in ("C", "F") or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise DamagedPickleError(f"an array has shape {shape} and order {order!r}")
    size = math.prod(shape)
    if plain.hasobject:
        if not isinstance(data, list) or len(data) != size:
            raise DamagedPickleError(f"an array of objects has not the {size} of its shape")
        array = np.empty(size, plain)
        for index, item in enumerate(data):
            array[index] = item
        return array.reshape(shape, order=order)
    data = data.encode("latin1") if isinstance(data, str) else data  # str: Python 2
    if not isinstance(data, (bytes, bytearray)):  # bytes(10**12) would fill the memory.
        raise DamagedPickleError(f"an array's data is of type {type(data).__name__}")
    if len(data) != size * plain.itemsize:
        raise DamagedPickleError(f"an array has {len(data)} bytes, not {size * plain.itemsize}")
    return np.ndarray(size, plain, bytearray(data)).reshape(shape, order=order)


def _plain_dtype(dtype: Any) -> np.dtype:
    if not isinstance(dtype, _DType):
        raise UnsafePickleError(f"refused to take {type(dtype).__name__} for a numpy.dtype")
    dtype.used = True
    return dtype.dtype


def _scalar(dtype: Any, data: Any = None) -> Any:
    if _plain_dtype(dtype).hasobject:
        raise UnsafePickleError("refused to load a numpy scalar of dtype object")
    return _array(data, dtype, (), "C")[()]


def _named_bytes(text: Any, encoding: Any) -> bytes:
    """What pickles of protocol 0 to 2 write for bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise UnsafePickleError(f"refused to load _codecs.encode with {encoding!r}")
    return text.encode("latin1")


def _bytearray(data: Any = b"") -> bytearray:
    if not isinstance(data, bytes):  # bytearray(10**12) would fill the memory.
        raise UnsafePickleError(f"refused to load builtins.bytearray({data!r})")
    return bytearray(data)


def _no_bytes(*arguments: Any) -> bytes:
    """What pickles of protocol 0 to 2 call for empty bytes."""
    if arguments:
        raise UnsafePickleError(f"refused to load builtins.bytes{arguments!r}")
    return b""


def _not_callable(*_: Any) -> Any:
    raise UnsafePickleError("refused to call numpy.ndarray")


class _Admitting:
    """Loads only what `_admitted` holds; a part of an unpickler."""

    def __init__(self, file: IO[bytes], records: Collection[tuple[str, str]]) -> None:
        # latin1: Dopamine's first versions also ran on Python 2.
        super().__init__(file, encoding="latin1")  # type: ignore[call-arg]
        self._dtypes: list[_DType] = []
        self._any_arrays = False
        ndarray = _Admitted(_not_callable)

        def make_dtype(*args: Any) -> _DType:
            self._dtypes.append(_DType(*args))
            return self._dtypes[-1]

        def make_array(subtype: Any, *_: Any) -> _Array:
            if subtype is not ndarray:
                raise UnsafePickleError("refused to load a subclass of numpy.ndarray")
            self._any_arrays = True
            return _Array()

        self._admitted: dict[tuple[str, str], Any] = {
            ("numpy", "ndarray"): ndarray,
            ("numpy", "dtype"): _Admitted(make_dtype),
            ("_codecs", "encode"): _Admitted(_named_bytes),
            ("builtins", "bytearray"): _Admitted(_bytearray),
            ("builtins", "bytes"): _Admitted(_no_bytes),
        }
        for core in ("numpy.core", "numpy._core"):  # numpy 1 and numpy 2
            self._admitted[f"{core}.multiarray", "_reconstruct"] = _Admitted(make_array)
            self._admitted[f"{core}.multiarray", "scalar"] = _Admitted(_scalar)
            self._admitted[f"{core}.numeric", "_frombuffer"] = _Admitted(_array)
        for kind in (dict, list, tuple, set, frozenset, complex, int, float, bool):
            self._admitted["builtins", kind.__name__] = kind
        for container in (collections.OrderedDict, collections.defaultdict, collections.deque):
            self._admitted["collections", container.__name__] = container
        self._admitted.update(dict.fromkeys(records, Record))

    def find_class(self, module: str, name: str) -> Any:
        python_3_module = "builtins" if module == "__builtin__" else module
        try:
            return self._admitted[python_3_module, name]
        except KeyError:
            raise UnsafePickleError(f"refused to load {module}.{name}") from None

    def persistent_load(self, pid: Any) -> Any:
        raise UnsafePickleError(f"refused to load the persistent object {pid!r}")

    def load(self) -> Any:
        loaded = super().load()  # type: ignore[misc]
        if self._any_arrays or not all(dtype.used for dtype in self._dtypes):
            return _without_stand_ins(loaded, {})
        return loaded


# A pickle of nothing but numbers, strings, lists and dictionaries: what runs of this package write.
_STRINGS = b"|".join(
    b"(?:\x8c%b|X%b\0\0\0).{%d}" % (size, size, n)
    for n in range(256)
    for size in [re.escape(bytes([n]))]
)
_WITHOUT_TUPLES = re.compile(
    rb"(?s:[]}N(aesu.\x88\x89\x94]|[Khq\x80].|M..|[Jjr].{4}|[G\x95].{8}|" + _STRINGS + b")*"
)


def _refusing(load: Callable[[Any], None]) -> Callable[[Any], None]:
    """Returns a loader of something that is in the file before, which refuses tuples of tuples."""

    def checked(unpickler: Any) -> None:
        load(unpickler)
        top = unpickler.stack[-1]
        if isinstance(top, tuple) and any(isinstance(item, tuple) for item in top):
            raise UnsafePickleError("refused to load a tuple of tuples that stands in two places")

    return checked


class _Fast(_Admitting, pickle.Unpickler):
    """For pickles without tuples."""


class _Careful(_Admitting, pickle._Unpickler):
    """Refuses a tuple of tuples that stands in two places. In Python, it takes 15 times as long."""

    dispatch: ClassVar = pickle._Unpickler.dispatch | {
        code[0]: _refusing(pickle._Unpickler.dispatch[code[0]])
        for code in (pickle.GET, pickle.BINGET, pickle.LONG_BINGET, pickle.DUP)
    }


def _without_stand_ins(item: Any, seen: dict[int, Any]) -> Any:
    """Replaces stand-ins by what they stand for, in place where the container allows."""
    if isinstance(item, _Array):
        return _without_stand_ins(item.array, seen)
    if isinstance(item, _DType):
        return item.dtype
    if id(item) in seen:
        return seen[id(item)]
    if isinstance(item, tuple):
        seen[id(item)] = tuple(_without_stand_ins(value, seen) for value in item)
        return seen[id(item)]
    seen[id(item)] = item
    if isinstance(item, dict):
        for key, value in item.items():
            item[key] = _without_stand_ins(value, seen)
    elif isinstance(item, (list, collections.deque)):
        for index, value in enumerate(item):
            item[index] = _without_stand_ins(value, seen)
    elif isinstance(item, np.ndarray) and item.dtype.hasobject:
        for position in np.ndindex(item.shape):
            item[position] = _without_stand_ins(item[position], seen)
    elif isinstance(item, Record):
        _without_stand_ins(item.attributes, seen)
    return item


def load(file: IO[bytes], records: Collection[tuple[str, str]] = ()) -> Any:
    """Reads one pickle of plain data.

    Args:
        file: an open binary file.
        records: classes, as (module, name), whose objects are read as `Record`.

    Returns:
        The object: numbers, strings, bytes, numpy arrays and scalars, builtin containers,
        OrderedDict, defaultdict, deque and Record.

    Raises:
        UnsafePickleError: the pickle names something else. Nothing of it has been run.
        DamagedPickleError: it is truncated or otherwise not a pickle.
        OSError: the file cannot be read.
    """
    data = file.read()
    try:
        has_tuples = _WITHOUT_TUPLES.match(data).end() < len(data)  # type: ignore[union-attr]
        return (_Careful if has_tuples else _Fast)(io.BytesIO(data), records).load()
    except (UnsafePickleError, DamagedPickleError):
        raise
    # Damaged bytes make the unpickler fail with nearly any exception.
    except Exception as error:
        raise DamagedPickleError(
            f"damaged or truncated ({error or type(error).__name__})"
        ) from error
