"""A study on MinAtar that is killed again and again ends like one that is not."""

import pickle
import random
import subprocess
import time

import numpy as np
import pytest

from log_dqn.run_folder import layout
from tests import programs

ITERATIONS = 5
STUDY = [
    "--games=MinAtar/Breakout,MinAtar/Asterix",
    "--scan=VectorizedLogDQNAgent.gamma=0.8,0.99",
    f"--gin_bindings=VectorizedRunner.num_iterations={ITERATIONS}",
    "--gin_bindings=VectorizedRunner.training_steps=500",
    "--gin_bindings=VectorizedRunner.replay_capacity=1000",
    "--gin_bindings=VectorizedLogDQNAgent.min_replay_history=200",
]


def start(results_dir):
    return programs.start(
        "-m", "log_dqn.train_vectorized", f"--results_dir={results_dir}", *STUDY,
        stdout=subprocess.PIPE,
    )  # fmt: skip


def finished(results_dir):
    """The number of iterations that all runs have finished together."""
    logs = [layout.logs(folder) for _, _, _, folder in layout.find_runs(results_dir)]
    return sum(int(of_run[0].name.removeprefix("log_")) + 1 for of_run in logs if of_run)


def outcome(results_dir):
    """The statistics and the final weights of each run."""
    found = {}
    for _, _, _, folder in layout.find_runs(results_dir):
        log = pickle.loads((folder / "logs" / f"log_{ITERATIONS - 1}").read_bytes())
        for entry in log.values():
            del entry["train_average_steps_per_second"]
        weights = np.load(folder / "checkpoints" / str(ITERATIONS - 1) / "weights.npz")
        found[folder.relative_to(results_dir)] = (log, [weights[name] for name in weights.files])
    return found


@pytest.mark.slow
def test_a_study_that_is_killed_ends_like_one_that_is_not(tmp_path):
    whole = start(tmp_path / "whole")
    assert whole.wait() == 0, whole.communicate()
    rng = random.Random(1)
    for more in (1, 0, 2):
        process = start(tmp_path / "killed")
        enough = finished(tmp_path / "killed") + more
        while finished(tmp_path / "killed") < enough:
            assert process.poll() is None, "the study is too short for so many kills"
            time.sleep(0.02)
        # In an iteration, while it is saved, or, with no iteration to wait for, as it goes on.
        time.sleep(rng.uniform(0, 0.4) if more else rng.uniform(2, 4))
        process.kill()
        process.communicate()
    last = start(tmp_path / "killed")
    assert "resumed from iteration" in last.communicate()[0] and last.returncode == 0
    expected, found = outcome(tmp_path / "whole"), outcome(tmp_path / "killed")
    assert len(expected) == 4 and found.keys() == expected.keys()
    for run, (log, weights) in expected.items():
        assert found[run][0] == log, run
        np.testing.assert_equal(found[run][1], weights)
