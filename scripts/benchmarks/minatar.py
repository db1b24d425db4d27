"""Vectorized training of one run on MinAtar's Freeway, on one core: each agent."""

import argparse
from collections.abc import Sequence

import gin
import jax
import numpy as np

from benchmarks import measuring
from log_dqn.cli import gin_files, threads
from log_dqn.vectorized import agents, device_loop, jax_environments, learner, networks, timeline

STEPS = 10 * device_loop.CHUNK_STEPS


class Player:
    """Plays a run that learns, or several in one program, with a full schedule.

    Attributes:
        learner: weights and memory.
        returns: of the episodes so far.
    """

    def __init__(
        self,
        game: str,
        agent: str,
        seeds: Sequence[int],
        steps: int = STEPS,
        capacity: int = 100_000,
        **settings: float,
    ) -> None:
        """Plays some steps of a run for each seed, until updates have begun.

        `capacity` is of the replay memory; `settings` are of the agent, other than those of its gin
        file.
        """
        gin.clear_config()
        capacity_line = f"VectorizedRunner.replay_capacity = {capacity}"
        gin_files.read(gin_files.parse([f"vectorized_{agent}_minatar.gin"], [capacity_line]))
        for name, value in settings.items():
            gin.parse_config(f"{agents.AGENTS[agent].__name__}.{name} = {value}")
        runner = agents.RunnerSettings(num_iterations=1, training_steps=10**8)
        run_agents = [agents.AGENTS[agent]()] * len(seeds)
        jax_game = jax_environments.create_game(game)
        problem = learner.Problem(
            networks.create(runner.network, runner.precision), jax_game.frame_shape, "bool",
            runner.stack_size, runner.batch_size, runner.replay_capacity,
        )  # fmt: skip
        num_actions = [jax_game.num_actions] * len(seeds)
        self.learner = learner.Learner(run_agents, problem, runner, num_actions, seeds)
        self._position = timeline.begin(len(seeds))
        self._loop = device_loop.DeviceLoop(self.learner, jax_game)
        self._loop.reset(np.ones(len(seeds), bool), np.array(seeds))
        self.returns: list[float] = []
        self.play(steps)

    def play(self, steps: int = STEPS) -> None:
        """Plays some agent steps of each run."""
        for _ in range(steps // device_loop.CHUNK_STEPS):
            ready = self._position.iteration
            self._position, episodes = self._loop.advance(self._position, ready)
            self.returns += episodes.value[episodes.ended].tolist()


def on_one_core() -> None:
    """Sets this process up as `train_vectorized` does for a run."""
    threads.limit(1)
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def run(args: argparse.Namespace) -> None:
    """Prints the agent steps per second of each agent."""
    on_one_core()
    game = "MinAtar/Freeway"
    players = {agent: Player(game, agent, [1]) for agent in sorted(agents.AGENTS)}
    blocks = {agent: measuring.timed(player.play) for agent, player in players.items()}
    times = measuring.interleave(blocks, args.rounds, "MinAtar")
    device = f"JAX {jax.__version__} on {jax.devices()[0].device_kind}"
    speeds = {agent: STEPS / took for agent, took in times.items()}
    measuring.print_table(f"{game}, batch size 32, {device}", "steps/s", speeds)
