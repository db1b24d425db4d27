"""Playing a checkpoint: the weights, the values and the film."""

import pathlib
import runpy
import shutil
import types

import gin
import imageio.v2 as imageio
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from log_dqn.results import film
from log_dqn.single import runner, start

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "play.py"


def clear():
    gin.clear_config()
    gin.config._OPERATIVE_CONFIG.clear()


@pytest.fixture(autouse=True)
def fresh():
    clear()
    with tf.Graph().as_default():
        yield
    clear()


def write_run(run_dir, agent_name):
    """Writes the parts of a run that are read: configuration and weights. Returns the weights."""
    clear()
    small = [f"{m}.replay_capacity = 500" for m in
             ("WrappedReplayBuffer", "WrappedPrioritizedReplayBuffer")]  # fmt: skip
    start.configure([], small, game="Breakout", agent=agent_name, seed=5)
    with tf.Graph().as_default():
        experiment = runner.create_runner(str(run_dir))
        agent = experiment._agent
        (run_dir / "checkpoints").mkdir(parents=True, exist_ok=True)
        agent._saver.save(agent._sess, str(run_dir / "checkpoints" / "tf_ckpt-3"))
        weights = agent._sess.run(agent.online_convnet.trainable_weights)
    clear()
    return weights


@pytest.fixture(scope="module")
def log_dqn(tmp_path_factory):
    """A run of LogDQN, and its weights."""
    run_dir = tmp_path_factory.mktemp("run")
    return run_dir, write_run(run_dir, "log_dqn")


def test_newest_weights_of_either_layout(tmp_path):
    for name in ("tf_ckpt-2", "tf_ckpt-10", "9/weights"):
        path = tmp_path / "checkpoints" / f"{name}.index"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    prefix = str(tmp_path / "checkpoints" / "tf_ckpt-10")
    assert film.newest_weights(tmp_path) == (prefix, 10)
    (tmp_path / "checkpoints/11").mkdir()
    (tmp_path / "checkpoints/11/weights.index").touch()
    (tmp_path / "checkpoints/.writing-12").mkdir()
    (tmp_path / "checkpoints/.writing-12/weights.index").touch()
    assert film.newest_weights(tmp_path) == (str(tmp_path / "checkpoints/11/weights"), 11)


def test_log_dqns_values_are_those_of_the_papers_formulas(log_dqn):
    run_dir, weights = log_dqn
    agent, environment = film.load(run_dir, seed=1)
    restored = agent._sess.run(agent.online_convnet.trainable_weights)
    for ours, saved in zip(restored, weights, strict=True):
        np.testing.assert_array_equal(ours, saved)
    steps = list(film.play(agent, environment, max_steps=12))
    assert len(steps) == 12
    # Independent of the package: tq from the last layer, q = exp((tq - d) / c), equation 13's d.
    outputs = agent._sess.run(agent._net_outputs, {agent.state_ph: agent.state})
    c, gamma, k = 0.5, 0.96, 100
    q_plus = np.exp(outputs[0][0] / c)  # d = 0 for q_init = 1
    q_minus = np.exp(outputs[1][0] / c + k * np.log(gamma))  # d = -c k ln(gamma) for q_init = 0
    # play() leaves the agent in the state of its last step.
    np.testing.assert_allclose(
        film.action_values(agent), [q_plus, q_minus, q_plus - q_minus], rtol=1e-5
    )
    np.testing.assert_array_equal(steps[-1].values, film.action_values(agent))
    greedy = [step.action == step.values[2].argmax() for step in steps]
    assert np.mean(greedy) > 0.9  # epsilon is 0.001.
    assert steps[0].screen.shape == (210, 160, 3)
    assert any(not np.array_equal(steps[0].screen, step.screen) for step in steps)


@pytest.mark.parametrize("agent_name", ["dqn", "rainbow"])
def test_other_agents_show_q_alone(tmp_path, agent_name):
    write_run(tmp_path, agent_name)
    agent, environment = film.load(tmp_path, seed=1)
    [step] = film.play(agent, environment, max_steps=1)
    assert step.values.shape == (1, 4)
    assert step.action == step.values[0].argmax()


def test_the_score_holds_the_last_reward():
    """A made game of three steps with rewards 1, 2 and 4."""
    rewards = [1.0, 2.0, 4.0]

    class Game:
        game_over = False

        def __init__(self):
            ale = types.SimpleNamespace(getScreenRGB=lambda: len(self.actions))
            self.environment = types.SimpleNamespace(unwrapped=types.SimpleNamespace(ale=ale))
            self.actions = []

        def reset(self):
            return "first"

        def step(self, action):
            self.actions.append(action)
            done = len(self.actions) == len(rewards)
            return "next", rewards[len(self.actions) - 1], done, {}

    class Agent:
        _net_outputs = types.SimpleNamespace(q_values="Q")
        _sess = types.SimpleNamespace(run=lambda outputs, feed: np.array([[0.0, 1.0]]))
        state_ph = state = "state"

        def begin_episode(self, observation):
            return 1

        def step(self, reward, observation):
            return 0

    game = Game()
    steps = list(film.play(Agent(), game, max_steps=10))
    assert [(step.screen, step.action, step.score) for step in steps] == [
        (0, 1, 1.0), (1, 0, 3.0), (2, 0, 7.0),
    ]  # fmt: skip
    assert game.actions == [1, 0, 0]
    assert [step.score for step in film.play(Agent(), Game(), max_steps=2)] == [1.0, 3.0]


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.1, 0.2, ("0.100", "0.200")),
        (0.01691, 0.01693, ("0.01691", "0.01693")),
        (1.00001, 1.00002, ("1.00001", "1.00002")),
        (2.0, 2.0, ("2.000", "2.000")),
    ],
)
def test_bounds_of_a_strip_differ(low, high, texts):
    assert film._bounds(low, high) == texts


def test_painter_marks_the_chosen_action():
    screen = np.full((210, 160, 3), 77, np.uint8)
    painter = film.Painter("run", ["NOOP", "FIRE"])
    values = np.array([[0.5, 1.0], [0.1, 0.2], [0.4, 0.8]])
    for _ in range(3):
        frame = np.asarray(painter.frame(film.Step(screen, values, 1, 4.0)))
    assert frame.shape == (630, 1104, 3)
    assert (frame[48:, :480] == 77).all()
    chosen = np.argwhere((frame == (0xD5, 0x5E, 0)).all(axis=2))
    table = chosen[chosen[:, 0] < 300]
    assert table[:, 0].min() >= 42 + 26 and table[:, 0].max() <= 42 + 52  # The second row.
    assert len(chosen) > len(table)  # The strips below hold the chosen action's line.


@pytest.mark.parametrize(("suffix", "size"), [(".mp4", (1104, 630)), (".gif", (552, 315))])
def test_film(log_dqn, tmp_path, capsys, suffix, size):
    out = tmp_path / f"film{suffix}"
    main = runpy.run_path(str(SCRIPT))["main"]
    assert main([f"--run={log_dqn[0]}", f"--out={out}", "--max_steps=20"]) == 0
    assert "20 agent steps, score" in capsys.readouterr().out
    if suffix == ".gif":
        with Image.open(out) as film:
            assert (film.n_frames, film.size) == (20, size)
    else:
        with imageio.get_reader(out) as film:
            assert film.count_frames() == 20
            assert film.get_meta_data()["size"] == size
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("no run", "not a run; it has no operative_config.gin"),
        ("no checkpoint", "no checkpoint of a TensorFlow agent in"),
        ("truncated", "cannot be read"),
        ("no folder", "cannot be written"),
    ],
)
def test_bad_input(log_dqn, tmp_path, capsys, damage, message):
    run, out = tmp_path / "run", tmp_path / "film.gif"
    if damage == "no run":
        run.mkdir()
    else:
        shutil.copytree(log_dqn[0], run)
    if damage == "no checkpoint":
        (run / "checkpoints/tf_ckpt-3.index").unlink()
    if damage == "truncated":
        [data] = run.glob("checkpoints/tf_ckpt-3.data*")
        data.write_bytes(data.read_bytes()[:1000])
    if damage == "no folder":
        out = tmp_path / "absent" / "film.gif"
    main = runpy.run_path(str(SCRIPT))["main"]
    assert main([f"--run={run}", f"--out={out}"]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
    assert not out.exists()


def test_other_suffixes_are_refused(tmp_path, capsys):
    main = runpy.run_path(str(SCRIPT))["main"]
    with pytest.raises(SystemExit) as exit_:
        main([f"--run={tmp_path}", "--out=film.avi"])
    assert exit_.value.code == 2
    assert "'film.avi' does not end in .mp4 or .gif" in capsys.readouterr().err
