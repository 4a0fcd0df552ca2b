"""Counting packed records by the compiled `loops`, in many small tasks that hold no lock.

Each task sorts the records of a range of keys and scans them once for each target. Key combinations that
look the same become a class with their number (`FrequencyTable.alike`). Those whose cells are too large for a
code, or of which exclusions and bands need every level, stand for themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.cells import CellParts, Cells, Counted, Found, LoneKeys
from disclosure_pipeline.counting.counts import CountRequest, Target
from disclosure_pipeline.counting.memory import loops
from disclosure_pipeline.counting.memory.cell_tables import count_pairs_of
from disclosure_pipeline.counting.memory.packing import Packing
from disclosure_pipeline.counting.memory.radix import Codes, Item, Job, Numbering, Radix, sum_readers
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.totals import APART_SCALE
from disclosure_pipeline.runtime.machine import run_in_threads

_CLASSES, _ROWS = 1 << 14, 1_000_000  # of a target: what does not fit stands for itself
_CELLS = 1 << 16  # that the formulas see at once, about
_RANGE = 1 << 16  # records that are sorted at a time: they fit the cache
_MOST_RANGES = 1 << 8  # their numbers fit a byte
_SPARE = 1.5  # times the records of a range on average: for larger ones, threads keep no room
_BITS = 16  # that tell ranges apart
_SAMPLE = 1 << 16  # records, to find ranges of about equal numbers of records
_SMALL_CELLS = 1 << 16  # of a table of key combinations of few records: they fit the cache
_SMALL_CLASSES = 128  # more than those that differ


@dataclass(frozen=True)
class Scan:
    """The bits read of each record: the `levels` of a target from bit `shift` on.

    Key combinations of more than `most` records are not added to classes.
    """

    shift: int
    levels: int
    missing: int
    most: int
    list_above: float

    @classmethod
    def of_target(cls, target: Target, shift: int) -> Scan:
        """Return the scan of a target from a bit on.

        Bands need to know which levels stand together, exclusions those of the keys, too.
        """
        most = 0 if target.exclusions else 1 if target.band else sys.maxsize
        return cls(shift, target.column.size, target.column.missing, most, target.list_cells_above)

    def field(self, table_bit: int) -> loops.Field:
        """Return the bits as the loops take them."""
        every = (1 << (self.levels - 1).bit_length()) - 1
        table, shift, mask, missing = map(np.uint64, (table_bit, self.shift, every, self.missing))
        return loops.Field(table, shift, mask, self.levels, missing)

    def size_of_small(self, records: int) -> int:
        """Return the size of the table of all key combinations of so many records, 0 if there is none."""
        cells = (records + 1) * self.levels**records
        fits = 1 < records <= min(self.most, self.list_above) and cells <= _SMALL_CELLS
        return cells if fits else 0


@dataclass(frozen=True)
class Counting:
    """Counts of a thread for a scan: classes, and tables of the key combinations of 1, 2, … records."""

    classes: loops.Classes
    small: Sequence[IntArray]

    @classmethod
    def of(cls, scan: Scan) -> Counting:
        """Return empty classes and tables."""
        sizes = [scan.size_of_small(records) for records in range(1, loops.SMALLEST + 1)]
        classes = _make_classes(_CLASSES, _ROWS, np.uint32)
        return cls(classes, [np.zeros(size, dtype=np.uint32) for size in sizes])


@dataclass(frozen=True)
class PartCells:
    """Keys and cells of a part, beside its `Counting`.

    looks, large_keys: see `loops.FoundKeys`. counted: what is counted at once, since it would take too much
        memory until the end: the key combinations that one GT record has, and single ones if they are many.
    For each scan, single: the code of each key combination, and q, t, d, s of its cells; large: key, t and d
        of the DiSCO cells to list, of key combinations in classes.
    """

    looks: IntArray
    large_keys: Codes
    counted: list[Counted]
    single: list[tuple[Codes, ...]]
    large: list[tuple[Codes, ...]]


@contextmanager
def _take(waiting: list[Item], make: Callable[[], Item]) -> Iterator[Item]:
    """Take what no other thread uses now, or make it, and put it back for the next task."""
    try:
        taken = waiting.pop()
    except IndexError:
        taken = make()
    yield taken
    waiting.append(taken)


@dataclass(frozen=True)
class DealtRecords:
    """Records in `ranges` of key combinations: each part of a table is in the order of their range.

    Those of range i are `records[table][bounds[table][j, i] : bounds[table][j, i + 1]]` for each part j.
    """

    ranges: int
    records: list[Codes]
    bounds: list[IntArray]

    @classmethod
    def from_job(cls, job: Job, packing: Packing) -> DealtRecords:
        """Pack and deal all records, to ranges of about as many records of a sample."""
        step = max(1, sum(job.records) // _SAMPLE)
        ranges = min(_MOST_RANGES, -(-sum(job.records) // min(job.limits.part, _RANGE)))
        readers = [packing.readers(table, np.uint64) for table in range(len(job.records))]
        sample = np.concatenate([sum(reader(slice(None, None, step)) for reader in some) for some in readers])
        # Ranges are made of the highest bits, as many as can be counted in a table.
        shift = max(packing.table_bit + 1, packing.bits - _BITS)
        counts = np.bincount((sample >> np.uint64(shift)).astype(np.intp))
        below = np.cumsum(counts) - counts
        range_of = (below * ranges // len(sample)).astype(np.uint8)
        dealt = [np.empty(records, dtype=np.uint64) for records in job.records]
        parts = [[*job.parts(table)] for table in range(len(readers))]
        bounds: list[IntArray] = [np.zeros((len(of_table), ranges + 1), dtype=np.int64) for of_table in parts]
        waiting = list[Codes]()

        def deal(table: int, j: int) -> None:
            part, own = parts[table][j], bounds[table][j]
            with _take(waiting, partial(np.empty, job.limits.coded_part, dtype=np.uint64)) as room:
                packed = room[: part.stop - part.start]
                sum_readers(readers[table], part, packed, compiled=True)
                loops.deal(packed, np.uint64(shift), range_of, own[1:], dealt[table][part])
            own += part.start

        tasks = [partial(deal, table, j) for table in range(len(parts)) for j in range(len(parts[table]))]
        run_in_threads(tasks, job.threads, job.report("Packing"))
        return cls(ranges, dealt, bounds)

    def count(self, synthesis: int) -> IntArray:
        """Return the number of records of GT and a synthesis in each range."""
        counts: IntArray = sum(np.diff(self.bounds[table]).sum(axis=0) for table in (0, synthesis))
        return counts

    def read(self, number: int, synthesis: int, records: Codes) -> None:
        """Write the records of GT and a synthesis in a range."""
        end = loops.gather(self.records[0], self.bounds[0], number, records)
        loops.gather(self.records[synthesis], self.bounds[synthesis], number, records[end:])


@dataclass(frozen=True)
class Room:
    """Arrays for the records of a range, and for what is found in them: see `loops.find_keys`."""

    records: Codes
    spare: Codes
    keys: loops.FoundKeys
    single: loops.Single
    large: loops.Large

    @classmethod
    def of(cls, records: int) -> Room:
        """Return room for so many records."""
        packed = np.empty((5, records), dtype=np.uint64)
        rows = loops.SMALLEST + 1
        columns = np.empty((rows + 7, records), dtype=np.int32)
        ends, q, t, d, s, t_of_large, d_of_large = columns[rows:]
        few = np.zeros((loops.FEW, loops.FEW), dtype=np.int64)
        used, listed, of_single, of_large = (np.zeros(n, dtype=np.int64) for n in (rows, 2, 2, 1))
        large_keys = np.empty(-(-records // loops.FEW), dtype=np.uint64)
        keys = loops.FoundKeys(columns[:rows], ends, used, few, large_keys, packed[2], listed)
        single = loops.Single(packed[3], q, t, d, s, of_single)
        large = loops.Large(packed[4], t_of_large, d_of_large, of_large)
        return cls(packed[0], packed[1], keys, single, large)


def find_scanned_cells(job: Job, packing: Packing, targets: Sequence[int], *, with_keys: bool) -> CellParts:
    """Yield the cells of the packed targets, by their places, and perhaps of the keys."""
    syntheses, scans = job.request.syntheses, [*map(Scan.of_target, packing.targets, packing.shifts)]
    scanned = _scan(job, packing, targets, scans, lists_lone=with_keys and job.request.apart)
    merging = [
        partial(_merge, [of_thread[i] for of_thread in counting], scan)
        for _, counting in scanned
        for i, scan in enumerate(scans)
    ]
    merged = iter(run_in_threads(merging, job.threads))
    finds: list[Callable[[], Iterable[Found]]] = []
    for synthesis, (parts, _) in zip(syntheses, scanned, strict=True):
        found: list[Found] = [counted for part in parts for counted in part.counted]
        looks: IntArray = np.sum([part.looks for part in parts], axis=0)
        if with_keys:
            counts, n = list_combinations(looks, [part.large_keys for part in parts])
            found.append(Cells.of_keys(counts, [synthesis], n=n))
        finds.append(partial(iter, found))
        for i, (place, scan) in enumerate(zip(targets, scans, strict=True)):
            alone = looks[[1, 0], [0, 1]] * (scan.most > 0)
            finds += _find_classes(packing, synthesis, place, i, alone, next(merged), parts)
            finds += [
                partial(_find_single, packing, synthesis, place, some)
                for some in _batches(part.single[i] for part in parts)
            ]
    yield job.collect(finds, targets, partial(count_pairs_of, job), job.formula_threads)


def _scan(
    job: Job, packing: Packing, targets: Sequence[int], scans: Sequence[Scan], *, lists_lone: bool
) -> list[tuple[list[PartCells], list[Sequence[Counting]]]]:
    """Return the parts of each synthesis, and what each thread counted of it."""
    syntheses, dealt = job.request.syntheses, DealtRecords.from_job(job, packing)
    scanner = Scanner(job, packing, targets, scans, dealt, [])
    waiting: list[list[Sequence[Counting]]] = [[] for _ in syntheses]
    tasks = [
        partial(scanner.scan, synthesis, i, size, counting, lists_lone and synthesis == syntheses[0])
        for synthesis, counting in zip(syntheses, waiting, strict=True)
        for i, size in enumerate(dealt.count(synthesis).tolist())
    ]
    parts = iter(run_in_threads(tasks, job.threads, job.report("Measuring")))
    return [([next(parts) for _ in range(dealt.ranges)], counting) for counting in waiting]


def list_combinations(looks: IntArray, large: Sequence[Codes]) -> tuple[list[IntArray], IntArray]:
    """Return the records of GT and of SD in the combinations of `FoundKeys`, and how many have so many."""
    few = np.nonzero(looks)
    d, s = loops.split_cells(np.concatenate(large).astype(np.int64))
    n = np.append(looks[few], np.ones(len(d), dtype=np.int64))
    return [np.append(few[0], d), np.append(few[1], s)], n


@dataclass(frozen=True)
class Scanner:
    """Scans ranges of dealt records for the targets at some places of the request."""

    job: Job
    packing: Packing
    targets: Sequence[int]
    scans: Sequence[Scan]
    dealt: DealtRecords
    rooms: list[Room]

    def scan(
        self, synthesis: int, number: int, size: int, waiting: list[Sequence[Counting]], lists_lone: bool
    ) -> PartCells:
        """Scan the `size` records of GT and one SD in a range, and add to what the thread counted."""
        job, packing = self.job, self.packing
        usual = int(_SPARE * sum(job.records)) // self.dealt.ranges
        with (
            _take(self.rooms if size <= usual else [], partial(Room.of, max(size, usual))) as room,
            _take(waiting, lambda: [*map(Counting.of, self.scans)]) as counting,
        ):
            key_bit = np.uint64(packing.table_bit + 1)
            self.dealt.read(number, synthesis, room.records)
            records, keys = loops.sort_by_key(room.records[:size], room.spare[:size], key_bit), room.keys
            keys.used[:] = keys.looks[:] = keys.listed[:] = 0
            loops.find_keys(records, key_bit, keys)
            large, alone = (
                listed[:end] for listed, end in zip((keys.large, keys.lone), keys.listed, strict=True)
            )
            part = PartCells(keys.looks.copy(), large.copy(), [], [], [])
            if lists_lone:
                part.counted.append(_count_apart(packing.keys, alone, job.request))
            for place, scan, of_scan in zip(self.targets, self.scans, counting, strict=True):
                _scan_target(records, scan, scan.field(packing.table_bit), of_scan, room)
                q, end = room.single.used
                key, *cells, _ = room.single
                single = (key[:q], *(column[:end] for column in cells))
                if end >= _CELLS:
                    for found in _find_single(packing, synthesis, place, [single]):
                        part.counted.append(Counted([*found.count(job.request)]))
                    single = tuple(column[:0] for column in single)
                part.single.append(tuple(column.copy() for column in single))
                part.large.append(tuple(column[: room.large.used[0]].copy() for column in room.large[:-1]))
            return part


def _count_apart(keys: Radix, codes: Codes, request: CountRequest) -> Counted:
    """Count the hits of keys drawn apart, among the ascending codes of `LoneKeys`."""
    if len(keys.columns) == 1 or any(isinstance(column, Numbering) for column in keys.columns):
        return Counted([*LoneKeys(keys.levels_of(codes)).count(request)])
    sizes = np.array([column.size for column in keys.columns])
    first, digits = np.cumsum(sizes) - sizes, keys.restore_order(range(len(sizes)))
    hits = []
    for shares in request.shares_apart:
        order = np.array([digits[place] for place in shares])
        of_digits = np.concatenate([shares[digits.index(digit)] for digit in range(len(sizes))])
        apart = loops.count_hits_apart(
            codes, sizes.astype(np.uint64), first, of_digits, order, float(APART_SCALE)
        )
        hits.append(int(apart))
    return Counted.apart(hits)


def _scan_target(records: Codes, scan: Scan, field: loops.Field, counting: Counting, room: Room) -> None:
    """Add the key combinations in the room to what the thread counted of a target, or list them there."""
    keys, single, large = room.keys, room.single, room.large
    single.used[:] = large.used[:] = 0
    *few, more = (row[:used] for row, used in zip(keys.begins, keys.used, strict=True))

    def add(begins: IntArray, ends: IntArray) -> None:
        limits = scan.most, scan.list_above
        loops.add_keys(records, begins, ends, field, *limits, counting.classes, single, large)

    for size, (begins, table) in enumerate(zip(few, counting.small, strict=True), start=1):
        if len(table):
            loops.count_small(records, begins, size, field, table)
        elif size > 1 or not scan.most:
            add(begins, begins + size)
    add(more, keys.ends)


def find_combinations(job: Job, syntheses: Sequence[int], left_out: Sequence[int | None]) -> Iterator[Cells]:
    """Yield the cells of the keys with all targets, which are columns, and with all but each of them.

    `left_out`: the places of the targets' columns, after None if those with all are asked for. The tables of
    the job are GT and these syntheses.
    """
    packing = Packing(job.keys, tuple(job.request.targets))
    every = (1 << packing.bits) - 1 - (1 << packing.table_bit)
    fields = [
        ((1 << target.bits) - 1) << shift
        for target, shift in zip(packing.targets, packing.shifts, strict=True)
    ]
    some = [every, *(every - field for field in fields)][-len(left_out) :]
    masks, key_bit = np.array(some, dtype=np.uint64), np.uint64(packing.key_bit)
    most = prod(target.column.size for target in packing.targets)  # combinations of a key
    dealt = DealtRecords.from_job(job, packing)
    waiting = list[Codes]()

    def count(in_range: IntArray, table: int, number: int) -> tuple[IntArray, list[Codes]]:
        largest, looks = int(in_range.max()), np.zeros((len(masks), loops.FEW, loops.FEW), dtype=np.int64)
        distinct = min(largest, most)
        sizes = [largest, largest, distinct, 16 * distinct]
        with _take(waiting, partial(np.zeros, sum(sizes), dtype=np.uint64)) as room:
            read, spare, slots, table_of_codes = np.split(room, np.cumsum(sizes[:-1]))
            records = read[: in_range[number]]
            dealt.read(number, table, records)
            records = loops.sort_by_key(records, spare[: len(records)], key_bit)
            large = np.empty((len(masks), len(records) // loops.FEW), dtype=np.uint64)
            found = np.zeros(len(masks), dtype=np.int64)
            of_codes = table_of_codes.reshape(-1, 2)
            loops.count_combinations(records, key_bit, masks, most, slots, of_codes, looks, large, found)
        of_masks = zip(large, found, strict=True)
        return looks, [of_mask[:number].copy() for of_mask, number in of_masks]

    for table, synthesis in enumerate(syntheses, start=1):
        in_range = dealt.count(table)
        tasks = [partial(count, in_range, table, number) for number in range(dealt.ranges)]
        counted = run_in_threads(tasks, job.threads, job.report(job.step))
        waiting.clear()
        for i, place in enumerate(left_out):
            looks: IntArray = sum(looks[i] for looks, _ in counted)
            counts, n = list_combinations(looks, [large[i] for _, large in counted])
            yield Cells.of_keys(counts, [synthesis], n=n, left_out=place)


def _make_classes(classes: int, rows: int, dtype: npt.DTypeLike) -> loops.Classes:
    slots = 1 << (2 * classes - 1).bit_length()
    return loops.Classes(
        np.full(slots, -1, dtype=np.int32),
        np.empty((classes, 4), dtype=np.uint64),
        np.zeros(rows, dtype=dtype),
        np.zeros(2, dtype=np.int64),
    )


def _find_classes(
    packing: Packing,
    synthesis: int,
    place: int,
    i: int,
    alone: IntArray,
    classes: tuple[IntArray, ...],
    parts: Sequence[PartCells],
) -> Iterator[Callable[[], list[Cells]]]:
    """Yield functions that return the cells of some classes of scan i: see `_merge`, `Cells.alone`."""
    q, t, d, s, n, alike = classes

    def find_large(_: int) -> tuple[IntArray, IntArray, IntArray]:
        key, t, d = (
            np.concatenate(column) for column in zip(*(part.large[i] for part in parts), strict=True)
        )
        return packing.keys.levels_of(key), t.astype(np.int64), d.astype(np.int64)

    def no_levels(some: IntArray) -> IntArray:
        return np.empty((packing.keys.width, len(some)), dtype=np.int64)

    def find(first: int, end: int, begins: int, ends: int) -> list[Cells]:
        rows = slice(begins, ends)
        return [
            Cells(
                place,
                [synthesis],
                q[rows] - first,
                t[rows],
                [d[rows], s[rows]],
                no_levels,
                None if first else alone,
                alike[first:end],
                n[rows],
                True,
                (lambda _: (no_levels(t[:0]), t[:0], d[:0])) if first else find_large,
            )
        ]

    inner = np.unique(q[_CELLS::_CELLS])
    bounds = [0, *inner[inner > 0].tolist(), len(alike)]
    rows = np.searchsorted(q, bounds).tolist()
    yield from (
        partial(find, *classes_of_part, *cells_of_part)
        for classes_of_part, cells_of_part in zip(pairwise(bounds), pairwise(rows), strict=True)
    )


def _find_single(
    packing: Packing, synthesis: int, place: int, single: Sequence[tuple[Codes, ...]]
) -> Iterator[Cells]:
    """Yield the cells of single key combinations."""
    before = np.cumsum([0, *(len(key) for key, *_ in single)])
    q = np.concatenate([q + first for (_, q, *_), first in zip(single, before[:-1], strict=True)])
    t, d, s = (np.concatenate([part[i] for part in single]).astype(np.int64) for i in (2, 3, 4))
    codes = np.concatenate([key for key, *_ in single])

    def levels_of(some: IntArray) -> IntArray:
        return packing.keys.levels_of(codes[some])

    yield Cells(place, [synthesis], q, t, [d, s], levels_of, is_joined=True)


def _merge(counting: Sequence[Counting], scan: Scan) -> tuple[IntArray, ...]:
    """Return q, t, d, s and n of the cells of all classes, and the key combinations that each stands for."""
    classes, rows = (sum(int(of_thread.classes.used[i]) for of_thread in counting) for i in range(2))
    differ = _SMALL_CLASSES * any(map(len, counting[0].small))
    merged = _make_classes(
        max(1, classes + differ), max(1, rows + differ * loops.SMALLEST * scan.levels), np.int64
    )
    for of_thread in counting:
        loops.merge(merged, of_thread.classes, scan.levels)
    for records, of_threads in enumerate(
        zip(*(of_thread.small for of_thread in counting), strict=True), start=1
    ):
        small: IntArray = np.sum(of_threads, axis=0, dtype=np.int64)
        loops.add_small(merged, scan.levels, np.uint64(scan.missing), records, small)
    number, rows = merged.used
    q, t, d, s, n = np.empty((5, int(np.count_nonzero(merged.rows[:rows]))), dtype=np.int64)
    alike = np.empty(number, dtype=np.int64)
    loops.read_classes(merged, scan.levels, q, t, d, s, n, alike)
    return q, t, d, s, n, alike


def _batches(parts: Iterable[tuple[Codes, ...]]) -> Iterator[list[tuple[Codes, ...]]]:
    """Yield the parts that have cells, as many at a time as have enough of them."""
    batch, cells = list[tuple[Codes, ...]](), 0
    for part in parts:
        if len(part[1]):
            batch.append(part)
            cells += len(part[1])
        if cells >= _CELLS:
            yield batch
            batch, cells = [], 0
    if batch:
        yield batch
