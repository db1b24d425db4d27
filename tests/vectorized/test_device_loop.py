"""The loop as one program on the device: it does what the loop of the host does, step by step."""

import dataclasses
import time
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from log_dqn.cli import progress
from log_dqn.cli.shell import RunStopped
from log_dqn.vectorized import (
    agents,
    device_loop,
    jax_environments,
    learner,
    networks,
    runs,
    training,
)
from log_dqn.vectorized.timeline import Outcome

from . import toys

RUNNER = agents.RunnerSettings(
    num_iterations=2, training_steps=900, evaluation_steps=200, replay_capacity=400, stack_size=1,
    network="revisiting_rainbow",
)  # fmt: skip


class HostGames:
    """One JAX game a run, stepped by the host, as `environments.AtariGames`."""

    faults: dict = {}  # noqa: RUF012

    def __init__(self, game, num_runs):
        self.num_actions = [game.num_actions] * num_runs
        self._states = [None] * num_runs
        self._frames = [np.zeros(game.frame_shape, bool)] * num_runs
        self._reset, self._step = jax.jit(game.reset), jax.jit(game.step)

    def reset(self, starts, seeds):
        for run in np.flatnonzero(starts):
            self._states[run], self._frames[run] = self._reset(jax.random.key(int(seeds[run])))
        return np.array(self._frames)

    def send(self, actions):
        self._actions = np.array(actions)

    def receive(self):
        outcomes = []
        for run, action in enumerate(self._actions):
            if self._states[run] is None:
                outcomes.append((self._frames[run], 0.0, False))
                continue
            self._states[run], outcome = self._step(self._states[run], int(action))
            outcomes.append(tuple(map(np.asarray, outcome[:3])))
        frames, rewards, ended = map(np.array, zip(*outcomes, strict=True))
        return Outcome(frames, rewards.astype(np.float32), ended, ended & False)


def problem(game):
    return learner.Problem(
        networks.revisiting_rainbow, game.frame_shape, "bool", 1, 8, RUNNER.replay_capacity
    )


def shown(num_runs):
    return progress.Progress([0] * num_runs, RUNNER.num_iterations, RUNNER.steps_per_iteration)


def device_trainer_of(
    folder, run_agents=None, seeds=(1,), game=None, resume=False, shared=None, shown_as=None
):
    run_agents, game = run_agents or [agent()], game or jax_environments.create_game("bsuite/Catch")
    job_runs = toys.make_runs(folder, run_agents, seeds)
    found = [runs.find(run, print) if resume else None for run in job_runs]
    workload = training.Workload(job_runs, RUNNER, found)
    return device_loop.DeviceTrainer(
        workload, problem(game), game, shared or shown(len(seeds)), shown_as or range(len(seeds))
    )


def trainers(tmp_path, game, run_agents):
    """Returns a trainer of the device and one of the host, of the same runs."""
    seeds = list(range(1, len(run_agents) + 1))
    on_device = device_trainer_of(tmp_path / "device", run_agents, seeds, game)
    job_runs = toys.make_runs(tmp_path / "host", run_agents, seeds)
    workload = training.Workload(job_runs, RUNNER, [None] * len(seeds), checkpoint_replay=True)
    on_host = training.HostTrainer(
        workload, problem(game), HostGames(game, len(seeds)), shown(len(seeds)), range(len(seeds))
    )
    return on_device, on_host


def assert_close(ours, theirs):
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(our, their, rtol=1e-3, atol=1e-5)


def agent(**settings):
    return toys.log_dqn(optimizer="adam", epsilon_train=0.1, epsilon_eval=0.05, **settings)


@pytest.mark.parametrize(
    ("name", "update_horizon"),
    [("bsuite/Catch", 3), pytest.param("MinAtar/Breakout", 1, marks=pytest.mark.slow)],
)
def test_the_device_does_what_the_host_does(tmp_path, name, update_horizon):
    game = jax_environments.create_game(name)
    on_device, on_host = trainers(tmp_path, game, [agent(update_horizon=update_horizon)])
    for trainer in (on_device, on_host):
        trainer.train()
    position, expected = on_device.position, on_host.position
    for field in ("iteration", "training_steps", "chosen", "stored"):
        assert getattr(position, field) == getattr(expected, field), field
    for iteration in range(2):
        log, wanted = (
            trainer._logs[0][f"iteration_{iteration}"] for trainer in (on_device, on_host)
        )
        for phase in ("train", "eval"):
            assert log[f"{phase}_episode_returns"] == wanted[f"{phase}_episode_returns"]
            assert log[f"{phase}_episode_lengths"] == wanted[f"{phase}_episode_lengths"]
    for field in learner.replay.Memory._fields:
        np.testing.assert_array_equal(
            *(getattr(trainer.learner.memory, field)[:, :400] for trainer in (on_device, on_host))
        )
    assert_close(toys.weights(on_device)[0], toys.weights(on_host)[0])


@pytest.mark.slow
def test_runs_in_one_program_are_the_runs_alone(tmp_path, capsys):
    run_agents = [agent(gamma=0.5, beta_log=0.001), agent(min_replay_history=99)]
    together = device_trainer_of(tmp_path / "together", run_agents, [1, 2])
    together.train()
    out = capsys.readouterr().out
    assert out.count("iteration 2/2") == 2 and "iteration 1/2" not in out
    for index, run_agent in enumerate(run_agents):
        alone = device_trainer_of(tmp_path / "alone", [run_agent], [index + 1])
        alone.train()
        assert capsys.readouterr().out.count("iteration 1/2") == 1
        for iteration in ("iteration_0", "iteration_1"):
            mine, theirs = together._logs[index][iteration], alone._logs[0][iteration]
            assert mine["train_episode_returns"] == theirs["train_episode_returns"]
        assert_close(toys.weights(together)[index], toys.weights(alone)[0])


def test_new_games_are_compiled_once(tmp_path, caplog):
    loop = device_trainer_of(tmp_path, [agent(), agent()], [1, 2])._loop
    compiled = []
    with jax.log_compiles():
        for seed in range(3):
            caplog.clear()
            loop.reset(np.array([True, False]), np.array([seed, 0]))
            compiled.append(any(line.startswith("Compiling ") for line in caplog.messages))
    assert compiled == [True, False, False]


def test_memory_is_given_back_once_the_loop_is_compiled(tmp_path, monkeypatch):
    trainer = device_trainer_of(tmp_path)
    calls = mock.Mock()
    monkeypatch.setattr(device_loop, "give_back_memory", calls.give_back)
    calls.run.side_effect = trainer._loop._run
    monkeypatch.setattr(trainer._loop, "_run", calls.run)
    for _ in range(3):
        trainer.step()
    assert [name for name, *_ in calls.mock_calls] == ["run", "give_back", "run", "run"]


def test_a_stopped_run_resumes_exactly(tmp_path):
    whole = device_trainer_of(tmp_path / "whole")
    whole.train()
    stopped = device_trainer_of(tmp_path / "stopped")
    while stopped.position.iteration[0] < 1:
        stopped.step()
    stopped.step()  # Into the second iteration, which is lost.
    with pytest.raises(RunStopped) as stop:
        stopped.train(lambda: 15)
    assert stop.value.status == 143
    rest = device_trainer_of(tmp_path / "stopped", resume=True)
    rest.train()
    np.testing.assert_equal(toys.weights(rest)[0], toys.weights(whole)[0])
    for log in (rest._logs[0], whole._logs[0]):
        for entry in log.values():
            del entry["train_average_steps_per_second"]
    assert rest._logs == whole._logs


def test_a_loss_that_is_not_finite_stops_its_run_alone(tmp_path):
    run_agents = [agent(), agent(beta_log=1e30)]
    trainer = device_trainer_of(tmp_path, run_agents, [1, 2])
    trainer.train()
    assert list(trainer.failures) == [1]
    assert "stopped" in trainer.failures[1]
    assert trainer.position.iteration[0] == 2


def test_an_iterations_last_summary_counts_in_it(tmp_path, monkeypatch):
    # 900 steps end in the chunk of 500 in which the summary of update 500 is due.
    monkeypatch.setitem(globals(), "RUNNER", dataclasses.replace(RUNNER, evaluation_steps=0))
    trainer = device_trainer_of(tmp_path)
    (watch,), seen = trainer._watches, []
    monkeypatch.setattr(watch, "end_iteration", lambda: seen.append(len(watch._shares)))
    trainer.train()
    assert seen == [1, 3]


def test_the_speed_of_training_leaves_evaluation_out(tmp_path, monkeypatch):
    runner = dataclasses.replace(RUNNER, training_steps=100, evaluation_steps=300)
    monkeypatch.setitem(globals(), "RUNNER", runner)
    trainer = device_trainer_of(tmp_path)
    # A clock on which a step takes a second, and nothing else any time.
    monkeypatch.setattr(time, "monotonic", lambda: float(trainer._loop._step))
    trainer.train()
    for entry in trainer._logs[0].values():
        # The result of the last of 100 steps or more is seen with the next.
        (speed,) = entry["train_average_steps_per_second"]
        assert speed == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("num_runs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_reward_that_is_no_number_stops_a_run(tmp_path, num_runs):
    game = jax_environments.create_game("bsuite/Catch")

    def step(state, action):
        new, outcome = game.step(state, action)
        bad = jnp.where(state.steps == 4, jnp.nan, outcome.reward)
        return new, outcome._replace(reward=bad)

    trainer = device_trainer_of(
        tmp_path, [agent()] * num_runs, list(range(num_runs)), dataclasses.replace(game, step=step)
    )
    trainer.step()
    said = (
        "stopped at step 5, counted from the run's start: the game's reward or observation is not"
    )
    assert [said in failure for failure in trainer.failures.values()] == [True] * num_runs
    assert trainer.finished
