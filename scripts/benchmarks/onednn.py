"""A run on TensorFlow and one core with oneDNN against one without, side by side on Pong."""

import argparse
import contextlib
import functools
import pathlib
import tempfile

from benchmarks import cores, measuring
from log_dqn import compat

_VALUES = {"without oneDNN": "0", "with oneDNN": "1"}


def run(args: argparse.Namespace) -> None:
    """Prints a table."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        programs = {}
        for what, value in _VALUES.items():
            folder = pathlib.Path(name, value)
            programs[what] = cores.Program(
                "train, TensorFlow", folder, "--threads=1", **{compat.ONEDNN: value}
            )
            stack.callback(programs[what].kill)
        cores.stop_when_they_learn(list(programs.values()))
        blocks = {
            what: functools.partial(cores.play, [program], 1) for what, program in programs.items()
        }
        speeds = measuring.interleave(blocks, args.rounds, "onednn", warm_up=0)
    measuring.print_table("LogDQN, TensorFlow, one core", "steps/s", speeds)
