"""jumanji's games as arrays, and where their episodes end."""

import types

import jax
import numpy as np
import pytest

pytest.importorskip("jumanji", reason="jumanji is not installed")
from studies import jumanji_games

pytestmark = pytest.mark.slow


def at(row, column):
    return types.SimpleNamespace(row=row, col=column, x=row, y=column)


@pytest.mark.parametrize(
    ("name", "shape", "first"),
    [
        # Body, head, tail, fruit, and the share of the length.
        ("snake", (12, 12, 5), [1, 1, 1, 1, 1]),
        # Two tiles of the empty board's 16 are the first.
        ("game_2048", (4, 4, 17), [15]),
        ("sliding_tiles", (5, 5, 25), [1] * 25),
        ("maze", (10, 10, 3), []),
        # 318 of 868 fields are free, each with a pellet at first.
        ("pac_man", (31, 28, 6), [550, 1, 4, 0, 4, 318]),
    ],
)
def test_the_first_observation(name, shape, first):
    game, params = getattr(jumanji_games, name)()
    seen, _ = game.reset(jax.random.key(0), params)
    assert seen.shape == game.observation_space(params).shape == shape
    assert np.min(seen) == 0 and np.max(seen) == 1
    np.testing.assert_array_equal(np.sum(seen, axis=(0, 1))[: len(first)], first)


def test_a_maze_ends_at_its_limit_of_100_steps_or_at_the_target():
    game, params = jumanji_games.maze()
    step = jax.jit(game.step)
    for seed in range(3):
        _, state = game.reset(jax.random.key(seed), params)
        for count in range(1, 101):
            seen, state, reward, terminated, truncated, _ = step(None, state, count % 4, params)
            if terminated or truncated:
                break
        # jumanji takes its limit for an end. The observation is a new episode's first.
        assert terminated and not truncated
        assert (count == 100) == (reward == 0) and np.sum(seen[..., 1]) == 1


def test_the_channels_of_pac_man():
    grid = np.array([[0, 0, 0], [0, 1, 1]])
    places = {"ghost_locations": [[2, 1]], "power_up_locations": [[0, 0]]}
    places["pellet_locations"] = [[1, 1], [2, 1], [0, 0]]
    seen = types.SimpleNamespace(
        grid=grid, player_locations=at(1, 1), frightened_state_time=3,
        **{name: np.array(value) for name, value in places.items()},
    )  # fmt: skip
    drawn = jumanji_games._pac_man(seen)
    ghost, pellets = [[0, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 1, 1]]
    expected = [1 - grid, [[0, 0, 0], [0, 1, 0]], ghost, ghost, np.zeros((2, 3)), pellets]
    np.testing.assert_array_equal(np.moveaxis(drawn, -1, 0), expected)
