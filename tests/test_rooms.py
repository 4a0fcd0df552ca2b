"""The rooms of the house: who may know whom, and who may import which library."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "disclosure_pipeline"
ROOT = Path(__file__).resolve().parents[1] / PACKAGE

# From top to bottom; an import may only point downwards, or stay in its room. What stands on one floor
# does not know each other.
FLOORS: list[set[str]] = [
    {"cli"},
    {"demo"},
    {"definitions", "defs"},
    {"orchestration"},
    {"release"},
    {"evidence"},
    {"policy"},
    {
        *("comparison", "controls", "elsewhere", "evaluation", "individual", "key_sets"),
        *("plots", "prediction", "protection"),
    },
    {"learning", "exclusions", "result"},
    {"engines"},
    {"tables", "measures"},
    {"errors", "machine", "parallel", "progress"},
]
# The modules next to evaluation.py are one room: they glue tables and measures.
GLUE = FLOORS[7] | FLOORS[8]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# The engine that counts in databases: no other knows Ibis, or Arrow.
RELATIONAL = (
    "engines/connections.py",
    "engines/relational.py",
    "engines/relational_cells.py",
    "engines/relational_coding.py",
    "engines/relational_exclusions.py",
    "engines/relational_targets.py",
)
# Library -> the places that may import it; a place ending in "/" is a folder.
IMPORTERS = {
    "dagster": ("orchestration/", "definitions.py", "demo/"),
    "dagster_slack": ("orchestration/notices.py",),
    "pandera": ("tables/contract.py",),
    "great_expectations": ("evidence/",),
    "altair": ("plots.py", "result.py", "evidence/"),
    "click": ("cli.py",),
    "sklearn": ("learning/",),
    "securesystemslib": ("release/",),
    "cryptography": ("release/", "engines/spill.py"),
    "psutil": ("machine.py",),
    "ibis": RELATIONAL,
    "pyspark": RELATIONAL,
}
# Room -> all that it may import beside the standard library.
ONLY = {
    "measures": {"numpy", "pandas"},
    "engines": {"cryptography", "ibis", "numpy", "pandas", "pyarrow", "pyspark"},
    "errors": set[str](),
    "machine": {"psutil"},
    "parallel": set[str](),
    "progress": set[str](),
}
# Slow to import: never at the top of a module, but for orchestration, which is nothing without Dagster.
LAZY = (
    "dagster",
    "dagster_slack",
    "pandera",
    "great_expectations",
    "altair",
    "sklearn",
    "securesystemslib",
    "cryptography",
    "ibis",
    "pyspark",
)


@dataclass(frozen=True)
class Import:
    """An import: where it stands, what it imports, and whether importing its module runs it."""

    path: str
    module: str
    at_once: bool

    @property
    def room(self) -> str:
        """The room that it stands in."""
        return room_of(self.path)

    @property
    def library(self) -> str:
        """The package that is imported."""
        return self.module.split(".")[0]


def room_of(path: str) -> str:
    """The room of a file."""
    return path.split("/", maxsplit=1)[0].removesuffix(".py")


def imports() -> Iterator[Import]:
    """Every import of the package, also those in functions."""
    for file in sorted(ROOT.rglob("*.py")):
        path = file.relative_to(ROOT).as_posix()
        yield from _imports(ast.parse(file.read_text(encoding="utf-8")), path, at_once=True)


def _imports(node: ast.AST, path: str, *, at_once: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(path, alias.name, at_once)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{path}: imports are absolute"
            assert child.module is not None
            if child.module == PACKAGE:
                for alias in child.names:
                    yield Import(path, f"{PACKAGE}.{alias.name}", at_once)
            else:
                yield Import(path, child.module, at_once)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from _imports(child, path, at_once=False)
        else:
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from _imports(child, path, at_once=at_once and not inside)


ALL = tuple(imports())


def test_every_room_is_known() -> None:
    """Whoever adds a module says on which floor it stands."""
    rooms = {room_of(file.relative_to(ROOT).as_posix()) for file in ROOT.rglob("*.py")} - {"__init__"}
    assert rooms <= set(FLOOR)
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= set(FLOOR)


def test_imports_point_downwards() -> None:
    """Also those in functions; the package's own `__init__` shows what others make."""
    upwards = []
    for each in ALL:
        if each.library != PACKAGE or each.room == "__init__":
            continue
        to = each.module.split(".")[1]
        assert to in FLOOR, f"{each.path} imports {each.module}"
        allowed = to == each.room or FLOOR[to] > FLOOR[each.room] or {to, each.room} <= GLUE
        if not allowed:
            upwards.append(f"{each.path}: {each.module}")
    assert not upwards


def test_there_is_no_ring_in_the_glue() -> None:
    """Modules of one floor may know each other, but not in a circle."""
    known = {
        room: {each.module.split(".")[1] for each in ALL if each.library == PACKAGE and each.room == room}
        for room in GLUE
    }

    def reach(room: str, seen: frozenset[str]) -> None:
        assert room not in seen, f"{room} imports itself by way of {sorted(seen)}"
        for following in (known[room] & GLUE) - {room}:
            reach(following, seen | {room})

    for room in GLUE:
        reach(room, frozenset())


def test_tables_and_measures_do_not_know_each_other() -> None:
    for room, other in (("tables", "measures"), ("measures", "tables")):
        assert not [
            each for each in ALL if each.room == room and each.module.startswith(f"{PACKAGE}.{other}")
        ]


@pytest.mark.parametrize("library", IMPORTERS)
def test_who_imports_what(library: str) -> None:
    strangers = [
        each.path
        for each in ALL
        if each.library == library
        and not any(
            each.path.startswith(place) if place.endswith("/") else each.path == place
            for place in IMPORTERS[library]
        )
    ]
    assert not strangers


@pytest.mark.parametrize("room", ONLY)
def test_rooms_with_few_libraries(room: str) -> None:
    found = {each.library for each in ALL if each.room == room} - {PACKAGE} - set(sys.stdlib_module_names)
    assert found <= ONLY[room]


def test_engines_in_memory_know_no_arrow() -> None:
    assert not [
        each.path
        for each in ALL
        if each.room == "engines" and each.library == "pyarrow" and each.path not in RELATIONAL
    ]


def test_heavy_libraries_are_imported_where_they_are_needed() -> None:
    """Dagster takes seconds: the library and the command line do without it until it is asked for."""
    at_once = {
        f"{each.path}: {each.module}"
        for each in ALL
        if each.at_once
        and each.library in LAZY
        and not (each.library == "dagster" and each.room in {"orchestration", "definitions"})
        # Expectations are classes of that library; who imports the module wants it.
        and not (each.library == "great_expectations" and each.path == "evidence/expectations.py")
    }
    assert not at_once


def test_the_demo_imports_dagster_only_when_it_runs() -> None:
    assert not [
        each.path for each in ALL if each.room == "demo" and each.library == "dagster" and each.at_once
    ]


def test_importing_the_library_imports_nothing_heavy() -> None:
    """In a fresh process, the command line included."""
    code = f"""
import sys
import {PACKAGE}
import {PACKAGE}.cli
print([name for name in {(*LAZY, "duckdb", "sqlalchemy", "matplotlib")!r} if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_everything_public_is_there() -> None:
    """And the gate, although it is imported late."""
    code = f"import {PACKAGE} as dp; print([name for name in dp.__all__ if not hasattr(dp, name)])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_private_modules_of_other_libraries_stay_out() -> None:
    """Where one is needed, it is named here, and a test notices when it moves."""
    private = [
        f"{each.path}: {each.module}"
        for each in ALL
        if each.library not in {PACKAGE, "__future__"}
        and any(part.startswith("_") for part in each.module.split("."))
    ]
    assert private == [
        "orchestration/evaluations.py: dagster._core.event_api",
        "orchestration/evaluations.py: dagster._core.storage.asset_check_execution_record",
    ]
