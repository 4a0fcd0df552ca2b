"""The figures of the documentation are what its code prints."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = ["measures.md", "expectations.md", "other_packages.md"]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What looks like a figure but names an edition: "arXiv:2406.16826", "1.9-2", "SDMetrics 0.29".
_EDITION = re.compile(r"arXiv:\S+|\d+\.\d+-\d+|SDMetrics \d+\.\d+")
_FIGURE = re.compile(r"\d+\.\d+|\d+(?= ?%)")


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each fenced block."""
    return [(found[1], found[2]) for found in _BLOCK.finditer((DOCS / page).read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES)
def test_code_prints_what_the_page_shows(page: str) -> None:
    """Blocks run in order in one namespace; what one prints is the `text` block after it, or nothing."""
    names: dict[str, Any] = {}
    found = blocks(page)
    assert found
    for i, (language, text) in enumerate(found):
        assert language in {"python", "text"}, f"block {i} is {language!r}: nothing holds it"
        if language == "text":
            assert found[i - 1][0] == "python", f"no code prints block {i}"
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, f"{page}, block {i}", "exec"), names)
        shown = found[i + 1][1] if i + 1 < len(found) and found[i + 1][0] == "text" else ""
        assert without_trailing_blanks(printed.getvalue()) == without_trailing_blanks(shown), f"block {i}"


def without_trailing_blanks(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


@pytest.mark.parametrize("page", PAGES)
def test_figures_in_sentences_are_printed_on_the_page(page: str) -> None:
    """A decimal or a percentage in a sentence is one that some block prints."""
    text = (DOCS / page).read_text(encoding="utf-8")
    sentences = _EDITION.sub("", re.sub(r"`[^`\n]*`", "", _BLOCK.sub("", text)))
    printed = {figure for language, block in blocks(page) if language == "text" for figure in numbers(block)}
    assert set(_FIGURE.findall(sentences)) <= printed


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:\.\d+)?", text))


# Modules that are named


PACKAGE = ROOT / "disclosure_pipeline"
_MODULE = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)*\.py\b")
_FOLDER = re.compile(r"`([a-z_]+(?:/[a-z_]+)*)/`")


def modules(page: Path) -> set[str]:
    """Paths of modules, wherever the page names them."""
    return set(_MODULE.findall(page.read_text(encoding="utf-8")))


def exists(path: str) -> bool:
    """Whether there is such a path in the repository or in the package."""
    return any((base / path).exists() for base in (ROOT, PACKAGE))


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), ROOT / "README.md"], ids=lambda page: page.name)
def test_every_module_that_is_named_exists(page: Path) -> None:
    assert not [path for path in modules(page) if not exists(path)]


def test_the_architecture_names_every_floor() -> None:
    """And modules of most floors, all of which exist, as the folders do."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    folders = set(_FOLDER.findall(text))
    assert not [folder for folder in folders if not exists(folder)]
    floors = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    assert floors <= folders
    assert floors - {path.split("/")[0] for path in modules(DOCS / "architecture.md")} <= {
        "demo",
        "orchestration",
        "runtime",
    }
