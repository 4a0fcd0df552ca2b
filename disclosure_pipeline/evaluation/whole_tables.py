"""What a page of two tables shows beside the risk of their keys: copies, nearness, and who bears most."""

from __future__ import annotations

from dataclasses import replace

from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.exact_copies import copies_frame
from disclosure_pipeline.evaluation.exposed_groups import measure_worst_groups
from disclosure_pipeline.evaluation.guards import measure_guards
from disclosure_pipeline.evaluation.record_sets import code_shared_columns, count_record_sets
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.grouping import Grouping


def add_whole_tables(
    result: Disclosure,
    opened: OpenedTables,
    grouping: Grouping,
    smallest_count: int,
    on_progress: OnProgress,
) -> Disclosure:
    """The result of `disclosure()` with the frames of `Guards` and of `measure_worst_groups` in `further`.

    Over all columns that the tables share, exact copies too (`exact_copies`, as the function of that name).
    InputError where values of a column cannot be compared.
    """
    columns = code_shared_columns(opened, grouping, on_progress)
    _, records = count_record_sets(opened, [], list(columns.values()), result.targets)
    copied = [keys.shared.SD_in_GT for keys in records.whole]
    further = {
        **measure_guards(opened, list(columns.values()), records).frames,
        "exact_copies": copies_frame(len(columns), copied, result.N_s),
        "subgroups": measure_worst_groups(
            opened, columns, columns, result, grouping, grouping.special_values, smallest_count
        ),
    }
    return replace(result, further={**result.further, **further})
