"""Vectorized training of one run on Pong against Dopamine's TensorFlow DQN, and in bfloat16."""

import argparse
import pathlib
import tempfile

import gin
import jax
import numpy as np

from benchmarks import measuring
from log_dqn import scan
from log_dqn.cli import progress
from log_dqn.run_folder import configuration
from log_dqn.vectorized import agents, environments, learner, networks, runs, timeline, training

# Random play before anything is measured, in agent steps.
_WARM_UP = 220
_STEPS, _UPDATES = 40, 10


def create_problem(capacity: int, precision: str = "float32") -> learner.Problem:
    """Returns what runs on Atari learn from that remember so many transitions."""
    return learner.Problem(
        networks.create("nature", precision), environments.ATARI.frame_shape, "uint8", 4, 32,
        capacity,
    )  # fmt: skip


def create_trainer(
    agent: str, num_runs: int, capacity: int, folder: str, precision: str = "float32"
) -> training.HostTrainer:
    """Creates a trainer of some runs of one game and plays until they learn."""
    settings = agents.AGENTS[agent](min_replay_history=_WARM_UP - 20)  # type: ignore[call-arg]
    setting, config = scan.Setting("", {}), configuration.Configuration("", {})
    job_runs = [
        runs.Run(agent, setting, measuring.GAME, seed, settings, config, pathlib.Path(folder))
        for seed in range(1, num_runs + 1)
    ]
    runner = agents.RunnerSettings(num_iterations=1, training_steps=10**8, replay_capacity=capacity)
    trainer = training.HostTrainer(
        training.Workload(job_runs, runner, [None] * num_runs),
        create_problem(capacity, precision),
        environments.AtariGames([measuring.GAME] * num_runs, 27000),
        progress.Progress([0] * num_runs, runner.num_iterations, runner.steps_per_iteration),
        range(num_runs),
    )
    play(trainer, _WARM_UP + 12)
    return trainer


def play(trainer: training.HostTrainer, steps: int) -> None:
    """Plays some agent steps of all runs, and waits for their last update."""
    for _ in range(steps):
        trainer.step()
    jax.block_until_ready(trainer.learner.weights)


def learn(trainer: training.HostTrainer, updates: int) -> None:
    """Updates all runs some times, from what `create_trainer` has played."""
    ones = np.ones(len(trainer._runs), np.int32)
    update = timeline.Update(4 * ones, 0 * ones, _WARM_UP * ones, ones > 0, ones < 0)
    for _ in range(updates):
        trainer.learner.learn(update)
    jax.block_until_ready(trainer.learner.weights)


def run(args: argparse.Namespace) -> None:
    """Prints a table of the whole loop, and one of updates."""
    from benchmarks import agents_tf  # Where Dopamine is missing, `gpu` needs the rest of this.

    agents_tf.set_up()
    gin.parse_config("WrappedReplayBuffer.replay_capacity = 10000")
    dopamine = agents_tf.Player("DQN", replay_steps=500)
    with tempfile.TemporaryDirectory() as folder:
        here, bfloat16 = (
            create_trainer(args.agent, 1, 10_000, folder, precision)
            for precision in ("float32", "bfloat16")
        )
        loops = {
            "dqn, Dopamine": measuring.timed(dopamine.loop, _STEPS),
            args.agent: measuring.timed(play, here, _STEPS),
        }
        updates = {
            f"{args.agent} in float32": measuring.timed(learn, here, _UPDATES),
            f"{args.agent} in bfloat16": measuring.timed(learn, bfloat16, _UPDATES),
            "dqn, Dopamine": measuring.timed(dopamine.train, _UPDATES),
        }
        print(f"{measuring.GAME}, batch size 32, JAX {jax.__version__}\n")
        for title, blocks, number in (("loop", loops, _STEPS), ("updates", updates, _UPDATES)):
            times = measuring.interleave(blocks, args.rounds, title)
            speeds = {name: number / took for name, took in times.items()}
            measuring.print_table(title, "per second", speeds)
