"""Measures LogDQN on JAX against Dopamine's JaxDQNAgent, interleaved in one run.

    python scripts/benchmark_jax.py

Figures as in `benchmark.py`. LogDQN is compared with DQN twice: with the same optimizer and loss
(`jax_dqn_rmsprop.gin`), and with Dopamine's JAX settings, Adam and the squared error
(`jax_dqn.gin`).
"""

import argparse
import functools
import resource

import absl.logging
from benchmark import GAME, interleave, peak_memory, play, report

from log_dqn import compat

with compat.quiet():
    import gin
    import jax
    from dopamine.jax.agents.dqn import dqn_agent

    from log_dqn import atari
    from log_dqn.jax import log_dqn_agent, optimizers

AGENTS = {
    "LogDQN": log_dqn_agent.JaxLogDQNAgent,
    "DQN RMSProp": functools.partial(
        dqn_agent.JaxDQNAgent, optimizer=optimizers.rmsprop_tf(), loss_type="huber"
    ),
    "DQN Adam": dqn_agent.JaxDQNAgent,
}
# Steps of a block.
STEPS = {"train": 4, "act": 100, "loop": 40}


class Learner:
    """An agent with a game, as it is in the middle of training."""

    def __init__(self, name: str, replay_steps: int) -> None:
        """Creates the agent and fills its replay memory.

        Args:
            name: a key of `AGENTS`.
            replay_steps: agent steps of random play.
        """
        self.environment = atari.create_environment(GAME, seed=0)
        self.agent = AGENTS[name](
            num_actions=int(self.environment.action_space.n),
            min_replay_history=replay_steps,
            epsilon_decay_period=1,
            seed=0,
        )
        self._action = self.agent.begin_episode(self.environment.reset())
        # An episode's transitions are stored a step late.
        self.loop(replay_steps + 10)

    def loop(self, steps: int) -> None:
        """Plays agent steps of training."""
        self._action = play(self.agent, self.environment, self._action, steps)
        jax.block_until_ready(self.agent.online_params)

    def train(self, steps: int) -> None:
        """Runs training steps of one batch of 32, sampled from the replay memory."""
        for _ in range(steps):
            self.agent.training_steps = self.agent.update_period
            self.agent._train_step()
        jax.block_until_ready(self.agent.online_params)

    def act(self, steps: int) -> None:
        """Chooses actions as in evaluation."""
        frame = self.agent._observation
        self.agent.eval_mode = True
        for _ in range(steps):
            self.agent.step(0.0, frame)
        self.agent.eval_mode = False


def main() -> None:
    """Runs the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rounds", type=int, default=40, help="blocks of each figure")
    parser.add_argument("--measure_memory_of", choices=list(AGENTS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    absl.logging.set_verbosity(absl.logging.ERROR)
    gin.parse_config("ReplayBuffer.max_capacity = 10000\nReplayBuffer.batch_size = 32")
    if args.measure_memory_of:
        Learner(args.measure_memory_of, replay_steps=1000).loop(1000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return

    device = jax.devices()[0]
    print(f"{GAME}, batch size 32, JAX {jax.__version__} on {device.device_kind}")
    # First: a process's peak begins at the size of the process that starts it.
    memory = {name: peak_memory(__file__, name) for name in AGENTS}
    learners = {name: Learner(name, replay_steps=500) for name in AGENTS}
    figures = {"train": "training step", "act": "acting", "loop": "whole loop"}
    seconds = {
        method: interleave(
            {
                name: functools.partial(getattr(learner, method), STEPS[method])
                for name, learner in learners.items()
            },
            args.rounds,
            figure,
        )
        for method, figure in figures.items()
    }
    for other in list(AGENTS)[1:]:
        print(f"{'':<22}{'LogDQN':>10}{other:>13}")
        for method, times in seconds.items():
            ours, theirs = times["LogDQN"] / STEPS[method], times[other] / STEPS[method]
            if method == "loop":
                report(figures[method], 1 / ours, 1 / theirs, "steps/s")
            else:
                report(figures[method], 1e3 * ours, 1e3 * theirs, "ms")
        report("peak memory", memory["LogDQN"], memory[other], "MiB")


if __name__ == "__main__":
    main()
