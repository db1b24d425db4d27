"""Returns over episodes: those of single episodes, and what `log-dqn evaluate` says of them."""

import dataclasses
import json
import math
from unittest import mock

import numpy as np
import pytest

import log_dqn
from log_dqn import minatar, trained
from log_dqn.commands import evaluate as command
from log_dqn.commands import play as film
from log_dqn.dopamine_run import gymnasium_game
from log_dqn.film import episode, evaluation, game, loading
from tests.film.test_film import Fake

ASTERIX = "--trained=MinAtar/Asterix"


def main(*arguments):
    return command.main([ASTERIX, "--max_steps=120", *arguments])


@pytest.mark.slow
def test_episodes_at_once_are_those_of_play(monkeypatch):
    agent = dataclasses.replace(loading.load(trained.find("MinAtar/Asterix"), 0), epsilon=0.5)
    ended = []
    monkeypatch.setattr(evaluation, "_AT_ONCE", 3)
    found = evaluation.evaluate(agent, range(3, 7), 120, ended.append)
    steps = [list(episode.play(agent, 120, seed, draws=False)) for seed in range(3, 7)]
    assert found.returns.tolist() == [of_one[-1].score for of_one in steps]
    assert found.lengths.tolist() == [len(of_one) for of_one in steps]
    # Some end, some are left.
    assert min(found.lengths) < max(found.lengths) == 120 and sum(ended) == 4
    assert len(set(found.returns.tolist())) > 1
    compiled = evaluation._advance._cache_size()
    other = loading.load(trained.find("MinAtar/Asterix", "loglin_dqn", 0.5), 0)
    assert other.gamma != agent.gamma
    assert len(evaluation.evaluate(other, range(3, 7), 120, ended.append).returns) == 4
    assert evaluation._advance._cache_size() == compiled


def test_episodes_one_by_one():
    ended = []
    found = evaluation.evaluate(Fake(), range(2), 10, ended.append)
    assert (found.returns.tolist(), found.lengths.tolist()) == ([7, 7], [3, 3]) and ended == [1, 1]
    found = evaluation.evaluate(Fake(), range(1), 2, ended.append)
    assert (found.returns.tolist(), found.lengths.tolist(), found.interval) == ([3], [2], None)


def test_the_interval_is_students():
    found = evaluation.Episodes(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4))
    # 3.182446 is the t distribution's 0.975 quantile for 3 degrees of freedom.
    error = 3.182446 * np.sqrt(5 / 3) / 2
    assert found.interval == pytest.approx((2.5 - error, 2.5 + error), rel=1e-6)
    assert evaluation.Episodes(np.array([2.0, 2.0]), np.ones(2)).interval == (2, 2)


@pytest.mark.slow
def test_one_episode_is_that_of_the_film(tmp_path, capsys):
    out = tmp_path / "film.gif"
    assert film.main([ASTERIX, "--max_steps=120", "--seed=5", f"--out={out}"]) == 0
    filmed = capsys.readouterr().out.splitlines()[-1]
    assert main("--episodes=1", "--seed=5", "--json") == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert filmed == f"{out}: {found['lengths'][0]} agent steps, return {found['mean_return']:g}"
    assert printed.err == f"Starting 1 episode of {trained.find('MinAtar/Asterix')}\n"
    assert found["interval"] is None and found["returns"] == [found["mean_return"]]
    assert (found["seed"], found["epsilon"], found["game"]) == (5, 0.001, "MinAtar/Asterix")


def test_what_it_says(capsys):
    assert main("--episodes=4", "--seed=3", "--epsilon=0.5") == 0
    printed = capsys.readouterr()
    start, returns, lengths = printed.out.splitlines()
    assert printed.err == "" and start.startswith("Starting 4 episodes of ")
    assert returns.startswith("MinAtar/Asterix, epsilon 0.5: mean return ")
    assert ", 95% interval " in returns
    assert lengths.startswith("Lengths: mean ") and lengths.endswith(" to 120 agent steps")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon=x"], "epsilon is 'x'; it must be a number from 0 to 1"),
        (["--episodes=4294967297"], "episodes is 4294967297; it must be a whole number from 1 to"),
        (["--seed=-1"], "seed is -1; it must be a whole number from 0 to 4294967266"),
        (
            ["--seed=4294967295", "--episodes=2"],
            "seed is 4294967295; it must be a whole number from 0 to 4294967294",
        ),
    ],
)
def test_what_is_refused(arguments, message, capsys):
    assert main(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert printed.err.startswith(f"log-dqn evaluate: error: {message}")


def test_what_no_agent_can_do_is_said():
    agent = log_dqn.load("minatar/asterix")
    observation = agent.game.reset(1)
    with pytest.raises(ValueError, match="epsilon is nan; it must be a number from 0 to 1"):
        agent.act(observation, epsilon=math.nan)
    environment = minatar.create_environment("MinAtar/Asterix")
    for played in (agent.game, game.DopamineGame("MinAtar/Asterix", environment)):
        played.reset(1)
        for action in (-1, 6, 1.7):
            with pytest.raises(ValueError, match=f"action is {action}; it must be from 0 to 5"):
                played.step(action)
        played.step(np.int64(5))
    assert len(repr(agent)) < 1000


def test_a_game_and_exploration_draw_different_numbers():
    environment = gymnasium_game.create_environment("CartPole-v1")
    played = game.DopamineGame("CartPole-v1", environment)
    first = played.reset(4)
    drawn = environment.environment.unwrapped.np_random.random(100)
    assert not set(drawn) & set(np.random.default_rng(4).random(200))
    assert not np.array_equal(played.reset(5), first)
    assert np.array_equal(played.reset(4), first)
    with mock.patch.object(environment.environment, "reset") as reset:
        reset.return_value = np.zeros(4), {}
        for seed in (*range(100), 2**32 - 1):
            played.reset(seed)
    seeds = [call.kwargs["seed"] for call in reset.call_args_list if call.kwargs]
    assert len(set(seeds)) == 101 and min(seeds) > 0 and max(seeds) < 2**31
