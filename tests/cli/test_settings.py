"""Checks of settings that gin binds; `tests/test_refusals.py` tries those of the shipped files."""

import pytest

from log_dqn.cli import gin_files, settings


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
