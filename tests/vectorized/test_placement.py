"""Where replay memories are put."""

from unittest import mock

import jax
import pytest

from log_dqn.vectorized import agents, environments, learner, networks, placement

GB = 10**9
AGENT = agents.VectorizedLogDQNAgent()


def problem(capacity=10**6):
    return learner.Problem(
        networks.nature, environments.ATARI.frame_shape, "uint8", 4, 32, capacity
    )


def place(num_runs, device, host, capacity=10**6):
    return placement.place(AGENT, problem(capacity), 18, num_runs, (device, host))


def test_to_the_device_if_they_fit_and_else_to_the_host():
    # A million frames of 84 x 84 bytes, and 7 bytes of age, action, reward and end.
    on_device = place(16, 140 * GB, 500 * GB)
    assert on_device.replay_bytes == 16 * (10**6 + 4) * (84 * 84 + 7)
    assert not on_device.on_host
    assert place(16, 80 * GB, 500 * GB).on_host
    assert not place(2, None, 20 * GB).on_host


@pytest.mark.parametrize(
    ("device", "host", "free"),
    [
        (80 * GB, 100 * GB, r"80\.00 GB of the device and 100\.00 GB of the host"),
        (None, 20 * GB, r"and 20\.00 GB of the host"),
    ],
)
def test_what_is_needed_and_what_is_free_is_said(device, host, free):
    # 16 memories of 7.063 GB; 16 times 0.145 GB for weights and updates, and a reserve of 1 GB.
    with pytest.raises(ValueError, match=rf"16 runs .* 113\.01 GB .* 3\.3\d GB .*{free} are free"):
        place(16, device, host)


def test_as_many_runs_as_fit_on_the_device():
    room = (80 * GB, 500 * GB)
    most = placement.most_runs(AGENT, problem(10**5), 18, room, 1000)
    assert not place(most, 80 * GB, 500 * GB, 10**5).on_host
    assert place(most + 1, 80 * GB, 500 * GB, 10**5).on_host
    # 0.706 GB of memory, 0.065 GB of weights and 0.08 GB for updates each.
    assert 90 < most < 100
    assert placement.most_runs(AGENT, problem(10**5), 18, room, 64) == 64


def test_the_scan_of_the_readme_fits_on_one_device():
    # 150 runs of 100,007 slots of 7,063 bytes; 95% of a device of 139 GiB.
    assert place(150, 0.95 * 139 * 2**30, 500 * GB, 10**5) == (False, 150, 150 * 100_004 * 7063)


def test_what_a_run_takes_beside_its_memory():
    # 16 runs of 1,000 steps: 0.11 GB of memories, 1.04 GB of weights, 1.28 GB for updates.
    assert place(16, None, 3.5 * GB, 1000).replay_bytes == 16 * 1004 * 7063
    with pytest.raises(ValueError, match=r"0\.11 GB .* 3\.3\d GB"):
        place(16, None, 3.4 * GB, 1000)


def test_to_the_byte():
    # Reserve, four times the parameters, an update, and 1,000 transitions.
    parameters = sum((
        8 * 8 * 4 * 32 + 32, 4 * 4 * 32 * 64 + 64, 3 * 3 * 64 * 64 + 64, 11 * 11 * 64 * 512 + 512,
        512 * 36 + 36,
    ))  # fmt: skip
    others = GB + 4 * 4 * parameters + 80 * 10**6
    room = others + 1004 * 7063
    assert place(1, room, 0, 1000) == (False, 1, 1004 * 7063)
    with pytest.raises(ValueError, match="capacity is 1000; it must be smaller"):
        place(1, room - 1, 0, 1000)
    assert place(1, room - 1, 0, 999) == (False, 1, 1003 * 7063)


@pytest.mark.parametrize(
    ("groups", "left"),
    [
        # Version 2: the job's limit is above the task's. 3 GB of 4 are used, 1 of them is cache.
        ("0::/slurm/job_7/task_0\n", 2 * GB),
        ("0::/\n", 100 * GB),
        ("4:memory:/a\n1:cpu:/\n", 100 * GB),
    ],
)
def test_limits_of_control_groups(monkeypatch, groups, left):
    files = {
        "/proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {100 * GB // 1024} kB\n",
        "/proc/self/cgroup": groups,
        "/sys/fs/cgroup/slurm/job_7/task_0/memory.max": "max\n",
        "/sys/fs/cgroup/slurm/job_7/task_0/memory.current": f"{2 * GB}\n",
        "/sys/fs/cgroup/slurm/job_7/memory.max": f"{4 * GB}\n",
        "/sys/fs/cgroup/slurm/job_7/memory.current": f"{3 * GB}\n",
        "/sys/fs/cgroup/slurm/job_7/memory.stat": f"anon {2 * GB}\ninactive_file {GB}\n",
    }
    monkeypatch.setattr(placement, "_read", lambda path: files.get(path, ""))
    assert placement.free()[1] == pytest.approx(left, abs=1024)


def on_gpu(monkeypatch, statistics):
    device = mock.Mock(platform="gpu", device_kind="NVIDIA X")
    device.memory_stats.return_value = statistics
    monkeypatch.setattr(jax, "devices", lambda: [device])


def test_free_memory_of_a_gpu(monkeypatch):
    on_gpu(monkeypatch, {"bytes_limit": 76 * GB, "bytes_in_use": 2 * GB, "num_allocs": 3})
    assert placement.free()[0] == 74 * GB


@pytest.mark.parametrize("statistics", [None, {"num_allocs": 3}])
def test_a_gpu_that_does_not_say_what_it_has_is_refused(monkeypatch, statistics):
    on_gpu(monkeypatch, statistics)
    with pytest.raises(ValueError, match="device is 'NVIDIA X'; it must be one that says how much"):
        placement.free()


def test_free_memory_of_this_machine():
    device, host = placement.free()
    assert 0 < host < 2**50
    assert (device is None) == (jax.default_backend() == "cpu")
