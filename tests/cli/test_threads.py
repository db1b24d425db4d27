"""The threads that libraries are told to compute in."""

import os

from log_dqn.cli import threads


def test_what_is_compiled_for_another_number_of_threads_is_kept_apart(monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/compiled")
    threads.limit(2)
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "/compiled/2_threads"
    assert os.environ["OMP_NUM_THREADS"] == os.environ["NPROC"] == "2"
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    threads.limit(1)
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ
