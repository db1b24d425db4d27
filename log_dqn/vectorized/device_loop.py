"""The loop of runs whose environment is a JAX program, itself one program on the device.

It does what `training.HostTrainer.step` does, in the same order and with the same functions, and
returns to the host after some steps only.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from log_dqn.program import host_memory
from log_dqn.vectorized import learner, timeline
from log_dqn.vectorized.jax_games import JaxGame, Outcome, State
from log_dqn.vectorized.timeline import Episode, Phase, Place

CHUNK_STEPS = 500
"""Steps after which the host looks at the runs; as many as lie between two events of a run."""


class Summary(NamedTuple):
    """The statistics of an update.

    Attributes:
        number: training steps before it; -1 for none.
        statistics: scalars by their TensorBoard tags.
    """

    number: Any
    statistics: Any


class _Loop(NamedTuple):
    """What the loop carries from a step to the next; arrays of a run, or of several.

    Attributes:
        weights: what is learned.
        memory: the replay memory.
        stack: the last state.
        place: where the run is.
        state: the game's state.
        outcome: what the last action led to.
        may_start: whether the next iteration may start: the last one has been saved.
        summary: the last update whose statistics are wanted.
        episodes: the episodes that ended at each step of the chunk.
        step: number of the step, from the start of the program.
        chunk_step: number of the step in the chunk.
    """

    weights: Any
    memory: Any
    stack: Any
    place: Place
    state: State
    outcome: Outcome
    may_start: Any
    summary: Summary
    episodes: Episode
    step: Any
    chunk_step: Any


class _Fixed(NamedTuple):
    """What the loop reads: numbers of the runs."""

    rules: timeline.Rules
    constants: Any
    num_actions: Any
    act_key: Any
    draw_key: Any


def _advance(programs: learner.Programs, game: JaxGame, fixed: _Fixed, loop: _Loop) -> _Loop:
    """Runs a step of every run that is not waiting."""
    rules, place, outcome = fixed.rules, loop.place, loop.outcome
    number = place.training_steps
    place, *_ = timeline.expect(rules, place, jnp)
    place, episode = timeline.record(rules, place, outcome.reward, outcome.ended, jnp)
    may_start = loop.may_start & ~place.over
    place, _ = timeline.start(rules, place, loop.step, may_start, jnp)
    place, learns, syncs = timeline.train(rules, place, jnp)
    draws = timeline.draws(rules, place, learns, number, jnp)

    def learn(weights: Any, summary: Summary) -> tuple[Any, Summary]:
        weights, statistics = programs.learn_from_memory(
            weights, fixed.constants, fixed.num_actions, loop.memory, fixed.draw_key, draws
        )
        due = learns & (number % CHUNK_STEPS == 0) & (number > 0)
        new = Summary(number, statistics)
        return weights, learner.choose(due, new, summary)

    # The condition is one number, so that the step is not computed where no run takes it.
    weights, summary = jax.lax.cond(
        learns.any(), learn, lambda *same: same, loop.weights, loop.summary
    )
    target_params = jax.lax.cond(
        syncs.any(),
        lambda: programs.synced(weights, syncs).target_params,
        lambda: weights.target_params,
    )
    weights = weights._replace(target_params=target_params)
    epsilon = timeline.epsilon(rules, place, jnp)
    place, steps = timeline.act(rules, place, jnp)
    reward = jnp.clip(outcome.reward, -1, 1)
    stack, memory, actions = programs.act_and_store(
        loop.stack, loop.memory, weights.params, fixed.constants, fixed.num_actions,
        fixed.act_key, outcome.frame, reward, epsilon, steps,
    )  # fmt: skip
    state, outcome = programs.each(game.step)(loop.state, actions)
    plays = (place.phase == Phase.TRAINING) | (place.phase == Phase.EVALUATION)
    state, outcome = programs.each(learner.choose)(
        plays, (state, outcome), (loop.state, loop.outcome._replace(ended=jnp.zeros_like(plays)))
    )
    episodes = jax.tree.map(
        lambda all_, one: all_.at[loop.chunk_step].set(one), loop.episodes, episode
    )
    return _Loop(
        weights, memory, stack, place, state, outcome, may_start, summary, episodes,
        loop.step + 1, loop.chunk_step + 1,
    )  # fmt: skip


def _goes_on(loop: _Loop) -> jax.Array:
    place = loop.place
    plays = (place.phase == Phase.TRAINING) | (place.phase == Phase.EVALUATION)
    waits = (place.phase == Phase.WAITING) & loop.may_start
    return (loop.chunk_step < CHUNK_STEPS) & (plays | waits).any()


@functools.lru_cache(maxsize=16)
def _compiled(programs: learner.Programs, game: JaxGame) -> Any:
    """Returns the compiled loop, the same for all trainers of such runs."""

    def run(fixed: _Fixed, loop: _Loop) -> _Loop:
        return jax.lax.while_loop(
            _goes_on, functools.partial(_advance, programs, game, fixed), loop
        )

    options = learner.compiler_options()
    if jax.default_backend() == "cpu":
        options["xla_cpu_multi_thread_eigen"] = False  # A run keeps to one core.
    return jax.jit(run, donate_argnums=1, compiler_options=options)


class Chunk(NamedTuple):
    """What has happened in a chunk; numpy arrays, with the run as last axis.

    Attributes:
        place: where the runs are, shape [num_runs].
        episodes: episodes by step, shape [CHUNK_STEPS, num_runs].
        summary: statistics of an update, shape [num_runs].
    """

    place: Place
    episodes: Episode
    summary: Summary


class DeviceLoop:
    """The games of some runs, and the loop that plays them and learns."""

    def __init__(self, of_runs: learner.Learner, game: JaxGame, rules: timeline.Rules) -> None:
        """Initializes the loop.

        Args:
            of_runs: what acts and learns.
            game: the game of all runs.
            rules: the runs' numbers.
        """
        self.learner = of_runs
        self._num_runs = of_runs.num_runs
        self._run = _compiled(of_runs.programs, game)
        per_run = {
            name: self._of_runs(value) for name, value in rules._asdict().items() if np.ndim(value)
        }
        self._fixed = _Fixed(jax.tree.map(jnp.asarray, rules._replace(**per_run)), *of_runs.numbers)
        self._step = 0
        shape = (self._num_runs,) if self._num_runs > 1 else ()
        self._shape = shape
        keys = jax.random.split(jax.random.key(0), self._num_runs)
        # Once for all resets: a new function would be compiled anew.
        each = of_runs.programs.each
        self._new_games, self._choose = jax.jit(each(game.reset)), jax.jit(each(learner.choose))
        self._state, frame = self._new_games(self._of_runs(keys))
        self._outcome = Outcome(frame, jnp.zeros(shape), jnp.zeros(shape, bool))
        statistics = jax.eval_shape(
            of_runs.programs.learn_from_memory, of_runs.weights, *self._fixed[1:3],
            of_runs.memory, self._fixed.draw_key,
            timeline.Draws(*(jnp.zeros(shape, dtype) for dtype in (int, int, int, bool))),
        )[1]  # fmt: skip
        self._statistics = {tag: np.zeros(s.shape, s.dtype) for tag, s in statistics.items()}

    def _of_runs(self, tree: Any) -> Any:
        """Takes the run's axis from arrays of a single run."""
        return jax.tree.map(lambda x: x[0], tree) if self._num_runs == 1 else tree

    def reset(self, runs: np.ndarray, seeds: np.ndarray) -> None:
        """Begins new games in some runs.

        Args:
            runs: which, bool, shape [num_runs].
            seeds: seeds, shape [num_runs]; those of other runs are not used.
        """
        keys = self._of_runs(jnp.stack([jax.random.key(int(seed)) for seed in seeds]))
        self._state, frame = self._choose(
            self._of_runs(runs), self._new_games(keys), (self._state, self._outcome.frame)
        )
        self._outcome = self._outcome._replace(frame=frame)

    def advance(self, place: Place, may_start: np.ndarray) -> Chunk:
        """Plays a chunk, or less if no run goes on.

        Args:
            place: where the runs are, arrays of shape [num_runs].
            may_start: which waiting runs may start, bool, shape [num_runs].
        """
        of_runs, shape = self.learner, self._shape
        episodes = Episode(
            *(
                np.zeros((CHUNK_STEPS, *shape), dtype)
                for dtype in (bool, np.int32, np.float32, np.int32)
            )
        )
        start = (
            of_runs.weights, of_runs.memory, of_runs.stacks,
            Place(*(_narrow(part) for part in self._of_runs(place))),
            self._state, self._outcome, self._of_runs(may_start),
            Summary(np.full(shape, -1, np.int32), self._statistics),
            episodes, np.int32(self._step), np.int32(0),
        )  # fmt: skip
        loop = self._run(self._fixed, _Loop(*start))
        if not self._step:  # It may have compiled, which leaves 0.4 GB in JAX 0.10.
            host_memory.give_back()
        of_runs.weights, of_runs.memory, of_runs.stacks = loop.weights, loop.memory, loop.stack
        self._state, self._outcome = loop.state, loop.outcome
        self._step = int(loop.step)
        host = jax.device_get((loop.place, loop.episodes, loop.summary))
        if self._num_runs == 1:
            host = jax.tree.map(lambda x: np.asarray(x)[..., None], host)
        new_place, episodes, summary = host
        return Chunk(Place(*map(np.array, new_place)), episodes, summary)


def _narrow(x: Any) -> np.ndarray:
    """Returns an array as the device has it: in 32 bits."""
    x = np.asarray(x)
    return x.astype({"i": np.int32, "f": np.float32, "b": bool}[x.dtype.kind])
