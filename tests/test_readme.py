"""The examples in the README work as they stand there."""

import re
from pathlib import Path

import pytest
import yaml
from support.paths import PACKAGE, ROOT

from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise
from disclosure_pipeline.policy.gate import Gate

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    match = re.search(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert match
    return match[1]


def test_the_gate_is_one() -> None:
    """Its policy fits the gate of the demo."""
    shipped = yaml.safe_load((PACKAGE / "defs/survey/defs.yaml").read_text())
    gate = Gate.model_validate(shipped["attributes"] | yaml.safe_load(block("yaml")))
    assert {"repU", "repU share", "DiSCO[health] beyond", "DiSCO[income]", "found[whole] beyond"} <= {
        clause.name for clause in gate.clauses()
    }


def test_the_library_in_ten_lines_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = block("python")
    assert len(code.splitlines()) <= 8
    monkeypatch.chdir(tmp_path)
    population(300).to_csv("ground_truth.csv", index=False)
    synthesise(population(300)).to_csv("synthetic.csv", index=False)
    exec(compile(code, "README.md", "exec"), {})
    assert "copied" in capsys.readouterr().out.splitlines()[0]
    assert (tmp_path / "report.html").is_file()


def test_it_is_short_and_has_a_picture() -> None:
    assert len(README.split()) <= 620
    assert len(re.findall(r"^!\[", README, re.MULTILINE)) == 1
    before, words = README.split("## The words")
    assert not re.search(r"\b(repU|UiO|DiSCO|beyond|clause)\b", before), "words stand before they are used"
    for word in ("repU", "UiO", "DiSCO", "copied", "beyond", "clause"):
        assert re.search(rf"^\|[^|]*\b{word}\b[^|]*\|", words, re.MULTILINE)


def test_the_commands_are_there() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert (
        set(re.findall(r"(?:`|\$ )make ([a-z]+)", README))
        == {"demo", "test", "ui", "bench", "docs"}
        <= set(targets)
    )


@pytest.mark.parametrize("link", re.findall(r"\]\(((?!http)[^)]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).is_file()
