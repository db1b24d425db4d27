"""gymnax's MinAtar games, as they are played here, against the original."""

import copy
import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from log_dqn import games
from log_dqn.vectorized import jax_environments

minatar = pytest.importorskip("minatar", reason="the extra minatar is not installed")

NUM_ACTIONS = 6

# Games that are stepped together.
BATCH = 300

# Seaquest's lists in gymnax's state, each with the name of its length.
LISTS = {
    "f_bullets": "f_bullet_count", "e_bullets": "e_bullet_count", "e_fish": "e_fish_count",
    "e_subs": "e_subs_count", "divers": "divers_count",
}  # fmt: skip


def original(name, seed=0, sticky=games.MINATAR_STICKY_PROBABILITY):
    game = minatar.Environment(games.rom_name(name.removeprefix("MinAtar/")), sticky)
    game.seed(seed)
    game.reset()
    return game


def copied(game):
    """A copy of a game that shares its random numbers."""
    return copy.deepcopy(game, {id(game.random): game.random})


@functools.cache
def batched(name):
    """A game's `reset` and `step`, compiled for a batch."""
    game = jax_environments.create_game(name)
    return jax.jit(jax.vmap(game.reset)), jax.jit(jax.vmap(game.step))


# A policy that is better than random: it plays on in copies.


def prospect(game):
    """What a position promises beside the rewards, where rewards are rare."""
    if not hasattr(game, "oxygen"):
        return 0
    rises = game.oxygen < 80 or game.diver_count == 6
    return 0.5 * game.diver_count + 0.02 * game.oxygen - 0.2 * game.sub_y * rises


def look_ahead(game, rng):
    """The action after which two times eight random steps give the most; a lost game costs ten."""
    values = np.zeros(NUM_ACTIONS)
    for action in range(NUM_ACTIONS):
        for _ in range(2):
            ahead = copied(game)
            for move in (action, *rng.integers(NUM_ACTIONS, size=8)):
                reward, over = ahead.act(move)
                values[action] += reward
                if over:
                    values[action] -= 10
                    break
            values[action] += prospect(ahead)
    return rng.choice(np.flatnonzero(values == values.max()))


def go_up(game, rng):
    """Freeway's rewards are too far ahead; its chicken goes up but for every twentieth step."""
    return 2 if rng.random() < 0.95 else rng.integers(NUM_ACTIONS)


def play_at_random(game, rng):
    return rng.integers(NUM_ACTIONS)


def states(name, number, policy):
    """Plays the original; returns states before its steps, and the mean return."""
    game, rng = original(name), np.random.default_rng(0)
    found, returns = [], [0]
    while len(found) < number:
        found.append(copied(game.env))
        reward, over = game.act(policy(game.env, rng))
        returns[-1] += reward
        if over:
            game.reset()
            returns.append(0)
    return found, np.mean(returns[:-1] or returns)


def in_gymnax(game, like):
    """A state of the original in the fields of one of gymnax's."""
    fields = {}
    for field in dataclasses.fields(like):
        example = getattr(like, field.name)
        value = getattr(game, field.name, 0)
        if field.name in LISTS:
            rows = np.zeros(example.shape)
            rows[: len(value)] = np.reshape(value, (-1, example.shape[1]))
            value = rows
            fields[LISTS[field.name]] = len(getattr(game, field.name))
        elif field.name == "entities":
            value = [[0] * 5 if entity is None else [*entity, 1] for entity in value]
        elif field.name == "time" and hasattr(game, "terminate_timer"):  # Freeway's.
            value = 2500 - game.terminate_timer
        fields.setdefault(field.name, value)
    shaped = {name: np.asarray(x, getattr(like, name).dtype) for name, x in fields.items()}
    for name, x in shaped.items():
        assert x.shape == getattr(like, name).shape, name
    return like.replace(**shaped)


def rows_in_order(state):
    """The fields of a state, with Seaquest's lists sorted: their order has no meaning."""
    fields = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
    for name in LISTS.keys() & fields.keys():
        fields[name] = sorted(fields[name].tolist())
    return fields


def put_off_spawning(game):
    """Sets the timers of spawning as a spawn does that is due, which then isn't."""
    for timer, period in (("spawn_timer", "spawn_speed"), ("e_spawn_timer", "e_spawn_speed")):
        if getattr(game, timer, None) == 0:
            setattr(game, timer, getattr(game, period))
    if getattr(game, "d_spawn_timer", None) == 0:
        game.d_spawn_timer = 30


def good_states(name, number):
    """States reached by a policy that is better than random."""
    found, mean_return = states(name, number, go_up if "Freeway" in name else look_ahead)
    _, mean_random_return = states(name, number, play_at_random)
    assert mean_return > 2 * mean_random_return
    return found


def compare_steps(name, found):
    """Steps gymnax and the original with each action; returns in which share the game goes on."""
    reset, step = batched(name)
    fresh, _ = reset(jax.random.split(jax.random.key(0), BATCH))
    like = jax.tree.map(lambda x: np.asarray(x[0]), fresh.game)
    cases = []
    for game in found:
        put_off_spawning(game)
        cases += [(game, action) for action in range(NUM_ACTIONS)]
    compared = 0
    for first in range(0, len(cases), BATCH):
        batch = cases[first : first + BATCH]
        full = [*batch, *[batch[-1]] * (BATCH - len(batch))]
        actions = jnp.array([action for _, action in full], jnp.int32)
        stacked = jax.tree.map(lambda *x: np.stack(x), *(in_gymnax(game, like) for game, _ in full))
        # The last action is the same: it doesn't matter whether it sticks.
        before = fresh._replace(game=stacked, last_action=actions, steps=jnp.array(stacked.time))
        after, outcome = step(before, actions)
        after, outcome = jax.tree.map(np.asarray, (after.game, outcome))
        for i, (game, action) in enumerate(batch):
            game = copied(game)
            reward, over = game.act(action)
            assert (outcome.reward[i], outcome.ended[i]) == (reward, over)
            if over:
                continue  # The next episode has begun.
            mine = rows_in_order(jax.tree.map(lambda x: x[i], after))  # noqa: B023
            theirs = rows_in_order(in_gymnax(game, like))
            frame, board = outcome.frame[i], game.state()
            if name == "MinAtar/Freeway" and reward:  # The cars have new, random speeds.
                frame, board = frame[..., :2], board[..., :2]
                for cars in (mine, theirs):
                    cars["cars"] = cars["cars"][:, :2]
            assert np.array_equal(frame, board)  # NumPy's own assertion takes most of the time.
            for field, value in theirs.items():
                if field != "time" or name == "MinAtar/Freeway":
                    assert np.array_equal(mine[field], value), (field, mine[field], value)
            compared += 1
    return compared / len(cases)


# Each takes seconds to compile: the others are slow.
ONE_QUICK = [
    pytest.param(name, marks=[pytest.mark.slow] * (name != "MinAtar/Breakout"))
    for name in games.MINATAR5
]


@pytest.mark.parametrize("name", ONE_QUICK)
def test_a_step_leads_where_the_original_s_does(name):
    number = 400 if name == "MinAtar/Breakout" else 1000
    assert compare_steps(name, good_states(name, number)) > 0.9


@pytest.mark.slow
def test_a_submarine_that_runs_into_a_bullet_shoots():
    game = original("MinAtar/Seaquest").env
    game.sub_x, game.sub_y, game.sub_or, game.surface = 0, 3, True, False
    # It moves onto the bullet, and it is time to shoot: left of it is its own bullet then.
    game.f_bullets, game.e_subs = [[4, 3, True]], [[6, 3, False, 0, 0]]
    after = copied(game)
    assert after.act(0) == (1, False)
    assert (after.f_bullets, after.e_subs, after.e_bullets) == ([], [], [[4, 3, False]])
    assert compare_steps("MinAtar/Seaquest", [game]) == 1


@pytest.mark.slow
def test_freeway_ends_when_the_original_does():
    found = [original("MinAtar/Freeway").env for _ in range(3)]
    for timer, game in enumerate(found):
        game.terminate_timer = timer
    assert compare_steps("MinAtar/Freeway", found) == 2 / 3


UNIFORM = (1 / 6,) * 6
UP = (0.1, 0, 0.9, 0, 0, 0)


def episodes(name, number, probabilities):
    """Returns and lengths of episodes of gymnax, a multiple of a batch; each from a fresh start."""
    reset, step = batched(name)
    rng, results = np.random.default_rng(1), []
    for key in jax.random.split(jax.random.key(1), math.ceil(number / BATCH)):
        state, _ = reset(jax.random.split(key, BATCH))
        returns, lengths, over = np.zeros(BATCH), np.zeros(BATCH), np.zeros(BATCH, bool)
        while not over.all():
            state, outcome = step(state, rng.choice(6, BATCH, p=probabilities).astype(np.int32))
            returns += np.where(over, 0, outcome.reward)
            lengths += ~over
            over |= np.asarray(outcome.ended)
        results.append((returns, lengths))
    return np.concatenate(results, axis=1)


def original_episodes(name, number, probabilities):
    game, rng, results = original(name), np.random.default_rng(2), []
    for _ in range(number):
        total, length, over = 0, 0, False
        game.reset()
        while not over:
            reward, over = game.act(rng.choice(6, p=probabilities))
            total, length = total + reward, length + 1
        results.append((total, length))
    return np.array(results).T


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "probabilities", "number"),
    # Freeway's episodes are long, and a random chicken hardly ever crosses; Seaquest's are slow.
    [
        ("MinAtar/Asterix", UNIFORM, 2000),
        ("MinAtar/Breakout", UNIFORM, 2000),
        ("MinAtar/Freeway", UP, 120),
        ("MinAtar/Seaquest", UNIFORM, 300),
        ("MinAtar/SpaceInvaders", UNIFORM, 2000),
    ],
)
def test_random_play_has_the_original_s_returns_and_lengths(name, probabilities, number):
    mine = episodes(name, number, probabilities)
    theirs = original_episodes(name, number, probabilities)
    # Smirnov's bound: if the distributions are the same, the largest distance of the two empirical
    # ones is larger than this with probability 0.001 at most.
    sizes = mine.shape[1], theirs.shape[1]
    most = math.sqrt(-math.log(0.001 / 2) / 2 * (1 / sizes[0] + 1 / sizes[1]))
    for ours, original_s in zip(mine, theirs, strict=True):
        assert scipy.stats.ks_2samp(ours, original_s).statistic <= most
    if name == "MinAtar/Freeway":
        assert set(mine[1]) == set(theirs[1]) == {2501}


def test_one_action_in_ten_is_repeated():
    reset, step = batched("MinAtar/Breakout")
    state, _ = reset(jax.random.split(jax.random.key(2), BATCH))
    rng, repeated, differs = np.random.default_rng(3), 0, 0
    for _ in range(100):
        last = np.asarray(state.last_action)
        actions = rng.integers(NUM_ACTIONS, size=BATCH).astype(np.int32)
        state, _ = step(state, actions)
        taken = np.asarray(state.last_action)
        assert ((taken == actions) | (taken == last)).all()
        differs += (actions != last).sum()
        repeated += (taken != actions).sum()
    # Four standard deviations.
    assert repeated / differs == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / differs))


def spawned(occupied):
    """What Asterix spawns where some rows are occupied: rows, directions, kinds, and the states."""
    reset, step = batched("MinAtar/Asterix")
    found = []
    for key in jax.random.split(jax.random.key(3), 10):
        state, _ = reset(jax.random.split(key, BATCH))
        entities = np.zeros((8, 5), int)
        entities[occupied] = [[3, row + 1, 1, 0, 1] for row in occupied]
        entities = np.broadcast_to(entities, (BATCH, 8, 5))
        due = state.game.replace(
            entities=jnp.asarray(entities, state.game.entities.dtype),
            spawn_timer=jnp.zeros_like(state.game.spawn_timer),
        )
        after, _ = step(state._replace(game=due), np.zeros(BATCH, np.int32))
        after = np.asarray(after.game.entities)
        np.testing.assert_array_equal(after[:, occupied], entities[:, occupied])
        found.append(after)
    return np.concatenate(found)


@pytest.mark.slow
def test_asterix_spawns_in_any_free_row():
    entities = spawned([0, 2, 3, 5, 6])
    free = entities[:, [1, 4, 7]]
    assert (free[..., 4].sum(axis=1) == 1).all()
    rows, new = np.argmax(free[..., 4], axis=1), free[free[..., 4] == 1]
    np.testing.assert_array_equal(new[:, 1] - 1, np.array([1, 4, 7])[rows])
    np.testing.assert_array_equal(new[:, 0], np.where(new[:, 2] == 1, 0, 9))
    number = len(entities)
    # Each share within four standard deviations.
    for share, probability in (
        *[((rows == row).mean(), 1 / 3) for row in range(3)],
        (new[:, 2].mean(), 1 / 2),
        (new[:, 3].mean(), 1 / 3),
    ):
        spread = math.sqrt(probability * (1 - probability) / number)
        assert share == pytest.approx(probability, abs=4 * spread)
    assert (spawned([0, 1, 2, 3, 5, 6, 7])[:, 4, 4] == 1).all()


@pytest.mark.slow
def test_asterix_spawns_nothing_where_no_row_is_free():
    spawned(list(range(8)))


def test_an_episode_can_be_cut_off():
    game = jax_environments.create_game("MinAtar/Breakout", 3)
    state, _ = jax.jit(game.reset)(jax.random.key(0))
    step = jax.jit(game.step)
    ended = []
    for _ in range(6):
        state, outcome = step(state, 0)
        ended.append(bool(outcome.ended))
    assert ended == [False, False, True] * 2
