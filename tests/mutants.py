"""Small faults put into a copy of the project, one at a time, and which of them the tests of their room miss.

Cosmic Ray makes the mutants. A seeded sample of them is tried within the time that is given, as many of each
room, by the tests that reach their line: those that end soonest first. What takes several times as long as
without a mutant counts as noticed.
"""

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
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import coverage
import pytest
from support.paths import ROOT
from support.processes import fork

PACKAGE = "disclosure_pipeline"
SEED = 20240501
COPIED = (
    PACKAGE,
    "tests",
    "docs",
    "benchmarks",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "Makefile",
    "dagster_home/dagster.yaml",
)

# The rooms whose faults would change a figure or a decision, and the tests that ought to notice.
ROOMS: dict[str, tuple[str, ...]] = {
    "measures": (
        *("tests/measures", "tests/evaluation/test_against_reference.py", "tests/evaluation/test_cap.py"),
        *("tests/evaluation/test_checks.py", "tests/evaluation/test_protection.py"),
        *("tests/evaluation/test_subgroups.py", "tests/evaluation/test_units.py"),
        *("tests/evaluation/test_bands.py", "tests/evaluation/test_together.py"),
    ),
    "policy": ("tests/policy", "tests/cli/test_policy_draft.py", "tests/release/test_keys.py"),
    "release": (
        *("tests/release/test_statement.py", "tests/release/test_verify.py", "tests/release/test_keys.py"),
        *("tests/release/test_pruning.py", "tests/release/test_release.py", "tests/release/test_bytes.py"),
        *("tests/release/test_revoking.py", "tests/release/test_standing.py", "tests/cli/test_verdicts.py"),
        *("tests/release/test_revoked_tables.py", "tests/release/test_sealed_power.py"),
    ),
    "candidates": (
        *("tests/evaluation/test_mismatches.py", "tests/candidates", "tests/cli/test_verdicts.py"),
        *("tests/orchestration/test_confidential.py", "tests/orchestration/test_synthesis_asset.py"),
    ),
    "counting/memory": (
        *("tests/counting/test_packing.py", "tests/counting/test_conformance.py"),
        *("tests/counting/test_kernel.py", "tests/counting/test_loops.py"),
        "tests/evaluation/test_against_reference.py",
        *("tests/policy/test_guards.py", "tests/evaluation/test_copies.py"),
        *("tests/evaluation/test_found.py", "tests/evaluation/test_nearest.py"),
        *("tests/evaluation/test_units.py", "tests/evaluation/test_resemblance.py"),
        "tests/evaluation/test_infinite.py",
    ),
}
EXAMPLES = "tests/test_examples.py"  # of every room
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
PYTEST = "-q --assert=plain -p no:xdist -p no:cacheprovider"


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
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy / name)
        if (ROOT.parent / SHARED_EXAMPLES).is_dir():
            (copy.parent / "shared").symlink_to(ROOT.parent / "shared")
        yield copy


def operators() -> list[tuple[str, Any]]:
    """List the changes that Cosmic Ray can make to a piece of code, by name."""
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
    """From where to where annotations stand, and what only keeps others from changing an object."""
    actual = []
    for node in ast.walk(ast.parse(source)):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        if isinstance(node, ast.Call):
            is_dataclass = ast.unparse(node.func) == "dataclass"
            parts += [option.value for option in node.keywords if is_dataclass or option.arg == "frozen"]
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


# Fixtures that several tests share run within the first of them, and belong to all of them.
FIXTURE = "fixture "


@dataclass(frozen=True)
class Reach:
    """The tests that pass by the file and line that they reach, and the seconds that each of them took.

    `failed`: tests that do not pass where they are run, and so tell nothing.
    """

    tests: dict[str, dict[int, frozenset[str]]]
    seconds: dict[str, float]
    failed: list[str]

    def find_tests(self, module: Path, line: int) -> list[str]:
        """The tests that reach the statement of a line, those that end soonest first.

        What is worked out once, when the module is imported, all tests of the module reach. What Numba
        compiles is reached unseen: by the tests that reach a line with the module's name.
        """
        of_lines, source = self.tests.get(str(module.resolve()), {}), module.read_text(encoding="utf-8")
        none = frozenset[str]()
        reaching = none.union(*(of_lines.get(number, none) for number in lines_of_statement(source, line)))
        reaching = reaching or none.union(*of_lines.values(), *self._find_callers(module.stem, source))
        return sorted(reaching or self.seconds, key=lambda test: (self.seconds[test], test))

    def _find_callers(self, name: str, source: str) -> Iterator[frozenset[str]]:
        """Yield the tests that reach each line in which a module is named, if it is compiled."""
        for file, of_lines in self.tests.items() if "import numba" in source else ():
            lines = Path(file).read_text(encoding="utf-8").splitlines()
            yield from (tests for number, tests in of_lines.items() if f"{name}." in lines[number - 1])


def lines_of_statement(source: str, line: int) -> range:
    """The lines of the innermost statement of a line; of one that has a body, those before the body."""
    lines = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):  # what is inside comes later
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            lines = range(node.lineno, body[0].lineno if body else (node.end_lineno or node.lineno) + 1)
    return lines


class Recorder:
    """A plugin of pytest that tells the measurement of lines which test or shared fixture runs."""

    def __init__(self, measurement: coverage.Coverage) -> None:
        self.measurement = measurement
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.fixtures: dict[str, frozenset[str]] = {}
        self.failed: set[str] = set()
        self.running = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self.running = item.nodeid
        self.fixtures[item.nodeid] = frozenset(getattr(item, "fixturenames", ()))
        self.measurement.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        self.measurement.switch_context(FIXTURE + fixturedef.argname)
        try:
            return (yield)
        finally:
            self.measurement.switch_context(self.running)

    def tests_of(self, context: str) -> frozenset[str]:
        """The test of a context, or all that use its fixture; none of what is imported."""
        name = context.removeprefix(FIXTURE)
        if name != context:
            return (
                frozenset(test for test, fixtures in self.fixtures.items() if name in fixtures) - self.failed
            )
        return frozenset({context} if context in self.fixtures else ()) - self.failed


def measure_reach(pytest_options: Sequence[str]) -> dict[str, Any]:
    """Run tests and note the lines of the package, and of tests, that each reaches: the parts of a Reach."""
    sources = [str(Path(folder).resolve()) for folder in (PACKAGE, "tests")]
    measurement = coverage.Coverage(data_file=None, source=sources, config_file=False)
    recorder = Recorder(measurement)
    measurement.start()
    try:
        code = pytest.main(list(pytest_options), plugins=[recorder])
    finally:
        measurement.stop()
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        raise AssertionError("The tests could not be run")
    data = measurement.get_data()
    tests: dict[str, dict[int, frozenset[str]]] = {}
    for file in data.measured_files():
        of_lines: defaultdict[int, frozenset[str]] = defaultdict(frozenset)
        for line, contexts in data.contexts_by_lineno(file).items():
            of_lines[line] = frozenset[str]().union(*map(recorder.tests_of, contexts))
        tests[file] = dict(of_lines)
    seconds = {test: taken for test, taken in recorder.seconds.items() if test not in recorder.failed}
    return {"tests": tests, "seconds": seconds, "failed": sorted(recorder.failed)}


def tests_of(rooms: Sequence[str]) -> list[str]:
    """The files with the tests of rooms."""
    files = {EXAMPLES}
    for place in chain.from_iterable(ROOMS[room] for room in rooms):
        assert Path(place).exists(), f"{place} is among the tests of {', '.join(rooms)}, and not there"
        files |= {place} if place.endswith(".py") else set(map(str, Path(place).glob("test_*.py")))
    return sorted(files)


def prepare_tests() -> None:
    """In a process of its own: what tests print goes into a file beside the copy, whose code they take."""
    with Path("..", OUTPUT).open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    sys.path[:0] = [str(Path.cwd()), str(Path("tests").resolve())]
    for name in [name for name in sys.modules if name.partition(".")[0] == "support"]:
        del sys.modules[name]  # the copy has its own


def reach_of_tests(files: Sequence[str]) -> dict[str, Any]:
    """Which lines of the copy each test reaches: the parts of a Reach, whose class is another here."""
    prepare_tests()
    return measure_reach([*PYTEST.split(), *files])


def run_tests(tests: Sequence[str]) -> bool:
    """Run the tests in turn until one fails; return True if all pass."""
    prepare_tests()
    return pytest.main([*PYTEST.split(), "-x", *tests]) == pytest.ExitCode.OK


def are_the_tests_passed(tests: Sequence[str], limit: float) -> bool:
    """As `run_tests`, in a forked process that is killed with all that it starts after so many seconds."""
    child = fork(run_tests, tests)
    try:
        return child.outcome.poll(limit) and bool(child.result())
    except AssertionError:  # it died
        return False
    finally:
        child.kill()


def main() -> None:
    """Try mutants until the time is over, and list those that no test noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=20, help="for mutants, after one run of the tests without"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--room", choices=list(ROOMS), action="append", help="only this one, as often as wanted"
    )
    options = parser.parse_args()
    for room in set(ROOMS) - set(options.room or ROOMS):
        del ROOMS[room]

    os.environ.pop("CI", None)
    os.environ["LONG_TESTS"] = "1"
    os.environ["SAMPLE_SEED"] = str(options.seed)
    with copy_of_the_project() as copy:
        os.chdir(copy)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(copy), str(copy / "tests")])
        # By their content: a mutant may be as old as the original, to the second.
        compileall.compile_dir(".", quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        sys.dont_write_bytecode = True
        for name in IMPORTED_ONCE:
            importlib.import_module(name)
        survivors, tried = try_mutants(sample(options.seed), options.minutes)
    noticed = tried - len(survivors)
    print(f"\n{noticed} of {tried} mutants were noticed (seed {options.seed}); these were not:\n")
    print("\n\n".join(survivors))


def measure_in_a_child(every: Sequence[Mutant]) -> Reach:
    """Which lines each test of the mutants' rooms reaches."""
    child = fork(reach_of_tests, tests_of(sorted({mutant.room for mutant in every})))
    child.outcome.poll(None)  # however long it takes
    try:
        return Reach(**child.result())
    except AssertionError as error:
        raise SystemExit(f"{error}\n{Path('..', OUTPUT).read_text()[-3000:]}") from None


def try_mutants(every: Sequence[Mutant], minutes: float) -> tuple[list[str], int]:
    """The mutants that no test noticed, as they would be shown in a review, and how many were tried."""
    from cosmic_ray.mutating import use_mutation
    from cosmic_ray.plugins import get_operator

    reach = measure_in_a_child(every)
    deadline = time.monotonic() + 60 * minutes
    print(
        f"{len(reach.seconds)} tests pass without a mutant; left out, as they fail: {reach.failed}",
        flush=True,
    )
    survivors: list[str] = []
    tried = 0
    for mutant in every:
        if time.monotonic() > deadline:
            break
        tests = reach.find_tests(mutant.module, mutant.line)
        limit = 30 + 3 * sum(reach.seconds[test] for test in tests)
        operator = get_operator(mutant.operator)()
        with use_mutation(mutant.module, operator, mutant.occurrence) as (original, mutated):
            noticed = not are_the_tests_passed(tests, limit)
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
