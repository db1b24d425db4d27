"""Trains runs whose environment is in JAX: acting and learning are one program on the device.

Its steps are those of `training.HostTrainer`; it returns to the host every CHUNK_STEPS.
"""

import ctypes
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from log_dqn.vectorized import timeline
from log_dqn.vectorized.jax_environments import JaxGame, State
from log_dqn.vectorized.learner import (
    SUMMARY_PERIOD,
    Fixed,
    Learner,
    Problem,
    StepFunctions,
    Summary,
    Weights,
    compiler_options,
    select,
)
from log_dqn.vectorized.timeline import Episode, Outcome, Phase, Position, Rules
from log_dqn.vectorized.training import Trainer, Workload

CHUNK_STEPS = SUMMARY_PERIOD
"""Steps between returns to the host; a run logs at most one update in so many steps."""


class _Loop(NamedTuple):
    """What the loop carries from a step to the next; arrays have the run as first axis.

    `episodes` ended at each `step` of the chunk, shape [CHUNK_STEPS, num_runs]. `faults` are each
    run's step at which a number was not finite, or -1.
    """

    weights: Weights
    summary: Summary
    memory: Any
    stacks: Any
    position: Position
    state: State
    outcome: Outcome
    episodes: Episode
    step: Any
    faults: Any


def _advance(
    functions: StepFunctions, game: JaxGame, rules: Rules, fixed: Fixed, first: Any, ready: Any,
    loop: _Loop,
) -> _Loop:  # fmt: skip
    """Runs a step of every run that is not waiting; see `DeviceLoop.advance`."""
    outcome = loop.outcome
    starting = timeline.starts(rules, loop.position, first + loop.step)
    starting &= loop.position.iteration == ready
    position, plan = timeline.advance(rules, loop.position, outcome, starting, jnp)
    # Reduced over runs, so that `cond` skips the branch if no run needs it.
    weights, summary = jax.lax.cond(
        plan.update.learns.any(),
        lambda: functions.learn(loop.weights, loop.summary, loop.memory, fixed, plan.update),
        lambda: (loop.weights, loop.summary),
    )
    syncs = plan.update.syncs
    weights = jax.lax.cond(syncs.any(), lambda: functions.sync(weights, syncs), lambda: weights)
    stacks, memory, actions = functions.act(
        loop.stacks, loop.memory, weights, outcome.frame, outcome.reward, fixed, plan.choice
    )
    state, outcome = functions.vmap(game.step)(loop.state, actions)
    plays = timeline.plays(position)
    state, outcome = functions.vmap(select)(
        plays, (state, outcome), (loop.state, loop.outcome._replace(ended=jnp.zeros_like(plays)))
    )
    episodes = jax.tree.map(
        lambda all_, one: all_.at[loop.step].set(one), loop.episodes, plan.episode
    )
    wrong = timeline.faults(loop.position, loop.outcome, starting, jnp) & (loop.faults < 0)
    faults = jnp.where(wrong, loop.position.chosen, loop.faults)
    return _Loop(
        weights, summary, memory, stacks, position, state, outcome, episodes, loop.step + 1, faults
    )


def _goes_on(ready: Any, loop: _Loop) -> jax.Array:
    position = loop.position
    waits = (position.phase == Phase.WAITING) & (position.iteration == ready)
    return (loop.step < CHUNK_STEPS) & (timeline.plays(position) | waits).any()


@functools.lru_cache(maxsize=16)
def _compiled(functions: StepFunctions, game: JaxGame) -> Any:
    """Returns the compiled loop, the same for all trainers of such runs."""

    def run(rules: Rules, fixed: Fixed, first: Any, ready: Any, loop: _Loop) -> _Loop:
        advance = functools.partial(_advance, functions, game, rules, fixed, first, ready)
        return jax.lax.while_loop(functools.partial(_goes_on, ready), advance, loop)

    options = compiler_options()
    if jax.default_backend() == "cpu":
        options["xla_cpu_multi_thread_eigen"] = False  # A run keeps to one core.
    return jax.jit(run, donate_argnums=4, compiler_options=options)


def give_back_memory() -> None:
    """Returns free heap memory to the operating system, if the C library is glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class DeviceLoop:
    """Plays the environments of some runs, and trains the runs.

    Attributes:
        learner: what acts and learns.
        faults: the runs' steps, in the last chunk, at which a number was not finite, or -1.
    """

    def __init__(self, learner: Learner, game: JaxGame) -> None:
        """Takes what acts and learns, and the environment that all runs play."""
        self.learner = learner
        self._run = _compiled(learner.step_functions, game)
        self._step = 0
        # Once for all resets: a new function would be compiled anew.
        vmap, num_runs = learner.step_functions.vmap, learner.num_runs
        self._new_games, self._select = jax.jit(vmap(game.reset)), jax.jit(vmap(select))
        self._state, frame = self._new_games(jax.random.split(jax.random.key(0), num_runs))
        none = jnp.zeros(num_runs, bool)
        cut = jnp.zeros(num_runs, bool) if game.cuts else None
        self._outcome = Outcome(frame, jnp.zeros(num_runs), none, cut)

    def reset(self, runs: np.ndarray, seeds: np.ndarray) -> None:
        """Begins new games in some runs, bool, with seeds, both of shape [num_runs]."""
        keys = jnp.stack([jax.random.key(int(seed)) for seed in seeds])
        old = self._state, self._outcome.frame
        self._state, frame = self._select(runs, self._new_games(keys), old)
        self._outcome = self._outcome._replace(frame=frame)

    def advance(self, position: Position, ready: np.ndarray) -> tuple[Position, Episode]:
        """Runs up to CHUNK_STEPS steps, until no run goes on.

        Args:
            position: where the runs are.
            ready: the iteration that each run may start if it waits, int32, shape [num_runs].

        Returns:
            The new position, and the episodes that ended, arrays of shape [steps, num_runs].
        """
        learner = self.learner
        shape = CHUNK_STEPS, learner.num_runs
        episodes = Episode(*(np.zeros(shape, t) for t in (bool, np.int32, np.float32, np.int32)))
        loop = _Loop(
            learner.weights, learner.summary, learner.memory, learner.stacks, position,
            self._state, self._outcome, episodes, np.int32(0),
            np.full(learner.num_runs, -1, np.int32),
        )  # fmt: skip
        loop = self._run(learner.rules, learner.fixed, np.int32(self._step), ready, loop)
        if not self._step:  # It may have compiled, which leaves 0.4 GB in JAX 0.10.
            give_back_memory()
        learner.weights, learner.summary = loop.weights, loop.summary
        learner.memory, learner.stacks = loop.memory, loop.stacks
        self._state, self._outcome = loop.state, loop.outcome
        new_position, episodes, steps, self.faults = jax.device_get(
            (loop.position, loop.episodes, loop.step, loop.faults)
        )
        self._step += int(steps)
        return Position(*map(np.array, new_position)), Episode(*(part[:steps] for part in episodes))


class DeviceTrainer(Trainer):
    """Trains some runs of one environment that is in JAX.

    `step` runs up to CHUNK_STEPS steps. Checkpoints hold the replay memory.
    """

    def __init__(self, workload: Workload, problem: Problem, game: JaxGame, *shown: Any) -> None:
        """Takes the runs' environment, and the arguments of `Trainer`."""
        num_actions = [game.num_actions] * len(workload.runs)
        workload = workload._replace(checkpoint_replay=True)
        super().__init__(workload, problem, num_actions, *shown)
        self._loop = DeviceLoop(self.learner, game)
        self._ready = np.full(len(workload.runs), -1, np.int32)

    def _play(self) -> tuple[Position, Episode]:
        position = self.position
        waits = (position.phase == Phase.WAITING) & (position.iteration != self._ready)
        if waits.any():
            self._loop.reset(waits, self._begin_iterations(waits))
            self._ready = np.where(waits, position.iteration, self._ready)
        played = self._loop.advance(position, self._ready)
        self._faults = self._loop.faults
        return played

    def _report(self, index: int, iteration: int, entry: dict[str, list[Any]]) -> None:
        """Prints a line for each finished run and, for a single run, for each iteration."""
        if self._progress.num_runs == 1 or iteration + 1 == self._runner.num_iterations:
            super()._report(index, iteration, entry)
