"""Vectorized training: agent steps per second of 1, 2, 4, ... runs in one call, and their limits.

On a CPU it computes one run in a call, and several side by side, which `cores` measures.

The columns: agent steps per second of all runs together, and of each; the speed of the
environments alone, of acting alone and of the updates alone (one for every `update_period` steps,
on memories already filled), all in agent steps per second; and the share that the whole has of the
lower ceiling, environments or updates.

Where TensorFlow and Dopamine are installed, one run is then measured against Dopamine's
TensorFlow DQN, in turn, in the same process.
"""

import importlib.util
import pathlib
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
    problem = create_problem(capacity, precision)
    config = configuration.Configuration("", {})
    job_runs = [
        runs.Run(
            agent,
            scan.Setting("", {}),
            measuring.GAME,
            seed,
            settings,
            config,
            pathlib.Path(folder),
        )
        for seed in range(1, num_runs + 1)
    ]
    runner = agents.RunnerSettings(training_steps=10**9, replay_capacity=capacity)
    trainer = training.HostTrainer(
        training.Workload(job_runs, runner, [None] * num_runs),
        problem,
        environments.AtariGames([measuring.GAME] * num_runs, 27000),
        progress.Progress([0] * num_runs, runner.num_iterations, runner.steps_per_iteration),
        range(num_runs),
    )
    for _ in range(_WARM_UP + 12):
        trainer.step()
    return trainer


def seconds(function: Callable[[], Any], at_least: float) -> float:
    """Returns the mean time of a call, over calls that take a while together."""
    count, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < at_least:
        function()
        count += 1
    return passed / count


def _update(num_runs: int) -> timeline.Update:
    """Returns an update of all runs, from what `create_trainer` has played."""
    ones = np.ones(num_runs, np.int32)
    return timeline.Update(4 * ones, 0 * ones, _WARM_UP * ones, ones > 0, ones < 0)


def ceilings(trainer: training.HostTrainer, at_least: float) -> dict[str, float]:
    """Returns the time of a step of the environments, of acting and of updates, each alone."""
    num_runs = len(trainer._runs)
    rng = np.random.default_rng(0)
    # The trainer has sent actions already.
    outcome = trainer._environments.receive()
    nothing = timeline.begin(num_runs), outcome, outcome.ended & False
    _, plan = timeline.advance(trainer.learner.rules, *nothing, np)

    def step_environments() -> None:
        trainer._environments.send(rng.integers(0, 4, num_runs))
        trainer._environments.receive()

    def act() -> None:
        trainer.learner.act(outcome.frame, outcome.reward, plan.choice)

    def learn() -> None:
        trainer.learner.learn(_update(num_runs))
        jax.block_until_ready(trainer.learner.weights)

    period = trainer._runs[0].agent.update_period
    found = {
        "environments": seconds(step_environments, at_least),
        "acting": seconds(act, at_least),
        "updates": seconds(learn, at_least) / period,
    }
    # For the trainer's next step.
    trainer._environments.send(np.zeros(num_runs, np.int32))
    return found


def against_dopamine(agent: str, rounds: int, folder: str) -> None:
    """Measures one run and Dopamine's TensorFlow DQN in turn, whole and its updates alone."""
    from benchmarks import agents_tf

    agents_tf.set_up()
    gin.parse_config("WrappedReplayBuffer.replay_capacity = 10000")
    dopamine = agents_tf.Player("DQN", replay_steps=500)
    trainer = create_trainer(agent, 1, 10_000, folder)
    in_bfloat16 = create_trainer(agent, 1, 10_000, folder, "bfloat16")
    steps = 40

    def ours() -> None:
        for _ in range(steps):
            trainer.step()
        jax.block_until_ready(trainer.learner.weights)

    updates = 10

    def learn(trainer: training.HostTrainer) -> None:
        for _ in range(updates):
            trainer.learner.learn(_update(1))
        jax.block_until_ready(trainer.learner.weights)

    times = measuring.interleave(
        {
            "ours": ours,
            "dopamine": lambda: dopamine.loop(steps),
            "our updates": lambda: learn(trainer),
            "our updates in bfloat16": lambda: learn(in_bfloat16),
            "dopamine's updates": lambda: dopamine.train(updates),
        },
        rounds,
        "one run",
    )
    measuring.print_heading("one run", "DQN")
    measuring.print_ratio("whole loop", steps / times["ours"], steps / times["dopamine"], "steps/s")
    ms = {name: 1e3 / updates * seconds for name, seconds in times.items()}
    measuring.print_ratio("update", ms["our updates"], ms["dopamine's updates"], "ms")
    measuring.print_heading("float32", "bfloat16")
    measuring.print_ratio("update", ms["our updates"], ms["our updates in bfloat16"], "ms")


class Figures(NamedTuple):
    """Speeds of a trainer, in agent steps per second of all its runs together.

    Attributes:
        steps_per_second: of the whole.
        alone: of the environments, of acting and of updates, each alone.
        of_ceiling: the share that the whole has of the lower of environments and updates.
    """

    steps_per_second: float
    alone: dict[str, float]
    of_ceiling: float


def measure(trainer: training.HostTrainer, at_least: float) -> Figures:
    """Measures a trainer; a figure takes `at_least` so many seconds, those alone a third."""
    num_runs, steps = len(trainer._runs), 4

    def play() -> None:
        for _ in range(steps):
            trainer.step()
        jax.block_until_ready(trainer.learner.weights)

    speed = steps * num_runs / seconds(play, at_least)
    alone = {name: num_runs / took for name, took in ceilings(trainer, at_least / 3).items()}
    return Figures(speed, alone, speed / min(alone["environments"], alone["updates"]))


def run(
    runs_at_once: Sequence[int], agent: str, capacity: int, at_least: float, rounds: int
) -> None:
    """Prints a line for each number of runs, then one run against Dopamine.

    Without any, one run on a CPU, and 1 to 16 elsewhere. A run remembers `capacity` transitions; a
    figure takes `at_least` so many seconds.
    """
    if not runs_at_once:
        runs_at_once = (1,) if jax.default_backend() == "cpu" else (1, 2, 4, 8, 16)
    device = jax.devices()[0].device_kind
    print(f"{measuring.GAME}, {agent}, batch size 32, JAX {jax.__version__} on {device}")
    names = ("runs", "steps/s", "a run", "| env", "acting", "updates", "")
    print(("{:>5}{:>9}{:>8}{:>9}{:>9}{:>9}{:>12}").format(*names))
    with tempfile.TemporaryDirectory() as folder:
        for num_runs in runs_at_once:
            trainer = create_trainer(agent, num_runs, capacity, folder)
            speed, alone, of_ceiling = measure(trainer, at_least)
            print(
                f"{num_runs:5}{speed:9.0f}{speed / num_runs:8.0f}"
                + "".join(f"{alone_speed:9.0f}" for alone_speed in alone.values())
                + f"{of_ceiling:8.0%} of it",
                flush=True,
            )
            del trainer
        if all(importlib.util.find_spec(name) for name in ("tensorflow", "dopamine")):
            against_dopamine(agent, rounds, folder)
