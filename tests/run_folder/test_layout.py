"""What a run's folder says in words."""

from log_dqn.run_folder import layout


def test_a_single_episode_is_one():
    entry = {"train_average_return": [2.0], "train_episode_returns": [2.0]}
    assert layout.results(entry) == ["train return 2.00 (1 episode)"]
    entry["train_episode_returns"] = [1.0, 3.0]
    assert layout.results(entry) == ["train return 2.00 (2 episodes)"]


def test_so_many_logs_stay(tmp_path):
    (tmp_path / "logs").mkdir()
    for iteration in range(7):
        layout.write_log(tmp_path, {}, iteration)
        kept = [path.name for path in layout.logs(tmp_path)]
        assert kept == [f"log_{i}" for i in range(iteration, -1, -1)][:4]
    layout.write_log(tmp_path, {}, 7, kept=1)
    assert not layout.log_path(tmp_path, 6).exists()
