import pytest

from log_dqn import train
from log_dqn.cli import divergence
from tests.programs import NEEDS_MINATAR, class_of, tiny_minatar


@NEEDS_MINATAR
@pytest.mark.parametrize(
    ("agent", "times"),
    [
        ("log_dqn", 1),
        ("jax_loglin_dqn", 1),
        pytest.param("dqn", 0, marks=pytest.mark.slow),
        pytest.param("jax_dqn", 0, marks=pytest.mark.slow),
    ],
)
def test_runaway_values_are_told_once_a_run(tmp_path, capsys, monkeypatch, agent, times):
    monkeypatch.setattr(divergence, "RUNAWAY", 0.0)
    frequent = f"--gin_bindings={class_of(agent)}.summary_writing_frequency=4"
    arguments = [*tiny_minatar(agent), frequent]
    assert train.main([f"--base_dir={tmp_path}", "--seed=1", *arguments]) == 0
    assert capsys.readouterr().err.count("values have diverged") == times
