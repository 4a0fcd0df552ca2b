"""The risk of the keys and the copies of whole records, from one coding and one pass over opened tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from disclosure_pipeline.counting.opening import OpenedTables
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
from disclosure_pipeline.runtime.progress import OnProgress
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
    opened: OpenedTables,
    keys: Sequence[Any],
    targets: Any,
    grouping: Grouping,
    smallest_count: int,
    on_progress: OnProgress,
) -> Disclosure:
    """The result of `disclosure()` with the frames of `Guards` and of `measure_worst_groups` in `further`.

    Over all columns that the tables share, exact copies too (`exact_copies`, as the function of that name).
    InputError as `disclosure()`, and where values of any shared column cannot be compared.
    """
    plan = plan_measures(opened, keys, targets, grouping, Exclusions(), TWO_WAY[0])
    several = len(opened.columns[1:]) > 1
    counted = count_whole_tables(opened, replace(plan, together=several), on_progress)
    result = figures(counted.counts, ONE_WAY, TWO_WAY)
    copied = [keys.shared.SD_in_GT for keys in counted.records.whole]
    columns = counted.columns
    further = {
        **measure_guards(opened, list(columns.values()), counted.records).frames,
        "exact_copies": copies_frame(len(columns), copied, result.N_s),
        "subgroups": measure_worst_groups(
            opened, columns, columns, result, grouping, grouping.special_values, smallest_count
        ),
    }
    if several:
        stacked = count(opened.stacked(), plan, on_progress)
        result = replace(result, stacked=figures(stacked, ONE_WAY, TWO_WAY))
    return replace(result, further={**result.further, **further})
