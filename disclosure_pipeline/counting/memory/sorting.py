"""Counting sorted records, where a table of all possible cells would be too large.

A part has the records of all tables in some ranges of key combinations. The records of a q stand together,
those of GT before those of SD, otherwise in no order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.counts import (
    CountedCells,
    KeyCounts,
    TargetCounts,
    can_be_summed,
    count_keys,
    count_lone_records,
    count_target,
)
from disclosure_pipeline.counting.memory.cell_tables import count_in_sorted_records
from disclosure_pipeline.counting.memory.packing import PackedRecords, sort_by_key, unsigned_type
from disclosure_pipeline.counting.memory.radix import Bytes, Codes, Job
from disclosure_pipeline.counting.memory.rare_keys import (
    MOST_RECORDS,
    RareKeys,
    can_be_compared,
    count_rare_keys,
)
from disclosure_pipeline.measures.exact import IntArray, add_up
from disclosure_pipeline.measures.frequency import (
    FrequencyTable,
    aranges,
    first_of_run,
    run_lengths,
    undo_cumsum,
)
from disclosure_pipeline.measures.together import TogetherCounts
from disclosure_pipeline.runtime.machine import run_in_threads


@dataclass(frozen=True)
class Runs:
    """Runs of equal values, by the positions at which they begin; the last of `begins` is the end of all.

    `by_length`: the numbers of the runs, shorter ones first. The first `ends[n]` of them have at most n
    values; all runs longer than the longest length distinguished come last.
    """

    begins: IntArray
    by_length: IntArray
    ends: IntArray

    @classmethod
    def from_ascending(cls, ascending: npt.NDArray[Any], most: int) -> Runs:
        """Find the runs of ascending values (at least one), and distinguish lengths up to `most`.

        >>> runs = Runs.from_ascending(np.array([3, 5, 5, 7, 8, 8, 8]), most=2)
        >>> runs.of_length(1).tolist(), runs.of_length(2).tolist(), runs.places_of_longer().tolist()
        ([0, 3], [1], [4, 5, 6])
        """
        begins = np.append(np.flatnonzero(first_of_run(ascending)), len(ascending))
        lengths = np.minimum(begins[1:] - begins[:-1], most + 1).astype(np.min_scalar_type(most + 1))
        ends = np.cumsum(np.bincount(lengths, minlength=most + 2))
        return cls(begins, np.argsort(lengths, kind="stable"), ends)

    def of_length(self, n: int) -> IntArray:
        """Return the positions at which runs of n values begin, in ascending order."""
        return self.begins.take(self.by_length[self.ends[n - 1] : self.ends[n]])

    def places_of_longer(self) -> IntArray:
        """Return the positions of values in longer runs than those distinguished, in ascending order."""
        longer = self.by_length[self.ends[-2] :]
        begins = self.begins.take(longer)
        lengths = self.begins.take(longer + 1) - begins
        return np.repeat(begins, lengths) + aranges(lengths)


_ROOMY = 2  # cells for each record, up to which a table of cells is faster than sorting
_LARGEST_PART = 2  # times the usual records of a part


@dataclass(frozen=True)
class PartCounts:
    """The counts of a part, to be added up: of the keys, and of each target. Empty if it has no records."""

    keys: list[KeyCounts] = field(default_factory=list)
    targets: list[list[TargetCounts]] = field(default_factory=list)


def list_tasks(job: Job, packed: PackedRecords) -> list[Callable[[], PartCounts]]:
    """Return a task for each part of each synthesis, synthesis by synthesis."""
    return [
        partial(_measure_part, job, packed, synthesis, ranges)
        for synthesis in job.syntheses
        for ranges in packed.parts
    ]


def add_up_parts(
    parts: Sequence[PartCounts], syntheses: int
) -> tuple[tuple[KeyCounts, ...], list[tuple[TargetCounts, ...]]]:
    """Add up the results of `list_tasks`: the counts of the keys and of each target, by synthesis."""
    number = len(parts) // syntheses
    by_synthesis = [parts[i * number : (i + 1) * number] for i in range(syntheses)]
    key_counts = tuple(
        add_up([counts for part in own_parts for counts in part.keys]) for own_parts in by_synthesis
    )
    target_counts = [
        tuple(
            add_up([counts for part in own_parts for counts in part.targets[i]]) for own_parts in by_synthesis
        )
        for i in range(len(parts[0].targets))
    ]
    return key_counts, target_counts


def measure_together(job: Job, packed: PackedRecords) -> TogetherCounts:
    """Count what all syntheses together disclose of the packed targets."""

    def measure_part(ranges: range) -> TogetherCounts:
        tables = [
            np.sort(packed.in_ranges(ranges, table)) if arranged else np.empty(0, dtype=np.uint64)
            for table, arranged in enumerate(packed.arranged)
        ]
        return count_in_sorted_records(packed, tables)

    tasks = [partial(measure_part, ranges) for ranges in packed.parts]
    return add_up(run_in_threads(tasks, job.threads, job.report("Measuring together")))


def _measure_part(job: Job, packed: PackedRecords, synthesis: int, ranges: range) -> PartCounts:
    """Count the records of GT and one SD in some ranges."""
    key_bit = packed.table_bit + 1
    records = np.concatenate(
        [sort_by_key(packed.in_ranges(range(i, i + 1), 0, synthesis), key_bit) for i in ranges]
    )
    counts = PartCounts(targets=[[] for _ in packed.targets])
    has_rare_keys = all(can_be_summed(target, synthesis) for target in packed.targets)
    for some in _split_between_keys(packed, records, _LARGEST_PART * job.limits.part):
        uncounted = [_UncountedRecords(some, range(len(packed.targets)), with_keys=True)]
        if has_rare_keys:
            uncounted = _measure_rare_keys(job, packed, synthesis, some, counts)
        for remaining in uncounted:
            keys = _RecordsByKey.from_packed(packed, remaining.records)
            for i in remaining.targets:
                table = _tabulate_cells(job, packed, synthesis, keys, i)
                cells = CountedCells(table, partial(_key_levels, packed, keys.codes))
                counts.targets[i].append(count_target(cells, packed.targets[i], synthesis))
            if remaining.with_keys:
                hits_apart = job.count_hits_apart(synthesis, keys.codes[keys.d_q == 1])
                counts.keys.append(count_keys(keys.d_q, keys.s_q, hits_apart=hits_apart))
    return counts


def _split_between_keys(packed: PackedRecords, records: Codes, most: int) -> list[Codes]:
    """Split sorted records into parts of about `most`: a range with a frequent level can hold far more."""
    ends = np.unique(np.searchsorted(records, packed.first_of_key(records[most::most])))
    return [some for some in np.split(records, ends) if len(some)]


def _key_levels(packed: PackedRecords, codes: Codes, positions: IntArray) -> IntArray:
    return packed.keys.levels_of(codes[positions])


@dataclass(frozen=True)
class _UncountedRecords:
    """Records whose cells are still to be counted for some targets, and for the keys if `with_keys`."""

    records: Codes
    targets: Sequence[int]
    with_keys: bool


def _measure_rare_keys(
    job: Job, packed: PackedRecords, synthesis: int, records: Codes, counts: PartCounts
) -> list[_UncountedRecords]:
    """Add the counts of the q of few records to those of the part; return the records still to be counted.

    The q of n records each also stay uncounted if they have at most `limits.rare` records in all.
    """
    runs = Runs.from_ascending(packed.q(records), MOST_RECORDS)
    lone = records.take(runs.of_length(1))
    if len(lone):
        is_synthetic = packed.mark_synthetic(lone) > 0
        SD = int(np.count_nonzero(is_synthetic))
        GT = len(lone) - SD
        hits_apart = job.count_hits_apart(synthesis, packed.q(lone[~is_synthetic]))
        counts.keys.append(count_keys(np.array([1, 0]), np.array([0, 1]), np.array([GT, SD]), hits_apart))
        for target, target_counts in zip(packed.targets, counts.targets, strict=True):
            target_counts.append(count_lone_records(GT, SD, packed.keys.width, target, synthesis))
    uncounted = []
    too_few: list[Codes] = []
    for n in range(2, MOST_RECORDS + 1):
        some = records.take(runs.of_length(n) + np.arange(n)[:, None])
        if some.size <= job.limits.rare:
            too_few.append(some.ravel())
            continue
        rare = RareKeys.from_marks(packed.mark_synthetic(some))
        alone = packed.q(some[0, rare.d_q == 1])
        counts.keys.append(replace(rare.count_keys(), hits_apart=job.count_hits_apart(synthesis, alone)))
        if packed.targets:
            others = _measure_targets_of_rare_keys(packed, synthesis, rare, some, counts)
            if others:
                uncounted.append(_UncountedRecords(np.sort(some, axis=None), others, with_keys=False))
    remaining = [records.take(runs.places_of_longer())]
    if any(map(len, too_few)):
        remaining.append(np.sort(np.concatenate(too_few)))
    uncounted += [
        _UncountedRecords(some, range(len(packed.targets)), with_keys=True) for some in remaining if len(some)
    ]
    return uncounted


def _measure_targets_of_rare_keys(
    packed: PackedRecords, synthesis: int, rare: RareKeys, records: Codes, counts: PartCounts
) -> list[int]:
    """Add the counts of the targets for which `rare` can be compared; return the other targets.

    `records` are those of the rare keys (shape: n, q).
    """
    others = []
    digits = packed.target_digits(records)
    key_levels_of = partial(_key_levels, packed, packed.q(records[0]))
    for i, (target, target_counts) in enumerate(zip(packed.targets, counts.targets, strict=True)):
        size = target.column.size
        if can_be_compared(rare, size, target.count_occurring_levels(synthesis)):
            t = packed.t(digits, i).astype(np.min_scalar_type(size), copy=False)
            target_counts.append(
                count_rare_keys(rare, t, target, synthesis, key_levels_of, packed.keys.width)
            )
        else:
            others.append(i)
    return others


@dataclass(frozen=True)
class _RecordsByKey:
    """Records of GT and one SD by their `q`, numbered from 0; the key combination of each in `codes`."""

    records: Codes
    q: IntArray
    is_synthetic: Bytes
    codes: Codes
    d_q: IntArray
    s_q: IntArray

    @classmethod
    def from_packed(cls, packed: PackedRecords, records: Codes) -> _RecordsByKey:
        codes = packed.q(records)
        new = first_of_run(codes)
        first = np.flatnonzero(new)
        is_synthetic = packed.mark_synthetic(records)
        number = run_lengths(first, len(records))
        s_q = _sums_of_runs(is_synthetic, first, number)
        return cls(records, np.cumsum(new) - 1, is_synthetic, codes[first], number - s_q, s_q)


def _tabulate_cells(
    job: Job, packed: PackedRecords, synthesis: int, keys: _RecordsByKey, target: int
) -> FrequencyTable:
    """Count the cells of the keys and a target: in a table of all possible ones, or sorted if it is large."""
    levels = packed.targets[target].column.size
    size = len(keys.codes) * levels
    dtype: Any = unsigned_type((2 * size - 1).bit_length())
    cells = keys.q.astype(dtype) * dtype(2 * levels)
    cells += packed.t(keys.records, target).astype(dtype) << 1
    cells += keys.is_synthetic.astype(dtype)
    occupied: Any
    if size <= min(_ROOMY * len(cells), job.limits.table):
        counts = np.bincount(cells.astype(np.intp), minlength=2 * size)
        occupied = np.flatnonzero(counts[::2] | counts[1::2])
        d, s = counts[::2][occupied], counts[1::2][occupied]
    else:
        cells.sort()
        cell: Codes = cells >> 1
        first = np.flatnonzero(first_of_run(cell))
        number = run_lengths(first, len(cell))
        s = _sums_of_runs(cells & 1, first, number)
        d, occupied = number - s, cell[first].astype(np.int64)
    q = occupied // levels
    return FrequencyTable(
        q=q,
        t=occupied - q * levels,
        d=d,
        s=s,
        d_q=keys.d_q[q],
        s_q=keys.s_q[q],
        N_d=job.records[0],
        N_s=job.records[synthesis],
        keys=len(keys.codes),
        targets=levels,
    )


def _sums_of_runs(values: Codes, first: IntArray, number: IntArray) -> IntArray:
    """Return the sum of each run of values, given the position of its first value and their `number`."""
    return undo_cumsum(np.cumsum(values, dtype=np.int64)[first + number - 1])
