"""Counting for many key sets: the q in which all records have one level, for many targets at once.

Dorig and DiSCO need no more. The levels of a record's targets are fields of one number (a word), so a few
operations compare two records in all targets. A q is skipped as soon as every target is known to have two
levels there, which happens after a few records in most q with many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.counts import KeyCounts, count_keys
from disclosure_pipeline.counting.memory.radix import Limits, build_radix, sum_readers
from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.levels import CodedColumn

Words = npt.NDArray[np.uint64]

_CHUNK = 1 << 16  # records that fit into the cache
_BITS = 64  # of a word
_MOST_BYTES = 1 << 31  # of all threads together, approximately
_BYTES_OF_RECORD, _BYTES_OF_KEY = 4, 56  # of a thread


@dataclass(frozen=True)
class Packed:
    """Some of the targets packed into words: `words[0]` of GT, `words[i]` of synthesis i, one per record.

    `targets` are their positions. Each field of a word holds a level, and above it a bit that stays 0: its
    `guard`. `fill` has all bits below the guards set.
    """

    targets: tuple[int, ...]
    guards: tuple[int, ...]
    fill: int
    words: tuple[Words, ...]

    def select_guards(self, targets: Sequence[int]) -> int:
        """Return the guards of those of the targets that are in these words."""
        return sum(guard for i, guard in zip(self.targets, self.guards, strict=True) if i in targets)

    def differ(self, words: Words, others: Words, guards: int) -> Words:
        """Return the guards of the fields in which the words differ, pair by pair."""
        difference = words ^ others
        difference += np.uint64(self.fill)  # a field that is not 0 carries into its guard
        difference &= np.uint64(guards)
        return difference


@dataclass(frozen=True)
class KeySetCounts:
    """Counts of one key set: of its keys by synthesis; of GT records by target (0 if it is not measured).

    Dorig: records whose q has one level in GT (shape: targets). DiSCO: records whose q has one level in SD,
    which is their own (shape: syntheses, targets).
    """

    keys: tuple[KeyCounts, ...]
    Dorig: IntArray
    DiSCO: IntArray


def count_key_sets(
    key_sets: Sequence[Sequence[CodedColumn]],
    targets: Sequence[CodedColumn],
    measured: Sequence[Sequence[int]],
    on_progress: OnProgress = ignore_progress,
) -> list[KeySetCounts]:
    """Count each key set; `measured[i]` are the positions of the targets to measure with set i."""
    limits = Limits()
    records = [len(table.stored) for table in key_sets[0][0].tables]
    threads = threads_for(sum(records)) if limits.threads is None else limits.threads
    packed = [partial(_pack, targets, group, records) for group in _group_targets(targets)]
    words = run_in_threads(packed, threads, partial(on_progress, "Coding the targets"))
    bytes_of_thread = _BYTES_OF_RECORD * sum(records) + _BYTES_OF_KEY * min(limits.table, sum(records))
    return run_in_threads(
        [
            partial(_count_key_set, keys, words, measured_with, records, limits.table)
            for keys, measured_with in zip(key_sets, measured, strict=True)
        ],
        min(threads, max(1, _MOST_BYTES // bytes_of_thread)),
        partial(on_progress, "Measuring the key sets"),
    )


def _count_bits(target: CodedColumn) -> int:
    return (target.size - 1).bit_length() + 1


def _group_targets(targets: Sequence[CodedColumn]) -> Iterator[list[int]]:
    """Group the targets so that the fields of each group fit into a word."""
    group: list[int] = []
    for i, target in enumerate(targets):
        if group and sum(_count_bits(targets[j]) for j in group) + _count_bits(target) > _BITS:
            yield group
            group = []
        group.append(i)
    yield group


def _pack(targets: Sequence[CodedColumn], group: Sequence[int], records: Sequence[int]) -> Packed:
    widths = [_count_bits(targets[i]) for i in group]
    ends = np.cumsum(widths).tolist()
    guards = tuple(1 << (end - 1) for end in ends)
    fill = sum(guard - (1 << (end - width)) for guard, end, width in zip(guards, ends, widths, strict=True))
    words = tuple(np.empty(number, dtype=np.uint64) for number in records)
    for table, out in enumerate(words):
        readers = [
            targets[i].reader(table, np.arange(targets[i].size, dtype=np.uint64) << np.uint64(end - width))
            for i, end, width in zip(group, ends, widths, strict=True)
        ]
        sum_readers(readers, slice(0, len(out)), out)
    return Packed(tuple(group), guards, fill, words)


def _count_key_set(
    columns: Sequence[CodedColumn],
    words: Sequence[Packed],
    measured: Sequence[int],
    records: Sequence[int],
    most: int,
) -> KeySetCounts:
    keys = build_radix(columns, records, min(most, sum(records)))
    dtype = np.min_scalar_type(keys.size)
    q = [np.empty(number, dtype=dtype) for number in records]
    for table, out in enumerate(q):
        sum_readers(keys.readers(table, 1, dtype), slice(0, len(out)), out)
    counts = [_count_codes(of_table, keys.size) for of_table in q]
    examples = [_find_examples(of_table, keys.size) for of_table in q]
    syntheses = range(1, len(records))
    targets = sum(len(packed.targets) for packed in words)
    Dorig = np.zeros(targets, dtype=np.int64)
    DiSCO = np.zeros((len(syntheses), targets), dtype=np.int64)
    for packed in words:
        guards = packed.select_guards(measured)
        if not guards:
            continue
        example = packed.words[0][examples[0]]
        single = _find_several_levels(packed, q[0], packed.words[0], example, guards) ^ np.uint64(guards)
        single_q = np.flatnonzero((counts[0] > 0) & (single > 0))
        d_q, single = counts[0][single_q], single[single_q]
        for i, guard in zip(packed.targets, packed.guards, strict=True):
            Dorig[i] = total(d_q, (single & np.uint64(guard)) > 0)
        for j in syntheses:
            example = packed.words[j][examples[j]]
            single = _find_several_levels(packed, q[j], packed.words[j], example, guards) ^ np.uint64(guards)
            single[counts[j] == 0] = 0
            DiSCO[j - 1, list(packed.targets)] = _count_agreeing(packed, q[0], example, single, guards)
    return KeySetCounts(tuple(count_keys(counts[0], counts[j]) for j in syntheses), Dorig, DiSCO)


def _iterate_chunks(q: IntArray) -> Iterator[tuple[slice, IntArray]]:
    for start in range(0, len(q), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        yield chunk, q[chunk].astype(np.intp)


def _count_codes(q: IntArray, size: int) -> IntArray:
    counts = np.zeros(size, dtype=np.int64)
    step = max(_CHUNK, size)
    for start in range(0, len(q), step):
        counts += np.bincount(q[start : start + step].astype(np.intp), minlength=size)
    return counts


def _find_examples(q: IntArray, size: int) -> IntArray:
    """Return a record of each q; an arbitrary one for a q without records."""
    example = np.zeros(size, dtype=np.min_scalar_type(len(q)))
    for chunk, index in _iterate_chunks(q):
        example[index] = np.arange(chunk.start, chunk.start + len(index))
    return example


def _find_several_levels(packed: Packed, q: IntArray, words: Words, example: Words, guards: int) -> Words:
    """Return for each q the guards of the targets that have several levels there (shape as `example`)."""
    several = np.zeros(len(example), dtype=np.uint64)
    for chunk, index in _iterate_chunks(q):
        undecided = np.flatnonzero(several[index] != np.uint64(guards))
        at = index[undecided]
        new = packed.differ(words[chunk][undecided], example[at], guards)
        while True:  # each pass updates a q from only one of its records
            known = several[at]
            more = np.flatnonzero(new & ~known)
            if not len(more):
                break
            at, new = at[more], new[more]
            several[at] = known[more] | new
    return several


def _count_agreeing(packed: Packed, q: IntArray, example: Words, single: Words, guards: int) -> list[int]:
    """Count by target the GT records that agree with the example of their q where SD has a `single` level."""
    records = np.zeros(len(packed.targets), dtype=np.int64)
    for chunk, index in _iterate_chunks(q):
        certain = single[index]
        kept = np.flatnonzero(certain)
        if not len(kept):
            continue
        agree = certain[kept] & ~packed.differ(packed.words[0][chunk][kept], example[index[kept]], guards)
        records += [np.count_nonzero(agree & np.uint64(guard)) for guard in packed.guards]
    return records.tolist()
