"""Searching all key sets up to a size on several threads, and estimating how long that takes."""

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

_PROBES = 24  # the most sets that are measured to estimate the time of all
_SETS_A_PROBE = 4  # at most one set in four is a probe, so that the estimate costs a quarter of the search
_SEED = 20240501
_SORTED_BY = 2  # the number of columns by which records are sorted for all sets that contain them

Exposed: TypeAlias = list[list[ExposedRecords]]


@dataclass(frozen=True)
class Search:
    """A search over key sets of `columns`, which are sorted by their number of levels, the largest first.

    `place[k]` is the position of column k in the caller's list. `records`: of each table, GT first.
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

    def select(self, records: Sequence[IntArray], last: int) -> Search:
        """Return the search over some records of each table, for sets that add columns after `last`."""
        columns = (column.select(records) for column in self.columns[last + 1 :])
        return replace(
            self,
            columns=(*self.columns[: last + 1], *columns),
            targets=tuple(target.select(records) for target in self.targets),
            records=tuple(map(len, records)),
        )

    def expose_nobody(self) -> Exposed:
        """Return the exposed records before any set is searched, by target and synthesis."""
        return [
            [ExposedRecords.nobody(self.records[0], self.up_to) for _ in self.syntheses] for _ in self.targets
        ]


@dataclass(frozen=True)
class SetFigures:
    """The figures of one set: `repU` (GT records) and `hits` by synthesis, others by target and synthesis."""

    columns: tuple[int, ...]
    repU: tuple[int, ...]
    hits: tuple[HitCounts, ...]
    targets: Mapping[int, Sequence[ExposureFigures]]


def search_key_sets(search: Search, on_progress: OnProgress) -> tuple[list[SetFigures], Exposed]:
    """Return the figures of every set, and the exposed records."""
    exposed = search.expose_nobody()
    set_figures: list[SetFigures] = []
    work = partial(_search_part, search)
    for figures, part_exposed in map_in_threads(_list_parts(search), work, threads_for(sum(search.records))):
        set_figures += figures
        for by_synthesis, part_by_synthesis in zip(exposed, part_exposed, strict=True):
            for records, part_records in zip(by_synthesis, part_by_synthesis, strict=True):
                records.sizes |= part_records.sizes
        on_progress("Measuring the key sets", len(set_figures), search.sets)
    return set_figures, exposed


def estimate_seconds(search: Search) -> float:
    """Estimate the duration of `search_key_sets` on otherwise idle cores.

    It is measured in CPU time, which does not depend on other processes, on a random sample of sets. Sorting
    the records is left out, as it is done once for many sets.
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
    """The sets that add later columns to `start`; `search` is limited to the `records` that matter."""

    start: KeySet
    search: Search
    records: tuple[IntArray, ...]
    exposed: Exposed

    @classmethod
    def of_columns(cls, search: Search, columns: Sequence[int]) -> _Part:
        """Sort the records by their q, once for all sets of the part."""
        key_set, records = form_key_set(search.columns, columns, search.records).sorted_by_key()
        selected = search.select(records, columns[-1] if columns else -1)
        return cls(key_set, selected, records, selected.expose_nobody())


def _list_parts(search: Search) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the columns that each part starts from, and the largest size of its sets."""
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
        [records.place(part.records[0], search.records[0]) for records in by_synthesis]
        for by_synthesis in part.exposed
    ]
    return figures, exposed


def _measure(search: Search, key_set: KeySet, exposed: Exposed) -> SetFigures:
    d_q, *s = key_set.counts
    keys_by_synthesis = [
        KeySetKeyCounts.from_frequencies(d_q, key_set.counts[synthesis.table], synthesis.chances)
        for synthesis in search.syntheses
    ]
    return SetFigures(
        columns=key_set.columns,
        repU=tuple(int(np.count_nonzero((d_q == 1) & (s_q == 1))) for s_q in s),
        hits=tuple(hit_counts(d_q, s_q) for s_q in s),
        targets={
            i: measure_key_set(
                key_set, target, search.syntheses, search.support, exposed[i], keys_by_synthesis
            )
            for i, target in enumerate(search.targets)
            if target.position not in key_set.columns
        },
    )
