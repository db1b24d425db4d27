"""Acts and learns for several runs at once, on a device."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gin
import jax
import jax.numpy as jnp
import numpy as np

from log_dqn.cli import words
from log_dqn.jax import trees, update
from log_dqn.jax.optimizers import OPTIMIZERS
from log_dqn.vectorized import agents, networks, replay, timeline
from log_dqn.vectorized.agents import RunnerSettings
from log_dqn.vectorized.timeline import Choice, Update

SUMMARY_PERIOD = 500
"""Training steps between a run's events, as in Dopamine."""

# The least transitions of which a small batch is chosen where time limits cut some off.
_CANDIDATES = 32


class Problem(NamedTuple):
    """What all runs of a job share.

    Attributes:
        network: of each run.
        frame_shape: shape of an observation.
        frame_dtype: its dtype.
        stack_size: observations in a state.
        batch_size: transitions of an update.
        capacity: transitions that a replay memory holds.
        cuts: whether time limits cut episodes off without ending them.
        clips: whether rewards are clipped to [-1, 1].
    """

    network: networks.Network
    frame_shape: tuple[int, ...]
    frame_dtype: Any
    stack_size: int
    batch_size: int
    capacity: int
    cuts: bool = False
    clips: bool = True

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Shape of a state."""
        return (*self.frame_shape, self.stack_size)

    def learned(self, rewards: Any) -> Any:
        """Returns the rewards that the agent learns from, clipped or not."""
        return rewards.clip(-1, 1) if self.clips else rewards


class Weights(NamedTuple):
    """What a run learns. Arrays have the run as first axis only if there are several runs."""

    params: Any
    target_params: Any
    optimizer_state: Any


class Summary(NamedTuple):
    """Statistics of a run's last logged update, and its training step; -1 before the first."""

    number: Any
    statistics: Any


class Fixed(NamedTuple):
    """What stays the same throughout a run: its constants, actions and random keys."""

    constants: Any
    num_actions: Any
    act_key: Any
    draw_key: Any


def select(condition: Any, new: Any, old: Any) -> Any:
    """Returns `new` where the condition is true, else `old`."""
    return jax.tree.map(lambda n, o: jnp.where(condition, n, o), new, old)


def compiler_options() -> dict[str, Any]:
    """Returns compiler options that make updates fast.

    Reason: on a CPU, JAX 0.6's new runtime takes a quarter longer over an update than its old one.
    Can go: with JAX 0.6; later ones have only the new.
    """
    is_old = jax.__version_info__ < (0, 7)
    return {"xla_cpu_use_thunk_runtime": False} if is_old and jax.default_backend() == "cpu" else {}


def _of_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """Drops and restores the run axis of a single run.

    `jax.vmap` would do it too, but makes updates a third slower on a CPU.
    """

    def with_others(change: Callable[[Any], Any], tree: Any) -> Any:
        # With an axis that comes and goes the compiler copies the weights.
        is_weights = lambda x: isinstance(x, Weights)  # noqa: E731
        return jax.tree.map(lambda x: x if is_weights(x) else change(x), tree, is_leaf=is_weights)

    def of_one(*args: Any) -> Any:
        return with_others(lambda x: x[None], function(*with_others(lambda x: x[0], args)))

    return of_one


class StepFunctions:
    """The functions that make up a step, plain and compiled, for runs with the same `Agent.shared`.

    `learn`, `sync` and `act`, in this order, carry out a step that `timeline.advance` has planned.
    Arrays have the run as first axis, except a single run's `Weights`.

    Attributes:
        vmap: maps a function of one run's arrays over all runs, as `jax.vmap`.
    """

    def __init__(
        self, agent: agents.Agent, problem: Problem, slots: int, has_many_runs: bool
    ) -> None:
        """Initializes the functions; they are compiled when they are first called.

        `agent` may be any run's: only its shared settings are used.
        """
        self._agent = agent
        self._problem = problem
        self._slots = slots
        self._has_many_runs = has_many_runs
        self.vmap: Callable[..., Any] = jax.vmap if has_many_runs else _of_one
        self.compiled_initial = jax.jit(self.initial)
        self.compiled_learn = jax.jit(
            self.learn, donate_argnums=(0, 1), compiler_options=compiler_options()
        )
        self.compiled_sync = jax.jit(self.sync, donate_argnums=0)
        self.compiled_act = jax.jit(self.act, donate_argnums=(0, 1))
        self.compiled_is_finite = jax.jit(self.vmap(self._is_finite))

    def initial(self, constants: Any, params: Sequence[Any]) -> tuple[Weights, Summary]:
        """Returns the first weights and summaries of runs with these parameters."""
        return self.vmap(self._initial)(constants, _stack(params))

    def _initial(self, constants: Any, params: Any) -> tuple[Weights, Summary]:
        # Buffers of their own: training goes on in the old weights' memory.
        target_params = jax.tree.map(jnp.copy, params)
        optimizer_state = self._agent.create_optimizer(constants).init(params)
        heads = jnp.split(params[agents.OUTPUT]["bias"][None], self._agent.num_heads, axis=-1)
        batch = (jnp.zeros(1, int), jnp.zeros(1), jnp.zeros(1, bool))
        loss = self._agent.batch_loss(self._agent.constants)
        _, statistics = jax.eval_shape(loss, heads, heads, *batch)
        summary = Summary(jnp.int32(-1), {tag: jnp.zeros(()) for tag in statistics})
        return Weights(params, target_params, optimizer_state), summary

    def _is_finite(self, weights: Weights) -> jax.Array:
        finite = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(weights.params)]
        return jnp.stack(finite).all()

    def _sample(self, memory: replay.Memory, key: jax.Array, due: Update) -> replay.Memory:
        """Returns the steps of the transitions that an update learns from."""
        size, stack_size = self._problem.batch_size, self._problem.stack_size
        slots = replay.draw(
            jax.random.fold_in(key, due.number),
            due.oldest,
            due.available,
            self._slots,
            max(size, _CANDIDATES) if self._problem.cuts else size,
            stack_size,
            self._agent.update_horizon,
        )
        steps = replay.read(memory, slots)
        return replay.without_cuts(steps, stack_size, size) if self._problem.cuts else steps

    def learn(
        self, weights: Weights, summary: Summary, memory: Any, fixed: Fixed, due: Update
    ) -> tuple[Weights, Summary]:
        """Updates the runs that learn in this step; a single run always does."""
        steps = self.vmap(self._sample)(memory, fixed.draw_key, due)
        weights, statistics = self.vmap(self._learn_one)(
            weights, fixed.constants, fixed.num_actions, steps, due.learns
        )
        is_logged = due.learns & (due.number % SUMMARY_PERIOD == 0) & (due.number > 0)
        return weights, select(is_logged, Summary(due.number, statistics), summary)

    def _learn_one(
        self, weights: Weights, constants: Any, num_actions: Any, steps: Any, learns: Any
    ) -> tuple[Weights, dict[str, jax.Array]]:
        params, optimizer_state, statistics = update.train_step(
            self._agent.batch_loss(constants),
            lambda params, states: self._agent.outputs(
                self._problem.network, params, states, num_actions
            ),
            self._agent.create_optimizer(constants),
            weights.params,
            weights.target_params,
            weights.optimizer_state,
            replay.transitions(steps, self._problem.stack_size, constants.gamma),
        )
        new = Weights(params, weights.target_params, optimizer_state)
        if self._has_many_runs:
            new = select(learns, new, weights)
        return new, statistics

    def sync(self, weights: Weights, syncs: Any) -> Weights:
        """Copies the online network to the target network, in the runs where `syncs` is true."""

        def sync_one(weights: Weights, syncs: Any) -> Weights:
            new = select(syncs, weights.params, weights.target_params)
            return weights._replace(target_params=new)

        return self.vmap(sync_one)(weights, syncs)

    def act(
        self, stacks: Any, memory: Any, weights: Weights, frame: Any, reward: Any, fixed: Fixed,
        choice: Choice,
    ) -> Any:  # fmt: skip
        """Chooses actions and stores steps; returns the new states, memory and actions."""
        stacks, actions = self.vmap(self._act_one)(
            stacks, weights, fixed.constants, fixed.num_actions, fixed.act_key, frame, choice
        )
        memory = self.vmap(self._store)(memory, frame, reward, actions, choice)
        return stacks, memory, actions

    def _act_one(
        self, stack: Any, weights: Weights, constants: Any, num_actions: Any, key: Any,
        frame: Any, choice: Choice,
    ) -> tuple[jax.Array, jax.Array]:  # fmt: skip
        stack = jnp.where(choice.age == 0, jnp.zeros_like(stack), stack)
        stack = jnp.concatenate([stack[..., 1:], frame[..., None]], axis=-1)
        outputs = self._agent.outputs(
            self._problem.network, weights.params, stack[None], num_actions
        )
        greedy = self._agent.action_keys(constants, outputs)[0].argmax().astype(jnp.int32)
        explore_key, action_key = jax.random.split(jax.random.fold_in(key, choice.number))
        explores = jax.random.uniform(explore_key) <= choice.epsilon
        return stack, jnp.where(
            explores, jax.random.randint(action_key, (), 0, num_actions), greedy
        )

    def _store(self, memory: Any, frame: Any, reward: Any, action: Any, choice: Choice) -> Any:
        # Always 0. It makes the store depend on the action, and so on the update, so that XLA
        # updates the memory in place.
        beyond = self._slots * (action < 0)
        slot = choice.result_slot + beyond
        memory = replay.add_result(memory, slot, self._problem.learned(reward), choice.terminal)
        return replay.add_step(memory, choice.slot + beyond, frame, choice.age, action)


@functools.lru_cache(maxsize=16)
def _step_functions(
    agent: agents.Agent, of_optimizer: tuple[tuple[str, Any], ...], *args: Any
) -> StepFunctions:
    """Returns the functions of runs with the same settings, so that they are compiled once.

    The optimizer's settings are those of gin, which it reads itself.
    """
    del of_optimizer
    return StepFunctions(agent, *args)


# It computes little; all optimizations would make its compilation four times as long.
_initial_params = jax.jit(
    agents.initial_params,
    static_argnums=(0, 1, 3, 4, 5),
    compiler_options={"xla_backend_optimization_level": 1},
)


class Learner:
    """Some runs that act and learn together.

    The runs never mix: each has its own network, optimizer, memory and random numbers. Arrays have
    the run as first axis.

    Attributes:
        num_runs: number of runs.
        slots: slots of a run's replay memory.
        weights: what the runs have learned.
        summary: statistics of their last logged updates.
        memory: their replay memories.
        stacks: their last states.
        rules: of their schedules, numpy arrays.
        fixed: what stays the same throughout the runs.
        step_functions: the functions of a step.
    """

    def __init__(
        self,
        run_agents: Sequence[agents.Agent],
        problem: Problem,
        runner: RunnerSettings,
        num_actions: Sequence[int],
        seeds: Sequence[int],
    ) -> None:
        """Initializes the runs, given each one's agent, number of actions and seed.

        The agents have the same `Agent.shared`.
        """
        self._agent = agent = run_agents[0]
        self.num_runs = len(seeds)
        self.slots = replay.num_slots(problem.capacity, problem.stack_size, agent.update_horizon)
        self._problem = problem
        of_optimizer = tuple(gin.get_bindings(OPTIMIZERS[agent.optimizer]).items())
        self.step_functions = _step_functions(
            agent.alike, of_optimizer, problem, self.slots, self.num_runs > 1
        )
        self._columns = list(num_actions)  # of each run's own output layer
        keys = [jax.random.split(jax.random.key(seed), 3) for seed in seeds]
        self.rules = timeline.create_rules(run_agents, runner, self.slots)
        self.fixed = Fixed(
            constants=jax.tree.map(
                lambda *runs: jnp.asarray(runs, jnp.float32), *[a.constants for a in run_agents]
            ),
            num_actions=jnp.asarray(num_actions, jnp.int32),
            act_key=_stack([act_key for _, act_key, _ in keys]),
            draw_key=_stack([draw_key for *_, draw_key in keys]),
        )
        shape, columns = problem.state_shape, max(num_actions)
        params = [
            _initial_params(of_run.head_inits, problem.network, init_key, shape, number, columns)
            for of_run, (init_key, *_), number in zip(run_agents, keys, num_actions, strict=True)
        ]
        self.weights, self.summary = self.step_functions.compiled_initial(
            self.fixed.constants, params
        )
        self.memory = replay.create(
            (self.num_runs, self.slots), problem.frame_shape, problem.frame_dtype, columns
        )
        self.stacks = jnp.zeros((self.num_runs, *problem.state_shape), problem.frame_dtype)

    # A step, given numpy arrays. Only `act` waits for the device.

    def learn(self, due: Update) -> None:
        """Updates the runs that learn in this step."""
        self.weights, self.summary = self.step_functions.compiled_learn(
            self.weights, self.summary, self.memory, self.fixed, due
        )

    def sync(self, syncs: np.ndarray) -> None:
        """Syncs the target networks of some runs."""
        self.weights = self.step_functions.compiled_sync(self.weights, syncs)

    def act(self, frames: np.ndarray, rewards: np.ndarray, choice: Choice) -> np.ndarray:
        """Chooses and returns the runs' actions, shape [num_runs], and stores their steps.

        `frames` have the shape [num_runs, ...]; `rewards` are of the last actions.
        """
        weights = Weights(self.weights.params, None, None)
        self.stacks, self.memory, actions = self.step_functions.compiled_act(
            self.stacks, self.memory, weights, frames, rewards, self.fixed, choice
        )
        return np.asarray(actions)

    # One run's state, for checkpoints.

    def learns_from(self, run: int) -> dict[str, Any]:
        """Returns a run's observation, dtype and shape in words, and its number of actions."""
        frame = words.array(np.dtype(self._problem.frame_dtype), self._problem.frame_shape)
        return {"observation": frame, "num_actions": self._columns[run]}

    def run_weights(self, run: int) -> list[np.ndarray]:
        """Returns a run's weights as arrays in a fixed order.

        They don't depend on the other runs' games: the output layer is cut to the actions of the
        run's own game.
        """
        columns = self._columns[run]
        return [
            self._in_columns(path, np.asarray(leaf[run] if self.num_runs > 1 else leaf), columns)
            for path, leaf in jax.tree_util.tree_leaves_with_path(self.weights)
        ]

    def _in_columns(self, path: tuple[Any, ...], array: np.ndarray, columns: int) -> np.ndarray:
        """Returns an array; if it is of the output layer, with so many outputs per head."""
        # A user's network may have a layer of this name further down.
        layers = [key.key for key in path if isinstance(key, jax.tree_util.DictKey)]
        is_output = layers[:1] == [agents.OUTPUT]
        return self._agent.with_columns(array, columns) if is_output else array

    def set_run_weights(self, run: int, leaves: Sequence[np.ndarray]) -> None:
        """Sets a run's weights to what `run_weights` returned."""
        leaves = trees.with_leaves(self.run_weights(run), leaves)
        old, structure = jax.tree_util.tree_flatten_with_path(self.weights)
        new = []
        for (path, leaf), array in zip(old, leaves, strict=True):
            value = self._in_columns(path, array, max(self._columns))
            new.append(leaf.at[run].set(value) if self.num_runs > 1 else jnp.asarray(value))
        self.weights = jax.tree.unflatten(structure, new)

    def read_memory(self, run: int, name: str, start: int, stop: int) -> np.ndarray:
        """Returns some slots of a field of a run's memory, the last before `slots`."""
        # In one step, lest the device copies the run's whole memory.
        return np.asarray(_slots(getattr(self.memory, name), (run, start), stop - start))

    def write_memory(self, run: int, name: str, start: int, values: np.ndarray) -> None:
        """Sets some slots of a field of a run's memory."""
        new = _set_slots(getattr(self.memory, name), (run, start), values[None])
        self.memory = self.memory._replace(**{name: new})


def _stack(runs: Sequence[Any]) -> Any:
    """Puts the runs' arrays together."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)


@functools.partial(jax.jit, static_argnums=2)
def _slots(field: jax.Array, at: tuple[Any, ...], number: int) -> jax.Array:
    rest = field.shape[len(at) :]
    start = (*at, *(0,) * len(rest))
    return jax.lax.dynamic_slice(field, start, (1, number, *rest))[0]


@functools.partial(jax.jit, donate_argnums=0)
def _set_slots(field: jax.Array, at: tuple[Any, ...], values: jax.Array) -> jax.Array:
    rest = (0,) * (field.ndim - len(at))
    return jax.lax.dynamic_update_slice(field, values, (*at, *rest))
