"""Environments of gymnax, and of one's own, in vectorized training."""

import functools
import json
import re
import sys

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces

from log_dqn import games, train_vectorized
from log_dqn.cli import progress
from log_dqn.film import episode, game, loading
from log_dqn.vectorized import (
    agents,
    device_loop,
    jax_environments,
    learner,
    networks,
    replay,
    request,
    start,
    timeline,
    training,
)
from tests import programs
from tests.test_docs import TEXTS

from . import own_jax_environment as own
from . import toys

OWN = "tests.vectorized.own_jax_environment"
TINY = {
    "VectorizedRunner.num_iterations": 2, "VectorizedRunner.training_steps": 60,
    "VectorizedRunner.replay_capacity": 100, "VectorizedRunner.batch_size": 8,
    "VectorizedLogDQNAgent.min_replay_history": 20,
}  # fmt: skip


def create(factory, max_steps=10**9, **settings):
    bootstraps = settings.pop("bootstraps", True)
    return jax_environments.create_environment(max_steps, f"{OWN}:{factory}", bootstraps, settings)


def run(results_dir, env, *more, **bindings):
    """Trains in this process, as if it were a new one; returns the exit status."""
    programs.forget()
    values = TINY | {name.replace("__", "."): value for name, value in bindings.items()}
    gin = [f"--gin_bindings={name}={value!r}" for name, value in values.items()]
    options = [f"--results_dir={results_dir}", f"--env={env}", "--threads=1"]
    return train_vectorized.main([*options, *gin, *more])


# What is learned from, against episodes written down in plain Python.


def episodes_of_the_clock(steps, ends, max_steps):
    """Yields (observations, rewards, whether it was cut off) of each episode of so many steps."""
    number = 0
    while steps > 0:
        length = min(own.length_of(number), max_steps)
        is_cut = length < own.length_of(number) or bool(own.is_truncated(number, ends))
        times = range(min(length, steps))
        yield [(number, t) for t in times], [own.reward_of(number, t) for t in times], is_cut
        # One that the program cuts off, the environment hasn't: it begins anew.
        number = 0 if length < own.length_of(number) else number + 1
        steps -= length


def expected_transitions(n, gamma, clips, bootstraps, *clock):
    """Returns (state, rewards, next state or None at an end) of each transition, in their order."""
    found = []
    for observations, rewards, is_cut in episodes_of_the_clock(*clock):
        for first in range(len(observations)):
            later = rewards[first : first + n]
            later = [min(max(r, -1), 1) if clips else r for r in later]
            total = round(sum(gamma**i * r for i, r in enumerate(later)), 5)
            if first + n < len(observations):
                found.append((observations[first], total, observations[first + n]))
            elif is_cut and bootstraps:
                found.append(None)
            else:
                found.append((observations[first], total, None))
    return found


@pytest.mark.parametrize(
    ("n", "ends", "values", "max_steps", "bootstraps"),
    [
        pytest.param(1, 3, 6, 99, True, marks=pytest.mark.slow),
        (3, 2, 6, 4, True),
        (2, 3, 6, 99, False),
        pytest.param(2, 1, 5, 99, True, marks=pytest.mark.slow),
    ],
)
def test_what_is_learned_from(tmp_path, n, ends, values, max_steps, bootstraps):
    made = create("clock", max_steps, ends=ends, values=values, bootstraps=bootstraps)

    def trainer_of(workload, problem, shown):
        return device_loop.DeviceTrainer(workload, problem, made, shown, [0])

    trainer, clips = make_trainer(tmp_path, made, n, trainer_of), n < 3
    trainer.step()
    expected = (n, 0.9, clips, bootstraps)
    kept = assert_learned_from(trainer, made.cuts, expected, ends, max_steps)
    assert (None in kept) == (bootstraps and values == 6 and ends > 1)


def make_trainer(folder, made, n, trainer_of):
    """Makes what trains a run on a clock, with n-step transitions."""
    runner = agents.RunnerSettings(
        num_iterations=1, training_steps=10**6, evaluation_steps=0, replay_capacity=200,
        stack_size=1, clip_rewards=n < 3,
    )  # fmt: skip
    agent = toys.log_dqn(update_horizon=n, gamma=0.9)
    problem = learner.Problem(
        toys.small_network, made.frame_shape, made.frame_dtype, 1, 8, 200, made.cuts,
        runner.clip_rewards,
    )  # fmt: skip
    workload = training.Workload(toys.make_runs(folder, [agent], [1]), runner, [None])
    return trainer_of(workload, problem, progress.Progress([0], 1, runner.steps_per_iteration))


def assert_learned_from(trainer, cuts, expected, *clock):
    """Holds a clock's memory after a chunk's steps against `expected_transitions`; returns those.

    Takes that function's first arguments, and the clock's `ends` and `max_steps`.
    """
    position, of_runs, n = trainer.position, trainer.learner, expected[0]
    steps = int(position.stored[0])
    assert steps == device_loop.CHUNK_STEPS - 1
    due = timeline.update(of_runs.rules, position, np.False_, np.zeros(1, bool), np)
    # All of the memory's, which has wrapped around twice.
    slots = int(due.oldest[0]) + np.arange(int(due.available[0]))[:, None]
    slots = (slots + np.arange(n + 1)) % of_runs.slots
    memory = replay.Memory(*(np.asarray(field)[0] for field in of_runs.memory))
    batch = replay.read(memory, slots)
    batch = replay.transitions(replay.without_cuts(batch, 1) if cuts else batch, 1, 0.9)
    ours = {
        (tuple(s.tolist()), round(float(r), 5), None if end else tuple(s2.tolist()))
        for s, r, s2, end in zip(
            batch.states[..., 0], batch.rewards, batch.next_states[..., 0], batch.terminals,
            strict=True,
        )
    }  # fmt: skip
    first = steps + 1 - min(int(position.episode_steps[0]) + 1, n) - len(slots)
    kept = expected_transitions(*expected, steps + 2, *clock)[first : first + len(slots)]
    assert ours == {transition for transition in kept if transition is not None}
    return kept


def steps_with(terminals):
    """Steps of transitions with these ends; the frames number the transitions."""
    terminals = np.array(terminals, np.uint8)
    numbers = np.arange(len(terminals))[:, None].repeat(terminals.shape[1], 1)
    zeros = np.zeros(terminals.shape, np.float32)
    return replay.Memory(numbers, zeros.astype(np.uint8), zeros.astype(np.int8), zeros, terminals)


def test_what_is_cut_off_gives_its_place_to_the_others():
    steps = steps_with([[2, 0, 0], [0, 0, 0], [1, 2, 0], [0, 2, 0], [0, 0, 2], [0, 1, 0]])
    whole = replay.without_cuts(steps, 1)
    assert whole.frames[:, 0].tolist() == [1, 2, 4, 5, 1, 2]


def test_actions_beyond_eight_bits():
    for count, dtype, last in ((128, "int8", 127), (129, "int16", 128), (32767, "int16", 32766)):
        memory = replay.create((3,), (), "bool", count)
        stored = replay.add_step(memory, 1, jnp.bool_(1), jnp.int32(0), jnp.int32(last))
        assert stored.actions.dtype == dtype and stored.actions[1] == last


# Networks.


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((), "dense"), ((4,), "dense"), ((10, 5), "revisiting_rainbow"),
        ((12, 12, 5), "revisiting_rainbow"), ((35, 40, 3), "revisiting_rainbow"),
        ((36, 36), "nature"), ((64, 64, 3), "nature"), ((3, 3, 3, 3), "dense"),
    ],
)  # fmt: skip
def test_the_network_by_shape(shape, name):
    assert networks.by_shape("by_shape", shape) == name
    network = networks.create(name, "float32")
    params, features = network.init(jax.random.key(0), (*shape, 2))
    assert network.apply(params, jnp.zeros((3, *shape, 2))).shape == (3, features)


def test_a_stack_of_boards_is_more_channels():
    states = np.random.default_rng(0).integers(0, 2, (3, 7, 6, 2, 4)).astype(bool)
    network = networks.create("revisiting_rainbow", "float32")
    params, _ = network.init(jax.random.key(0), states.shape[1:])
    assert params["Conv_0"]["kernel"].shape == (3, 3, 8, 16)
    together = network.apply(params, states.reshape(3, 7, 6, 8, 1))
    np.testing.assert_array_equal(network.apply(params, states), together)


def test_what_a_network_sees():
    vector = spaces.Box(jnp.array([-2.0, 0, -jnp.inf, 5]), jnp.array([2.0, 10, 3e38, 5]), (4,))
    prepare = networks.preparation(vector, (4,))
    seen = prepare(jnp.array([[[1.0], [10], [7], [5]]]))
    assert seen[0, :, 0].tolist() == [0.5, 1, 7, 5]
    picture = networks.preparation(spaces.Box(0, 255, (2, 2)), (2, 2))
    assert picture(jnp.full((1, 2, 2, 1), 51, jnp.uint8))[0, 0, 0, 0] == pytest.approx(0.2)
    photo = jnp.full((1, 36, 36, 1), 51, jnp.uint8)
    unbounded = networks.preparation(None, (36, 36), "uint8")(photo)
    np.testing.assert_allclose(unbounded, 0.2, rtol=1e-6)
    board = networks.preparation(None, (6, 6), "uint8")
    assert board(jnp.ones((1, 6, 6, 1), jnp.uint8)).max() == 1
    flags = networks.preparation(spaces.Box(0, 1, (2, 2)), (2, 2))
    assert flags(jnp.ones((1, 2, 2, 1), bool)).max() == 1
    number = networks.preparation(spaces.Discrete(3), ())
    assert number(jnp.array([[2, 0]])).tolist() == [[[0, 0, 1], [1, 0, 0]]]


# The program.


def test_an_environment_of_ones_own_resumes_exactly(tmp_path, capsys):
    env, clip = f"{OWN}:clock", {"VectorizedRunner__clip_rewards": False}
    torso = {"VectorizedRunner__num_iterations": 1}
    assert run(tmp_path / "a", env, "--agent=loglin_dqn", **clip) == 0
    first = capsys.readouterr().out.splitlines()[1]
    assert "network dense for observations int32[2]; replay memories of 100 transi" in first
    assert first.endswith("of the host's memory, and each run's at most 0.00 GB of its checkpoint")
    assert run(tmp_path / "b", env, "--agent=loglin_dqn", **clip, **torso) == 0
    assert run(tmp_path / "b", env, "--agent=loglin_dqn", **clip) == 0
    assert "; resumed from iteration 1\n" in capsys.readouterr().out
    folders = [tmp_path / x / "loglin_dqn" / f"{OWN}-clock" / "1" for x in "ab"]
    ours, theirs = (np.load(folder / "checkpoints" / "1" / "weights.npz") for folder in folders)
    for name in ours.files:
        np.testing.assert_array_equal(ours[name], theirs[name])
    config = json.loads((folders[0] / "config.json").read_text())
    assert config["create_jax_environment.environment_id"] == env
    # Made otherwise, it is another.
    settings = {"create_jax_environment__settings": {"ends": 2}}
    assert run(tmp_path / "b", env, "--agent=loglin_dqn", **clip, **settings) == 2
    message = "create_jax_environment.settings was None and is {'ends': 2}"
    assert message in capsys.readouterr().err


def test_an_environment_that_has_changed_is_refused(tmp_path, capsys, monkeypatch):
    assert run(tmp_path, f"{OWN}:board") == 0
    monkeypatch.setattr(own, "board", functools.partial(own.board, 3))
    assert run(tmp_path, f"{OWN}:board", VectorizedRunner__num_iterations=3) == 2
    message = "of another observation: it was bool[6, 6, 2] and is bool[6, 6, 3]\n"
    assert message in capsys.readouterr().err


def test_a_network_of_ones_own(tmp_path, capsys):
    torso = ["--gin_bindings=VectorizedRunner.network=@Torso", f"--gin_bindings=import {OWN}"]
    assert run(tmp_path, f"{OWN}:board", *torso, VectorizedRunner__stack_size=2) == 0
    assert "network Torso for observations bool[6, 6, 2]" in capsys.readouterr().out
    folder = tmp_path / "log_dqn" / f"{OWN}-board" / "1" / "checkpoints" / "1"
    shapes = [np.load(folder / "weights.npz")[str(i)].shape for i in range(4)]
    assert sorted(shapes) == [(4,), (5,), (5, 4), (144, 5)]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Torso4", "2 states make (2, 2, 5)"),
        ("TorsoOfOne", "2 states make (1, 5)"),
        ("TorsoFails", "no network (RuntimeError in .*own_jax_environment.py, line"),
        ("TorsoDrops", 'needs PRNG for "dropout" .*(InvalidRngError in .*own_jax_environment.py,'),
        ("TorsoOfNothing", "it has no parameters"),
    ],
)
def test_a_wrong_network_of_ones_own_is_said_in_one_line(tmp_path, capsys, name, why):
    programs.forget()
    gin = [f"--gin_bindings=VectorizedRunner.network=@{name}", f"--gin_bindings=import {OWN}"]
    allowed = "a flax module with parameters that maps states to an output [batch, features]"
    message = f"VectorizedRunner.network is '@{name}'; it must be {allowed}: .*{why}"
    options = [f"--env={OWN}:clock", *gin]
    programs.assert_refused(tmp_path, capsys, options, message, train_vectorized, "results_dir")


@pytest.mark.parametrize("settings", ["a", 3])
@pytest.mark.parametrize("env", ["CartPole-v1", "gymnasium:CartPole-v1"])
def test_settings_are_a_dict(tmp_path, capsys, env, settings):
    programs.forget()
    gin = f"--gin_bindings={request.factory(env)}.settings={settings!r}"
    message = f"settings is {settings!r}; it must be a dict\n"
    options = [f"--env={env}", gin]
    programs.assert_refused(tmp_path, capsys, options, message, train_vectorized, "results_dir")


@pytest.mark.parametrize("env", ["", ":make", f"{OWN}:", "gymnasium:"])
def test_an_id_without_a_part_is_refused(env):
    allowed = "an id of gymnax, MODULE:FACTORY, or gymnasium: followed by an id of gymnasium"
    with pytest.raises(ValueError) as raised:
        request.check_environment(env)
    assert str(raised.value) == f"env is {env!r}; it must be {allowed}"


WRONG = [
    ("nowhere:make", "an id, or MODULE:ID of a module that exists, named as for import"),
    ("CartPol-v1", "an id of gymnax (nearest: CartPole-v1.*) or MODULE:FACTORY"),
    ("MinAtar/Breakout", "left out: this is a game, --games=MinAtar/Breakout"),
    (f"{OWN}:nothing", "one that can be made: module .* has no attribute 'nothing'\n"),
    (
        f"{OWN}:fails",
        "one that can be made: no licence (RuntimeError in .*tests/vectorized/own_jax",
    ),
    (f"{OWN}:leaves", "one that can be made: it calls sys.exit(3) (SystemExit in .*/own_jax_envir"),
    (f"{OWN}:two_truncated", "one whose truncated is one real number, and not bool[2]"),
    (
        f"{OWN}:forgets_info",
        "one whose step JAX can compile: info, its last value, must be a dict, and not bool[]",
    ),
    (f"{OWN}:rewards_a_tree", "one whose reward is one real number, and not {a: float32[]}"),
    (f"{OWN}:complex_reward", "one whose reward is one real number, and not complex64[]"),
    (
        f"{OWN}:other_shape",
        "one whose observations have their space's shape: (7,), and not (2,)",
    ),
    (
        f"{OWN}:second_line",
        "one whose state keeps shape and dtype: time () other (3,), then time () other ()",
    ),
    (f"{OWN}:no_pair", "a function that returns (environment, parameters)"),
    (f"{OWN}:no_step", "one with gymnax's interface; it lacks step, action_space"),
    (
        f"{OWN}:continuous",
        "one with one discrete action a step, numbered from 0, and not Box(low=-1.0",
    ),
    (
        f"{OWN}:several_of_gymnasium",
        "one with one discrete action a step, numbered from 0, and not MultiDiscrete([2 3])",
    ),
    (f"{OWN}:many", "one with 1 to 32767 actions, and not 40000"),
    (f"{OWN}:two_arrays", "one whose observation is one array, and not {a: int32[], b: int32[]}"),
    (f"{OWN}:grows", "one whose observation keeps shape and dtype: int32[2], then int32[3]"),
    (f"{OWN}:branches", "one whose step JAX can compile: .*(TracerBoolConversionError in .*/tests"),
    (f"{OWN}:draws", "one whose reset JAX can compile: .*(ConcretizationTypeError in .*/tests"),
]


@pytest.mark.parametrize(("env", "message"), WRONG, ids=[env for env, _ in WRONG])
def test_a_wrong_environment_is_said_in_one_line(tmp_path, capsys, env, message):
    programs.forget()
    message = f"env is '{env}'; it must be {message}"
    options = [f"--env={env}", "--agent=dqn"]
    programs.assert_refused(tmp_path, capsys, options, message, train_vectorized, "results_dir")


@pytest.mark.parametrize(
    ("option", "game"), [("--games=Pong", "Pong"), ("--env=CartPole-v1", "CartPole-v1")]
)
def test_another_environment_than_the_one_asked_for_is_refused(tmp_path, capsys, option, game):
    name = "create_jax_environment.environment_id"
    options = [option, "--agent=dqn", f"--gin_bindings={name}='{OWN}:clock'"]
    message = f"{name} is '{OWN}:clock'; it must be left out for {game}: give --env instead"
    programs.assert_refused(tmp_path, capsys, options, message, train_vectorized, "results_dir")


def test_ends_of_other_dtypes():
    step = create("ends_in_floats").step
    state, _ = create("ends_in_floats").reset(jax.random.key(0))
    _, outcome = step(state, jnp.int32(0))
    assert (outcome.ended.dtype, bool(outcome.ended), bool(outcome.cut)) == (bool, True, False)


@pytest.mark.parametrize("package", [True, False])
def test_an_error_below_a_folder_named_as_a_library(tmp_path, monkeypatch, package):
    path = tmp_path / "jax" / "gymnasium" / "broken" / ("__init__.py" if package else "inner.py")
    path.parent.mkdir(parents=True)
    path.write_text("raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(path.parents[1])
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    message = f"one that can be made: no licence (RuntimeError in {path}, line 1)"
    with pytest.raises(ValueError) as raised:
        jax_environments.create_environment(9, "broken.inner:make")
    said = str(raised.value).splitlines()[0]  # gin adds a line.
    assert said == f"env is 'broken.inner:make'; it must be {message}"


def test_settings_of_gymnax():
    short = jax_environments.create_environment(
        10**9, "CartPole-v1", True, {"max_steps_in_episode": 7}
    )
    state, _ = short.reset(jax.random.key(0))
    step, ends = jax.jit(short.step), []
    for i in range(7):
        state, outcome = step(state, jnp.int32(i % 2))
        ends.append((bool(outcome.ended), bool(outcome.cut)))
    assert ends == [(False, False)] * 6 + [(True, True)]
    sized = jax_environments.create_environment(10**9, "DeepSea-bsuite", True, {"size": 5})
    assert sized.frame_shape == (5, 5)


def test_runs_that_do_not_fit_the_device_take_turns(tmp_path, monkeypatch, capsys):
    made = []
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(start.pool, "free_memory", lambda: 1_300_000_000)

    class Trainer:
        failures: dict = {}  # noqa: RUF012

        def __init__(self, *args):
            made.append(args[-1])

        train = lambda self, stop_signal: None  # noqa: E731

    monkeypatch.setattr(device_loop, "DeviceTrainer", Trainer)
    assert run(tmp_path, f"{OWN}:clock", "--seeds=7") == 0
    # 1 GB for the program, 84 MB for each run.
    assert made == [[0, 1, 2], [3, 4, 5], [6]]
    assert "Training 7 runs of log_dqn on cpu, 3 at a time: " in capsys.readouterr().out
    monkeypatch.setattr(start.pool, "free_memory", lambda: 1_000_000_000)
    assert run(tmp_path / "none", f"{OWN}:clock") == 2
    assert "and 1.00 GB are free" in capsys.readouterr().err


def test_runs_of_before_there_was_a_choice_of_clipping_resume():
    from log_dqn.run_folder import configuration

    now = {"VectorizedRunner.clip_rewards": True, "VectorizedRunner.agent": "dqn"}
    assert configuration.differences({"VectorizedRunner.agent": "dqn"}, now) == []
    now["VectorizedRunner.clip_rewards"] = False
    (difference,) = configuration.differences({"VectorizedRunner.agent": "dqn"}, now)
    assert re.fullmatch(r"VectorizedRunner.clip_rewards was True and is False", difference)


def test_the_names_of_gymnax():
    def is_discrete(name):
        environment, params = gymnax.make(name)
        return hasattr(environment.action_space(params), "n")

    # MNIST is downloaded when it is made.
    names = [n for n in gymnax.registered_envs if "MNIST" in n or is_discrete(n)]
    assert tuple(names) == games.GYMNAX


# Films.


def film(run_dir, env=None, steps=4):
    """Returns the player of a run, and the screens of its first steps."""
    player = loading.load(run_dir, 1, env)
    steps = episode.play(player, steps, 1, draws=True)
    return player, [step.screen for step in steps]


def test_a_film_imports_only_what_it_is_told(tmp_path):
    env = f"{OWN}:board"
    assert run(tmp_path, env, VectorizedRunner__num_iterations=1) == 0
    folder = tmp_path / "log_dqn" / f"{OWN}-board" / "1"
    message = f"env is None; it must be '{env}', on which the run was trained: a film imports"
    with pytest.raises(ValueError, match=message):
        film(folder)
    player, screens = film(folder, env)
    assert player.game.action_names == ("nothing", "more of it")
    # Its own pictures, of an episode of three steps.
    assert [int(screen[0, 0, 0]) for screen in screens] == [100, 101, 102]
    assert screens[0].shape == (4, 6, 3)


def test_pictures_of_observations():
    vector = game.picture(np.zeros(2), np.array([[0.5], [-1.0]]))
    assert vector.shape == (81, 24, 3)
    lit = (vector != game._EMPTY).any(axis=-1)
    assert (lit[:, 0].sum(), lit[:, 12].sum(), lit[:, 8].sum()) == (21, 41, 0)
    assert lit[20:41, 0].all() and lit[40:, 12].all()
    numbers = game.picture(np.array([[0, 1], [2, 4]]), None)
    assert (numbers[0, 0] == game._EMPTY).all() and len(
        np.unique(numbers.reshape(4, 3), axis=0)
    ) == 4
    photo = np.full((40, 50, 3), 9, np.uint8)
    np.testing.assert_array_equal(game.picture(photo, None), photo)
    board = np.eye(3, dtype=np.float32)[..., None].repeat(2, -1)
    np.testing.assert_array_equal(game.picture(board, None), game.board(board > 0))


# Whole environments, which take minutes.


@pytest.mark.slow
@pytest.mark.parametrize("env", [name for name in games.GYMNAX if "MNIST" not in name])
def test_every_environment_of_gymnax_is_trained_resumed_and_played(tmp_path, env):
    long = {"VectorizedRunner__training_steps": 1000, "VectorizedRunner__replay_capacity": 500}
    assert run(tmp_path / "a", env, **long) == 0
    assert run(tmp_path / "b", env, **long, VectorizedRunner__num_iterations=1) == 0
    assert run(tmp_path / "b", env, **long) == 0
    folders = [tmp_path / x / "log_dqn" / env / "1" for x in "ab"]
    ours, theirs = (np.load(folder / "checkpoints" / "1" / "weights.npz") for folder in folders)
    for name in ours.files:
        np.testing.assert_array_equal(ours[name], theirs[name])
    _, screens = film(folders[0])
    assert screens[0].dtype == np.uint8 and screens[0].shape[-1] == 3


PAGE = TEXTS["docs/jax_environments.md"]


@pytest.mark.slow
def test_the_environment_of_the_page(tmp_path, capsys, monkeypatch):
    name = "jax_corridor"
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    assert run(tmp_path / "results", f"{name}:make", VectorizedRunner__num_iterations=1) == 0
    out = capsys.readouterr().out
    assert " for observations int32[]; " in out
    assert f"play --run={tmp_path}/results/log_dqn/{name}-make/1 " in out
    assert f"--env={name}:make" in out
    _, screens = film(tmp_path / "results" / "log_dqn" / f"{name}-make" / "1", f"{name}:make")
    assert screens[0].shape[-1] == 3
