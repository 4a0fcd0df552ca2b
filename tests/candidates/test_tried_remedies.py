"""Remedies for a refused candidate, tried on its own tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support import gates
from support.gate_steps import NOW, deliver, folders, steps, write
from support.sampling import on_some_days
from support.surveys import gate_of, leaked, silc

from disclosure_pipeline.candidates import tried_remedies
from disclosure_pipeline.candidates.evaluation import file_dossier, measure
from disclosure_pipeline.candidates.snapshot import read_snapshot
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.candidates.tried_remedies import try_remedies
from disclosure_pipeline.evidence.page.clauses_section import TriedRemedy
from disclosure_pipeline.families.remedies import Remedy, apply_remedy
from disclosure_pipeline.tables.alignment import check_tables

SILC = "survey of living conditions"


def gate_with(root: Path, synthetic: pd.DataFrame, engine: str = "memory", **changes: Any) -> GateFolders:
    root.mkdir(exist_ok=True)
    write(root / "gt.csv", gates.ground_truth())
    write(root / "others.csv", gates.ground_truth()[:200])
    gate = folders(root, gates.definition(remedies=True, **changes), engine, "gt.csv")
    deliver(root, "candidate", synthetic)
    assert "refused" not in steps(gate, "candidate")
    return gate


def tried(gate: GateFolders) -> list[TriedRemedy] | None:
    content = measure(gate, "candidate", NOW).dossier
    return try_remedies(gate, read_snapshot("candidate", gate.store), content)


def half_copied() -> pd.DataFrame:
    return pd.concat([gates.ground_truth()[:150], gates.honest()[150:]], ignore_index=True)


def test_each_is_measured_as_the_gate_measures(tmp_path: Path) -> None:
    gate = gate_with(tmp_path, half_copied())
    found = tried(gate)
    assert found is not None
    assert [remedy.name for remedy in found] == list(tried_remedies._REMEDIES)
    removed = found[0]
    frames = (gates.ground_truth(), half_copied())
    tables = check_tables(*frames, gate.gate.keys, gate.gate.targets, gate.gate.grouping)
    after, _ = apply_remedy(Remedy.remove_unique_copies(), tables)
    assert removed.lost == len(frames[1]) - len(after.frames[1]) > 100
    measured = gates.measured(gate.gate, frames[0], after.frames[1:])
    assert removed.values["unique_copies beyond"] == measured.guards["unique_copies_beyond_chance"].max()
    assert removed.values["repU"] == measured.identity["repU"].max()
    assert removed.distance == measured.columns_apart["TVD"].max()
    assert "unique_copies beyond" not in removed.broken
    as_it_is = measure(gate, "candidate", NOW).dossier
    broken = {clause["name"] for clause in as_it_is["clauses"] if clause["outcome"] == "exceeded"}
    assert "unique_copies beyond" in broken
    blanked = found[-1]
    assert (blanked.lost, removed.blanked) == (0, 0) and blanked.blanked > 0


def test_the_page_that_is_filed_shows_them_and_no_value(tmp_path: Path) -> None:
    gate = gate_with(tmp_path, half_copied())
    measure(gate, "candidate", NOW)
    file_dossier(gate, "candidate")
    page = (gate.store.candidate_folder("candidate") / "dossier.html").read_text()
    assert "Refused, what now?" in page and "Remove the copies of one person" in page
    assert not [canary for canary in gates.CANARIES if canary in page]
    # It is told on the page alone: a release compares the dossier, and tries nothing.
    assert "Remove" not in (gate.store.candidate_folder("candidate") / "dossier.json").read_text()


def test_one_word_switches_it_off_and_an_approval_needs_none(tmp_path: Path) -> None:
    switched_off = gate_with(tmp_path / "off", half_copied())
    content = measure(switched_off, "candidate", NOW).dossier
    assert content["decision"] == "refused"
    gate = switched_off.gate.model_copy(update={"remedies": False})
    assert gate.policy_digest() == switched_off.gate.policy_digest()
    off = replace(switched_off, gate=gate)
    assert try_remedies(off, read_snapshot("candidate", off.store), content) is None
    assert tried(gate_with(tmp_path / "honest", gates.honest())) is None


def test_tables_that_are_large_or_not_in_memory_are_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tried(gate_with(tmp_path / "files", half_copied(), "partitioned")) == []
    gate = gate_with(tmp_path / "large", half_copied())
    monkeypatch.setattr(tried_remedies, "_SECONDS", 0.0)
    assert tried(gate) == []
    monkeypatch.undo()
    monkeypatch.setattr(tried_remedies, "_MOST_RECORDS", 500)
    assert tried(gate) == []


def test_a_remedy_that_leaves_no_record_is_left_out(tmp_path: Path) -> None:
    found = tried(gate_with(tmp_path, gates.ground_truth().drop_duplicates(keep=False)))
    assert found is not None
    assert [remedy.name for remedy in found] == [
        "Remove the records that single a person out",
        "Blank the targets that copies disclose",
    ]


def test_what_cannot_be_tried_stays_broken(tmp_path: Path) -> None:
    """Copies of a further confidential table: nobody has taken them out."""
    gate = gate_with(tmp_path, half_copied(), confidential={"others": "others.csv"})
    found = tried(gate)
    assert found
    as_it_is = measure(gate, "candidate", NOW).dossier["clauses"]
    broken = {
        clause["name"] for clause in as_it_is if clause["about"] == ["others"] and clause["outcome"] != "kept"
    }
    assert broken
    assert all(broken <= set(remedy.broken) for remedy in found)


def test_a_waiver_does_not_hold_for_changed_content(tmp_path: Path) -> None:
    gate = gate_with(tmp_path, half_copied())
    content = measure(gate, "candidate", NOW).dossier
    broken = "unique_copies beyond"
    for clause in content["clauses"]:
        if clause["name"] == broken:
            clause["outcome"] = "waived"
    found = try_remedies(gate, read_snapshot("candidate", gate.store), content)
    assert found is not None
    assert [broken in remedy.broken for remedy in found] == [False, True, False, True]


@on_some_days
@pytest.mark.parametrize("weights", [{}, {"weight": "weight", "people": "weighted"}])
def test_units_weights_and_several_files_are_tried_too(tmp_path: Path, weights: dict[str, Any]) -> None:
    write(tmp_path / "gt.parquet", silc(1).assign(weight=20.5) if weights else silc(1))
    copied = leaked(SILC, 0.5)
    deliver(tmp_path, "candidate", copied.iloc[::2], copied.iloc[1::2], suffix=".parquet")
    gate = folders(tmp_path, gate_of(SILC, remedies=True, **weights), "memory", "gt.parquet")
    assert "refused" not in steps(gate, "candidate")
    found = tried(gate)
    assert found is not None
    assert [remedy.name for remedy in found] == list(tried_remedies._REMEDIES)
    as_it_is = {clause["name"]: clause for clause in measure(gate, "candidate", NOW).dossier["clauses"]}
    assert as_it_is["unique_copies beyond"]["outcome"] == "exceeded"
    after = found[0].values["unique_copies beyond"]
    assert after is not None and after < as_it_is["unique_copies beyond"]["value"] / 10
