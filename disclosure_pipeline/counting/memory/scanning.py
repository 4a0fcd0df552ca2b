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
from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.memory import loops
from disclosure_pipeline.counting.memory.cell_tables import count_pairs_of
from disclosure_pipeline.counting.memory.packing import Packing
from disclosure_pipeline.counting.memory.radix import Codes, Item, Job, sum_readers
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.runtime.machine import run_in_threads

_CLASSES, _ROWS = 1 << 14, 1_000_000  # of a target: what does not fit stands for itself
_CELLS = 1 << 16  # that the formulas see at once, about
_RANGE = 1 << 16  # records that are sorted at a time: they fit the cache
_MOST_RANGES = 1 << 8  # their numbers fit a byte
_SPARE = 1.5  # times the records of a range on average: for larger ones, threads keep no room
_BITS = 16  # that tell ranges apart
_SAMPLE = 1 << 16  # records, to find ranges of about equal numbers of records


@dataclass(frozen=True)
class Scan:
    """The bits read of each record: the `levels` of a target from bit `shift` on, or none for the keys.

    Key combinations of more than `most` records are not added to classes.
    """

    shift: int
    levels: int
    missing: int
    most: int
    list_above: float

    @classmethod
    def of_keys(cls) -> Scan:
        """Return the scan whose cells are the key combinations: all records have one level."""
        return cls(0, 1, 1, sys.maxsize, np.inf)

    @classmethod
    def of_target(cls, target: Target, shift: int) -> Scan:
        """Return the scan for a target.

        Bands need to know which levels stand together, exclusions those of the keys, too.
        """
        most = 0 if target.exclusions else 1 if target.band else sys.maxsize
        return cls(shift, target.column.size, target.column.missing, most, target.list_cells_above)


@dataclass(frozen=True)
class PartCells:
    """The cells of a part beside its classes: `alone` records of GT and SD, and for each scan the rest.

    single: the code of each key combination, and q, t, d, s of its cells. large: key, t and d of the DiSCO
    cells to list, of key combinations in classes. lone: those that one GT record has,
    counted, if asked for.
    """

    alone: IntArray
    single: list[tuple[Codes, ...]]
    large: list[tuple[Codes, ...]]
    lone: Sequence[Counted]


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
    begins: IntArray
    ends: IntArray
    single: loops.Single
    large: loops.Large

    @classmethod
    def of(cls, records: int) -> Room:
        """Return room for so many records."""
        packed, columns = np.empty((4, records), dtype=np.uint64), np.empty((8, records), dtype=np.int32)
        begins, ends, q, t, d, s, t_of_large, d_of_large = columns
        single = loops.Single(packed[2], q, t, d, s, np.zeros(2, dtype=np.int64))
        large = loops.Large(packed[3], t_of_large, d_of_large, np.zeros(1, dtype=np.int64))
        return cls(packed[0], packed[1], begins, ends, single, large)


def find_scanned_cells(job: Job, packing: Packing, targets: Sequence[int], *, with_keys: bool) -> CellParts:
    """Yield the cells of the packed targets, by their places, and perhaps of the keys."""
    scans = [*map(Scan.of_target, packing.targets, packing.shifts)]
    places: list[int | None] = [*targets]
    if with_keys:
        scans, places = [Scan.of_keys(), *scans], [None, *places]
    dealt = DealtRecords.from_job(job, packing)
    rooms = list[Room]()
    waiting: list[list[Sequence[loops.Classes]]] = [[] for _ in job.syntheses]
    tasks = [
        partial(_scan_range, job, packing, synthesis, dealt, i, size, scans, rooms, classes, lists_lone)
        for synthesis, classes in zip(job.syntheses, waiting, strict=True)
        for lists_lone in [with_keys and job.request.apart and synthesis == job.syntheses[0]]
        for i, size in enumerate(dealt.count(synthesis).tolist())
    ]
    parts = iter(run_in_threads(tasks, job.threads, job.report("Measuring")))
    merging = [
        partial(_merge, [of_thread[i] for of_thread in classes], scan.levels)
        for classes in waiting
        for i, scan in enumerate(scans)
    ]
    merged = iter(run_in_threads(merging, job.threads))
    finds: list[Callable[[], Iterable[Found]]] = []
    for synthesis in job.syntheses:
        own_parts = [next(parts) for _ in range(dealt.ranges)]
        finds.append(partial(iter, [counted for part in own_parts for counted in part.lone]))
        for i, (place, scan) in enumerate(zip(places, scans, strict=True)):
            finds += _find_classes(packing, synthesis, place, i, scan, next(merged), own_parts)
            finds += [
                partial(_find_single, packing, synthesis, place, some)
                for some in _batches(part.single[i] for part in own_parts)
            ]
    yield job.collect(finds, targets, partial(count_pairs_of, job), job.formula_threads)


def _scan_range(
    job: Job,
    packing: Packing,
    synthesis: int,
    dealt: DealtRecords,
    number: int,
    size: int,
    scans: Sequence[Scan],
    rooms: list[Room],
    waiting: list[Sequence[loops.Classes]],
    lists_lone: bool,
) -> PartCells:
    """Scan the `size` records of GT and one SD in a range; the classes are added to those of the thread."""
    usual = int(_SPARE * sum(job.records)) // dealt.ranges
    with (
        _take(rooms if size <= usual else [], partial(Room.of, max(size, usual))) as room,
        _take(waiting, lambda: [_make_classes(_CLASSES, _ROWS, np.uint32) for _ in scans]) as classes,
    ):
        table_bit, key_bit = np.uint64(packing.table_bit), np.uint64(packing.table_bit + 1)
        dealt.read(number, synthesis, room.records)
        records = loops.sort_by_key(room.records[:size], room.spare[:size], key_bit)
        alone, lone = np.zeros(2, dtype=np.int64), list[Counted]()
        if lists_lone:
            codes = room.single.key[: loops.list_alone(records, key_bit, room.single.key)]
            # Counted at once: kept until the end, they would take more memory than all classes.
            lone = [Counted([*LoneKeys(packing.keys.levels_of(codes)).count(job.request)])]
        fewest = 2 if all(scan.most for scan in scans) else 1
        keys = loops.find_keys(records, key_bit, fewest, room.begins, room.ends, alone)
        parts = PartCells(alone, [], [], lone)
        for scan, of_scan in zip(scans, classes, strict=True):
            room.single.used[:] = room.large.used[:] = 0
            loops.add_keys(
                records,
                room.begins[:keys],
                room.ends[:keys],
                table_bit,
                np.uint64(scan.shift),
                np.uint64((1 << (scan.levels - 1).bit_length()) - 1),
                scan.levels,
                np.uint64(scan.missing),
                scan.most,
                scan.list_above,
                of_scan,
                room.single,
                room.large,
            )
            q, end = room.single.used
            key, *cells, _ = room.single
            parts.single.append((key[:q].copy(), *(column[:end].copy() for column in cells)))
            parts.large.append(tuple(column[: room.large.used[0]].copy() for column in room.large[:-1]))
        return parts


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

    def count(in_range: IntArray, table: int, number: int) -> tuple[IntArray, list[IntArray]]:
        largest, looks = int(in_range.max()), np.zeros((len(masks), loops.FEW, loops.FEW), dtype=np.int64)
        distinct = min(largest, most)
        sizes = [largest, largest, distinct, 8 * distinct, 8 * distinct]
        with _take(waiting, partial(np.zeros, sum(sizes), dtype=np.uint64)) as room:
            read, spare, slots, codes, cells = np.split(room, np.cumsum(sizes[:-1]))
            records = read[: in_range[number]]
            dealt.read(number, table, records)
            records = loops.sort_by_key(records, spare[: len(records)], key_bit)
            large = np.empty((len(masks), len(records) // loops.FEW), dtype=np.uint64)
            found = np.zeros(len(masks), dtype=np.int64)
            loops.count_combinations(records, key_bit, masks, most, slots, codes, cells, looks, large, found)
        of_masks = zip(large, found, strict=True)
        return looks, [of_mask[:number].astype(np.int64) for of_mask, number in of_masks]

    for table, synthesis in enumerate(syntheses, start=1):
        in_range = dealt.count(table)
        tasks = [partial(count, in_range, table, number) for number in range(dealt.ranges)]
        counted = run_in_threads(tasks, job.threads, job.report("Comparing records without a column"))
        waiting.clear()
        for i, place in enumerate(left_out):
            looks: IntArray = sum(looks[i] for looks, _ in counted)
            few = np.nonzero(looks)
            d, s = loops.split_cells(np.concatenate([large[i] for _, large in counted]))
            n = np.append(looks[few], np.ones(len(d), dtype=np.int64))
            counts = [np.append(few[0], d), np.append(few[1], s)]
            yield Cells.of_keys(counts, [synthesis], n=n, left_out=place)


def _make_classes(classes: int, rows: int, dtype: npt.DTypeLike) -> loops.Classes:
    slots = 1 << (2 * classes - 1).bit_length()
    return loops.Classes(
        np.full(slots, -1, dtype=np.int32),
        np.empty(classes, dtype=np.uint64),
        np.empty((classes, loops.LOOKS), dtype=np.int8),
        np.empty(classes, dtype=np.int64),
        np.zeros(classes, dtype=dtype),
        np.zeros(rows, dtype=dtype),
        np.zeros(2, dtype=np.int64),
    )


def _find_classes(
    packing: Packing,
    synthesis: int,
    place: int | None,
    i: int,
    scan: Scan,
    classes: tuple[IntArray, ...],
    parts: Sequence[PartCells],
) -> Iterator[Callable[[], list[Cells]]]:
    """Yield functions that return the cells of some classes of scan i: see `_merge`."""
    alone = np.sum([part.alone for part in parts], axis=0) * (scan.most > 0)
    q, t, d, s, n, alike = classes
    if place is None:
        yield lambda: [Cells.of_keys([d, s], [synthesis], n=n, alone=alone)]
        return

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
    packing: Packing, synthesis: int, place: int | None, single: Sequence[tuple[Codes, ...]]
) -> Iterator[Cells]:
    """Yield the cells of single key combinations."""
    before = np.cumsum([0, *(len(key) for key, *_ in single)])
    q = np.concatenate([q + first for (_, q, *_), first in zip(single, before[:-1], strict=True)])
    t, d, s = (np.concatenate([part[i] for part in single]).astype(np.int64) for i in (2, 3, 4))
    if place is None:
        yield Cells.of_keys([d, s], [synthesis])
        return
    codes = np.concatenate([key for key, *_ in single])

    def levels_of(some: IntArray) -> IntArray:
        return packing.keys.levels_of(codes[some])

    yield Cells(place, [synthesis], q, t, [d, s], levels_of, is_joined=True)


def _merge(classes: Sequence[loops.Classes], levels: int) -> tuple[IntArray, ...]:
    """Return q, t, d, s and n of the cells of all classes, and the key combinations that each stands for."""
    most, rows = (max(1, sum(int(of_one.used[i]) for of_one in classes)) for i in range(2))
    merged = _make_classes(most, rows, np.int64)
    for of_one in classes:
        loops.merge(merged, of_one, levels)
    number, rows = merged.used
    cells = np.empty((5, int(np.count_nonzero(merged.rows[:rows]))), dtype=np.int64)
    loops.read_classes(merged, levels, *cells)
    return (*cells, merged.alike[:number])


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
