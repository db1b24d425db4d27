"""numpy arrays in compressed .npy files, written and read in place, and pieces of bytes.

The file is numpy's .npy format inside Zstandard. Neither direction makes a second copy of the
array.
"""

import contextlib
import io
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import zstandard

# Compresses Atari frames further than gzip's level 9 at more than 1 GB/s; higher levels are
# slower, lower ones no faster.
_LEVEL = 3
_CHUNK_BYTES = 1 << 24


@contextlib.contextmanager
def _writing(path: pathlib.Path) -> Iterator[Any]:
    """Opens a file for what is to be compressed."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with open(path, "wb") as file, compressor.stream_writer(file) as writer:
        yield writer


@contextlib.contextmanager
def _reading(path: pathlib.Path) -> Iterator[Any]:
    """Opens a file for what was compressed; the block has to read all of that."""
    try:
        with open(path, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            yield reader
    except (zstandard.ZstdError, EOFError) as error:
        raise ValueError(f"{path.name} is damaged ({error})") from error


def _chunks(array: np.ndarray) -> Iterator[memoryview]:
    view = array.reshape(-1).view(np.uint8).data
    return (view[i : i + _CHUNK_BYTES] for i in range(0, len(view), _CHUNK_BYTES))


def save(path: pathlib.Path, array: np.ndarray) -> None:
    """Writes a C-contiguous array of numbers of any shape."""
    with _writing(path) as writer:
        header = np.lib.format.header_data_from_array_1_0(array)
        np.lib.format.write_array_header_1_0(writer, header)
        for chunk in _chunks(array):
            writer.write(chunk)


def load_into(path: pathlib.Path, array: np.ndarray) -> None:
    """Reads an array into the first rows of another.

    The array is C-contiguous, with the file's dtype and row shape, and at least as many rows.

    Raises:
        ValueError: if the file's array doesn't fit, or the file is damaged.
    """
    with _reading(path) as reader:
        np.lib.format.read_magic(reader)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(reader)
        fits = dtype == array.dtype and not fortran and len(shape) == array.ndim
        if not (fits and shape[1:] == array.shape[1:] and shape[:1] <= array.shape[:1]):
            raise ValueError(
                f"{path.name} holds {dtype} of shape {shape}, which doesn't fit {array.dtype} "
                f"of shape {array.shape}"
            )
        for chunk in _chunks(array[: shape[0]] if shape else array):
            position = 0
            while position < len(chunk):
                count = reader.readinto(chunk[position:])
                if not count:
                    raise ValueError(f"{path.name} ends early")
                position += count
        if reader.read(1):
            raise ValueError(f"{path.name} is longer than it says")


def load(path: pathlib.Path) -> np.ndarray:
    """Reads an array that `save` has written.

    Raises:
        ValueError: if the file is damaged.
    """
    with _reading(path) as reader:
        return np.load(io.BytesIO(reader.read()), allow_pickle=False)


def save_parts(path: pathlib.Path, parts: Iterable[bytes]) -> None:
    """Writes pieces of bytes one after the other."""
    with _writing(path) as writer:
        buffered = io.BufferedWriter(writer, _CHUNK_BYTES)
        for part in parts:
            buffered.write(part)
        buffered.flush()
        buffered.detach()


def load_parts(path: pathlib.Path, sizes: Iterable[int]) -> Iterator[bytes]:
    """Yields the pieces of `save_parts`, which have these sizes, one by one.

    Raises:
        ValueError: if the file is damaged, or doesn't hold just these pieces.
    """
    with _reading(path) as reader:
        buffered = io.BufferedReader(reader, _CHUNK_BYTES)
        for size in sizes:
            part = buffered.read(size)
            if len(part) != size:
                raise ValueError(f"{path.name} ends early")
            yield part
        if buffered.read(1):
            raise ValueError(f"{path.name} is longer than it says")
