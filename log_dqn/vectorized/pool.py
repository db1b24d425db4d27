"""Trainers side by side, one a core of a CPU."""

import concurrent.futures
import queue
import signal
import threading
from collections.abc import Callable, Sequence

import jax

from log_dqn.cli.progress import Progress
from log_dqn.cli.shell import RunStopped, explain
from log_dqn.run_folder.checkpoints import CheckpointError
from log_dqn.vectorized.training import Trainer, stopped_by


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
        """Initializes the pool.

        Args:
            create_trainers: each is called when there is a device for its trainer.
            devices: one for each trainer that runs at a time; None is JAX's default device.
            progress: of all runs.
        """
        self._progress = progress
        self._create_trainers = create_trainers
        self._num_workers = len(devices)
        self._idle: queue.SimpleQueue[jax.Device | None] = queue.SimpleQueue()
        for device in devices:
            self._idle.put(device)
        self._trainers: set[Trainer] = set()
        self._lock = threading.Lock()
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
        futures = [executor.submit(self._train_on_idle, create) for create in self._create_trainers]
        try:
            left = set(futures)
            while left:
                done, left = concurrent.futures.wait(
                    left, timeout=0.2, return_when=concurrent.futures.FIRST_EXCEPTION
                )
                self._stop_trainers()
                for future in done:
                    try:
                        future.result()
                    except jax.errors.JaxRuntimeError as error:
                        # Neither 1 nor 2: it may pass, and a sweep tries again.
                        reason = f"stopped by the device: {explain(error)}"
                        raise RunStopped(reason, status=3) from error
        finally:
            # One that is just being created sees it when it is there.
            self._stop_signal = self._stop_signal or signal.SIGTERM
            self._stop_trainers()
            executor.shutdown()
            self._progress.close()

    def _stop_trainers(self) -> None:
        if self._stop_signal is not None:
            with self._lock:
                for trainer in self._trainers:
                    trainer.stop(self._stop_signal)

    def _train_on_idle(self, create: Callable[[], Trainer]) -> None:
        device = self._idle.get()
        try:
            with jax.default_device(device):
                self._train(create)
        finally:
            self._idle.put(device)

    def _train(self, create: Callable[[], Trainer]) -> None:
        if self._stop_signal is not None:
            raise stopped_by(self._stop_signal)
        try:
            trainer = create()
        except (CheckpointError, OSError) as error:
            raise RunStopped(f"error: {error}", status=2) from error
        with self._lock:
            self._trainers.add(trainer)
        self._stop_trainers()
        try:
            trainer.train()
        finally:
            with self._lock:
                self._trainers.remove(trainer)
                self.failures += trainer.failures.values()
