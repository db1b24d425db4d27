"""Decides whether the replay memories of a job are on the device or on the host."""

import bisect
import math
import pathlib
from typing import NamedTuple

import jax

from log_dqn.checks import check
from log_dqn.program import words
from log_dqn.vectorized import agents, replay
from log_dqn.vectorized.learner import Problem

# What a run takes beside its replay memory and its weights while it learns: a batch, activations,
# gradients. The compiler's account says 61 MB for the network of Mnih et al. and a batch of 32 on a
# CPU; convolutions on a GPU may need more.
_WORKSPACE, _WORKSPACE_BATCH_SIZE = 80_000_000, 32
# What the compiler, its libraries and this program take.
_RESERVE = 1_000_000_000


Room = tuple[int | None, int]
"""Free bytes of the device (None for a CPU, which uses the host's memory) and of the host."""


def free() -> Room:
    """Returns the memory that is free now; raises ValueError if the device doesn't say."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        return None, _host_memory()
    statistics = device.memory_stats() or {}
    allowed = "one that says how much memory it has, without an XLA_PYTHON_CLIENT_ALLOCATOR"
    check("device", device.device_kind, "bytes_limit" in statistics, allowed)
    return statistics["bytes_limit"] - statistics["bytes_in_use"], _host_memory()


def _host_memory() -> int:
    """Returns the host's free memory, within the limits of control groups (version 2)."""
    meminfo = dict(line.split(":") for line in _read("/proc/meminfo").splitlines())
    left = [1024 * int(meminfo["MemAvailable"].split()[0])]
    own = pathlib.PurePosixPath(_read("/proc/self/cgroup").strip().rpartition("::")[2])
    for group in (own, *own.parents):
        limit, used, statistics = (
            _read(f"/sys/fs/cgroup{group}/memory.{name}") for name in ("max", "current", "stat")
        )
        if limit.strip().isdecimal():
            cache = dict(map(str.split, statistics.splitlines())).get("inactive_file", 0)
            left.append(int(limit) - int(used) + int(cache))
    return min(left)


def _read(path: str) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


class Placement(NamedTuple):
    """Where replay memories are.

    Attributes:
        on_host: whether the host's memory holds them for a GPU.
        num_runs: how many runs have theirs at a time.
        replay_bytes: size of these together.
    """

    on_host: bool
    num_runs: int
    replay_bytes: int


def _replay_bytes(agent: agents.Agent, problem: Problem, num_actions: int, num_runs: int) -> int:
    """Returns the size of the replay memories of some runs."""
    slots = replay.num_slots(problem.capacity, problem.stack_size, agent.update_horizon)
    shapes = (num_runs, slots), problem.frame_shape, problem.frame_dtype, num_actions
    return _bytes(jax.eval_shape(lambda: replay.create(*shapes)))


def _other_bytes(agent: agents.Agent, problem: Problem, num_actions: int, num_runs: int) -> int:
    """Returns the bytes that some runs need beside their replay memories."""
    params = jax.eval_shape(
        lambda: agent.init(
            problem.network, jax.random.key(0), problem.state_shape, num_actions, num_actions
        )
    )
    # The network, its target network, and the optimizer's two means.
    weights = 4 * _bytes(params)
    workspace = _WORKSPACE * math.ceil(problem.batch_size / _WORKSPACE_BATCH_SIZE)
    return _RESERVE + num_runs * (weights + workspace)


def place(
    agent: agents.Agent,
    problem: Problem,
    num_actions: int,
    num_runs: int,
    room: Room,
    in_turns: bool = False,
) -> Placement:
    """Places a job's replay memories on the device if they fit there, or else on the host.

    Args:
        agent: any of the job's.
        problem: what its runs share.
        num_actions: the largest number of actions of its games.
        num_runs: how many runs are to be trained at a time.
        room: free memory.
        in_turns: whether fewer can be trained at a time, as many as fit on the device.

    Raises:
        ValueError: if they fit nowhere.
    """
    device, host = room
    if in_turns and device is not None:
        num_runs = most_runs(agent, problem, num_actions, room, num_runs) or 1
    needed = _replay_bytes(agent, problem, num_actions, num_runs)
    others = _other_bytes(agent, problem, num_actions, num_runs)
    on_device = (host if device is None else device) - others
    if needed <= on_device:
        return Placement(False, num_runs, needed)
    to_host = device is not None and not in_turns
    if to_host and on_device >= 0 and needed <= host - _RESERVE:
        return Placement(True, num_runs, needed)
    free_there = "" if device is None else f"{device / 1e9:.2f} GB of the device and "
    raise ValueError(
        f"capacity is {problem.capacity}; it must be smaller, or the runs fewer: "
        f"with {words.counted(num_runs, 'run')} at a time they take {needed / 1e9:.2f} GB "
        f"for replay memories and {others / 1e9:.2f} GB beside them, and {free_there}"
        f"{host / 1e9:.2f} GB of the host are free"
    )


def planned_bytes(agent: agents.Agent, problem: Problem, num_actions: int, num_runs: int) -> int:
    """Returns the bytes that some runs need on a device, their replay memories included."""
    others = _other_bytes(agent, problem, num_actions, num_runs)
    return _replay_bytes(agent, problem, num_actions, num_runs) + others


def most_runs(
    agent: agents.Agent, problem: Problem, num_actions: int, room: Room, bound: int
) -> int:
    """Returns how many runs, up to a bound, fit on the device with their memories; see `place`."""
    device, host = room
    free_bytes = host if device is None else device

    def is_full(num_runs: int) -> bool:
        return planned_bytes(agent, problem, num_actions, num_runs) > free_bytes

    # If some number fits, smaller numbers do.
    return bisect.bisect_left(range(1, bound + 1), True, key=is_full)


def _bytes(tree: object) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
