"""The contract of a table, checked with pandera: counts of violations, never a value.

pandera's own errors hold raw values in their text, their failure cases and their pickle. They do not
leave this module.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.dictionary import Column, Dictionary, canonical_levels
from disclosure_pipeline.tables.sources import read_raw


@dataclass(frozen=True)
class Violation:
    """A rule that a table breaks: by how many of its records, and what share of them (0 to 1)."""

    table: str
    column: str
    rule: str
    records: int
    share: float

    def __str__(self) -> str:
        return f"{self.table}, column {self.column!r}: {self.rule} ({self.records} records, {self.share:.2%})"


class ContractError(InputError):
    """A table breaks its contract. `violations` says where and how often."""

    def __init__(self, violations: Collection[Violation]) -> None:
        super().__init__("; ".join(map(str, violations)))
        self.violations = tuple(violations)

    def __reduce__(self) -> tuple[type[ContractError], tuple[tuple[Violation, ...]]]:
        return (ContractError, (self.violations,))


def violations(
    raw: pd.DataFrame, dictionary: Dictionary, table: str, needed: Collection[str], only_known: bool
) -> list[Violation]:
    """What a raw table (`sources.read_raw`) breaks of the dictionary.

    Every needed column is there and holds a value at all; values are of the column's type, among its
    levels, within its range; with `only_known`, no column is there that the dictionary does not describe.
    Checks run whatever the environment says of pandera.
    """
    import pandera.pandas as pa
    from pandera.config import ValidationDepth, config_context

    if not len(raw):
        return [Violation(table, "(all)", "the table has no records", 0, 1.0)]
    schema = pa.DataFrameSchema(
        {
            name: pa.Column(checks=_checks(column, pa), nullable=True, required=name in needed)
            for name, column in dictionary.items()
        },
        strict=only_known,
    )
    try:
        with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
            schema.validate(raw, lazy=True)
    except pa.errors.SchemaErrors as errors:
        return [_violation(error, raw, table) for error in errors.schema_errors]
    return []


def _checks(column: Column, pa: Any) -> list[Any]:
    """Rules on the categories; a record fails when its category does. Missing passes all but the last."""

    def rule(name: str, passes: Any) -> Any:
        def by_record(series: pd.Series[Any]) -> pd.Series[Any]:
            values, missing, unreadable = canonical_levels(column, _categories(series))
            passed = np.append(missing | passes(values, unreadable), True)
            return pd.Series(passed[series.cat.codes.to_numpy()], index=series.index)

        return pa.Check(by_record, name=name, ignore_na=False, n_failure_cases=1)

    def never_missing(series: pd.Series[Any]) -> bool:
        _, missing, _ = canonical_levels(column, _categories(series))
        return not np.append(missing, True)[series.cat.codes.to_numpy()].all()

    rules = [rule(f"is no {column.type}", lambda _, unreadable: ~unreadable)]
    if column.levels is not None:
        known = list(column.levels)
        rules.append(rule("is none of the declared levels", lambda values, _: np.isin(values, known)))
    if column.range is not None:
        low, high = column.range
        special = list(column.special_values)
        rules.append(
            rule(
                "is outside the range",
                lambda values, unreadable: (
                    unreadable | ((values >= low) & (values <= high)) | np.isin(values, special)
                ),
            )
        )
    rules.append(pa.Check(never_missing, name="holds nothing but missing values"))
    return rules


def _violation(error: Any, raw: pd.DataFrame, table: str) -> Violation:
    """What may be told of a pandera error: its column, its rule, and how many records break it."""
    reason = error.reason_code.name
    if reason in {"COLUMN_NOT_IN_DATAFRAME", "COLUMN_NOT_IN_SCHEMA"}:
        absent = reason == "COLUMN_NOT_IN_DATAFRAME"
        rule = "the column is not in the table" if absent else "the column is not in the data dictionary"
        return Violation(table, str(error.failure_cases), rule, len(raw), 1.0)
    failed = getattr(error.check_output, "to_numpy", None)
    records = int((~failed()).sum()) if failed is not None else len(raw)
    name = getattr(error.check, "name", None) or reason
    return Violation(table, str(error.schema.name), name, records, records / len(raw))


def canonical(raw: pd.DataFrame, dictionary: Dictionary, table: str) -> pd.DataFrame:
    """The raw table in canonical form, as categories; only the columns that the dictionary describes.

    Call it on a table without violations: ContractError where a value cannot be read.
    """
    columns = {}
    for name, column in dictionary.items():
        if name not in raw.columns:
            continue
        values, missing, unreadable = canonical_levels(column, _categories(raw[name]))
        codes = raw[name].cat.codes.to_numpy()
        if unreadable.any():
            records = int(np.append(unreadable, False)[codes].sum())
            rule = f"is no {column.type}"
            raise ContractError([Violation(table, name, rule, records, records / len(raw))])
        found, levels = pd.factorize(values[~missing])
        position = np.full(len(values) + 1, -1)
        position[:-1][~missing] = found
        columns[name] = pd.Categorical.from_codes(position[codes], categories=pd.Index(levels))
    return pd.DataFrame(columns)


def read_table(
    path: Path, dictionary: Dictionary, table: str, needed: Collection[str], only_known: bool
) -> pd.DataFrame:
    """A file as a table in canonical form. ContractError where it breaks the contract (see `violations`)."""
    raw = read_raw(path, table, None if only_known else needed)
    found = violations(raw, dictionary, table, needed, only_known)
    if found:
        raise ContractError(found)
    return canonical(raw, dictionary, table)


def _categories(series: pd.Series[Any]) -> Any:
    return np.asarray(series.cat.categories.to_numpy(), dtype=object)
