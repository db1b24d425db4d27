"""The Ray cluster that a sweep runs on: this machine, or the one at an address."""

import functools
import logging
import os
import sys
import threading

from log_dqn import compat
from log_dqn.cli import threads
from log_dqn.cli.shell import explain, started_as

# Read by Ray when it is imported: no report to its makers, no files of results beside ours, no
# tables of its own, no paragraph on each worker that died, and runs as urgent as by hand.
os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1",
    TUNE_GLOBAL_CHECKPOINT_S="3600",
    TUNE_DISABLE_SIGINT_HANDLER="1",
    RAY_AIR_NEW_OUTPUT="0",
    RAY_DEDUP_LOGS_SKIP_REGEX=".",
    RAY_worker_niceness="0",
)
# GPUs are hidden from what asks for none.
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")

import ray
from ray._private import services, utils

# A signal to the sweep's process group is the sweep's to answer: Ray's processes have their own.
# Ray itself keeps SIGINT from them alone.
services.ConsolePopen = functools.partial(  # type: ignore[assignment, misc]
    services.ConsolePopen, start_new_session=True
)

# Seconds to reach a cluster.
_PATIENCE = 30

# Nothing large goes through Ray; it would take 30% of the memory.
_OBJECT_STORE_BYTES = 100 * 2**20


def _refused(address: str, allowed: str) -> str:
    return f"ray_address is {address!r}; it must be {allowed}"


def connect(address: str | None) -> None:
    """Connects to the cluster with a head node at `HOST:PORT`, to which this machine belongs.

    With `auto` that is found, and None uses this machine alone. What does not answer in 30 s ends
    the process, with one line and status 2: Ray itself cannot be told to give up.
    """
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    if address is None:
        try:
            ray.init(
                address="local",
                # Ray counts those of the machine, or of the container.
                num_cpus=min(threads.cores(), int(utils.get_num_cpus())),
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                object_store_memory=_OBJECT_STORE_BYTES,
            )
        except Exception as error:  # Ray raises nothing narrower.
            raise ValueError(f"Ray can't be started: {explain(error)}") from error
        return
    allowed = "the address of a Ray cluster that this machine is a node of"
    stderr = os.dup(2)

    def give_up() -> None:
        message = _refused(address, f"{allowed} (no answer in {_PATIENCE} s)")
        os.write(stderr, f"{started_as('sweep')}: error: {message}\n".encode())
        os._exit(2)

    timer = threading.Timer(_PATIENCE, give_up)
    timer.daemon = True
    timer.start()
    try:
        with compat.quiet():
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(_refused(address, f"{allowed} ({reason})")) from None
    finally:
        timer.cancel()
        os.close(stderr)


def resources(cpus: float, gpus: float | None, default_gpus: float) -> dict[str, float]:
    """Returns the `cpu` and `gpu` of a run; None stands for the default where there are GPUs."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if gpus is None:
        gpus = default_gpus if any(node.get("GPU", 0) for node in nodes) else 0
    for node in nodes:
        if node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus:
            return {"cpu": cpus, "gpu": gpus}
    have = sorted({f"{n.get('CPU', 0):g} CPUs and {n.get('GPU', 0):g} GPUs" for n in nodes})
    raise ValueError(
        f"cpus_per_run is {cpus:g} and gpus_per_run is {gpus:g}; a node must have as much, and "
        f"{'they have' if len(nodes) > 1 else 'this one has'} {'; '.join(have)}"
    )


def disconnect() -> None:
    """Leaves the cluster; one that is this machine alone ends."""
    sys.stdout.flush()
    ray.shutdown()
