"""How many runs fit into memory; trainers side by side, which stop together."""

import functools
import math
import queue
import threading
from unittest import mock

import jax
import pytest

from log_dqn.cli.shell import RunStopped
from log_dqn.jax import devices
from log_dqn.vectorized import agents, environments, learner, networks, pool

from .test_device_loop import device_trainer_of, shown

GB = 10**9
AGENT = agents.VectorizedLogDQNAgent()


def problem(capacity=10**6, network=networks.nature, batch_size=32):
    return learner.Problem(
        network, environments.ATARI.frame_shape, "uint8", 4, batch_size, capacity
    )


def place(num_runs, free, capacity=10**6, in_turns=False, **settings):
    return pool.place(AGENT, problem(capacity, **settings), 18, num_runs, free, in_turns)


def test_what_is_needed_and_what_is_free_is_said():
    # 16 memories of 7.063 GB; 16 times 0.15 GB for weights and updates, and a reserve of 1 GB.
    said = r"smaller, or --threads below 16: with 16 .* 113\.01 GB .* 3\.4\d GB .*and 20\.00 GB are"
    with pytest.raises(ValueError, match=said):
        place(16, 20 * GB)


def test_as_many_runs_as_fit():
    most = place(1000, 80 * GB, 10**5, in_turns=True).num_runs
    # 0.706 GB of memory, 0.081 GB of weights and gradients and 0.07 GB for updates each.
    assert 90 < most < 100
    assert place(most, 80 * GB, 10**5).num_runs == most
    with pytest.raises(ValueError, match="threads below"):
        place(most + 1, 80 * GB, 10**5)
    assert place(64, 80 * GB, 10**5, in_turns=True).num_runs == 64


def test_the_scan_of_the_readme_fits_on_one_device():
    # 150 runs of 100,004 slots of 7,063 bytes (84 x 84, and 7 of age, action, reward and end);
    # 95% of a device of 139 GiB.
    assert place(150, 0.95 * 139 * 2**30, 10**5) == (150, 150 * 100_004 * 7063)


def test_to_the_byte():
    # A state's 28,224 bytes in a row, and as numbers of 4 bytes; one linear layer of 36 outputs.
    linear = networks.Network(
        init=lambda _, state_shape: ({}, math.prod(state_shape)),
        apply=lambda _, states: states.reshape(len(states), -1).astype("float32"),
    )
    for batch_size in (1, 32, 5000):
        # Reserve, five times the parameters, an update, and 1,000 transitions.
        others = GB + 5 * 4 * (28_224 * 36 + 36) + 2 * batch_size * 28_224 * (1 + 4)
        room = others + 1004 * 7063
        given = {"network": linear, "batch_size": batch_size}
        for in_turns in (False, True):
            assert place(1, room, 1000, in_turns, **given) == (1, 1004 * 7063)
            with pytest.raises(ValueError, match="capacity is 1000; it must be smaller"):
                place(1, room - 1, 1000, in_turns, **given)
        assert place(1, room - 1, 999, **given) == (1, 1003 * 7063)
        with pytest.raises(ValueError, match=f"batch_size is {batch_size}; it must be smaller"):
            place(1, others - 1, 1, **given)


def test_an_update_of_the_network_of_mnih_et_al():
    # In MB, for a batch of 32: states as numbers, and divided, 3.6 each; three convolutions, each
    # with its bias and its ReLU, 1.8, 1.0 and 1.0; a kernel of 15.9 transposed; 512 features.
    _, beside = pool.needed(AGENT, problem(), 18)
    assert beside == pytest.approx(
        5 * 16.27e6 + 2 * (2 * 3.61 + 3 * 3.79 + 15.86 + 0.2) * 1e6, 0.05
    )


def test_what_a_network_calls_counts_and_is_counted_once():
    def beside(apply):
        network = networks.Network(lambda _, shape: ({}, math.prod(shape)), apply)
        return pool.needed(AGENT, problem(network=network), 18)[1]

    def apply(params, states):
        return jax.numpy.exp(states.reshape(len(states), -1).astype("float32"))

    called = beside(lambda params, states: jax.jit(jax.checkpoint(apply))(params, states))
    assert called == beside(apply) == 5 * 4 * (28_224 * 36 + 36) + 2 * 32 * 28_224 * (1 + 4 + 4)


def test_large_batches_of_vectors_take_little():
    vectors = problem()._replace(
        network=networks.create("dense", "float32"),
        frame_shape=(4,),
        frame_dtype="float32",
        batch_size=8000,
    )
    _, beside = pool.needed(AGENT, vectors, 2)
    # Two hidden layers of 512 units, each with its bias and its ReLU, for 8,000 states.
    assert beside == pytest.approx(2 * 8000 * 6 * 512 * 4, rel=0.1)


@pytest.mark.parametrize(
    ("groups", "left"),
    [
        # Version 2: the job's limit is above the task's. 3 GB of 4 are used, 1 of them is cache.
        ("0::/slurm/job_7/task_0\n", 2 * GB),
        ("0::/\n", 100 * GB),
        ("4:memory:/a\n1:cpu:/\n", 100 * GB),
    ],
)
def test_limits_of_control_groups(monkeypatch, groups, left):
    files = {
        "/proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {100 * GB // 1024} kB\n",
        "/proc/self/cgroup": groups,
        "/sys/fs/cgroup/slurm/job_7/task_0/memory.max": "max\n",
        "/sys/fs/cgroup/slurm/job_7/task_0/memory.current": f"{2 * GB}\n",
        "/sys/fs/cgroup/slurm/job_7/memory.max": f"{4 * GB}\n",
        "/sys/fs/cgroup/slurm/job_7/memory.current": f"{3 * GB}\n",
        "/sys/fs/cgroup/slurm/job_7/memory.stat": f"anon {2 * GB}\ninactive_file {GB}\n",
    }
    monkeypatch.setattr(pool, "_read", lambda path: files.get(path, ""))
    assert pool.free_memory() == pytest.approx(left, abs=1024)


@pytest.mark.parametrize("statistics", [{"bytes_limit": 76, "bytes_in_use": 2}, {}, None])
def test_free_memory_of_a_gpu(monkeypatch, statistics):
    device = mock.Mock(platform="gpu", device_kind="NVIDIA X")
    device.memory_stats.return_value = statistics
    monkeypatch.setattr(jax, "devices", lambda: [device])
    if statistics:
        assert pool.free_memory() == 74
        return
    with pytest.raises(ValueError, match="device is 'NVIDIA X'; it must be one that says how much"):
        pool.free_memory()


@pytest.mark.slow
def test_the_pool_runs_all_jobs_and_stops_them(tmp_path):
    trainers = {}

    def create(index, seed, shared):
        trainers[seed] = device_trainer_of(tmp_path, seeds=[seed], shared=shared, shown_as=[index])
        return trainers[seed]

    def watched(num_runs):
        shared = shown(num_runs)
        shared.close = mock.Mock(wraps=shared.close)
        return shared

    def creators(seeds, shared):
        return [functools.partial(create, i, seed, shared) for i, seed in enumerate(seeds)]

    shared, (default, other) = watched(3), devices.side_by_side(2)
    of_three = pool.Pool(creators([1, 2, 3], shared), [default, other], shared)
    of_three.train()
    assert of_three.failures == []
    used = [trainers[seed].learner.stacks.device for seed in (1, 2, 3)]
    assert set(used) == {jax.devices()[0], other or jax.devices()[0]}
    assert shared.status.fraction == 1 and shared.close.called
    assert all((tmp_path / str(seed) / "logs" / "log_1").exists() for seed in (1, 2, 3))
    shared = watched(3)
    stopped = pool.Pool(creators([4, 5, 6], shared), [None] * 2, shared)
    stopped.stop(2)
    with pytest.raises(RunStopped) as stop:
        stopped.train()
    assert stop.value.status == 130
    assert not any((tmp_path / str(seed) / "logs" / "log_1").exists() for seed in (4, 5, 6))
    assert shared.status.fraction < 1 and shared.close.called


def test_a_trainer_that_is_created_while_another_fails_is_stopped(tmp_path):
    failing, creating, shared = queue.SimpleQueue(), threading.Event(), shown(2)

    def fail():
        failing.put(threading.current_thread())
        creating.wait()
        raise OSError(28, "No space left on device")

    def create():
        thread = failing.get()
        creating.set()
        thread.join()  # Until the pool has been stopped.
        return device_trainer_of(tmp_path, shared=shared, shown_as=[1])

    with pytest.raises(RunStopped, match=r"^error: .* No space left on device$") as stop:
        pool.Pool([fail, create], [None] * 2, shared).train()
    assert stop.value.status == 2
    assert not (tmp_path / "1" / "checkpoints").exists()


def test_a_callback_of_an_environment_that_fails_is_not_taken_for_the_device():
    def host(_):
        raise ValueError("the table\nhas no row 31")

    @jax.jit
    def train(number):
        return jax.pure_callback(host, jax.ShapeDtypeStruct((), "float32"), number)

    trainer = mock.Mock(failures={}, train=lambda _: jax.block_until_ready(train(1.0)))
    with pytest.raises(RunStopped) as stop:
        pool.Pool([lambda: trainer], [None], shown(1)).train()
    said = "error: a callback of the environment failed: ValueError: the table has no row 31"
    assert (str(stop.value), stop.value.status) == (said, 2)


@pytest.mark.parametrize("where", ["create", "train"])
def test_a_device_without_memory_is_said_in_one_line(where):
    def fail(*_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nallocating 9 GB")

    trainer = mock.Mock(failures={}, train=fail)
    with pytest.raises(RunStopped) as stop:
        pool.Pool([fail if where == "create" else lambda: trainer], [None], shown(1)).train()
    assert str(stop.value) == "stopped by the device: RESOURCE_EXHAUSTED: Out of memory"
    assert stop.value.status == 3  # With 1 or 2 a sweep would not try again.
