"""The parts of `scripts/benchmark.py`, a module for each thing that is measured."""
