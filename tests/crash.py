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
import random
import shutil
import signal
import sys
import tempfile
import time

from tqdm import tqdm

from log_dqn import compat, train
from log_dqn.run_folder import checkpoints
from tests.programs import outcome

with compat.quiet():
    # Imported before the runs are forked, which saves each the seconds that it takes.
    from log_dqn.dopamine_run import runner  # noqa: F401

ITERATIONS = 3
BINDINGS = (
    f"Runner.num_iterations={ITERATIONS}", "Runner.training_steps=60",
    "Runner.evaluation_steps=20", "Runner.max_steps_per_episode=20",
    "LogDQNAgent.min_replay_history=20", "LogDQNAgent.target_update_period=40",
    "LogDQNAgent.epsilon_decay_period=40", "WrappedReplayBuffer.replay_capacity=200",
    "WrappedReplayBuffer.batch_size=8",
)  # fmt: skip
ARGUMENTS = ["--game=Centipede", "--seed=1", *(f"--gin_bindings={line}" for line in BINDINGS)]


def start(base_dir, output):
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


def wait(process):
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def finished_lines(output):
    """Returns the iterations, from 0, whose lines a run has printed."""
    lines = output.read_text().splitlines()
    return [int(line.split()[1].split("/")[0]) - 1 for line in lines if line[:10] == "iteration "]


def kill_somewhere(process, root, rng, seconds, saving):
    """Kills a run, of so many seconds; where saving, while it writes a checkpoint."""
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


def crash_test(kills, seed, folder):
    """Runs the trials in an empty folder.

    Returns how many kills left a half-written checkpoint; how many runs had to resume at each
    iteration; and what went wrong, in words.
    """
    rng = random.Random(seed)
    reference, output = folder / "reference", folder / "output"
    begin = time.monotonic()
    if wait(start(reference, output)):
        raise RuntimeError(output.read_text())
    seconds = time.monotonic() - begin
    expected = outcome(reference, ITERATIONS - 1)
    if not any(any(v) for k, v in expected.items() if k.endswith("train_episode_returns")):
        raise RuntimeError("the game gave no reward, so that equal returns say nothing")
    while_saving, at_iteration, failures = 0, [0] * (ITERATIONS + 1), []
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
        elif outcome(base_dir, ITERATIONS - 1) != expected:
            failures.append(f"trial {trial}: ended otherwise")
        shutil.rmtree(base_dir)
    if kills >= 20 and not while_saving:
        failures.append("no kill fell into the writing of a checkpoint")
    return while_saving, at_iteration, failures


def main():
    """Runs the program; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--kills", type=int, default=200, help="number of trials")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        while_saving, at_iteration, failures = crash_test(
            args.kills, args.seed, pathlib.Path(folder)
        )
    print(
        *failures,
        f"{args.kills} kills, {while_saving} of them while a checkpoint was being written; runs "
        f"resumed at iteration 1, 2, 3 or the end: {at_iteration}; "
        f"unrecoverable or wrong: {len(failures)}",
        sep="\n",
    )
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
