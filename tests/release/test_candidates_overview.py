"""Which clause of a candidate is named first, and which dossiers are the newest."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support import gate_steps, gates

from disclosure_pipeline.release.standing import describe_worst_clause, read_newest_dossiers


def clause(name: str, value: float | None, limit: float | None = 10.0, **others: Any) -> dict[str, Any]:
    """A clause as a dossier has it: an upper bound that decides, and is kept."""
    usual = {"measure": name, "outcome": "kept", "at_least": False, "warns": False, "control": False}
    return {"name": name, "value": value, "limit": limit, **usual, **others}


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (clause("a", 9.0), clause("b", 8.0)),
        (clause("a", None, outcome="undetermined"), clause("b", 1e9, outcome="exceeded")),
        (clause("a", 11.0, outcome="exceeded"), clause("b", 10.0)),
        (clause("a", 30.0, outcome="exceeded"), clause("b", 20.0, outcome="exceeded")),
        (clause("a", 11.0, outcome="waived"), clause("b", 10.0)),
        (clause("a", 11.0, at_least=True), clause("b", 20.0, at_least=True)),
        (clause("a", 0.0), clause("b", 1e9, outcome="exceeded", warns=True)),
        (clause("a", 0.0), clause("b", 10.0, control=True)),
        (clause("a", 10.1, outcome="exceeded", control=True), clause("b", 10.0)),
        (clause("a", 0.1, 0.0, outcome="exceeded"), clause("b", 1e9, outcome="exceeded")),
        (clause("a", 0.1), clause("b", 0.0, 0.0)),
        (clause("a", 0.1), clause("b", 11.0, at_least=True, measure="key_overlap")),
        (clause("a", 9.0, at_least=True, measure="key_overlap", outcome="exceeded"), clause("b", 9.9)),
    ],
)
def test_the_worst_clause_stands_most_against_a_release(
    worse: dict[str, Any], better: dict[str, Any]
) -> None:
    assert describe_worst_clause([worse, better]).startswith("a ")
    assert describe_worst_clause([better, worse]).startswith("a ")


def test_of_clauses_that_take_up_nothing_of_their_bounds_the_first_is_named() -> None:
    clauses = [clause("a", 0.0, 0.0), clause("b", 0.0), clause("c", -1.0)]
    assert describe_worst_clause(clauses).startswith("a ")
    assert describe_worst_clause(clauses[::-1]).startswith("c ")


def test_a_bound_is_written_as_it_is_kept_or_not() -> None:
    assert describe_worst_clause([]) == ""
    assert describe_worst_clause([clause("repU", 9.0)]) == "repU 9 <= 10"
    assert describe_worst_clause([clause("repU", 11.0, outcome="exceeded")]) == "repU 11 > 10"
    assert describe_worst_clause([clause("key_overlap", 11.0, at_least=True)]) == "key_overlap 11 >= 10"
    not_kept = clause("key_overlap", 9.0, at_least=True, outcome="exceeded")
    assert describe_worst_clause([not_kept]) == "key_overlap 9 < 10"
    assert describe_worst_clause([clause("repU", None)]) == "repU could not be determined"


def test_the_newest_dossiers_come_first_and_damaged_ones_not_at_all(tmp_path: Path) -> None:
    folders = gate_steps.folders(tmp_path, gates.definition(), "auto", "ground_truth.csv")
    for age, name in enumerate(("newest", "damaged", "older", "oldest")):
        path = folders.store.candidate_folder(name) / "dossier.json"
        path.parent.mkdir(parents=True)
        path.write_text("{" if name == "damaged" else json.dumps({"candidate": name, "clauses": []}))
        os.utime(path, (10**9 - age, 10**9 - age))
    names = [dossier["candidate"] for dossier in read_newest_dossiers(folders, 2)]
    assert names == ["newest", "older"]
    assert len(read_newest_dossiers(folders, 9)) == 3
