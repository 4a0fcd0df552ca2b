"""Found in pieces: the columns by which SD shows most people, chosen on one half and read on the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import combinations

import numpy as np

from disclosure_pipeline.counting.memory.box_sets import MOST_RECORDS, BoxCounter
from disclosure_pipeline.counting.memory.boxes import Boxes
from disclosure_pipeline.evaluation.boxed_people import GT, SD, WIDEST, BoxedPeople, BoxedTables
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.found import BoxCounts, Found, OwnCoverage, find_beyond_fresh, found

Set = tuple[int, ...]

_CHOOSING, _READING = 500, 1_000  # people
_COVERED = 300  # SD records looked at for its own coverage
_MOST_TRIPLES = 400
_EXTENDED = 5  # sets to extend at a time
_LARGEST = 7  # columns
_LARGE_SETS = 60
_FEWEST_ALONE = 0.05  # a set that tells fewer people apart shows nobody to speak of
_FIRST = 96  # people: a set by which none of them is alone is not looked at further
_HARDLY_ANYBODY = 0.01  # of all people, where a set has no more combinations of levels
_MOST_CELLS = 2e10  # sets times people times records, up to which all sets are tried


@dataclass(frozen=True)
class Piece:
    """The figures of the set of columns that was chosen, at the tolerance of a place."""

    columns: Set
    place: int
    figures: Found


def find_in_pieces(
    tables: BoxedTables,
    people: IntArray,
    first: Iterable[Set],
    places: Sequence[int],
    rng: np.random.Generator,
) -> Piece | None:
    """Return the figures of the set that shows most people; None if no set tells people apart.

    `people` are split at random. `first`: sets to try beside pairs and triples.
    """
    mixed = rng.permutation(people)
    half = len(mixed) // 2
    choosing, reading = mixed[:half][:_CHOOSING], mixed[half:][:_READING]
    if not len(choosing):
        return None
    some = _draw_records(tables, choosing, rng)
    search = _Search(some, rng)
    best: tuple[float, Set, int] | None = None
    sets = _list_sets(some, first, rng)
    for place in places:
        for figure, columns in search.search(sets, place):
            if best is None or figure > best[0]:
                best = (figure, columns, place)
    if best is None:
        return None
    _, columns, place = best
    reader = _Search(BoxedPeople(tables, reading), rng)
    [read] = reader.count([columns], place, fewest_alone=0.0)
    read = reader.add_values(reader.add_columns(read, place), place)
    figures = found(read.counts, tables.sizes, read.coverage, records_per_unit=tables.records_per_unit)
    return Piece(columns, place, figures)


def _draw_records(tables: BoxedTables, people: IntArray, rng: np.random.Generator) -> BoxedPeople:
    """Return the people among all records, or among as large a share of them as can be searched fast."""
    sizes = tables.sizes
    share = MOST_RECORDS / (sizes.N_d + sizes.N_s)
    if share >= 1:
        return BoxedPeople(tables, people)
    drawn = [np.zeros(n, dtype=bool) for n in (sizes.N_d, sizes.N_s)]
    for is_drawn in drawn:
        is_drawn[rng.permutation(len(is_drawn))[: round(len(is_drawn) * share)]] = True
    drawn[GT][people] = True
    of_GT, of_SD = map(np.flatnonzero, drawn)
    columns = [column.select([[GT], [SD]], [of_GT, of_SD]) for column in tables.columns]
    return BoxedPeople(BoxedTables(columns, tables.unit[of_GT]), np.searchsorted(of_GT, people))


def _list_sets(boxed: BoxedPeople, first: Iterable[Set], rng: np.random.Generator) -> list[Set]:
    """Return the sets to begin with: fewer of them in large tables."""
    tables = boxed.tables
    columns = len(tables.columns)
    triples = list(combinations(range(columns), 3))
    records = tables.sizes.N_d + tables.sizes.N_s
    most = max(int(_MOST_CELLS / (len(boxed.people) * records)), 100)
    sets = {one for one in first if one} | set(combinations(range(columns), 2))
    drawn = rng.permutation(len(triples))[: min(_MOST_TRIPLES, max(most - len(sets), 0))]
    # Few columns with few levels tell nobody apart.
    large = {tuple(sorted(rng.permutation(columns)[:_LARGEST].tolist())) for _ in range(_LARGE_SETS)}
    levels = [int(np.count_nonzero(column.counts[GT])) for column in tables.columns]
    people_alone = _HARDLY_ANYBODY * tables.sizes.N_d / tables.records_per_unit
    return sorted(
        one
        for one in sets | {triples[i] for i in drawn.tolist()} | large
        if math.prod(levels[k] for k in one) >= people_alone
    )


@dataclass(frozen=True)
class CountedSet:
    """The boxes of people on a set of columns, and SD's own coverage there, where it matters."""

    columns: Set
    counts: BoxCounts
    coverage: OwnCoverage | None


class _Search:
    """Looks for the sets of columns that show most of some people."""

    def __init__(self, boxed: BoxedPeople, rng: np.random.Generator) -> None:
        self.boxed, self.rng = boxed, rng

    def search(self, sets: Sequence[Set], place: int) -> list[tuple[float, Set]]:
        """Return the best of the sets, and of sets with more columns, with their figures."""
        columns = self.boxed.tables.columns
        if place:  # without a number, a tolerance changes nothing
            sets = [one for one in sets if any(columns[k].is_number for k in one)]
        best = self._rank(sets, place)
        front = best
        for _ in range(3, _LARGEST):
            extended = {
                tuple(sorted((*one, k)))
                for _, one in front
                for k in range(len(columns))
                if k not in one and len(one) < _LARGEST
            }
            front = self._rank(sorted(extended), place)
            if not front:
                break
            best = [*best, *front]
        return best

    def _rank(self, sets: Sequence[Set], place: int) -> list[tuple[float, Set]]:
        """Return the best sets with their figures, the largest first.

        Who is shown bounds the figure. What SD's columns would show is looked at where this bound is large
        enough, and the numbers that SD kept where nothing else explains the figure.
        """
        waiting = [
            (-self._find_figure(of_set), False, number, of_set)
            for number, of_set in enumerate(self.count(sets, place, _FEWEST_ALONE))
        ]
        heapify(waiting)
        ranked: list[tuple[float, Set]] = []
        while waiting:
            figure, is_by_columns, number, of_set = heappop(waiting)
            if -figure <= (ranked[-1][0] if len(ranked) == _EXTENDED else 0.0):
                break
            if not is_by_columns:
                of_set = self.add_columns(of_set, place)
                heappush(waiting, (-self._find_figure(of_set), True, number, of_set))
                continue
            exact = self._find_figure(self.add_values(of_set, place))
            ranked = sorted([*ranked, (exact, of_set.columns)], key=lambda entry: (-entry[0], entry[1]))
            ranked = ranked[:_EXTENDED]
        return ranked

    def _find_figure(self, of_set: CountedSet) -> float:
        return find_beyond_fresh(of_set.counts, self.boxed.tables.sizes, of_set.coverage)

    def count(self, sets: Sequence[Set], place: int, fewest_alone: float) -> list[CountedSet]:
        """Count boxes on each set that tells enough people apart, but for what SD's columns would show."""
        boxed, people = self.boxed, len(self.boxed.people)
        if fewest_alone:
            first = boxed.count_others(_at(sets, place), _FIRST)
            sets = [one for one, Y in zip(sets, first, strict=True) if (Y == 0).any()]
        others = boxed.count_others(_at(sets, place))
        told_apart = [n for n, Y in enumerate(others) if np.count_nonzero(Y == 0) >= fewest_alone * people]
        chosen, nothing = [sets[n] for n in told_apart], np.zeros(people)
        shown = boxed.counters[SD].find_shown(_at(chosen, place))
        coverage = self._find_coverage(chosen, place)
        return [
            CountedSet(one, BoxCounts(others[n], is_shown, nothing, nothing), covered)
            for n, one, is_shown, covered in zip(told_apart, chosen, shown, coverage, strict=True)
        ]

    def add_columns(self, of_set: CountedSet, place: int) -> CountedSet:
        """Return the set with the counts of SD with its columns permuted."""
        alone = of_set.counts.others == 0
        by_columns = self.boxed.find_by_columns(of_set.columns, place, alone)
        return replace(of_set, counts=replace(of_set.counts, by_columns=by_columns))

    def add_values(self, of_set: CountedSet, place: int) -> CountedSet:
        """Return the set with the counts of SD that keeps its most identifying number."""
        columns, alone = of_set.columns, of_set.counts.others == 0
        number = self.boxed.find_number(columns, place)
        if number is None:
            return of_set
        [matching] = self.boxed.count_others([[(k, WIDEST if k == number else place) for k in columns]])
        by_values = self.boxed.find_by_values(number, matching, place, alone)
        return replace(of_set, counts=replace(of_set.counts, by_values=by_values))

    def _find_coverage(self, sets: Sequence[Set], place: int) -> list[OwnCoverage | None]:
        if not self.boxed.tables.is_diluted:
            return [None] * len(sets)
        counts = self._of_drawn.count(_at(sets, place), self._of_drawn.boxes.people)
        return [OwnCoverage(int(np.count_nonzero(near > 1)), len(near)) for near in counts]

    @cached_property
    def _of_drawn(self) -> BoxCounter:
        """Counts the SD records in the boxes around some of them."""
        tables = self.boxed.tables
        drawn = np.sort(self.rng.permutation(tables.sizes.N_s)[:_COVERED])
        return BoxCounter(Boxes.around(tables.columns, drawn, SD), SD)


def _at(sets: Sequence[Set], place: int) -> list[list[tuple[int, int]]]:
    return [[(k, place) for k in one] for one in sets]
