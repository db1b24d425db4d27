"""Where the replay memories of a job fit."""

import os
import pathlib
from typing import NamedTuple

import jax

from log_dqn.mapping import check
from log_dqn.vectorized import agents, replay
from log_dqn.vectorized.learner import Problem

# What a run takes beside its replay memory and its weights while it learns: activations, their
# gradients and a batch. Estimated for the network of Mnih et al. and a batch of 32.
_WORKSPACE = 200_000_000
# What the compiler, its libraries and this program take.
_RESERVE = 1_000_000_000


class Room(NamedTuple):
    """Memory that is free for a job, in bytes.

    Attributes:
        device: of the device; None where it computes in the host's memory.
        host: of the host.
    """

    device: int | None
    host: int


def free() -> Room:
    """Returns the memory that is free now."""
    device = jax.devices()[0]
    statistics = device.memory_stats() if device.platform != "cpu" else None
    on_device = statistics["bytes_limit"] - statistics["bytes_in_use"] if statistics else None
    return Room(on_device, _host_memory())


def _host_memory() -> int:
    """Returns the host's free memory, within what a container may use."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
    limit, used = (_read(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if limit.isdecimal() and used.isdecimal():
        available = min(available, int(limit) - int(used))
    return available


def _read(path: str) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


class Place(NamedTuple):
    """Where replay memories lie.

    Attributes:
        on_host: whether in the host's memory although there is a device's.
        replay_bytes: size of all of them.
    """

    on_host: bool
    replay_bytes: int


def place(
    agent: agents.Agent, problem: Problem, num_actions: int, num_runs: int, room: Room
) -> Place:
    """Works out where a job's replay memories fit.

    Args:
        agent: an agent of the job.
        problem: what it learns from.
        num_actions: the largest number of actions of its games.
        num_runs: number of runs.
        room: memory that is free.

    Returns:
        Where they go: to the device if they fit, or else to the host.

    Raises:
        ValueError: if they fit nowhere; the message says what would.
    """

    def slots(capacity: int) -> int:
        return replay.num_slots(capacity, problem.stack_size, agent.update_horizon)

    def size(capacity: int, runs: int) -> int:
        memory = jax.eval_shape(
            lambda: replay.create((runs, slots(capacity)), problem.frame_shape, problem.frame_dtype)
        )
        return _bytes(memory)

    params = jax.eval_shape(
        lambda: agent.init(
            problem.network, jax.random.key(0), problem.state_shape, num_actions, num_actions
        )
    )
    # The network, the target network, the optimizer's two means, and gradients.
    per_run = 5 * _bytes(params) + _WORKSPACE
    replay_bytes = size(problem.capacity, num_runs)
    device = room.host if room.device is None else room.device
    device_left = device - _RESERVE - num_runs * per_run
    if replay_bytes <= device_left:
        return Place(False, replay_bytes)
    left = [device_left]
    if room.device is not None:
        host_left = room.host - _RESERVE
        if replay_bytes <= host_left and device_left >= 0:
            return Place(True, replay_bytes)
        if device_left >= 0:
            left.append(host_left)
    step_bytes = size(1, num_runs) // slots(1)
    capacity = max(left) // step_bytes - slots(0)
    fewer = (device - _RESERVE) // (per_run + size(problem.capacity, 1))
    fits = [f"--capacity={capacity}"] if capacity > problem.batch_size else []
    fits += [f"{fewer} runs at a time"] if fewer > 0 else []
    check(
        "capacity",
        problem.capacity,
        False,
        f"less for {num_runs} runs: they need {_gigabytes(replay_bytes + num_runs * per_run)}, and "
        f"{_gigabytes(device)} are free; "
        + (f"{' or '.join(fits)} would fit" if fits else "nothing would fit"),
    )
    raise AssertionError


def _bytes(tree: object) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
