"""Where the replay memories of a job fit."""

import bisect
import dataclasses
import functools
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
    """Returns the host's free memory, within what control groups (version 2) leave a process."""
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
        ValueError: if they fit nowhere.
    """
    demand = _Demand(agent, problem, num_actions, room)
    found = demand.place(problem.capacity, num_runs)
    if found is None:
        needed = demand.replay_bytes(problem.capacity, num_runs), demand.beside(num_runs)
        device = "" if room.device is None else f"{room.device / 1e9:.2f} GB of the device and "
        raise ValueError(
            f"capacity is {problem.capacity}; it must be smaller, or the runs fewer: "
            f"with {words.counted(num_runs, 'run')} at a time they take {needed[0] / 1e9:.2f} GB "
            f"for replay memories and {needed[1] / 1e9:.2f} GB beside them, and {device}"
            f"{room.host / 1e9:.2f} GB of the host are free"
        )
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

    # Where some fit, fewer do.
    return bisect.bisect_left(range(1, bound + 1), True, key=lambda number: not fits(number))


def _bytes(tree: object) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
