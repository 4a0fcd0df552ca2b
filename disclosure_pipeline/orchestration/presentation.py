"""What Dagster's user interface shows: tables, numbers that plot over releases, column schemas."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg
import pandas as pd

from disclosure_pipeline.evaluation.glossary import describe_column
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.figures import to_rows
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.effective_clauses import list_effective_clauses
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.public_figures import PublicJudgement
from disclosure_pipeline.policy.registry import MEASURES, values
from disclosure_pipeline.policy.verdict import Judgement
from disclosure_pipeline.tables.contract import Violation

Metadata = Mapping[str, Any]


def check_names(clauses: Sequence[Clause]) -> dict[str, str]:
    """Clause -> name of its check, such as DiSCO__income: letters, digits and '_' only, no name twice."""
    names: dict[str, str] = {}
    for clause in clauses:
        parts = [clause.measure, clause.column, clause.share_of and f"share_of_{clause.share_of}"]
        name = re.sub(r"[^A-Za-z0-9_]", "_", "__".join(part for part in parts if part))
        while name in names.values():
            name += "_"
        names[clause.name] = name
    return names


FOR_ANYBODY = "for_anybody"
"""The metadata of a check that say what a notice may say of it: no exact figure of GT."""


def check_result(public: PublicJudgement, name: str, asset: dg.AssetKey) -> dg.AssetCheckResult:
    """A clause as the result of its check, with `value` and `bound` to be plotted: the exact figures."""
    judgement = public.judgement
    return dg.AssetCheckResult(
        passed=judgement.outcome == "kept",
        asset_key=asset,
        check_name=name,
        severity=dg.AssetCheckSeverity.WARN if warns(judgement) else dg.AssetCheckSeverity.ERROR,
        description=str(judgement),
        metadata=show_numbers({"value": judgement.value, "bound": judgement.limit})
        | {"outcome": judgement.outcome, "over": judgement.clause.over, FOR_ANYBODY: str(public)},
    )


def warns(judgement: Judgement) -> bool:
    """Whether a clause that is not kept is only warned of: as the policy says, or by a waiver."""
    return judgement.clause.warns or judgement.outcome == "waived"


def waivers_result(
    waivers: Sequence[Mapping[str, Any]], void: Sequence[str], asset: dg.AssetKey
) -> dg.AssetCheckResult:
    """The waivers of a candidate's dossier as the result of a check; `void` are those that no content has.

    Refused ones are an error, used and void ones a warning.
    """
    refused = [f"{waiver['name']} is refused: {waiver['problem']}" for waiver in waivers if waiver["problem"]]
    used = [f"{waiver['name']} lets {waiver['clause']} pass" for waiver in waivers if not waiver["problem"]]
    description = "; ".join([*refused, *used, *void]) or "No waiver is needed and none is there"
    return dg.AssetCheckResult(
        passed=not (refused or used or void),
        asset_key=asset,
        check_name="waivers",
        severity=dg.AssetCheckSeverity.ERROR if refused else dg.AssetCheckSeverity.WARN,
        description=description,
        metadata={
            "refused": len(refused),
            "used": len(used),
            "void": len(void),
            FOR_ANYBODY: description,
        },
    )


def show_numbers(figures: Mapping[str, float | None]) -> dict[str, dg.FloatMetadataValue]:
    """Numbers as metadata; what is missing or not finite is left out."""
    return {
        name: dg.MetadataValue.float(float(value))
        for name, value in figures.items()
        if value is not None and math.isfinite(value)
    }


def show_worst_figures(result: Disclosure, frames: Iterable[str]) -> dict[str, dg.FloatMetadataValue]:
    """The riskiest value over the syntheses of every measure (and target) in some frames of the result."""
    figures = {}
    for name, measure in MEASURES.items():
        if measure.frame in frames:
            for target in result.targets if measure.per_target else [None]:
                label = name if target is None else f"{name}__{target}"
                figures_of_syntheses = values(result, name, target)
                figures[label] = (min if measure.high_is_safe else max)(
                    figures_of_syntheses, default=math.nan
                )
    return show_numbers(figures)


def show_table(frame: pd.DataFrame, name: str | None = None) -> dg.TableMetadataValue:
    """A frame as a table; its index becomes columns. Missing values are empty.

    `name`: that of the frame in the result, by which the columns are described.
    """
    flat = frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()
    records = [
        dg.TableRecord({name: _format_value(value) for name, value in row.items()}) for row in to_rows(flat)
    ]
    return dg.MetadataValue.table(records, schema=frame_schema(flat, name))


def _format_value(value: Any) -> Any:
    if value is None:
        return ""
    return round(value, 4) if isinstance(value, float) else value


def _name_type(column: pd.Series[Any]) -> str:
    return {"f": "float", "i": "int", "b": "bool"}.get(column.dtype.kind, "string")


def frame_schema(frame: pd.DataFrame, name: str | None = None) -> dg.TableSchema:
    """The columns of a frame, for the panel of that name; `name` as in `show_table`."""
    return dg.TableSchema(
        [
            dg.TableColumn(
                str(column),
                _name_type(frame[column]),
                (describe_column(str(column), name) or None) if name else None,
            )
            for column in frame.columns
        ]
    )


def dictionary_schema(gate: Gate) -> dg.TableSchema:
    """The data dictionary of a gate, for the column panel; keys and targets are tagged."""
    role = dict.fromkeys(gate.keys, "key") | dict.fromkeys(gate.targets, "target")
    return dg.TableSchema(
        [
            dg.TableColumn(
                name,
                column.type,
                column.description or None,
                tags={"role": role[name]} if name in role else {},
            )
            for name, column in gate.columns.items()
        ]
    )


def effective_clauses(clauses: Sequence[Clause]) -> dg.MarkdownMetadataValue:
    """The clauses that are in force, as a list."""
    return dg.MetadataValue.md("\n".join(f"- {clause}" for clause in list_effective_clauses(clauses)))


def clauses_table(clauses: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """The clauses of a dossier: the value, the bound and the outcome of each."""
    names = ["name", "over", "value", "at_least", "limit", "outcome", "warns"]
    return show_table(pd.DataFrame(clauses, columns=names))


def violations_table(violations: Sequence[Violation]) -> dg.TableMetadataValue:
    """Violations of a contract: where, which rule, how many records; never a value."""
    names = ["table", "column", "rule", "records", "share"]
    return show_table(pd.DataFrame([vars(violation) for violation in violations], columns=names))
