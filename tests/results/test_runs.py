"""Reading runs, whole and broken."""

import os
import pickle
import shutil

import numpy as np
import pytest
from dopamine.discrete_domains import iteration_statistics, logger

from log_dqn.games import JAX_GAMES, folder_name
from log_dqn.results import runs
from log_dqn.run_folder import configuration
from tests.results import synthetic


@pytest.fixture
def lines():
    return []


def test_reads_what_dopamine_writes(tmp_path, lines):
    log = logger.Logger(str(tmp_path / "a/Pong/0/logs"))
    for iteration in range(6):
        statistics = iteration_statistics.IterationStatistics()
        statistics.append({"train_episode_lengths": 10, "train_episode_returns": iteration})
        statistics.append({"train_average_return": np.float64(iteration - 20)})
        statistics.append({"eval_average_return": np.float64(iteration)})
        log[f"iteration_{iteration}"] = statistics.data_lists
        log.log_to_file("log", iteration)
    assert len(os.listdir(tmp_path / "a/Pong/0/logs")) == 4  # Dopamine deletes older ones.
    [run] = runs.read_runs(tmp_path, "train", lines.append)
    assert run[:3] == ("a", "Pong", "0")
    np.testing.assert_array_equal(run.returns, [-20, -19, -18, -17, -16, -15])
    [run] = runs.read_runs(tmp_path, "eval", lines.append)
    np.testing.assert_array_equal(run.returns, range(6))
    assert not lines


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_older_forms(tmp_path, lines, protocol):
    numbers = {"iteration_0": {"train_average_return": 2.5}, "iteration_2": {"x": [1]}}
    np.testing.assert_array_equal(runs.returns_of(numbers, "train"), [2.5])
    without = numbers | {"iteration_3": {"train_average_steps_per_second": [9.0]}}
    np.testing.assert_array_equal(
        runs.returns_of(without, "train"), [2.5, np.nan, np.nan, np.nan]
    )  # No episode ended in the last.
    episodes = {
        "iteration_0": {"train_episode_returns": [1.0, 2.0]},
        "iteration_2": {"train_episode_returns": [5]},
    }
    np.testing.assert_array_equal(runs.returns_of(episodes, "train"), [1.5, np.nan, 5])
    synthetic.write_log(tmp_path / "a/Pong/0", [1, 2.5], protocol=protocol)
    [run] = runs.read_runs(tmp_path, "train", lines.append)
    np.testing.assert_array_equal(run.returns, [1, 2.5])


def test_a_setting_of_a_scan_is_an_agent_of_its_own(tmp_path, lines):
    for agent in ("log_dqn", "log_dqn/gamma=0.84,c=1", "log_dqn/gamma=0.96,c=1"):
        synthetic.write_log(tmp_path / agent / "Pong/1", [1, 2])
    synthetic.write_log(tmp_path / "log_dqn/not_a_setting/Pong/1", [1, 2])
    found = runs.read_runs(tmp_path, "train", lines.append)
    assert [run[:3] for run in found] == [
        ("log_dqn", "Pong", "1"),
        ("log_dqn/gamma=0.84,c=1", "Pong", "1"),
        ("log_dqn/gamma=0.96,c=1", "Pong", "1"),
    ]
    [run] = runs.read_runs(tmp_path, "train", lines.append, agents=["log_dqn/gamma=0.84,c=1"])
    assert run.agent == "log_dqn/gamma=0.84,c=1"
    assert not lines


def test_a_truncated_log_gives_way_to_the_one_before(tmp_path, lines):
    run_dir = tmp_path / "log_dqn/Pong/3"
    synthetic.write_log(run_dir, [1, 2, 3])
    newest = synthetic.write_log(run_dir, [1, 2, 3, 4])
    newest.write_bytes(newest.read_bytes()[:-40])
    [run] = runs.read_runs(tmp_path, "train", lines.append)
    np.testing.assert_array_equal(run.returns, [1, 2, 3])
    [line] = lines
    assert "log_3: damaged or truncated" in line


class Hostile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_hostile_log_runs_nothing(tmp_path, lines):
    synthetic.write_log(tmp_path / "a/Pong/0", [1, 2])
    path = synthetic.write_log(tmp_path / "a/Pong/1", [1])
    path.write_bytes(pickle.dumps({"iteration_0": Hostile(tmp_path / "ran")}))
    assert [run.seed for run in runs.read_runs(tmp_path, "train", lines.append)] == ["0"]
    assert not (tmp_path / "ran").exists()
    assert len(lines) == 1 and "posix.mkdir" in lines[0] and "1/logs/log_0" in lines[0]


def test_runs_are_sorted_by_number_and_named_as_dopamine_names_them(tmp_path, lines):
    for seed in ("10", "9", "x"):
        synthetic.write_log(tmp_path / f"a/space_invaders/{seed}", [1])
    (tmp_path / "a/Pong/0/logs").mkdir(parents=True)
    found = runs.read_runs(tmp_path, "train", lines.append)
    assert [(run.game, run.seed) for run in found] == [
        ("SpaceInvaders", "9"), ("SpaceInvaders", "10"), ("SpaceInvaders", "x"),
    ]  # fmt: skip
    assert len(lines) == 1 and "no logs yet" in lines[0]


def test_a_run_that_failed_before_its_first_log_is_named(tmp_path, lines):
    for seed in ("1", "2"):
        synthetic.write_log(tmp_path / f"a/gamma=0.5/Pong/{seed}", [1], config={"A.b": 1})
    failed = tmp_path / "a/gamma=0.5/Pong/2"
    shutil.rmtree(failed / "logs")
    assert [run.seed for run in runs.read_runs(tmp_path, "train", lines.append)] == ["1"]
    assert lines == [f"{failed}: no logs yet; left out"]


@pytest.mark.parametrize("closed", ["b", "b/gamma=0.5", "b/gamma=0.5/Pong", "b/gamma=0.5/Pong/1"])
def test_folders_that_may_not_be_read_are_named(tmp_path, lines, monkeypatch, closed):
    synthetic.write_log(tmp_path / "a/Pong/1", [1])
    (tmp_path / "b/gamma=0.5/Pong/1").mkdir(parents=True)
    # The superuser, too, may run this test, whom no mode of a folder stops.
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path / closed)
    assert [run.agent for run in runs.read_runs(tmp_path, "train", lines.append)] == ["a"]
    assert lines == [f"{tmp_path / closed}: it may not be read; left out"]
    assert runs.read_runs(tmp_path, "train", lines.append, ["a"]) and len(lines) == 1


def test_small_games_are_read_back_from_their_folders(tmp_path, lines):
    for game in JAX_GAMES:
        assert "/" in game and "/" not in folder_name(game)
        synthetic.write_log(tmp_path / "a" / folder_name(game) / "0", [1, 2])
    synthetic.write_log(tmp_path / "a/Breakout/0", [5])
    found = runs.read_runs(tmp_path, "train", lines.append)
    assert [run.game for run in found] == sorted(["Breakout", *JAX_GAMES])
    assert [run.returns.tolist() for run in found] == [[5.0]] + [[1.0, 2.0]] * len(JAX_GAMES)
    only = runs.read_runs(tmp_path, "train", lines.append, only_games=["MinAtar/Breakout"])
    assert [run.game for run in only] == ["MinAtar/Breakout"] and lines == []


def test_a_name_that_is_not_utf_8_costs_one_run(tmp_path, lines):
    for agent in ("a", os.fsdecode(b"caf\xe9")):
        synthetic.write_log(tmp_path / agent / "Pong/0", [1])
    assert [run.agent for run in runs.read_runs(tmp_path, "train", lines.append)] == ["a"]
    assert lines == [
        f"{os.fsdecode(bytes(tmp_path))}/caf\udce9/Pong/0: its name is not UTF-8; left out"
    ]


def test_a_folder_in_the_place_of_a_log(tmp_path, lines):
    (tmp_path / "a/Pong/0/logs/log_5").mkdir(parents=True)
    assert runs.read_runs(tmp_path, "train", lines.append) == []
    assert "log_5" in lines[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"LogDQNAgent.gamma": 0.96}', ("LogDQNAgent", 0.96)),
        ('{"DQNAgent.gamma": 0.99, "LogDQNAgent.gamma": 0.9}', ("LogDQNAgent", 0.9)),
        ('{"log_dqn.tf.LogDQNAgent.gamma": 0.5}', ("LogDQNAgent", 0.5)),
        ('{"dqn_agent.JaxDQNAgent.gamma": 0.99}', ("JaxDQNAgent", 0.99)),
        ('{"scope/LogDQNAgent.gamma": 0.9, "gamma": 0.8}', ("LogDQNAgent", 0.9)),
        ('{"LogDQNAgent.gamma": "@f()"}', None),
        ('{"LogDQNAgent.gamma": 0.9, "VectorizedRunner.agent": "loglin_dqn"}', ("loglin_dqn", 0.9)),
        ('{"LogDQNAgent.gamma": 0.9, "create_agent.agent_name": "a\\nb"}', (r"'a\nb'", 0.9)),
        ('{"LogDQNAgent.gamma": NaN}', None),
        ('{"LogDQNAgent.gamma": 1e999}', None),
        ('{"LogDQNAgent.gamma": ' + "1" * 400 + "}", None),
    ],
)
def test_gamma_comes_from_the_configuration(tmp_path, text, expected):
    (tmp_path / "config.json").write_text(text)
    assert runs.gamma_of(configuration.read(tmp_path)) == expected
    assert runs.gamma_of(configuration.read(tmp_path / "absent")) is None


@pytest.mark.parametrize("text", ["[0.96]", "{", "\xff", "[" * 100_000])
def test_a_damaged_configuration_is_named(tmp_path, lines, text):
    synthetic.write_log(tmp_path / "a/Pong/0", [1, 2])
    path = tmp_path / "a/Pong/0/config.json"
    path.write_bytes(text.encode("latin-1"))
    [run] = runs.read_runs(tmp_path, "train", lines.append)
    assert run.parameters == {} and run.protocol.frames_an_agent_step is None
    [line] = lines
    assert line.startswith(f"{path}: damaged")


def nested(depth):
    inner = []
    for _ in range(depth):
        inner = [inner]
    return inner


NOT_NUMBERS = [
    10**400, 1e308, -1e308, 1.1e15, "1" * 500, ["x"], [1e308, -1e308], nested(80), {1}
]  # fmt: skip


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ([], "holds a list"),
        ("text", "holds a str"),
        ({"iteration_99999999999": {"train_average_return": 1}}, "has an iteration number"),
        ({f"iteration_{'9' * 5000}": {"train_average_return": 1}}, ""),
        *(
            ({"iteration_0": {"train_average_return": value}}, "iteration_0: train_average_return")
            for value in NOT_NUMBERS
        ),
    ],
)
def test_a_pickle_that_is_no_log_costs_one_run(tmp_path, lines, log, reason):
    synthetic.write_log(tmp_path / "a/Pong/0", [1, 2])
    synthetic.write_log(tmp_path / "a/Pong/1", [1]).write_bytes(pickle.dumps(log))
    assert [run.seed for run in runs.read_runs(tmp_path, "train", lines.append)] == ["0"]
    assert len(lines) == 1 and f"1/logs/log_0: {reason}" in lines[0]


@pytest.mark.parametrize("statistics", [None, 3, {"eval_average_return": [1]},
                                        {"train_average_return": []}])  # fmt: skip
def test_a_log_without_returns_of_the_metric(statistics):
    log = {} if statistics is None else {"iteration_0": statistics}
    assert runs.returns_of(log, "train").shape == (0,)


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("deep\nstack")])
def test_a_log_that_is_too_much_costs_one_run(tmp_path, lines, monkeypatch, error):
    synthetic.write_log(tmp_path / "a/Pong/0", [1, 2])

    def load(file):
        raise error

    monkeypatch.setattr(runs.safe_pickle, "load", load)
    assert runs.read_runs(tmp_path, "train", lines.append) == []
    reason = "deep" if error.args else "MemoryError"
    assert lines == [f"{tmp_path / 'a/Pong/0/logs/log_1'}: {reason}; left out"]


def test_one_line_for_an_agents_runs_without_evaluation(tmp_path, lines):
    for game in ("Pong", "Alien"):
        for seed in range(2):
            for stop in (1, 2, 3):
                synthetic.write_log(tmp_path / "a" / game / str(seed), [1] * stop)
    synthetic.write_log(tmp_path / "b/Pong/0", [1], eval_offset=2)
    assert [run.agent for run in runs.read_runs(tmp_path, "eval", lines.append)] == ["b"]
    assert lines == ["a: 4 runs have no eval_average_return; left out (Alien, Pong)"]


def test_a_second_folder_of_a_game_is_left_out(tmp_path, lines):
    synthetic.write_log(tmp_path / "a/Pong/0", [1])
    for seed in range(2):
        synthetic.write_log(tmp_path / f"a/pong/{seed}", [9])
    found = runs.read_runs(tmp_path, "train", lines.append)
    assert [(run.game, run.seed, run.returns[0]) for run in found] == [("Pong", "0", 1)]
    first, second = tmp_path / "a/Pong", tmp_path / "a/pong"
    said = f"the same agent and game as {first}; left out"
    assert lines == [f"{second}/{seed}: {said}" for seed in range(2)]


def test_the_steps_of_an_iteration_are_the_least_that_a_log_has():
    log = {
        f"iteration_{i}": {"train_episode_lengths": n} for i, n in enumerate([[60, 50], [70, 35]])
    }
    assert runs.training_steps_of(log | {"iteration_2": {"train_episode_lengths": []}}) == 105
    assert runs.training_steps_of({"iteration_0": {}}) is None
