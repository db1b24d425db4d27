"""Filming runs of every kind: the weights, the values, the picture and the film."""

import importlib.util
import json
import math
import pathlib
import random
import shutil
import sys
from typing import ClassVar
from unittest import mock

import gin
import gymnasium
import gymnax
import imageio.v2 as imageio
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageSequence

from log_dqn import atari, games, load, train_vectorized
from log_dqn.commands import play as commands_play
from log_dqn.dopamine_run import gymnasium_game, request, runner, start
from log_dqn.film import game, loading, painter, players
from log_dqn.film.episode import Step, play
from log_dqn.film.players import Values, values_of
from log_dqn.log_space import LogUpdate
from log_dqn.run_folder import data, layout
from log_dqn.vectorized import agents, jax_environments, learner, networks, timeline
from tests.dopamine_run.own_environment import TIME_LIMIT, Own
from tests.programs import NEEDS_MINATAR, forget, python, tiny
from tests.vectorized import own_jax_environment

SIZE = painter.WIDE.width, painter.WIDE.height


class Drawn(Own):
    """An environment that draws itself, a shade lighter each step."""

    metadata: ClassVar = {"render_modes": ["rgb_array"]}

    def render(self):
        assert self.render_mode == "rgb_array"
        return np.full((30, 40, 3), 10 * self._steps, np.uint8)


DRAWN = "Film/Picture-v0"
gymnasium.register(DRAWN, Drawn, max_episode_steps=TIME_LIMIT, kwargs={"observation": "Picture"})


def main(*arguments):
    """Runs the program; returns the exit status."""
    return commands_play.main([str(argument) for argument in arguments])


def write_run(run_dir, gin_files=(), **settings):
    """Writes a run whose agent has not been trained. Returns the agent."""
    forget()
    start.configure(request.parse(gin_files, [], seed=5, **settings).written)
    for memory in loading.CAPACITIES:
        gin.parse_config(f"{memory} = 200", skip_unknown=True)
    run_dir.mkdir(parents=True, exist_ok=True)
    with tf.Graph().as_default():
        experiment = runner.create_runner(str(run_dir))
        experiment._checkpoint_experiment(0)
    forget()
    return experiment._agent


def train_many(results_dir, agent, game_name):
    """Runs a vectorized agent for some steps; returns the run's folder."""
    forget()
    settings = {
        "num_iterations": 2, "training_steps": 60, "evaluation_steps": 0, "batch_size": 8,
        "max_steps_per_episode": 20, "replay_capacity": 200,
    }  # fmt: skip
    kind = {"log_dqn": "LogDQN", "dqn": "DQN"}[agent]
    # Compiling the update of Atari's network is slow, so it stays untrained.
    history = 190 if game_name == "Centipede" else 20
    arguments = [
        f"--results_dir={results_dir}", f"--games={game_name}", f"--agent={agent}",
        f"--gin_bindings=Vectorized{kind}Agent.min_replay_history={history}",
        *[f"--gin_bindings=VectorizedRunner.{name}={value}" for name, value in settings.items()],
    ]  # fmt: skip
    assert train_vectorized.main(arguments) == 0
    forget()
    return layout.run_dir(pathlib.Path(results_dir), agent, "", game_name, 1)


# Their likes in the other framework stay; each takes seconds to build.
SLOW_AGENTS = (
    "c51", "rainbow", "implicit_quantile", "jax_log_dqn", "jax_dqn", "jax_rainbow",
    "jax_implicit_quantile", "full_rainbow",
)  # fmt: skip
UNTRAINED = {
    **{agent: {"agent": agent, "game": "Breakout"} for agent in ("dqn", *SLOW_AGENTS)},
    "log_dqn cartpole": {"gin_files": ["log_dqn_cartpole.gin"]},
    "jax_log_dqn cartpole": {"gin_files": ["jax_log_dqn_cartpole.gin"]},
    "log_dqn minatar": {"agent": "log_dqn", "game": "MinAtar/Breakout"},
    "jax_dqn minatar": {"agent": "jax_dqn", "game": "MinAtar/Breakout"},
    "log_dqn vector": {"agent": "log_dqn", "env": "MountainCar-v0"},
    "jax_dqn number": {"agent": "jax_dqn", "env": "FrozenLake-v1"},
    "dqn picture": {"agent": "dqn", "env": DRAWN},
    "jax_log_dqn picture": {"agent": "jax_log_dqn", "env": f"{__name__}:{DRAWN}"},
}
VECTORIZED = {
    "vectorized log_dqn": ("log_dqn", "Centipede"),
    "vectorized log_dqn minatar": ("log_dqn", "MinAtar/Freeway"),
    "vectorized dqn catch": ("dqn", "bsuite/Catch"),
}
SLOW = (
    *SLOW_AGENTS, "log_dqn", "dqn", "log_dqn minatar", "jax_dqn number", "dqn picture",
    "log_dqn vector", "jax_log_dqn picture", "vectorized dqn catch", "vectorized log_dqn minatar",
)  # fmt: skip
KINDS = [
    pytest.param(
        kind,
        marks=[NEEDS_MINATAR] * kind.endswith(("minatar", "catch"))
        + [pytest.mark.slow] * (kind in SLOW),
    )
    for kind in ("log_dqn", *UNTRAINED, *VECTORIZED)
]


@pytest.fixture(scope="session")
def a_run(trained, tmp_path_factory):
    """Gives the folder of a run of some kind, made once."""
    folders = {}

    def make(kind):
        if kind not in folders:
            folder = tmp_path_factory.mktemp("run")
            if kind == "log_dqn":  # As the tests of checkpoints train it.
                iterations = "--gin_bindings=Runner.num_iterations=1"
                trained(folder, *tiny(), "--seed=9", iterations)
            elif kind in VECTORIZED:
                folder = train_many(folder, *VECTORIZED[kind])
            else:
                write_run(folder, **UNTRAINED[kind])
            folders[kind] = folder
        return folders[kind]

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_a_film_of_each_kind_of_run(a_run, tmp_path, capsys, kind):
    out = tmp_path / "film.gif"
    run_dir = a_run(kind)
    capsys.readouterr()
    assert main(f"--run={run_dir}", f"--out={out}", "--max_steps=4", "--narrow", "--seed=1") == 0
    printed, errors = capsys.readouterr()
    assert f"\n{out}: 4 agent steps, return " in printed and errors == ""
    for path, size in ((out, SIZE), (tmp_path / "film_narrow.gif", (390, 860))):
        with Image.open(path) as film:
            assert (film.n_frames, film.size) == (4, size)
            delays = [frame.info["duration"] for frame in ImageSequence.Iterator(film)]
            assert delays == [60, 70, 70, 60]  # 15 frames a second, where a gif has hundredths.


def test_a_gif_is_written_frame_by_frame(tmp_path):
    path, rng = tmp_path / "film.gif", np.random.default_rng(0)
    first = rng.integers(0, 2, (300, 400, 1)).repeat(3, axis=2).astype(np.uint8) * 255
    second, third = first.copy(), first.copy()
    second[100:120, 30:50] = (7, 8, 9)
    third[:] = 255 - first
    with painter.Gif(path) as film:
        film.append_data(first)
        for frame in (second, second, third):
            film.append_data(frame)
        assert path.stat().st_size > 30_000  # It does not wait for the end.
    with Image.open(path) as film:
        assert film.info["loop"] == 0
        shown = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
    np.testing.assert_array_equal(shown, [first, second, second, third])


@pytest.mark.slow
def test_what_pygame_draws_needs_it(a_run, monkeypatch):
    *drawn_by_pygame, own = map(
        a_run, ("log_dqn cartpole", "log_dqn vector", "jax_log_dqn picture")
    )
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *of: None if name == "pygame" else find(name, *of)
    )
    for folder in drawn_by_pygame:
        player = loading.load(folder, seed=0)
        assert len(list(play(player, 2, seed=0, draws=False))) == 2
        with pytest.raises(ValueError, match="pygame must be installed"):
            next(play(player, 2, seed=0, draws=True))
    assert next(play(loading.load(own, seed=0), 1, seed=0, draws=True)).screen.shape == (30, 40, 3)


def test_a_checkpoint_that_is_not_as_written_is_passed_over_and_named(a_run, tmp_path, capfd):
    run_dir = tmp_path / "run"
    shutil.copytree(a_run("log_dqn cartpole"), run_dir)
    newer = run_dir / "checkpoints" / "1"
    shutil.copytree(run_dir / "checkpoints" / "0", newer)
    manifest = newer / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"iteration": 0', '"iteration": 1'))
    assert loading.load(run_dir, seed=0).iterations == 2
    (path,) = newer.glob("weights.data-*")
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    capfd.readouterr()
    assert load(run_dir).iterations == 1
    assert capfd.readouterr().err.startswith("checkpoint 1 in ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("log_dqn vector", ("left", "none", "right")),
        ("jax_log_dqn picture", ("action 0", "action 1")),
    ],
)
def test_an_environment_of_gymnasium_is_played_as_in_training(a_run, kind, names):
    player = loading.load(a_run(kind), seed=3)
    assert player.game.action_names == names
    steps = list(play(player, max_steps=6, seed=0, draws=True))
    if kind == "log_dqn vector":
        assert [step.score for step in steps] == [-1, -2, -3, -4, -5, -6]
        assert steps[0].screen.shape == (400, 600, 3)
    else:  # Its own time limit ends the episode.
        assert [step.screen[0, 0, 0] for step in steps] == [0, 10, 20, 30, 40]


def test_a_lost_life_is_not_the_end_of_an_episode():
    gin.parse_config("AtariPreprocessing.terminal_on_life_loss = True")
    breakout = game.DopamineGame("Breakout", atari.create_environment("Breakout"))
    breakout.reset(1)
    draws = random.Random(1)
    lives, is_over = [], False
    while not is_over:
        *_, is_over = breakout.step(draws.randrange(4))
        lives.append(breakout._game.ale.lives())
    assert lives[-1] == 0 and set(lives[:-1]) == {1, 2, 3, 4, 5}


def test_an_environment_that_does_not_draw_itself_is_refused(tmp_path, capsys):
    run_dir, out = tmp_path / "run", tmp_path / "film.gif"
    write_run(run_dir, agent="jax_dqn", env="Own/Vector-v0")
    capsys.readouterr()
    assert main(f"--run={run_dir}", f"--out={out}") == 2
    error = "env is 'Own/Vector-v0'; it must be one that draws itself, as rgb_array"
    assert capsys.readouterr().err == f"log-dqn play: error: {error}\n" and not out.exists()


def test_the_weights_are_the_trained_ones(tmp_path):
    trained = write_run(tmp_path, gin_files=["log_dqn_cartpole.gin"])
    player = loading.load(tmp_path, seed=1)
    restored, weights = (
        agent._sess.run(agent.online_convnet.trainable_weights) for agent in (player.agent, trained)
    )
    np.testing.assert_equal(restored, weights)
    assert player.epsilon == trained.epsilon_eval and player.gamma == trained.gamma


def wander(player, steps):
    """Returns some observations of an episode, and the values of each."""
    observations, values, state = [player.game.reset(2)], [], None
    for number in range(steps):
        state = player.stack(observations[-1], state)
        values.append(player.values(state))
        assert player.act(state) == values[-1].keys.argmax()
        observation, _, over = player.game.step(number % len(values[-1].q))
        assert not over
        observations.append(observation)
    return observations[:steps], values


def own_outputs(agent):
    """What an agent's network makes of the agent's own state."""
    if hasattr(agent, "_sess"):
        return agent._sess.run(agent._net_outputs, {agent.state_ph: agent.state})
    settings = {"support": agent._support} if hasattr(agent, "_support") else {}
    if hasattr(agent, "_noisy"):
        settings |= {"key": agent._rng, "eval_mode": True}
    state = agent.preprocess_fn(agent.state)
    return agent.network_def.apply(agent.online_params, state, **settings)


@pytest.mark.parametrize(
    "kind",
    [
        "log_dqn cartpole", "jax_log_dqn cartpole", "jax_dqn minatar",
        *[
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in (
                "log_dqn", "dqn", "rainbow", "c51", "full_rainbow", "jax_rainbow", "jax_log_dqn"
            )
        ],
    ],
)  # fmt: skip
@NEEDS_MINATAR
def test_an_agent_of_dopamines_kind_values_and_acts_as_it_does_itself(a_run, kind):
    player = loading.load(a_run(kind), seed=1)
    (first, *others), values = wander(player, 6)
    agent = player.agent
    agent.epsilon_eval = 0.0
    own = [agent.begin_episode(first), *(agent.step(0.0, other) for other in others)]
    assert own == [value.keys.argmax() for value in values]
    outputs, last = own_outputs(agent), values[-1]
    assert last.q.shape == (agent.num_actions,)
    if "log_dqn" not in kind:
        assert (last.heads, last.q_plus, last.q_minus) == (None, None, None)
        np.testing.assert_allclose(last.q, np.ravel(outputs.q_values), rtol=1e-4, atol=1e-6)
        return
    # Independent of the package: tq from the last layer, q = exp((tq - d) / c), equation 13's d.
    plus, minus = outputs[-2:]
    c, gamma, k = agent._update.c, agent.gamma, agent._update.k
    q_plus = np.exp(np.ravel(plus) / c)  # d = 0 for q_init = 1
    q_minus = np.exp(np.ravel(minus) / c + k * np.log(gamma))  # d = -c k ln(gamma) for 0
    np.testing.assert_allclose(
        [last.q_plus, last.q_minus, last.q], [q_plus, q_minus, q_plus - q_minus], rtol=1e-5
    )


@NEEDS_MINATAR
@pytest.mark.parametrize(
    "kind",
    [
        "vectorized log_dqn",
        *[
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("vectorized log_dqn minatar", "vectorized dqn catch")
        ],
    ],
)
def test_a_vectorized_agent_values_and_acts_as_in_training(a_run, kind):
    player = loading.load(a_run(kind), seed=3)
    agent, shape = player.agent, player.state_shape
    network = networks.NETWORKS["nature" if kind == "vectorized log_dqn" else "revisiting_rainbow"]
    observations, values = wander(player, 6)
    num_actions = len(values[0].q)
    problem = learner.Problem(network, shape[:-1], player.dtype, shape[-1], 8, 50)
    settings = agents.RunnerSettings()
    training = learner.Learner([agent], problem, settings, [num_actions], [1])
    folder, _ = layout.newest_checkpoint(a_run(kind), print, "")
    training.set_run_weights(0, data.load(folder / "weights"))
    nothing = training.slots
    own = []
    for number, observation in enumerate(observations):
        numbers = (number, -1.0, nothing, number, nothing, False)
        choice = timeline.Choice(*(np.array([value]) for value in numbers))
        frames = np.reshape(observation, (1, *shape[:-1]))
        own += training.act(frames, np.zeros(1, np.float32), choice).tolist()
    assert own == [value.keys.argmax() for value in values]
    frames = [np.reshape(observation, shape[:-1]) for observation in observations[-shape[-1] :]]
    state = np.stack(frames, axis=-1)
    outputs = agent.outputs(network, training.weights.params, state[None], num_actions)
    last = values[-1]
    if kind == "vectorized dqn catch":
        np.testing.assert_allclose(last.q, outputs[0][0], rtol=1e-6)
    else:
        c, floor = agent.c, agent.gamma**agent.k
        expected = np.exp(outputs[0][0] / c), floor * np.exp(np.float64(outputs[1][0] / c))
        np.testing.assert_allclose([last.q_plus, last.q_minus], expected, rtol=1e-5)
        np.testing.assert_allclose(last.q, last.q_plus - last.q_minus)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (
            np.zeros((84, 84)),
            r"shape is \(84, 84\); it must be \(84, 84, 4\), 4 observations \(see",
        ),
        (np.zeros((4, 84, 84)), r"shape is \(4, 84, 84\); it must be"),
        (
            np.full((84, 84, 4), 0.5),
            "a number of the observation is 0.5; it must be a finite uint8",
        ),
        (np.full((84, 84, 4), np.nan), "a number of the observation is nan; it must be"),
        (None, r"shape is \(\); it must be"),
    ],
)
def test_an_observation_of_another_shape_or_type_is_refused(a_run, observation, message):
    player = loading.load(a_run("vectorized log_dqn"), seed=0)
    with pytest.raises(ValueError, match=f"^[^\n]*{message}[^\n]*$"):
        player.act(observation)


def test_what_is_the_same_is_taken_for_it(a_run):
    """Axes of length 1, numbers of another type: the same values."""
    player = loading.load(a_run("vectorized log_dqn"), seed=0)
    frame = player.game.reset(5)
    state = player.stack(frame)
    assert frame.shape == (84, 84, 1) and state.shape == (84, 84, 4) and state.dtype == np.uint8
    assert not state[..., :3].any() and (state[..., 3:] == frame).all()
    for same in (player.stack(frame[..., 0]), state[None], state.astype(float), state.tolist()):
        np.testing.assert_array_equal(player.values(same).q, player.values(state).q)
    following = player.stack(frame, state)
    assert not following[..., :2].any() and (following[..., 2:] == frame).all()


def test_random_actions_are_the_generators(a_run):
    player = loading.load(a_run("vectorized log_dqn"), seed=0)
    state = player.stack(player.game.reset(5))

    def actions(epsilon, seed):
        generator = np.random.default_rng(seed)
        return [player.act(state, epsilon, generator) for _ in range(30)]

    greedy = player.act(state)
    assert actions(0.0, 1) == [greedy] * 30
    assert actions(0.5, 1) == actions(0.5, 1) != actions(0.5, 2)
    assert 5 <= actions(0.5, 1).count(greedy) < 30
    assert player.act(state, epsilon=1.0) in range(18)


def test_gins_configuration_and_random_numbers_stay_the_users(a_run):
    run_dir = a_run("log_dqn cartpole")
    gin.parse_config("import math\nLogDQNAgent.gamma = 0.5\nCHOSEN = 3\n")
    before, drawn = gin.config_str(), (random.getstate(), np.random.get_state()[1].tolist())
    assert "import math" in before
    assert loading.load(run_dir, seed=0).gamma != 0.5
    with pytest.raises(ValueError):
        loading.load(pathlib.Path("nowhere"), seed=0)
    assert gin.config_str() == before and not gin.config_is_locked()
    assert (random.getstate(), np.random.get_state()[1].tolist()) == drawn


def test_a_folder_may_begin_as_a_game_does():
    """A game is one name; a path, or a longer one, is a folder."""
    for folder in ("MinAtar/dqn/Pong/1", pathlib.Path("MinAtar/dqn"), "minatar/run1"):
        with pytest.raises(ValueError, match=f"^run is '{folder}'; .*this one is no folder"):
            load(folder)
    with pytest.raises(ValueError, match=r"^run is 'MinAtar/Pong'; it must be one of"):
        load("MinAtar/Pong")


def test_what_there_is_not_to_load(tmp_path):
    for arguments, message in (
        (("nowhere",), "run is 'nowhere'; it must be the folder of a run .* is no folder"),
        ((tmp_path,), "this one has no config.json that names an agent"),
        ((tmp_path, "dqn"), "agent is 'dqn'; it must be left out for a run of your own"),
    ):
        with pytest.raises(ValueError, match=message):
            load(*arguments)
    allowed = "env is 'a:b'; it must be left out: the run wasn't trained with an --env"
    with pytest.raises(ValueError, match=allowed):
        load("MinAtar/Asterix", env="a:b")


def test_a_film_ends_where_training_leaves_an_episode(a_run, tmp_path):
    changes = {"Runner__max_steps_per_episode": 5}
    player = loading.load(altered(a_run("log_dqn cartpole"), tmp_path / "run", **changes), seed=0)
    assert player.max_steps == 5 and player.iterations == 1 and player.game_name == "CartPole"
    assert len(list(painter.film([player], ["run"], 50, 0))) == 5


class Fake:
    """A game of three steps with rewards 1, 2 and 4, and an agent that takes action 1 first."""

    action_names = ("stay", "go")
    rewards = (1.0, 2.0, 4.0)
    gamma, epsilon = 0.5, 0.0

    def __init__(self, length=3):
        self.actions, self.length, self.game, self.max_steps = [], length, self, 100
        self.game_name, self.iterations = "game", 1

    def reset(self, seed):
        self.actions = []
        return "first"

    def step(self, action):
        self.actions.append(action)
        return "next", self.rewards[len(self.actions) - 1], len(self.actions) == self.length

    def screen(self):
        return np.full((30, 40, 3), 10 * len(self.actions) % 256, np.uint8)

    def stack(self, observation, state):
        assert (state is None) == (observation == "first")
        return observation

    def values(self, state):
        return values_of(np.array([0.0, 1.0 if state == "first" else -1.0]))


def test_the_score_holds_the_last_reward():
    game = Fake()
    steps = list(play(game, max_steps=10, seed=0, draws=True))
    assert [(step.screen[0, 0, 0], step.action, step.score) for step in steps] == [
        (0, 1, 1.0), (10, 0, 3.0), (20, 0, 7.0),
    ]  # fmt: skip
    assert game.actions == [1, 0, 0]
    game = Fake()
    assert [step.score for step in play(game, 2, seed=0, draws=True)] == [1.0, 3.0]


def test_random_actions_are_epsilons_and_the_seeds():
    def actions(seed):
        game = Fake(length=300)
        game.epsilon, game.rewards, game.max_steps = 0.5, [0.0] * 300, 300
        return [step.action for step in play(game, 300, seed, draws=False)][1:]

    assert actions(1) == actions(1) != actions(2)
    assert 0.18 < np.mean(actions(1)) < 0.32  # Half of them are random, and half of those are 1.


def test_log_dqns_values_are_kept_where_floats_end():
    # At gamma 0.1 and k 1000 the floor is 1e-1000, and Q is 0 in floats: the heads still differ.
    rule = LogUpdate(gamma=0.1, k=1000, q_init_plus=0.0, q_init_minus=0.0).rule
    values = values_of(([[0.5, 0.0]], [[0.0, 0.25]]), rule)
    np.testing.assert_allclose(values.heads, np.log(0.1) * 1000 + np.array([[1, 0], [0, 0.5]]))
    assert values.q.tolist() == [0, 0] and values.keys.argmax() == 0
    series = painter._Series("q+", True)
    assert series.bounds(*values.heads[0][::-1]) == ("1.00e\u22121000", "2.72e\u22121000")
    assert painter._text(math.log(999_900), 3, True) == "1.00e6"
    assert painter._text(math.log(994_900), 3, True) == "9.95e5"


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.1, 0.2, ("0.1", "0.2")),
        (0.01691, 0.01693, ("0.01691", "0.01693")),
        (1.00001, 1.00002, ("1.00001", "1.00002")),
        (2.0, 2.0, ("2", "2")),
        (-0.5, 0.25, ("\u22120.5", "0.25")),
    ],
)
def test_bounds_of_an_axis_differ(low, high, texts):
    assert painter._Series("Q", False).bounds(low, high) == texts
    if low > 0:
        assert painter._Series("q+", True).bounds(math.log(low), math.log(high)) == texts


def test_an_axis_shows_differences_wherever_they_lie():
    axis = painter._Series("Q", False)
    assert axis.limits(np.array([5.0, 5.5])) == (5.0, 5.5)
    # It widens at once, and shrinks slowly.
    assert axis.limits(np.array([100.0, 102.0])) == (100.0, 102.0)
    low, high = axis.limits(np.array([7.001, 7.002]))
    assert low == pytest.approx(7.0015 - 0.97) and high == pytest.approx(7.0015 + 0.97)
    for _ in range(400):
        low, high = axis.limits(np.array([7.001, 7.002]))
    assert (low, high) == pytest.approx((7.001, 7.002))


def drawn(values, chosen=1, steps=3):
    screen = np.full((210, 160, 3), 77, np.uint8)
    shown = painter.Painter(Fake(), "run")
    for _ in range(steps):
        frame = np.asarray(shown.frame(Step(screen, values, chosen, 4.0)))
    return frame


def columns_of_dots(frame, top, bottom, colour):
    """The middles of the dots of a colour in some rows, from the left."""
    is_dot = (frame[top:bottom, painter.WIDE.axes :] == colour).all(axis=2).any(axis=0)
    at = np.flatnonzero(is_dot)
    return [group.mean() for group in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)]


def test_the_painter_marks_the_chosen_action():
    heads = np.log([[0.5, 1.0], [0.1, 0.2]])
    frame = drawn(Values(np.array([0.4, 0.8]), heads, np.array([0.4, 0.8])))
    assert frame.shape == (468, 800, 3)
    assert (frame[40:460, 8:328] == 77).all()
    chosen = np.argwhere((frame == (0xD5, 0x5E, 0)).all(axis=2))
    table = chosen[chosen[:, 0] < 140]
    assert table[:, 0].min() >= 84 + 24 and table[:, 0].max() <= 84 + 48  # The second row.
    assert len(chosen) > len(table)  # The strips below hold the chosen action's line.


def test_small_differences_on_a_large_value_are_drawn_as_large_ones():
    """Of the values 10 and 10.001 the dots are as far apart as of 1 and 2; the heads in the log."""
    places = []
    for q, ratio in (([1.0, 2.0], 2.0), ([10.0, 10.001], 1.0001)):
        heads = np.array([[0.0, math.log(ratio)], [-500.0, -500.0 + math.log(ratio)]])
        frame = drawn(Values(np.array(q), heads, np.array(q)))
        rows = [(84, 108, (0x57, 0x60, 0x6A)), (108, 132, (0xD5, 0x5E, 0))]
        places.append([columns_of_dots(frame, *row) for row in rows])
        assert [len(of_row) for of_row in places[-1]] == [3, 3]
    np.testing.assert_array_equal(*places)
    low, high = places[0]
    assert (np.subtract(high, low) > 80).all()


def test_a_screen_may_be_very_wide():
    screen, values = np.zeros((1, 700, 3), np.uint8), values_of([0.0, 1.0])
    frame = painter.Painter(Fake(), "run").frame(Step(screen, values, 0, 0.0))
    left, top, *_ = painter.WIDE.screen
    assert (np.asarray(frame)[top, left : left + 320] == 0).all()


@pytest.mark.parametrize("layout", [painter.WIDE, painter.NARROW])
def test_there_may_be_very_many_actions(layout):
    player, values = Fake(), values_of(np.arange(1000.0))
    player.action_names = [str(number) for number in range(1000)]
    shown = painter.Painter(player, "run", layout)
    frame = shown.frame(Step(np.zeros((10, 10, 3), np.uint8), values, 999, 0.0))
    assert frame.size == (layout.width, layout.height)


def test_a_long_title_gives_way():
    screen, values = np.zeros((10, 10, 3), np.uint8), values_of([0.0, 1.0])
    frames = [
        np.asarray(painter.Painter(Fake(), title).frame(Step(screen, values, 0, -1.5)))
        for title in ("run", "run " * 100)
    ]
    np.testing.assert_array_equal(frames[0][:38, 640:], frames[1][:38, 640:])
    assert (frames[0][:38, 640:] < 128).any() and (frames[1][:38, 400:600] < 128).any()


def test_a_title_names_agent_game_and_seed():
    for run in ("log_dqn/Pong/1", "log_dqn/gamma=0.5/Pong/1"):
        title = commands_play._title(pathlib.Path("/r", run), Fake(1))
        assert title == f"{run}   after 1 iteration"


def test_a_board_shows_its_last_channel():
    frame = np.zeros((2, 2, 3), bool)
    frame[0, 1, 0] = frame[1, 1, 0] = frame[1, 1, 2] = frame[1, 0, 2] = True
    picture = game.board(frame)
    assert picture.shape == (2, 2, 3) and picture.dtype == np.uint8
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) == 3
    np.testing.assert_array_equal(picture[1, 0], picture[1, 1])


@pytest.mark.parametrize("name", games.MINATAR5)
def test_a_legend_below_the_board_names_its_colours(name):
    channels = jax_environments.create_game(name, 10).frame_shape[-1]
    frames = np.eye(channels, dtype=bool)[:, None, None]
    colours = [tuple(game.board(frame)[0, 0].tolist()) for frame in frames]
    assert list(game.legend(name).values()) == colours and len(set(colours)) == channels
    screen, values = np.zeros((10, 10, 3), np.uint8), values_of([0.0, 1.0])
    step = Step(screen, values, 0, 0.0)
    of_game, other = Fake(), Fake()
    of_game.game_name = name
    picture, without = (
        np.array(painter.Painter(player, "run").frame(step)) for player in (of_game, other)
    )
    left_below = picture[362:, :344]
    for colour in colours:
        assert (left_below == colour).all(axis=2).sum() == 12 * 12
    picture[362:, :344] = without[362:, :344]
    np.testing.assert_array_equal(picture, without)  # Nothing else is drawn over.
    narrow = painter.Painter(of_game, "run", painter.NARROW)
    picture = np.array(narrow.frame(step))
    for colour in colours:  # Between the screen and the panel, which begins with white.
        assert (picture[366:, :390] == colour).all(axis=2).sum() == 12 * 12
        assert (picture[narrow._panel_top :] == colour).all(axis=2).sum() == 0


def test_two_agents_side_by_side():
    players = [Fake(length) for length in (3, 2)]
    frames = [(np.asarray(frame), last) for (frame,), last in painter.film(players, "ab", 10, 0)]
    assert [[step.score for step in last] for _, last in frames] == [[1, 1], [3, 3], [7, 3]]
    assert all(frame.shape == (468, 1600, 3) for frame, _ in frames)
    screens = [(frame[100, 60, 0], frame[100, 860, 0]) for frame, _ in frames]
    assert screens == [(0, 0), (10, 10), (20, 10)]  # The picture of the shorter one's end stays.


def test_a_narrow_film_has_the_panel_below_the_screen_and_an_agent_below_the_other():
    layouts = painter.WIDE, painter.NARROW
    (_, frame), _ = next(painter.film([Fake(), Fake()], "ab", 10, 0, layouts))
    assert frame.size == (390, 2 * 860)
    first, second = np.split(np.asarray(frame), 2)
    for picture in (first, second):
        assert (picture[56:336, 8:382] == 0).all()  # 40 x 30 pixels, 9.35 times as large
        is_chosen = (picture[424:472, 148:] == (0xD5, 0x5E, 0)).all(axis=2).any(axis=1)
        assert np.flatnonzero(is_chosen).mean() == 36  # The middle of the second of two rows.


@pytest.mark.slow
def test_a_film_of_two_runs(a_run, tmp_path, capsys):
    out = tmp_path / "film.mp4"
    run_dir, other = a_run("log_dqn"), a_run("vectorized log_dqn")
    assert main(f"--run={run_dir}", f"--compare={other}", f"--out={out}", "--max_steps=6") == 0
    assert "film.mp4: 6 agent steps, return 0 and 0" in capsys.readouterr().out
    with imageio.get_reader(out) as film:
        assert film.count_frames() == 6
        assert film.get_meta_data()["size"] == (2 * SIZE[0], SIZE[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name]
    out.unlink()
    other = a_run("log_dqn cartpole")
    assert main(f"--run={run_dir}", f"--compare={other}", f"--out={out}", "--max_steps=6") == 2
    error = capsys.readouterr().err
    assert error == (
        f"log-dqn play: error: compare is '{other}'; it must be a run on Centipede, as the first "
        "is, and not on CartPole\n"
    )
    assert list(tmp_path.iterdir()) == []


def altered(run_dir, folder, **changes):
    """Copies a run with other parameters in its config.json."""
    shutil.copytree(run_dir, folder)
    path = folder / layout.CONFIG
    changes = {name.replace("__", "."): value for name, value in changes.items()}
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


def test_nothing_that_a_run_names_is_imported(a_run, tmp_path, monkeypatch, capsys):
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    evil = tmp_path / "evil"
    shutil.copytree(a_run("log_dqn cartpole"), evil)
    config = evil / layout.GIN_CONFIG
    config.write_text(f"import evil_module\n{config.read_text()}\ninclude 'evil_module.gin'\n")
    out = tmp_path / "film.gif"
    assert main(f"--run={evil}", f"--out={out}", "--max_steps=2") == 0
    assert capsys.readouterr().err == "" and "evil_module" not in sys.modules
    config.unlink()
    assert main(f"--run={evil}", f"--out={out}", "--max_steps=2") == 0


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("LogDQNAgent.network", "@evil_module.Network"),
        ("LogDQNAgent.network", "@evil_module/network"),
        ("LogDQNAgent.optimizer", "@Runner()"),
        ("LogDQNAgent.optimizer", "@tf.train.AdamOptimizer()\nimport evil_module"),
        ("LogDQNAgent.epsilon_fn", "%evil\nimport evil_module"),
        ("LogDQNAgent.gamma", "0.5\nimport evil_module"),
        ("LogDQNAgent.c = 1\nimport evil_module #", 1),
        ("Runner.create_environment_fn", "@evil_module.create_environment"),
        ("create_gym_environment.environment_name", "evil_module:CartPole"),
        ("gym_lib.create_gym_environment.environment_name", "evil_module:CartPole"),
        ("create_gym_environment.version", "v0:CartPole-v0"),
        ("create_gymnasium_environment.environment_id", "evil_module:MountainCar-v0"),
        ("create_agent.agent_name", "evil_module"),
    ],
)
def test_a_configuration_that_names_other_code_is_refused(
    a_run, tmp_path, monkeypatch, parameter, value
):
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    kind = "log_dqn vector" if "gymnasium" in parameter else "log_dqn cartpole"
    run_dir = altered(a_run(kind), tmp_path / "run", **{parameter: value})
    with pytest.raises(ValueError, match="it must be"):
        loading.load(run_dir, seed=0)
    assert "evil_module" not in sys.modules


@pytest.mark.slow
def test_a_program_that_refuses_a_run_says_one_line(a_run, tmp_path):
    """TensorFlow has written a page by then, in a process of its own."""
    changes = {"create_gym_environment.environment_name": "evil_module:CartPole"}
    run_dir = altered(a_run("jax_log_dqn cartpole"), tmp_path / "run", **changes)
    arguments = ["play", f"--run={run_dir}", f"--out={tmp_path / 'film.gif'}"]
    done = python("-m", "log_dqn.commands.main", *arguments)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("log-dqn play: error: env is 'evil_module:CartPole-v")


def test_what_a_film_does_not_need_is_ignored(a_run, tmp_path):
    changes = {"my_logger.name": "x", "my_logger.sink": "@my_sink()"}
    run_dir = altered(a_run("log_dqn cartpole"), tmp_path / "run", **changes)
    assert loading.load(run_dir, seed=0).game_name == "CartPole"


@pytest.mark.parametrize(
    ("kind", "damage", "message"),
    [
        ("log_dqn cartpole", "no checkpoint", "has no checkpoint of this package"),
        ("log_dqn cartpole", "truncated", "none of the checkpoints in"),
        ("jax_log_dqn cartpole", "no checkpoint", "has no checkpoint of this package"),
        ("jax_log_dqn cartpole", "truncated", "none of the checkpoints in"),
        ("vectorized log_dqn", "no checkpoint", "has no checkpoint of this package"),
        ("vectorized log_dqn", "truncated", "none of the checkpoints in"),
        ("vectorized log_dqn", "another game", "the weights are those of another network"),
        ("vectorized log_dqn", "old", "config.json is not this version's: "),
    ],
)
def test_bad_input(a_run, tmp_path, capsys, kind, damage, message):
    run, out = tmp_path / "run", tmp_path / "film.gif"
    shutil.copytree(a_run(kind), run)
    if damage == "no checkpoint":
        shutil.rmtree(run / "checkpoints")
        shutil.rmtree(run / "logs", ignore_errors=True)
    if damage == "truncated":
        for path in [*run.glob("checkpoints/*/weights.*"), *run.glob("checkpoints/*/agent.npz")]:
            path.write_bytes(path.read_bytes()[:1000])
    if damage == "another game":
        for path in run.glob("checkpoints/*/manifest.json"):
            path.write_text(path.read_text().replace("Centipede", "Pong"))
    if damage == "old":
        path = run / layout.CONFIG
        path.write_text(
            path.read_text().replace("VectorizedLogDQNAgent.k", "VectorizedLogDQNAgent.x")
        )
    assert main(f"--run={run}", f"--out={out}") == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not out.exists()


def test_pictures_of_observations():
    vector = game.picture(np.zeros(2), np.array([[0.5], [-1.0]]), False)
    assert vector.shape == (81, 24, 3)
    lit = (vector != game._EMPTY).any(axis=-1)
    assert (lit[:, 0].sum(), lit[:, 12].sum(), lit[:, 8].sum()) == (21, 41, 0)
    assert lit[20:41, 0].all() and lit[40:, 12].all()
    # A space may have no bounds, or wrong ones.
    np.testing.assert_array_equal(game.picture(np.full((4, 4, 3), 9, np.uint8), None, False), 9)
    numbers = game.picture(np.array([[0, 1], [2, 4]]), None, False)
    assert (numbers[0, 0] == game._EMPTY).all() and len(
        np.unique(numbers.reshape(4, 3), axis=0)
    ) == 4
    photo = np.full((40, 50, 3), 9, np.uint8)
    np.testing.assert_array_equal(game.picture(photo, None, True), photo)
    board = np.eye(3, dtype=np.float32)[..., None].repeat(2, -1)
    np.testing.assert_array_equal(game.picture(board, None, False), game.board(board > 0))


def test_what_an_own_environment_draws_may_be_grey(monkeypatch):
    grey = np.arange(6, dtype=np.uint8).reshape(2, 3, 1)
    monkeypatch.setattr(own_jax_environment.Still, "render", lambda *_: grey)
    name = f"{own_jax_environment.__name__}:board"
    shown = game.BoardGame(jax_environments.create_environment(9, name))
    shown.reset(0)
    np.testing.assert_array_equal(shown.screen(), np.concatenate([grey] * 3, axis=2))
    monkeypatch.setattr(shown, "_render", mock.Mock(side_effect=ZeroDivisionError("no screen")))
    with pytest.raises(ValueError, match=f"^env is '{name}'; it must be one .*drawn: no screen"):
        shown.screen()


def test_an_agent_of_ones_own_acts_by_its_own_keys():
    class Sum(agents.VectorizedDQNAgent):
        """Three heads; a value is their sum."""

        num_heads = 3

        def action_keys(self, constants, outputs):
            return sum(outputs)

    network = networks.by_shape("by_shape", (4,))
    agent, made = Sum(), networks.create(network, "float32", None)
    params = agents.initial_params(agent.head_inits, made, jax.random.key(1), (4, 1), 5, 5)
    player = players.vectorized(
        agent, made, params, 5, state_shape=(4, 1), dtype=np.dtype("float32"), game=None,
        game_name="", iterations=1, max_steps=9,
    )  # fmt: skip
    state = np.array([0.1, -0.2, 0.3, 0.4], np.float32)
    outputs = agent.outputs(made, params, state[None, :, None], 5)
    assert len(outputs) == 3
    np.testing.assert_allclose(player.values(state).q, np.sum(outputs, axis=0)[0], rtol=1e-5)


@pytest.mark.parametrize(("bound", "is_picture"), [(1, False), (255, True)])
def test_small_bytes_are_a_picture_by_their_space(monkeypatch, bound, is_picture):
    bytes_ = np.eye(4, dtype=np.uint8)[..., None] * np.ones(3, np.uint8)
    space = gymnax.environments.spaces.Box(0, bound, bytes_.shape, np.uint8)
    made = own_jax_environment.Still(jnp.asarray(bytes_), space), own_jax_environment.Params()
    monkeypatch.setattr(own_jax_environment, "board", lambda: made)
    monkeypatch.delattr(own_jax_environment.Still, "render")
    name = f"{own_jax_environment.__name__}:board"
    shown = game.BoardGame(jax_environments.create_environment(9, name))
    shown.reset(0)
    expected = bytes_ if is_picture else game.board(bytes_ != 0)
    np.testing.assert_array_equal(shown.screen(), expected)


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (None, "uint8 of shape"),
        (np.zeros((4, 6, 3)), "uint8 of shape"),
        (np.zeros((0, 6, 3), np.uint8), "uint8 of shape"),
        (ZeroDivisionError("no screen"), "drawn: no screen"),
    ],
)
def test_an_environment_that_draws_something_else_is_named(monkeypatch, drawn, said):
    own = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    screen = mock.Mock(side_effect=drawn) if isinstance(drawn, Exception) else lambda: drawn
    monkeypatch.setattr(own.unwrapped, "render", screen)
    played = game.DopamineGame("Own-v0", gymnasium_game.GymnasiumGame(own, bootstraps=True))
    with pytest.raises(ValueError, match=rf"^env is 'Own-v0'; it must be one .*{said}"):
        played.screen()
