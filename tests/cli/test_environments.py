"""What is said of environments that don't keep to gymnasium's interface."""

import gc

import numpy as np
import pytest
from gymnasium import spaces

from log_dqn.cli import environments
from tests.cli import faulty_environment
from tests.cli.faulty_environment import OBSERVATION, VECTOR, register

PARTS = spaces.Dict(a=VECTOR, b=spaces.Discrete(3))
PAIR = spaces.Tuple([VECTOR])
FINITE = "and must be finite in float32"
BYTES = (0, 255)
RESET = "reset(self, *, seed=None, options=None), which returns (observation, info)"
STEP = "step(self, action), which returns (observation, reward, terminated, truncated, info)"
FILE = faulty_environment.__file__
GREY = spaces.Box(*BYTES, (40, 40), np.uint8)


def alone(*, seed=None, options=None):
    return OBSERVATION


def make(name, limit=None, **settings):
    return environments.make(register(name, limit, **settings), {})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"space": spaces.Box(0, 1, (0,))},
            "Box([], [], (0,), float32); it must be one that makes a vector, of at ",
        ),
        (
            {"space": spaces.Discrete(10**9)},
            "Discrete(1000000000); it must be one that makes a vector, of at most 100,000 num",
        ),
        (
            {"action_space": spaces.Discrete(10**9)},
            "action_space of Bad-v0 is Discrete(1000000000)",
        ),
        ({"space": spaces.Box(*BYTES, (3, 84, 84), np.uint8)}, "move the channels to the end"),
        ({"space": spaces.Box(*BYTES, (84, 84, 4), np.uint8)}, "leave stacking to the agent"),
        (
            {"space": spaces.Box(0, 1, (84, 84, 3), np.float32)},
            "must be a picture of bytes from 0 to 255",
        ),
        ({"space": spaces.Tuple([])}, "can be made: An empty Tuple observation space is not all"),
        ({"space": None}, "can be made: observation space does not inherit from `gymnasium.spac"),
    ],
)
def test_spaces(settings, said):
    with pytest.raises(ValueError) as raised:
        make("Bad", **settings)
    assert said in str(raised.value) and "Bad-v0" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_picture_may_be_as_large_as_ataris():
    space = spaces.Box(*BYTES, (210, 160, 3), np.uint8)
    environment = make("Large", space=space, good=np.zeros(space.shape, np.uint8))
    assert environment.observation_space == space


def four_values(action):
    return OBSERVATION, 1.0, False, {}


@pytest.mark.parametrize(
    ("call", "settings", "said"),
    [
        ("reset", {"reset": alone}, f"returned <class 'numpy.ndarray'>; it must be {RESET}"),
        ("reset", {"reset": lambda: None}, f"keyword argument 'seed'; it must be {RESET}"),
        ("reset", {"good": np.zeros((2, 1))}, "it is float64 of shape (2, 1), not float32 of shap"),
        ("reset", {"space": GREY, "good": np.zeros((40, 40))}, "float64 of shape (40, 40), not"),
        ("reset", {"space": PARTS, "good": {"a": OBSERVATION, "b": 7}},
         "at 'b' it is 7, not of Discrete(3)"),
        ("reset", {"np_random": np.random.RandomState(0), "seeded": False}, "left RandomState("),
        ("reset", {"good": np.array([np.nan, 1])}, f"it has nan at [0], {FINITE}"),
        ("step", {"step": four_values}, f"returned 4 values; it must be {STEP}"),
        ("step", {"step": four_values, "limit": 5}, f"(expected 5, got 4); it must be {STEP}"),
        ("step", {"bad": np.zeros(3)}, "it is float64 of shape (3,), not float32 of shape (2,)"),
        ("step", {"bad": "left"}, "it is <U4 of shape (), not float32 of shape (2,)"),
        ("step", {"bad": [[1], [2, 3]]}, "it is [[1], [2, 3]], not of Box(-1.0, 1.0, (2,),"),
        ("step", {"bad": np.array([0, np.inf])}, f"it has inf at [1], {FINITE}"),
        ("step", {"bad": np.array([-1e39, 0])}, f"it has -1e+39 at [0], {FINITE}"),
        ("step", {"bad": KeyError("level")}, f"failed: level (KeyError in {FILE}, line "),
        ("step", {"step": lambda _: (OBSERVATION, 1.0, None, False, {})},
         "returned None; terminated and truncated must be True or False"),
        ("step", {"bad": SystemExit(3)}, "failed: it calls sys.exit(3) (SystemExit in "),
        ("step", {"space": PARTS, "bad": {"a": OBSERVATION}},
         "it is {'a': array([0., 0.], dtype=float32)}, not of Dict("),
        ("step", {"space": PARTS, "bad": {"a": OBSERVATION * np.nan, "b": 1}},
         "at 'a' it has nan at [0]"),
        ("step", {"space": PAIR, "bad": (OBSERVATION[:1],)}, "at 0 it is float32 of shape (1,)"),
        ("step", {"space": PAIR, "bad": 5}, "it is 5, not of Tuple("),
    ],
)  # fmt: skip
def test_reset_and_step(call, settings, said):
    if call == "step" and "space" in settings:
        settings = {"good": settings["space"].sample(), **settings}
    environment = make("Bad", **settings)
    with pytest.raises(environments.Fault) as raised:
        environment.reset(seed=0)
        assert call == "step"
        environment.step(0)
    assert str(raised.value).startswith(f"env is 'Bad-v0'; its {call} ")
    assert said in str(raised.value)


@pytest.mark.parametrize("good", [[0.1, 0.2], np.zeros(2), np.zeros(2, int), OBSERVATION])
def test_what_numpy_can_cast_is_taken(good):
    environment = make("Good", good=good, limit=3)
    observation, info = environment.reset(seed=0)
    np.testing.assert_array_equal(observation, good)
    assert info == {} and environment.step(0)[1:] == (1.0, False, False, {})


@pytest.mark.parametrize("reward", [1, 2.5, True, np.float32(3), np.array(4)])
def test_numbers(reward):
    assert environments.as_number("Pong", reward) == float(reward)


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (np.ones(1), "array([1.])"), ("1.0", "'1.0'"), (None, "None"), (np.nan, "nan"),
        ([1, [2]], "[1, [2]]"), (1j, "1j"), (-np.inf, "-inf"),
    ],
)  # fmt: skip
def test_rewards(reward, said):
    with pytest.raises(environments.Fault) as raised:
        environments.as_number("Pong", reward)
    allowed = "it must be one finite number, such as float(reward)"
    assert str(raised.value) == f"the reward of Pong is {said}; {allowed}"


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.int64, np.float16, np.float32, np.float64])
def test_finite_observations(dtype):
    environments.check_observation("Pong", np.ones((2, 3), dtype))
    environments.check_observation("Pong", np.ones((0,), dtype))


def test_an_observation_that_is_not_finite():
    observation = np.ones((2, 3))
    observation[1, 2] = 1e300
    with pytest.raises(environments.Fault) as raised:
        environments.check_observation("Pong", observation)
    wrong = "it has 1e+300 at [1, 2], and must be finite in float32"
    assert str(raised.value) == f"the observation of Pong is wrong: {wrong}"


@pytest.mark.parametrize("package", [True, False])
def test_a_module_that_ends_the_program(tmp_path, monkeypatch, package):
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "leaves" / "__init__.py" if package else tmp_path / "leaves.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text("import sys\nsys.exit(3)\n")
    name = f"leaves{'.inner' * package}:E-v0"
    with pytest.raises(ValueError) as raised:
        environments.make(name, {})
    said = f"it calls sys.exit(3) (SystemExit in {path}, line 2)"
    allowed = f"it must be {'one' if package else 'an environment of gymnasium'} that can be made"
    assert str(raised.value) == f"env is {name!r}; {allowed}: {said}"


def test_an_environment_is_closed_once_at_the_latest_when_nobody_has_it():
    closed = []

    def close():
        closed.append(True)
        raise RuntimeError("its process is gone")

    for number, is_kept in enumerate((False, True), 1):
        made = environments.make(register("Simulator", close=close), {})
        if is_kept:
            made.close()
        del made
        gc.collect()
        assert len(closed) == number
    with pytest.raises(ValueError, match="action_space of Simulator-v0 is"):
        environments.make(register("Simulator", close=close, action_space=VECTOR), {})
    assert len(closed) == 3
