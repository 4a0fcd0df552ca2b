"""Which tests reach a line of the package, and how long each takes: found by running them once."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest

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

        What is worked out once, when the module is imported, all tests of the module reach.
        """
        of_lines = self.tests.get(str(module.resolve()), {})
        statement = lines_of_statement(module.read_text(encoding="utf-8"), line)
        none = frozenset[str]()
        reaching = none.union(*(of_lines.get(number, none) for number in statement))
        reaching = reaching or none.union(*of_lines.values()) or frozenset(self.seconds)
        return sorted(reaching, key=lambda test: (self.seconds[test], test))


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


def measure_reach(package: Path, pytest_options: Sequence[str]) -> dict[str, Any]:
    """Run tests and note the lines of the package that each of them reaches: the parts of a Reach."""
    measurement = coverage.Coverage(data_file=None, source=[str(package)], config_file=False)
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
