"""Counting packed records by the compiled `loops`, in many small tasks that hold no lock.

Each task sorts the records of a range of keys and scans them once for each target. Key combinations that
look the same become a class with their number (`FrequencyTable.alike`). Those whose cells are too large for a
code, or of which exclusions and bands need every level, stand for themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from disclosure_pipeline.counting.cells import CellParts, Cells
from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.memory import loops
from disclosure_pipeline.counting.memory.cell_tables import count_pairs_of
from disclosure_pipeline.counting.memory.packing import Packing
from disclosure_pipeline.counting.memory.radix import Codes, Job, sum_readers
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.runtime.machine import run_in_threads

_CLASSES, _ROWS = 1 << 14, 1 << 20  # of a target: what does not fit stands for itself
_CELLS = 1 << 18  # of single key combinations that the formulas see at once
_RANGE = 1 << 16  # records that are sorted at a time: they fit the cache
_MOST_RANGES = 1 << 8  # their numbers fit a byte
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
    cells to list, of key combinations in classes. hits_apart: see `Job.count_hits_apart`.
    """

    alone: IntArray
    single: list[tuple[Codes, ...]]
    large: list[tuple[Codes, ...]]
    hits_apart: int


@dataclass(frozen=True)
class DealtRecords:
    """Records in `ranges` of key combinations: `parts[table]` are its records in the order of their range.

    The records of range i in a part are `records[bounds[i] : bounds[i + 1]]`.
    """

    ranges: int
    parts: list[list[tuple[Codes, list[int]]]]

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

        def deal(table: int, part: slice) -> tuple[Codes, list[int]]:
            records = np.empty(part.stop - part.start, dtype=np.uint64)
            sum_readers(readers[table], part, records, compiled=True)
            ends, dealt = np.zeros(ranges, dtype=np.int64), np.empty_like(records)
            loops.deal(records, np.uint64(shift), range_of, ends, dealt)
            return dealt, [0, *ends.tolist()]

        tasks = [partial(deal, table, part) for table in range(len(readers)) for part in job.parts(table)]
        dealt = iter(run_in_threads(tasks, job.threads, job.report("Packing")))
        return cls(ranges, [[next(dealt) for _ in job.parts(table)] for table in range(len(readers))])

    def read(self, number: int, synthesis: int) -> Codes:
        """Return the records of GT and a synthesis in a range."""
        return np.concatenate(
            [
                records[bounds[number] : bounds[number + 1]]
                for table in (0, synthesis)
                for records, bounds in self.parts[table]
            ]
        )


def find_scanned_cells(job: Job, packing: Packing, targets: Sequence[int], *, with_keys: bool) -> CellParts:
    """Yield the cells of the packed targets, by their places, and perhaps of the keys."""
    scans = [*map(Scan.of_target, packing.targets, packing.shifts)]
    places: list[int | None] = [*targets]
    if with_keys:
        scans, places = [Scan.of_keys(), *scans], [None, *places]
    dealt = DealtRecords.from_job(job, packing)
    waiting: list[list[list[loops.Classes]]] = [[] for _ in job.syntheses]
    tasks = [
        partial(_scan_range, job, packing, synthesis, dealt, i, scans, waiting[synthesis - 1])
        for synthesis in job.syntheses
        for i in range(dealt.ranges)
    ]
    parts = iter(run_in_threads(tasks, job.threads, job.report("Measuring")))
    finds: list[Callable[[], Iterable[Cells]]] = []
    for synthesis in job.syntheses:
        own_parts = [next(parts) for _ in range(dealt.ranges)]
        for i, (place, scan) in enumerate(zip(places, scans, strict=True)):
            classes = [of_thread[i] for of_thread in waiting[synthesis - 1]]
            finds.append(partial(_find_classes, packing, synthesis, place, i, scan, classes, own_parts))
            finds += [
                partial(_find_single, packing, synthesis, place, some)
                for some in _batches(part.single[i] for part in own_parts)
            ]
    yield job.collect(finds, targets, partial(count_pairs_of, job))


def _scan_range(
    job: Job,
    packing: Packing,
    synthesis: int,
    dealt: DealtRecords,
    number: int,
    scans: Sequence[Scan],
    waiting: list[list[loops.Classes]],
) -> PartCells:
    """Scan the records of GT and one SD in a range; the classes are added to those of the thread."""
    try:
        classes = waiting.pop()
    except IndexError:
        classes = [_make_classes(_CLASSES, _ROWS) for _ in scans]
    table_bit, key_bit = np.uint64(packing.table_bit), np.uint64(packing.table_bit + 1)
    records = dealt.read(number, synthesis)
    records = loops.sort_by_key(records, np.empty_like(records), key_bit)
    alone, hits_apart = np.zeros(2, dtype=np.int64), 0
    if job.request.apart:
        codes = np.empty_like(records)
        found = loops.list_alone(records, key_bit, codes)
        hits_apart = job.count_hits_apart(synthesis, lambda: codes[:found])
    fewest = 2 if all(scan.most for scan in scans) else 1
    begins, ends = np.empty((2, len(records)), dtype=np.int64)
    keys = loops.find_keys(records, key_bit, fewest, begins, ends, alone)
    begins, ends = begins[:keys], ends[:keys]
    single, large = [], []
    cells = int((ends - begins).sum())
    codes, (large_t, large_d) = np.empty((2, keys), np.uint64), np.empty((2, keys), np.int64)
    q, t, d, s = np.empty((4, cells), dtype=np.int32)
    singles = loops.Single(codes[0], q, t, d, s, np.zeros(2, dtype=np.int64))
    listed = loops.Large(codes[1], large_t, large_d, np.zeros(1, dtype=np.int64))
    for scan, of_scan in zip(scans, classes, strict=True):
        singles.used[:] = listed.used[:] = 0
        loops.add_keys(
            records,
            begins,
            ends,
            table_bit,
            np.uint64(scan.shift),
            np.uint64((1 << (scan.levels - 1).bit_length()) - 1),
            scan.levels,
            np.uint64(scan.missing),
            scan.most,
            scan.list_above,
            of_scan,
            singles,
            listed,
        )
        number, end = singles.used
        single.append((singles.key[:number].copy(), *(column[:end].copy() for column in singles[1:-1])))
        large.append(tuple(column[: listed.used[0]].copy() for column in listed[:-1]))
    waiting.append(classes)
    return PartCells(alone, single, large, hits_apart)


def _make_classes(classes: int, rows: int) -> loops.Classes:
    slots = 1 << (2 * classes).bit_length()
    return loops.Classes(
        np.full(slots, -1, dtype=np.int32),
        np.empty(classes, dtype=np.uint64),
        np.empty((classes, loops.LOOKS), dtype=np.int8),
        np.empty(classes, dtype=np.int64),
        np.zeros(classes, dtype=np.int64),
        np.zeros(rows, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


def _find_classes(
    packing: Packing,
    synthesis: int,
    place: int | None,
    i: int,
    scan: Scan,
    classes: Sequence[loops.Classes],
    parts: Sequence[PartCells],
) -> Iterator[Cells]:
    """Yield the classes of scan i."""
    alone = np.sum([part.alone for part in parts], axis=0) * (scan.most > 0)
    q, t, d, s, n, alike = _read_classes(_merge(classes, scan.levels), scan.levels)
    if place is None:
        hits_apart = [sum(part.hits_apart for part in parts)]
        yield Cells.of_keys([d, s], [synthesis], n=n, alone=alone, hits_apart=hits_apart)
        return

    def find_large(_: int) -> tuple[IntArray, IntArray, IntArray]:
        key, t, d = (
            np.concatenate(column) for column in zip(*(part.large[i] for part in parts), strict=True)
        )
        return packing.keys.levels_of(key), t, d

    def no_levels(some: IntArray) -> IntArray:
        return np.empty((packing.keys.width, len(some)), dtype=np.int64)

    yield Cells(place, [synthesis], q, t, [d, s], no_levels, alone, alike, n, True, find_large)


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


def _merge(classes: Sequence[loops.Classes], levels: int) -> loops.Classes:
    merged = _make_classes(*(max(1, sum(int(of_one.used[i]) for of_one in classes)) for i in range(2)))
    for of_one in classes:
        loops.merge(merged, of_one, levels)
    return merged


def _read_classes(classes: loops.Classes, levels: int) -> tuple[IntArray, ...]:
    """Return q, t, d, s and n of the cells of classes, and how many key combinations each stands for."""
    number, rows = classes.used
    cells = np.empty((5, int(np.count_nonzero(classes.rows[:rows]))), dtype=np.int64)
    loops.read_classes(classes, levels, *cells)
    return (*cells, classes.alike[:number])


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
