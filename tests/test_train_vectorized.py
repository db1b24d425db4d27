"""The program `python -m log_dqn.train_vectorized`, on real games."""

import os
import pathlib
import pickle
import resource
import shutil
import signal
import subprocess
import time
from typing import ClassVar
from unittest import mock

import jax
import numpy as np
import pytest

from log_dqn import train_vectorized
from log_dqn.cli import progress, shell, threads
from log_dqn.jax import devices
from log_dqn.results import runs
from log_dqn.run_folder import checkpoints, lock
from log_dqn.vectorized import pool, training
from log_dqn.vectorized import runs as vectorized_runs
from tests import programs

TINY = {
    "VectorizedRunner.num_iterations": 2, "VectorizedRunner.training_steps": 60,
    "VectorizedRunner.evaluation_steps": 20, "VectorizedRunner.max_steps_per_episode": 20,
    "VectorizedRunner.replay_capacity": 200, "VectorizedRunner.batch_size": 8,
    "VectorizedLogDQNAgent.min_replay_history": 20,
    "VectorizedLogDQNAgent.target_update_period": 40,
    "VectorizedLogDQNAgent.epsilon_decay_period": 40,
}  # fmt: skip


def arguments(results_dir, *more, games="Centipede", **bindings):
    bindings = {**TINY, **{name.replace("__", "."): value for name, value in bindings.items()}}
    if any(option.startswith("--capacity") for option in more):
        del bindings["VectorizedRunner.replay_capacity"]
    return [
        f"--results_dir={results_dir}",
        f"--games={games}",
        *[f"--gin_bindings={name}={value!r}" for name, value in bindings.items()],
        *more,
    ]


def run(*args):
    """Runs the program in this process; returns the exit status."""
    return train_vectorized.main(args)


def log(folder, number=1):
    return pickle.loads((folder / "logs" / f"log_{number}").read_bytes())


def modification_times(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != lock.NAME}


@pytest.mark.slow
def test_a_scan_on_two_games(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_LOG_FILE_PERIOD", np.inf)  # However slow the machine is.
    scans = ["--scan=VectorizedLogDQNAgent.gamma=0.9,0.96"]
    scans.append("--gin_bindings=VectorizedRunner.training_steps=40")
    assert run(*arguments(tmp_path, *scans, games="Centipede,Pong")) == 0
    out, err = capsys.readouterr()
    at_a_time = f"{threads.cores()} at a time with 1 thread each"
    assert (
        f"Training 4 runs of log_dqn on cpu, {at_a_time}: Centipede (2), Pong (2); replay memories"
        in out
    )
    assert out.count("iteration 2/2") == 4
    assert err == ""
    found = runs.read_runs(tmp_path, "train", print)
    assert [(run.agent, run.game, run.seed) for run in found] == [
        (f"log_dqn/gamma={gamma}", game, "1")
        for gamma in ("0.9", "0.96")
        for game in ("Centipede", "Pong")
    ]
    assert [run.gamma for run in found] == [0.9, 0.9, 0.96, 0.96]
    assert {run.agent_class for run in found} == {"log_dqn"}
    for one in found:
        entry = log(tmp_path / one.agent / one.game / one.seed)["iteration_1"]
        assert sum(entry["train_episode_lengths"]) >= 40
        assert one.returns[1] == pytest.approx(np.mean(entry["train_episode_returns"]))
    # Again: nothing is left to do, and nothing is touched but the locks, which are held meanwhile.
    before = modification_times(tmp_path)
    assert run(*arguments(tmp_path, *scans, games="Centipede,Pong")) == 0
    _, finished, *more = capsys.readouterr().out.splitlines()
    assert finished == "4 of 4 runs have finished."
    assert [line.split(":")[0] for line in more] == [
        "Film it",
        "Compare it",
        "Train on, to 4 iterations",
    ]
    assert modification_times(tmp_path) == before


@pytest.mark.slow
def test_a_run_is_the_same_alone_and_side_by_side(tmp_path):
    def weights(name, seed):
        folder = tmp_path / name / "log_dqn" / "Centipede" / str(seed) / "checkpoints" / "0"
        return np.load(folder / "weights.npz")

    # From JAX 0.7 on, the number of threads decides the order in which products are added.
    for name, options in (("both", ["--seeds=2"]), ("one", ["--seeds=2-2", "--threads=1"])):
        of_program = arguments(tmp_path / name, *options, VectorizedRunner__num_iterations=1)
        command = ["-m", "log_dqn.train_vectorized", *of_program]
        programs.python(*command, env=programs.AS_USERS_DO, check=True)
    alone, beside = weights("one", 2), weights("both", 2)
    for name in alone.files:
        np.testing.assert_array_equal(alone[name], beside[name])


@pytest.mark.slow
def test_dqn(tmp_path, numbers):
    bindings = {name: value for name, value in TINY.items() if "Runner" in name}
    args = [f"--gin_bindings={name}={value}" for name, value in bindings.items()]
    args += ["--gin_bindings=VectorizedDQNAgent.min_replay_history=20", "--agent=dqn"]
    folder = tmp_path / "dqn" / "Pong" / "1"
    folder.mkdir(parents=True)
    for name in ("config.json", "operative_config.gin"):
        (folder / name).write_text("{}")
    old = folder / "events.out.tfevents.1.here"  # Of a start without a checkpoint.
    old.touch()
    assert run(f"--results_dir={tmp_path}", "--games=Pong", *args) == 0
    assert progress.read(numbers).fraction == 1
    assert not old.exists() and list(folder.glob("events*"))
    config = (folder / "operative_config.gin").read_text()
    assert "VectorizedDQNAgent.gamma = 0.99" in config
    assert "rmsprop_tf.decay = 0.95" in config
    assert max(map(len, config.splitlines())) < 100


@pytest.mark.slow
def test_the_recorded_configuration_trains_another_run_alike(tmp_path):
    name = pathlib.Path("log_dqn/Centipede/1/operative_config.gin")
    recorded, again = tmp_path / "a" / name, tmp_path / "b" / name
    assert run(*arguments(tmp_path / "a", VectorizedRunner__num_iterations=1)) == 0
    assert (
        run(f"--results_dir={tmp_path / 'b'}", "--games=Centipede", f"--gin_files={recorded}") == 0
    )
    assert again.read_text() == recorded.read_text()


MINATAR = "--games=MinAtar/Breakout"
AGENT, RUNNER = "--gin_bindings=VectorizedLogDQNAgent.", "--gin_bindings=VectorizedRunner."
SCAN = "--scan=VectorizedLogDQNAgent."
SEEDS = (
    "1000000000", "x", "1.5", "-3", "2-", "3-2", "1-2-3", "5-1005", "4294967296-4294967296",
    "٣", "9" * 5000,
)  # fmt: skip
# Beside what tests/commands/test_main.py and tests/test_refusals.py have.
WRONG = [
    ([MINATAR, "--gin_files=vectorized_log_dqn.gin"], "'nature'; it must be 'revisiting"),
    ([MINATAR, f"{RUNNER}stack_size=4"], "stack_size is 4; it must be 1"),
    (["--gin_files=vectorized_log_dqn_minatar.gin"], "'revisiting_rainbow'; it must be 'nature"),
    *[
        ([f"--seeds={seeds}"], f"seeds is {seeds!r}; it must be N, at least 1, or A-B, with")
        for seeds in SEEDS
    ],
    (["--threads=x"], "threads is 'x'; it must be a whole number from 1 to "),
    (
        ["--capacity=7"],
        "VectorizedRunner.replay_capacity is 7; it must be at least 8, the batch_size",
    ),
    (
        [f"{RUNNER}num_iterations=12500001"],
        "num_iterations is 12500001; it must be at most 12500000, with 80 steps an iter",
    ),
    (
        [f"{RUNNER}replay_capacity=300", "--capacity=400"],
        "VectorizedRunner.replay_capacity is 300; it must be left out: the capacity is given",
    ),
    (
        ["--scan=VectorizedRunner.replay_capacity=300", "--capacity=400"],
        "VectorizedRunner.replay_capacity is 300; it must be left out: the capacity is given",
    ),
    (
        [f"{AGENT}gamma=0.9", f"{SCAN}gamma=0.5,0.8"],
        "VectorizedLogDQNAgent.gamma is 0.9; it must be left out: it is scanned",
    ),
    ([f"{AGENT}beta_reg=1e-50"], "beta_reg is 1e-50; it must be a number that float32 can hold"),
    (
        ["--agent=dqn", "--gin_bindings=VectorizedDQNAgent.gamma=0.99999999"],
        "gamma is 0.99999999; it must be smaller: float32 rounds it to 1",
    ),
    (["--capacity=1000000000"], "capacity is 1000000000; it must be smaller"),
    (["--capacity=100000000000000000000000"], "it must be a whole number from 1 to 1000000000"),
    ([f"{AGENT}update_period={10**23}"], f"update_period is {10**23}; it must be a whole number"),
    (
        ["--gin_bindings=VectorizedDQNAgent.gamma=0.5"],
        "VectorizedDQNAgent.gamma is 0.5, which nothing reads; .* VectorizedLogDQNAgent.gamma?",
    ),
    (["--gin_bindings=rmsprop_tf.learning_rate=0.1"], "learning_rate is 0.1, which nothing"),
    (
        ["--agent=dqn", "--gin_bindings=VectorizedDQNAgent.beta_log=0.1"],
        "beta_log is .*learning rate: VectorizedDQNAgent.learning_rate",
    ),
    ([f"{AGENT}gamma=nan"], "a value must be a literal of Python"),
    ([f"{AGENT}linear_above=1e999"], "QNAgent.linear_above is inf; it must be a finite number"),
    ([f"{AGENT}c=1e300"], "c is 1e+300; it must be a number that fl"),
    ([f"{AGENT}update_horizon=197"], "197; it must be at most 196"),
    (["--gin_files=log_dqn.gin"], "must be for log-dqn train-vectorized: "),
    (
        ["--gin_bindings=rmsprop_tf.decay=2"],
        "rmsprop_tf.decay is 2; it must be a number from 0 to 1, 1 excluded",
    ),
    ([f"{SCAN}gamma=0.5,1.5"], "gamma is 1.5; it must be a number between"),
    ([f"{SCAN}gama=0.5"], "(nearest: gamma)"),
    ([f"{SCAN}update_horizon=1,3"], "that may differ within a command: not upd"),
    (["--scan=rmsprop_tf.decay=0.9,0.5"], "settings that may differ within a command"),
    (
        ["--gin_bindings=VectorisedRunner.num_iterations=2"],
        "there is no VectorisedRunner in gin (nearest: VectorizedRunner",
    ),
    (["--scan=LogDQNAgent.gamma=0.5"], "LogDQNAgent.*VectorizedLogDQNAgent"),
    ([f"{AGENT}k={10**39}"], "it must be a number that float32 can"),
    ([f"{AGENT}k=1e38", f"{AGENT}c=99"], "k is 1e+38; it must be smaller: max(c, 1) n k ln(gamma)"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[wrong[0][:80] for wrong, _ in WRONG])
def test_wrong_input_is_said_in_one_line(tmp_path, capsys, wrong, message):
    _, *others = arguments(tmp_path, *wrong)
    programs.assert_refused(tmp_path, capsys, others, message, train_vectorized, "results_dir")


def test_seeds():
    assert list(shell.seeds("3")) == [1, 2, 3]
    assert list(shell.seeds("3-5")) == [3, 4, 5]
    assert list(shell.seeds("7-7")) == [7] and list(shell.seeds("0-1")) == [0, 1]
    assert len(shell.seeds("1000")) == 1000


@pytest.fixture
def trainers(monkeypatch):
    """What trainers were made of; they train nothing."""
    made = []

    class Trainer:
        failures: ClassVar = {}

        def __init__(self, *args):
            made.append(args)

        def train(self, stop_signal):
            pass

    monkeypatch.setattr(training, "HostTrainer", Trainer)
    return made


def test_a_gpu_computes_all_runs_in_one_call(tmp_path, monkeypatch, capsys, trainers):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    place = mock.Mock(wraps=pool.place)
    monkeypatch.setattr(pool, "place", place)
    assert run(*arguments(tmp_path, "--seeds=2", games="Centipede,Pong")) == 0
    ((workload, *_, indices),) = trainers
    assert indices == [0, 1, 2, 3] and len(workload.runs) == 4
    assert [call.args[3] for call in place.call_args_list] == [4]
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith("Training 4 runs of log_dqn on cpu: Centipede (2), Pong (2); replay")
    assert line.endswith(" GB of its memory")


@pytest.mark.slow
def test_a_job_may_have_more_runs_than_a_process_opens_files_at_first(tmp_path, trainers):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, before[1]))
    try:
        assert run(*arguments(tmp_path, "--seeds=25")) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(trainers) == 25


def test_a_job_has_what_the_command_line_says(tmp_path, monkeypatch, trainers):
    place = mock.Mock(wraps=pool.place)
    monkeypatch.setattr(pool, "place", place)
    assert run(*arguments(tmp_path, "--seeds=2", "--capacity=300", "--checkpoint_replay")) == 0
    assert os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.95"
    assert place.call_count == 1  # Of all, since they compute the same.
    # One run each, as on every CPU.
    assert sorted((indices, workload.runs[0].seed) for workload, *_, indices in trainers) == [
        ([0], 1), ([1], 2),
    ]  # fmt: skip
    for (job_run,), runner, found, checkpoint_replay, _ in (workload for workload, *_ in trainers):
        assert job_run.game == "Centipede" and job_run.agent.min_replay_history == 20
        assert (runner.num_iterations, runner.training_steps) == (2, 60)
        assert (found, checkpoint_replay) == ([None], True)
    for _, problem, *_ in trainers:
        assert (problem.batch_size, problem.capacity, problem.stack_size) == (8, 300, 4)


def test_a_job_that_ends_before_a_run_learns_is_warned_of(tmp_path, capsys, trainers):
    assert run(*arguments(tmp_path / "a", VectorizedLogDQNAgent__min_replay_history=119)) == 0
    assert capsys.readouterr().err == ""
    half = arguments(tmp_path / "c", "--scan=VectorizedLogDQNAgent.min_replay_history=119,120")
    half.remove("--gin_bindings=VectorizedLogDQNAgent.min_replay_history=20")
    assert run(*half) == 0
    assert capsys.readouterr().err == ""
    scanned = "--scan=VectorizedLogDQNAgent.epsilon_train=0.1,0.2"
    more = {"VectorizedLogDQNAgent__min_replay_history": 120}
    assert run(*arguments(tmp_path / "b", scanned, **more)) == 0
    assert capsys.readouterr().err == (
        "log-dqn train-vectorized: warning: nothing is learned: a run trains for 120 agent steps, "
        "and the agent learns after 120, its VectorizedLogDQNAgent.min_replay_history\n"
    )


def test_the_last_line_says_that_runs_failed(tmp_path, monkeypatch, capsys, trainers):
    why = "log_dqn Pong 1: stopped at training step 500: Losses/Loss is nan"
    monkeypatch.setattr(training.HostTrainer, "failures", {0: why})
    assert run(*arguments(tmp_path, "--seeds=2")) == 1
    assert capsys.readouterr().err == (f"log-dqn train-vectorized: 2 runs failed: {why}; {why}\n")


def test_runs_side_by_side_have_a_device_each(tmp_path, monkeypatch, trainers):
    side_by_side = mock.Mock(return_value=[jax.devices()[0]] * 2)
    monkeypatch.setattr(devices, "side_by_side", side_by_side)
    of_runs = mock.Mock(wraps=pool.Pool)
    monkeypatch.setattr(pool, "Pool", of_runs)
    assert run(*arguments(tmp_path, "--seeds=2")) == 0
    side_by_side.assert_called_once_with(min(2, threads.cores()))
    assert of_runs.call_args.args[1] is side_by_side.return_value
    assert len(trainers) == 2


@pytest.mark.slow
def test_what_ends_the_process_where_the_device_starts_is_said(tmp_path):
    wrong = {"XLA_FLAGS": "--nonsense=1"}
    done = programs.python("-m", "log_dqn.train_vectorized", *arguments(tmp_path), env=wrong)
    assert done.returncode not in (0, 2)
    assert "Unknown flag in XLA_FLAGS: --nonsense=1" in done.stderr


def test_a_signal_whose_exit_is_lost_ends_the_program(tmp_path, monkeypatch, capsys):
    def prepare(args, stack):
        with pytest.raises(SystemExit):  # As Python does in a destructor.
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(train_vectorized, "_prepare", prepare)
    assert run(*arguments(tmp_path)) == 143
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_another_configuration_and_a_folder_in_use_are_refused(tmp_path, capsys):
    one = {"VectorizedRunner__num_iterations": 1}
    assert run(*arguments(tmp_path, **one)) == 0
    capsys.readouterr()
    assert run(*arguments(tmp_path, VectorizedLogDQNAgent__gamma=0.5)) == 2
    error = capsys.readouterr().err
    assert "VectorizedLogDQNAgent.gamma was 0.96 and is 0.5" in error
    folder = tmp_path / "log_dqn" / "Centipede"
    shutil.copytree(folder, folder.with_name("Pong"))
    assert run(*arguments(tmp_path, games="Pong")) == 2
    error = capsys.readouterr().err
    assert "is a checkpoint of another game: it was Centipede and is Pong" in error
    shutil.copytree(folder / "1", folder / "4")
    assert run(*arguments(tmp_path, "--seeds=4")) == 2
    assert "is a checkpoint of another seed: it was 1 and is 4" in capsys.readouterr().err
    assert not (folder / "3").exists()
    (folder / "2").mkdir()
    with lock.hold(folder / "2"):
        assert run(*arguments(tmp_path, "--seeds=3")) == 2
    assert "it must not be in use" in capsys.readouterr().err
    assert not (folder / "3").exists()


@pytest.mark.slow
def test_a_checkpoint_that_does_not_load_is_said_in_one_line(tmp_path, capsys, monkeypatch):
    assert run(*arguments(tmp_path, VectorizedRunner__num_iterations=1)) == 0
    capsys.readouterr()
    folder = tmp_path / "log_dqn" / "Centipede" / "1"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def load(found, learner, index):
        raise checkpoints.CheckpointError("it can't be loaded")

    monkeypatch.setattr(vectorized_runs, "load", load)
    assert run(*arguments(tmp_path)) == 2
    assert capsys.readouterr().err == "log-dqn train-vectorized: error: it can't be loaded\n"
    # Only the number of iterations that the run is to have has changed.
    changed = [path.name for path, content in before.items() if path.read_bytes() != content]
    assert sorted(changed) == ["config.json", "operative_config.gin"]


@pytest.mark.slow
def test_sigterm_stops_and_the_command_resumes_with_more_seeds(tmp_path, capsys):
    program = "log_dqn.train_vectorized"
    args = arguments(tmp_path, "--threads=1", VectorizedRunner__num_iterations=99)
    pipe = subprocess.PIPE
    process = programs.start("-m", program, *args, stdout=pipe, stderr=pipe)
    folder = tmp_path / "log_dqn" / "Centipede"
    deadline = time.monotonic() + 120
    while not (folder / "1" / "logs" / "log_0").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143, (out, err)
    assert "Training 1 run of log_dqn on cpu with 1 thread: Centipede (1); " in out
    said = "stopped by SIGTERM; the same command resumes from the start of each run's iteration"
    assert err == f"{program}: {said}\n"
    finished = 1 + max(int(path.name) for path in (folder / "1" / "checkpoints").iterdir())
    more = {"VectorizedRunner__num_iterations": finished + 1}
    assert run(*arguments(tmp_path, "--seeds=2", **more)) == 0
    resumed = f"; 1 of them resumed from iteration {finished}\n"
    assert resumed in capsys.readouterr().out
    assert len(log(folder / "1", finished)) == len(log(folder / "2", finished)) == finished + 1


@pytest.mark.slow
def test_it_needs_neither_tensorflow_nor_dopamine_nor_what_else_may_be_absent(tmp_path):
    # Only JAX, optax, gin, numpy, tqdm, zstandard and ale-py (with gymnasium, which it imports).
    absent = (
        "tensorflow", "tf_keras", "keras", "dopamine", "gym", "flax", "tensorboard",
        "pandas", "matplotlib", "scipy.stats", "rliable", "requests", "platformdirs",
    )  # fmt: skip
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({absent!r}))\n"
        "from log_dqn import train_vectorized\n"
        "sys.exit(train_vectorized.main(sys.argv[1:]))"
    )
    args = arguments(tmp_path, VectorizedRunner__num_iterations=1)
    result = programs.python("-c", code, *args)
    assert (result.returncode, result.stderr) == (0, "")
    assert "TensorBoard is not installed: no events are written" in result.stdout
    folder = tmp_path / "log_dqn" / "Centipede" / "1"
    assert len(log(folder, 0)) == 1
    assert not list(pathlib.Path(folder).glob("events*"))


def test_checkpoints_are_chosen_once_the_runs_are_held(tmp_path, monkeypatch, trainers):
    find, held = vectorized_runs.find, []

    def find_held(found, report):
        with pytest.raises(ValueError, match="it must not be in use"), lock.hold(found.folder):
            pass
        held.append(found.seed)
        return find(found, report)

    monkeypatch.setattr(vectorized_runs, "find", find_held)
    assert run(*arguments(tmp_path, "--seeds=2")) == 0
    assert held == [1, 2]
