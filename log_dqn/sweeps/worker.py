"""The Ray Tune trainable that runs one job at a time in a process of its own."""

import contextlib
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import ray
from ray import tune

from log_dqn.cli import device_memory, progress, threads
from log_dqn.cli.shell import REPAIR
from log_dqn.run_folder import layout, lock
from log_dqn.sweeps import plan, tethered

# Seconds between two looks at a process.
_PERIOD = 2

# Seconds that a process has to stop after SIGTERM. Tune waits five for its workers.
_STOPPING = 3

# Seconds that a process of a worker that died has to let go of its runs. A network file system
# may hold the lock of a lost machine for 90.
_LETTING_GO = 120


class Worker(tune.Trainable):
    """Runs one job; Tune starts it again, here or on another node, when it dies.

    Its results have `progress`, a `plan.RunProgress` for each run of the job, `fraction` and
    `steps_per_second`, the process's own `cli.progress.Status`, `failure`: None, or why the
    job can't be done and should not be tried again, and `death`: None, or how the process died.
    After a death the next step raises a RuntimeError with it.
    """

    def setup(
        self,
        config: dict[str, Any],
        jobs: Sequence[plan.Job] = (),
        cpus: float = 1,
        gpus: float = 0,
        started_in: str = "",
    ) -> None:
        """Takes the first job, whose index among all jobs is in `config`.

        Its process runs in the folder in which the sweep was started, if this node has it, to find
        the modules that gin files and `--env` name. It has a thread for each CPU in Ray's count, at
        least one.
        """
        self._jobs = jobs
        # Ray counts all CPUs of the machine; a process may be limited to some.
        self._threads = min(max(1, int(cpus)), threads.cores())
        self._gpus = gpus
        self._folder = started_in if os.path.isdir(started_in) else None
        self._take(jobs[config["job"]])

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Takes the next job in the same worker."""
        self.cleanup()
        self._take(self._jobs[new_config["job"]])
        return True

    def _take(self, job: plan.Job) -> None:
        # Started with the first step: Tune may set two workers up for a job, and use one.
        self._process: subprocess.Popen | None = None
        self._job = job
        self._death: str | None = None
        self._numbers = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
        self._logs_seen: dict[pathlib.Path, Any] = {}
        self._progress = [plan.progress_of(run) for run in job.runs]

    def _start(self) -> subprocess.Popen:
        job = self._job
        end = time.monotonic() + _LETTING_GO
        for run in job.runs:
            _wait_until_free(run.folder, end)
        command = [sys.executable, *job.arguments, f"--threads={self._threads}"]
        job.output.parent.mkdir(parents=True, exist_ok=True)
        node = ray.get_runtime_context().get_node_id()
        with open(job.output, "a", encoding="utf-8") as output:
            output.write(f"# on {socket.gethostname()} (Ray node {node}): {shlex.join(command)}\n")
            output.flush()
            self._printed = output.tell()
            numbers = self._numbers.fileno()
            return subprocess.Popen(
                [sys.executable, tethered.__file__, str(os.getpid()), *command],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**_environment(self._gpus), progress.FILE_VARIABLE: str(numbers)},
                pass_fds=[numbers],
            )

    def step(self) -> dict[str, Any]:
        """Starts the process, or waits a little for its end, and returns the job's state."""
        if self._death is not None:
            raise RuntimeError(self._death)
        if self._process is None:
            try:
                self._process = self._start()
            except OSError as error:
                return self._state(f"can't be started: {error}", done=True)
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PERIOD)
        status = self._process.returncode
        self._read_logs()
        failure = None if status is None else self._failure(status)
        return self._state(failure, done=status is not None and self._death is None)

    def _state(self, failure: str | None, done: bool) -> dict[str, Any]:
        return {
            "progress": self._progress,
            **progress.read(self._numbers.fileno())._asdict(),
            "failure": failure,
            "death": self._death,
            "done": done,
        }

    def _failure(self, status: int) -> str | None:
        if status == 0:
            missing = [run.name for run in self._job.runs if not plan.is_complete(run)]
            return f"ended without the iterations of {', '.join(missing)}" if missing else None
        lines = self._last_lines()
        own = [re.match(r"log_dqn\.\w+: (?:error: )?(.*)", line) for line in lines]
        # The traceback of a user's environment, which may work the next time, follows its line.
        faults = [match[1] for match in own if match and match[1].endswith(REPAIR)]
        why = own[-1][1] if own[-1] else [lines[-1], *faults][-1]
        # A bad setting, or a loss that is not finite, or a full disk, would only come again.
        if status == 2 or (status == 1 and own[-1]):
            return why
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        self._death = f"ended {how}" + (f": {why}" if status > 0 else "")
        with (
            contextlib.suppress(OSError),  # a full disk, of which the process may have died
            open(self._job.output, "a", encoding="utf-8") as output,
        ):
            output.write(f"# {self._death}\n")
        return None

    def _read_logs(self) -> None:
        """Reads the logs of runs that have finished an iteration since the last look."""
        for index, run in enumerate(self._job.runs):
            try:
                newest = layout.logs(run.folder)[0]
                version = newest, newest.stat().st_mtime_ns
            except (OSError, IndexError):  # none yet, or just removed
                continue
            if self._logs_seen.get(run.folder) != version:
                self._logs_seen[run.folder] = version
                self._progress[index] = plan.progress_of(run)

    def _last_lines(self) -> list[str]:
        """Returns the last lines that the process printed, at least one."""
        with open(self._job.output, "rb") as output:
            end = output.seek(0, os.SEEK_END)
            output.seek(max(self._printed, end - 20_000))
            text = output.read().decode(errors="replace").strip()
        return [line.strip() for line in text.splitlines()] or ["no output"]

    def cleanup(self) -> None:
        """Stops the process, whose runs can be resumed."""
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOPPING)
            process.kill()
            process.wait()


def _wait_until_free(folder: pathlib.Path, end: float) -> None:
    """Waits, until a time at most, for the process of a worker that died to let go of its run.

    If another holds the run for long, the program itself says so.
    """
    while (folder / lock.NAME).exists() and time.monotonic() < end:
        try:
            with lock.hold(folder):
                return
        except ValueError:
            time.sleep(0.5)


def _environment(gpus: float) -> dict[str, str]:
    """Returns the environment of a training process."""
    # Other nodes find the package where this one has it, or installed.
    root = str(pathlib.Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    if 0 < gpus < 1:
        # JAX would take three quarters of the GPU's memory at once.
        environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        device_memory.limit(environment, gpus)
    return environment
