"""Guessing the densest band of amounts: for each key combination, and for a whole table.

A window is a set of records of one key combination whose amounts fit into one band. The densest ones hold the
most records. Each is guessed at its centre, which depends on its smallest and its largest amount alone
(`Band.around`), so that nothing changes if all amounts change sign or currency. A person is guessed if the
centre lies in the band of their amount. Of k equally dense windows each counts 1/k.

A densest window is found from its smallest amount: it holds all records from there up to the largest number
that fits into one band with it. Two of them never hold the same records.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.drawn_guesses import Draw, chance_of_none
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, Rows, aranges, first_of_run, run_lengths
from disclosure_pipeline.measures.guesses import Guesser, Named
from disclosure_pipeline.measures.samples import CHANCE_SCALE, to_integer_chances

_SALT = 1_000_003
"""Tells key combinations apart by their numbers of records: see `AmountCells`."""

_FEW = 6  # records of a key combination of which every draw is tried
_DRAWS = 16  # of the records of all others
_COUNTED = 64  # records of a cell of which each is drawn; of more, a normal number of them

_CELLS_AT_A_TIME = 1 << 21

Words64 = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class AmountCells:
    """Cells of amounts in order of key combination and place; equal ones may be apart.

    salt: a number that tells key combinations apart as far as possible, whatever their order (shape: cells).
    """

    q: IntArray
    t: IntArray
    salt: IntArray
    band: Band

    def select(self, cells: IntArray | Mask) -> AmountCells:
        """Return some of the cells, of whole key combinations."""
        return AmountCells(self.q[cells], self.t[cells], self.salt[cells], self.band)

    @cached_property
    def first(self) -> IntArray:
        """The position of the first cell of each key combination."""
        return np.flatnonzero(first_of_run(self.q))

    @cached_property
    def _number(self) -> IntArray:
        """The number of each cell's key combination among those that have cells."""
        return np.cumsum(first_of_run(self.q)) - 1

    @cached_property
    def _codes(self) -> IntArray:
        return self._number * (self.band.size + 1) + self.t

    @cached_property
    def _reach(self) -> IntArray:
        """The position after the last cell that fits into one band with each cell."""
        return self._locate(np.arange(len(self.q)), self.band.reach[self.t])

    @cached_property
    def _begin(self) -> IntArray:
        """The position of the first cell that fits into one band with each cell."""
        return np.searchsorted(self._reach, np.arange(len(self.q)), side="right")

    def _locate(self, cells: IntArray, place: IntArray) -> IntArray:
        return np.searchsorted(self._codes, self._codes[cells] + (place - self.t[cells]))

    def sum_by_q(self, values: IntArray | Mask) -> IntArray:
        """Return the sum over the cells of each key combination, for every cell."""
        sums = np.add.reduceat(values, self.first, dtype=np.int64)
        return sums[self._number]

    def chances(self, r: IntArray, draw: Draw | None, *, without_self: bool) -> IntArray:
        """Return the chance that a person of each cell is guessed from the records `r` (shape: cells).

        In units of 1 / `CHANCE_SCALE`; 0 if there is no record to guess from. `without_self`: the person is
        among the records, and is left out.
        """
        if not len(self.q):
            return np.zeros(0, dtype=np.int64)
        if draw is None:
            densest = _Densest.among(self, r)
            return _divide(*(densest.count_without_self() if without_self else densest.count()))
        records, chances = self.sum_by_q(r), np.zeros(len(r))
        for number in range(1, _FEW + 1):
            of_number = np.flatnonzero(records == number)
            if len(of_number):
                some = self.select(of_number)
                chances[of_number] = some._try_every_draw(r[of_number], number, draw)
        many = np.flatnonzero(records > _FEW)
        if len(many):
            chances[many] = self.select(many)._try_some_draws(r[many], draw)
        drawn = 1 - chance_of_none(records - draw.without_self, draw)
        return to_integer_chances(np.minimum(chances, drawn))

    def _try_every_draw(self, r: IntArray, records: int, draw: Draw) -> Floats:
        """Return the mean over all draws; each key combination has `records` records."""
        cell = np.repeat(np.arange(len(r)), r)
        rank = np.arange(len(cell)) % records
        chances = np.zeros(len(r))
        for marks in range(1, 1 << records):
            number = marks.bit_count()
            taken = np.bincount(cell[(marks >> rank) & 1 > 0], minlength=len(r))
            weight = draw.chance**number * (1 - draw.chance) ** (records - number)
            chances += weight * self._chances_of_draw(r, taken, draw)
        return chances

    def _try_some_draws(self, r: IntArray, draw: Draw) -> Floats:
        """Return the mean over draws that depend on the numbers of records in order of amount alone.

        Half of the draws count from the smallest amount, half from the largest.
        """
        chances = np.zeros(len(r))
        occupied = np.flatnonzero(r)
        counts = r[occupied]
        salt, number = self.salt[occupied], self._number[occupied]
        up_to = np.cumsum(counts)
        start = np.flatnonzero(first_of_run(number))
        lengths = run_lengths(start, len(occupied))
        before = np.repeat((up_to - counts)[start], lengths)
        whole = np.repeat(np.add.reduceat(counts, start), lengths)
        below = up_to - counts - before
        for rank in (below, whole - counts - below):
            of_half = np.zeros(len(r))
            marks = _mix(_mix(rank.astype(np.uint64)) + counts.astype(np.uint64))
            by_key = np.repeat(np.add.reduceat(marks, start), lengths)
            seed = _mix(by_key + _mix(salt.astype(np.uint64)))
            drawn = _DrawnCells.of(counts, seed, rank, draw.chance)
            for trial in range(_DRAWS // 2):
                taken = np.zeros(len(r), dtype=np.int64)
                taken[occupied] = drawn.take(trial)
                of_half += self._chances_of_draw(r, taken, draw)
            chances += of_half
        return chances / _DRAWS

    def _chances_of_draw(self, r: IntArray, taken: IntArray, draw: Draw) -> Floats:
        """Return the chances from `taken` of the records `r`; the person's own one may be among them."""
        densest = _Densest.among(self, taken)
        chances = _share(*densest.count())
        if draw.without_self:
            own = taken / np.maximum(r, 1)
            chances = own * _share(*densest.count_without_self()) + (1 - own) * chances
        return chances


@dataclass(frozen=True)
class _Densest:
    """The densest windows of the records `r` of each key combination.

    up_to_here: the last position with records up to each. window: records from each cell on that fit into one
    band with it. most: the records of a densest window. anchor, last: where each densest window begins, and
    its last position with records.
    """

    cells: AmountCells
    r: IntArray
    up_to_here: IntArray
    window: IntArray
    most: IntArray
    anchor: IntArray
    last: IntArray

    @classmethod
    def among(cls, cells: AmountCells, r: IntArray) -> _Densest:
        present = r > 0
        up_to = np.concatenate(([0], np.cumsum(r, dtype=np.int64)))
        window = np.where(present, up_to[cells._reach] - up_to[:-1], 0)
        most = np.maximum.reduceat(window, cells.first)[cells._number]
        anchor = np.flatnonzero(present & (window == most))
        up_to_here = np.maximum.accumulate(np.where(present, np.arange(len(r)), 0))
        return cls(cells, r, up_to_here, window, most, anchor, up_to_here[cells._reach[anchor] - 1])

    @cached_property
    def is_anchor(self) -> IntArray:
        """Return 1 for each cell where a densest window begins, 0 for the others."""
        return np.bincount(self.anchor, minlength=len(self.r))

    @cached_property
    def _ties(self) -> IntArray:
        return self.cells.sum_by_q(self.is_anchor)

    def count(self) -> tuple[IntArray, IntArray]:
        """Return, for a person of each cell, the densest windows that guess them, and all (shape: cells)."""
        cells = self.cells
        low, high = cells.band.around(cells.t[self.anchor], cells.t[self.last])
        places = len(self.r) + 1
        begin = np.bincount(cells._locate(self.anchor, low), minlength=places)
        end = np.bincount(cells._locate(self.anchor, high), minlength=places)
        return np.cumsum(begin - end)[:-1], self._ties

    def count_without_self(self) -> tuple[IntArray, IntArray]:
        """Count for people among the records.

        If some densest window does not hold the person, none that does is densest without them, and neither
        does one's centre lie in their band: their record would make it denser. Else all of these have one
        record less, and tie with all that do not hold the person and had one less before. A window changes
        its ends only if the person is alone at one: without its first record, it is the next window.
        """
        cells, ties = self.cells, self._ties
        hits, ties_without = np.zeros_like(ties), np.ones_like(ties)
        q = cells._number[self.anchor]
        first = first_of_run(q)
        is_last = np.concatenate((first[1:], [True]))[: len(first)]
        # For each key combination with records: where its last window begins, and where its first one ends.
        begin, end = (np.full(len(cells.first), -1) for _ in range(2))
        begin[q[is_last]], end[q[first]] = self.anchor[is_last], self.last[first]
        start = np.zeros(len(cells.first), dtype=np.int64)
        start[q[first]] = self.anchor[first]
        number, position = cells._number, np.arange(len(self.r))
        k = np.flatnonzero(
            (self.r > 0) & (self.most > 1) & (position >= begin[number]) & (position <= end[number])
        )
        if not len(k):
            return hits, ties_without
        alone = self.r[k] == 1
        is_first, is_end = alone & (k == begin[number[k]]), alone & (k == end[number[k]])
        behind = ((self.window == self.most - 1) & (self.r > 0)).astype(np.int64)
        up_to = np.concatenate(([0], np.cumsum(behind)))
        others = cells.sum_by_q(behind)[k] - (up_to[k + 1] - up_to[cells._begin[k]])
        hits[k] = ties[k] - is_first - is_end
        ties_without[k] = ties[k] - is_first + others
        at = k[is_first]
        following = self._after[at]
        hits[at] += self._guesses(at, following, self.up_to_here[cells._reach[following] - 1])
        at = k[is_end]
        hits[at] += self._guesses(at, start[number[at]], self.up_to_here[at - 1])
        return hits, ties_without

    @cached_property
    def _after(self) -> IntArray:
        """The next position with records after each; the number of cells if there is none."""
        size = len(self.r)
        here = np.where(self.r > 0, np.arange(size), size)
        return np.append(np.minimum.accumulate(here[::-1])[::-1], size)[1:]

    def _guesses(self, person: IntArray, first: IntArray, last: IntArray) -> Mask:
        """Mark the people whom the window between two positions guesses."""
        t = self.cells.t
        low, high = self.cells.band.around(t[first], t[last])
        return (low <= t[person]) & (t[person] < high)


@dataclass(frozen=True)
class _Beside:
    """Guesses from the records `r` of each key combination without those of one unit.

    at, own: the position of entries among the cells, and the records that a unit has there. pair: the number
    of the pair of a key combination and a unit that an entry belongs to; entries ascend by pair and position.
    """

    cells: AmountCells
    r: IntArray
    at: IntArray
    pair: IntArray
    own: IntArray

    @cached_property
    def first(self) -> IntArray:
        """The first entry of each pair."""
        return np.flatnonzero(first_of_run(self.pair))

    @cached_property
    def _number(self) -> IntArray:
        """The place of each entry's pair."""
        return np.cumsum(first_of_run(self.pair)) - 1

    @cached_property
    def _own(self) -> IntArray:
        """The records of the unit of each pair."""
        return np.add.reduceat(self.own, self.first)

    @cached_property
    def _q(self) -> IntArray:
        """The key combination of each pair."""
        return self.cells._number[self.at[self.first]]

    @cached_property
    def has_others(self) -> Mask:
        """True if there are records of other units (shape: entries)."""
        others = self.cells.sum_by_q(self.r)[self.at[self.first]] - self._own
        of_entries: Mask = (others > 0)[self._number]
        return of_entries

    def name(self) -> Floats:
        """Return the chance that a person of each entry is guessed (shape: entries).

        A window without records of the unit stays as it is. If some densest one is, these are the densest
        without the unit, too.
        """
        d, named = _Densest.among(self.cells, self.r), np.zeros(len(self.at))
        anchors = np.concatenate(([0], np.cumsum(d.is_anchor)))
        # The densest windows that hold records of the unit begin up to each of these, after the one before.
        held = np.flatnonzero(self.own)
        before = np.concatenate(([-1], self.at[held][:-1]))[: len(held)]
        before[first_of_run(self._number[held])] = -1
        begin = anchors[np.maximum(self.cells._begin[self.at[held]], before + 1)]
        number = anchors[self.at[held] + 1] - begin
        holding = np.bincount(self._number[held], weights=number, minlength=len(self.first)).astype(np.int64)
        rest = d._ties[self.at[self.first]] - holding
        some = np.flatnonzero(rest[self._number] > 0)
        if len(some):
            hits, _ = d.count()
            left_out = self._count_holding(d, begin, number, self._number[held])
            named[some] = (hits[self.at] - left_out)[some] / rest[self._number[some]]
        self._name_anew(named, d, np.flatnonzero((rest == 0) & self.has_others[self.first]))
        return named

    def _count_holding(self, d: _Densest, begin: IntArray, number: IntArray, pair: IntArray) -> IntArray:
        """Count, for each entry, the densest windows that guess it and hold records of its unit."""
        window, of_window = np.repeat(begin, number) + aranges(number), np.repeat(pair, number)
        entries = run_lengths(self.first, len(self.at))[of_window]
        entry = np.repeat(self.first[of_window], entries) + aranges(entries)
        anchor, last = (np.repeat(of_windows[window], entries) for of_windows in (d.anchor, d.last))
        t = self.cells.t
        low, high = self.cells.band.around(t[anchor], t[last])
        place = t[self.at[entry]]
        return np.bincount(entry[(low <= place) & (place < high)], minlength=len(self.at))

    def _name_anew(self, named: Floats, d: _Densest, pairs: IntArray) -> None:
        """Set the chances of the entries of pairs whose records are in all densest windows.

        The densest window without them has at most that many records less than one of these.
        """
        cells, own_of_q = self.cells, np.full(len(self.cells.first), -1)
        np.maximum.at(own_of_q, self._q[pairs], self._own[pairs])
        most_own = own_of_q[cells._number]
        begin = np.flatnonzero((self.r > 0) & (most_own >= 0) & (d.window >= d.most - most_own))
        size = len(self.r) + 1
        ends = np.bincount(begin, minlength=size) - np.bincount(cells._reach[begin], minlength=size)
        is_needed = np.cumsum(ends)[:-1] > 0
        entries = np.flatnonzero(np.isin(self._number, pairs))
        is_needed[self.at[entries]] = True
        needed, rank = np.flatnonzero(is_needed), np.cumsum(is_needed) - 1
        number = np.bincount(cells._number[needed], minlength=len(cells.first))
        start, place = np.cumsum(number) - number, np.full(len(self.first), -1)
        part = np.cumsum(number[self._q[pairs]]) // _CELLS_AT_A_TIME
        for chosen in np.split(pairs, np.flatnonzero(np.diff(part)) + 1) if len(pairs) else []:
            of_pair = number[self._q[chosen]]
            position = needed[np.repeat(start[self._q[chosen]], of_pair) + aranges(of_pair)]
            place[:] = -1
            place[chosen] = np.arange(len(chosen))
            of_chosen = entries[place[self._number[entries]] >= 0]
            pair = place[self._number[of_chosen]]
            view = AmountCells(
                np.repeat(np.arange(len(chosen)), of_pair),
                cells.t[position],
                np.zeros(len(position), dtype=np.int64),
                cells.band,
            )
            at = (np.cumsum(of_pair) - of_pair - start[self._q[chosen]])[pair] + rank[self.at[of_chosen]]
            r = self.r[position]
            r[at] -= self.own[of_chosen]
            named[of_chosen] = _share(*_Densest.among(view, r).count())[at]


@dataclass(frozen=True)
class _DrawnCells:
    """Draws of records of cells, each record with the same chance, the same from the same seeds.

    Each of the few records of a cell is taken in about the same number of draws.
    """

    counts: IntArray
    seed: Words64
    rank: IntArray
    chance: float
    cell: IntArray
    step: IntArray
    offset: IntArray
    fraction: Floats

    @classmethod
    def of(cls, counts: IntArray, seed: Words64, rank: IntArray, chance: float) -> _DrawnCells:
        few = np.where(counts <= _COUNTED, counts, 0)
        cell = np.repeat(np.arange(len(counts)), few)
        within = np.arange(len(cell)) - np.repeat(np.cumsum(few) - few, few)
        word = _mix(seed[cell] + _mix((rank[cell] + within).astype(np.uint64)))
        bits = word.astype(np.int64) & ((1 << 62) - 1)
        half = _DRAWS // 2
        return cls(
            counts,
            seed,
            rank,
            chance,
            cell,
            step=2 * (bits % (half // 2)) + 1,
            offset=(bits >> 8) % half,
            fraction=((bits >> 16) & ((1 << 40) - 1)) / float(1 << 40),
        )

    def take(self, trial: int) -> IntArray:
        """Return the records taken of each cell."""
        half = _DRAWS // 2
        stratum = (self.step * trial + self.offset) % half
        is_taken = (stratum + self.fraction) / half < self.chance
        taken = np.bincount(self.cell[is_taken], minlength=len(self.counts))
        many = np.flatnonzero(self.counts > _COUNTED)
        if len(many):
            taken[many] = self._take_many(many, trial)
        return taken

    def _take_many(self, cells: IntArray, trial: int) -> IntArray:
        """Return normal numbers: of a sum of twelve uniform ones, as exact on any machine as a sum."""
        word = self.seed[cells] + _mix(self.rank[cells].astype(np.uint64)) + np.uint64(trial)
        total = np.zeros(len(cells))
        for _ in range(3):
            word = _mix(word)
            for shift in (0, 16, 32, 48):
                total += ((word >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.float64) / 65536
        counts = self.counts[cells]
        deviation = np.sqrt(counts * (self.chance * (1 - self.chance)))
        drawn = np.rint(counts * self.chance + (total - 6) * deviation).astype(np.int64)
        return np.clip(drawn, 0, counts)


def _mix(words: Words64) -> Words64:
    """Return words whose bits each depend on all bits of the given ones.

    Source: Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators" (the finalizer).
    """
    mixed = words + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _divide(hits: IntArray, ties: IntArray) -> IntArray:
    """Return quotients in units of 1 / `CHANCE_SCALE`, 0 without ties."""
    ties = np.maximum(ties, 1)
    return (2 * CHANCE_SCALE * hits + ties) // (2 * ties)


def _share(hits: IntArray, ties: IntArray) -> Floats:
    share: Floats = hits / np.maximum(ties, 1)
    return share


def _name_amounts(
    rows: Rows, f: FrequencyTable, r: IntArray, wanted: Mask, draw: Draw | None, without_self: bool
) -> Named:
    named, matched = np.zeros(len(f.q)), np.zeros(len(f.q))
    amounts, cells = _select_amounts(rows, f)
    if not len(amounts):
        return named, matched
    named[amounts] = cells.chances(r[amounts], draw, without_self=without_self) / CHANCE_SCALE
    records = cells.sum_by_q(r[amounts]) - without_self
    matched[amounts] = records > 0 if draw is None else 1 - chance_of_none(records, draw)
    return named, matched


def _name_amounts_beside(
    rows: Rows, f: FrequencyTable, r: IntArray, cell: IntArray, pair: IntArray, own: IntArray
) -> Named:
    named, matched = np.zeros(len(cell)), np.zeros(len(cell))
    amounts, cells = _select_amounts(rows, f)
    position = np.full(len(f.q), -1)
    position[amounts] = np.arange(len(amounts))
    entries = np.flatnonzero(position[cell] >= 0)
    entries = entries[np.lexsort((position[cell[entries]], pair[entries]))]
    if len(entries):
        beside = _Beside(cells, r[amounts], position[cell[entries]], pair[entries], own[entries])
        named[entries], matched[entries] = beside.name(), beside.has_others
    return named, matched


def _select_amounts(rows: Rows, f: FrequencyTable) -> tuple[IntArray, AmountCells]:
    """Return the positions of the cells of amounts in a table, and these cells, whose codes ascend."""
    band = rows.band
    assert band is not None

    def select() -> tuple[IntArray, AmountCells]:
        place = band.place[f.t]
        amounts = np.flatnonzero(band.is_amount(place))
        salt = f.d_q[amounts] * _SALT + f.s_q[amounts]
        return amounts, AmountCells(f.q[amounts], place[amounts], salt, band)

    # Whatever records are guessed from, the cells are the same.
    tables = (rows.f, rows.by_level)
    of = next((number for number, table in enumerate(tables) if f.q is table.q), None)
    return select() if of is None else rows.remember((AmountCells, of), select)


def _mark_amounts(rows: Rows) -> Mask:
    assert rows.band is not None
    return rows.band.is_amount(rows.band.place)


AMOUNTS = Guesser(_mark_amounts, _name_amounts, _name_amounts_beside)
"""Guesses of the densest band."""
