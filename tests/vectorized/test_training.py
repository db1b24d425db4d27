"""Trainers of small environments: independence of runs, checkpoints, failures."""

import contextlib
import dataclasses
import errno
import functools
import json
import pickle
import re
import time
from unittest import mock

import jax
import numpy as np
import pytest

from log_dqn.cli import shell
from log_dqn.run_folder import checkpoints
from log_dqn.vectorized import agents, runs, timeline, training
from log_dqn.vectorized.timeline import Phase

from . import toys


def steps_of(trainer, steps):
    for _ in range(steps):
        trainer.step()


def equal(ours, theirs):
    return all((our == their).all() for our, their in zip(ours, theirs, strict=True))


def assert_close(ours, theirs):
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(our, their, rtol=0, atol=1e-4 * np.abs(their).max())


RUNS = [toys.log_dqn(gamma=gamma, c=c) for gamma in (0.5, 0.9, 0.96, 0.99) for c in (0.5, 2)]
RUNNER = dataclasses.replace(toys.RUNNER, num_iterations=3, training_steps=120, evaluation_steps=40)
NINE = dataclasses.replace(toys.RUNNER, num_iterations=9, training_steps=200, evaluation_steps=50)


def test_a_run_is_the_same_alone_and_beside_seven_others(tmp_path):
    # Updates, syncs and evaluation phases, which end at other steps in each run.
    together = toys.make_trainer(tmp_path / "together", RUNS, toys.Noise, runner=NINE)
    steps_of(together, 600)
    for run in (0, 5):
        alone = toys.make_trainer(
            tmp_path / "alone", [RUNS[run]], toys.Noise, seeds=[run + 1], runner=NINE
        )
        steps_of(alone, 600)
        expected = toys.weights(alone)[0]
        # All in one call, as on a GPU: other sums of the same products. The actions are the same
        # all the same.
        sent = np.array(alone._environments.sent)[:, 0]
        np.testing.assert_array_equal(np.array(together._environments.sent)[:, run], sent)
        assert_close(toys.weights(together)[run], expected)
    assert not equal(toys.weights(together)[0], toys.weights(together)[5])


def test_updates_ahead_of_the_environment_change_nothing(tmp_path, monkeypatch):
    trainers = [toys.make_trainer(tmp_path / name, RUNS[:2]) for name in ("ahead", "after")]
    orders, update = [], timeline.update

    def never_sure(rules, position, ended, starting, xp):
        found = update(rules, position, ended, starting, xp)
        return found._replace(learns=found.learns & (ended is not np.False_))

    for trainer in trainers:
        called = mock.Mock()
        for owner, name in (
            (trainer.learner, "learn"), (trainer._environments, "receive"), (trainer.learner, "act")
        ):  # fmt: skip
            getattr(called, name).side_effect = getattr(owner, name)
            monkeypatch.setattr(owner, name, getattr(called, name))
        steps_of(trainer, 250)
        orders.append([name for name, *_ in called.mock_calls])
        monkeypatch.setattr(timeline, "update", never_sure)
    for order, late in zip(orders, ([], ["receive"]), strict=True):
        before_updates = [order[i - 1] for i, name in enumerate(order) if name == "learn"]
        assert before_updates == 50 * (late or ["act"])
    for ours, theirs in zip(*map(toys.weights, trainers), strict=True):
        assert equal(ours, theirs)


class Read:
    """A result of the device; notes when the host first reads it."""

    def __init__(self, name, array, reads):
        self._name, self._array, self._reads = name, array, reads

    def __array__(self, *args, **kwargs):
        if self._name is not None:  # JAX keeps what it has read.
            self._reads[-1].append(self._name)
            self._name = None
        return np.array(self._array)


def test_a_step_is_one_act_call_and_at_most_one_update_call(tmp_path):
    # Iterations that end at other steps in each run, so that some wait while others learn.
    trainer = toys.make_trainer(tmp_path, RUNS, toys.Noise, runner=NINE)
    programs, calls, reads = trainer.learner.step_functions, [], []

    def called(name, program, *args):
        calls[-1].append(name)
        found = program(*jax.tree.map(lambda x: x._array if isinstance(x, Read) else x, args))
        if name == "sync":
            return found
        *kept, read = found
        return *kept, jax.tree.map(lambda array: Read(name, array, reads), read)

    with contextlib.ExitStack() as stack:
        for name in ("act", "learn", "sync"):
            wrapped = functools.partial(called, name, getattr(programs, f"compiled_{name}"))
            stack.enter_context(mock.patch.object(programs, f"compiled_{name}", wrapped))
        for _ in range(600):
            calls.append([])
            reads.append([])
            trainer.step()
    updates = [step.count("learn") for step in calls]
    assert all(step.count("act") == 1 for step in calls)
    assert max(updates) == 1 and sum(updates) > 100
    # The host waits for actions, and for statistics.
    assert all(step.count("act") == 1 for step in reads)
    assert sum(map(len, reads)) - 600 <= len(RUNS) * 10 * 6
    assert sum(step.count("sync") for step in calls) > 5


def test_hyperparameters_differ_between_runs_of_a_job(tmp_path):
    # Each run of a batch of different settings equals the run of a batch of its own setting.
    settings = {
        "gamma": 0.7, "c": 1.5, "k": 20, "beta_reg": 0.4, "beta_log": 0.01, "q_init_plus": 0.5,
        "q_init_minus": 0.001, "linear_above": 0.3, "clip_inverse": True, "head_init": "symmetric",
        "epsilon_train": 0.3, "target_update_period": 12, "min_replay_history": 30,
        "epsilon_decay_period": 77,
    }  # fmt: skip
    trainer = toys.make_trainer(tmp_path, [toys.log_dqn(), toys.log_dqn(**settings)])
    steps_of(trainer, 160)
    expected = []
    for seed, agent in ((1, toys.log_dqn()), (2, toys.log_dqn(**settings))):
        alone = toys.make_trainer(tmp_path, [agent], seeds=[seed])
        steps_of(alone, 160)
        expected.append(toys.weights(alone)[0])
        # A single other setting gives other weights.
        if seed == 2:
            for name, value in settings.items():
                changed = toys.log_dqn(**{**settings, name: getattr(toys.log_dqn(), name)})
                other = toys.make_trainer(tmp_path, [changed], seeds=[seed])
                steps_of(other, 160)
                assert not equal(toys.weights(other)[0], expected[1]), (name, value)
    for ours, theirs in zip(toys.weights(trainer), expected, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("num_runs", "evaluation_steps", "is_finished"),
    # Without evaluation the iteration's last result comes with its end.
    [
        (1, 40, False),
        (2, 40, False),
        pytest.param(2, 0, False, marks=pytest.mark.slow),
        (1, 0, True),
    ],
)
def test_a_run_goes_on_exactly(tmp_path, num_runs, evaluation_steps, is_finished, monkeypatch):
    monkeypatch.setattr(runs, "_CHUNK_STEPS", 151)  # The last of 152 steps are a part of their own.
    runner = dataclasses.replace(RUNNER, evaluation_steps=evaluation_steps)
    settings = {"runner": runner, "checkpoint_replay": True}
    run_agents = [toys.log_dqn(), toys.log_dqn(gamma=0.9)][:num_runs]
    whole = toys.make_trainer(tmp_path / "whole", run_agents, **settings)
    whole.train()

    if is_finished:
        two = settings | {"runner": dataclasses.replace(runner, num_iterations=2)}
        toys.make_trainer(tmp_path / "stopped", run_agents, **two).train()
    else:
        stopped = toys.make_trainer(tmp_path / "stopped", run_agents, **settings)
        with pytest.raises(shell.RunStopped, match="stopped by SIGTERM") as stop:
            while stopped.position.iteration.min() < 2:
                stopped.step()
            steps_of(stopped, 33)  # in the third iteration
            stopped.train(lambda: 15)
        assert stop.value.status == 143
    rest = toys.make_trainer(tmp_path / "stopped", run_agents, found=True, **settings)
    np.testing.assert_array_equal(rest.position.iteration, [2] * num_runs)
    rest.train()
    for ours, theirs in zip(toys.weights(rest), toys.weights(whole), strict=True):
        assert equal(ours, theirs)
    for seed in ("1", "2")[:num_runs]:
        logs = [
            pickle.loads((tmp_path / name / seed / "logs" / "log_2").read_bytes())
            for name in ("whole", "stopped")
        ]
        for log in logs:
            for iteration in log.values():
                del iteration["train_average_steps_per_second"]
        assert logs[0] == logs[1]
        assert list(logs[0]) == ["iteration_0", "iteration_1", "iteration_2"]


def test_a_run_without_its_replay_memory_fills_it_anew(tmp_path):
    first = toys.make_trainer(tmp_path, runner=RUNNER)
    while first.position.iteration[0] < 1:
        first.step()
    rest = toys.make_trainer(tmp_path, found=True, runner=RUNNER)
    assert rest.position.stored[0] == 0
    assert rest.position.training_steps[0] == first.position.training_steps[0] > 100
    before = toys.weights(rest)[0]
    steps_of(rest, 45)
    assert equal(toys.weights(rest)[0], before)
    steps_of(rest, 20)
    assert not equal(toys.weights(rest)[0], before)


def test_finished_runs_leave_the_others_room(tmp_path):
    toys.make_trainer(tmp_path, runner=RUNNER).train()
    both = toys.make_trainer(tmp_path, [toys.log_dqn()] * 2, found=True, runner=RUNNER)
    assert list(both.position.phase) == [Phase.WAITING]
    both.train()
    assert both.finished
    assert {path.name for path in (tmp_path / "2/logs").iterdir()} == {"log_0", "log_1", "log_2"}


def test_a_diverged_run_is_left_out_and_the_others_go_on(tmp_path, capsys):
    run_agents = [toys.log_dqn(beta_log=1e38), toys.log_dqn()]
    trainer = toys.make_trainer(tmp_path, run_agents, runner=RUNNER)
    trainer.train()
    assert list(trainer.failures) == [0]
    failure = trainer.failures[0]
    error = capsys.readouterr().err
    said = "log_dqn Catch 1: stopped after iteration 1, which isn't saved: the weights"
    assert failure.startswith(said) and said in error
    assert error.count("\n") == 1
    assert not list((tmp_path / "1").glob("checkpoints/*"))
    assert (tmp_path / "2" / "logs" / "log_2").exists()
    alone = toys.make_trainer(tmp_path / "alone", run_agents[1:], seeds=[2], runner=RUNNER)
    alone.train()
    assert_close(toys.weights(trainer)[1], toys.weights(alone)[0])


def test_a_loss_that_is_not_finite_stops_its_run_at_once(tmp_path, capsys):
    runner = dataclasses.replace(toys.RUNNER, training_steps=700)
    trainer = toys.make_trainer(
        tmp_path, [toys.log_dqn(beta_log=1e38), toys.log_dqn()], runner=runner
    )
    trainer.train()
    assert list(trainer.failures) == [0]
    error = capsys.readouterr().err
    assert re.search(r"log_dqn Catch 1: stopped at training step 500: Losses/\w+ is nan; ", error)
    assert trainer.position.training_steps[0] == 501
    assert trainer.position.training_steps[1] >= 700


class Lost(toys.Noise):
    """Gives no number as its 20th reward."""

    steps = 0

    def step(self, action):
        frame, reward, ended = super().step(action)
        self.steps += 1
        return frame, np.nan if self.steps == 20 else reward, ended


def test_a_reward_that_is_no_number_stops_its_run_at_once(tmp_path):
    trainer = toys.make_trainer(tmp_path, RUNS[:2], Lost, runner=NINE)
    trainer.train()
    assert trainer.position.chosen.tolist() == [21, 21]
    said = (
        "stopped at step 20, counted from the run's start: the game's reward or observation is not "
        "finite"
    )
    assert trainer.failures == {run: f"log_dqn Catch {run + 1}: {said}" for run in range(2)}


@pytest.mark.parametrize("num_runs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_weights_that_are_not_finite_stop_their_run_with_its_events(tmp_path, num_runs):
    trainer = toys.make_trainer(tmp_path, RUNS[:num_runs], toys.Noise, runner=NINE)
    programs, weights = trainer.learner.step_functions, trainer.learner.weights
    assert programs.compiled_is_finite(weights).tolist() == [True] * num_runs
    first = 0 if num_runs > 1 else ...
    poisoned = jax.tree.map(lambda leaf: leaf.at[first].multiply(np.nan), weights.params)
    found = programs.compiled_is_finite(weights._replace(params=poisoned))
    assert found.tolist() == [False, True][:num_runs]
    with mock.patch.object(programs, "compiled_is_finite", lambda _: found):
        while not trainer.failures:
            trainer.step()
    assert trainer.failures[0].endswith("stopped at training step 500: the weights are not finite")
    assert len(trainer.failures) == 1


def test_a_value_that_is_too_large_for_float32_stops_nothing(tmp_path, capsys):
    # exp(output / c) overflows; all that learning computes are logarithms.
    runner = dataclasses.replace(toys.RUNNER, training_steps=700)
    trainer = toys.make_trainer(tmp_path, [toys.log_dqn(c=1e-3)], runner=runner)
    trainer.train()
    assert trainer.failures == {}
    events = events_of(tmp_path / "1")
    assert [event.value for event in events.Scalars("Values/QPlus")] == [np.inf]
    (clipped,) = events.Scalars("Values/Clipped")
    assert clipped.value == pytest.approx(1, abs=0.2)
    assert capsys.readouterr().err.count("log_dqn Catch 1: values have diverged: ") == 1
    assert all(np.isfinite(weight).all() for weight in toys.weights(trainer)[0])


def test_what_a_run_writes(tmp_path, monkeypatch):
    # Episodes of Catch take 9 steps: 13 of them are 117, 5 are the first that reach 40.
    runner = dataclasses.replace(RUNNER, num_iterations=5, training_steps=117)
    trainer = toys.make_trainer(tmp_path, runner=runner)
    # A clock on which a step of the environment takes half a second, and nothing else any time.
    monkeypatch.setattr(time, "monotonic", lambda: 0.5 * receive.call_count)
    environments = trainer._environments
    with mock.patch.object(environments, "receive", wraps=environments.receive) as receive:
        trainer.train()
    folder = tmp_path / "1"
    log = pickle.loads((folder / "logs" / "log_4").read_bytes())
    for iteration in log.values():
        assert iteration["train_episode_lengths"] == [9] * 13
        assert iteration["eval_episode_lengths"] == [9] * 5
        for name in ("train", "eval"):
            returns = iteration[f"{name}_episode_returns"]
            assert set(returns) <= {-1.0, 1.0}
            assert iteration[f"{name}_average_return"] == [pytest.approx(np.mean(returns))]
        assert iteration["train_average_steps_per_second"] == [2.0]
    metrics = pickle.loads((folder / "metrics" / "pickle" / "pickle_4.pkl").read_bytes())
    assert metrics["iteration_2"]["Train/NumEpisodes"] == [13]
    average = log["iteration_2"]["eval_average_return"]
    assert metrics["iteration_2"]["Eval/AverageReturns"] == average
    manifest = json.loads((folder / "checkpoints" / "4" / "manifest.json").read_text())
    assert manifest["counters"] == {"training_steps": 585, "chosen": 810, "stored": 585}
    assert sorted(path.name for path in folder.glob("checkpoints/*")) == ["3", "4"]
    logs = [f"log_{number}" for number in (1, 2, 3, 4)]
    assert sorted(path.name for path in folder.glob("logs/*")) == logs


def test_a_run_killed_after_its_checkpoint_writes_its_results_when_it_is_found(tmp_path):
    toys.make_trainer(tmp_path, runner=RUNNER).train()
    paths = [tmp_path / "1" / name for name in ("logs/log_2", "metrics/pickle/pickle_2.pkl")]
    before = [pickle.loads(path.read_bytes()) for path in paths]
    assert type(before[0]["iteration_2"]["train_average_steps_per_second"][0]) is float
    more = dataclasses.replace(RUNNER, num_iterations=4)
    of_seed = toys.make_runs(tmp_path, [toys.log_dqn()], [1])
    for find in (
        lambda: toys.make_trainer(tmp_path, found=True, runner=more),
        lambda: toys.unfinished(of_seed, RUNNER),
    ):
        for path in [*paths, *(tmp_path / "1").glob("events.*")]:
            path.unlink()
        find()
        assert [pickle.loads(path.read_bytes()) for path in paths] == before
        (event,) = events_of(tmp_path / "1").Scalars("Train/AverageReturns")
        assert event.step == 2
        find()  # What is there isn't written again.
        assert len(events_of(tmp_path / "1").Scalars("Train/AverageReturns")) == 1


def events_of(folder):
    from tensorboard.backend.event_processing import event_accumulator

    return event_accumulator.EventAccumulator(str(folder)).Reload()


LEARNING = {
    "gamma": 0.9, "min_replay_history": 100, "update_period": 2, "target_update_period": 50,
    "epsilon_train": 0.02, "epsilon_decay_period": 800,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "agent",
    [
        agents.VectorizedLogDQNAgent(c=1.0, beta_log=0.03, **LEARNING),
        agents.VectorizedDQNAgent(learning_rate=0.01, **LEARNING),
    ],
    ids=["LogDQN", "DQN"],
)
def test_runs_learn_to_catch(tmp_path, agent):
    """That they learn as Dopamine's agents do, other tests show step by step."""
    settings = {"training_steps": 4000, "replay_capacity": 2000, "stack_size": 1}
    runner = dataclasses.replace(toys.RUNNER, **settings)
    trainer = toys.make_trainer(tmp_path, [agent] * 3, runner=runner)
    trainer.train()
    returns = np.array([log["iteration_0"]["train_episode_returns"] for log in trainer._logs])
    # In the first and the last fifth of the episodes; a random policy gets about -0.6.
    assert returns[:, :88].mean() < -0.2 and returns[:, -88:].mean() > 0.85


def test_events_are_readable(tmp_path):
    trainer = toys.make_trainer(
        tmp_path, [toys.log_dqn(update_period=2)],
        runner=dataclasses.replace(toys.RUNNER, num_iterations=2, training_steps=600),
    )  # fmt: skip
    trainer.train()
    events = events_of(tmp_path / "1")
    log = pickle.loads((tmp_path / "1" / "logs" / "log_1").read_bytes())
    points = events.Scalars("Train/AverageReturns")
    assert [point.step for point in points] == [0, 1]
    assert points[1].value == pytest.approx(log["iteration_1"]["train_average_return"][0])
    assert "Eval/AverageReturns" not in events.Tags()["scalars"]
    assert [point.step for point in events.Scalars("Losses/Plus")] == [500, 1000]
    assert 0 < events.Scalars("Values/QPlus")[-1].value < 2


@pytest.mark.parametrize("name", ["weights.npz", "replay_frames.zst", "log.json"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path, name, capsys):
    settings = {"runner": RUNNER, "checkpoint_replay": True}
    toys.make_trainer(tmp_path, **settings).train()
    path = tmp_path / "1" / "checkpoints" / "2" / name
    path.write_bytes(path.read_bytes()[:-1])
    rest = toys.make_trainer(tmp_path, found=True, **settings)
    assert rest.position.iteration[0] == 2
    assert "checkpoint 2" in capsys.readouterr().err


def test_a_full_disk_ends_training_in_one_line(tmp_path, monkeypatch):
    trainer = toys.make_trainer(tmp_path, runner=RUNNER)
    full = mock.Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(runs, "save", full)
    with pytest.raises(shell.RunStopped, match=r"results can't be saved.*No space"):
        trainer.train()


def test_checkpoints_that_are_not_ours_are_refused(tmp_path):
    toys.make_trainer(tmp_path, runner=RUNNER).train()
    (run,) = toys.make_runs(tmp_path, [toys.log_dqn()], [1])
    for number in ("1", "2"):
        path = tmp_path / "1" / "checkpoints" / number / "manifest.json"
        manifest = json.loads(path.read_text())
        del manifest["counters"]
        path.write_text(json.dumps(manifest))
    with pytest.raises(checkpoints.CheckpointError, match=r"not of vectorized training"):
        runs.find(run, print)


def test_environment_seeds_differ():
    seeds = {training.environment_seed(seed, i) for seed in range(1, 6) for i in range(200)}
    assert len(seeds) == 1000
    assert max(seeds) < 2**31


def test_every_iteration_begins_with_its_own_seed(tmp_path, monkeypatch):
    trainer = toys.make_trainer(tmp_path, [toys.log_dqn()] * 2, toys.Noise, [1, 7], RUNNER)
    environments = trainer._environments
    reset, begun = environments.reset, {0: [], 1: []}

    def note(starts, seeds):
        for run in np.flatnonzero(starts):
            begun[int(run)].append(int(seeds[run]))
        return reset(starts, seeds)

    monkeypatch.setattr(environments, "reset", note)
    trainer.train()
    for run, seed in ((0, 1), (1, 7)):
        assert begun[run] == [training.environment_seed(seed, i) for i in range(3)]
