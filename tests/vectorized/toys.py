"""Small environments and networks for the tests of vectorized training."""

import contextlib
import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from log_dqn import scan
from log_dqn.cli import progress
from log_dqn.run_folder import configuration
from log_dqn.vectorized import agents, learner, networks, runs, start, timeline, training
from log_dqn.vectorized.timeline import Outcome


class Catch:
    """A ball falls down a board of 10 x 5; a paddle in the last row is to catch it."""

    rows, columns, num_actions = 10, 5, 3

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self):
        self.ball = [0, int(self.rng.integers(self.columns))]
        self.paddle = self.columns // 2
        return self.frame()

    def frame(self):
        board = np.zeros((self.rows, self.columns), np.uint8)
        board[self.ball[0], self.ball[1]] = board[-1, self.paddle] = 255
        return board

    def step(self, action):
        """Returns frame, reward and whether the episode has ended."""
        self.paddle = int(np.clip(self.paddle + action - 1, 0, self.columns - 1))
        self.ball[0] += 1
        ended = self.ball[0] == self.rows - 1
        reward = (1.0 if self.ball[1] == self.paddle else -1.0) if ended else 0.0
        return self.frame(), reward, ended


class Noise:
    """Random frames, rewards and lengths of episodes."""

    num_actions = 4

    def __init__(self, seed, shape=(3,), lengths=(1, 12)):
        self.rng = np.random.default_rng(seed)
        self.shape, self.lengths = shape, lengths
        self.reset()

    def reset(self):
        self.left = int(self.rng.integers(*self.lengths, endpoint=True))
        return self.frame()

    def frame(self):
        return self.rng.integers(0, 256, self.shape).astype(np.uint8)

    def step(self, action):
        self.left -= 1
        return self.frame(), float(self.rng.integers(-3, 4)), self.left <= 0


class Toys:
    """One toy a run, as `environments.AtariGames`."""

    faults: dict = {}  # noqa: RUF012

    def __init__(self, create, num_runs):
        self._create = create
        self._toys = [create(run) for run in range(num_runs)]
        self._frame_shape = self._toys[0].frame().shape
        self.num_actions = [toy.num_actions for toy in self._toys]
        self.sent = []

    def reset(self, starts, seeds):
        # Those of other runs are of no meaning.
        frames = np.full((len(self._toys), *self._frame_shape), 77, np.uint8)
        for run in np.flatnonzero(starts):
            self._toys[run] = self._create(int(seeds[run]))
            frames[run] = self._toys[run].reset()
        return frames

    def send(self, actions):
        self.sent.append(np.array(actions))

    def receive(self):
        steps = []
        for toy, action in zip(self._toys, self.sent[-1], strict=True):
            frame, reward, ended = toy.step(int(action))
            steps.append((toy.reset() if ended else frame, reward, ended))
        frames, rewards, ended = map(np.array, zip(*steps, strict=True))
        return Outcome(frames, rewards.astype(np.float32), ended, ended & False)


def _init(key, state_shape):
    return {"Dense_0": networks.dense_params(key, int(np.prod(state_shape)), 64)}, 64


def _apply(params, states):
    states = states.reshape(len(states), -1).astype(jnp.float32) / 255
    return jax.nn.relu(networks.dense(params["Dense_0"], states))


small_network = networks.Network(_init, _apply)


# Nearly all tests have its memory, so that few programs are to be compiled.
RUNNER = agents.RunnerSettings(
    num_iterations=1, training_steps=10**6, evaluation_steps=0, replay_capacity=150, stack_size=2
)


def problem(create, runner=RUNNER):
    return learner.Problem(
        small_network, create(0).frame().shape, "uint8", runner.stack_size, 32,
        runner.replay_capacity,
    )  # fmt: skip


def make_trainer(
    folder, run_agents=None, game=Catch, seeds=None, runner=RUNNER, checkpoint_replay=False,
    found=None,
):  # fmt: skip
    """Makes a trainer of toys; if `found`, of unfinished ones, from their checkpoints on."""
    run_agents = run_agents or [log_dqn()]
    seeds = seeds or list(range(1, len(run_agents) + 1))
    job_runs = make_runs(folder, run_agents, seeds)
    checkpoints = [None] * len(job_runs)
    if found:
        job_runs, checkpoints = unfinished(job_runs, runner)
    environments = Toys(game, len(job_runs))
    workload = training.Workload(job_runs, runner, checkpoints, checkpoint_replay)
    indices = range(len(job_runs))
    shown = progress.Progress(
        [0] * len(job_runs), runner.num_iterations, runner.steps_per_iteration
    )
    return training.HostTrainer(workload, problem(game, runner), environments, shown, indices)


def unfinished(job_runs, runner):
    """Returns what `start.claim_unfinished` does, and lets the runs' folders go."""
    with contextlib.ExitStack() as stack:
        return start.claim_unfinished(job_runs, runner.num_iterations, stack, stack)


def make_runs(folder, run_agents, seeds):
    job_runs = []
    for agent, seed in zip(run_agents, seeds, strict=True):
        of_run = pathlib.Path(folder) / str(seed)
        of_run.mkdir(parents=True, exist_ok=True)
        setting = scan.Setting("", {})
        config = configuration.Configuration("", dataclasses.asdict(agent))
        job_runs.append(runs.Run("log_dqn", setting, "Catch", seed, agent, config, of_run))
    return job_runs


def log_dqn(**settings):
    """A LogDQN agent with periods for short tests."""
    defaults = {"min_replay_history": 50, "target_update_period": 40, "epsilon_decay_period": 200}
    return agents.VectorizedLogDQNAgent(**(defaults | settings))


def weights(trainer):
    """The weights of each run, as lists of arrays."""
    return [trainer.learner.run_weights(index) for index in range(len(trainer._runs))]


def due(num_runs=1, number=4, oldest=0, available=40, learns=True):
    """An update of some runs."""
    ones = np.ones(num_runs, np.int32)
    return timeline.Update(
        number * ones, oldest * ones, available * ones, ones & learns > 0, ones < 0
    )
