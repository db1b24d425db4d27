"""MinAtar's five games in JAX, and Catch, whose rewards have both signs.

They are gymnax's (Lange, 2022). Where gymnax 1.0.1 has other rules than MinAtar 1.0.15, these are
MinAtar's:

- gymnax ends an episode after 1,000 steps, and one of Freeway after 2,500; MinAtar has no limit but
  Freeway's, which is 2,501.
- Its Asterix looks for a free row among seven of the eight, and empties a row if those are full.
- In its Seaquest an enemy submarine that runs into a bullet doesn't shoot in that step.

The last two are rare: neither occurred in 6,000 steps of a policy that looks ahead. With these
differences removed, a step from any state leads to the same next state in both, except for random
draws and for the oxygen after a Seaquest game has ended at the surface, which is never observed.
gymnax is imported when a game is created.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from log_dqn import games
from log_dqn.vectorized.jax_environments import JaxGame, functions

_NO_LIMIT = 2**31 - 1

# Steps of an episode of Freeway in MinAtar, which ends it one step after its time limit of 2,500.
_FREEWAY_STEPS = 2501


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


def environment(name: str) -> tuple[Any, Any]:
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
def create(name: str, max_steps_per_episode: int = _NO_LIMIT) -> JaxGame:
    """Creates one of `games.JAX_GAMES`; MinAtar's have sticky actions and all six actions.

    An episode ends after `max_steps_per_episode` agent steps as a lost game does.
    """
    made, params = environment(name)
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
