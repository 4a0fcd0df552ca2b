"""The reference names all that there is: attributes, commands, public names, extras."""

import inspect
import re
import sys
from pathlib import Path
from types import UnionType
from typing import get_args

import code_reference
import column_reference
import command_reference
import gallery
import gate_reference
import generated
import pytest
import yaml
from support.paths import ROOT
from support.sampling import only_in_ci

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.frame_columns import COLUMNS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_attribute_of_a_gate_is_there_with_its_words() -> None:
    page = gate_reference.page()
    for model, attribute in gate_reference.attributes():
        section = page.split(f"## {model}\n")[1].split("\n## ")[0]
        assert f"| `{attribute}` | " in section
    assert "| `name` | text | required | Prefix of the gate's assets |" in page
    targets = set(re.findall(r"\]\(#(\w+)\)", page))
    assert targets <= {name.lower() for name in re.findall(r"^## (\w+)$", page, re.MULTILINE)}


def test_every_command_is_there_with_its_options() -> None:
    page = command_reference.page()
    for name, command in command_reference.commands():
        assert f"## {name}\n" in page
        assert command.startswith("Usage: disclosure-pipeline")
        assert "--help" in command
    assert "### disclosure-pipeline dictionary draft\n" in page


def test_every_public_name_is_there_with_its_docstring() -> None:
    page = code_reference.page()
    for name in dp.__all__:
        if name == "DisclosureGate":
            continue
        section = page.split(f"\n### {name}\n")[1].split("\n### ")[0]
        value = getattr(dp, name)
        if isinstance(value, UnionType):
            assert all(kind.__name__ in section for kind in get_args(value))
            continue
        first = (inspect.getdoc(value) or "").splitlines()[0]
        assert first
        assert first in section
    assert page.count("```") % 2 == 0
    assert "#### Disclosure.plot" in page


def test_every_column_of_every_frame_is_there_with_its_words() -> None:
    sections = column_reference.page().split("## `")[1:]
    assert [section.split("`")[0] for section in sections] == list(COLUMNS)
    for section, columns in zip(sections, COLUMNS.values(), strict=True):
        rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
        assert [row[0].removeprefix("| ") for row in rows] == list(columns)
        for row, words in zip(rows, columns.values(), strict=True):
            assert row[1:4] == [words.title, words.sentence, words.unit_and_denominator]
            assert row[4:] == [words.high_is, f"{words.source} |"]


@pytest.mark.parametrize("path", generated.list_documents(), ids=lambda path: path.stem)
def test_generated_parts_are_current(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert generated.fill_in(text) == text, "make reference writes them anew"


@only_in_ci("draws every picture")
def test_pictures_of_the_gallery_are_current(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    pytest.importorskip("sklearn")
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    gallery.draw(page, tmp_path)
    shown = re.findall(r"\]\(images/gallery/([\w.]+)\)", page)
    names = {path.name for path in tmp_path.iterdir()}
    assert shown and names == set(shown) == {path.name for path in generated.PICTURES.iterdir()}
    for kept in sorted(generated.PICTURES.iterdir()):
        drawn = NUMBER.split((tmp_path / kept.name).read_text(encoding="utf-8"))
        stored = NUMBER.split(kept.read_text(encoding="utf-8"))
        assert drawn[::2] == stored[::2], f"make reference draws {kept.name} anew"
        # Positions differ in their last digits from one processor to the next.
        assert [float(number) for number in drawn[1::2]] == pytest.approx(
            [float(number) for number in stored[1::2]], rel=1e-6, abs=1e-6
        ), f"make reference draws {kept.name} anew"


def test_every_extra_is_named() -> None:
    text = (ROOT / "docs" / "how_to" / "own_project.md").read_text(encoding="utf-8")
    extras = set(PROJECT["project"]["optional-dependencies"])
    rows = {
        name
        for line in text.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert rows == extras


def test_the_locks_are_parts_of_one_and_name_nothing_but_packages() -> None:
    version = r"^[a-z0-9][a-z0-9._-]*(\[[a-z0-9, _-]+\])?==[\w.+!]+( ; .+)? \\$"
    pinned = re.compile(rf"{version}|^    --hash=sha256:[0-9a-f]{{64}}( \\)?$")

    def read(name: str) -> set[str]:
        lines = (ROOT / f"{name}.lock").read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if not pinned.match(line)]
        return {line.split(" ;")[0].removesuffix(" \\") for line in lines if line[0] != " "}

    def without_extras(pins: set[str]) -> set[str]:
        return {re.sub(r"\[.*?\]", "", pin) for pin in pins}

    whole, demo, docs, ui, lowest, newest = (
        read(f"requirements{part}") for part in ("", "-demo", "-docs", "-ui", "-lowest", "-newest")
    )
    assert without_extras(ui | demo) | docs <= without_extras(whole)
    for pins, without in (
        (docs, ("dagster", "pandas")),
        (demo, ("pyspark", "dagster-webserver", "mypy==", "sdmetrics")),
    ):
        assert not [pin for pin in pins if pin.startswith(without)]
    assert [pin for pin in ui if pin.startswith("dagster-webserver")]
    dependencies = "\n".join(PROJECT["project"]["dependencies"])
    for name in ("numpy", "pandas", "pyarrow", "pydantic", "great-expectations"):
        [bound] = re.findall(rf"^{name}>=([0-9.]+)", dependencies, flags=re.MULTILINE)
        assert [pin for pin in lowest if re.fullmatch(rf"{name}=={bound}(\.0)*", pin)], name
    assert [pin for pin in newest if pin.startswith("pandas==3.")]


def test_the_citation_can_be_read() -> None:
    """The fields that the Citation File Format 1.2.0 demands, and what they have to agree with."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project, known = PROJECT["project"], {"cff-version", "message", "title", "authors", "type", "version"}
    assert known < set(citation) <= known | {"license", "abstract", "keywords", "references"}
    assert (citation["cff-version"], citation["type"]) == ("1.2.0", "software")
    assert isinstance(citation["message"], str) and isinstance(citation["title"], str)
    assert citation["authors"]
    for author in citation["authors"]:
        assert {"name"} <= set(author) or {"family-names", "given-names"} <= set(author)
    assert citation["version"] == project["version"] == dp.__version__
    assert citation["license"] == project["license"]
    assert all({"type", "title", "authors"} <= set(reference) for reference in citation["references"])
    [paper] = [reference for reference in citation["references"] if "Raab" in str(reference["authors"])]
    assert {"type": "other", "value": "arXiv:2406.16826"}.items() <= paper["identifiers"][0].items()


def test_the_hooks_run_what_the_first_minute_of_ci_runs() -> None:
    """All of them programs that are installed: no repository is fetched."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repository["repo"] for repository in hooks["repos"]] == ["local"]
    entries = [hook["entry"] for hook in hooks["repos"][0]["hooks"]]
    assert all(hook["language"] == "system" for hook in hooks["repos"][0]["hooks"])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [line] = re.findall(r"^lint:.*\n\t(.*)$", makefile, re.MULTILINE)
    assert entries == [command.replace("$(BIN)", ".venv/bin") for command in line.split(" && ")]
