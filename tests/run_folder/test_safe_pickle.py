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


def loads(data):
    return safe_pickle.load(io.BytesIO(data))


class Call:
    """Pickles as a call of `function` with `arguments`, then BUILD with `state`."""

    def __init__(self, function, *arguments, state=None):
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "value",
    [
        {"iteration_0": {"train_average_return": [1.5], "lengths": [3, 4]}},
        [None, True, 2**70, -1.5, 1 + 2j, "text", b"bytes\xff", b"", bytearray(b"ab")],
        ({1, 2}, frozenset([3])),
        collections.OrderedDict(b=1, a=[2]),
        collections.defaultdict(list, a=[1]),
        collections.deque([1, 2], 5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_plain_data_comes_back(value, protocol):
    loaded = loads(pickle.dumps(value, protocol=protocol))
    assert loaded == value
    assert type(loaded) is type(value)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
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
    data = pickle.dumps([array, {"again": array}], protocol=protocol)
    if numpy_1 and protocol < 4:  # Names are lines there, so they can be shortened in place.
        data = data.replace(b"numpy._core.", b"numpy.core.")
    loaded, again = loads(data)
    for result in (loaded, again["again"]):
        assert type(result) is np.ndarray
        assert result.dtype == array.dtype
        assert result.flags.writeable
        np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_scalars_dtypes_and_object_arrays_come_back(protocol):
    value = {
        "scalars": [np.float64(2.5), np.float32(-1), np.int64(7), np.bool_(True)],
        "dtype": np.dtype(">f4"),
        "objects": np.array([1, "x", np.arange(2), [np.arange(3)]], dtype=object),
    }
    loaded = loads(pickle.dumps(value, protocol=protocol))
    assert loaded["scalars"] == value["scalars"]
    assert [type(x) for x in loaded["scalars"]] == [np.float64, np.float32, np.int64, np.bool_]
    assert loaded["dtype"] == np.dtype(">f4")
    assert loaded["objects"].dtype == object
    np.testing.assert_equal(list(loaded["objects"]), list(value["objects"]))


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


class Plain:
    pass


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Call(os.system, "touch {canary}"), "posix.system"),
        (Call(eval, "open('{canary}', 'w')"), "builtins.eval"),
        (Call(exec, "open('{canary}', 'w')"), "builtins.exec"),
        (Call(open, "{canary}", "w"), "io.open"),
        (Call(getattr, {}, "items"), "builtins.getattr"),
        (Call(__import__, "os"), "builtins.__import__"),
        (Call(functools.partial, os.mkdir, "{canary}"), "functools.partial"),
        (functools.partial(collections.defaultdict, list), "functools.partial"),
        (Call(np.load, "{canary}"), "numpy.load"),
        (Call(np.fromfile, "{canary}"), "numpy.fromfile"),
        (Call(map, os.mkdir, ["{canary}"]), "builtins.map"),
        (Call(copyreg._reconstructor, Plain, object, None), "copyreg._reconstructor"),
        (Plain(), f"{__name__}.Plain"),
        (np.random.RandomState(0), "numpy.random"),
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


@pytest.mark.parametrize("opcode", [b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00"])
def test_registered_extensions_are_refused(opcode):
    copyreg.add_extension("posix", "system", 1)
    try:
        with pytest.raises(safe_pickle.UnsafePickleError, match=r"posix\.system"):
            loads(b"\x80\x02" + opcode + b".")
    finally:
        copyreg.remove_extension("posix", "system", 1)
    with pytest.raises(safe_pickle.DamagedPickleError):
        loads(b"\x80\x02" + opcode + b".")


RECONSTRUCT = np.ndarray([0]).__reduce__()[0]
# Of dtype object, whose flags say that it holds none.
NO_OBJECTS = Call(np.dtype, "O8", False, True, state=(3, "|", None, None, None, -1, -1, 0))
FORGED = {
    "pointers": Call(  # Raw bytes as such.
        RECONSTRUCT, np.ndarray, (0,), b"b", state=(1, (1,), NO_OBJECTS, False, b"A" * 8)
    ),
    "object scalar": Call(np.float64(0).__reduce__()[0], np.dtype("O"), b"A" * 8),
    "structured": np.zeros(2, dtype=[("a", object), ("b", "f4")]),
    "dtype": np.dtype([("a", "f4")]),
    "str dtype": Call(RECONSTRUCT, np.ndarray, (0,), b"b", state=(1, (9,), "f8", False, b"")),
    "subclass": np.zeros(3)[::2].view(np.recarray),
    "call": Call(np.ndarray, (10**12,)),
    "date": np.datetime64("2020-01-01"),
}


@pytest.mark.parametrize("value", FORGED.values(), ids=FORGED)
def test_forged_arrays_are_refused(value):
    with pytest.raises((safe_pickle.UnsafePickleError, safe_pickle.DamagedPickleError)):
        loads(pickle.dumps(value, protocol=4))


def test_an_array_with_too_few_bytes_is_damaged():
    data = pickle.dumps(np.zeros(3)[::2], protocol=4)
    assert data.count(struct.pack("<d", 0) * 2) == 1
    with pytest.raises(safe_pickle.DamagedPickleError):
        loads(data.replace(b"C\x10" + bytes(16), b"C\x08" + bytes(8)))


@pytest.mark.parametrize(
    "name", [b"numpy\ndtype", b"numpy\nndarray", b"numpy._core.multiarray\nscalar"]
)
@pytest.mark.parametrize("state", [b"(Vx\nK\x01dN\x86", b"N(V__defaults__\n)d\x86"])
def test_what_is_handed_out_takes_no_attributes(name, state):
    with pytest.raises(safe_pickle.UnsafePickleError, match="set"):
        loads(b"\x80\x02c" + name + b"\n" + state + b"b.")


@pytest.mark.parametrize("kind", [dict, list, collections.OrderedDict, collections.defaultdict])
def test_admitted_types_take_no_attributes(kind):
    name = f"{kind.__module__}\n{kind.__name__}\n".encode()
    with pytest.raises(safe_pickle.DamagedPickleError):
        loads(b"\x80\x03c" + name + b"N(V__len__\nK\x01d\x86b.")


def test_every_truncation_is_damaged():
    data = pickle.dumps({"iteration_0": {"train_average_return": [np.float64(1), [1, "a"]]}})
    for length in range(len(data)):
        with pytest.raises(safe_pickle.DamagedPickleError):
            loads(data[:length])


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
        except (safe_pickle.UnsafePickleError, safe_pickle.DamagedPickleError) as error:
            outcomes[type(error).__name__] += 1
    assert min(outcomes["UnsafePickleError"], outcomes["DamagedPickleError"]) > 100


class Tree:
    """Stands for a class that a checkpoint holds an object of."""

    def __init__(self):
        self.nodes = [np.arange(2.0), np.arange(3.0)]
        self.total = 5.0


TREE = [(Tree.__module__, "Tree")]


def test_an_object_of_a_named_class_is_read_as_a_record():
    loaded = safe_pickle.load(io.BytesIO(pickle.dumps(Tree())), records=TREE)
    assert isinstance(loaded, safe_pickle.Record)
    assert loaded.attributes["total"] == 5.0
    np.testing.assert_equal(loaded.attributes["nodes"], Tree().nodes)
    with pytest.raises(safe_pickle.UnsafePickleError, match="Tree"):
        safe_pickle.load(io.BytesIO(pickle.dumps(Tree())))


def test_a_record_s_class_cannot_be_changed():
    module = Tree.__module__.encode()
    # The class itself, then BUILD with (None, {"load": int}).
    hostile = b"\x80\x02c" + module + b"\nTree\nN}X\x04\x00\x00\x00loadcbuiltins\nint\ns\x86b."
    with pytest.raises((safe_pickle.UnsafePickleError, safe_pickle.DamagedPickleError)):
        safe_pickle.load(io.BytesIO(hostile), records=TREE)
    assert not hasattr(safe_pickle.Record, "load")


def test_a_number_for_an_array_s_bytes_is_refused():
    hostile = (
        b"\x80\x02cnumpy._core.numeric\n_frombuffer\n(J\x00\x00\x00\x40cnumpy\ndtype\n"
        b"X\x02\x00\x00\x00u1\x85RJ\x00\x00\x00\x40\x85X\x01\x00\x00\x00CtR."
    )
    with pytest.raises(safe_pickle.DamagedPickleError, match="data is of type int"):
        safe_pickle.load(io.BytesIO(hostile))


@pytest.mark.parametrize(
    "twice",
    [
        b"q\x010h\x01h\x01\x86",
        b"r\x01\0\0\x000j\x01\0\0\0j\x01\0\0\0\x86",
        b"p1\n0g1\ng1\n\x86",
        b"2\x86",
    ],
)
def test_a_key_whose_hash_takes_years_is_refused(twice):
    # {(((), ()), ((), ())): None}, and so on, 60 deep; the memo's places are used again.
    log = b"\x80\x02}))\x86" + twice * 60 + b"Ns."
    with pytest.raises(safe_pickle.UnsafePickleError, match="a tuple of tuples that stands in two"):
        loads(log)
    assert loads(b"\x80\x02})q\x010h\x01h\x01\x86Ns.") == {((), ()): None}


def test_logs_without_tuples_are_read_by_the_fast_unpickler(monkeypatch):
    log = {"iteration_0": {"train_episode_lengths": [1, 300, 70_000], "returns": [0.5, None, True]}}
    monkeypatch.delattr(safe_pickle, "_Careful")
    for protocol in (2, 4, 5):
        assert loads(pickle.dumps(log, protocol=protocol)) == log
    with pytest.raises(safe_pickle.DamagedPickleError, match="_Careful"):
        loads(pickle.dumps({(1, 2): 3}))
