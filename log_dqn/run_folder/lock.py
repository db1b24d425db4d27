"""Making a run's folder, and a lock on it."""

import contextlib
import errno
import fcntl
import os
import pathlib
import socket
import stat
from collections.abc import Iterator

NAME = "lock"


@contextlib.contextmanager
def hold(folder: pathlib.Path) -> Iterator[None]:
    """Holds a folder while the block runs. The lock ends with the process, however that ends.

    Args:
        folder: an existing folder.

    Raises:
        ValueError: if a process holds it, or its lock is no plain file.
    """
    path = folder / NAME
    with contextlib.ExitStack() as stack:
        while True:
            file = stack.enter_context(open(path, "a+", encoding="utf-8", opener=_open_plain))
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


def _open_plain(path: str, flags: int) -> int:
    """Opens a plain file, as an opener of `open`; follows no link and waits for no pipe."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
    else:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    raise ValueError(f"{path} is a link, a folder or a device; it must be a plain file")


@contextlib.contextmanager
def writing(name: str, path: str, kind: str = "folder") -> Iterator[None]:
    """Turns what keeps a folder, or a file, from being written into a ValueError that names it."""
    try:
        yield
    except OSError as error:
        allowed = f"a {kind} that can be written ({error.strerror or error})"
        raise ValueError(f"{name} is {path!r}; it must be {allowed}") from error


def make(folder: pathlib.Path, undo: contextlib.ExitStack) -> bool:
    """Makes a folder and its parents; `undo` removes those that this made and that are empty.

    Returns whether the folder was missing.
    """
    made = False
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        try:
            # A process that failed to start may have removed its parent in between.
            path.mkdir(parents=True)
        except FileExistsError:
            made = False
            if not path.is_dir():
                raise
        else:
            made = True
            undo.callback(_remove, path)
    return made


def claim(folder: pathlib.Path, stack: contextlib.ExitStack, undo: contextlib.ExitStack) -> None:
    """Makes a run's folder and its parents, held by `stack`; `undo` removes what this made.

    Raises:
        ValueError: if it can't be written, or is in use.
    """
    with writing("the run's folder", str(folder)):
        made = make(folder, undo)
        stack.enter_context(hold(folder))
        if made:
            undo.callback((folder / NAME).unlink, missing_ok=True)


def _remove(folder: pathlib.Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
