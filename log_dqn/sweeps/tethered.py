"""Becomes a command that dies with the process that started it: `tethered.py PARENT COMMAND...`.

A training process must not outlive its worker: its run may already be going on elsewhere. The
kernel sees to it (Linux), however the worker ends. Run by path: it imports nothing of ours.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def main(parent: int, command: list[str]) -> None:
    """Replaces this process by `command`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # It died in between.
        sys.exit(1)
    # Ray's workers hold SIGINT back.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
