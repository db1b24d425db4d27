"""Platforms that JAX doesn't find."""

import os
import subprocess
import sys
from unittest import mock

import jax
import pytest

from log_dqn.jax import devices


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AssertionError(), "there is none such"),
        (RuntimeError("Unable to initialize\nat"), "Unable to initialize"),
    ],
)
def test_why_there_is_no_device(monkeypatch, error, reason):
    def default_backend():
        raise error

    monkeypatch.setattr(jax, "default_backend", default_backend)
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    with pytest.raises(ValueError) as raised:
        devices.backend()
    assert str(raised.value) == (
        "JAX_PLATFORMS is 'cuda'; it must be left out, or name a platform that JAX finds "
        f"({reason})"
    )


@pytest.mark.parametrize("wanted", [None, ""])
def test_a_device_that_does_not_start_where_none_is_wanted(monkeypatch, wanted):
    monkeypatch.setattr(jax, "default_backend", mock.Mock(side_effect=RuntimeError("no cuDNN\nat")))
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    if wanted is not None:
        monkeypatch.setenv("JAX_PLATFORMS", wanted)
    with pytest.raises(ValueError) as raised:
        devices.backend()
    assert str(raised.value) == (
        "JAX's device doesn't start (no cuDNN); JAX_PLATFORMS=cpu takes the CPU instead"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("train_vectorized", "--games=Pong", "--results_dir"),
        ("train", "--game=Pong", "--agent=jax_log_dqn", "--base_dir"),
    ],
)
def test_a_platform_that_is_not_here_is_refused_in_one_line(tmp_path, arguments):
    program, *options, folder = arguments
    done = subprocess.run(
        [sys.executable, "-m", f"log_dqn.{program}", *options, f"{folder}={tmp_path / 'runs'}"],
        env={**os.environ, "JAX_PLATFORMS": "abacus"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"log_dqn.{program}: error: JAX_PLATFORMS is 'abacus'; it must be " in done.stderr
    assert not (tmp_path / "runs").exists()
