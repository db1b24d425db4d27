"""Platforms that JAX doesn't find, and devices whose programs run at the same time."""

from unittest import mock

import jax
import pytest

from log_dqn.jax import devices
from tests.programs import python

NOT_FOUND = "JAX_PLATFORMS is 'cuda'; it must be left out, or name a platform that JAX finds"
NO_START = "JAX's device doesn't start (no cuDNN); JAX_PLATFORMS=cpu takes the CPU instead"


@pytest.mark.parametrize(
    ("wanted", "error", "said"),
    [
        ("cuda", AssertionError(), f"{NOT_FOUND} (there is none such)"),
        ("cuda", RuntimeError("Unable to initialize\nat"), f"{NOT_FOUND} (Unable to initialize)"),
        (None, RuntimeError("no cuDNN\nat"), NO_START),
        ("", RuntimeError("no cuDNN\nat"), NO_START),
    ],
)
def test_why_there_is_no_device(monkeypatch, wanted, error, said):
    monkeypatch.setattr(jax, "default_backend", mock.Mock(side_effect=error))
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    if wanted is not None:
        monkeypatch.setenv("JAX_PLATFORMS", wanted)
    with pytest.raises(ValueError) as raised:
        devices.backend()
    assert str(raised.value) == said


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("train_vectorized", "--games=Pong", "--results_dir"),
        ("train", "--game=Pong", "--agent=jax_log_dqn", "--base_dir"),
    ],
)
def test_a_platform_that_is_not_here_is_refused_in_one_line(tmp_path, arguments):
    program, *options, folder = arguments
    options.append(f"{folder}={tmp_path / 'runs'}")
    done = python("-m", f"log_dqn.{program}", *options, env={"JAX_PLATFORMS": "abacus"})
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"log_dqn.{program}: error: JAX_PLATFORMS is 'abacus'; it must be " in done.stderr
    assert not (tmp_path / "runs").exists()


def test_no_further_clients_off_the_cpu(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert devices.side_by_side(2) == [None, None]


# Two programs that wait for each other, beside a product, which a client's own thread computes. The
# callback takes no array: JAX would move it to the first client, whose thread may be waiting.
_MEETING = """
import concurrent.futures
import threading

from log_dqn.cli import threads

threads.limit(1)

import jax
import numpy as np

from log_dqn.jax import devices

jax.config.update("jax_cpu_enable_async_dispatch", False)
meeting = threading.Barrier(2)


def meet():
    meeting.wait()
    return np.float32(0)


@jax.jit
def program(x):
    return x @ x + jax.pure_callback(meet, jax.ShapeDtypeStruct((), np.float32))


def run(device, number):
    with jax.default_device(device):
        return np.asarray(program(np.full((256, 256), number, np.float32)))


with concurrent.futures.ThreadPoolExecutor(2) as executor:
    for result in executor.map(run, devices.side_by_side(2), [1, 2]):
        print(result.min(), result.max())
"""


@pytest.mark.skipif(
    jax.__version_info__ < (0, 7), reason="JAX 0.6 has a runtime whose programs take no turns"
)
def test_programs_on_devices_side_by_side_do_not_take_turns():
    done = python("-c", _MEETING)
    assert done.stdout == "256.0 256.0\n1024.0 1024.0\n", done.stderr
