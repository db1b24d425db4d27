"""Plain data as JSON and numpy's files."""

import json
import math

import numpy as np
import pytest

from log_dqn.run_folder import data


def test_what_is_saved_comes_back(tmp_path):
    tree = {
        "numbers": [1, 2.5, 2**100, math.inf, True, None, "a"],
        "tuple": (1, (2, 3)),
        "array": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "scalars": {"int": np.int64(7), "float": np.float32(0.5), "empty": np.float64(1e-300)},
        "list": [np.array(3.0), b"\x00\xff", {}],
    }
    data.save(tmp_path / "state", tree)
    loaded = data.load(tmp_path / "state")
    assert loaded["numbers"] == tree["numbers"]
    assert loaded["tuple"] == [1, [2, 3]]
    assert loaded["array"].dtype == np.uint8
    np.testing.assert_array_equal(loaded["array"], tree["array"])
    assert loaded["scalars"] == {"int": 7, "float": 0.5, "empty": 1e-300}
    array, some_bytes, nothing = loaded["list"]
    assert array.shape == () and array == 3.0
    assert (some_bytes, nothing) == (b"\x00\xff", {})


def test_without_arrays_there_is_one_file(tmp_path):
    data.save(tmp_path / "log", {"iteration_0": {"train_average_return": [np.float64(0.1)]}})
    assert [path.name for path in tmp_path.iterdir()] == ["log.json"]
    assert json.loads((tmp_path / "log.json").read_text())["iteration_0"] == {
        "train_average_return": [0.1]
    }


def test_nothing_but_plain_data_is_saved_or_loaded(tmp_path):
    with pytest.raises(TypeError):
        data.save(tmp_path / "state", {"code": print})
    data.save(tmp_path / "state", [np.zeros(3)])
    np.savez(tmp_path / "state.npz", **{"0": np.array([print])})
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        data.load(tmp_path / "state")
    (tmp_path / "state.npz").write_bytes(b"PK")
    with pytest.raises(ValueError):
        data.load(tmp_path / "state")
