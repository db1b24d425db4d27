"""Trains a job's runs side by side: one a core of a CPU, or as many as fit into a GPU's memory."""

import concurrent.futures
import pathlib
import queue
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax

from log_dqn.checks import check
from log_dqn.cli import words
from log_dqn.cli.progress import Progress
from log_dqn.cli.shell import RunStopped, explain
from log_dqn.run_folder.checkpoints import CheckpointError
from log_dqn.vectorized import agents, replay
from log_dqn.vectorized.learner import Problem
from log_dqn.vectorized.training import Trainer, stopped_by

# What an update takes beside gradients, in units of what the network computes of a batch. By the
# compiler's account for a CPU it is 0.4 to 1.2, with the package's networks and batches of 32 to
# 8,000; convolutions on a GPU may need more.
_UPDATE = 2
RESERVE = 1_000_000_000
"""Bytes that the compiler, its libraries and this program take beside all runs."""


def free_memory() -> int:
    """Returns the free bytes of the device, or of the host for a CPU.

    Raises:
        ValueError: if the device doesn't say.
    """
    device = jax.devices()[0]
    if device.platform == "cpu":
        return _host_memory()
    statistics = device.memory_stats() or {}
    allowed = "one that says how much memory it has, without an XLA_PYTHON_CLIENT_ALLOCATOR"
    check("device", device.device_kind, "bytes_limit" in statistics, allowed)
    return int(statistics["bytes_limit"] - statistics["bytes_in_use"])


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
    """How many runs are trained at a time, and the bytes of their replay memories together."""

    num_runs: int
    replay_bytes: int


def needed(agent: agents.Agent, problem: Problem, num_actions: int) -> tuple[int, int]:
    """Returns the bytes of a run's replay memory, and of what it takes beside that.

    `agent` is any of the runs', and `num_actions` the largest number of actions of their games.
    """
    slots = replay.num_slots(problem.capacity, problem.stack_size, agent.update_horizon)
    shapes = (slots,), problem.frame_shape, problem.frame_dtype, num_actions
    memory = _bytes(jax.eval_shape(lambda: replay.create(*shapes)))
    of_network = problem.state_shape, num_actions, num_actions
    params = jax.eval_shape(
        lambda: agents.initial_params(
            agent.head_inits, problem.network, jax.random.key(0), *of_network
        )
    )
    states = jax.ShapeDtypeStruct((problem.batch_size, *problem.state_shape), problem.frame_dtype)
    computed = jax.make_jaxpr(problem.network.apply)(params, states)
    workspace = _UPDATE * _bytes([*_results(computed.jaxpr)])
    # The network, its target network, the gradients, and the optimizer's two means.
    return memory, 5 * _bytes(params) + workspace


def _results(program: Any) -> Iterator[Any]:
    """Yields the shapes of what JAX computes in a program, those it calls (jit, remat) included."""
    for step in program.eqns:
        called = [getattr(value, "jaxpr", value) for value in jax.tree.leaves(step.params)]
        inner = [value for value in called if hasattr(value, "eqns")]
        for value in inner:
            yield from _results(value)
        if not inner:
            yield from (result.aval for result in step.outvars)


def _bytes(arrays: Any) -> int:
    """Returns the bytes of arrays, in any nesting, that are given by their shapes."""
    return sum(array.size * array.dtype.itemsize for array in jax.tree.leaves(arrays))


def place(
    agent: agents.Agent,
    problem: Problem,
    num_actions: int,
    num_runs: int,
    free_bytes: int,
    in_turns: bool,
) -> Placement:
    """Returns how many runs are trained at a time, and what their replay memories take.

    Args:
        agent: as the next two, of `needed`.
        problem: what the runs share.
        num_actions: the largest number of actions.
        num_runs: how many runs are to be trained at a time.
        free_bytes: free memory.
        in_turns: whether fewer can be trained at a time, as many as fit.

    Raises:
        ValueError: if they don't fit.
    """
    memory, beside = needed(agent, problem, num_actions)
    if in_turns:
        num_runs = max(1, min(num_runs, int(free_bytes - RESERVE) // (memory + beside)))
    memories, others = num_runs * memory, RESERVE + num_runs * beside
    if memories + others > free_bytes:
        fewer = f", or --threads below {num_runs}" * (num_runs > 1)
        # A batch may be too large whatever the capacity is.
        what = "batch_size" if others > free_bytes else "capacity"
        raise ValueError(
            f"{what} is {getattr(problem, what)}; it must be smaller{fewer}: "
            f"with {words.counted(num_runs, 'run')} at a time they take {memories / 1e9:.2f} GB "
            f"for replay memories and {others / 1e9:.2f} GB beside them, and "
            f"{free_bytes / 1e9:.2f} GB are free"
        )
    return Placement(num_runs, memories)


class Pool:
    """Trainers that run side by side, as many at a time as there are devices.

    Attributes:
        failures: why runs were left out.
    """

    def __init__(
        self,
        create_trainers: Sequence[Callable[[], Trainer]],
        devices: Sequence[jax.Device | None],
        progress: Progress,
    ) -> None:
        """Takes what creates each trainer, and the progress of all runs.

        There is a device for each trainer that runs at a time; None is JAX's default device.
        """
        self._progress = progress
        self._create_trainers = create_trainers
        self._num_workers = len(devices)
        self._idle: queue.SimpleQueue[jax.Device | None] = queue.SimpleQueue()
        for device in devices:
            self._idle.put(device)
        self._stop_signal: int | None = None
        self.failures: list[str] = []

    def stop(self, signal_number: int) -> None:
        """Makes `train` raise RunStopped soon, for a signal handler."""
        self._stop_signal = signal_number

    def train(self) -> None:
        """Runs all trainers; if one can't go on, all stop.

        Raises:
            RunStopped: if a file can't be written, a checkpoint doesn't fit, the device fails (for
                example, out of memory), or `stop` was called. The checkpoints of finished
                iterations are intact.
        """
        self._progress.show()
        executor = concurrent.futures.ThreadPoolExecutor(self._num_workers)
        futures = [executor.submit(self._train, create) for create in self._create_trainers]
        try:
            for future in concurrent.futures.as_completed(futures):
                self.failures += future.result()
        except jax.errors.JaxRuntimeError as error:
            if "calling callback" in str(error):
                # Behind the last line of a traceback.
                last = re.split(r"^ .*\n", str(error), flags=re.MULTILINE)[-1]
                said = " ".join(["error: a callback of the environment failed:", *last.split()])
                raise RunStopped(said, status=2) from error
            # Neither 1 nor 2: it may pass, and a sweep tries again.
            raise RunStopped(f"stopped by the device: {explain(error)}", status=3) from error
        finally:
            self._stop_signal = self._stop_signal or signal.SIGTERM
            executor.shutdown()
            self._progress.close()

    def _train(self, create: Callable[[], Trainer]) -> list[str]:
        """Creates and runs a trainer on an idle device; returns why runs were left out."""
        if self._stop_signal is not None:
            raise stopped_by(self._stop_signal)
        device = self._idle.get()
        try:
            with jax.default_device(device):
                trainer = create()
                trainer.train(lambda: self._stop_signal)
        except (CheckpointError, OSError) as error:
            raise RunStopped(f"error: {error}", status=2) from error
        finally:
            self._idle.put(device)
        return list(trainer.failures.values())
