"""The GT records of each pair of a key's level and a target's level, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from disclosure_pipeline.counting.memory.job import Job
from disclosure_pipeline.counting.memory.packing import PackedRecords, unsigned_type
from disclosure_pipeline.counting.memory.radix import Radix
from disclosure_pipeline.measures.grouped import Grouped

_CHUNK = 1 << 16  # records at a time: they fit the cache
_MOST_COMBINATIONS = 1 << 12  # of keys that are counted together


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
        for i in range(len(targets))
    ]


def _groups_of_keys(keys: Radix) -> Iterator[tuple[int, Radix]]:
    """The keys in groups of few combinations, and the value of a one in each group's code."""
    group: list[int] = []
    for k, column in enumerate(keys.columns):
        if group and column.size * Radix(tuple(keys.columns[j] for j in group)).size > _MOST_COMBINATIONS:
            yield keys.weights[group[-1]], Radix(tuple(keys.columns[j] for j in group))
            group = []
        group.append(k)
    yield keys.weights[group[-1]], Radix(tuple(keys.columns[j] for j in group))


def _pairs_of_group(
    job: Job, packed: PackedRecords, targets: Sequence[int], weight: int, keys: Radix
) -> list[list[Grouped]]:
    """The pairs of each of the targets with each key of a group, whose code counts in units of `weight`.

    The levels of the highest key that the records of a part have are few and in a row.
    """
    sizes = [packed.targets[target].column.size for target in targets]
    tables = [
        np.zeros(keys.size * size if keys.size * size <= job.limits.table else 0, dtype=np.int64)
        for size in sizes
    ]
    scattered: list[list[Grouped]] = [[] for _ in targets]
    dtype = unsigned_type((packed.keys.size - 1).bit_length())
    divisors = [dtype(number) for number in (weight, keys.size)]
    for ranges in packed.parts:
        part = packed.in_ranges(ranges, 0)
        for start in range(0, len(part), _CHUNK):
            chunk = part[start : start + _CHUNK]
            above = packed.q(chunk).astype(dtype)
            if weight > 1:
                above = above // divisors[0]
            level = (above - above // divisors[1] * divisors[1]).astype(np.intp)
            lowest = int(level.min())
            level -= lowest
            digits = packed.target_digits(chunk)
            for j, (target, size) in enumerate(zip(targets, sizes, strict=True)):
                pairs = level * size
                pairs += packed.t(digits, target).astype(np.intp, copy=False)  # unsigned where wide
                if len(tables[j]):
                    counts = np.bincount(pairs)
                    tables[j][lowest * size : lowest * size + len(counts)] += counts
                else:
                    pairs += lowest * size
                    scattered[j].append(Grouped.sum_by_group(pairs, np.ones(len(pairs), dtype=np.int64)))
    results = []
    for grouped, size, counts in zip(scattered, sizes, tables, strict=True):
        if len(counts):
            grouped.append(Grouped(np.flatnonzero(counts), counts[counts > 0]))
        records = Grouped.joined(grouped)
        codes = records.groups // size
        t = records.groups - codes * size
        results.append(
            [Grouped.sum_by_group(level * size + t, records.sums) for level in keys.levels_of(codes)]
        )
    return results
