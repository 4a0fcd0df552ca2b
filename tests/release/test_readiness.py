"""What is said of a gate before a candidate comes: its folders, its environment, its packages."""

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest
from support import gate_steps, gates
from support.surveys import TABLES, gate_of

from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.release import readiness
from disclosure_pipeline.release.readiness import Finding, check_readiness

NOW = datetime(2024, 6, 1, tzinfo=timezone.utc)


@pytest.fixture
def folders(tmp_path: Path) -> GateFolders:
    gates.ground_truth().to_csv(tmp_path / "ground_truth.csv", index=False)
    return gate_steps.folders(tmp_path, gates.definition(), "auto", "ground_truth.csv")


def of_subject(folders: GateFolders, subject: str) -> list[Finding]:
    return [finding for finding in check_readiness(folders, NOW) if finding.subject == subject]


def test_the_home_is_said_to_be_set_up_where_it_is(
    folders: GateFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    [finding] = of_subject(folders, "DAGSTER_HOME")
    assert finding.is_problem and "is not set" in finding.sentence
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "nowhere"))
    [finding] = of_subject(folders, "DAGSTER_HOME")
    assert finding.is_problem and "no folder" in finding.sentence
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    [finding] = of_subject(folders, "DAGSTER_HOME")
    assert not finding.is_problem and "no dagster.yaml" in finding.sentence
    (tmp_path / "dagster.yaml").touch()
    [finding] = of_subject(folders, "DAGSTER_HOME")
    assert not finding.is_problem and finding.sentence.endswith("set up by dagster.yaml")


def test_packages_are_asked_for_only_where_they_are_needed(
    folders: GateFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "find_spec", lambda package: None)
    extras = ("measures", "notify", "engine")
    assert not [finding for subject in extras for finding in of_subject(folders, subject)]
    definition = gates.definition(measures={"prediction": True})
    with_learner = gate_steps.folders(tmp_path, definition, "auto", "ground_truth.csv")
    [finding] = of_subject(with_learner, "measures")
    assert finding.is_problem and "disclosure-pipeline[prediction]" in finding.sentence
    monkeypatch.setattr(readiness, "find_spec", lambda package: package)
    assert of_subject(with_learner, "measures") == []


@pytest.mark.parametrize("modes", [(True, False), (False, True)])
def test_a_folder_must_be_one_that_can_be_entered_and_written(
    modes: tuple[bool, bool], folders: GateFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a user who may do one of both; root may do everything."""
    may_write, may_enter = modes

    def access(path: object, mode: int) -> bool:
        return (may_write or not mode & os.W_OK) and (may_enter or not mode & os.X_OK)

    monkeypatch.setattr(os, "access", access)
    assert [finding.is_problem for finding in of_subject(folders, "store")] == [True]


@pytest.mark.parametrize("name", TABLES)
def test_records_that_repeat_are_asked_whose_they_are(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates.with_keys(tmp_path, monkeypatch)
    make, unit, _, _ = TABLES[name]
    make(1).to_csv(tmp_path / "gt.csv", index=False)
    with_unit, without = (
        gate_steps.folders(tmp_path, gate_of(name, with_unit=named), "memory", "gt.csv")
        for named in (True, False)
    )
    [finding] = of_subject(with_unit, "unit")
    assert f"of {make(1)[unit].nunique():,} units" in finding.sentence
    assert not finding.is_doubt
    [finding] = of_subject(without, "unit")
    assert finding.is_doubt and not finding.is_problem
    assert "Have people several records?" in finding.sentence


def test_a_table_that_tells_no_one_apart_is_a_problem(
    folders: GateFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates.with_keys(tmp_path, monkeypatch)
    [described] = of_subject(folders, "columns")
    assert not described.is_problem
    table = gates.ground_truth()
    table.iloc[[0] * len(table)].to_csv(tmp_path / "ground_truth.csv", index=False)
    [finding, *_] = of_subject(folders, "columns")
    assert finding.is_problem
    assert "100.0 % of the records equal another one in every column" in finding.sentence


def test_nobody_asks_where_records_hardly_repeat(
    folders: GateFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates.with_keys(tmp_path, monkeypatch)
    assert not of_subject(folders, "ground_truth")[0].is_problem
    assert of_subject(folders, "unit") == []
