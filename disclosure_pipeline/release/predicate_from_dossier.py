"""The predicate of an approved candidate, made from the content of its dossier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from disclosure_pipeline.policy.judgement_rows import read_judgement_row
from disclosure_pipeline.policy.public_figures import PublicJudgement, publish, round_records
from disclosure_pipeline.policy.verdict import Judgement
from disclosure_pipeline.policy.waivers import Waiver
from disclosure_pipeline.release.predicate import (
    ClauseStated,
    ConfidentialStated,
    GroundTruthStated,
    PageStated,
    PolicyStated,
    Predicate,
    StatementError,
    SyntheticStated,
    WaiverStated,
)
from disclosure_pipeline.release.validation_errors import locate_errors


def build_predicate(
    content: Mapping[str, Any],
    definition: Mapping[str, Any],
    *,
    dossier: str,
    ground_truth: str,
    tables: Mapping[str, int],
    run_id: str,
    measured_at: datetime,
    published_at: datetime,
    page: str | None = None,
    confidential: Mapping[str, str] | None = None,
) -> Predicate:
    """The predicate of an approved candidate, from its dossier's content.

    `definition` is the policy section as plain data, `dossier` the sha256 of the dossier's file,
    `ground_truth` the salted hash of GT, `confidential` that of each further confidential table, by name,
    `tables` the numbers of records of the released tables by name, `page` the name of the released page, if
    there is one.
    StatementError where the dossier says anything but approved, or lacks a figure.
    """
    from disclosure_pipeline.evidence.dossier import read_versions

    try:
        figures, rows = content["figures"], content["clauses"]
        _require_measured(tables, figures["N_s"])
        used_names = {row["waiver"] for row in rows if row.get("waiver")}
        waivers = {row["name"]: row for row in content.get("waivers", ()) if row["name"] in used_names}
        policy = PolicyStated(
            digest=content["policy_digest"],
            keys=tuple(figures["keys"]),
            targets=tuple(figures["targets"]),
            definition=dict(definition),
        )
        smallest_count, records = int(definition["smallest_count"]), [figures["N_d"], *figures["N_s"]]
        if min(records) < 1:
            raise ValueError("a table is empty")
        public = publish([_to_judgement(row, waivers) for row in rows], records, smallest_count)
        clauses = [
            (row["control"], _state_clause(row, judgement))
            for row, judgement in zip(rows, public, strict=True)
        ]
        return Predicate(
            gate=content["gate"],
            candidate=content["candidate"],
            decision=content["decision"],
            snapshot=content["measured"]["snapshot"],
            policy=policy,
            clauses=tuple(clause for is_control, clause in clauses if not is_control),
            controls=tuple(clause for is_control, clause in clauses if is_control),
            waivers=tuple(
                WaiverStated.model_validate({name: row[name] for name in WaiverStated.model_fields})
                for row in waivers.values()
            ),
            ground_truth=GroundTruthStated(
                salted_hash=ground_truth, records=round_records(figures["N_d"], smallest_count)
            ),
            confidential=tuple(
                ConfidentialStated(name=name, salted_hash=digest)
                for name, digest in (confidential or {}).items()
            ),
            synthetic=tuple(SyntheticStated(name=name, records=records) for name, records in tables.items()),
            dossier=dossier,
            page=None if page is None else PageStated(name=page, rounded_to=content["smallest_count"]),
            documentation=content["documentation"],
            versions=read_versions(),
            run_id=run_id,
            measured_at=measured_at,
            published_at=published_at,
        )
    except ValidationError as error:
        problem = "; ".join(locate_errors(error))
    except (KeyError, TypeError, ValueError) as error:
        problem = f"a {type(error).__name__} came up"
    raise StatementError(f"No statement can be made of this dossier: {problem}. Run dossier again.")


def _require_measured(tables: Mapping[str, int], measured: Sequence[int]) -> None:
    """ValueError unless the files hold as many tables, of as many records, as were measured.

    A table that is there in two formats counts once.
    """
    repeated = [name for name in tables if f"{name.removesuffix('.csv')}.parquet" in tables.keys() - {name}]
    if sorted(records for name, records in tables.items() if name not in repeated) != sorted(measured):
        raise ValueError("the files are not the tables that were measured")


def _to_judgement(row: Mapping[str, Any], waivers: Mapping[str, Mapping[str, Any]]) -> Judgement:
    waiver_row = waivers[row["waiver"]] if row.get("waiver") else None
    waiver = Waiver(**{name: waiver_row[name] for name in Waiver.model_fields}) if waiver_row else None
    if not all(row[name] is None or math.isfinite(row[name]) for name in ("value", "limit")):
        raise ValueError("a figure is not finite")
    # Without its note, in whose place a statement has the figure, the bound and who waived it.
    return read_judgement_row({**row, "note": ""}, waiver)


def _state_clause(row: Mapping[str, Any], judgement: PublicJudgement) -> ClauseStated:
    of_row = {name: row[name] for name in ClauseStated.model_fields if name != "words"}
    rounded = {"value": judgement.value, "limit": judgement.limit, "words": str(judgement)}
    return ClauseStated(**(of_row | rounded))
