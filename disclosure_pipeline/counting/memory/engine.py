"""The engine for tables in memory: it counts key combinations part by part, on threads.

Every result is a sum over keys, so the records may be parted by key in any way, and no result depends on
how. Where the table of all cells is small, cells are counted; else records are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence

from disclosure_pipeline.counting.counts import DisclosureCounts, KeyCounts, TargetCounts
from disclosure_pipeline.counting.memory import cell_tables, sorting
from disclosure_pipeline.counting.memory.job import Job, Limits
from disclosure_pipeline.counting.memory.key_target_pairs import pairs_of_key
from disclosure_pipeline.counting.memory.packing import pack, targets_packed_together
from disclosure_pipeline.counting.memory.radix import radix
from disclosure_pipeline.counting.targets import Target
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.together import TogetherCounts, count_unique_in_any
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.levels import CodedColumn


def count_in_memory(
    keys: Sequence[CodedColumn],
    targets: Sequence[Target],
    on_progress: OnProgress = ignore_progress,
    limits: Limits | None = None,
    *,
    together: bool = False,
) -> DisclosureCounts:
    """Counts of GT and all syntheses, which are the tables of the columns.

    `together`: also of what they disclose as one release.
    """
    limits = limits or Limits()
    records = tuple(len(table.stored) for table in keys[0].tables)
    widest = max((target.bits for target in targets), default=0)
    # Beside the code of the keys the table and a target have to fit.
    code = radix(keys, records, 1 << max(0, limits.bits - 1 - widest))
    job = Job(code, tuple(targets), records, limits, on_progress, together)
    most = min(limits.table, sum(records))  # entries of a table that is worth making

    key_counts: tuple[KeyCounts, ...] | None = None
    target_counts: dict[int, tuple[TargetCounts, ...]] = {}
    pairs: dict[int, tuple[Grouped, ...]] = {}
    unique_in_any, by_all = 0, dict[int, tuple[int, int]]()  # any and agreed of each target
    narrowest = min((target.column.size for target in targets), default=1)
    if job.keys.size * narrowest <= most:
        numbered, counts = cell_tables.number_keys(job)
        key_counts = cell_tables.measure_keys(job, counts)
        small = [i for i, target in enumerate(targets) if numbered.size * target.column.size <= most]
        of_small = cell_tables.measure_targets(job, numbered, counts, [targets[i] for i in small])
        target_counts = dict(zip(small, of_small.counts, strict=True))
        pairs = dict(zip(small, of_small.pairs, strict=True))
        if together:
            unique_in_any = count_unique_in_any(counts[0], counts[1:])
            by_all = dict(zip(small, of_small.together, strict=True))
    to_sort = [i for i in range(len(targets)) if i not in target_counts]
    groups = list(targets_packed_together(job, to_sort))
    for group in groups or ([] if key_counts else [[]]):
        packed = pack(job, [targets[i] for i in group])
        key_counts, results = sorting.measure(job, packed)
        target_counts |= dict(zip(group, results, strict=True))
        if together:
            of_group = sorting.measure_together(job, packed)
            unique_in_any = of_group.unique_in_any
            by_all |= dict(zip(group, zip(of_group.any, of_group.agreed, strict=True), strict=True))
        listed = [
            j for j, of_target in enumerate(results) if any(len(counts.large.t) for counts in of_target)
        ]
        for j, target_pairs in zip(listed, pairs_of_key(job, packed, listed), strict=True):
            pairs[group[j]] = target_pairs
    assert key_counts is not None
    return DisclosureCounts(
        key_counts,
        tuple(target_counts[i] for i in range(len(targets))),
        tuple(pairs.get(i, ()) for i in range(len(targets))),
        TogetherCounts.from_pairs(unique_in_any, [by_all[i] for i in range(len(targets))])
        if together
        else None,
    )
