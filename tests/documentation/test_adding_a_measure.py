"""Adding a figure touches as many files as the architecture says, and no more."""

import re
from pathlib import Path

import disclosure_pipeline

ROOT = Path(disclosure_pipeline.__file__).parents[1]
GUARD = re.compile(r"missing_b(?:eyond|y_chance)")


def files_with_the_guard() -> set[str]:
    files = {
        file.relative_to(ROOT).as_posix()
        for folder, suffixes in (
            ("disclosure_pipeline", {".py", ".html", ".css", ".sql"}),
            ("docs", {".md", ".py", ".yaml", ".yml", ".json"}),
            ("tests", {".py"}),
        )
        for file in (ROOT / folder).rglob("*")
        if file.suffix in suffixes and GUARD.search(file.read_text(encoding="utf-8"))
    }
    # The page that lists them, the page that is generated, and this search.
    own = {"docs/architecture.md", "docs/reference/glossary.md", Path(__file__).relative_to(ROOT).as_posix()}
    return files - own


def test_the_architecture_lists_every_file_that_knows_a_guard() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = text[text.index("The columns of the figure `missing`") :]
    listed = listed[: listed.index("\n\nA measure also gets")]
    actual = files_with_the_guard()
    assert set(re.findall(r"`([\w/]+\.\w+)`", listed)) == actual
    for folder, most in (("disclosure_pipeline", 5), ("docs", 2), ("tests", 2)):
        assert 0 < sum(file.startswith(f"{folder}/") for file in actual) <= most
