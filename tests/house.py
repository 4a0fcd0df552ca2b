"""Count what there is to know: modules, lines, names, words, and how far a table's way through them is.

`make house` prints it. docs/architecture.md says what the numbers should be.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from support.paths import PACKAGE, ROOT
from support.processes import run_program

MOST_OF_ONE_STEM = 2


def count_lines(folder: Path) -> dict[Path, int]:
    """Return the lines of each module below a folder, without those that only make a folder a package."""
    files = (file for file in sorted(folder.rglob("*.py")) if file.name != "__init__.py")
    return {file.relative_to(ROOT): file.read_text(encoding="utf-8").count("\n") for file in files}


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def find_repeated_stems() -> dict[str, int]:
    """Return the names that more modules of the package have than should."""
    stems = Counter(file.stem for file in count_lines(PACKAGE))
    return {stem: number for stem, number in stems.items() if number > MOST_OF_ONE_STEM}


def find_repeated_classes() -> list[str]:
    """List the names that more than one public class of the package has."""
    names = Counter(
        node.name
        for file in PACKAGE.rglob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, number in names.items() if number > 1)


def count_words() -> int:
    """Return the words of the documents, without the parts that are generated."""
    generated = re.compile(
        r"^<!-- (generated: \w+|study) -->$.*?^<!-- /(generated|study) -->$", re.DOTALL | re.MULTILINE
    )
    documents = (file.read_text(encoding="utf-8") for file in (ROOT / "docs").rglob("*.md"))
    return sum(len(generated.sub("", document).split()) for document in documents)


class Walk:
    """Follow a call until its last calls are `ends_in`, if given: modules on the way, and calls above it."""

    def __init__(self, *ends_in: str) -> None:
        self.modules: set[str] = set()
        self.chain: list[str] = []
        self._ends_in = ends_in
        self._seen: set[CodeType] = set()

    def __enter__(self) -> Walk:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or self.chain or (code in self._seen and code.co_name not in self._ends_in):
            return
        self._seen.add(code)
        file = Path(code.co_filename)
        if PACKAGE not in file.parents or file.suffix != ".py" or code.co_name == "<module>":
            return  # a template is no module
        self.modules.add(_module(file))
        if code.co_name in self._ends_in[-1:]:
            chain = list(_callers(frame))[::-1]
            self.chain = chain if (*chain,)[-len(self._ends_in) :] == self._ends_in else []


def _callers(frame: FrameType | None) -> Iterator[str]:
    """Name the functions of the package on the stack; comprehensions and lambdas are part of theirs."""
    while frame is not None:
        if PACKAGE in Path(frame.f_code.co_filename).parents and not frame.f_code.co_name.startswith("<"):
            yield frame.f_code.co_name
        frame = frame.f_back


def walk_a_disclosure() -> Walk:
    """Follow `dp.disclosure` of two small tables to where the figures of a target, as DiSCO, are integers."""
    import pandas as pd

    import disclosure_pipeline as dp

    table = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
    dp.disclosure(table, table, ["age"], "illness")  # what is imported when it is first needed is no way
    with Walk("count_target", "count_figures") as walk:
        dp.disclosure(table, table, ["age"], "illness")
    return walk


def walk_a_gate() -> tuple[Walk, Walk]:
    """Follow two runs of a small gate: one to the release of its candidate, one to a refusal."""
    from support import gates, homes

    for file in count_lines(PACKAGE):  # what runs as it is imported is no way
        importlib.import_module(_module(ROOT / file))
    candidates = {"honest": gates.honest(), "leaky": gates.ground_truth()}
    with homes.new_home() as path, homes.opened(path, homes.code_location()) as home:
        home.prepare(candidates)
        walks = []
        for candidate in candidates:
            with Walk() as walk:
                run = home.run_gate(candidate)
            assert run.success == (candidate == "honest")
            walks.append(walk)
    return walks[0], walks[1]


def time_collection() -> float:
    """Return the seconds that pytest needs to collect the suite."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
    ran = run_program(command, cwd=ROOT)
    assert ran.returncode == 0, ran.stdout
    return time.perf_counter() - start


def main() -> None:
    """Print the counts, a line each."""
    lines, tests = count_lines(PACKAGE), count_lines(ROOT / "tests")
    longest, most = max(lines.items(), key=lambda item: item[1])
    walk, (released, refused) = walk_a_disclosure(), walk_a_gate()
    seconds = time_collection()
    stems = [f"{stem} {number}" for stem, number in find_repeated_stems().items()]
    for name, value in {
        "modules": len(lines),
        "lines": sum(lines.values()),
        "longest module": f"{longest} {most}",
        f"names of more than {MOST_OF_ONE_STEM} modules": ", ".join(stems) or "none",
        "names of several classes": ", ".join(find_repeated_classes()) or "none",
        "lines of tests": sum(tests.values()),
        "words of documents": count_words(),
        "seconds of collection": f"{seconds:.1f}",
        "from dp.disclosure to DiSCO": f"{len(walk.modules)} modules, {len(walk.chain) - 1} calls",
        "from incoming to releases": f"{len(released.modules)} modules",
        "from incoming to a refusal": f"{len(refused.modules)} modules",
    }.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
