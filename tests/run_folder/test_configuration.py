"""A run's configuration as data."""

import pytest

from log_dqn.run_folder import configuration
from log_dqn.run_folder.checkpoints import CheckpointError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A.b = 1\nA.b = 0.96\n", {"A.b": 0.96}),
        ("g = 0.5\nmodule.A.b = %g\n", {"module.A.b": 0.5}),
        ("scope/A.b = (84, 'x', None)\n", {"scope/A.b": [84, "x", None]}),
        ("A.b = @c.d()\nA.e = [@f]\n", {"A.b": "@c.d()", "A.e": ["@f"]}),
        ("import os\nA.b = %unknown\n", {"A.b": "%unknown"}),
    ],
)
def test_parameters_are_read_by_gin_s_parser(text, expected):
    assert configuration.parameters(text) == expected


def test_written_and_read_back(tmp_path):
    text = "A.b = 1e-05\nA.c = 'x'\n"
    configuration.write(tmp_path, configuration.Configuration(text, configuration.parameters(text)))
    assert (tmp_path / "operative_config.gin").read_text() == text
    assert configuration.read(tmp_path) == {"A.b": 1e-05, "A.c": "x"}
    (tmp_path / "config.json").unlink()
    assert configuration.read(tmp_path) == {}
    (tmp_path / "config.json").mkdir()
    with pytest.raises(ValueError, match=r"config.json: is a directory$"):
        configuration.read(tmp_path)


def test_what_was_called_is_operative():
    config = configuration.operative(create_agent={"agent_name": "dqn"})
    assert config.parameters == {"create_agent.agent_name": "dqn"}
    assert "create_agent.agent_name = 'dqn'\n" in config.text


def test_differences_are_named(tmp_path):
    then = {"A.b": 1, "A.c": 2, "Runner.num_iterations": 3}
    configuration.check_same(tmp_path, then, {**then, "A.b": 1.0, "Runner.num_iterations": 4}, "")
    # What never had an effect, and is refused now.
    for name in ("create_gymnasium_environment.seed", "Runner.checkpoint_file_prefix"):
        configuration.check_same(tmp_path, {name: 5}, {name: None}, "")
    with pytest.raises(CheckpointError) as error:
        configuration.check_same(
            tmp_path, then, {"A.b": 5, "A.d": 1, "Logger.logs_duration": 9}, "do x"
        )
    assert str(error.value) == (
        f"{tmp_path} is a checkpoint of another configuration: A.b was 1 and is 5; A.c is not set; "
        "A.d was not set; do x"
    )
    for runner in ("Runner", "VectorizedRunner"):
        name = f"{runner}.training_steps"
        with pytest.raises(CheckpointError, match=f": {name} was 1 and is 2; x$"):
            configuration.check_same(tmp_path, {name: 1}, {name: 2}, "x")


def test_of_another_agent_only_that_is_said(tmp_path):
    then = {"create_agent.agent_name": "dqn", "A.b": 1}
    with pytest.raises(
        CheckpointError, match=r": create_agent.agent_name was 'dqn' and is 'c51'; x$"
    ):
        configuration.check_same(tmp_path, then, {"create_agent.agent_name": "c51"}, "x")
