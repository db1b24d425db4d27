"""What a run's folder says in words."""

from log_dqn.run_folder import layout


def test_a_single_episode_is_one():
    entry = {"train_average_return": [2.0], "train_episode_returns": [2.0]}
    assert layout.results(entry) == ["train return 2.00 (1 episode)"]
    entry["train_episode_returns"] = [1.0, 3.0]
    assert layout.results(entry) == ["train return 2.00 (2 episodes)"]
