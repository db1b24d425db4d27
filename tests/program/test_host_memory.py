"""Memory that is given back to the system."""

import ctypes
import re

import pytest

from log_dqn.program import host_memory

_BLOCK, _BLOCKS = 4096, 20_000


def _resident():
    """Returns the process's memory in bytes."""
    with open("/proc/self/status") as status:
        return 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1])


def test_what_was_freed_is_given_back():
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("the C library is not glibc")
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    blocks = [libc.malloc(_BLOCK) for _ in range(_BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, _BLOCK)
    last = blocks.pop()  # Above the others: without it they would go by themselves.
    for block in blocks:
        libc.free(block)
    before = _resident()
    host_memory.give_back()
    after = _resident()
    libc.free(last)
    assert before - after > 0.8 * _BLOCK * _BLOCKS
