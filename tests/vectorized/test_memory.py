"""Where replay memories are put."""

import jax
import pytest

from log_dqn.vectorized import agents, environments, learner, memory, networks

GB = 10**9
AGENT = agents.VectorizedLogDQNAgent()


def problem(capacity=10**6):
    return learner.Problem(
        networks.nature, environments.FRAME_SHAPE, "uint8", environments.STACK_SIZE, 32, capacity
    )


def place(num_runs, device, host, capacity=10**6):
    return memory.place(AGENT, problem(capacity), 18, num_runs, memory.Room(device, host))


def test_to_the_device_if_they_fit_and_else_to_the_host():
    # A million frames of 84 x 84 bytes, and 7 bytes of age, action, reward and end.
    on_device = place(16, 140 * GB, 500 * GB)
    assert on_device.replay_bytes == 16 * (10**6 + 4) * (84 * 84 + 7)
    assert not on_device.on_host
    assert place(16, 80 * GB, 500 * GB).on_host
    assert not place(2, None, 20 * GB).on_host


def test_what_would_fit_is_said_and_fits():
    for num_runs, device, host in ((16, 80 * GB, 100 * GB), (4, None, 20 * GB)):
        with pytest.raises(ValueError, match=r"capacity is 1000000; it must be less for") as error:
            place(num_runs, device, host)
        words = str(error.value).split()
        capacity = int(next(w for w in words if w.startswith("--capacity=")).split("=")[1])
        runs = int(words[words.index("runs", words.index("or")) - 1])
        assert place(num_runs, device, host, capacity).replay_bytes <= max(device or 0, host)
        with pytest.raises(ValueError, match="it must be less"):
            place(num_runs, device, host, capacity + 1)
        place(runs, device, None if device is None else host) if device else place(runs, None, host)
        with pytest.raises(ValueError, match="it must be less"):
            place(runs + 1, device, host) if device is None else place(runs + 1, device, device)


def test_more_runs_than_any_memory():
    with pytest.raises(ValueError, match="nothing would fit|0 runs|runs at a time"):
        place(1000, 10 * GB, 20 * GB)
    with pytest.raises(ValueError, match="nothing would fit"):
        place(1, 1 * GB, 1 * GB)


def test_free_memory_of_this_machine():
    room = memory.free()
    assert 0 < room.host < 2**50
    assert (room.device is None) == (jax.default_backend() == "cpu")
