"""Where the replay memories of a job fit."""

import bisect
import dataclasses
import functools
import math
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax

from log_dqn.checks import check
from log_dqn.program import words
from log_dqn.vectorized import agents, replay
from log_dqn.vectorized.learner import Problem

# What a run takes beside its replay memory and its weights while it learns: a batch, activations,
# gradients. The compiler's account says 61 MB for the network of Mnih et al. and a batch of 32 on a
# CPU; convolutions on a GPU may want more.
_WORKSPACE, _WORKSPACE_BATCH_SIZE = 80_000_000, 32
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
    """Returns the memory that is free now; raises ValueError if the device doesn't say."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        return Room(None, _host_memory())
    statistics = device.memory_stats() or {}
    allowed = "one that says how much memory it has, without an XLA_PYTHON_CLIENT_ALLOCATOR"
    check("device", device.device_kind, "bytes_limit" in statistics, allowed)
    return Room(statistics["bytes_limit"] - statistics["bytes_in_use"], _host_memory())


def _host_memory() -> int:
    """Returns the host's free memory, within what a container may use."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
    return min([available, *_left_in_cgroups()])


# Of each version of control groups: where the folders are, the files of the limit and of what is
# used, and the part of that which is given back when it is wanted.
_CGROUPS = {
    "": ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": (
        "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}  # fmt: skip


def _left_in_cgroups() -> Iterator[int]:
    """Yields what is left of the limits of the process's control groups, in bytes."""
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, own = line.split(":", 2)
        kind = "memory" if "memory" in controllers.split(",") else controllers
        if kind not in _CGROUPS:
            continue
        root, limit_name, used_name, reclaimable_name = _CGROUPS[kind]
        path = pathlib.PurePosixPath(own)
        for group in (path, *path.parents):
            folder = f"{root}{group}".rstrip("/")
            limit, used = (_read(f"{folder}/{name}").strip() for name in (limit_name, used_name))
            if not (limit.isdecimal() and used.isdecimal()):
                continue
            statistics = dict(
                entry.split(" ", 1) for entry in _read(f"{folder}/memory.stat").splitlines()
            )
            yield int(limit) - int(used) + int(statistics.get(reclaimable_name, 0))


def _read(path: str) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


class Placement(NamedTuple):
    """Where replay memories lie.

    Attributes:
        on_host: whether in the host's memory although there is a device's.
        replay_bytes: size of all of them.
    """

    on_host: bool
    replay_bytes: int


@dataclasses.dataclass(frozen=True)
class _Demand:
    """What a job's runs take, beside the memory that is free; see `place`."""

    agent: agents.Agent
    problem: Problem
    num_actions: int
    room: Room

    def replay_bytes(self, capacity: int, runs: int) -> int:
        """Returns the size of the replay memories of some runs."""
        problem = self.problem
        slots = replay.num_slots(capacity, problem.stack_size, self.agent.update_horizon)
        create = functools.partial(
            replay.create, (runs, slots), problem.frame_shape, problem.frame_dtype
        )
        return _bytes(jax.eval_shape(create))

    @functools.cached_property
    def weights(self) -> int:
        """Bytes of a run's network, its target network, and the optimizer's two means."""
        problem, actions = self.problem, self.num_actions
        params = jax.eval_shape(
            lambda: self.agent.init(
                problem.network, jax.random.key(0), problem.state_shape, actions, actions
            )
        )
        return 4 * _bytes(params)

    @property
    def workspace(self) -> int:
        """Bytes that a run takes beside these while it learns."""
        return _WORKSPACE * math.ceil(self.problem.batch_size / _WORKSPACE_BATCH_SIZE)

    def beside(self, runs: int) -> int:
        """Returns what some runs take beside their replay memories."""
        return _RESERVE + runs * (self.weights + self.workspace)

    def place(self, capacity: int, runs: int) -> Placement | None:
        """Returns where the memories of some runs fit, None if nowhere."""
        room, needed = self.room, self.replay_bytes(capacity, runs)
        device = room.host if room.device is None else room.device
        on_device = device - self.beside(runs)
        if needed <= on_device:
            return Placement(False, needed)
        if room.device is not None and on_device >= 0 and needed <= room.host - _RESERVE:
            return Placement(True, needed)
        return None

    def refusal(self, num_runs: int) -> str:
        """Returns why some runs fit nowhere, and what would fit."""
        problem = self.problem
        would = []
        capacity = _largest(lambda n: self.place(n, num_runs) is not None, problem.capacity)
        if capacity >= problem.batch_size:
            would.append(f"--capacity={capacity}")
        runs = _largest(lambda n: self.place(problem.capacity, n) is not None, num_runs)
        if runs:
            would.append(f"{words.counted(runs, 'run')} at a time")
        places = [(self.room.device, "device"), (self.room.host, "host")]
        free_memory = " and ".join(
            f"{size / 1e9:.2f} GB of the {name}" for size, name in places if size is not None
        )
        return (
            f"capacity is {problem.capacity}; it must be what "
            f"{words.counted(num_runs, 'run at a time has', 'runs at a time have')} room for: a "
            "run's replay memory takes "
            f"{self.replay_bytes(problem.capacity, 1) / 1e9:.2f} GB, its weights "
            f"{self.weights / 1e9:.2f} GB and its updates {self.workspace / 1e9:.2f} GB, and "
            f"{free_memory} are free; {' or '.join(would) or 'nothing'} would fit"
        )


def place(
    agent: agents.Agent, problem: Problem, num_actions: int, num_runs: int, room: Room
) -> Placement:
    """Works out where a job's replay memories fit: on the device if possible, or else on the host.

    Args:
        agent: an agent of the job.
        problem: what it learns from.
        num_actions: the largest number of actions of its games.
        num_runs: number of runs.
        room: memory that is free.

    Raises:
        ValueError: if they fit nowhere; the message says what would.
    """
    demand = _Demand(agent, problem, num_actions, room)
    found = demand.place(problem.capacity, num_runs)
    if found is None:
        raise ValueError(demand.refusal(num_runs))
    return found


def planned_bytes(agent: agents.Agent, problem: Problem, num_actions: int, num_runs: int) -> int:
    """Returns what `place` takes some runs to want of a device that has their memories too."""
    demand = _Demand(agent, problem, num_actions, Room(None, 0))
    return demand.replay_bytes(problem.capacity, num_runs) + demand.beside(num_runs)


def most_runs(
    agent: agents.Agent, problem: Problem, num_actions: int, room: Room, bound: int
) -> int:
    """Returns how many runs, up to a bound, fit on the device with their memories; see `place`."""
    demand = _Demand(agent, problem, num_actions, room)

    def fits(num_runs: int) -> bool:
        found = demand.place(problem.capacity, num_runs)
        return found is not None and not found.on_host

    return _largest(fits, bound + 1)


def _largest(fits: Callable[[int], bool], bound: int) -> int:
    """Returns the largest number below a bound that fits, if smaller ones fit too; 0 if none."""
    return bisect.bisect_left(range(1, bound), True, key=lambda number: not fits(number))


def _bytes(tree: object) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
