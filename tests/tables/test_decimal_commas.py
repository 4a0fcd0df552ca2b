"""Text with decimal commas: read as declared, and named where it is not."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from support import gates
from support.figures import without_guards
from support.gates import run_command
from support.refusals import refusal

import disclosure_pipeline as dp
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.tables.contract import read_canonical
from disclosure_pipeline.tables.dictionary import Column, Contract, ContractError
from disclosure_pipeline.tables.sources import FileSource, read_raw

NAMES = ("gt.csv", "synthetic.csv")
Sources = tuple[FileSource, FileSource]


def people(seed: int, records: int = 400) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": random.choice(["f", "m"], records),
            "age": random.integers(18, 60, records),
            "pay": np.round(random.lognormal(8, 0.5, records), 2),
            "note": random.choice(["a, b", "c", "1,2 or 3"], records),
        }
    )


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """GT and SD as R's write.csv2 and Excel write them in most of Europe, declared as such."""
    for seed, name in enumerate(NAMES, start=1):
        people(seed).to_csv(tmp_path / name, index=False, sep=";", decimal=",")
    gt, sd = (FileSource(path=str(tmp_path / name), delimiter=";", decimal=",") for name in NAMES)
    return gt, sd


def read_frames(sources: Sources) -> tuple[pd.DataFrame, pd.DataFrame]:
    gt, sd = (pd.read_csv(source.path, sep=";", decimal=",") for source in sources)
    return gt, sd


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
@pytest.mark.parametrize("how", [{"groups": {"pay": 10}}, {"within": {"pay": 0.1}}, {}])
def test_figures_are_those_of_points(sources: Sources, engine: str, how: dict[str, Any]) -> None:
    with without_guards():
        expected = dp.disclosure(*read_frames(sources), ["sex", "age"], ["pay", "note"], **how)
        actual = dp.disclosure(*sources, ["sex", "age"], ["pay", "note"], engine=engine, **how)
    for name in ("attribute", "identity", "target_overlap", "bands"):
        pd.testing.assert_frame_equal(actual.frame(name), expected.frame(name))


def test_only_numbers_are_changed(tmp_path: Path) -> None:
    others = ["a,b", "1,2,3", "1,2 or 3", "7", "05.04.2020", "2020-01-02"]
    texts = ["1,5", "-,5", "+2,25e3", " 3,0 ", *others]
    (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{text};x\n" for text in texts))
    raw = read_raw(FileSource(path=str(tmp_path / "t.csv"), delimiter=";", decimal=","), "T")
    assert raw["a"].tolist() == ["1.5", "-.5", "+2.25e3", " 3.0 ", *others]
    with pytest.raises(ValidationError):
        FileSource(path="t.csv", decimal="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [["1,5", "2.5"], ["1.234,56"], ["1.234.567"], ["999,50", "1.234"]])
@pytest.mark.parametrize("far", [False, True])
def test_separators_of_thousands_are_not_read_as_decimals(
    tmp_path: Path, values: list[str], far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disclosure_pipeline.tables.text_files._BLOCK", 1 << 12)
    first, *rest = values
    between = ["7"] * (5_000 if far else 1)  # far apart: in different batches
    (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{text};x\n" for text in [first, *between, *rest]))
    source = FileSource(path=str(tmp_path / "t.csv"), delimiter=";", decimal=",")
    message = str(refusal(lambda: read_raw(source, "T"), *values))
    assert message.startswith("T: column 'a' has numbers with a decimal comma, and numbers with a point")


@pytest.mark.parametrize("how", [{"groups": {"pay": 10}}, {"within": {"pay": 0.1}}])
@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_what_is_not_declared_is_named(sources: Sources, how: dict[str, Any], engine: str) -> None:
    one, other = (source.model_copy(update={"decimal": None}) for source in sources)
    message = str(refusal(lambda: dp.disclosure(one, other, ["sex", "age"], ["pay"], engine=engine, **how)))
    both = "In the ground truth and the synthetic table its numbers have a decimal comma"
    assert both in message and "declare the source's decimal: ','" in message


def test_one_table_with_commas_and_one_with_points(sources: Sources, tmp_path: Path) -> None:
    people(1).to_csv(tmp_path / "points.csv", index=False, sep=";")
    tables = sources[0], FileSource(path=str(tmp_path / "points.csv"), delimiter=";")
    undeclared = sources[0].model_copy(update={"decimal": None})
    doubts = dp.disclosure(undeclared, tables[1], ["sex"], ["pay"]).comparability_doubts
    assert any("Some differ only by a decimal comma" in doubt for doubt in doubts)
    declared = dp.disclosure(*tables, ["sex"], ["pay"])
    assert not any("'pay'" in doubt for doubt in declared.comparability_doubts)
    expected = dp.disclosure(people(1), people(1), ["sex"], ["pay"])
    pd.testing.assert_frame_equal(declared.attribute, expected.attribute)


def test_a_dictionary_says_it_of_the_type(sources: Sources) -> None:
    undeclared = sources[0].model_copy(update={"decimal": None})
    columns = {"pay": Column(type="number")}
    with pytest.raises(ContractError, match="is not of type number: its numbers have a decimal comma"):
        read_canonical(undeclared, Contract(columns, "T", ["pay"], only_known=False))
    assert not read_canonical(sources[0], Contract(columns, "T", ["pay"], only_known=False)).frame.empty
    with pytest.raises(ContractError) as broken:
        read_canonical(undeclared, Contract({"note": Column(type="number")}, "T", ["note"], only_known=False))
    assert "comma" not in str(broken.value)


def test_the_command_line(sources: Sources) -> None:
    paths = [source.path for source in sources]
    options = ("--key", "sex", "--key", "age", "--target", "pay", "--groups", "pay=10")
    refused = run_command("measure", *paths, *options, "--delimiter", ",")
    assert refused.exit_code == 1 and "--delimiter" in refused.stderr
    refused = run_command("measure", *paths, *options, "--delimiter", ";", "--decimal", ".")
    assert refused.exit_code == 1 and "decimal comma" in refused.stderr
    shown = run_command("measure", *paths, *options, "--delimiter", ";", "--decimal", ",")
    frames = read_frames(sources)
    expected = dp.disclosure(*frames, ["sex", "age"], ["pay"], groups={"pay": 10}).attribute["DiSCO"].item()
    assert shown.exit_code == 0 and f"{expected:.2f}" in shown.stdout
    page = run_command("measure", *paths, *options, "--delimiter", ";", "--decimal", ",", "--format", "html")
    assert "<html" in page.stdout
    draft = run_command("dictionary", "draft", paths[0], "--confidential", "--decimal", ".")
    assert (
        "# its numbers have a decimal comma" in draft.stdout and str(people(1)["pay"][0]) not in draft.stdout
    )
    draft = run_command(
        "dictionary", "draft", paths[0], "--confidential", "--delimiter", ";", "--decimal", ","
    )
    assert "pay:\n    type: number\n" in draft.stdout
    assert run_command("measure", *paths, *options, "--delimiter", "ab").exit_code == 2


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_a_gate_reads_its_ground_truth_as_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    table = gates.ground_truth()
    table["age"] = table["age"].astype(float)
    table.to_csv(tmp_path / "gt.csv", index=False, sep=";", decimal=",")
    source = {"path": "gt.csv", "delimiter": ";", "decimal": ","}
    folders = folders_of(gates.resolve(gates.definition(ground_truth=source, engine=engine)).gate)
    actual = gates.evaluate_copy(folders)
    assert actual.result.identity["repU"][1] == actual.result.identity["UiO"][1] > 0
