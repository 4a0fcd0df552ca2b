"""The risk of the keys and the copies of whole records, from one coding and one pass over opened tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from disclosure_pipeline.counting.opening import OpenedTables, SeparableTables
from disclosure_pipeline.counting.targets import CountRequest
from disclosure_pipeline.evaluation.copies import copies_frame
from disclosure_pipeline.evaluation.counts import (
    Counts,
    MeasuringPlan,
    RecordSets,
    code_shared_columns,
    count,
    count_record_sets,
    count_request,
    counts_for,
    plan_measures,
)
from disclosure_pipeline.evaluation.disclosure import ONE_WAY, TWO_WAY
from disclosure_pipeline.evaluation.exclusions import Exclusions
from disclosure_pipeline.evaluation.figures import figures
from disclosure_pipeline.evaluation.guards import measure_guards
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evaluation.subgroups import measure_worst_groups
from disclosure_pipeline.evaluation.units import count_sets_by_unit, measure_by_units, read_units
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.alignment import require_unit
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class WholeTableCounts:
    """`columns`: those that all tables share, by name, coded, not grouped; what is counted by them."""

    columns: Mapping[Any, CodedColumn]
    request: CountRequest
    counts: Counts
    records: RecordSets


def count_whole_tables(
    opened: OpenedTables, plan: MeasuringPlan, on_progress: OnProgress
) -> WholeTableCounts:
    """Count what is planned, and the record sets. InputError where a shared column cannot be compared."""
    columns = code_shared_columns(opened, plan.grouping, on_progress)
    request = count_request(plan, columns)
    coded = list(columns.values())
    [counted], records = count_record_sets(opened, [request], coded, plan.targets, on_progress)
    return WholeTableCounts(columns, request, counts_for(opened, request, counted, coded), records)


def measure_whole_tables(
    opened: SeparableTables,
    keys: Sequence[Any],
    targets: Any,
    grouping: Grouping,
    smallest_count: int,
    on_progress: OnProgress,
    unit: Any = None,
) -> Disclosure:
    """The result of `disclosure()` with the frames of `Guards` and of `measure_worst_groups` in `further`.

    Over all columns that the tables share, exact copies too (`exact_copies`, as the function of that name).
    InputError as `disclosure()`, and where values of any shared column cannot be compared.
    """
    if unit is not None:
        require_unit(unit, opened.columns)
    plan = plan_measures(opened, keys, targets, grouping, Exclusions(), TWO_WAY[0])
    several = len(opened.columns[1:]) > 1
    counted = count_whole_tables(opened, replace(plan, together=several), on_progress)
    result = figures(counted.counts, ONE_WAY, TWO_WAY)
    copied = [keys.shared.SD_in_GT for keys in counted.records.whole]
    columns, records, units = counted.columns, counted.records, None
    of_units = None if unit is None else opened.with_unit(unit)
    if of_units is not None:
        units = read_units(of_units, plan, unit, on_progress, list(columns))
        result, records = measure_by_units(result, units, plan), count_sets_by_unit(records, units)
    further = {
        **measure_guards(opened, list(columns.values()), records, units).frames,
        "exact_copies": copies_frame(len(columns), copied, result.N_s),
        "subgroups": measure_worst_groups(
            opened, columns, columns, result, grouping, grouping.special_values, smallest_count, units
        ),
    }
    if several:
        stacked = figures(count(opened.stacked(), plan, on_progress), ONE_WAY, TWO_WAY)
        if of_units is not None:
            stacked = measure_by_units(stacked, read_units(of_units.stacked(), plan, unit, on_progress), plan)
        result = replace(result, stacked=stacked)
    return replace(result, further={**result.further, **further})
