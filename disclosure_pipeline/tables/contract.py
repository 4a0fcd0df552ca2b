"""The contract of a table: its violations as counts, never a value.

pandera checks positions in the list of a column's levels, not the levels: its errors, whose text, failure
cases and pickle tell what they were given, hold no value. They do not leave this module all the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.tables.canonical import Levels, to_mask
from disclosure_pipeline.tables.damage import describe_separator, name_separator
from disclosure_pipeline.tables.dictionary import CATEGORIES, Column, Dictionary
from disclosure_pipeline.tables.encoding import RawColumn
from disclosure_pipeline.tables.levels import IntArray, Mask

ALL_MISSING = "holds nothing but missing values"
NOT_THERE = "the column is not in the table"
NOT_DESCRIBED = "the column is not in the data dictionary"
NO_COLUMN = "no column of the data dictionary is in the table"
CONTROL_CHARACTER = "holds a control character, such as a line break within a level: write it without"
WITHOUT_OWNER = "lacks a value in some records: it must say of each whose it is"
NO_HEADER = f"{NO_COLUMN}: is its first line the header, is the delimiter right?"


_SET_BY_PANDERA = ("PYARROW_IGNORE_TIMEZONE", "SPARK_LOCAL_IP")


@dataclass(frozen=True)
class Violation:
    """A rule that a table breaks: by how many of its records, and what share of them (0 to 1).

    None where the number is withheld, since it would answer a question about GT.
    """

    table: str
    column: str
    rule: str
    records: int | None = None
    share: float | None = None

    def __str__(self) -> str:
        if self.records is None:
            return self.without_numbers
        return f"{self.without_numbers} ({self.records} records, {self.share:.2%})"

    @property
    def without_numbers(self) -> str:
        """Return the violation without a number of records, for those who may not see numbers of GT."""
        return f"{self.table}, column {self.column!r}: {self.rule}"


class ContractError(InputError):
    """A table breaks its contract; `violations` say where and how often."""

    def __init__(self, violations: Collection[Violation]) -> None:
        super().__init__("; ".join(map(str, violations)))
        self.violations = tuple(violations)

    def __reduce__(self) -> tuple[type[ContractError], tuple[tuple[Violation, ...]]]:
        return (ContractError, (self.violations,))


def find_violations(
    columns: Sequence[str],
    records: int,
    read: Mapping[str, RawColumn],
    dictionary: Dictionary,
    table: str,
    needed: Collection[str],
    only_known: bool,
) -> list[Violation]:
    """Return the rules of the dictionary that a table breaks.

    `columns` names all its columns, `read` has those that the dictionary describes. Every needed column is
    there and holds a value at all; values are of the column's type, among its levels, within its range; with
    `only_known`, the dictionary describes every column. Checks run whatever the environment says of pandera.
    """
    if not records:
        return [Violation(table, "(all)", "the table has no records", 0, 1.0)]
    if not read and len(dictionary):
        # A record may stand in the place of the names: it is not shown.
        separator = name_separator(list(columns))
        rule = f"{NO_COLUMN}: {describe_separator(separator)}" if separator else NO_HEADER
        return [Violation(table, "(all)", rule, records, 1.0)]
    rules = {name: _rules(dictionary[name], column.levels) for name, column in read.items()}
    broken_records: dict[tuple[str, str], int] = {}
    checked: set[tuple[str, str]] = set()
    counts: dict[str, Any] = {}
    pandera = _import_pandera()

    def check(name: str, rule: str) -> Any:
        def passes(positions: pd.Series[Any]) -> bool:
            if name not in counts:  # once per column, whatever the number of its rules
                counts[name] = read[name].count_records(positions.cat.codes.to_numpy())
            breaking = int(counts[name][rules[name][rule]].sum())
            checked.add((name, rule))
            if breaking < records if rule == ALL_MISSING else not breaking:
                return True
            broken_records[(name, rule)] = breaking
            return False

        return pandera.Check(passes, name=rule, ignore_na=False, n_failure_cases=1)

    schema = pandera.DataFrameSchema(
        {
            name: pandera.Column(
                checks=[check(name, rule) for rule in rules.get(name, ())],
                nullable=True,
                required=name in needed,
            )
            for name in dictionary
        },
        strict=only_known,
    )
    violations_of_columns = [
        Violation(table, name, rule, records, 1.0)
        for name, rule in _run_schema(schema, _positions_of_levels(columns, read))
    ]
    if checked != {(name, rule) for name, rules_of_column in rules.items() for rule in rules_of_column}:
        raise DisclosurePipelineError(f"{table}: not every rule of the contract was checked.")
    return violations_of_columns + [
        Violation(table, name, rule, broken, broken / records)
        for (name, rule), broken in broken_records.items()
    ]


def _rules(column: Column, levels: Levels) -> dict[str, Mask]:
    """Return for each rule which levels, and last whether a missing value, break it."""
    rules = {f"is no {column.type}": np.append(levels.unreadable, False)}
    if column.levels is not None:
        rules["is none of the declared levels"] = np.append(levels.unknown, False)
    if column.type in CATEGORIES:
        # They are unseen on a page and a terminal, and what draws charts ends the process at one.
        controls = pc.match_substring_regex(levels.values.cast(pa.string()), r"\p{Cc}")
        rules[CONTROL_CHARACTER] = np.append(to_mask(controls), False)
    if column.range is not None:
        rules["is outside the range"] = np.append(levels.outside, False)
    return rules | {ALL_MISSING: np.append(levels.missing, True)}


def _positions_of_levels(columns: Sequence[str], read: Mapping[str, RawColumn]) -> pd.DataFrame:
    """Return what pandera checks instead of the table: positions in the columns' lists of levels."""
    entries = max(len(column.encoded.codes) for column in read.values())
    positions: dict[str, Any] = dict.fromkeys(columns, np.zeros(entries, dtype=np.int8))
    for name, column in read.items():
        codes, levels = column.encoded.codes, pd.RangeIndex(len(column.encoded.levels))
        if len(codes) < entries:  # filled up with missing, which they end with
            codes = np.append(codes, np.full(entries - len(codes), -1, dtype=codes.dtype))
        positions[name] = pd.Categorical.from_codes(codes, categories=levels)
    return pd.DataFrame(positions, copy=False)


def _import_pandera() -> Any:
    """Import pandera without what that does to the environment: see `encoding.arrow_array`."""
    before = {name: os.environ.get(name) for name in _SET_BY_PANDERA}
    import pandera.pandas as pandera

    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
    return pandera


def _run_schema(schema: Any, positions: pd.DataFrame) -> list[tuple[str, str]]:
    """Run the schema; return the missing and the undescribed columns. Each rule notes its own findings."""
    from pandera.config import ValidationDepth, config_context
    from pandera.errors import SchemaErrors

    rule_of_reason = {"COLUMN_NOT_IN_DATAFRAME": NOT_THERE, "COLUMN_NOT_IN_SCHEMA": NOT_DESCRIBED}
    by_rule = {"CHECK_ERROR", "DATAFRAME_CHECK"}
    try:
        with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
            schema.validate(positions, lazy=True, inplace=True)
    except SchemaErrors as errors:
        reasons = [(error.reason_code.name, str(error.failure_cases)) for error in errors.schema_errors]
    else:
        return []
    finally:
        # The frame and pandera's accessor hold each other: the records would stay until garbage is collected.
        vars(positions).pop("pandera", None)
    return [(name, rule_of_reason.get(reason, reason)) for reason, name in reasons if reason not in by_rule]


NAMES_PEOPLE = (
    "has, for more than half of the records, a value that no other record has, as an identifier does: do not "
    "publish it, declare its levels, or make it coarser"
)


def find_naming_columns(
    dictionary: Dictionary, published: Iterable[str], count_levels: Callable[[str], IntArray], table: str
) -> list[Violation]:
    """Return the published categories and times of GT of which most values belong to one record each.

    Categories with declared levels are left out, and columns in which fewer than two records have a value.
    `count_levels` gives the number of records with each value of a column.
    """
    violations = []
    for name in published:
        column = dictionary[name]
        if column.type not in (*CATEGORIES, "datetime") or column.levels is not None:
            continue
        records = count_levels(name)
        alone, total = int((records == 1).sum()), int(records.sum())
        if total > 1 and 2 * alone > total:
            violations.append(Violation(table, name, NAMES_PEOPLE))
    return violations
