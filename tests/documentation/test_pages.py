"""The blocks of the pages: code runs and prints what is shown, definitions load, commands are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from support.page_blocks import BLOCK, blocks, run_code
from support.paths import DOCS, ROOT, SD2011
from support.sampling import only_in_ci, some_of

from disclosure_pipeline.cli.main import main
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.waivers import Waiver

HOW_TO = sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "how_to").glob("*.md"))


@pytest.mark.parametrize(
    "page", some_of([page for page in HOW_TO if "```python" in (DOCS / page).read_text()])
)
def test_code_of_the_how_to_pages(page: str) -> None:
    run_code(page)


def test_code_of_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_code("tutorial.md")


@only_in_ci("draws every picture, as the site does")
def test_code_of_the_gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It saves every picture that the page shows."""
    pytest.importorskip("vl_convert")
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    run_code("gallery.md")
    shown = re.findall(r"\]\(generated/([\w.]+)\)", (DOCS / "gallery.md").read_text(encoding="utf-8"))
    assert shown
    assert {*shown, "disclosure.png"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.skipif(not (SD2011 / "synthesizers").is_dir(), reason="the example data are not there")
def test_figures_of_the_synthesizers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SD2011.parent)
    run_code("synthesizers.md")


def test_every_picture_of_the_library_is_in_the_gallery() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    drawing = set()
    for path in (ROOT / "disclosure_pipeline").rglob("*.py"):
        drawing |= set(re.findall(r"def (plot_[a-z]\w+)\($", path.read_text(encoding="utf-8"), re.MULTILINE))
    public = {name for name in drawing if f"dp.{name}" in page}
    assert public == {"plot_cap_distributions", "plot_individual_cap"}
    assert page.count(".plot()") >= 3


# Definitions

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


def test_the_configuration_to_copy_is_that_of_the_repository() -> None:
    [copied] = [text for language, text in blocks("how_to/own_project.md") if "run_retries" in text]
    assert copied == (ROOT / "dagster_home" / "dagster.yaml").read_text(encoding="utf-8")


# Commands


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
