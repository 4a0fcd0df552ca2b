"""The figures of the documentation are what its code prints."""

import re
from pathlib import Path

import pytest
from support.page_blocks import BLOCK, blocks, run_code
from support.paths import DOCS, PACKAGE, ROOT

MEASURES = sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "measures").glob("*.md"))
PAGES = ["measures.md", *MEASURES, "expectations.md", "other_packages.md"]

# What looks like a figure but names an edition: "arXiv:2406.16826", "1.9-2", "SDMetrics 0.29".
_EDITION = re.compile(r"arXiv:\S+|\d+\.\d+-\d+|SDMetrics \d+\.\d+")
_FIGURE = re.compile(r"\d+\.\d+|\d+(?= ?%)")


@pytest.mark.parametrize("page", PAGES)
def test_code_prints_what_the_page_shows(page: str) -> None:
    strange = {language for language, _ in blocks(page)} - {"python", "text"}
    assert not strange, f"nothing holds blocks of {strange}"
    run_code(page, begins_with="measures.md" if page in MEASURES else None)


@pytest.mark.parametrize("page", PAGES)
def test_figures_in_sentences_are_printed_on_the_page(page: str) -> None:
    """A decimal or a percentage in a sentence is one that some block prints."""
    text = (DOCS / page).read_text(encoding="utf-8")
    sentences = _EDITION.sub("", re.sub(r"`[^`\n]*`", "", BLOCK.sub("", text)))
    printed = {
        figure
        for language, block in blocks(page)
        if language == "text"
        for figure in re.findall(r"\d+(?:\.\d+)?", block)
    }
    assert set(_FIGURE.findall(sentences)) <= printed


# Modules that are named


_MODULE = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)*\.py\b")
_FOLDER = re.compile(r"`([a-z_]+(?:/[a-z_]+)*)/`")


def modules(page: Path) -> set[str]:
    """Paths of modules, wherever the page names them."""
    return set(_MODULE.findall(page.read_text(encoding="utf-8")))


def exists(path: str) -> bool:
    """Whether there is such a path in the repository or in the package."""
    return any((base / path).exists() for base in (ROOT, PACKAGE))


DOCUMENTS = [path for path in sorted(DOCS.rglob("*.md")) if "generated" not in path.parts]
DOCUMENTS += [ROOT / "README.md", ROOT / "tests" / "mutants.md"]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
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
