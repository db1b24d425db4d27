"""Tests of the programs in `scripts/`."""

import os
import pathlib
import subprocess

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts"


def commands_of(path, folder, *flags):
    """The commands of a shell script that is given flags, as the shell gives them to `log-dqn`."""
    program, written = folder / "log-dqn", folder / "commands"
    program.write_text(f"#!/bin/sh\nprintf '%s\\t' \"$@\" >> '{written}'\necho >> '{written}'\n")
    program.chmod(0o755)
    written.write_text("")
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    subprocess.run(["sh", path, *flags], cwd=folder, env=environment, check=True)
    return [line.split("\t")[:-1] for line in written.read_text().splitlines()]
