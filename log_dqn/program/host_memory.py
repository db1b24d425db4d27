"""What the C library keeps of the host's memory after it was freed."""

import ctypes


def give_back() -> None:
    """Gives the system what is free in the heap, where the C library is glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
