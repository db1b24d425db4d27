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
    path = folder / NAME
    with contextlib.ExitStack() as stack:
        while True:
            file = stack.enter_context(open(path, "a+", encoding="utf-8"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise ValueError(
                    f"the run's folder is {str(folder)!r}; it must not be in use, and "
                    f"{file.read().strip()} trains in it"
                ) from None
            # A process that failed to start may have removed the file in between.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    break
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
