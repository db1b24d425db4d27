"""Acting and learning of some runs in one call each, on a device."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from log_dqn.jax import trees, update
from log_dqn.vectorized import agents, networks, packing, replay
from log_dqn.vectorized.timeline import Draws, Steps


class Problem(NamedTuple):
    """What the runs of a job learn from, and with.

    Attributes:
        network: the network.
        frame_shape: shape of an observation.
        frame_dtype: its dtype.
        stack_size: observations in a state.
        batch_size: transitions of an update.
        capacity: transitions that a run remembers.
    """

    network: networks.Network
    frame_shape: tuple[int, ...]
    frame_dtype: Any
    stack_size: int
    batch_size: int
    capacity: int

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Shape of a state."""
        return (*self.frame_shape, self.stack_size)


class Weights(NamedTuple):
    """What a run learns."""

    params: Any
    target_params: Any
    optimizer_state: Any


def choose(condition: Any, new: Any, old: Any) -> Any:
    """Returns a run's new arrays if its condition is true, else the old."""
    return jax.tree.map(lambda n, o: jnp.where(condition, n, o), new, old)


def compiler_options() -> dict[str, Any]:
    """Returns options of the compiler with which updates are fast.

    Reason: on a CPU, JAX 0.6's new runtime takes a quarter longer over an update than its old one.
    Can go: with JAX 0.6; later ones have only the new.
    """
    is_old = jax.__version_info__ < (0, 7)
    return {"xla_cpu_use_thunk_runtime": False} if is_old and jax.default_backend() == "cpu" else {}


class Programs:
    """What is compiled for runs whose agents are alike.

    Arrays have the run as first axis if there are several runs. A single run's have not: a first
    axis of one makes the CPU's updates a third slower. `act`, `learn` and `sync_and_learn` take
    what the host knows as bytes and their layout; see `packing`.
    """

    def __init__(
        self, agent: agents.Agent, problem: Problem, slots: int, several: bool, on_host: bool
    ) -> None:
        """Prepares the programs; they are compiled when they are first called.

        Args:
            agent: any of the runs'; its numbers aren't used.
            problem: what the runs learn from.
            slots: slots of a run's memory.
            several: whether there are several runs.
            on_host: whether the replay memory is kept in the host's memory.
        """
        self._agent = agent
        self._problem = problem
        apply = functools.partial(problem.network.apply, batched=several)
        self._network = problem.network._replace(apply=apply)
        self._slots = slots
        self._several = several
        self.each: Callable[..., Any] = jax.vmap if several else lambda function: function
        self.draw = jax.jit(self.each(self._draw_one))
        self.initial_weights = jax.jit(self.each(self._initial_weights))
        self._learn_from = self._learn_from_steps if on_host else self.learn_from_memory
        self._act = self._act_only if on_host else self.act_and_store
        compiled = functools.partial(
            jax.jit, static_argnums=2, donate_argnums=0, compiler_options=compiler_options()
        )
        self.learn = compiled(self._learn)
        self.sync_and_learn = compiled(self._sync_and_learn)
        self.sync = jax.jit(self.synced)
        self.act = jax.jit(self._act_on, static_argnums=3, donate_argnums=(0, 1))

    def _initial_weights(self, constants: Any, params: Any) -> Weights:
        # Buffers of their own: training goes on in the old weights' memory.
        target_params = jax.tree.map(jnp.copy, params)
        return Weights(params, target_params, self._agent.create_optimizer(constants).init(params))

    def _draw_one(self, key: jax.Array, draws: Draws) -> jax.Array:
        return replay.draw(
            jax.random.fold_in(key, draws.number),
            draws.oldest,
            draws.available,
            self._slots,
            self._problem.batch_size,
            self._problem.stack_size,
            self._agent.update_horizon,
        )

    def _unpack(self, packed: Any, layout: packing.Layout) -> Any:
        return self.each(functools.partial(packing.unpack, layout=layout))(packed)

    def _learn(self, weights: Weights, packed: Any, layout: packing.Layout, *inputs: Any) -> Any:
        return self._learn_from(weights, *inputs, *self._unpack(packed, layout))

    def _sync_and_learn(
        self, weights: Weights, packed: Any, layout: packing.Layout, *inputs: Any
    ) -> Any:
        runs, *rest = self._unpack(packed, layout)
        return self._learn_from(self.synced(weights, runs), *inputs, *rest)

    def _act_on(
        self, stacks: Any, memory: Any, packed: Any, layout: packing.Layout, *inputs: Any
    ) -> Any:
        return self._act(stacks, memory, *inputs, *self._unpack(packed, layout))

    def learn_from_memory(
        self, weights: Weights, constants: Any, num_actions: Any, memory: Any, keys: Any, draws: Any
    ) -> Any:
        """Runs an update from a draw of the memory; returns weights and statistics."""
        steps = self.each(replay.read)(memory, self.draw(keys, draws))
        return self._learn_from_steps(weights, constants, num_actions, steps, draws)

    def _learn_from_steps(
        self, weights: Weights, constants: Any, num_actions: Any, steps: Any, draws: Any
    ) -> Any:
        return self.each(self._learn_one)(weights, constants, num_actions, steps, draws.learns)

    def _learn_one(
        self, weights: Weights, constants: Any, num_actions: Any, steps: Any, learns: Any
    ) -> tuple[Weights, dict[str, jax.Array]]:
        params, optimizer_state, statistics = update.train_step(
            self._agent.batch_loss(constants),
            lambda params, states: self._agent.outputs(self._network, params, states, num_actions),
            self._agent.create_optimizer(constants),
            weights.params,
            weights.target_params,
            weights.optimizer_state,
            replay.transitions(steps, self._problem.stack_size, constants.gamma),
        )
        new = Weights(params, weights.target_params, optimizer_state)
        if self._several:
            new = choose(learns, new, weights)
        return new, statistics

    def synced(self, weights: Weights, runs: Any) -> Weights:
        """Returns the weights with new target networks of some runs."""
        target_params = self.each(choose)(runs, weights.params, weights.target_params)
        return weights._replace(target_params=target_params)

    def _act_only(self, stacks: Any, memory: None, *inputs: Any) -> Any:
        stacks, actions = self.each(self._act_one)(stacks, *inputs)
        return stacks, memory, actions

    def act_and_store(self, stacks: Any, memory: Any, *inputs: Any) -> Any:
        """Chooses actions and stores steps; returns the new states, memory and actions."""
        *_, frames, rewards, _, steps = inputs
        stacks, actions = self.each(self._act_one)(stacks, *inputs)
        # No action is negative, but so the compiler knows that what is stored waits for the action,
        # and that for what is learned. Else it copies the memory to learn from it later.
        beyond = self._slots * (actions < 0)
        steps = steps._replace(slot=steps.slot + beyond, result_slot=steps.result_slot + beyond)
        memory = self.each(replay.add_result)(memory, steps.result_slot, rewards, steps.terminal)
        memory = self.each(replay.add_step)(memory, steps.slot, frames, steps.age, actions)
        return stacks, memory, actions

    def _act_one(
        self, stack: Any, params: Any, constants: Any, num_actions: Any, key: Any,
        frame: Any, reward: Any, epsilon: Any, steps: Steps,
    ) -> tuple[jax.Array, jax.Array]:  # fmt: skip
        del reward
        stack = jnp.where(steps.begins, jnp.zeros_like(stack), stack)
        stack = jnp.concatenate([stack[..., 1:], frame[..., None]], axis=-1)
        outputs = self._agent.outputs(self._network, params, stack[None], num_actions)
        greedy = self._agent.action_keys(constants, outputs)[0].argmax().astype(jnp.int32)
        explore_key, action_key = jax.random.split(jax.random.fold_in(key, steps.number))
        explores = jax.random.uniform(explore_key) <= epsilon
        return stack, jnp.where(
            explores, jax.random.randint(action_key, (), 0, num_actions), greedy
        )


@functools.lru_cache(maxsize=16)
def _programs(
    agent_class: Callable[..., agents.Agent], shared: tuple[tuple[str, Any], ...], *args: Any
) -> Programs:
    """Returns the programs of runs that are alike, the same for all groups of such runs."""
    return Programs(agent_class(**dict(shared)), *args)


class Learner:
    """Some runs that act and learn together.

    The runs never mix: each has its own network, optimizer, memory and random numbers. The
    methods return before the device has finished; only reading a result waits for it.

    Attributes:
        num_runs: number of runs.
        slots: slots of a run's replay memory.
        weights: what the runs have learned; arrays have the run as first axis.
        memory: their replay memories.
        stacks: their last states.
        programs: what is compiled for them.
    """

    def __init__(
        self,
        run_agents: Sequence[agents.Agent],
        problem: Problem,
        num_actions: Sequence[int],
        seeds: Sequence[int],
        on_host: bool = False,
    ) -> None:
        """Initializes the runs.

        Args:
            run_agents: each run's agent; all alike in `Agent.shared`.
            problem: what they learn from.
            num_actions: each run's number of actions.
            seeds: each run's seed.
            on_host: whether the replay memory is kept in the host's memory.
        """
        self._agent = agent = run_agents[0]
        self.num_runs = len(seeds)
        self.slots = replay.num_slots(problem.capacity, problem.stack_size, agent.update_horizon)
        self._several = self.num_runs > 1
        self._on_host = on_host
        agent_class: Any = type(agent)
        self.programs = _programs(
            agent_class, tuple(agent.shared.items()), problem, self.slots, self._several, on_host
        )
        self._columns = list(num_actions)  # of each run's own output layer
        self._num_actions = self._of_runs(jnp.asarray(num_actions, jnp.int32))
        self._constants = self._stack(
            [jax.tree.map(jnp.float32, agent.constants) for agent in run_agents]
        )
        keys = [jax.random.split(jax.random.key(seed), 3) for seed in seeds]
        self._act_keys = self._stack([act_key for _, act_key, _ in keys])
        self._draw_keys = self._stack([draw_key for *_, draw_key in keys])
        params = [
            agent.init(problem.network, init_key, problem.state_shape, number, max(num_actions))
            for agent, (init_key, *_), number in zip(run_agents, keys, num_actions, strict=True)
        ]
        self.weights = self.programs.initial_weights(self._constants, self._stack(params))
        self._to_sync = self._none = np.zeros(self.num_runs, bool)
        runs = (self.num_runs,) if self._several else ()
        self.memory = replay.create(
            (*runs, self.slots), problem.frame_shape, problem.frame_dtype, np if on_host else jnp
        )
        self.stacks = jnp.zeros((*runs, *problem.state_shape), problem.frame_dtype)

    @property
    def numbers(self) -> tuple[Any, Any, Any, Any]:
        """The runs' constants, numbers of actions, and keys for acting and for drawing."""
        return self._constants, self._num_actions, self._act_keys, self._draw_keys

    def _pack(self, *trees: Any) -> tuple[np.ndarray, packing.Layout]:
        """Packs what the host knows of the runs, arrays of shape [num_runs, ...]."""
        return packing.pack(self._of_runs(trees), (self.num_runs,) if self._several else ())

    def _stack(self, trees: Sequence[Any]) -> Any:
        """Puts the runs' arrays together."""
        if not self._several:
            return trees[0]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)

    def _of_runs(self, tree: Any) -> Any:
        """Takes the first axis from arrays of shape [num_runs, ...] if there is a single run."""
        return tree if self._several else jax.tree.map(lambda leaf: leaf[0], tree)

    def _of_run(self, array: Any, run: int) -> Any:
        return array[run] if self._several else array

    # Updates.

    def learn(self, draws: Draws) -> dict[str, jax.Array]:
        """Runs an update of some of the runs.

        Args:
            draws: from what they sample.

        Returns:
            The loss's statistics by their TensorBoard tags, of shape [num_runs] each, or scalars
            of a single run; of no meaning for a run that has no update.
        """
        inputs: tuple[Any, ...] = (self._constants, self._num_actions)
        known: tuple[Any, ...] = (draws,)
        if self._on_host:
            slots = np.asarray(self.programs.draw(self._draw_keys, self._of_runs(draws)))
            # A single run's steps get the first axis that all the host knows has.
            runs = np.arange(self.num_runs)[:, None, None] if self._several else None
            steps = replay.Memory(*(values[runs, slots] for values in self.memory))
            known = (steps, draws)
        else:
            inputs += (self.memory, self._draw_keys)
        if self._to_sync.any():
            packed, layout = self._pack(self._to_sync, *known)
            found = self.programs.sync_and_learn(self.weights, packed, layout, *inputs)
        else:
            found = self.programs.learn(self.weights, *self._pack(*known), *inputs)
        self.weights, statistics = found
        self._to_sync = self._none
        return statistics

    def sync(self, runs: np.ndarray) -> None:
        """Copies the online network to the target network of some runs, bools [num_runs].

        Their next update begins with it, so that it costs no call of its own.
        """
        self._to_sync = self._to_sync | runs

    def _sync_now(self) -> None:
        if self._to_sync.any():
            self.weights = self.programs.sync(self.weights, self._of_runs(self._to_sync))
            self._to_sync = self._none

    # Acting.

    def act(
        self, frames: np.ndarray, rewards: np.ndarray, epsilons: np.ndarray, steps: Steps
    ) -> jax.Array:
        """Chooses each run's action, and stores what is to be stored.

        Args:
            frames: observations, shape [num_runs, ...].
            rewards: clipped rewards that led here, float32, shape [num_runs].
            epsilons: exploration rates, float32, shape [num_runs].
            steps: what else the host knows.

        Returns:
            Actions, int32, shape [num_runs], or a scalar of a single run.
        """
        inputs = (self.weights.params, self._constants, self._num_actions, self._act_keys)
        memory = None if self._on_host else self.memory
        packed = self._pack(frames, rewards, epsilons, steps)
        self.stacks, memory, actions = self.programs.act(self.stacks, memory, *packed, *inputs)
        if not self._on_host:
            self.memory = memory
            return actions
        chosen = np.asarray(actions).reshape(self.num_runs)
        for run in range(self.num_runs):
            memory = replay.Memory(*(self._of_run(values, run) for values in self.memory))
            if (slot := steps.result_slot[run]) < self.slots:
                memory.rewards[slot] = rewards[run]
                memory.terminals[slot] = steps.terminal[run]
            if (slot := steps.slot[run]) < self.slots:
                memory.frames[slot] = frames[run]
                memory.ages[slot] = steps.age[run]
                memory.actions[slot] = chosen[run]
        return actions

    # One run's state, for checkpoints.

    def run_weights(self, run: int) -> list[np.ndarray]:
        """Returns a run's weights as arrays in a fixed order.

        They are the same whatever games the other runs play: the output layer is cut to the
        actions of the run's own.
        """
        columns = self._columns[run]
        return [
            self._agent.with_columns(leaf, columns) if is_output else leaf
            for is_output, leaf in self._run_leaves(run)
        ]

    def _run_leaves(self, run: int) -> list[tuple[bool, np.ndarray]]:
        """Returns whether each of a run's arrays is of the output layer, and the array."""
        self._sync_now()
        output = jax.tree_util.DictKey(agents.OUTPUT)
        return [
            (output in path, np.asarray(self._of_run(leaf, run)))
            for path, leaf in jax.tree_util.tree_leaves_with_path(self.weights)
        ]

    def set_run_weights(self, run: int, leaves: Sequence[np.ndarray]) -> None:
        """Sets a run's weights to what `run_weights` returned.

        Raises:
            ValueError: if they are of another network.
        """
        leaves = trees.with_leaves(self.run_weights(run), leaves)
        columns = max(self._columns)
        values = [
            self._agent.with_columns(leaf, columns) if is_output else leaf
            for (is_output, _), leaf in zip(self._run_leaves(run), leaves, strict=True)
        ]
        old, structure = jax.tree.flatten(self.weights)
        new = [
            leaf.at[run].set(value) if self._several else jnp.asarray(value)
            for leaf, value in zip(old, values, strict=True)
        ]
        self.weights = jax.tree.unflatten(structure, new)

    def step_shape(self, name: str) -> tuple[int, ...]:
        """Returns the shape that a field of the memory has for a single step."""
        return getattr(self.memory, name).shape[1 + self._several :]

    def read_memory(self, run: int, name: str, start: int, stop: int) -> np.ndarray:
        """Returns some slots of a field of a run's memory."""
        slots = slice(start, stop)
        # In one step, lest the device copies the run's whole memory.
        return np.asarray(getattr(self.memory, name)[(run, slots) if self._several else slots])

    def write_memory(self, run: int, name: str, start: int, values: np.ndarray) -> None:
        """Sets some slots of a field of a run's memory."""
        field = getattr(self.memory, name)
        if self._on_host:
            self._of_run(field, run)[start : start + len(values)] = values
            return
        at = (run, start) if self._several else (start,)
        values = values[None] if self._several else values
        self.memory = self.memory._replace(**{name: _set_slots(field, at, values)})


@functools.partial(jax.jit, donate_argnums=0)
def _set_slots(field: jax.Array, at: tuple[Any, ...], values: jax.Array) -> jax.Array:
    rest = (0,) * (field.ndim - len(at))
    return jax.lax.dynamic_update_slice(field, values, (*at, *rest))
