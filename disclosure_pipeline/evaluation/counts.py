"""What the measures are made of: the plan of what to count in opened tables, and what was counted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from disclosure_pipeline.counting.counts import DisclosureCounts
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.counting.targets import CountRequest, Target
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.comparability import missing_value_doubts
from disclosure_pipeline.evaluation.exclusions import Exclusions, check_exclusions, code_exclusions
from disclosure_pipeline.evaluation.identifiers import identifier_warnings
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.alignment import check_names
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import table_names
from disclosure_pipeline.tables.raw_columns import Change, rounding_changes


@dataclass(frozen=True)
class MeasuringPlan:
    """The keys and targets to be measured, how numbers are grouped, and what is left out.

    DiSCO cells of more GT records than `list_cells_above` are listed one by one. `certainties`: of an
    intruder who acts on less than certainty. `together`: whether to count what all syntheses disclose as
    one release.
    """

    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    grouping: Grouping
    exclusions: Exclusions
    list_cells_above: float = math.inf
    certainties: tuple[Fraction, ...] = ()
    together: bool = False

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns that are measured: keys, then targets."""
        return (*self.keys, *self.targets)


@dataclass(frozen=True)
class Counts:
    """The columns that were counted, grouped; the counts; the number of records of each table (GT first).

    `missing_value_doubts`: of levels that seem to stand for missing values. `identifier_warnings`: of columns
    that are in one table alone, or number the records; not looked for where only the keys are counted.
    `engine_description`, `ledger`: see `OpenedTables`; the ledger also has what was rounding noise.
    """

    keys: Sequence[CodedColumn]
    targets: Sequence[CodedColumn]
    counts: DisclosureCounts
    records: tuple[int, ...]
    missing_value_doubts: Sequence[str]
    identifier_warnings: Sequence[str]
    engine_description: str
    ledger: tuple[Change, ...]
    certainties: tuple[Fraction, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The tables' names in messages."""
        return table_names(len(self.records))


def plan_measures(
    opened: OpenedTables,
    keys: Sequence[Any],
    targets: Any,
    grouping: Grouping,
    exclusions: Exclusions,
    list_cells_above: float = math.inf,
    certainties: Sequence[Fraction] = (),
) -> MeasuringPlan:
    """The plan, once it is sure that it fits the tables' columns. InputError as `disclosure()`.

    `targets` is empty where only the keys are asked for.
    """
    key_names, target_names = check_names(opened.columns, keys, targets, grouping)
    check_exclusions(exclusions, key_names, target_names)
    return MeasuringPlan(key_names, target_names, grouping, exclusions, list_cells_above, tuple(certainties))


def count(opened: OpenedTables, plan: MeasuringPlan, on_progress: OnProgress = ignore_progress) -> Counts:
    """Count what the measures are made of. InputError as `disclosure()`."""
    columns = opened.code(plan.columns, plan.grouping, on_progress)
    request = count_request(plan, {column.name: column for column in columns})
    [counts] = opened.count([request], on_progress)
    return counts_for(opened, request, counts, columns)


def count_request(plan: MeasuringPlan, columns: Mapping[Any, CodedColumn]) -> CountRequest:
    """What has to be counted, of `columns` that are not grouped yet.

    InputError where an exclusion names a level that does not exist.
    """
    keys = [plan.grouping.apply(columns[name]) for name in plan.keys]
    targets = [plan.grouping.apply(columns[name]) for name in plan.targets]
    return CountRequest(
        keys,
        [
            Target(
                target,
                code_exclusions(plan.exclusions, target, keys),
                plan.list_cells_above,
                plan.certainties,
            )
            for target in targets
        ],
        plan.together,
    )


def counts_for(
    opened: OpenedTables, request: CountRequest, counts: DisclosureCounts, columns: Sequence[CodedColumn]
) -> Counts:
    """The counts beside the columns that they are of; `columns` are those that were coded, not grouped."""
    measured = {column.name for column in request.columns}
    names = table_names(len(columns[0].tables))
    return Counts(
        keys=request.keys,
        targets=[target.column for target in request.targets],
        counts=counts,
        records=tuple(int(of_table.sum()) for of_table in request.keys[0].counts),
        missing_value_doubts=missing_value_doubts(
            [column for column in columns if column.name in measured], names
        ),
        identifier_warnings=identifier_warnings(opened, columns) if request.targets else [],
        engine_description=opened.engine_description,
        ledger=(*opened.ledger, *rounding_changes(columns, names)),
        certainties=request.targets[0].certainties if request.targets else (),
    )


def require_targets(targets: Any) -> None:
    """InputError where the targets are an empty list: nothing would be measured."""
    if isinstance(targets, Sequence) and not isinstance(targets, str) and not len(targets):
        raise InputError("targets is empty: name at least one column, or pass None for all that are no keys.")
