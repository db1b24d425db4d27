"""The loop as one program on the device: it does what the loop of the host does, step by step."""

import jax
import numpy as np
import pytest

from log_dqn.vectorized import device_job, jax_games, learner, networks, schedule, training
from log_dqn.vectorized.environments import Results

from . import toys

PROTOCOL = schedule.Protocol(
    num_iterations=2,
    training_steps=900,
    evaluation_steps=200,
    replay_capacity=400,
    stack_size=1,
    network="revisiting_rainbow",
)


class Shown:
    """A progress line that keeps what it is told."""

    def __init__(self):
        self.steps = 0
        self.lines = []

    def update(self, steps=1):
        self.steps += steps

    def print_line(self, line):
        self.lines.append(line)

    def clear(self):
        pass

    def close(self):
        pass


class HostGames:
    """One JAX game a run, stepped by the host, as `environments.Environments`."""

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
            outcomes.append(tuple(map(np.asarray, outcome)))
        return Results(*map(np.array, zip(*outcomes, strict=True)))


def problem(game):
    return learner.Problem(
        networks.revisiting_rainbow, game.frame_shape, "bool", 1, 8, PROTOCOL.replay_capacity
    )


def jobs(tmp_path, game, run_agents, seeds=None):
    """Returns a job of the device and one of the host, of the same runs."""
    seeds = seeds or list(range(1, len(run_agents) + 1))
    on_device = device_job.DeviceJob(
        toys.make_runs(tmp_path / "device", run_agents, seeds), PROTOCOL, problem(game), game,
        [None] * len(seeds), Shown(),
    )  # fmt: skip
    on_host = training.HostJob(
        toys.make_runs(tmp_path / "host", run_agents, seeds), PROTOCOL, problem(game),
        HostGames(game, len(seeds)), checkpoint_replay=True, shown=Shown(),
    )  # fmt: skip
    return on_device, on_host


def agent(**settings):
    return toys.log_dqn(optimizer="adam", epsilon_train=0.1, epsilon_eval=0.05, **settings)


@pytest.mark.parametrize("update_horizon", [1, 3])
@pytest.mark.parametrize("name", ["bsuite/Catch", "MinAtar/Breakout"])
def test_the_device_does_what_the_host_does(tmp_path, name, update_horizon):
    game = jax_games.create(name)
    on_device, on_host = jobs(tmp_path, game, [agent(update_horizon=update_horizon)])
    for job in (on_device, on_host):
        job.train()
    place, expected = on_device.schedule.place, on_host.schedule.place
    for field in ("iteration", "training_steps", "chosen", "stored"):
        assert getattr(place, field) == getattr(expected, field), field
    for iteration in range(2):
        log, wanted = (job._logs[0][f"iteration_{iteration}"] for job in (on_device, on_host))
        for phase in ("train", "eval"):
            assert log[f"{phase}_episode_returns"] == wanted[f"{phase}_episode_returns"]
            assert log[f"{phase}_episode_lengths"] == wanted[f"{phase}_episode_lengths"]
    for field in learner.replay.Memory._fields:
        np.testing.assert_array_equal(
            *(getattr(job._learners[0].memory, field)[:400] for job in (on_device, on_host))
        )
    for mine, theirs in zip(toys.weights(on_device)[0], toys.weights(on_host)[0], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-5)
