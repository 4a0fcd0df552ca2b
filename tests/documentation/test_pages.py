"""The blocks of the pages: code runs and prints what is shown, definitions load, commands are there."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from support.paths import DOCS, PACKAGE, ROOT
from support.sampling import some_of

import disclosure_pipeline as dp
from disclosure_pipeline.cli.main import main
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import Waiver

BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return [(block[1], block[2]) for block in BLOCK.finditer(text)]


def run_code(page: str, begins_with: str | None = None) -> None:
    """Run a page's code in one namespace; what a block prints is the `text` block after it, or nothing.

    A page may begin with the tables that another one makes.
    """
    names: dict[str, Any] = {}
    if begins_with:
        _run_blocks(begins_with, names)
    _run_blocks(page, names)


def _run_blocks(page: str, names: dict[str, Any]) -> None:
    of_page = [block for block in blocks(page) if block[0] in {"python", "text"}]
    assert of_page
    for i, (language, text) in enumerate(of_page):
        if language == "text":
            assert of_page[i - 1][0] == "python", f"no code prints block {i}"
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, f"{page}, block {i}", "exec", dont_inherit=True), names)
        shown = of_page[i + 1][1] if i + 1 < len(of_page) and of_page[i + 1][0] == "text" else ""
        assert _without_trailing_blanks(printed.getvalue()) == _without_trailing_blanks(shown), f"block {i}"


def _without_trailing_blanks(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


HOW_TO = sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "how_to").glob("*.md"))


OF_OTHERS = "how_to/common_synthesizers.md"  # see test_common_synthesizers.py


@pytest.mark.parametrize(
    "page",
    some_of([page for page in HOW_TO if "```python" in (DOCS / page).read_text() and page != OF_OTHERS]),
)
def test_code_of_the_how_to_pages(page: str) -> None:
    run_code(page)


def test_code_of_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_code("tutorial.md")


def test_every_picture_of_the_library_is_in_the_gallery() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    drawing = [
        method
        for result in (getattr(dp, name) for name in dp.__all__ if name != "DisclosureGate")
        if isinstance(result, type)
        for method in vars(result)
        if method.startswith("plot")
    ]
    assert len(drawing) > len(set(drawing)) > 1
    for method in set(drawing):
        assert len(set(re.findall(rf"(\S+)\.{method}\(\)", page))) == drawing.count(method)


DEFINITION: dict[str, Any] = {
    "name": "survey",
    "ground_truth": "gate/survey.csv",
    "incoming": "gate/incoming",
    "store": "gate/store",
    "releases": "gate/releases",
    "trusted_keys": "gate/keys/public-key.pem",
    "columns": {
        "sex": {"type": "category"},
        "age": {"type": "integer"},
        "region": {"type": "category"},
        "income": {"type": "integer", "groups": 20},
        "work": {"type": "category"},
    },
    "keys": ["sex", "age", "region"],
    "targets": ["income", "work"],
    "policy": {"repU": 5, "DiSCO": {"beyond": 3}},
}


def definitions() -> Iterator[tuple[str, str]]:
    for page in ("tutorial.md", *HOW_TO):
        yield from ((page, text) for language, text in blocks(page) if language == "yaml")


@pytest.mark.parametrize(("page", "text"), list(definitions()))
def test_definitions_are_taken(page: str, text: str) -> None:
    content = yaml.safe_load(text)
    if "run_retries" in content:
        return  # the configuration of Dagster's instance
    if "clause" in content:
        Waiver.model_validate({"name": "example", **content})
        return
    attributes = content["attributes"] if "attributes" in content else DEFINITION | content
    assert Gate.model_validate(attributes).clauses()


def commands() -> Iterator[tuple[str, str]]:
    for path in [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]:
        for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
            for line in block[2].splitlines() if block[1] == "console" else ():
                if "$ disclosure-pipeline " in line:
                    yield path.name, line.split("$ disclosure-pipeline ", 1)[1]


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_commands_and_their_options_are_there(page: str, line: str) -> None:
    words = line.split()
    command: click.Command = main
    while isinstance(command, click.Group):
        inner = command.commands.get(words.pop(0))
        assert inner is not None, line
        command = inner
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= known | {"--help"}


MEASURES = sorted(
    path.relative_to(DOCS).as_posix() for path in (DOCS / "measures").glob("*.md") if path.name != "gate.md"
)
PAGES = ["measures.md", *MEASURES, "expectations.md", "other_packages.md", "pandas_and_scikit_learn.md"]

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


_MODULE = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)*\.py\b")
_FOLDER = re.compile(r"`([a-z_]+(?:/[a-z_]+)*)/`")


def modules(page: Path) -> set[str]:
    return set(_MODULE.findall(page.read_text(encoding="utf-8")))


def exists(path: str) -> bool:
    return any((base / path).exists() for base in (ROOT, PACKAGE))


DOCUMENTS = sorted(DOCS.rglob("*.md"))
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
