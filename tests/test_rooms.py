"""The rooms of the package: what each may import. Nothing runs back up."""

import ast
import pathlib
import re

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "log_dqn"

# Rooms from the bottom to the top: each with the rooms below that it may import. A room is a
# module of the root or a folder.
BOTTOM = {"compat", "checks", "games", "scan"}
ROOMS = {
    "checks": set(),
    "compat": {"checks"},
    "games": {"checks"},
    "scan": set(),
    "mapping": {"checks"},
    "log_space": {"checks", "mapping"},
    "trained": {"checks", "games"},
    "atari": {"games"},
    "minatar": {"checks", "games"},
    "run_folder": BOTTOM,
    "cli": BOTTOM | {"log_space", "run_folder"},
    "linear": {"checks"},
    "tf": BOTTOM | {"log_space", "run_folder"},
    "jax": BOTTOM | {"log_space", "run_folder"},
    "dopamine_run": BOTTOM | {"minatar", "run_folder", "cli", "tf", "jax"},
    "vectorized": BOTTOM | {"log_space", "run_folder", "cli", "jax"},
    "film": BOTTOM
    | {
        "log_space", "atari", "minatar", "run_folder", "cli", "tf", "jax", "dopamine_run",
        "vectorized",
    },
    "results": BOTTOM | {"run_folder", "cli"},
    "sweeps": BOTTOM | {"run_folder", "cli", "dopamine_run", "vectorized"},
    "commands": BOTTOM
    | {"trained", "run_folder", "cli", "dopamine_run", "vectorized", "film", "linear", "results"},
    "train": BOTTOM | {"cli", "dopamine_run"},
    "train_vectorized": BOTTOM | {"cli", "jax", "vectorized"},
    "sweep": BOTTOM | {"cli", "run_folder", "sweeps"},
}  # fmt: skip
# Programs that a room starts, by their names.
STARTED = {
    "cli": {"commands"},
    "sweeps": {"train", "train_vectorized"},
    "commands": {"train", "train_vectorized", "sweep"},
}
MOST_MODULES = 12
MOST_LINES = 60
LONGER = {
    "kernels.py: logarithmic": "a sixth is its docstring, and the parts of a sweep share arrays"
}


def room_of(path, package):
    return path.relative_to(package).parts[0].removesuffix(".py")


def imported(path, package):
    """Returns what a file imports or names of the package, in full: log_dqn.checks.check."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            folder = path.relative_to(package.parent).parts[: -node.level] if node.level else ()
            module = ".".join(filter(None, [*folder, node.module]))
            names += [f"{module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and re.fullmatch(r"\w+(\.\w+)+", str(node.value)):
            names.append(str(node.value))
    return [name for name in names if name.startswith(f"{package.name}.")]


def forbidden(package, rooms):
    """Returns `file: import` of each import that its room may not have."""
    found = []
    for path in sorted(package.rglob("*.py")):
        room = room_of(path, package)
        if room == "__init__":
            continue
        found += [
            f"{path.relative_to(package)}: {name}"
            for name in imported(path, package)
            if name.split(".")[1] not in {room, "__version__", *rooms[room], *STARTED.get(room, ())}
        ]
    return found


def test_no_room_imports_what_it_may_not():
    assert forbidden(PACKAGE, ROOMS) == []


def test_every_module_is_in_a_room():
    rooms = {room_of(path, PACKAGE) for path in PACKAGE.rglob("*.py")}
    assert rooms - {"__init__", "configs"} <= set(ROOMS)


def test_arrows_go_down_only():
    below = set()
    for room, may_import in ROOMS.items():
        assert may_import <= below, room
        below.add(room)


def test_entry_points_are_imported_by_nothing():
    for may_import in ROOMS.values():
        assert not may_import & {"train", "train_vectorized", "sweep", "commands"}


def test_the_root_is_small():
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_MODULES


def long_functions(path):
    """Returns `file: function` of each function in a file with more lines than are read at once."""
    return {
        f"{path.name}: {node.name}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno >= MOST_LINES
    }


def test_functions_are_short():
    paths = [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "scripts").rglob("*.py")]
    assert set().union(*map(long_functions, paths)) <= set(LONGER)


@pytest.mark.parametrize(("lines", "is_long"), [(MOST_LINES, False), (MOST_LINES + 1, True)])
def test_a_long_function_is_found(tmp_path, lines, is_long):
    path = tmp_path / "a.py"
    path.write_text("class A:\n    def f():\n" + "        pass\n" * (lines - 1))
    assert long_functions(path) == ({"a.py: f"} if is_long else set())


def test_the_run_folder_alone_spells_its_names():
    # Not Dopamine's entry ["logs"], nor where a user is told of {seed}/logs/log_N.
    names = re.compile(
        r"(?<!\[)[\"'/]"
        r"(operative_config\.gin|config\.json|checkpoints|metrics|logs(?!/log_N)|lock)[\"'/]"
    )
    spelt = {
        room_of(path, PACKAGE)
        for path in PACKAGE.rglob("*.py")
        if names.search(path.read_text(encoding="utf-8"))
    }
    assert spelt == {"run_folder"}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from top import tower", "top.tower"),
        ("from top.tower import roof", "top.tower.roof"),
        ("import top.tower.roof", "top.tower.roof"),
        ("from .. import tower", "top.tower"),
        ("from ..tower import roof", "top.tower.roof"),
        ("def f():\n    from top.tower import roof", "top.tower.roof"),
        ("importlib.import_module('top.tower.roof')", "top.tower.roof"),
    ],
)
def test_a_room_that_reaches_up_is_found(tmp_path, line, name):
    package = tmp_path / "top"
    (package / "cellar").mkdir(parents=True)
    (package / "tower.py").write_text("from top.cellar import wine\nimport topping.tower\n")
    (package / "cellar" / "wine.py").write_text("import os\nfrom top.cellar import barrel\n")
    rooms = {"cellar": set(), "tower": {"cellar"}}
    assert forbidden(package, rooms) == []
    (package / "cellar" / "barrel.py").write_text(f"{line}\n")
    assert forbidden(package, rooms) == [f"cellar/barrel.py: {name}"]
