import pathlib

import pytest

from log_dqn import scan
from log_dqn.run_folder import layout


def test_the_grid_is_the_product_in_the_order_of_the_options():
    settings = scan.parse(["LogDQNAgent.gamma=0.84,0.92", "LogDQNAgent.c=0.1,1.0"])
    assert [setting.name for setting in settings] == [
        "gamma=0.84,c=0.1", "gamma=0.84,c=1", "gamma=0.92,c=0.1", "gamma=0.92,c=1",
    ]  # fmt: skip
    assert settings[1].bindings == {"LogDQNAgent.gamma": 0.84, "LogDQNAgent.c": 1.0}
    assert settings[1].gin_bindings() == ["LogDQNAgent.gamma = 0.84", "LogDQNAgent.c = 1.0"]


def test_no_scan_is_one_setting_without_a_folder():
    (setting,) = scan.parse([])
    assert setting == ("", {})
    assert setting.gin_bindings() == []
    root = pathlib.Path("results")
    assert str(layout.run_dir(root, "dqn", setting.name, "Pong", 2)) == "results/dqn/Pong/2"


def test_a_setting_has_its_own_folder():
    (setting,) = scan.parse(["LogDQNAgent.gamma=0.84"])
    folder = layout.run_dir(pathlib.Path("results"), "log_dqn", setting.name, "Pong", 1)
    assert folder == pathlib.Path("results/log_dqn/gamma=0.84/Pong/1")


def test_values_are_gin_literals():
    assert scan.read("A.x = 1, -2.5, 1e-5, 'a,b', None, True, (3, 4),") == (
        "A.x",
        (1, -2.5, 1e-5, "a,b", None, True, (3, 4)),
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A.x=1e-05", "x=1e-05"), ("A.x=2.0", "x=2"), ("A.x=1e22", "x=1e+22"),
        ("A.x='../up'", "x=..%2Fup"), ("A.x='a,y=b'", "x=a%2Cy%3Db"),
        ("A.x=(3, 4)", "x=%283%2C%204%29"), ("scope/module.A.x=1", "x=1"),
    ],
)  # fmt: skip
def test_names_are_safe_as_folders(text, name):
    assert scan.parse([text])[0].name == name


def test_parameters_of_one_short_name_are_named_in_full():
    (setting,) = scan.parse(["A.x=1", "s/B.x=2", "B.y=3"])
    assert setting.name == "A.x=1,s%2FB.x=2,y=3"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["LogDQNAgent.gamma"], "with at least one value"),
        (["LogDQNAgent.gamma="], "with at least one value"),
        (["gamma=0.9"], "a gin parameter such as LogDQNAgent.gamma"),
        (["A.x=0.9;0.8"], "gin literals"),
        (["A.x=huber"], "gin literals"),
        (["A.x=__import__('os')"], "gin literals"),
        (["A.x=1,], [2"], "gin literals"),
        (["A.x=0.5,0.50"], "values that differ .0.5 is there twice"),
        (["A.x=1,1.0"], "values that differ .1 is there twice"),
        (["A.x=1", "A.x=2"], "scan has A.x 2 times; it must have it once"),
        ([f"A.x='{'y' * 300}'"], "at most 200 characters"),
    ],
)
def test_bad_scans_are_refused(texts, message):
    with pytest.raises(ValueError, match=message) as error:
        scan.parse(texts)
    assert "\n" not in str(error.value)
