"""What each shipped gin file binds, against `configs.json`, the classes' defaults and the pages.

After a change that is meant, `python -m tests.test_configs` writes `configs.json` again.
"""

import ast
import inspect
import json
import pathlib
import re

import gin
import pytest

from log_dqn import log_space
from log_dqn.cli import gin_files
from log_dqn.run_folder import configuration

SAVED = pathlib.Path(__file__).with_name("configs.json")
ROOT = SAVED.parents[1]
AGENTS = {
    "log_dqn.gin": "LogDQNAgent",
    "jax_log_dqn.gin": "JaxLogDQNAgent",
    "vectorized_log_dqn.gin": "VectorizedLogDQNAgent",
}


def bound(name):
    """What a file binds in the end, with the files that it includes; references as gin has them."""
    lines = gin_files.parse([name], []).lines
    return configuration.as_json({line.name: line.value for line in lines})


def bound_by_all():
    return {path.name: bound(path.name) for path in sorted(gin_files.config_dir().glob("*.gin"))}


def test_no_file_changes_unnoticed():
    assert bound_by_all() == json.loads(SAVED.read_text("utf-8"))


def defaults(configurable):
    import log_dqn.dopamine_run.agents
    import log_dqn.vectorized.agents  # noqa: F401  They register the agents.

    parameters = inspect.signature(gin.get_configurable(configurable)).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


@pytest.mark.parametrize(
    "of", ["log_dqn", "log_dqn_cartpole", "log_dqn_gym", "log_dqn_minatar", "loglin_dqn",
           "loglin_dqn_gym", "loglin_dqn_minatar"]
)  # fmt: skip
def test_rmsprop_is_the_same_on_tensorflow_and_jax(of):
    """Also where Adam is the file's optimizer and the user chooses RMSProp."""
    theirs = "RMSPropOptimizer."
    values = bound(f"{of}.gin")
    on_tf = {key.removeprefix(theirs): values[key] for key in values if key.startswith(theirs)}
    on_jax, known = bound(f"jax_{of}.gin"), defaults("rmsprop_tf")
    assert len(on_tf) == 5
    assert {key: on_jax.get(f"rmsprop_tf.{key}", known[key]) for key in on_tf} == on_tf


@pytest.mark.parametrize(
    ("name", "bound_to"), [*AGENTS.items(), ("vectorized_log_dqn.gin", "VectorizedRunner")]
)
def test_the_paper_s_settings_are_the_defaults(name, bound_to):
    values = {name: value for name, value in bound(name).items() if name.startswith(bound_to)}
    assert len(values) >= 7
    known = defaults(bound_to)
    for full_name, value in values.items():
        parameter = full_name.partition(".")[2]
        if parameter not in ("optimizer", "network", "tf_device"):
            assert known[parameter] == value, parameter


def table(page, heading):
    """The rows of a page's first table below a heading, without the heads."""
    text = (ROOT / "docs" / page).read_text("utf-8").partition(f"\n## {heading}\n")[2]
    lines = text[text.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def read(cell):
    """A number, string or truth value as a page shows it."""
    return ast.literal_eval(cell)


def test_the_page_of_hyperparameters_says_what_the_agents_have():
    known = {name: value for agent in AGENTS.values() for name, value in defaults(agent).items()}
    known["linear_above"] = None  # As gin writes the default, inf.
    loglin = bound("loglin_dqn.gin")
    named = set()
    for cell, shown, *_ in table("method.md", "Hyperparameters"):
        name = re.match(r"`(\w+)`", cell)[1]
        named.add(name)
        default, _, of_loglin = shown.partition("; LogLinDQN ")
        assert read(default) == known[name], name
        assert not of_loglin or read(of_loglin) == loglin[f"LogDQNAgent.{name}"], name
    of_update = inspect.signature(log_space.LogUpdate).parameters
    assert named == {*of_update, "head_init", "loss_type", "precision", "dtype", "minus_head"}


def test_the_page_of_settings_says_what_the_files_bind():
    rows = [row for row in table("method.md", "Settings to begin with") if ".gin" in row[1]]
    assert len(rows) == 7
    for _, named, c, beta_reg, beta_log, _ in rows:
        agent, name = re.fullmatch(r"`(\w+)`: `(\w+\.gin)`", named).groups()
        values = bound(name)
        assert agent in (
            values.get("create_agent.agent_name"),
            values.get("VectorizedRunner.agent"),
        )
        cls = "VectorizedLogDQNAgent" if name.startswith("vectorized") else "LogDQNAgent"
        optimizer = values[f"{cls}.optimizer"].strip("@()").rpartition(".")[2]
        rate = f"{cls}.beta_log" if cls.startswith("V") else f"{optimizer}.learning_rate"
        found = [values[f"{cls}.c"], values[f"{cls}.beta_reg"], values[rate]]
        assert found == [read(c), read(beta_reg), read(beta_log)], name


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(values)}" for name, values in bound_by_all().items()]
    SAVED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
