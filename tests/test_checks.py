import math

import numpy as np
import pytest

from log_dqn import checks


@pytest.mark.parametrize("value", [3, 2.5, np.float32(2.5), np.int64(3)])
def test_a_real_number_is_itself(value):
    assert checks.as_number(value) == value


@pytest.mark.parametrize("value", [True, "3", None, 1j, [3]])
def test_anything_else_lies_in_no_range(value):
    assert math.isnan(checks.as_number(value))


def test_an_error_names_the_setting_the_value_and_what_is_allowed():
    checks.check("gamma", 0.5, True, "in (0, 1)")
    with pytest.raises(ValueError, match=r"^gamma is 1.5; it must be in \(0, 1\)$"):
        checks.check("gamma", 1.5, False, "in (0, 1)")


@pytest.mark.parametrize("value", [0, True, 1.0, "1", None])
def test_a_count_is_a_whole_number_of_its_range(value):
    checks.check_count("runs", np.int64(1))
    checks.check_count("runs", 0, least=0)
    with pytest.raises(ValueError, match=r"^runs is .*; it must be a whole number, at least 1$"):
        checks.check_count("runs", value)
    checks.check_count("runs", 8, 2, 8)
    with pytest.raises(ValueError, match=r"^runs is 9; it must be a whole number from 2 to 8$"):
        checks.check_count("runs", 9, 2, 8)


@pytest.mark.parametrize(
    ("value", "near"),
    [("hub", "huber"), ("L1", ""), (None, ""), (["huber"], "huber"), ({}, "")],
)
def test_a_word_is_one_of_those_known(value, near):
    known = {"huber": 1, "mse": 2}
    checks.check_one_of("loss_type", "mse", known)
    checks.check_one_of("loss_type", "mse", iter(known))
    with pytest.raises(ValueError) as error:
        checks.check_one_of("loss_type", value, known)
    said = f"loss_type is {value!r}; it must be one of huber, mse"
    assert str(error.value) == said + f" (nearest: {near})" * bool(near)


@pytest.mark.parametrize("value", [0, 1, 1.5, -0.1, math.nan, None, "0.9", True])
def test_a_discount_factor_lies_between_0_and_1(value):
    checks.check_gamma(np.float32(0.5))
    with pytest.raises(
        ValueError, match=r"^gamma is .*; it must be a number between 0 and 1, both excl"
    ):
        checks.check_gamma(value)


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 10**400, None, "1", True])
def test_a_number_is_finite_and_of_its_sign(value):
    checks.check_positive("k", 0.1)
    checks.check_not_negative("q_init", 0)
    with pytest.raises(ValueError, match=r"^k is .*; it must be a positive number$"):
        checks.check_positive("k", value)
    with pytest.raises(ValueError, match=r"^k is 0; it must be a positive number$"):
        checks.check_positive("k", 0)
    with pytest.raises(ValueError, match=r"^q_init is .*; it must be 0 or a positive number$"):
        checks.check_not_negative("q_init", value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Pongg", " (nearest: Pong)"), ("ALE/Pong-v5", " (nearest: Pong)"),
        ("PongNoFramskip-v4", " (nearest: Pong)"), ("x", ""),
    ],
)  # fmt: skip
def test_the_nearest_of_known_names(name, said):
    assert checks.nearest(name, ["Pong", "Asterix"]) == said


def test_a_folder_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "a_folder").mkdir()
    (tmp_path / "a_package").mkdir()
    (tmp_path / "a_package/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert not checks.is_installed("a_folder") and not checks.is_installed("nothing")
    assert checks.is_installed("a_package")
