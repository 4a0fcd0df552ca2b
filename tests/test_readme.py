"""The examples in the README work as they stand there."""

import re
from pathlib import Path

import pytest
import yaml

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise
from disclosure_pipeline.policy.gate import Gate

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    match = re.search(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert match
    return match[1]


def test_the_gate_is_one() -> None:
    written = yaml.safe_load(block("yaml"))
    assert written["type"] == f"disclosure_pipeline.{dp.DisclosureGate.__name__}"
    gate = Gate.model_validate(written["attributes"])
    assert {"repU", "unique_hits beyond", "DiSCO[health] beyond", "DiSCO[income]", "protection[income]"} <= {
        clause.name for clause in gate.clauses()
    }


def test_the_library_in_ten_lines_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = block("python")
    assert len(code.splitlines()) <= 12
    ground_truth = population(300).rename(columns={"household": "placesize"})
    monkeypatch.chdir(tmp_path)
    ground_truth.to_csv("ground_truth.csv", index=False)
    synthesise(population(300)).rename(columns={"household": "placesize"}).to_csv(
        "synthetic.csv", index=False
    )
    exec(compile(code, "README.md", "exec"), {})
    assert "repU" in capsys.readouterr().out


def test_it_is_short_and_has_a_picture() -> None:
    assert len(README.splitlines()) <= 150
    assert len(re.findall(r"^!\[", README, re.MULTILINE)) == 1
    words = README.split("## Eight words")[1].split("\n## ")[0]
    assert len([line for line in words.splitlines() if line.startswith("| ")]) == 1 + 8


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
