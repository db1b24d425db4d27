"""What the benchmarks share: timing blocks of work in turn, ratios and peak memory."""

import functools
import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from tqdm import tqdm

GAME = "Pong"
LOGLIN_DQN = {"linear_above": 0.1, "c": 0.1, "beta_reg": 1.0}
"""What makes LogDQN LogLinDQN, as in its gin files."""

_PROGRAM = pathlib.Path(__file__).parents[1] / "benchmark.py"
_bar = functools.partial(tqdm, leave=False, disable=None)
_FIGURES = {"train": "training step", "act": "acting", "loop": "whole loop"}


class Player:
    """An agent with a game, as it is in the middle of training.

    A subclass says how many steps of `train`, `act` and `loop` make a block (`steps`) and how long
    the agent plays at random before (`replay_steps`).
    """

    steps: ClassVar[dict[str, int]]
    replay_steps: int

    def __init__(self, name: str, replay_steps: int | None = None) -> None:
        """Creates an agent by name and fills its replay memory with random play."""
        from log_dqn import atari  # Not where Dopamine is missing.

        replay_steps = replay_steps or self.replay_steps
        self.environment = atari.create_environment(GAME, seed=0)
        self.agent = self.create(
            name,
            num_actions=int(self.environment.action_space.n),
            min_replay_history=replay_steps,
            epsilon_decay_period=1,
        )
        self._action = self.agent.begin_episode(self.environment.reset())
        # Transitions may be stored a step late.
        self.loop(replay_steps + 10)

    def create(self, name: str, **settings: Any) -> Any:
        """Creates the agent."""
        raise NotImplementedError

    def loop(self, steps: int) -> None:
        """Plays agent steps of training."""
        self._action = play(self.agent, self.environment, self._action, steps)


def play(agent: Any, environment: Any, action: int, steps: int) -> int:
    """Plays agent steps of training, as Dopamine's runner does, from the middle of an episode.

    Takes the action that the agent has chosen last; returns that which it has chosen now.
    """
    for _ in range(steps):
        frame, reward, terminal, _ = environment.step(action)
        if terminal:
            agent.end_episode(np.clip(reward, -1, 1))
            action = agent.begin_episode(environment.reset())
        else:
            action = agent.step(np.clip(reward, -1, 1), frame)
    return action


def ended(program: str, said: bytes) -> ValueError:
    """Returns the error of a program that has ended, with the last line of what it said."""
    lines = said.decode(errors="replace").strip().splitlines()
    return ValueError(f"{program} has ended; it said: {lines[-1] if lines else 'nothing'}")


def interleave(
    blocks: Mapping[str, Callable[[], object]], rounds: int, description: str, warm_up: int = 1
) -> dict[str, np.ndarray]:
    """Times blocks of work in turn, so that a machine's drift hits all of them alike.

    As many rounds as `warm_up` go before and don't count; the description is the progress bar's.

    Returns:
        Seconds of each block, shape [rounds], by name.
    """
    seconds: dict[str, list[float]] = {name: [] for name in blocks}
    for round_ in _bar(range(warm_up + rounds), description):
        for name in sorted(blocks, reverse=bool(round_ % 2)):
            start = time.perf_counter()
            blocks[name]()
            seconds[name].append(time.perf_counter() - start)
    return {name: np.array(values[warm_up:]) for name, values in seconds.items()}


def print_heading(first: str, second: str) -> None:
    """Prints the line above the figures of two contestants."""
    print(f"{'':<22}{first:>10}{second:>13}")


def print_ratio(figure: str, first: np.ndarray, second: np.ndarray, unit: str) -> None:
    """Prints a line: both medians, and the median and range of the ratios of neighbouring blocks.

    The values of either contestant have shape [rounds].
    """
    ratios = first / second
    low, high = np.percentile(ratios, [10, 90])
    print(
        f"{figure:<22}{np.median(first):>10.4g}{np.median(second):>13.4g}  {unit:<9}"
        f"ratio {np.median(ratios):.3f} (10% to 90% of blocks: {low:.3f} to {high:.3f})",
        flush=True,
    )


def compare_agents(framework: str, agents: Any, rounds: int) -> None:
    """Prints the figures of LogDQN beside those of each DQN.

    `agents` is the module `agents_tf` or `agents_jax`; a figure has as many blocks as `rounds`.
    """
    print(f"{GAME}, batch size 32, {agents.set_up()}")
    # First: a process's peak begins at the size of the process that starts it.
    memory = {name: _peak_memory(framework, name) for name in _bar(agents.AGENTS, "peak memory")}
    players = {name: agents.Player(name) for name in _bar(agents.AGENTS, "playing at random")}
    steps = agents.Player.steps
    seconds = {
        method: interleave(
            {
                name: functools.partial(getattr(player, method), steps[method])
                for name, player in players.items()
            },
            rounds,
            figure,
        )
        for method, figure in _FIGURES.items()
    }
    first, *others = players
    for other in others:
        print_heading(first, other)
        for method, times in seconds.items():
            pair = times[first] / steps[method], times[other] / steps[method]
            if method == "loop":
                print_ratio(_FIGURES[method], 1 / pair[0], 1 / pair[1], "steps/s")
            else:
                print_ratio(_FIGURES[method], 1e3 * pair[0], 1e3 * pair[1], "ms")
        print_ratio("peak memory", memory[first], memory[other], "MiB")


def _peak_memory(framework: str, name: str) -> np.ndarray:
    """Returns an agent's peak in a process of its own, in MiB, shape [1]."""
    flags = f"--framework={framework}", f"--measure_memory_of={name}"
    command = [sys.executable, str(_PROGRAM), *flags]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return np.array([float(output.split()[-1])])


def print_peak_memory(agents: Any, name: str) -> None:
    """Plays a while with an agent and prints this process's peak, in MiB."""
    agents.set_up()
    agents.Player(name, replay_steps=1000).loop(1000)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
