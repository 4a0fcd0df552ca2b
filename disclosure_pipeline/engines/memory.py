"""The engine for tables in memory: it counts key combinations part by part, on threads.

Every result is a sum over keys, so the records may be parted by key in any way, and no result depends on
how. Where the table of all cells is small, cells are counted; else records are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from disclosure_pipeline.engines import counting, sorting
from disclosure_pipeline.engines.counted import Counted, OfKeys, OfTarget
from disclosure_pipeline.engines.job import Job, Limits, Target
from disclosure_pipeline.engines.radix import radix
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.tables.levels import CodedColumn


def count(
    keys: Sequence[CodedColumn],
    targets: Sequence[Target],
    done: Callable[[str, int, int], None] = lambda what, done, of: None,
    limits: Limits | None = None,
) -> Counted:
    """Count GT and all syntheses, which are the tables of the columns.

    `done` is told what is being done, and how much of it of how much is done.
    """
    limits = limits or Limits()
    records = tuple(len(table.stored) for table in keys[0].tables)
    widest = max((target.bits for target in targets), default=0)
    # Beside the code of the keys the table and a target have to fit.
    code = radix(keys, records, 1 << max(0, limits.bits - 1 - widest))
    job = Job(code, tuple(targets), records, limits, done)
    most = min(limits.table, sum(records))  # entries of a table that is worth making

    of_keys: tuple[OfKeys, ...] | None = None
    of_targets: dict[int, tuple[OfTarget, ...]] = {}
    pairs: dict[int, tuple[Grouped, ...]] = {}
    narrowest = min((target.column.size for target in targets), default=1)
    if job.keys.size * narrowest <= most:
        numbered, counts = counting.number_keys(job)
        of_keys = counting.measure_keys(job, counts)
        small = [i for i, target in enumerate(targets) if numbered.size * target.column.size <= most]
        found, of_pairs = counting.measure_targets(job, numbered, counts, [targets[i] for i in small])
        of_targets, pairs = dict(zip(small, found, strict=True)), dict(zip(small, of_pairs, strict=True))
    rest = [i for i in range(len(targets)) if i not in of_targets]
    groups = list(sorting.groups(job, rest))
    for group in groups or ([] if of_keys else [[]]):
        packed = sorting.pack(job, [targets[i] for i in group])
        of_keys, found = sorting.measure(job, packed)
        of_targets |= dict(zip(group, found, strict=True))
        large = [j for j, of_target in enumerate(found) if any(len(each.large.t) for each in of_target)]
        of_pairs = sorting.pairs_of_key(job, packed, large)
        pairs |= {group[j]: of_key for j, of_key in zip(large, of_pairs, strict=True)}
    assert of_keys is not None
    return Counted(
        of_keys,
        tuple(of_targets[i] for i in range(len(targets))),
        tuple(pairs.get(i, ()) for i in range(len(targets))),
    )
