"""Where replay memories are put."""

import re
from unittest import mock

import jax
import pytest

from log_dqn.vectorized import agents, environments, learner, networks, placement

GB = 10**9
AGENT = agents.VectorizedLogDQNAgent()


def problem(capacity=10**6):
    return learner.Problem(
        networks.nature, environments.FRAME_SHAPE, "uint8", environments.STACK_SIZE, 32, capacity
    )


def place(num_runs, device, host, capacity=10**6):
    return placement.place(AGENT, problem(capacity), 18, num_runs, placement.Room(device, host))


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
    with pytest.raises(ValueError, match=r"capacity is 1000000; it must be what \d+ runs") as error:
        place(num_runs, device, host)
    match = re.search(r"--capacity=(\d+) or (\d+) runs at a time would fit", str(error.value))
    capacity, runs = int(match[1]), int(match[2])
    place(num_runs, device, host, capacity)
    place(runs, device, host)
    for more in ((num_runs, device, host, capacity + 1), (runs + 1, device, host)):
        with pytest.raises(ValueError, match="it must be what"):
            place(*more)


def test_as_many_runs_as_fit_on_the_device():
    room = placement.Room(80 * GB, 500 * GB)
    most = placement.most_runs(AGENT, problem(10**5), 18, room, 1000)
    assert not place(most, 80 * GB, 500 * GB, 10**5).on_host
    assert place(most + 1, 80 * GB, 500 * GB, 10**5).on_host
    # 0.706 GB of memory, 0.065 GB of weights and 0.08 GB for updates each.
    assert 90 < most < 100
    assert placement.most_runs(AGENT, problem(10**5), 18, room, 64) == 64


def test_more_runs_than_any_memory():
    # 0.145 GB beside the replay memory for each of 1,000 runs.
    with pytest.raises(ValueError, match="free; 1 run at a time would fit"):
        place(1000, 10 * GB, 9 * GB)
    with pytest.raises(ValueError, match="nothing would fit"):
        place(1, 1 * GB, 1 * GB)


def test_the_scan_of_the_readme_fits_on_one_device():
    # 150 runs of 100,007 slots of 7,063 bytes; 95% of a device of 139 GiB.
    assert place(150, 0.95 * 139 * 2**30, 500 * GB, 10**5) == (False, 150 * 100_004 * 7063)


def test_what_a_run_takes_beside_its_memory():
    # 16 runs of 1,000 steps: 0.11 GB of memories, 1.04 GB of weights, 1.28 GB for updates.
    assert place(16, None, 3.5 * GB, 1000).replay_bytes == 16 * 1004 * 7063
    with pytest.raises(
        ValueError, match=r"its weights 0\.06 GB and its updates 0\.08 GB, and 2\.30"
    ):
        place(16, None, 2.3 * GB, 1000)


def test_to_the_byte():
    # Reserve, four times the parameters, an update, and 1,000 transitions.
    parameters = sum((
        8 * 8 * 4 * 32 + 32, 4 * 4 * 32 * 64 + 64, 3 * 3 * 64 * 64 + 64, 11 * 11 * 64 * 512 + 512,
        512 * 36 + 36,
    ))  # fmt: skip
    others = GB + 4 * 4 * parameters + 80 * 10**6
    room = others + 1004 * 7063
    assert place(1, room, 0, 1000) == (False, 1004 * 7063)
    with pytest.raises(ValueError, match=r"--capacity=999 would fit"):
        place(1, room - 1, 0, 1000)
    # Fewer transitions than a batch are no way out.
    assert place(1, others + (32 + 4) * 7063, 0, 32).replay_bytes == 36 * 7063
    with pytest.raises(ValueError, match=r"; nothing would fit"):
        place(1, others + (31 + 4) * 7063, 0, 1000)


@pytest.mark.parametrize(
    ("groups", "left"),
    [
        # Version 2: the job's limit is above the task's. 3 GB of 4 are used, 1 of them is cache.
        ("0::/slurm/job_7/task_0\n", 2 * GB),
        # Version 1.
        ("9:name=systemd:/\n4:memory:/docker/a\n3:cpu,cpuacct:/\n0::/\n", 5 * GB),
        ("1:cpu:/\n", 100 * GB),
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
        "/sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes": f"{8 * GB}\n",
        "/sys/fs/cgroup/memory/docker/a/memory.usage_in_bytes": f"{5 * GB}\n",
        "/sys/fs/cgroup/memory/docker/a/memory.stat": f"total_inactive_file {2 * GB}\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}\n",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": f"{50 * GB}\n",
    }
    monkeypatch.setattr(placement, "_read", lambda path: files.get(path, ""))
    assert placement.free().host == pytest.approx(left, abs=1024)


def on_gpu(monkeypatch, statistics):
    device = mock.Mock(platform="gpu", device_kind="NVIDIA X")
    device.memory_stats.return_value = statistics
    monkeypatch.setattr(jax, "devices", lambda: [device])


def test_free_memory_of_a_gpu(monkeypatch):
    on_gpu(monkeypatch, {"bytes_limit": 76 * GB, "bytes_in_use": 2 * GB, "num_allocs": 3})
    assert placement.free().device == 74 * GB


@pytest.mark.parametrize("statistics", [None, {"num_allocs": 3}])
def test_a_gpu_that_does_not_say_what_it_has_is_refused(monkeypatch, statistics):
    on_gpu(monkeypatch, statistics)
    with pytest.raises(ValueError, match="device is 'NVIDIA X'; it must be one that says how much"):
        placement.free()


def test_free_memory_of_this_machine():
    room = placement.free()
    assert 0 < room.host < 2**50
    assert (room.device is None) == (jax.default_backend() == "cpu")
