"""Nothing that a pickle names is run; plain data comes back as it was."""

import collections
import copyreg
import functools
import io
import os
import pickle
import struct

import numpy as np
import pytest

from log_dqn.run_folder import safe_pickle


def loads(data, records=()):
    return safe_pickle.load(io.BytesIO(data), records)


class Call:
    """Pickles as a call of `function` with `arguments`, then BUILD with `state`."""

    def __init__(self, function, *arguments, state=None):
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_plain_data_comes_back(protocol):
    values = [
        {"iteration_0": {"train_average_return": [1.5], "lengths": [3, 4]}},
        [None, True, 2**70, -1.5, "text", (1, (2,))],
        {1, 2},
        collections.OrderedDict(b=1, a=[2]),
        collections.defaultdict(list, a=[1]),
        *(np.float64(2.5), np.float32(-1), np.int64(7), np.bool_(True), np.str_(""), b""),
    ]
    loaded = loads(pickle.dumps(values, protocol))
    assert loaded == values
    assert [type(value) for value in loaded] == [type(value) for value in values]


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("numpy_1", [False, True])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
        np.arange(10, dtype=np.uint8)[::3], np.array(["ab", "c"]), np.array([True, False]),
        np.zeros((0, 3), np.float32), np.array(2.5),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)  # fmt: skip
def test_arrays_come_back(array, numpy_1, protocol):
    data = pickle.dumps(array, protocol)
    if numpy_1:  # Lengths stand before names: one byte less, in the name and in its frame.
        data = data.replace(b"\x8c\x16numpy._core.multiarray", b"\x8c\x15numpy.core.multiarray")
        data = data.replace(b"\x8c\x13numpy._core.numeric", b"\x8c\x12numpy.core.numeric")
        length = struct.pack("<Q", len(data) - 11)
        data = data[:3] + length + data[11:] if data[2:3] == b"\x95" else data
    result = np.asarray(loads(data))
    assert result.dtype == array.dtype
    assert result.flags.writeable
    np.testing.assert_array_equal(result, array)


def test_a_scalar_as_numpy_1_writes_it():
    dtype = b"cnumpy\ndtype\nX\x02\x00\x00\x00f8\x89\x88\x87R(K\x03X\x01\x00\x00\x00<NNNJ"
    dtype += struct.pack("<i", -1) + b"J" + struct.pack("<i", -1) + b"K\x00tb"
    data = b"\x80\x03cnumpy.core.multiarray\nscalar\n" + dtype
    data += b"C\x08" + struct.pack("<d", 0.5) + b"\x86R."
    assert pickle.loads(data) == 0.5  # The bytes are right.
    loaded = loads(data)
    assert loaded == 0.5 and type(loaded) is np.float64


def test_a_log_as_python_2_writes_it():
    # {'iteration_0': {'train_average_return': [0.5]}}, str pickled as byte strings.
    data = b"\x80\x02}U\x0biteration_0}U\x14train_average_return]G?\xe0\0\0\0\0\0\0ass."
    assert loads(data) == {"iteration_0": {"train_average_return": [0.5]}}


class Tree:
    """Stands for a class that a checkpoint holds an object of."""

    def __init__(self):
        self.nodes = [np.arange(2.0), np.arange(3.0)]
        self.total = 5.0


def test_an_object_of_a_named_class_is_read_as_a_record():
    loaded = loads(pickle.dumps(Tree()), records=[(__name__, "Tree")])
    assert isinstance(loaded, safe_pickle.Record)
    assert loaded.state["total"] == 5.0
    np.testing.assert_equal(list(map(np.asarray, loaded.state["nodes"])), Tree().nodes)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Call(os.system, "touch {canary}"), "posix.system"),
        (Call(eval, "open('{canary}', 'w')"), "builtins.eval"),
        (Call(getattr, {}, "items"), "builtins.getattr"),
        (Call(functools.partial, os.mkdir, "{canary}"), "functools.partial"),
        (Call(np.load, "{canary}"), "numpy.load"),
        (Tree(), f"{__name__}.Tree"),
        (Call(bytearray, 10**15), "builtins.bytearray"),
        (np.ma.array([1]), "numpy.ma"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_anything_else_is_refused_by_name(value, name, protocol, tmp_path):
    canary = tmp_path / "ran"
    if isinstance(value, Call):
        function, arguments = value.reduced
        filled = [a.format(canary=canary) if isinstance(a, str) else a for a in arguments]
        value = Call(function, *filled)
    data = pickle.dumps(["before", value], protocol=protocol, fix_imports=False)
    with pytest.raises(safe_pickle.UnsafePickleError, match=name.replace(".", r"\.")):
        loads(data)
    assert not canary.exists()


NAMING = {
    "reduce": b"cos\nsystem\n(Vtouch /tmp/never\ntR.",
    "dotted": b"\x80\x04\x8c\x08builtins\x8c\rdict.fromkeys\x93.",
    "dotted module": b"\x80\x04\x8c\x05numpy\x8c\x0bf2py.os.sys\x93.",
    "inst": b"(Vtouch /tmp/never\nios\nsystem\n.",
    "obj": b"(cos\nsystem\nVtouch /tmp/never\no.",
    "persistent": b"Pnumber\n.",
    "binary persistent": b"\x80\x02K\x01Q.",
}


@pytest.mark.parametrize("data", NAMING.values(), ids=NAMING)
def test_every_way_of_naming_is_refused(data):
    with pytest.raises(safe_pickle.UnsafePickleError):
        loads(data)


def test_a_registered_extension_is_refused():
    copyreg.add_extension("posix", "system", 1)
    try:
        with pytest.raises(safe_pickle.UnsafePickleError, match=r"posix\.system"):
            loads(b"\x80\x02\x82\x01.")
    finally:
        copyreg.remove_extension("posix", "system", 1)


RECONSTRUCT = np.ndarray([0]).__reduce__()[0]
# Of dtype object, whose flags say that it holds none.
NO_OBJECTS = Call(np.dtype, "O8", False, True, state=(3, "|", None, None, None, -1, -1, 0))
FORGED = {
    "pointers": Call(  # Raw bytes as such.
        RECONSTRUCT, np.ndarray, (0,), b"b", state=(1, (1,), NO_OBJECTS, False, b"A" * 8)
    ),
    "structured": np.zeros(2, dtype=[("a", object), ("b", "f4")])[::2],
    "str dtype": Call(RECONSTRUCT, np.ndarray, (0,), b"b", state=(1, (9,), "f8", False, b"")),
    "no dtype": Call(RECONSTRUCT, np.ndarray, (0,), b"b", state=(1, (9,), Call(np.dtype), 0, b"")),
    "no state": Call(RECONSTRUCT, np.ndarray, (0,), b"b", state=[1]),
    "few bytes": Call(RECONSTRUCT, np.ndarray, (0,), b"b", state=(1, (9,), np.dtype("f8"), 0, b"")),
    "a number": Call(RECONSTRUCT, np.ndarray, (0,), b"b", state=(1, (9,), np.dtype("f8"), 0, 9)),
}


@pytest.mark.parametrize("value", FORGED.values(), ids=FORGED)
def test_forged_arrays_are_refused(value):
    with pytest.raises(ValueError, match=r"refused|damaged"):
        np.asarray(loads(pickle.dumps(value, protocol=4)))


@pytest.mark.parametrize(
    "name", [b"numpy\ndtype", b"numpy._core.multiarray\nscalar", b"collections\nOrderedDict"]
)
@pytest.mark.parametrize("state", [b"(Vx\nK\x01d", b"N(V__defaults__\n)d\x86"])
def test_what_is_handed_out_takes_no_attributes(name, state):
    with pytest.raises(ValueError, match=r"refused|damaged"):
        loads(b"\x80\x02c" + name + b"\n" + state + b"b.")


def test_every_truncation_is_damaged():
    data = pickle.dumps({"iteration_0": {"train_average_return": [np.float64(1), [1, "a"]]}})
    for length in range(len(data)):
        with pytest.raises(ValueError, match="damaged or truncated"):
            loads(data[:length])


def test_an_error_without_words_has_its_name():
    too_large = b"\x80\x05\x96" + (2**60).to_bytes(8, "little")
    with pytest.raises(ValueError, match=r"damaged or truncated \(MemoryError\)"):
        loads(too_large)


def test_flipped_bits_never_raise_anything_else():
    rng = np.random.default_rng(0)
    data = pickle.dumps({"a": [np.float64(1), np.arange(4)[::2], {"b": (1, 2)}]}, protocol=4)
    outcomes = collections.Counter()
    for _ in range(3000):
        damaged = bytearray(data)
        damaged[rng.integers(len(data))] ^= 1 << rng.integers(8)
        try:
            loads(bytes(damaged))
            outcomes["loaded"] += 1
        except ValueError as error:
            outcomes[type(error).__name__] += 1
    assert min(outcomes["UnsafePickleError"], outcomes["ValueError"]) > 100
