"""Environments of gymnasium in vectorized training: what is learned, resumed, refused, filmed."""

import dataclasses
import json
import re
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from log_dqn import train_vectorized
from log_dqn.cli import progress
from log_dqn.film import evaluation
from log_dqn.vectorized import device_loop, environments, learner, training
from tests import programs
from tests.cli.faulty_environment import OBSERVATION, register
from tests.cli.faulty_environment import __file__ as FILE
from tests.test_docs import TEXTS

from . import (
    own_gymnasium_environment,  # noqa: F401  (registers its own)
    toys,
)
from .test_jax_environments import assert_learned_from, film, make_trainer, run

OWN = "gymnasium:tests.vectorized.own_gymnasium_environment:Clock-v0"
CARTPOLE = "gymnasium:CartPole-v1"


def create(name, max_steps=10**9, bootstraps=True, **settings):
    create_environment = environments.create_gymnasium
    return create_environment(max_steps, f"gymnasium:{name}", bootstraps, settings)


def weights(results_dir, env, seed=1, iteration=1):
    """Returns the weights in a checkpoint of a run."""
    folder = results_dir / "log_dqn" / env.replace(":", "-") / str(seed)
    return dict(np.load(folder / "checkpoints" / str(iteration) / "weights.npz")).values()


# What is learned from.


@pytest.mark.parametrize(
    ("n", "ends", "max_steps", "bootstraps"), [(1, 3, 99, True), (3, 2, 4, True), (2, 3, 99, False)]
)
def test_what_is_learned_from(tmp_path, n, ends, max_steps, bootstraps):
    made = create("Clock-v0", max_steps, bootstraps, ends=ends)

    def trainer_of(workload, problem, shown):
        games = environments.GymnasiumGames(made, 1)
        return training.HostTrainer(workload, problem, games, shown, [0])

    trainer = make_trainer(tmp_path, made, n, trainer_of)
    for _ in range(device_loop.CHUNK_STEPS):
        trainer.step()
    kept = assert_learned_from(trainer, made.cuts, (n, 0.9, n < 3, bootstraps), ends, max_steps)
    assert (None in kept) == bootstraps


@pytest.mark.parametrize(
    ("space", "observation", "shape", "dtype", "seen"),
    [
        (spaces.Discrete(3), 2, (), "int32", [0, 0, 1]),
        (spaces.Discrete(3, start=5), 6, (3,), "float32", [-1, 1, -1]),
        (spaces.Box(-2.0, 6.0, (2,), float), np.array([0.0, 6.0]), (2,), "float32", [-0.5, 1]),
        (spaces.Box(0, 2**40, (1,), np.int64), np.array([2**39]), (1,), "float32", [2.0**39]),
        (spaces.Box(0, 4, (1, 2), np.uint8), np.uint8([[4, 1]]), (1, 2), "uint8", [1, 0.25]),
        (spaces.MultiBinary(2), np.int8([1, 0]), (2,), "int8", [1, 0]),
        (spaces.MultiDiscrete([2, 2]), np.array([1, 0]), (4,), "float32", [-1, 1, 1, -1]),
        (
            spaces.Dict(a=spaces.Box(-1, 1, (1,)), b=spaces.Discrete(2)),
            {"a": np.float32([0.5]), "b": 1}, (3,), "float32", [0.5, -1, 1],
        ),
    ],
)  # fmt: skip
def test_observations(space, observation, shape, dtype, seen):
    made = create(register("Seen", space=space, good=observation))
    games = environments.GymnasiumGames(made, 1)
    (frame,) = games.reset(np.ones(1, bool), np.ones(1, int))
    assert (made.frame_shape, made.frame_dtype, frame.dtype) == (shape, dtype, dtype)
    np.testing.assert_allclose(np.ravel(made.prepare(frame[None, ..., None])), seen, rtol=1e-6)


def test_an_environment_that_fails_stands_still_until_its_reset():
    failing = create(register("Failing", bad=RuntimeError("boom"), after=7))
    games = environments.GymnasiumGames(failing, 2)
    games.reset(np.array([True, False]), np.array([3, 4]))
    games.send(np.zeros(2, int))
    outcomes = [games.receive() for _ in range(9)]
    rewards, ended, cut = (np.array([x[i] for x in outcomes]) for i in (1, 2, 3))
    np.testing.assert_array_equal(rewards, [[1, np.nan]] * 7 + [[np.nan, np.nan]] * 2)
    np.testing.assert_array_equal(np.flatnonzero(ended[:, 0]), [4])
    np.testing.assert_array_equal(cut, ended)
    assert games.faults[0].startswith("env is 'Failing-v0'; its step failed: boom")
    assert games.faults[1] == "it has not been reset"
    games.reset(np.array([True, False]), np.array([3, 4]))
    assert sorted(games.faults) == [1]


def train_together(folder, made, seeds, replace=None):
    """Trains runs in one trainer, as on a GPU; returns it. `replace` changes their environments."""
    runner = dataclasses.replace(toys.RUNNER, num_iterations=2, training_steps=150)
    problem = learner.Problem(
        toys.small_network, made.frame_shape, made.frame_dtype, 2, 8, 150, made.cuts
    )
    games = environments.GymnasiumGames(made, len(seeds))
    for index, other in (replace or {}).items():
        games._environments[index] = other.make()
    job_runs = toys.make_runs(folder, [toys.log_dqn()] * len(seeds), seeds)
    workload = training.Workload(job_runs, runner, [None] * len(seeds))
    shown = progress.Progress([0] * len(seeds), 2, runner.steps_per_iteration)
    trainer = training.HostTrainer(workload, problem, games, shown, range(len(seeds)))
    trainer.train()
    return trainer


def test_runs_in_one_trainer_play_as_alone(tmp_path):
    made = create("CartPole-v1")
    together = train_together(tmp_path / "a", made, [1, 2, 3])
    for index, seed in enumerate([1, 2, 3]):
        alone = train_together(tmp_path / "b", made, [seed])
        lengths = [
            [entry["train_episode_lengths"] for entry in log.values()]
            for log in (together._logs[index], alone._logs[0])
        ]
        assert lengths[0] == lengths[1] and [sum(x) >= 150 for x in lengths[0]] == [True] * 2


def test_a_fault_leaves_the_other_runs_alone(tmp_path):
    made = create(register("Good"))
    bad = create(register("Failing", bad=RuntimeError("boom"), after=70))
    trainer = train_together(tmp_path / "a", made, [1, 2, 3], {1: bad})
    where = "log_dqn Catch 2: stopped at step 71, counted from the run's start: env is 'Failing-v0'"
    assert [(run, why.startswith(where)) for run, why in trainer.failures.items()] == [(1, True)]
    assert trainer.position.iteration.tolist() == [2, 0, 2]
    assert all(np.isfinite(leaf).all() for run in (0, 2) for leaf in toys.weights(trainer)[run])


# The program.


def test_runs_resume_exactly_and_do_not_depend_on_others(tmp_path, capsys):
    one, replay = {"VectorizedRunner__num_iterations": 1}, "--checkpoint_replay"
    assert run(tmp_path / "a", CARTPOLE, replay, "--seeds=2") == 0
    first = capsys.readouterr().out.splitlines()[1]
    assert "network dense for observations float32[4]; replay memories of 100 transi" in first
    assert first.endswith("of the host's memory, and each run's at most 0.00 GB of its checkpoint")
    assert run(tmp_path / "b", CARTPOLE, replay, "--seeds=2-2", **one) == 0
    assert run(tmp_path / "b", CARTPOLE, replay, "--seeds=2-2") == 0
    assert "; resumed from iteration 1\n" in capsys.readouterr().out
    ours, others = (weights(tmp_path / x, CARTPOLE, seed=2) for x in "ab")
    assert all(map(np.array_equal, ours, others))
    assert not all(map(np.array_equal, ours, weights(tmp_path / "a", CARTPOLE)))
    assert not all(map(np.array_equal, ours, weights(tmp_path / "a", CARTPOLE, 2, 0)))
    folder = tmp_path / "b" / "log_dqn" / "gymnasium-CartPole-v1" / "2"
    config = json.loads((folder / "config.json").read_text())
    assert config["create_host_environment.environment_id"] == CARTPOLE
    settings = {"create_host_environment__settings": {"max_episode_steps": 9}}
    assert run(tmp_path / "b", CARTPOLE, replay, "--seeds=2-2", **settings) == 2
    message = "create_host_environment.settings was None and is {'max_episode_steps': 9}"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            "CartPol-v1",
            "env is 'CartPol-v1'; it must be an environment of gymnasium that can be made: .*"
            "(nearest: CartPole-v1, ",
        ),
        ("Pendulum-v1", "action_space of Pendulum-v1 is Box(.*; it must be discrete, numbered "),
        ("nowhere:X-v0", "env is 'nowhere:X-v0'; it must be an id, or MODULE:ID of a module that"),
        (
            "tests.vectorized.own_gymnasium_environment:No-v0",
            "it must be an environment of gymnasium that can be made: Environment `No` doesn't ex",
        ),
    ],
)  # fmt: skip
def test_a_wrong_environment_is_said_in_one_line(tmp_path, capsys, env, message):
    programs.forget()
    options = [f"--env=gymnasium:{env}", "--agent=dqn"]
    programs.assert_refused(tmp_path, capsys, options, message, train_vectorized, "results_dir")


def test_too_many_actions_and_a_wrong_reset():
    with pytest.raises(ValueError, match="one with 1 to 32767 actions, and not 40000"):
        create(register("Many", action_space=spaces.Discrete(40_000)))
    with pytest.raises(ValueError, match=r"'Moody-v0'; its reset failed: .* got an unexpected"):
        create(register("Moody", reset=lambda: (OBSERVATION, {})))


def test_another_kind_of_environment_is_refused(tmp_path, capsys):
    name = "create_jax_environment.environment_id"
    options = [f"--env={CARTPOLE}", "--agent=dqn", f"--gin_bindings={name}='CartPole-v1'"]
    message = f"{name} is 'CartPole-v1'; it must be left out for {CARTPOLE}: give --env instead"
    programs.assert_refused(tmp_path, capsys, options, message, train_vectorized, "results_dir")


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


# Films, and the page.


def test_a_film_and_an_evaluation_import_only_what_they_are_told(tmp_path, capsys):
    one = {"VectorizedRunner__num_iterations": 1, "VectorizedRunner__max_steps_per_episode": 3}
    assert run(tmp_path, OWN, "--checkpoint_replay", **one) == 0
    shown = capsys.readouterr().out
    folder = tmp_path / "log_dqn" / OWN.replace(":", "-") / "1"
    assert f"play --run={folder} " in shown and f" --env={OWN} " in shown
    message = f"env is None; it must be '{OWN}', on which the run was trained: a film imports"
    with pytest.raises(ValueError, match=message):
        film(folder)
    player, screens = film(folder, OWN)
    # One step: the first episode of a clock has as many.
    assert [int(screen[0, 0, 0]) for screen in screens] == [100]
    found = evaluation.evaluate(player, range(2), 9, lambda number: None)
    assert (found.returns.tolist(), found.lengths.tolist()) == ([-2.0, -2.0], [1, 1])


def test_a_film_is_offered_only_where_it_can_be_drawn(tmp_path, capsys):
    env = f"gymnasium:{register('Dark')}"
    assert run(tmp_path, env, VectorizedRunner__num_iterations=1) == 0
    assert "Film it" not in capsys.readouterr().out


def test_the_environment_of_the_page(tmp_path, capsys, monkeypatch):
    (text,) = re.findall(r"```python\n(.*?)```", TEXTS["docs/environments.md"], re.DOTALL)
    (tmp_path / "corridor.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "corridor", raising=False)
    env = "gymnasium:corridor:Corridor-v0"
    assert run(tmp_path / "results", env, VectorizedRunner__num_iterations=1) == 0
    assert " for observations int32[]; " in capsys.readouterr().out
    assert (tmp_path / "results" / "log_dqn" / "gymnasium-corridor-Corridor-v0" / "1").is_dir()
    del gymnasium.registry["Corridor-v0"]
