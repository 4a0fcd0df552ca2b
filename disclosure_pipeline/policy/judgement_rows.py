"""A judgement as the plain data of a dossier, and read from it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.verdict import Judgement
from disclosure_pipeline.policy.waivers import Waiver


def write_judgement_row(judgement: Judgement) -> dict[str, Any]:
    """Its clause, figure, bound and outcome; of its waiver only the name."""
    return {
        "name": judgement.clause.name,
        **asdict(judgement.clause),
        "value": judgement.value,
        "limit": judgement.limit,
        "outcome": judgement.outcome,
        "waiver": None if judgement.waiver is None else judgement.waiver.name,
        "loosened_from": judgement.clause.loosened_from,
        "note": judgement.note,
    }


def read_judgement_row(row: Mapping[str, Any], waiver: Waiver | None = None) -> Judgement:
    """The judgement of such a row, and the waiver that it names. KeyError where a field is missing."""
    clause = Clause(**{field.name: row[field.name] for field in fields(Clause)})
    return Judgement(clause, row["value"], row["limit"], row["outcome"], waiver, row["note"])
