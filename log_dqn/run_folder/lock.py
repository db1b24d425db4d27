"""Making a run's folder, and a lock on it."""

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


def claim(
    option: str, folder: pathlib.Path, stack: contextlib.ExitStack, undo: contextlib.ExitStack
) -> None:
    """Makes a run's folder and holds it.

    Args:
        option: the option that names the folder, for the error.
        folder: the folder; it and its parents need not exist.
        stack: holds it.
        undo: removes what was made.

    Raises:
        ValueError: if it can't be written, or is in use.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            undo.callback(_remove, path)
        stack.enter_context(hold(folder))
    except OSError as error:
        raise ValueError(
            f"{option} is {str(folder)!r}; it must be a folder that can be written "
            f"({error.strerror})"
        ) from error


def _remove(folder: pathlib.Path) -> None:
    with contextlib.suppress(OSError):
        (folder / NAME).unlink(missing_ok=True)
        folder.rmdir()
