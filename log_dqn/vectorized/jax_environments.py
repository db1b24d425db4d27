"""Environments in JAX: MinAtar's five games, gymnax's (Lange, 2022), and others with its interface.

`environment.reset(key, params)` returns an observation and a state, and
`environment.step(key, state, action, params)` observation, state, reward, terminated, truncated and
info; gymnax before 1.0 has done instead of terminated and truncated. After an ended episode,
observation and state are the first of the next one. gymnax is imported when one is created.

MinAtar's games are gymnax's too, and so is Catch, whose rewards have both signs. Where gymnax 1.0.1
has other rules than MinAtar 1.0.15, these are MinAtar's:

- gymnax ends an episode after 1,000 steps, and one of Freeway after 2,500; MinAtar has no limit but
  Freeway's, which is 2,501.
- Its Asterix looks for a free row among seven of the eight, and empties a row if those are full.
- In its Seaquest an enemy submarine that runs into a bullet doesn't shoot in that step.

The last two are rare: neither occurred in 6,000 steps of a policy that looks ahead. With these
differences removed, a step from any state leads to the same next state in both, except for random
draws and for the oxygen after a Seaquest game has ended at the surface, which is never observed.
"""

import contextlib
import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import gin
import jax
import jax.numpy as jnp
import numpy as np

from log_dqn import games
from log_dqn.checks import check, check_bool, check_extra, nearest
from log_dqn.cli import environments, words
from log_dqn.vectorized import networks, request
from log_dqn.vectorized.environments import Game, check_actions
from log_dqn.vectorized.timeline import Outcome

_NO_LIMIT = 2**31 - 1

# Steps of an episode of Freeway in MinAtar, which ends it one step after its time limit of 2,500.
_FREEWAY_STEPS = 2501

_INTERFACE = ("reset", "step", "observation_space", "action_space")


class State(NamedTuple):
    """State of a game: the environment's, the random key, the last action, the episode's steps."""

    game: Any
    key: jax.Array
    last_action: jax.Array
    steps: jax.Array


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class JaxGame(Game):
    """A game as pure functions.

    Attributes:
        reset: takes a random key and returns the state at the start of an episode, and its first
            observation.
        step: takes a state and an action and returns the new state and the outcome. After an ended
            episode, the state is the first of the next one.
        environment: the environment and its parameters.
    """

    reset: Callable[[jax.Array], tuple[State, jax.Array]]
    step: Callable[[State, jax.Array], tuple[State, Outcome]]
    environment: tuple[Any, Any] = (None, None)


def functions(
    begin: Callable[[jax.Array], tuple[Any, Any]],
    advance: Callable[[jax.Array, Any, jax.Array], tuple[Any, ...]],
    frame: Callable[[jax.Array], jax.Array],
    max_steps: int,
    *,
    like: Any = None,
    begins_anew: bool = True,
    cuts: bool,
    sticky: float = 0.0,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns `JaxGame`'s `reset` and `step`.

    Args:
        begin: takes a random key and returns an observation and a state.
        advance: takes a random key, a state and an action and returns an observation, a state, a
            reward, and whether the episode has ended, or was truncated.
        frame: makes the stored frame of an observation.
        max_steps: agent steps after which an episode is cut off.
        like: a state with the dtypes after a step, if those of the first state may differ.
        begins_anew: whether `advance` begins the next episode.
        cuts: whether outcomes say which episodes a time limit has cut off.
        sticky: probability that the last action is repeated.
    """

    def reset(key: jax.Array) -> tuple[State, jax.Array]:
        key, reset_key = jax.random.split(key)
        observation, game = begin(reset_key)
        # gymnax starts with weakly typed numbers, and goes on with others.
        game = jax.tree.map(_typed, game, game if like is None else like)
        zero = jnp.int32(0)
        return State(game, key, zero, zero), frame(observation)

    def step(state: State, action: jax.Array) -> tuple[State, Outcome]:
        key, step_key, sticky_key, reset_key = jax.random.split(state.key, 4)
        if sticky:
            repeats = jax.random.uniform(sticky_key) < sticky
            action = jnp.where(repeats, state.last_action, action)
        observation, game, reward, terminated, truncated = advance(step_key, state.game, action)
        steps = state.steps + 1
        terminated, truncated = (jnp.asarray(x, bool) for x in (terminated, truncated))
        over = terminated | truncated
        ended = over | (steps >= max_steps)

        def start(_: Any) -> tuple[Any, jax.Array]:
            observation, new = begin(reset_key)
            return jax.tree.map(_typed, new, game), frame(observation)

        game = jax.tree.map(jnp.asarray, game)
        game, shown = jax.lax.cond(
            ended & ~over if begins_anew else ended,
            start, lambda _: (game, frame(observation)), None,
        )  # fmt: skip
        new = State(game, key, action.astype(jnp.int32), jnp.where(ended, 0, steps))
        cut = ended & ~terminated if cuts else None
        return new, Outcome(shown, jnp.asarray(reward, jnp.float32), ended, cut)

    return reset, step


def _typed(x: Any, like: Any) -> jax.Array:
    """Returns an array with the dtype of another, and not weakly typed."""
    dtype = like.dtype if hasattr(like, "dtype") else jnp.asarray(like).dtype
    return x if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key) else jnp.asarray(x, dtype)


def _spawn_in_a_free_row(key: jax.Array, state: Any) -> Any:
    """Spawns an entity in Asterix as MinAtar does: in a free row, and nowhere if there is none."""
    direction_key, gold_key, row_key = jax.random.split(key, 3)
    from_left = jax.random.bernoulli(direction_key).astype(jnp.int32)
    is_gold = jax.random.bernoulli(gold_key, 1 / 3).astype(jnp.int32)
    free = state.entities[:, 4] == 0
    row = jnp.argmax(jnp.where(free, jax.random.uniform(row_key, (8,)), -1.0))
    entity = jnp.stack([9 * (1 - from_left), row + 1, from_left, is_gold, jnp.ones_like(row)])
    due = state.spawn_timer == 0
    spawned = state.entities.at[row].set(entity.astype(state.entities.dtype))
    return state.replace(
        entities=jnp.where(due & free.any(), spawned, state.entities),
        # gymnax's own spawning never comes: its timer is set before it looks.
        spawn_timer=jnp.where(due, state.spawn_speed, state.spawn_timer),
    )


def _with_minatars_rules(name: str) -> tuple[Any, Any]:
    """Returns gymnax's environment of one of `games.JAX_GAMES`, and its parameters.

    Its rules are MinAtar's. Its `step_env` knows no limit of steps.
    """
    import gymnax
    from gymnax.environments.minatar import asterix, seaquest
    from gymnax.environments.minatar import seaquest_helpers as helpers

    class Asterix(asterix.MinAsterix):
        def step_env(self, key: Any, state: Any, action: Any, params: Any) -> Any:
            key, spawn_key = jax.random.split(key)
            state = _spawn_in_a_free_row(spawn_key, state)
            return super().step_env(key, state, action, params)

    class Seaquest(seaquest.MinSeaquest):
        def _step_enemy_subs(self, state: Any, params: Any) -> Any:
            subs, count = helpers.move_entities(state.e_subs, state.e_subs_count, state.move_speed)
            shoots = helpers.active_mask(count) & (subs[:, 4] == 0)
            shots, num_shots = helpers.append_many(
                state.e_bullets, state.e_bullet_count, subs[:, :3], shoots
            )
            state, reward, ended = super()._step_enemy_subs(state, params)
            return state.replace(e_bullets=shots, e_bullet_count=num_shots), reward, ended

    changed: dict[str, Any] = {"MinAtar/Asterix": Asterix, "MinAtar/Seaquest": Seaquest}
    settings = {"use_minimal_action_set": False} if name.startswith("MinAtar/") else {}
    if name not in changed:
        suite, game = name.split("/")
        return gymnax.make(f"{game}-{suite}", **settings)
    made = changed[name](**settings)
    return made, made.default_params


@functools.lru_cache
def create_game(name: str, max_steps_per_episode: int = _NO_LIMIT) -> JaxGame:
    """Creates one of `games.JAX_GAMES`; MinAtar's have sticky actions and all six actions.

    An episode ends after `max_steps_per_episode` agent steps as a lost game does.
    """
    made, params = _with_minatars_rules(name)
    if name == "MinAtar/Freeway":
        max_steps_per_episode = min(max_steps_per_episode, _FREEWAY_STEPS)
    sticky = games.MINATAR_STICKY_PROBABILITY if name.startswith("MinAtar/") else 0.0
    shape = made.observation_space(params).shape
    frame_shape = shape if len(shape) == 3 else (*shape, 1)

    def frame(observation: jax.Array) -> jax.Array:
        return observation.reshape(frame_shape).astype(bool)

    def step(key: jax.Array, state: Any, action: jax.Array) -> tuple[Any, ...]:
        return *made.step_env(key, state, action, params)[:4], False

    reset_game, step_game = functions(
        lambda key: made.reset_env(key, params), step, frame, max_steps_per_episode,
        begins_anew=False, cuts=False, sticky=sticky,
    )  # fmt: skip
    return JaxGame(
        name=name, frame_shape=frame_shape, frame_dtype="bool", num_actions=made.num_actions,
        reset=reset_game, step=step_game, environment=(made, params),
    )  # fmt: skip


# A name of its own in gin, beside `create_environment` and `create_gymnasium_environment`.
@gin.configurable("create_jax_environment")
def create_environment(
    max_steps_per_episode: int,
    environment_id: str | None = None,
    bootstrap_at_time_limit: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> JaxGame:
    """Creates an environment in JAX.

    Args:
        max_steps_per_episode: agent steps after which an episode is cut off.
        environment_id: id of gymnax, such as 'CartPole-v1', or 'module:factory' of a function that
            returns an environment with its interface, and the parameters.
        bootstrap_at_time_limit: whether an episode that a time limit cuts off has not ended. Its
            last n transitions are then left out, since their next states are unknown. If False,
            the episode counts as ended.
        settings: arguments of the factory; for gymnax's, fields of the environment's parameters,
            such as {'max_steps_in_episode': 200}, and arguments of its class.

    Raises:
        ValueError: if there is no such environment, or agents can't be trained on it.
    """
    check_bool("bootstrap_at_time_limit", bootstrap_at_time_limit)
    check("settings", settings, settings is None or isinstance(settings, Mapping), "a dict")
    request.check_environment(environment_id)
    made = _made(str(environment_id), dict(settings or {}))
    with _explained(environment_id, "one that has spaces"):
        environment, params = made
        space, actions = environment.observation_space(params), environment.action_space(params)
    num_actions = check_actions(environment_id, actions)

    def step(key: jax.Array, state: Any, action: jax.Array) -> tuple[Any, ...]:
        observation, state, reward, *ends, info = environment.step(key, state, action, params)
        if not isinstance(info, Mapping):  # Forgotten, the last end would be taken for it.
            raise TypeError(f"info, its last value, must be a dict, and not {_shown(info)}")
        terminated, truncated = ends if len(ends) == 2 else (*ends, False)
        return observation, state, reward, terminated, truncated

    def begin(key: jax.Array) -> tuple[Any, Any]:
        return environment.reset(key, params)

    shape, dtype, like = _check_functions(environment_id, begin, step)
    declared = getattr(space, "shape", None)
    allowed = f"one whose observations have their space's shape: {declared}, and not {shape}"
    check("env", environment_id, declared is None or np.array_equal(declared, shape), allowed)
    with _explained(environment_id, "one whose space's bounds have its shape"):
        prepare = networks.preparation(space, shape, dtype)
    reset_game, step_game = functions(
        begin, step, lambda x: jnp.asarray(x).astype(dtype), max_steps_per_episode, like=like,
        cuts=bootstrap_at_time_limit,
    )  # fmt: skip
    return JaxGame(
        name=str(environment_id), frame_shape=shape, frame_dtype=dtype, num_actions=num_actions,
        reset=reset_game, step=step_game, cuts=bootstrap_at_time_limit,
        prepare=prepare, environment=(environment, params),
    )  # fmt: skip


def _made(environment_id: str, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Returns an environment and its parameters."""
    module, _, factory = environment_id.rpartition(":")
    if not module:
        check_extra(None, ("gymnax",))
        import gymnax

        known = gymnax.registered_envs
        allowed = f"an id of gymnax{nearest(environment_id, known)} or MODULE:FACTORY"
        check("env", environment_id, environment_id in known, allowed)
    with _explained(environment_id, "one that can be made"):
        if module:
            made = getattr(importlib.import_module(module), factory)(**settings)
        else:
            _, params = gymnax.make(environment_id)
            of_params = {n: settings.pop(n) for n in list(settings) if hasattr(params, n)}
            environment, params = gymnax.make(environment_id, **settings)
            made = environment, params.replace(**of_params)
    is_pair = isinstance(made, tuple) and len(made) == 2
    check("env", environment_id, is_pair, "a function that returns (environment, parameters)")
    lacking = [name for name in _INTERFACE if not callable(getattr(made[0], name, None))]
    allowed = f"one with gymnax's interface; it lacks {', '.join(lacking)}"
    check("env", environment_id, not lacking, allowed)
    return made


def _check_functions(
    environment_id: str | None, reset: Callable[..., Any], step: Callable[..., Any]
) -> tuple[tuple[int, ...], Any, Any]:
    """Checks that JAX can compile `reset` and `step`, and what they return, without running them.

    Returns:
        An observation's shape, the dtype in which it is stored, and a template of the state.
    """
    key, action = jax.eval_shape(lambda: jax.random.key(0)), jax.ShapeDtypeStruct((), jnp.int32)
    with _explained(environment_id, "one whose reset JAX can compile"):
        first, start = jax.eval_shape(reset, key)
    with _explained(environment_id, "one whose step JAX can compile"):
        _, like, *_ = jax.eval_shape(step, key, start, action)
        later, state, reward, *ends = jax.eval_shape(step, key, like, action)
    for observation in (first, later):
        allowed = f"one whose observation is one array, and not {_shown(observation)}"
        check("env", environment_id, hasattr(observation, "dtype"), allowed)
    for what, before, after in (
        ("observation", first, later), ("state", like, state),
        ("state", jax.tree.map(jnp.shape, start), jax.tree.map(jnp.shape, state)),
    ):  # fmt: skip
        allowed = f"one whose {what} keeps shape and dtype: {_shown(before)}, then {_shown(after)}"
        check("env", environment_id, _flat(before) == _flat(after), allowed)
    for what, value in {"reward": reward, "terminated": ends[0], "truncated": ends[1]}.items():
        allowed = f"one whose {what} is one real number, and not {_shown(value)}"
        is_one = getattr(value, "shape", None) == () and _is_real(value.dtype)
        check("env", environment_id, is_one, allowed)
    dtype = first.dtype
    kind = "float32" if jnp.issubdtype(dtype, jnp.floating) else str(dtype)
    allowed = f"one whose observations are real numbers, and not {_shown(first)}"
    check("env", environment_id, _is_real(dtype), allowed)
    return first.shape, kind, like


def _is_real(dtype: Any) -> bool:
    return any(jnp.issubdtype(dtype, kind) for kind in (jnp.bool_, jnp.integer, jnp.floating))


def _flat(tree: Any) -> tuple[list[Any], Any]:
    """Returns leaves, arrays as (shape, dtype), and structure; weak types are ignored."""
    leaves, structure = jax.tree.flatten(tree)
    return [(x.shape, x.dtype) if hasattr(x, "dtype") else x for x in leaves], structure


def _shown(tree: Any) -> str:
    """Returns shapes and dtypes in one line: float32[4]."""
    shown = jax.tree.map(
        lambda x: words.array(x.dtype, x.shape) if hasattr(x, "dtype") else x, tree
    )
    return " ".join(str(shown).replace("'", "").split())


@contextlib.contextmanager
def _explained(environment_id: str | None, allowed: str) -> Iterator[None]:
    """Turns any error of an environment into one line that says where it was raised."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise environments.refused(environment_id, error, allowed) from error
