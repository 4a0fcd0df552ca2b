"""All key sets up to a size, on threads; and how long that would take."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import comb
from typing import TypeAlias

import numpy as np

from disclosure_pipeline.analyses.exposure_counts import ExposureFigures, measure_key_set
from disclosure_pipeline.analyses.key_set_tree import (
    ExposedRecords,
    ExposureTarget,
    KeySet,
    KeySetColumn,
    Synthesis,
    form_key_set,
    iterate_key_sets,
)
from disclosure_pipeline.measures.copies import HitCounts, hit_counts
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.exposure import KeySetKeyCounts
from disclosure_pipeline.runtime.machine import map_in_threads, threads_for
from disclosure_pipeline.runtime.progress import OnProgress

_PROBES = 24  # sets, at most, that are measured to tell how long all of them take
_SETS_A_PROBE = 4  # of fewer sets fewer are measured, so that it costs a quarter of the whole at most
_SEED = 20240501
_SORTED_BY = 2  # columns: whose sets are searched together

Exposed: TypeAlias = list[list[ExposedRecords]]


@dataclass(frozen=True)
class Search:
    """A search for key sets: the columns that they are made of, those of many levels first.

    `place[k]` is the place at which the caller named column k. `records` are those of each table, GT first.
    """

    columns: tuple[KeySetColumn, ...]
    place: tuple[int, ...]
    targets: tuple[ExposureTarget, ...]
    syntheses: tuple[Synthesis, ...]
    records: tuple[int, ...]
    up_to: int
    support: int

    @property
    def sets(self) -> int:
        """The number of key sets."""
        return sum(comb(len(self.columns), size) for size in range(1, self.up_to + 1))

    def of_records(self, records: Sequence[IntArray], last: int) -> Search:
        """Return the same of some records of each table, for sets with the column `last` and later ones."""
        columns = (column.of_records(records) for column in self.columns[last + 1 :])
        return replace(
            self,
            columns=(*self.columns[: last + 1], *columns),
            targets=tuple(target.of_records(records) for target in self.targets),
            records=tuple(map(len, records)),
        )

    def nobody(self) -> Exposed:
        """Nobody is exposed yet, by target and synthesis."""
        return [
            [ExposedRecords.nobody(self.records[0], self.up_to) for _ in self.syntheses] for _ in self.targets
        ]


@dataclass(frozen=True)
class SetFigures:
    """The figures of one set: GT records of repU and hits by synthesis, the rest by target and synthesis."""

    columns: tuple[int, ...]
    repU: tuple[int, ...]
    hits: tuple[HitCounts, ...]
    targets: Mapping[int, Sequence[ExposureFigures]]


def search_key_sets(search: Search, on_progress: OnProgress) -> tuple[list[SetFigures], Exposed]:
    """Return the figures of every set, and who is exposed."""
    exposed = search.nobody()
    set_figures: list[SetFigures] = []
    work = partial(_search_part, search)
    for figures, of_part in map_in_threads(_parts(search), work, threads_for(sum(search.records))):
        set_figures += figures
        for of_target, part_of_target in zip(exposed, of_part, strict=True):
            for records, part_records in zip(of_target, part_of_target, strict=True):
                records.sizes |= part_records.sizes
        on_progress("Measuring the key sets", len(set_figures), search.sets)
    return set_figures, exposed


def estimate_seconds(search: Search) -> float:
    """Return how long `search_key_sets` takes where nobody else needs the cores, about.

    Measured on a few sets drawn of all, in seconds of CPU, which do not depend on what else runs. Sorting the
    records is left out, as it is done once for many sets.
    """
    draw = random.Random(_SEED)
    probes = min(_PROBES, max(1, search.sets // _SETS_A_PROBE))
    sizes = range(1, search.up_to + 1)
    weights = [comb(len(search.columns), size) for size in sizes]
    seconds = 0.0
    for size in draw.choices(sizes, weights, k=probes):
        *before, last = sorted(draw.sample(range(len(search.columns)), size))
        start, between = before[:_SORTED_BY], before[_SORTED_BY:]
        part = _Part.of_columns(search, start)
        smaller = part.start
        for position in between:
            smaller = smaller.with_column(position, part.search.columns[position])
        begun = time.thread_time()
        _measure(part.search, smaller.with_column(last, part.search.columns[last]), part.exposed)
        seconds += time.thread_time() - begun
    return seconds / probes * search.sets / max(1, threads_for(sum(search.records)))


@dataclass(frozen=True)
class _Part:
    """Sets that hold the columns of `start`, and later ones: `search` is of the `records` that matter."""

    start: KeySet
    search: Search
    records: tuple[IntArray, ...]
    exposed: Exposed

    @classmethod
    def of_columns(cls, search: Search, columns: Sequence[int]) -> _Part:
        """Sort the records by their q, once for all the sets."""
        key_set, records = form_key_set(search.columns, columns, search.records).sorted_by_key()
        of_records = search.of_records(records, columns[-1] if columns else -1)
        return cls(key_set, of_records, records, of_records.nobody())


def _parts(search: Search) -> Iterator[tuple[tuple[int, ...], int]]:
    """Sets to start from, and up to how many columns are added to them."""
    for first in range(len(search.columns)):
        yield (first,), 1
        if search.up_to > 1:
            for second in range(first + 1, len(search.columns)):
                yield (first, second), search.up_to


def _search_part(search: Search, columns: tuple[tuple[int, ...], int]) -> tuple[list[SetFigures], Exposed]:
    start, up_to = columns
    part = _Part.of_columns(search, start)
    key_sets = iterate_key_sets(part.search.columns, part.start, up_to)
    figures = [_measure(part.search, key_set, part.exposed) for key_set in key_sets]
    exposed = [
        [records.of_records(part.records[0], search.records[0]) for records in of_target]
        for of_target in part.exposed
    ]
    return figures, exposed


def _measure(search: Search, key_set: KeySet, exposed: Exposed) -> SetFigures:
    d_q, *s = key_set.counts
    of_keys = [
        KeySetKeyCounts.from_frequencies(d_q, key_set.counts[synthesis.table], synthesis.chances)
        for synthesis in search.syntheses
    ]
    return SetFigures(
        columns=key_set.columns,
        repU=tuple(int(np.count_nonzero((d_q == 1) & (s_q == 1))) for s_q in s),
        hits=tuple(hit_counts(d_q, s_q) for s_q in s),
        targets={
            i: measure_key_set(key_set, target, search.syntheses, search.support, exposed[i], of_keys)
            for i, target in enumerate(search.targets)
            if target.position not in key_set.columns
        },
    )
