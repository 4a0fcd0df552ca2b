"""The engine for tables in memory: it counts key combinations part by part, on threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from disclosure_pipeline.counting.counts import DisclosureCounts, KeyCounts, TargetCounts
from disclosure_pipeline.counting.memory import cell_tables, sorting
from disclosure_pipeline.counting.memory.packing import (
    PackedRecords,
    pack,
    targets_packed_together,
    unsigned_type,
)
from disclosure_pipeline.counting.memory.radix import Codes, Job, Limits, Radix, radix
from disclosure_pipeline.counting.targets import Target
from disclosure_pipeline.measures.exact import Grouped, IntArray
from disclosure_pipeline.measures.together import TogetherCounts, count_unique_in_any
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.levels import CodedColumn

_CHUNK = 1 << 16  # records at a time: they fit the cache
_MOST_COMBINATIONS = 1 << 10  # of keys that are counted together
_MOST_CELLS = 1 << 15  # of these with the levels of targets that are counted together


@dataclass(frozen=True)
class _TargetGroup:
    """Targets whose levels stand beside each other in packed records, counted together by these digits."""

    targets: tuple[int, ...]
    shift: int
    bits: int

    def levels(self, digits: Codes) -> IntArray:
        """Return the digits of these targets, of records whose lowest digits are given."""
        return ((digits >> self.shift) & ((1 << self.bits) - 1)).astype(np.intp, copy=False)


def pairs_of_key(job: Job, packed: PackedRecords, targets: Sequence[int]) -> list[tuple[Grouped, ...]]:
    """The GT records by level of each key * size of the target + target level, of some of the targets."""
    if not targets:
        return []
    groups = list(_groups_of_keys(packed.keys))
    tasks = [partial(_pairs_of_group, job, packed, targets, *group) for group in groups]
    pairs_by_group = job.run("Measuring", tasks)
    return [
        tuple(
            packed.keys.in_given_order([pairs for group_pairs in pairs_by_group for pairs in group_pairs[i]])
        )
        for i in targets
    ]


def _groups_of_keys(keys: Radix) -> Iterator[tuple[int, Radix]]:
    """Return the keys in groups of few combinations, and the value of a one in each group's code."""
    group: list[int] = []
    for k, column in enumerate(keys.columns):
        if group and column.size * Radix(tuple(keys.columns[j] for j in group)).size > _MOST_COMBINATIONS:
            yield keys.weights[group[-1]], Radix(tuple(keys.columns[j] for j in group))
            group = []
        group.append(k)
    yield keys.weights[group[-1]], Radix(tuple(keys.columns[j] for j in group))


def _groups_of_targets(
    packed: PackedRecords, targets: Sequence[int], combinations: int
) -> Iterator[_TargetGroup]:
    """The targets, those beside each other together where their levels with so many keys are few cells."""
    group: list[int] = []
    bits = 0
    for target in targets:
        with_target = bits + packed.targets[target].bits
        is_beside = bool(group) and target == group[-1] + 1
        if group and not (is_beside and combinations << with_target <= _MOST_CELLS):
            yield _TargetGroup(tuple(group), packed.shifts[group[0]], bits)
            group, with_target = [], packed.targets[target].bits
        group.append(target)
        bits = with_target
    yield _TargetGroup(tuple(group), packed.shifts[group[0]], bits)


def _pairs_of_group(
    job: Job, packed: PackedRecords, targets: Sequence[int], weight: int, keys: Radix
) -> dict[int, list[Grouped]]:
    """Count each target's pairs with each key of a group, whose code counts in units of `weight`.

    The levels of the highest key that the records of a part have are few and in a row.
    """
    is_highest = packed.keys.size == weight * keys.size
    combinations = keys.size // len(packed.parts) if is_highest else keys.size
    groups = list(_groups_of_targets(packed, targets, combinations))
    cells = [keys.size << group.bits for group in groups]
    tables = [np.zeros(number if number <= job.limits.table else 0, dtype=np.int64) for number in cells]
    scattered: list[list[Grouped]] = [[] for _ in groups]
    dtype = unsigned_type((packed.keys.size - 1).bit_length())
    divisors = [dtype(number) for number in (weight, keys.size)]
    for ranges in packed.parts:
        part = packed.in_ranges(ranges, 0)
        for start in range(0, len(part), _CHUNK):
            chunk = part[start : start + _CHUNK]
            level = packed.q(chunk).astype(dtype)
            if weight > 1:
                level = level // divisors[0]
            if not is_highest:
                level = level - level // divisors[1] * divisors[1]
            lowest = int(level.min())
            level = (level - dtype(lowest)).astype(np.intp)
            digits = packed.target_digits(chunk)
            for group, table, own in zip(groups, tables, scattered, strict=True):
                pairs = level << group.bits
                pairs |= group.levels(digits)
                if len(table):
                    counts = np.bincount(pairs)
                    first = lowest << group.bits
                    table[first : first + len(counts)] += counts
                else:
                    pairs += lowest << group.bits
                    own.append(Grouped.sum_by_group(pairs, np.ones(len(pairs), dtype=np.int64)))
    pairs_by_target: dict[int, list[Grouped]] = {}
    for group, table, own in zip(groups, tables, scattered, strict=True):
        records = Grouped.from_positions(table) if len(table) else Grouped.joined(own)
        codes = keys.levels_of(records.groups >> group.bits)
        for target in group.targets:
            t = packed.t((records.groups & ((1 << group.bits) - 1)) << group.shift, target)
            size = packed.targets[target].column.size
            pairs_by_target[target] = [
                Grouped.sum_by_group(levels * size + t, records.sums) for levels in codes
            ]
    return pairs_by_target


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
