"""Checks of settings that gin binds; `tests/test_refusals.py` tries those of the shipped files."""

import gin
import pytest

from log_dqn.cli import gin_files, settings
from log_dqn.dopamine_run import request
from log_dqn.run_folder import configuration


@pytest.mark.parametrize(
    ("value", "default", "allowed"),
    [
        (1, True, "True or False"), (0, 4, "a whole number, at least 1"), ("a", 0.5, "a number"),
        (1, "a", "a string such as 'a'"), (84, (84, 84), r"a tuple such as \(84, 84\)"),
        (1, print, "a reference: "),
    ],
)  # fmt: skip
def test_a_setting_is_of_its_defaults_kind(value, default, allowed):
    with pytest.raises(ValueError, match=f"^x is {value!r}; it must be {allowed}"):
        settings._check_by_default("x", value, default)


def test_a_gin_file_may_begin_with_a_byte_order_mark(tmp_path):
    for name, line in {"a": "include 'b.gin'", "b": "LogDQNAgent.gamma = 0.5"}.items():
        text = line.replace("b.gin", str(tmp_path / "b.gin"))
        (tmp_path / f"{name}.gin").write_text(text, encoding="utf-8-sig")
    files = ["log_dqn.gin", str(tmp_path / "a.gin")]
    gin_files.read(gin_files.parse(files, []))
    assert gin_files.bound("LogDQNAgent.gamma") == 0.5


def test_a_configurable_may_have_the_name_of_another_package_s():
    for module in ("my_module", "other"):

        @gin.configurable("Net", module=module)
        def net(units=3):
            return units

    for name in ("my_module.Net.units", "a_scope/my_module.Net.units"):
        written = gin_files.parse([], [f"{name} = 10"])
        gin_files.read(written)
        settings.check_bound(written)
        settings.check_is_read(written.lines, configuration.operative())
        assert gin.query_parameter(name) == 10
    assert gin_files.bound("Net.units", 7) == 7


@pytest.mark.parametrize("agent", ["LogDQNAgent", "JaxLogDQNAgent"])
def test_a_file_that_includes_none_of_ours_is_answered_before_imports(tmp_path, agent):
    name = "jax_log_dqn" if agent.startswith("Jax") else "log_dqn"
    path = tmp_path / "own.gin"
    path.write_text(f"create_agent.agent_name = '{name}'\n{agent}.k = -3\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"^{agent}.k is -3; it must be a positive number"):
        request.parse([str(path)], [])
