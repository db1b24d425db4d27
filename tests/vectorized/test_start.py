"""Whole programs on environments of one's own, in JAX and of gymnasium: `--env`, and its faults."""

import functools
import itertools
import json
import re
import sys
import types

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from log_dqn import train_vectorized
from log_dqn.cli import gin_files
from log_dqn.film import episode, evaluation, loading
from log_dqn.games import GYMNAX
from log_dqn.run_folder import configuration
from log_dqn.vectorized import device_loop, request, start
from tests import programs
from tests.cli.faulty_environment import OBSERVATION, register
from tests.cli.faulty_environment import __file__ as FILE
from tests.test_docs import TEXTS

from . import own_gymnasium_environment  # noqa: F401  (registers its own)
from . import own_jax_environment as own

OWN = "tests.vectorized.own_jax_environment"
GYMNASIUM = "gymnasium:tests.vectorized.own_gymnasium_environment"
CARTPOLE = "gymnasium:CartPole-v1"
TINY = {
    "VectorizedRunner.num_iterations": 2, "VectorizedRunner.training_steps": 60,
    "VectorizedRunner.replay_capacity": 100, "VectorizedRunner.batch_size": 8,
    "VectorizedLogDQNAgent.min_replay_history": 20,
}  # fmt: skip


def run(results_dir, env, *more, **bindings):
    """Trains in this process, as if it were a new one; returns the exit status."""
    programs.forget()
    values = TINY | {name.replace("__", "."): value for name, value in bindings.items()}
    gin = [f"--gin_bindings={name}={value!r}" for name, value in values.items()]
    options = [f"--results_dir={results_dir}", f"--env={env}", "--threads=1"]
    return train_vectorized.main([*options, *gin, *more])


def run_folder(results_dir, env, seed=1):
    (folder,) = results_dir.glob(f"*/{env.replace(':', '-')}/{seed}")
    return folder


def weights(results_dir, env, seed, iteration=1):
    """Returns the weights in a checkpoint of a run."""
    folder = run_folder(results_dir, env, seed) / "checkpoints" / str(iteration)
    return dict(np.load(folder / "weights.npz")).values()


def assert_refused(tmp_path, capsys, options, message):
    programs.forget()
    programs.assert_refused(tmp_path, capsys, options, message, train_vectorized, "results_dir")


@pytest.mark.parametrize(
    ("env", "option", "observations", "creator", "settings"),
    [
        (
            f"{OWN}:clock", "--gin_bindings=VectorizedRunner.clip_rewards=False", "int32[2]",
            "create_jax_environment", {"ends": 2},
        ),
        pytest.param(
            CARTPOLE, "--checkpoint_replay", "float32[4]", "create_host_environment",
            {"max_episode_steps": 9}, marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_runs_resume_exactly_and_do_not_depend_on_others(
    tmp_path, capsys, env, option, observations, creator, settings
):
    assert run(tmp_path / "a", env, option, "--seeds=2") == 0
    first = capsys.readouterr().out.splitlines()[1]
    said = f"network dense for observations {observations}; replay memories of 100 transi"
    assert said in first
    assert first.endswith("of the host's memory, and each run's at most 0.00 GB of its checkpoint")
    one = {"VectorizedRunner__num_iterations": 1}
    assert run(tmp_path / "b", env, option, "--seeds=2-2", **one) == 0
    assert run(tmp_path / "b", env, option, "--seeds=2-2") == 0
    assert "; resumed from iteration 1\n" in capsys.readouterr().out
    ours, others = (weights(tmp_path / x, env, 2) for x in "ab")
    assert all(map(np.array_equal, ours, others))
    assert not all(map(np.array_equal, ours, weights(tmp_path / "a", env, 1)))
    assert not all(map(np.array_equal, ours, weights(tmp_path / "a", env, 2, 0)))
    config = json.loads((run_folder(tmp_path / "b", env, 2) / "config.json").read_text())
    assert config[f"{creator}.environment_id"] == env
    # Made otherwise, it is another.
    other = {f"{creator}__settings": settings}
    assert run(tmp_path / "b", env, option, "--seeds=2-2", **other) == 2
    assert f"{creator}.settings was None and is {settings}" in capsys.readouterr().err


def test_64_bits_are_refused(tmp_path, capsys):
    jax.config.update("jax_enable_x64", True)
    try:
        message = "jax_enable_x64 is True; it must be False: training computes in 32 bits"
        assert_refused(tmp_path, capsys, [f"--env={OWN}:board"], message)
    finally:
        jax.config.update("jax_enable_x64", False)


def test_an_environment_that_cannot_be_made_again_is_said_in_one_line(tmp_path, capsys):
    times = itertools.count()

    def make():
        if next(times):
            raise OSError("port 7000 is in use")
        return gymnasium.make("CartPole-v1")

    gymnasium.register("Once-v0", make)
    assert run(tmp_path, "gymnasium:Once-v0") == 2  # A sweep doesn't try again.
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        "error: env is 'Once-v0'; it must be an environment of gymnasium that can be made" in line
    )
    assert "port 7000 is in use" in line


def test_bounds_of_another_shape_are_refused(tmp_path, capsys, monkeypatch):
    box = types.SimpleNamespace(low=np.zeros(3), high=np.ones(3))
    environment = own.Still(jnp.zeros(10), box), own.Params()
    monkeypatch.setattr(own, "board", lambda: environment)
    message = "one whose space's bounds have its shape: .*"
    assert_refused(tmp_path, capsys, [f"--env={OWN}:board"], message)


def test_an_environment_that_has_changed_is_refused(tmp_path, capsys, monkeypatch):
    assert run(tmp_path, f"{OWN}:board") == 0
    monkeypatch.setattr(own, "board", functools.partial(own.board, 3))
    assert run(tmp_path, f"{OWN}:board", VectorizedRunner__num_iterations=3) == 2
    message = "of another observation: it was bool[6, 6, 2] and is bool[6, 6, 3]\n"
    assert message in capsys.readouterr().err


def test_a_network_of_ones_own(tmp_path, capsys):
    torso = ["--gin_bindings=VectorizedRunner.network=@Torso", f"--gin_bindings=import {OWN}"]
    settings = {"VectorizedRunner__stack_size": 2, "Torso__widths": (7,)}
    assert run(tmp_path, f"{OWN}:board", *torso, **settings) == 0
    assert "network Torso for observations bool[6, 6, 2]" in capsys.readouterr().out
    shapes = [array.shape for array in weights(tmp_path, f"{OWN}:board", 1)]
    assert sorted(shapes[:4]) == [(4,), (7,), (7, 4), (144, 7)]
    settings["VectorizedRunner__num_iterations"] = 3
    assert run(tmp_path, f"{OWN}:board", *torso, **settings) == 0
    folder = run_folder(tmp_path, f"{OWN}:board")
    trained = loading.load(folder, 0, f"{OWN}:board")
    assert trained.iterations == 3
    # What it reads once it is called.
    assert configuration.read(folder)["gain.by"] == 1
    assert run(tmp_path, f"{OWN}:board", *torso, **settings, gain__by=2.0) == 2
    assert "gain.by was 1.0 and is 2.0" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["5", "@width()"])
def test_what_gin_configures_in_an_own_module_is_so_in_a_film_too(tmp_path, monkeypatch, value):
    env, lines = f"{OWN}:marked", (f"import {OWN}", f"marked.actions={value}")
    assert run(tmp_path, env, *(f"--gin_bindings={line}" for line in lines)) == 0
    programs.forget()
    trained = loading.load(run_folder(tmp_path, env), 0, env)
    assert len(trained.game.action_names) == 5
    monkeypatch.setitem(sys.modules, OWN, None)  # It can't be imported.
    with pytest.raises(ValueError, match=r"^env is .*; it must be an id, or MODULE"):
        loading.load(run_folder(tmp_path, env), 0, env)


@pytest.mark.parametrize(
    "scan", ["Torso.widths=(5,),(9,)", "width.factor=1,2", "first/width.factor=1,2"]
)
def test_the_runs_of_a_job_share_a_network(tmp_path, capsys, scan):
    lines = ["VectorizedRunner.network=@Torso", f"import {OWN}"]
    if "width." in scan:
        lines += ["Torso.widths=[@first/width(),@second/width()]", "second/width.factor=3"]
    options = [f"--env={OWN}:board", *(f"--gin_bindings={line}" for line in lines)]
    options.append(f"--scan={scan}")
    message = f"scan is '{scan.split('.')[1][:6]}.*'; it must be of settings that may differ within"
    message += " a command: .*network"
    assert_refused(tmp_path, capsys, options, message)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("returns no vector", "2 states make (2, 2, 5)"),
        ("takes any number of states for one", "2 states make (1, 5)"),
        ("raises", "no network (RuntimeError in .*own_jax_environment.py, line"),
        ("drops", 'needs PRNG for "dropout" .*(InvalidRngError in .*own_jax_environment.py,'),
        ("has no parameters", "it has no parameters"),
        ("names a layer as the agents' last one", "'Output' is the name of the layer that follows"),
        ("has parameters of two bytes", "its parameters can't be saved; set param_dtype="),
    ],
)
def test_a_wrong_network_of_ones_own_is_said_in_one_line(tmp_path, capsys, fault, why):
    lines = ["VectorizedRunner.network=@Torso", f"import {OWN}", f"Torso.fault={fault!r}"]
    allowed = "a flax module with parameters that maps states to an output [batch, features]"
    message = f"VectorizedRunner.network is '@Torso'; it must be {allowed}: .*{why}"
    options = [f"--env={OWN}:clock", *(f"--gin_bindings={line}" for line in lines)]
    assert_refused(tmp_path, capsys, options, message)


@pytest.mark.parametrize("env", ["", ":make", f"{OWN}:", "gymnasium:"])
def test_an_id_without_a_part_is_refused(env):
    allowed = "an id of gymnax, MODULE:FACTORY, or gymnasium: followed by an id of gymnasium"
    with pytest.raises(ValueError) as raised:
        request.check_environment(env)
    assert str(raised.value) == f"env is {env!r}; it must be {allowed}"


ONE_ACTION = "one with one discrete action a step, numbered from 0, and not "
WRONG = [
    ("nowhere:make", "an id, or MODULE:FACTORY of a module that exists, named as for import"),
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
    (f"{OWN}:other_shape", "one whose observations have their space's shape: (7,), and not (2,)"),
    (
        f"{OWN}:second_line",
        "one whose state keeps shape and dtype: time () other (3,), then time () other ()",
    ),
    (f"{OWN}:no_pair", "a function that returns (environment, parameters)"),
    (f"{OWN}:no_step", "one with gymnax's interface; it lacks step, action_space"),
    (f"{OWN}:continuous", f"{ONE_ACTION}Box(low=-1.0"),
    (f"{OWN}:several_of_gymnasium", f"{ONE_ACTION}MultiDiscrete([2 3])"),
    (f"{OWN}:many", "one with 1 to 32767 actions, and not 40000"),
    (f"{OWN}:two_arrays", "one whose observation is one array, and not {a: int32[], b: int32[]}"),
    (f"{OWN}:grows", "one whose observation keeps shape and dtype: int32[2], then int32[3]"),
    (f"{OWN}:branches", "one whose step JAX can compile: .*(TracerBoolConversionError in .*/tests"),
    (f"{OWN}:draws", "one whose reset JAX can compile: .*(ConcretizationTypeError in .*/tests"),
    (
        "gymnasium:CartPol-v1",
        "an environment of gymnasium that can be made: .*(nearest: CartPole-v1, ",
    ),
    ("gymnasium:nowhere:X-v0", "an id, or gymnasium:MODULE:ID of a module that"),
    ("gymnasium:ALE/Pong-v5", "'gymnasium:ale_py:ALE/Pong-v5': ALE's environments are of"),
    (
        f"{GYMNASIUM}:No-v0",
        "an environment of gymnasium that can be made: Environment `No` doesn't ex",
    ),
]


@pytest.mark.parametrize(("env", "message"), WRONG, ids=[env for env, _ in WRONG])
def test_a_wrong_environment_is_said_in_one_line(tmp_path, capsys, env, message):
    # It is found out when gymnasium makes it, by its own id.
    named = env.removeprefix("gymnasium:") if env.endswith("No-v0") else env
    message = f"env is '{named}'; it must be {message}"
    assert_refused(tmp_path, capsys, [f"--env={env}", "--agent=dqn"], message)


JAX_ID, INSTEAD = "create_jax_environment.environment_id", "give --env instead"


@pytest.mark.parametrize(
    ("option", "name", "value", "allowed"),
    [
        ("--games=Pong", JAX_ID, f"{OWN}:clock", f"left out for Pong: {INSTEAD}"),
        ("--env=CartPole-v1", JAX_ID, f"{OWN}:clock", f"left out for CartPole-v1: {INSTEAD}"),
        (f"--env={CARTPOLE}", JAX_ID, f"{OWN}:clock", f"left out for {CARTPOLE}: {INSTEAD}"),
        ("--env=CartPole-v1", "create_jax_environment.settings", "a", "a dict\n"),
        (f"--env={CARTPOLE}", "create_host_environment.settings", "a", "a dict\n"),
        (f"--env={CARTPOLE}", "create_host_environment.settings", 0, "a dict\n"),
    ],
)
def test_gin_that_does_not_go_with_the_environment(tmp_path, capsys, option, name, value, allowed):
    options = [option, "--agent=dqn", f"--gin_bindings={name}={value!r}"]
    message = f"{name.partition('.')[2]} is {value!r}; it must be {allowed}"
    assert_refused(tmp_path, capsys, options, message)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"bad": RuntimeError("boom")},
            f"env is 'Bad-v0'; its step failed: boom (RuntimeError in {FILE}, line ",
        ),
        (
            {"bad": np.float32([1, np.nan])},
            "env is 'Bad-v0'; its step must return what observation_space declares: it has nan at ",
        ),
        (
            {"bad": OBSERVATION, "reward": "much"},
            "the reward of gymnasium:Bad-v0 is 'much'; it must be one finite number",
        ),
    ],
)  # fmt: skip
def test_a_fault_stops_its_run_at_the_step(tmp_path, capsys, settings, said):
    after = 30 * ("reward" not in settings)
    env = f"gymnasium:{register('Bad', after=after, **settings)}"
    assert run(tmp_path, env, "--seeds=1") == 1
    where = f"log_dqn {env} 1: stopped at step {after + 1}, counted from the run's start: {said}"
    assert where in capsys.readouterr().err


def test_runs_that_do_not_fit_the_device_take_turns(tmp_path, monkeypatch, capsys):
    made = []
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(start.pool, "free_memory", lambda: 1_020_000_000)

    class Trainer:
        failures: dict = {}  # noqa: RUF012

        def __init__(self, *args):
            made.append(args[-1])

        train = lambda self, stop_signal: None  # noqa: E731

    monkeypatch.setattr(device_loop, "DeviceTrainer", Trainer)
    assert run(tmp_path, f"{OWN}:clock", "--seeds=7") == 0
    # 1 GB for the program, 6 MB for each run: 5.3 for weights and gradients, 0.8 for an update.
    assert made == [[0, 1, 2], [3, 4, 5], [6]]
    assert "Training 7 runs of log_dqn on cpu, 3 at a time: " in capsys.readouterr().out
    monkeypatch.setattr(start.pool, "free_memory", lambda: 1_000_000_000)
    assert run(tmp_path / "none", f"{OWN}:clock") == 2
    assert "and 1.00 GB are free" in capsys.readouterr().err


def test_another_optimizer_may_be_chosen_beside_a_file():
    written = request.parse(
        [], ["VectorizedLogDQNAgent.optimizer='rmsprop_tf'"], "log_dqn", "MinAtar/Breakout"
    )
    gin_files.read(written)
    (setting,) = start.read_settings(written.lines, [])
    assert setting.agent.optimizer == "rmsprop_tf"
    assert "adam.epsilon" not in setting.config.parameters
    assert setting.config.parameters["rmsprop_tf.epsilon"] == 0.00001
    own = gin_files.parse([], ["adam.epsilon = 0.1"]).lines
    with pytest.raises(ValueError, match=r"adam.epsilon is 0.1, .* mean rmsprop_tf.epsilon"):
        start.read_settings(own, [])


def test_runs_of_before_there_was_a_choice_of_clipping_resume():
    now = {"VectorizedRunner.clip_rewards": True, "VectorizedRunner.agent": "dqn"}
    assert configuration.differences({"VectorizedRunner.agent": "dqn"}, now) == []
    now["VectorizedRunner.clip_rewards"] = False
    (difference,) = configuration.differences({"VectorizedRunner.agent": "dqn"}, now)
    assert difference == "VectorizedRunner.clip_rewards was True and is False"


# Films, and the pages.


def film(run_dir, env=None, steps=4):
    """Returns the player of a run, and the screens of its first steps."""
    player = loading.load(run_dir, 1, env)
    steps = episode.play(player, steps, 1, draws=True)
    return player, [step.screen for step in steps]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "lightness", "returns", "actions"),
    [
        # Its own pictures, of an episode of three steps.
        (f"{OWN}:board", [100, 101, 102], -1, ("nothing", "more of it")),
        # The first episode of a clock has one step.
        (f"{GYMNASIUM}:Clock-v0", [100], -2, ("action 0", "action 1")),
    ],
)
def test_a_film_and_an_evaluation_import_only_what_they_are_told(
    tmp_path, capsys, env, lightness, returns, actions
):
    one = {"VectorizedRunner__num_iterations": 1, "VectorizedRunner__max_steps_per_episode": 3}
    assert run(tmp_path, env, "--checkpoint_replay", **one) == 0
    folder = run_folder(tmp_path, env)
    shown = capsys.readouterr().out
    assert f"play --run={folder} " in shown and f" --env={env} " in shown
    message = f"env is None; it must be '{env}', on which the run was trained: loading imports"
    with pytest.raises(ValueError, match=message):
        film(folder)
    player, screens = film(folder, env)
    assert player.game.action_names == actions
    assert [int(screen[0, 0, 0]) for screen in screens] == lightness
    assert screens[0].shape == (4, 6, 3)
    found = evaluation.evaluate(player, range(2), 9, lambda number: None)
    assert found.lengths.tolist() == [len(screens)] * 2
    assert found.returns.tolist() == [returns] * 2


def test_a_film_is_offered_only_where_it_can_be_drawn(tmp_path, capsys):
    env = f"gymnasium:{register('Dark')}"
    assert run(tmp_path, env, VectorizedRunner__num_iterations=1) == 0
    assert "Film it" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("page", "env"),
    [
        pytest.param("jax_environments", "corridor:make", marks=pytest.mark.slow),
        ("environments", "gymnasium:corridor:Corridor-v0"),
    ],
)
def test_the_environment_of_a_page(tmp_path, capsys, monkeypatch, page, env):
    (text,) = re.findall(r"```python\n(.*?)```", TEXTS[f"docs/{page}.md"], re.DOTALL)
    (tmp_path / "corridor.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "corridor", raising=False)
    gymnasium.registry.pop("Corridor-v0", None)  # Of a test that runs the page's examples.
    assert run(tmp_path / "results", env, VectorizedRunner__num_iterations=1) == 0
    out = capsys.readouterr().out
    assert " for observations int32[]; " in out
    folder = run_folder(tmp_path / "results", env)
    if page == "jax_environments":
        assert f"play --run={folder} " in out and f"--env={env}" in out
        assert film(folder, env)[1][0].shape[-1] == 3
    gymnasium.registry.pop("Corridor-v0", None)


# Whole environments, which take minutes.


# Of gymnax's MinAtar games one: films and other tests train them by their names as games.
@pytest.mark.slow
@pytest.mark.parametrize(
    "env", [name for name in GYMNAX if not re.search("MNIST|(?<!Breakout)-MinAtar", name)]
)
def test_every_environment_of_gymnax_is_trained_and_played(tmp_path, env):
    sizes = {"VectorizedRunner__training_steps": 1000, "VectorizedRunner__replay_capacity": 500}
    assert run(tmp_path, env, **sizes, VectorizedRunner__num_iterations=1) == 0
    _, (first, *_) = film(run_folder(tmp_path, env))
    assert first.dtype == np.uint8 and first.shape[-1] == 3
