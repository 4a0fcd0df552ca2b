"""The rooms of the house: who may know whom, and who may import which library."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import house
import pytest
from support.processes import run_program
from support.sampling import on_some_days

from disclosure_pipeline.counting.engines import ENGINES

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
    {"candidates"},
    {"evidence"},
    {"policy"},
    {"families"},
    {"evaluation"},
    {"counting"},
    {"tables"},
    {"measures"},
    {"runtime"},
    {"errors"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# The engine that counts in databases: no other knows Ibis, or Arrow.
RELATIONAL = "counting/relational/"
# Library -> the places that may import it; a place ending in "/" is a folder.
IMPORTERS = {
    "dagster": ("orchestration/", "definitions.py", "demo/"),
    "dagster_slack": ("orchestration/failures.py",),
    "pandera": ("tables/contract.py",),
    "pyreadstat": ("tables/statistics_files.py",),
    "python_calamine": ("tables/workbooks.py",),
    "great_expectations": ("evidence/",),
    "altair": (
        "evaluation/plots/",
        "evaluation/power.py",
        "evaluation/resemblance.py",
        "evaluation/result.py",
        "evidence/",
        "families/individual.py",
        "families/prediction.py",
        "families/relative_errors.py",
    ),
    "click": ("cli/",),
    "jinja2": ("evidence/page/",),
    "vl_convert": ("evaluation/plots/drawing.py",),
    "rich": ("cli/", "runtime/progress.py"),
    "sklearn": ("families/learning/",),
    "securesystemslib": ("release/",),
    "cryptography": ("release/", "counting/partitioned/spill_file.py"),
    "numba": ("counting/memory/loops.py",),
    "psutil": ("runtime/machine.py",),
    "ibis": (RELATIONAL,),
    "pyspark": (RELATIONAL,),
    "psycopg": (RELATIONAL,),
}
# Room -> all that it may import beside the standard library.
ONLY = {
    "measures": {"numpy", "pandas", "scipy"},
    "counting": {"cryptography", "ibis", "numba", "numpy", "pandas", "psycopg", "pyarrow", "pyspark"},
    "errors": set[str](),
    "runtime": {"psutil", "rich"},
}
# Slow to import: never at the top of a module, but for orchestration, which is nothing without Dagster.
LAZY = (*(library for library in IMPORTERS if library not in {"click", "numba", "psutil"}), "scipy")
HEAVY = (*LAZY, "duckdb", "sqlalchemy", "matplotlib")


@dataclass(frozen=True)
class Import:
    """An import: where it stands, what it imports, and when it runs; one for the type checker never does."""

    path: str
    module: str
    runs: Literal["at once", "when called", "never"]

    @property
    def room(self) -> str:
        """The room that it stands in."""
        return room_of(self.path)

    @property
    def library(self) -> str:
        """The package that is imported."""
        return self.module.split(".")[0]


def room_of(path: str) -> str:
    return path.split("/", maxsplit=1)[0].removesuffix(".py")


@cache
def imports() -> list[Import]:
    """Return every import of the package, also those in functions."""
    return [
        imported
        for file in sorted(ROOT.rglob("*.py"))
        for imported in _imports(
            ast.parse(file.read_text(encoding="utf-8")), file.relative_to(ROOT).as_posix(), "at once"
        )
    ]


def _imports(node: ast.AST, path: str, runs: Literal["at once", "when called", "never"]) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(path, alias.name, runs)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{path}: imports are absolute"
            assert child.module is not None
            if (ROOT.parent / child.module.replace(".", "/")).is_dir():  # of modules of this package
                for alias in child.names:
                    yield Import(path, f"{child.module}.{alias.name}", runs)
            else:
                yield Import(path, child.module, runs)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from _imports(child, path, "never")
        else:
            is_later = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from _imports(child, path, "when called" if is_later and runs == "at once" else runs)


def test_every_room_is_known() -> None:
    """Whoever adds a module says on which floor it stands."""
    rooms = {room_of(file.relative_to(ROOT).as_posix()) for file in ROOT.rglob("*.py")} - {"__init__"}
    assert rooms <= set(FLOOR)
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= set(FLOOR)


def test_imports_point_downwards() -> None:
    """Also those in functions; the package's own `__init__` shows what others make."""
    upwards = []
    for imported in imports():
        if imported.library != PACKAGE or imported.room == "__init__":
            continue
        to = imported.module.split(".")[1]
        assert to in FLOOR, f"{imported.path} imports {imported.module}"
        allowed = to == imported.room or FLOOR[to] > FLOOR[imported.room]
        if not allowed:
            upwards.append(f"{imported.path}: {imported.module}")
    assert not upwards


def test_there_is_no_circle_of_modules() -> None:
    """Modules of one room may know each other, but not in a circle, nor when their functions are called."""
    modules = {
        file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for file in ROOT.rglob("*.py")
    }
    known: dict[str, set[str]] = {}
    for imported in imports():
        if imported.library == PACKAGE and imported.runs != "never" and imported.room != "__init__":
            module = imported.path.removesuffix(".py").replace("/", ".")
            known.setdefault(module, set()).add(imported.module.removeprefix(f"{PACKAGE}."))
    left = {module: others & modules for module, others in known.items()}
    while ready := [module for module, others in left.items() if not others & set(left)]:
        for module in ready:
            del left[module]
    assert not left, f"modules that import each other, or wait for those that do: {sorted(left)}"


def test_measures_do_not_know_where_counts_come_from() -> None:
    assert not [
        imported
        for imported in imports()
        if imported.room == "measures"
        and imported.module.startswith(PACKAGE)
        and ".measures." not in f"{imported.module}."
    ]


@pytest.mark.parametrize("library", IMPORTERS)
def test_who_imports_what(library: str) -> None:
    strangers = [
        imported.path
        for imported in imports()
        if imported.library == library
        and not any(
            imported.path.startswith(place) if place.endswith("/") else imported.path == place
            for place in IMPORTERS[library]
        )
    ]
    assert not strangers


@pytest.mark.parametrize("room", ONLY)
def test_rooms_with_few_libraries(room: str) -> None:
    libraries = (
        {imported.library for imported in imports() if imported.room == room}
        - {PACKAGE}
        - set(sys.stdlib_module_names)
    )
    assert libraries <= ONLY[room]


def test_engines_are_found_by_name() -> None:
    """Nobody names the class of an engine but the list of engines, and nobody asks for one's kind."""
    for file in ROOT.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for kind in ENGINES.values():
            module, _, name = kind.rpartition(".")
            is_own = file.relative_to(ROOT.parent).with_suffix("").as_posix().replace("/", ".") == module
            assert is_own or name not in text.replace(kind, ""), file
        for call in re.findall(r"isinstance\(.*", text):
            assert not re.search(r"Engine\b|InMemory|Streamed|Database(Table|Engine)|CanonicalTable", call), (
                file
            )


def test_engines_in_memory_know_no_arrow() -> None:
    assert not [
        imported.path
        for imported in imports()
        if imported.path.startswith("counting/memory/") and imported.library == "pyarrow"
    ]


def test_heavy_libraries_are_imported_where_they_are_needed() -> None:
    """Dagster takes seconds: the library and the command line do without it until it is asked for."""
    at_once = {
        f"{imported.path}: {imported.module}"
        for imported in imports()
        if imported.runs == "at once"
        and imported.library in LAZY
        and not (imported.library == "dagster" and imported.room in {"orchestration", "definitions"})
        # Expectations are classes of that library; who imports the module wants it.
        and not (imported.library == "great_expectations" and imported.path == "evidence/expectations.py")
    }
    assert not at_once


@pytest.mark.parametrize(
    ("modules", "call", "heavy"),
    [
        # What `--help` waits for.
        (["cli.main"], "", (*HEAVY, "numpy", "pandas", "pyarrow", "pydantic")),
        # What `check`, `evaluate` and `policy draft` need of a gate without templates.
        (
            ["candidates.evaluation", "orchestration.gate_file", "release.readiness"],
            f"{PACKAGE}.orchestration.gate_file.load_gate(Path({str(ROOT / 'defs' / 'survey')!r}))",
            HEAVY,
        ),
    ],
)
def test_importing_the_library_imports_nothing_heavy(
    modules: list[str], call: str, heavy: tuple[str, ...]
) -> None:
    """In a fresh process, the command line included."""
    lines = [
        "import sys",
        "from pathlib import Path",
        *(f"import {PACKAGE}.{name}" for name in modules),
        call,
    ]
    code = "\n".join([*lines, f"print([name for name in {heavy!r} if name in sys.modules])"])
    ran = run_program([sys.executable, "-c", code])
    assert ran.stdout.strip() == "[]", ran.stderr


def test_everything_public_is_there() -> None:
    """And the gate, although it is imported late."""
    code = f"import {PACKAGE} as dp; print([name for name in dp.__all__ if not hasattr(dp, name)])"
    ran = run_program([sys.executable, "-c", code])
    assert ran.stdout.strip() == "[]", ran.stderr


def test_private_modules_of_other_libraries_stay_out() -> None:
    """But for a class whose errors Dagster records without a stack (orchestration/test_run_verdicts.py)."""
    private = [
        f"{imported.path}: {imported.module}"
        for imported in imports()
        if imported.library not in {PACKAGE, "__future__"}
        and any(part.startswith("_") for part in imported.module.split("."))
    ]
    assert private == ["orchestration/steps.py: dagster._core.errors"]


def test_nothing_lies_loose() -> None:
    """Beside the folders there are only the public names, the definitions for Dagster, and the errors."""
    loose = {path.name for path in ROOT.iterdir() if path.is_file()}
    assert loose == {"__init__.py", "__init__.pyi", "definitions.py", "errors.py", "py.typed"}


def test_every_folder_says_in_a_sentence_what_it_knows() -> None:
    """And names nothing else."""
    for file in ROOT.rglob("*.py"):
        folder = file.parent
        if folder == ROOT or folder.is_relative_to(ROOT / "defs"):
            continue
        tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), folder
        assert len(tree.body) == 1, folder


def test_no_name_stands_for_more_than_two_modules() -> None:
    assert not house.find_repeated_stems()


def test_a_class_has_a_name_of_its_own() -> None:
    assert not house.find_repeated_classes()


def test_a_stranger_can_follow_a_disclosure_to_its_integer() -> None:
    """By as many calls and modules as docs/architecture.md says."""
    walk = house.walk_a_disclosure()
    assert len(walk.chain) - 1 == 5, walk.chain
    assert len(walk.modules) <= 27, walk.modules


@on_some_days
def test_a_stranger_can_follow_a_candidate_to_its_end() -> None:
    """Through as many modules as docs/architecture.md says, to a release and to a refusal."""
    released, refused = house.walk_a_gate()
    assert len(released.modules) <= 110, sorted(released.modules)
    assert len(refused.modules) <= 101, sorted(refused.modules)
