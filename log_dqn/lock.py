"""A lock on a run's folder."""

import contextlib
import fcntl
import os
import pathlib
import socket
from collections.abc import Iterator

NAME = "lock"


@contextlib.contextmanager
def hold(folder: pathlib.Path) -> Iterator[None]:
    """Holds a folder while the block runs. The lock ends with the process, however that ends.

    Args:
        folder: an existing folder.

    Raises:
        ValueError: if another process holds it.
    """
    with open(folder / NAME, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise ValueError(
                f"base_dir is {str(folder)!r}; it must not be in use, and {file.read().strip()} "
                "trains in it"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
