"""DQN here, in Dopamine, rejax and purejaxrl on one core, block by block in turn.

All train on MinAtar's Freeway with one network, batches of 32, an update every 4 steps, Adam and a
replay memory of the same size. Several seeds are trained as each is meant to on a core: here one
after the other, by the last two in one program. Dopamine trains one in a process.
"""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

from benchmarks import measuring

ENVIRONMENTS = pathlib.Path("build/peers")
_WORKER = pathlib.Path(__file__).with_name("peer_worker.py")
_CLONE = "https://github.com/luchris429/purejaxrl"

# Those of rejax 0.1.3's own lock file, with which purejaxrl runs too: neither does with gymnax 1.0.
_VERSIONS = (
    "jax==0.5.3 jaxlib==0.5.3 flax==0.10.6 optax==0.2.6 chex==0.1.90 gymnax==0.0.9 "
    "distrax==0.1.5 tensorflow-probability==0.25.0 numpy==1.26.4"
)
# One thread, and the one of JAX 0.5's two runtimes that this package takes too.
_FLAGS = "--xla_cpu_multi_thread_eigen=false --xla_cpu_use_thunk_runtime=false"

PEERS = {
    "DQN, here": ("dqn", ""),
    "LogDQN, here": ("log_dqn", ""),
    "DQN, Dopamine": ("dopamine", ""),
    "DQN, rejax": ("rejax", f"rejax==0.1.3 {_VERSIONS}"),
    "DQN, purejaxrl": ("purejaxrl", f"flashbax==0.1.2 {_VERSIONS}"),
}
"""Contestants: names in `peer_worker`, and what the environment that is made for one holds."""


def interpreter(name: str, requirements: str) -> pathlib.Path:
    """Returns the Python of a peer's environment, which is made where it isn't yet."""
    if not requirements:
        return pathlib.Path(sys.executable)
    folder = ENVIRONMENTS / name
    python, done = folder.absolute() / "bin" / "python", folder / "requirements.txt"
    if not done.is_file() or done.read_text() != requirements:
        print(f"{name}: installing {requirements} into {folder}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *requirements.split()]
        installed = subprocess.run(command, stderr=subprocess.PIPE)
        if installed.returncode:
            raise measuring.ended("pip", installed.stderr)
        done.write_text(requirements)
    return python


class Worker:
    """A contestant's process."""

    def __init__(self, name: str, requirements: str, *arguments: str) -> None:
        """Starts it; its first answer comes when it is compiled and learns."""
        python, self._said = interpreter(name, requirements), tempfile.TemporaryFile()  # noqa: SIM115
        self._name = name
        flags = {"XLA_FLAGS": _FLAGS} if requirements else {}
        self._process = subprocess.Popen(
            [python, _WORKER, name, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True, bufsize=1,
            env={**os.environ, "JAX_PLATFORMS": "cpu", **flags},
        )  # fmt: skip

    def answer(self) -> str:
        """Returns the next line that it prints."""
        assert self._process.stdout
        line = self._process.stdout.readline().strip()
        if not line:
            self._said.seek(0)
            raise measuring.ended(f"{_WORKER.name} {self._name}", self._said.read())
        return line

    def play(self) -> float:
        """Plays a block; returns its agent steps per second of processor time."""
        print(file=self._process.stdin)
        return float(self.answer())

    def stop(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.communicate()


def run(args: argparse.Namespace) -> None:
    """Prints a table for each number of seeds at once."""
    peers, clone = dict(PEERS), args.purejaxrl and args.purejaxrl / "purejaxrl"
    if clone is None:
        print(f"purejaxrl is left out: --purejaxrl must name a clone of {_CLONE}")
        del peers["DQN, purejaxrl"]
    elif not (clone / "dqn.py").is_file():
        raise ValueError(f"--purejaxrl is {str(args.purejaxrl)!r}; it must be a clone of {_CLONE}")
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    for seeds in args.seeds:
        with contextlib.ExitStack() as stack:
            blocks = {}
            for shown, (name, requirements) in peers.items():
                if name == "dopamine" and seeds > 1:
                    continue
                modules = str(clone if name == "purejaxrl" else _WORKER.parents[1])
                worker = Worker(name, requirements, str(seeds), str(args.capacity), modules)
                stack.callback(worker.stop)
                blocks[f"{shown}, {worker.answer()}"] = worker.play
            speeds = measuring.interleave(blocks, args.rounds, "peers", warm_up=0)
        title = f"{seeds} at once, replay memory of {args.capacity:,} transitions"
        measuring.print_table(title, "steps/s", speeds)
