"""Guessing the most frequent level of a random draw of records, averaged over all draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.frequency import (
    FrequencyTable,
    aranges,
    combine_keys,
    first_of_run,
    run_lengths,
    sort_together,
)
from disclosure_pipeline.measures.samples import Sizes

# By Bernstein's inequality, fewer than one of 10^9 draws is farther from the mean than this.
_DEVIATIONS = 7
_RECORDS = 15


def lowest_likely(records: IntArray, chance: float) -> IntArray:
    """Return the smallest number of drawn records that is at all likely."""
    return np.maximum(np.floor(records * chance - _likely_deviation(records, chance)), 0).astype(np.int64)


def highest_likely(records: IntArray, chance: float) -> IntArray:
    """Return the largest number of drawn records that is at all likely."""
    reached = np.ceil(records * chance + _likely_deviation(records, chance)).astype(np.int64)
    return np.minimum(reached, records).astype(np.int64)


def _likely_deviation(records: IntArray, chance: float) -> Floats:
    deviation: Floats = _DEVIATIONS * np.sqrt(records * (chance * (1 - chance))) + _RECORDS
    return deviation


@dataclass(frozen=True)
class Binomials:
    """Tabulated binomial distributions of the records drawn of some ascending numbers of `records`.

    exactly, fewer: the chance that exactly j and fewer than j records are drawn, for j from `lowest_likely` -
        1 to `highest_likely` + 1, for one number of records after the other.
    low: `lowest_likely` of each number. first: where the entries of each number begin.
    """

    records: IntArray
    low: IntArray
    first: IntArray
    exactly: Floats
    fewer: Floats

    @classmethod
    def tabulate(cls, records: IntArray, chance: float) -> Binomials:
        """Tabulate for ascending numbers of records and a chance between 0 and 1, exclusive."""
        low, high = lowest_likely(records, chance), highest_likely(records, chance)
        lengths = high - low + 3
        exactly, fewer = np.zeros(int(lengths.sum())), np.zeros(int(lengths.sum()))
        first = np.cumsum(lengths) - lengths
        for number, start, end, at in zip(
            *(numbers.tolist() for numbers in (records, low, high, first)), strict=True
        ):
            chances = _chances(number, start, end, chance)
            stop = at + len(chances) + 1
            exactly[at + 1 : stop] = chances
            fewer[at + 2 : stop + 1] = np.cumsum(chances)
            fewer[stop] = 1
        return cls(records, low, first, exactly, fewer)

    def chances(self, records: IntArray, j: IntArray) -> tuple[Floats, Floats]:
        """Return the chances that exactly j and fewer than j of `records` are drawn (shape: records, j)."""
        position = np.searchsorted(self.records, records)
        length = run_lengths(self.first, len(self.exactly))[position]
        within = np.clip(j - self.low[position][:, None] + 1, 0, length[:, None] - 1)
        at = self.first[position][:, None] + within
        return self.exactly[at], self.fewer[at]


def _chances(records: int, low: int, high: int, chance: float) -> Floats:
    """Return the chances of `low` to `high` drawn records.

    Ratios of neighbours are multiplied, beginning at the most likely number, so that no digits are lost.
    """
    odds = chance / (1 - chance)
    likely = min(max(int((records + 1) * chance), low), high)
    up, down = np.arange(likely, high), np.arange(likely, low, -1)
    above = np.cumprod((records - up) / (up + 1) * odds)
    below = np.cumprod(down / (records - down + 1) / odds)
    relative = np.concatenate((below[::-1], [1.0], above))
    chances: Floats = relative / np.cumsum(relative)[-1]
    return chances


_AT_A_TIME = 1 << 19  # chances in one array


@dataclass(frozen=True)
class Draw:
    """A draw of each of `records` with chance n / records.

    `without_self`: the person's own record is left out, and `records` are those of the others.
    """

    n: int
    records: int
    without_self: bool

    @property
    def chance(self) -> float:
        """The chance that a record is drawn."""
        return self.n / self.records


def draw_of_synthetic(sizes: Sizes) -> Draw | None:
    """Return the draw of SD; None if SD has no more records than GT."""
    return Draw(sizes.n, sizes.N_s, without_self=False) if sizes.synthetic_is_drawn else None


def draw_of_others(sizes: Sizes) -> Draw | None:
    """Return the draw of the other GT records; None if SD has at least as many records."""
    return Draw(sizes.n, sizes.others, without_self=True) if sizes.others_left else None


def chances_of_cells(f: FrequencyTable, r: IntArray, wanted: Mask, draw: Draw) -> Floats:
    """Return `chances_to_be_named`, from as many cells a q as each of its key combinations has."""
    if isinstance(f.n, int):
        return chances_to_be_named(f.q, r, wanted, draw)
    most = int(r.max()) + 1
    code, cell = sort_together(f.q * most + r, np.arange(len(r)))
    new = first_of_run(code)
    first, kind = np.flatnonzero(new), np.cumsum(new) - 1
    cells_alike = np.add.reduceat(f.n[cell], first) // f.at_cells(np.asarray(f.alike), cell[first])
    is_wanted = np.logical_or.reduceat(wanted[cell], first)
    q, of_q = np.divmod(np.repeat(code[first], cells_alike), most)
    chances = chances_to_be_named(q, of_q, np.repeat(is_wanted, cells_alike), draw)
    of_cells = np.empty(len(r))
    of_cells[cell] = chances[np.cumsum(cells_alike) - 1][kind]
    return of_cells


def chances_to_be_named(q: IntArray, r: IntArray, wanted: Mask, draw: Draw) -> Floats:
    """Return the chance that each cell's level is named in its q, for a person who has it (shape: cells).

    `q` ascends; `r` are the records of each cell that can be drawn. Only cells in `wanted` are computed
    reliably; others may be 0.
    """
    chances = np.zeros(len(q))
    own = r - draw.without_self
    present = np.flatnonzero(r > 0)
    first = np.flatnonzero(first_of_run(q[present])) if len(present) else present
    cells_of_q = run_lengths(first, len(present))
    if not len(first):
        return chances
    largest = np.repeat(np.maximum.reduceat(r[present], first), cells_of_q)
    of_wanted = np.logical_or.reduceat(wanted[present] & (own[present] > 0), first)
    # Ignore a level that reaches the most frequent one in fewer than one of 10^9 draws.
    contends = np.repeat(of_wanted, cells_of_q)
    contends &= highest_likely(r[present], draw.chance) >= lowest_likely(largest, draw.chance)
    cells = present[contends]
    if not len(cells):
        return chances
    first = np.flatnonzero(first_of_run(q[cells]))
    rivals = run_lengths(first, len(cells))
    alone = cells[first[rivals == 1]]
    chances[alone] = 1 - chance_of_none(own[alone], draw)
    several = cells[np.repeat(rivals > 1, rivals)]
    if len(several):
        chances[several] = _chances_among_rivals(q[several], r[several], draw)
    return chances


def chance_of_none(records: IntArray, draw: Draw) -> Floats:
    """Return the chance that none of `records` is drawn."""
    numbers, position = np.unique(np.maximum(records, 0), return_inverse=True)
    left = (draw.records - draw.n) / draw.records
    return np.array([left**number for number in numbers.tolist()])[position.reshape(-1)]


def _chances_among_rivals(q: IntArray, r: IntArray, draw: Draw) -> Floats:
    """Return the chances of `chances_to_be_named` for q with several levels, once for equal counts."""
    first = np.flatnonzero(first_of_run(q))
    lengths = run_lengths(first, len(q))
    number = _number_by_counts(r, first)
    _, example, class_of_q = np.unique(number, return_index=True, return_inverse=True)
    class_of_q = class_of_q.reshape(-1)
    of_example = np.zeros(len(first), dtype=bool)
    of_example[example] = True
    selected = np.repeat(of_example, lengths)
    # The distinct counts of each class in descending order, and how often each occurs.
    c, count = np.repeat(class_of_q, lengths)[selected], r[selected]
    order = np.lexsort((-count, c))
    c, count = c[order], count[order]
    new = first_of_run(c) | first_of_run(count)
    entry = np.flatnonzero(new)
    rivals = _Rivals(c[entry], count[entry], run_lengths(entry, len(c)))
    most = int(r.max()) + 1
    position = np.searchsorted(rivals.c * most - rivals.r, np.repeat(class_of_q, lengths) * most - r)
    return rivals.chances(draw)[position]


def _number_by_counts(r: IntArray, first: IntArray) -> IntArray:
    """Number the q so that q with the same counts, in any order, get the same number."""
    lengths = run_lengths(first, len(r))
    descending = r[np.lexsort((-r, np.repeat(np.arange(len(first)), lengths)))]
    numbers = np.empty(len(first), dtype=np.int64)
    most, smallest = int(r.max()) + 1, 0
    for length in np.unique(lengths).tolist():
        of_length = np.flatnonzero(lengths == length)
        counts = descending[first[of_length] + np.arange(length)[:, None]]
        combined = combine_keys([[column] for column in counts], [most] * length)
        numbers[of_length] = combined.q[0] + smallest
        smallest += combined.size
    return numbers


@dataclass(frozen=True)
class _Rivals:
    """Classes of key combinations with equal counts: in class `c`, `number` levels have `r` records each.

    Sorted by c, and descending by r.
    """

    c: IntArray
    r: IntArray
    number: IntArray

    def chances(self, draw: Draw) -> Floats:
        """Return the chance that a level of each entry is named."""
        first = np.flatnonzero(first_of_run(self.c))
        entries = run_lengths(first, len(self.c))
        start = np.maximum(lowest_likely(self.r[first] - draw.without_self, draw.chance), 1)
        steps = highest_likely(self.r[first], draw.chance) - start + 1
        levels = np.add.reduceat(self.number, first)
        # (levels + 1) // 2 nodes are exact for a product of `levels` factors; for many, fewer suffice.
        nodes = np.minimum((levels + 1) // 2, np.ceil(2.5 * np.sqrt(levels)).astype(np.int64))
        binomials = Binomials.tabulate(
            np.unique(np.concatenate((self.r, self.r - draw.without_self))), draw.chance
        )
        chances = np.empty(len(self.c))
        # Widths are rounded up to powers of two, so that similar classes are computed together.
        widths = 1 << np.ceil(np.log2(steps)).astype(np.int64)
        for rule, width in np.unique(np.stack((nodes, widths)), axis=1).T.tolist():
            of_shape = np.flatnonzero((nodes == rule) & (widths == width))
            for chunk in _split(of_shape, entries[of_shape] * width):
                entries_of_chunk = np.repeat(first[chunk], entries[chunk]) + aranges(entries[chunk])
                j = np.repeat(start[chunk], entries[chunk])[:, None] + np.arange(width)
                chances[entries_of_chunk] = self._chances_of(
                    entries_of_chunk, entries[chunk], j, rule, binomials, draw
                )
        return chances

    def _chances_of(
        self, selected: IntArray, entries: IntArray, j: IntArray, rule: int, binomials: Binomials, draw: Draw
    ) -> Floats:
        """Sum the chances of whole classes over j drawn records (shape of j: entries, numbers)."""
        first = np.cumsum(entries) - entries
        exactly, fewer = binomials.chances(self.r[selected], j)
        own, _ = binomials.chances(self.r[selected] - 1, j) if draw.without_self else (exactly, fewer)
        integral = np.zeros(j.shape)
        number = self.number[selected][:, None]
        for z, weight in zip(*_quadrature(rule), strict=True):
            behind = fewer + z * exactly
            product = np.multiply.reduceat(_power(behind, number), first, axis=0)
            others = np.repeat(product, entries, axis=0)
            np.divide(others, behind, out=others, where=behind > 0)
            integral += weight * others
        return np.add.reduce(own * integral, axis=1)


@lru_cache(maxsize=256)
def _quadrature(nodes: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return Gauss-Legendre nodes and weights on 0..1."""
    z, weights = np.polynomial.legendre.leggauss(nodes)
    return tuple(((z + 1) / 2).tolist()), tuple((weights / 2).tolist())


def _power(base: Floats, exponents: IntArray) -> Floats:
    """Return powers by multiplication alone, which every machine rounds the same."""
    result, square, left = np.ones(base.shape), base, exponents
    while True:
        result = np.where(left & 1, result * square, result)
        left = left >> 1
        if not left.any():
            return result
        square = square * square


def _split(positions: IntArray, sizes: IntArray) -> Iterator[IntArray]:
    """Yield the positions in parts of about `_AT_A_TIME` in total size, at least one position in each."""
    part = (np.cumsum(sizes) - sizes) // _AT_A_TIME
    yield from np.split(positions, np.flatnonzero(np.diff(part)) + 1)
