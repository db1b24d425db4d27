"""Kills a small real training run at random moments, and checks that it always comes back.

    python -m tests.crash --kills=200

A trial starts a run of Centipede, kills it with SIGKILL at a random moment (every second trial
while a checkpoint is being written), starts it again, and checks that it resumes after the
newest finished checkpoint and ends with the same returns, replay memory and weights as a run
that was left alone. Exit status 0 if every run did, and no kill cost more than the iteration it
fell into.
"""

import argparse
import os
import pathlib
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
from typing import Any

from tqdm import tqdm

from log_dqn import compat, train
from log_dqn.run_folder import checkpoints

with compat.quiet():
    # Imported before the runs are forked, which saves each the seconds that it takes.
    from log_dqn.single import runner  # noqa: F401

ITERATIONS = 3
ARGUMENTS = [
    "--game=Centipede",
    "--seed=1",
    f"--gin_bindings=Runner.num_iterations={ITERATIONS}",
    "--gin_bindings=Runner.training_steps=60",
    "--gin_bindings=Runner.evaluation_steps=20",
    "--gin_bindings=Runner.max_steps_per_episode=20",
    "--gin_bindings=LogDQNAgent.min_replay_history=20",
    "--gin_bindings=LogDQNAgent.target_update_period=40",
    "--gin_bindings=LogDQNAgent.epsilon_decay_period=40",
    "--gin_bindings=WrappedReplayBuffer.replay_capacity=200",
    "--gin_bindings=WrappedReplayBuffer.batch_size=8",
]


def start(base_dir: pathlib.Path, output: pathlib.Path) -> int:
    """Starts a run in a process of its own, its output in a file; returns the process."""
    process = os.fork()
    if process:
        return process
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    try:
        os._exit(train.main([f"--base_dir={base_dir}", *ARGUMENTS]))
    finally:
        os._exit(70)


def wait(process: int) -> int:
    """Waits for a process; returns its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def finished_lines(output: pathlib.Path) -> list[int]:
    """Returns the iterations, from 0, whose lines a run has printed."""
    lines = output.read_text().splitlines()
    return [int(line.split()[1].split("/")[0]) - 1 for line in lines if line[:10] == "iteration "]


def outcome(base_dir: pathlib.Path) -> dict[str, Any]:
    """Returns a finished run's returns, and the checksums of its replay memory and weights."""
    log = pickle.loads((base_dir / "logs" / f"log_{ITERATIONS - 1}").read_bytes())
    manifest = checkpoints.read_manifest(base_dir / "checkpoints" / str(ITERATIONS - 1))
    return {
        **{
            f"{iteration} {key}": values
            for iteration, statistics in log.items()
            for key, values in statistics.items()
            if "_episode_" in key
        },
        # The log and the collector hold how fast the machine was.
        **{
            name: file
            for name, file in manifest["files"].items()
            if name not in ("log.json", "collector.json")
        },
    }


def kill_somewhere(
    process: int, root: pathlib.Path, rng: random.Random, seconds: float, saving: bool
) -> None:
    """Kills a run.

    Args:
        process: the run.
        root: its folder of checkpoints.
        rng: decides the moment.
        seconds: how long a run takes.
        saving: whether to wait for a checkpoint that is being written.
    """
    if saving:
        aside = root / f".writing-{rng.randrange(ITERATIONS)}"
        deadline = time.monotonic() + 10 * seconds
        while not aside.exists() and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(rng.uniform(0, 0.1))
    else:
        time.sleep(rng.uniform(0, seconds))
    os.kill(process, signal.SIGKILL)
    wait(process)


def crash_test(kills: int, seed: int, folder: pathlib.Path) -> dict[str, Any]:
    """Runs the trials.

    Args:
        kills: number of trials.
        seed: seed of the moments.
        folder: an empty folder to work in.

    Returns:
        `while_saving`, how many kills left a half-written checkpoint; `at_iteration`, how many
        runs had to resume at each iteration; `failures`, what went wrong, in words.
    """
    rng = random.Random(seed)
    reference, output = folder / "reference", folder / "output"
    begin = time.monotonic()
    if wait(start(reference, output)):
        raise RuntimeError(output.read_text())
    seconds = time.monotonic() - begin
    expected = outcome(reference)
    if not any(any(v) for k, v in expected.items() if k.endswith("train_episode_returns")):
        raise RuntimeError("the game gave no reward, so that equal returns say nothing")
    while_saving = 0
    at_iteration = [0] * (ITERATIONS + 1)
    failures = []
    for trial in tqdm(range(kills), "kills", disable=None):
        base_dir = folder / f"trial_{trial}"
        root = base_dir / "checkpoints"
        process = start(base_dir, output)
        kill_somewhere(process, root, rng, seconds, saving=trial % 2 == 1)
        while_saving += bool(checkpoints.unfinished(root))
        next_iteration = max(checkpoints.iterations(root), default=-1) + 1
        at_iteration[next_iteration] += 1
        if finished_lines(output) != list(range(len(finished_lines(output)))):
            failures.append(f"trial {trial}: {output.read_text()}")
        if len(finished_lines(output)) > next_iteration:
            failures.append(f"trial {trial}: a finished iteration has no checkpoint")
        if wait(start(base_dir, output)):
            failures.append(f"trial {trial}: {output.read_text()}")
        elif finished_lines(output) != list(range(next_iteration, ITERATIONS)):
            failures.append(f"trial {trial}: resumed at {finished_lines(output)[:1]}")
        elif outcome(base_dir) != expected:
            failures.append(f"trial {trial}: ended otherwise")
        shutil.rmtree(base_dir)
    if kills >= 20 and not while_saving:
        failures.append("no kill fell into the writing of a checkpoint")
    return {"while_saving": while_saving, "at_iteration": at_iteration, "failures": failures}


def main() -> int:
    """Runs the program; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--kills", type=int, default=200, help="number of trials")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = crash_test(args.kills, args.seed, pathlib.Path(folder))
    for failure in result["failures"]:
        print(failure)
    print(
        f"{args.kills} kills, {result['while_saving']} of them while a checkpoint was being "
        f"written; runs resumed at iteration 1, 2, 3 or the end: {result['at_iteration']}; "
        f"unrecoverable or wrong: {len(result['failures'])}"
    )
    return bool(result["failures"])


if __name__ == "__main__":
    sys.exit(main())
