"""What the suite promises of itself: no test leans on the module of another, nor asks where it runs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.paths import ROOT

TESTS = ROOT / "tests"


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, with the names that it takes of them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_test_leans_on_the_module_of_another() -> None:
    """What several share lies in tests/support."""
    leaning = [
        f"{path}: {name}"
        for path in TESTS.rglob("*.py")
        for name in imported(path)
        if any(part.startswith("test_") and (part != name.split(".")[-1]) for part in name.split("."))
        or name.startswith("test_")
    ]
    assert not leaning


def test_nothing_but_sampling_asks_whether_this_is_ci() -> None:
    """But for packages that are missing, which are a failure there."""
    asking = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if re.search(r"environ.*\bCI\b", path.read_text(encoding="utf-8"))
    }
    assert asking <= {"support/sampling.py", "support/services.py", "mutants.py", "test_suite.py"}
