"""Remedies for a refused candidate, tried on its own tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
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

pytestmark = on_some_days

SILC, GT = "survey of living conditions", gates.ground_truth()


def gate_with(
    root: Path, synthetic: pd.DataFrame, engine: str = "memory", truth: pd.DataFrame = GT, **changes: Any
) -> GateFolders:
    write(root / "gt.csv", truth)
    write(root / "others.csv", GT[:200])
    gate = folders(root, gates.definition(remedies=True, **changes), engine, "gt.csv")
    deliver(root, "candidate", synthetic)
    assert "refused" not in steps(gate, "candidate", measured_anew=False)
    return gate


def tried(gate: GateFolders) -> list[TriedRemedy] | None:
    content = measure(gate, "candidate", NOW).dossier
    return try_remedies(gate, read_snapshot("candidate", gate.store), content)


def half_copied() -> pd.DataFrame:
    return pd.concat([gates.ground_truth()[:150], gates.honest()[150:]], ignore_index=True)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> GateFolders:
    """A gate that refused a candidate half of which is copied."""
    return gate_with(tmp_path_factory.mktemp("half"), half_copied())


def outcomes_of(gate: GateFolders) -> dict[str, str]:
    return {
        clause["name"]: clause["outcome"] for clause in measure(gate, "candidate", NOW).dossier["clauses"]
    }


WHOLE = "found[whole] beyond"
NAMES = list(tried_remedies._REMEDIES)


def test_each_is_measured_as_the_gate_measures(gate: GateFolders) -> None:
    found = tried(gate) or []
    assert [remedy.name for remedy in found][: len(NAMES)] == NAMES
    removed = found[0]
    frames = (gates.ground_truth(), half_copied())
    tables = check_tables(*frames, gate.gate.keys, gate.gate.targets, gate.gate.grouping)
    after, _ = apply_remedy(Remedy.remove_unique_copies(), tables)
    assert removed.lost == len(frames[1]) - len(after.frames[1]) > 100
    measured = gates.measured(gate.gate, frames[0], after.frames[1:])
    assert removed.values[WHOLE] == measured.found["found_beyond_chance"]["whole", 1]
    assert removed.values["repU"] == measured.identity["repU"].max()
    assert removed.distance == measured.columns_apart["TVD"].max()
    assert WHOLE not in removed.broken and outcomes_of(gate)[WHOLE] == "exceeded"
    blanked = found[3]
    assert (blanked.lost, removed.blanked) == (0, 0) and blanked.blanked > 0


def test_the_page_that_is_filed_shows_them_and_no_value(gate: GateFolders) -> None:
    file_dossier(gate, "candidate")
    page = (gate.store.candidate_folder("candidate") / "dossier.html").read_text()
    assert "Refused, what now?" in page and "Remove the copies of one person" in page
    assert not [canary for canary in gates.CANARIES if canary in page]
    # It is told on the page alone: a release compares the dossier, and tries nothing.
    assert "Remove" not in (gate.store.candidate_folder("candidate") / "dossier.json").read_text()


def test_one_word_switches_it_off_and_an_approval_needs_none(gate: GateFolders, tmp_path: Path) -> None:
    off = replace(gate, gate=gate.gate.model_copy(update={"remedies": False}))
    assert off.gate.policy_digest() == gate.gate.policy_digest()
    content = measure(off, "candidate", NOW).dossier
    assert content["decision"] == "refused"
    assert try_remedies(off, read_snapshot("candidate", off.store), content) is None
    assert tried(gate_with(tmp_path, gates.honest())) is None


def test_tables_that_are_large_or_not_in_memory_are_not_tried(
    gate: GateFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tried(gate_with(tmp_path, half_copied(), "partitioned")) == []
    monkeypatch.setattr(tried_remedies, "_SECONDS", 0.0)
    assert tried(gate) == []
    monkeypatch.undo()
    monkeypatch.setattr(tried_remedies, "_MOST_RECORDS", 500)
    assert tried(gate) == []


def test_a_remedy_that_leaves_no_record_is_left_out(tmp_path: Path) -> None:
    found = tried(gate_with(tmp_path, GT.drop_duplicates(keep=False)))
    assert found is not None
    names = [remedy.name for remedy in found]
    assert names[:2] == NAMES[1:2] + NAMES[3:4]
    assert not [name for name in names if name.startswith("Remove the copies of one person")]


def test_what_cannot_be_tried_stays_broken(tmp_path: Path) -> None:
    """Copies of a further confidential table: nobody has taken them out."""
    gate = gate_with(tmp_path, half_copied(), confidential={"others": "others.csv"})
    found = tried(gate)
    broken = {
        name for name, outcome in outcomes_of(gate).items() if " of others" in name and outcome != "kept"
    }
    assert found and broken
    assert all(broken <= set(remedy.broken) for remedy in found)


def test_a_waiver_does_not_hold_for_changed_content(gate: GateFolders) -> None:
    content = measure(gate, "candidate", NOW).dossier
    [whole] = [clause for clause in content["clauses"] if clause["name"] == WHOLE]
    whole["outcome"] = "waived"
    found = try_remedies(gate, read_snapshot("candidate", gate.store), content)
    assert found is not None
    assert [WHOLE in remedy.broken for remedy in found][:4] == [False, True, False, True]


def with_amounts(seed: int) -> pd.DataFrame:
    """A table whose people only an exact amount tells apart."""
    drawn, people = np.random.default_rng(seed), 400
    return pd.DataFrame(
        {
            "sex": drawn.choice(["f", "m"], people),
            "age": drawn.integers(20, 24, people),
            "work": drawn.choice(["office", "none"], people),
            "income": drawn.integers(10_000, 1_000_000, people),
        }
    )


def test_numbers_that_are_copied_are_rounded_and_smoothed(tmp_path: Path) -> None:
    """What identifies is the amount alone: without it, nobody is copied, and no record is lost."""
    truth, fresh = with_amounts(1), with_amounts(2)
    copied = fresh.assign(income=truth["income"])
    copied.iloc[:200] = truth.iloc[:200]
    income = {"type": "integer", "label": "exact income", "published": True}
    columns, policy = gates.definition()["columns"] | {"income": income}, {"repU": 90, "DiSCO": 90}
    gate = gate_with(tmp_path, copied, truth=truth, columns=columns, targets=["work"], policy=policy)
    found = {remedy.name: remedy for remedy in tried(gate) or ()}
    smoothed, rounded = found["Smooth exact income over 10 records"], found["Round exact income to 100000"]
    assert smoothed.lost == rounded.lost == 0 < min(smoothed.blanked, rounded.blanked)
    assert outcomes_of(gate)[WHOLE] == "exceeded"
    assert WHOLE not in smoothed.broken + rounded.broken


def test_numbers_that_many_share_or_that_are_new_are_left_alone() -> None:
    truth = with_amounts(1)
    gate = gates.gate(columns={**gates.definition()["columns"], "income": {"type": "integer"}})
    for income in (truth["income"] + 1, truth["income"] // 100_000 * 100_000):
        tables = check_tables(
            truth.assign(income=income if income.nunique() < 20 else truth["income"]),
            [truth.assign(income=income)],
            gate.keys,
            gate.targets,
            gate.grouping,
        )
        assert tried_remedies._list_remedies_of_numbers(gate, tables) == {}


@pytest.mark.parametrize("weights", [{}, {"weight": "weight", "people": "weighted"}])
def test_units_weights_and_several_files_are_tried_too(tmp_path: Path, weights: dict[str, Any]) -> None:
    write(tmp_path / "gt.parquet", silc(1).assign(weight=20.5) if weights else silc(1))
    copied = leaked(SILC, 0.5)
    deliver(tmp_path, "candidate", copied.iloc[::2], copied.iloc[1::2], suffix=".parquet")
    gate = folders(tmp_path, gate_of(SILC, remedies=True, **weights), "memory", "gt.parquet")
    assert "refused" not in steps(gate, "candidate", measured_anew=False)
    found = tried(gate) or []
    assert [remedy.name for remedy in found][: len(NAMES)] == NAMES
    as_it_is = {clause["name"]: clause for clause in measure(gate, "candidate", NOW).dossier["clauses"]}
    assert as_it_is[WHOLE]["outcome"] == "exceeded"
    after = found[0].values[WHOLE]
    assert after is not None and after < as_it_is[WHOLE]["value"] / 10
