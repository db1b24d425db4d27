"""Where replay memories are put."""

import re

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


@pytest.mark.parametrize(
    ("num_runs", "device", "host"),
    [(16, 80 * GB, 100 * GB), (16, 80 * GB, 20 * GB), (4, None, 20 * GB)],
)
def test_what_would_fit_is_said_and_fits(num_runs, device, host):
    with pytest.raises(ValueError, match=r"capacity is 1000000; it must be less") as error:
        place(num_runs, device, host)
    match = re.search(r"--capacity=(\d+) or (\d+) runs at a time would fit", str(error.value))
    capacity, runs = int(match[1]), int(match[2])
    place(num_runs, device, host, capacity)
    place(runs, device, host)
    for more in ((num_runs, device, host, capacity + 1), (runs + 1, device, host)):
        with pytest.raises(ValueError, match="it must be less"):
            place(*more)


def test_more_runs_than_any_memory():
    # 0.28 GB beside the replay memory for each of 1,000 runs.
    with pytest.raises(ValueError, match="free; 1 run at a time would fit"):
        place(1000, 10 * GB, 9 * GB)
    with pytest.raises(ValueError, match="nothing would fit"):
        place(1, 1 * GB, 1 * GB)


def test_free_memory_of_this_machine():
    room = memory.free()
    assert 0 < room.host < 2**50
    assert (room.device is None) == (jax.default_backend() == "cpu")
