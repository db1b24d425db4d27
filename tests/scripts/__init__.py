"""Tests of the programs in `scripts/`."""

import pathlib

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts"
