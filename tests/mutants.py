"""Small faults put into a copy of the project, one at a time, and which of them the tests of their room miss.

Cosmic Ray makes the mutants. A seeded sample of them is tried within the time that is given, as many of each
room; each has the time of the room's tests a few times over, after which it counts as noticed.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import difflib
import importlib
import os
import py_compile
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest
from support.paths import ROOT
from support.processes import fork
from support.sampling import SEED

PACKAGE = "disclosure_pipeline"
COPIED = (PACKAGE, "tests", "docs", "benchmarks", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")

# The rooms whose faults would change a figure or a decision, and the tests that ought to notice. Before them
# come those that have the name of the module.
ROOMS: dict[str, tuple[str, ...]] = {
    "measures": (
        *("tests/measures", "tests/evaluation/test_against_reference.py", "tests/evaluation/test_cap.py"),
        *("tests/evaluation/test_checks.py", "tests/evaluation/test_protection.py"),
    ),
    "policy": ("tests/policy",),
    "release": (
        *("tests/release/test_statement.py", "tests/release/test_verify.py", "tests/release/test_keys.py"),
        *("tests/release/test_pruning.py", "tests/release/test_release.py"),
    ),
    "candidates": ("tests/evaluation/test_mismatches.py", "tests/candidates"),
    "counting/memory": ("tests/counting/test_kernel.py", "tests/evaluation/test_against_reference.py"),
}
SHARED_EXAMPLES = Path("shared", "sd2011")

# Of the replacements of an operator, the nearest: what is far from it any test would notice.
REPLACEMENTS = {
    "BinaryOperator": "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul BitAnd_BitOr "
    "BitOr_BitAnd BitXor_BitOr LShift_RShift RShift_LShift",
    "ComparisonOperator": "Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt "
    "Is_IsNot IsNot_Is",
    "UnaryOperator": "USub_UAdd Delete_USub Delete_Not Delete_Invert",
}

OUTPUT = "tests.log"
# What takes seconds to import, and holds no code of the project: it is there before a process is forked.
IMPORTED_ONCE = (
    "altair",
    "dagster",
    "great_expectations",
    "hypothesis",
    "pandera",
    "pyarrow.parquet",
    "sklearn",
)
PYTEST = "-q -x --assert=plain -p no:xdist -p no:cacheprovider"


@dataclass(frozen=True)
class Mutant:
    """A place in a module, and what Cosmic Ray does there."""

    room: str
    module: Path
    operator: str
    occurrence: int
    line: int


@contextmanager
def copy_of_the_project() -> Iterator[Path]:
    """A folder with the files of the project; the example data lie beside it, as beside the project."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy)
        if (ROOT.parent / SHARED_EXAMPLES).is_dir():
            (copy.parent / "shared").symlink_to(ROOT.parent / "shared")
        yield copy


def operators() -> list[tuple[str, Any]]:
    """What Cosmic Ray can do to a piece of code, by its name."""
    from cosmic_ray.plugins import get_operator, operator_names

    actual = []
    for name in operator_names():
        kind, _, replacement = name.removeprefix("core/Replace").partition("_")
        near = not replacement or replacement in REPLACEMENTS[kind].split()
        operator = get_operator(name)
        if near and not operator.arguments():
            actual.append((name, operator()))
    return actual


def mutants(room: str) -> list[Mutant]:
    """Every mutant of the modules of a room, but for those of what has no effect on a figure."""
    from cosmic_ray.ast import ast_nodes, get_ast

    actual = []
    for module in sorted((Path(PACKAGE) / room).rglob("*.py")):
        source = module.read_text(encoding="utf-8")
        nodes, dead = list(ast_nodes(get_ast(source))), without_effect(source)
        for name, operator in operators():
            places = (start for node in nodes for start, _ in operator.mutation_positions(node))
            for occurrence, (line, column) in enumerate(places):
                if not any(start <= (line, column) < end for start, end in dead):
                    actual.append(Mutant(room, module, name, occurrence, line))
    return actual


Place = tuple[int, int]


def without_effect(source: str) -> list[tuple[Place, Place]]:
    """From where to where annotations stand, and the options of data classes, which only keep others out."""
    actual = []
    for node in ast.walk(ast.parse(source)):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        for decorator in getattr(node, "decorator_list", []):
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "dataclass":
                parts += [option.value for option in decorator.keywords]
        for part in parts:
            if part is not None:
                end = (part.end_lineno, part.end_col_offset)
                actual.append(((part.lineno, part.col_offset), end))
    return actual


def sample(seed: int) -> list[Mutant]:
    """All mutants in an order drawn by the seed, one of each room after the other."""
    rooms = []
    for room in ROOMS:
        every = mutants(room)
        random.Random(f"{seed} {room}").shuffle(every)
        rooms.append(every)
    return [mutant for mutant in chain.from_iterable(zip_longest(*rooms)) if mutant is not None]


def tests_of(mutant: Mutant) -> list[str]:
    """The tests of its module by their name, then those of its room."""
    files = sorted(map(str, Path("tests").rglob(f"test_{mutant.module.stem.removesuffix('s')}*.py")))
    for place in ROOMS[mutant.room]:
        files += [place] if place.endswith(".py") else sorted(map(str, Path(place).glob("test_*.py")))
    return list(dict.fromkeys(files))


def run_tests(files: Sequence[str]) -> int:
    """The exit code of pytest; what it prints goes into a file beside the copy."""
    with Path("..", OUTPUT).open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        sys.path[:0] = [str(Path.cwd()), str(Path("tests").resolve())]
        for name in [name for name in sys.modules if name.partition(".")[0] == "support"]:
            del sys.modules[name]  # the copy has its own
        return int(pytest.main([*PYTEST.split(), *files]))


def are_the_tests_passed(files: Sequence[str], limit: float) -> bool:
    """Whether they pass, in a forked process that is killed with all that it starts after so many seconds."""
    child = fork(run_tests, files)
    try:
        return child.outcome.poll(limit) and child.result() == 0
    except AssertionError:  # it died
        return False
    finally:
        child.kill()


def seconds_of_the_tests(room: str) -> float:
    """How long the tests of a room take; they have to pass as long as nothing is broken."""
    before = time.monotonic()
    if not are_the_tests_passed(tests_of(Mutant(room, Path(room), "", 0, 0)), 1800):
        raise SystemExit(
            f"The tests of {room} fail without a mutant:\n{Path('..', OUTPUT).read_text()[-3000:]}"
        )
    return time.monotonic() - before


def main() -> None:
    """Try mutants until the time is over, and list those that no test noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--room", choices=list(ROOMS), action="append", help="only this one, as often as wanted"
    )
    options = parser.parse_args()
    for room in set(ROOMS) - set(options.room or ROOMS):
        del ROOMS[room]

    os.environ.pop("CI", None)
    with copy_of_the_project() as copy:
        os.chdir(copy)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(copy), str(copy / "tests")])
        # By their content: a mutant may be as old as the original, to the second.
        compileall.compile_dir(".", quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        sys.dont_write_bytecode = True
        for name in IMPORTED_ONCE:
            importlib.import_module(name)
        survivors, tried = try_mutants(sample(options.seed), time.monotonic() + 60 * options.minutes)
    noticed = tried - len(survivors)
    print(f"\n{noticed} of {tried} mutants were noticed (seed {options.seed}); these were not:\n")
    print("\n\n".join(survivors))


def try_mutants(every: Sequence[Mutant], deadline: float) -> tuple[list[str], int]:
    """The mutants that no test noticed, as they would be shown in a review, and how many were tried."""
    from cosmic_ray.mutating import use_mutation
    from cosmic_ray.plugins import get_operator

    survivors: list[str] = []
    limits: dict[str, float] = {}
    tried = 0
    for mutant in every:
        if mutant.room not in limits:
            limits[mutant.room] = 30 + 3 * seconds_of_the_tests(mutant.room)
        if time.monotonic() > deadline:
            break
        operator = get_operator(mutant.operator)()
        with use_mutation(mutant.module, operator, mutant.occurrence) as (original, mutated):
            noticed = not are_the_tests_passed(tests_of(mutant), limits[mutant.room])
        tried += 1
        place = f"{mutant.module}:{mutant.line}"
        print(f"{'noticed' if noticed else 'SURVIVED':8} {place} {mutant.operator}", flush=True)
        if not noticed:
            survivors.append(f"{place} {mutant.operator}\n{changed_lines(original, mutated)}")
    return survivors, tried


def changed_lines(original: str, mutated: str) -> str:
    """The lines that a mutant takes away and puts in their place."""
    lines = list(difflib.unified_diff(original.splitlines(), mutated.splitlines(), lineterm="", n=0))
    return "\n".join(line for line in lines[2:] if not line.startswith("@@"))


if __name__ == "__main__":
    main()
