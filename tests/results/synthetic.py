"""Small made runs and baselines in the formats of the real ones."""

import csv
import json
import pathlib
import pickle

import numpy as np
import pytest

from log_dqn.results import baselines, comparison, labels

PUBLISHED = pathlib.Path(__file__).parents[3] / "shared" / "dopamine_baselines"
needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason=f"Dopamine's published files are not at {PUBLISHED}"
)
REFERENCES = {row.Index: (row.random, row.human) for row in baselines.references().itertuples()}


def curve(game, num_iterations, level, seed):
    """A noisy curve that rises from random play to `level`, in human-normalised score."""
    random, human = REFERENCES.get(game, (0, 1000))
    rng = np.random.default_rng(seed)
    rise = level * (1 - np.exp(-np.arange(num_iterations) / 40)) + 0.05 * rng.normal(
        size=num_iterations
    )
    return random + rise * (human - random)


# What a run of the baselines' protocol records of it.
PROTOCOL = {
    "Runner.training_steps": 250_000, "Runner.max_steps_per_episode": 27_000,
    "atari.create_environment.sticky_actions": True, "AtariPreprocessing.frame_skip": 4,
    "AtariPreprocessing.terminal_on_life_loss": False,
    "WrappedReplayBuffer.replay_capacity": 1_000_000, "WrappedReplayBuffer.batch_size": 32,
    "LogDQNAgent.min_replay_history": 20_000, "LogDQNAgent.update_period": 4,
}  # fmt: skip


def write_log(
    run_dir, returns, number=None, episodes=20, eval_offset=None, protocol=None, config=PROTOCOL
):
    """Writes the log of a run as Dopamine does: statistics of all iterations in one pickle.

    Beside it stands a configuration of the baselines' protocol, or the one that is given.
    """
    steps = (config or PROTOCOL).get("Runner.training_steps", 250_000)
    log = {}
    for iteration, value in enumerate(returns):
        offsets = np.linspace(-1, 1, episodes)
        log[f"iteration_{iteration}"] = {
            "train_episode_lengths": [-(-steps // episodes)] * episodes,
            "train_episode_returns": [float(value + offset) for offset in offsets],
            "train_average_return": [np.float64(value)],
            "train_average_steps_per_second": [100.5],
        }
        if eval_offset is not None:
            log[f"iteration_{iteration}"]["eval_average_return"] = [np.float64(value + eval_offset)]
    logs = pathlib.Path(run_dir) / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    path = logs / f"log_{len(returns) - 1 if number is None else number}"
    if config is not None:
        (pathlib.Path(run_dir) / "config.json").write_text(json.dumps(config))
    path.write_bytes(pickle.dumps(log, protocol=protocol or pickle.HIGHEST_PROTOCOL))
    return path


def write_runs(results_dir, agent, game_names, iterations, seeds=2, level=1.0):
    """Writes runs whose curves are those of `curve` with their seeds, from 0."""
    for game in game_names:
        for seed in range(seeds):
            returns = curve(game, iterations, level, seed)
            write_log(results_dir / agent / game / str(seed), returns, episodes=3)


def write_config(run_dir, agent_class, gamma):
    parameters = {f"{agent_class}.gamma": gamma, f"{agent_class}.update_horizon": 1, **PROTOCOL}
    (pathlib.Path(run_dir) / "config.json").write_text(json.dumps(parameters))


def baseline_rows(game, agents, num_seeds=5, num_iterations=199, seed=0):
    """Rows of one game's baseline file; `agents` maps names to levels."""
    return [
        {"Iteration": iteration, "Value": float(value), "Agent": agent}
        for agent, level in agents.items()
        for index in range(num_seeds)
        for iteration, value in enumerate(
            curve(game, num_iterations, level, hash_seed(game, agent, index) + seed)
        )
    ]


def write_baselines(folder, game_names, agents, **settings):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for game in game_names:
        rows = baseline_rows(game, agents, **settings)
        (folder / f"{game.lower()}.json").write_text(json.dumps(rows, indent=1) + "\n")
    return folder


def compare(published, results_dir=None, **settings):
    """Returns a comparison and what was said about it."""
    lines = []
    request = comparison.Request(results_dir, baselines=str(published), **settings)
    compared = comparison.compare(request, lines.append)
    assert compared.notices == lines
    return compared, lines


def read_csv(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def rows_of(compared, agent, games=None):
    """An agent's rows in a comparison's table of runs, on all games or on some."""
    return labels.by_agent(compared.runs, games)[agent]


def hash_seed(*parts):
    """A number that is the same in every process, unlike `hash`."""
    return sum(ord(c) * 31**i for i, c in enumerate("/".join(map(str, parts)))) % 2**32
