"""Counts for figures within a band: integers of one target that add up over keys, whoever counts them.

`bands` has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from disclosure_pipeline.measures.baselines import sum_of_squares
from disclosure_pipeline.measures.certainty import chances_to_be_claimed, reaches_share
from disclosure_pipeline.measures.drawn_guesses import (
    Draw,
    DrawnGuessCounts,
    chance_of_none,
    draw_of_others,
    draw_of_synthetic,
    highest_likely,
    lowest_likely,
)
from disclosure_pipeline.measures.exact import Floats, Grouped, IntArray, Mask, total
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.samples import CHANCE_SCALE, Sizes, to_integer_chances

_NARROW = 2**31


@dataclass(frozen=True)
class Band:
    """The levels of a target that lie in the band of each of them.

    `order`: the codes by place: special values, `amounts`, which ascend, special values, missing. Of the
    level at each place: `low`, `high`: the place of the first level within its band, and that after the last;
    `reach`: the place after the last level that fits into a band with it. All three ascend.
    """

    order: IntArray
    low: IntArray
    high: IntArray
    reach: IntArray
    amounts: range

    @cached_property
    def place(self) -> IntArray:
        """The place of each code."""
        return np.argsort(self.order)

    @cached_property
    def is_ordered(self) -> bool:
        """True if places are codes, as where no special value lies among the amounts."""
        return not (np.diff(self.order) < 0).any()

    def is_amount(self, place: IntArray) -> Mask:
        """Mark places of amounts."""
        return (place >= self.amounts.start) & (place < self.amounts.stop)

    @property
    def size(self) -> int:
        """The number of places."""
        return len(self.order)

    @property
    def missing(self) -> int:
        """The place of missing values."""
        return self.size - 1


@dataclass(frozen=True)
class ClaimCounts:
    """GT records of whom something is claimed, and rightly; and in units of 1 / `CHANCE_SCALE` rightly at n.

    Integers that add up over keys. `squares`: of what each q adds to the difference (`sum_of_squares`).
    """

    claimed: int = 0
    right: int = 0
    right_at_n: int = 0
    right_by_others: int = 0
    squares: int = 0


@dataclass(frozen=True)
class BandCounts:
    """Counts of one target in one synthesis: integers that add up over keys.

    `disclosed`: DiS and DiSCO. `claimed_at_n`, `claimed_by_others`, `claimed_squares`: the same of DiS as
    `ClaimCounts` has of DiSCO. `certainty` has an entry for each certainty. `guessed`: from all of SD, by
    place instead of level.
    """

    disclosed: ClaimCounts
    claimed_at_n: int
    claimed_by_others: int
    claimed_squares: int
    certainty: tuple[ClaimCounts, ...]
    guessed: DrawnGuessCounts
    guessed_at_n: DrawnGuessCounts
    guessed_others: DrawnGuessCounts

    @classmethod
    def empty(cls, certainties: int) -> BandCounts:
        """Return the counts of q that one record has, and of none."""
        nobody = DrawnGuessCounts.empty()
        return cls(ClaimCounts(), 0, 0, 0, (ClaimCounts(),) * certainties, nobody, nobody, nobody)


def band_counts(
    f: FrequencyTable, d: IntArray, band: Band, sizes: Sizes, certainties: Sequence[Fraction]
) -> BandCounts:
    """Count some or all q."""
    if not len(f.q):
        return BandCounts.empty(len(certainties))
    w = _Windows.over(f, d, band, sizes)
    of_SD, of_GT = draw_of_synthetic(sizes), draw_of_others(sizes)
    claimed = _claim(w.only(w.may_fit(w.f.s, sizes.synthetic_left) | w.may_fit(w.f.d, sizes.others_left)))
    guessed = _guess(w, w.f.s, None, without_self=False)
    d_q, s_q = w.f.d_q[w.occupied], w.f.s_q[w.occupied]
    rest = s_q - w.within(w.f.s)
    at_n = w.q0[rest] - w.q0[s_q]
    by_others = w.p0[d_q - w.within(w.f.d)] - w.p0[d_q - 1]
    right = total(w.people[w.occupied], (rest == 0) & (s_q > 0))
    return BandCounts(
        disclosed=_count_claims(w, claimed.claimed, right, at_n, by_others),
        claimed_at_n=claimed.right_at_n,
        claimed_by_others=claimed.right_by_others,
        claimed_squares=claimed.squares,
        certainty=tuple(_be_certain(w, c, of_SD, of_GT) for c in certainties),
        guessed=guessed,
        guessed_at_n=_guess(w, w.f.s, of_SD, without_self=False) if of_SD else guessed,
        guessed_others=_guess(w, w.f.d, of_GT, without_self=True),
    )


@dataclass(frozen=True)
class _Windows:
    """The cells of some q by place, and the positions at which the band of each begins and ends.

    `people`: the GT records to be told of in each cell. `p0`, `q0`: P0 and Q0 of each number of records, in
    units of 1 / `CHANCE_SCALE`.
    """

    f: FrequencyTable
    people: IntArray
    band: Band
    p0: IntArray
    q0: IntArray

    @classmethod
    def over(cls, f: FrequencyTable, people: IntArray, band: Band, sizes: Sizes) -> _Windows:
        p0, q0 = (
            to_integer_chances(chances(np.arange(int(records.max()) + 1)))
            for chances, records in ((sizes.p0, f.d_q), (sizes.q0, f.s_q))
        )
        if band.is_ordered:
            return cls(f, people, band, p0, q0)
        t = band.place[f.t]
        by_place = np.lexsort((t, f.q))
        return cls(_select(replace(f, t=t), by_place), people[by_place], band, p0, q0)

    def only(self, of_q: Mask) -> _Windows:
        """Return the windows of some of the q that have cells."""
        cells = np.flatnonzero(self.f.at_cells(of_q))
        return replace(self, f=_select(self.f, cells), people=self.people[cells])

    @cached_property
    def occupied(self) -> IntArray:
        """The cells with people to be told of."""
        return np.flatnonzero(self.people)

    @cached_property
    def low(self) -> IntArray:
        """The position at which the band of each cell of `occupied` begins."""
        return self._find(self.occupied, self.band.low)

    @cached_property
    def high(self) -> IntArray:
        """The position at which the band of each cell of `occupied` ends."""
        return self._find(self.occupied, self.band.high)

    @cached_property
    def reach(self) -> IntArray:
        """The position after the last cell that fits into a band with each one."""
        return self._find(np.arange(len(self.f.q)), self.band.reach)

    @cached_property
    def _places(self) -> IntArray:
        """The cells as numbers that ascend; narrow ones are found faster."""
        dtype = np.int32 if self.f.keys * (self.band.size + 1) < _NARROW else np.int64
        return self.f.q.astype(dtype) * dtype(self.band.size) + self.f.t.astype(dtype)

    def _find(self, cells: IntArray, ends: IntArray) -> IntArray:
        """Return where the place that `ends` has for the place of each cell is, or would be, in its q."""
        t = self.f.t[cells]
        return np.searchsorted(self._places, self._places[cells] + (ends[t] - t).astype(self._places.dtype))

    def may_fit(self, records: IntArray, left: int) -> Mask:
        """Mark the q of which all but one more than `left` of the records may fit into one band.

        More than half of them lie around the middle one, if so: only what reaches that has to be looked at.
        """
        f, up_to = self.f, cumulative_sums(records)
        first, end = up_to[f.first], up_to[np.append(f.first[1:], len(f.q))]
        number = end - first
        middle = np.searchsorted(up_to, first + number // 2, side="right") - 1
        middle = np.minimum(middle, len(f.q) - 1)
        back = np.searchsorted(self.band.reach, np.arange(self.band.size), side="right")
        around = up_to[self._find(middle, self.band.reach)] - up_to[self._find(middle, back)]
        return (around >= number - left - 1) | (number <= 2 * (left + 1))

    def within(self, records: IntArray) -> IntArray:
        """Return the records of its q within the band of each cell of `occupied`."""
        up_to = cumulative_sums(records)
        return up_to[self.high] - up_to[self.low]

    def from_smallest(self, records: IntArray) -> IntArray:
        """Return W_v of each cell."""
        up_to = cumulative_sums(records)
        return up_to[self.reach] - up_to[:-1]


def _select(f: FrequencyTable, cells: IntArray) -> FrequencyTable:
    return replace(f, **{name: getattr(f, name)[cells] for name in ("q", "t", "d", "s", "d_q", "s_q")})


def cumulative_sums(values: IntArray) -> IntArray:
    """Return the sum of all values before each position, and of all."""
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64)))


def _count_claims(w: _Windows, claimed: int, right: int, at_n: IntArray, by_others: IntArray) -> ClaimCounts:
    """Return the counts; `at_n`, `by_others`: chances of a record of each cell of `occupied`."""
    people, added = w.people[w.occupied], np.zeros(len(w.f.q), dtype=np.int64)
    added[w.occupied] = people * (at_n - by_others)
    squares = sum_of_squares(w.f.sum_by_q(added)) if len(w.occupied) else 0
    return ClaimCounts(claimed, right, int((people * at_n).sum()), int((people * by_others).sum()), squares)


def _claim(w: _Windows) -> ClaimCounts:
    """Count DiS, which is claimed of all people of a q alike."""
    f = w.f
    if not len(f.q):
        return ClaimCounts()
    outside = f.s_q - w.from_smallest(f.s)
    claimed_q = f.sum_by_q((outside == 0) & (f.s > 0)) > 0
    at_n = f.at_cells(f.sum_by_q(w.q0[outside] - w.q0[outside + f.s]), w.occupied)
    return _count_claims(w, total(f.sum_by_q(w.people), claimed_q), 0, at_n, _claim_by_others(w))


def _claim_by_others(w: _Windows) -> IntArray:
    """Return the sum over v of the table in `bands`, for one person of each cell k of `occupied`.

    The person is left out of d_q and of every W_v that holds k. The windows that hold k begin at neighbouring
    cells, so cumulative sums are enough.
    """
    f, p0, k = w.f, w.p0, w.occupied
    outside = f.d_q - w.from_smallest(f.d)
    others = outside - (outside > 0)  # where k is outside itself
    with_k = cumulative_sums(p0[outside] - p0[outside + f.d])
    without_k = cumulative_sums((p0[others] - p0[others + f.d]) * (outside > 0))
    begin = np.searchsorted(w.reach, k, side="right")
    first, end = f.at_cells(f.first, k), f.at_cells(np.append(f.first[1:], len(f.q)), k)
    own = p0[outside[k]] - p0[outside[k] + f.d[k] - 1]
    around = without_k[begin] - without_k[first] + without_k[end] - without_k[k + 1]
    by_others: IntArray = own + with_k[k] - with_k[begin] + around
    return by_others


def _be_certain(w: _Windows, c: Fraction, of_SD: Draw | None, of_GT: Draw | None) -> ClaimCounts:
    f = w.f
    has_value = f.t != w.band.missing
    s, d, told = f.s * has_value, f.d * has_value, has_value[w.occupied]
    in_q, in_others = f.sum_by_q(s), f.at_cells(f.sum_by_q(d), w.occupied) - told
    near, near_others = w.within(s), w.within(d) - told
    claimed_q = f.sum_by_q(reaches_share(w.from_smallest(s), f.at_cells(in_q), c)) > 0

    def chances(part: IntArray, whole: IntArray, draw: Draw | None) -> IntArray:
        if draw is None:
            return reaches_share(part, whole, c) * CHANCE_SCALE
        chance = draw.chance
        return _chances_of_pairs(part, whole - part, lambda a, b: chances_to_be_claimed(a, b, c, chance))

    s_q = f.at_cells(in_q, w.occupied)
    right = total(w.people[w.occupied], reaches_share(near, s_q, c))
    claimed = total(f.sum_by_q(w.people), claimed_q)
    return _count_claims(w, claimed, right, chances(near, s_q, of_SD), chances(near_others, in_others, of_GT))


def _guess(w: _Windows, r: IntArray, draw: Draw | None, *, without_self: bool) -> DrawnGuessCounts:
    f, has_amount = w.f, w.band.is_amount(w.f.t)
    up_to = cumulative_sums(r * has_amount)
    of_amounts = has_amount[w.occupied]
    cells, low, high = (positions[of_amounts] for positions in (w.occupied, w.low, w.high))
    first, end = f.at_cells(f.first, cells), f.at_cells(np.append(f.first[1:], len(f.q)), cells)
    below, within = up_to[low] - up_to[first], up_to[high] - up_to[low]
    above = up_to[end] - up_to[high]
    within = within - without_self
    people, records = w.people[cells], below + within + above
    found = (
        CHANCE_SCALE - to_integer_chances(chance_of_none(records, draw))
        if draw
        else (records > 0) * CHANCE_SCALE
    )
    return DrawnGuessCounts(
        int((people * median_chances(below, within, above, draw)).sum()),
        Grouped.sum_by_group(f.t[cells], people * found),
    )


def median_chances(below: IntArray, within: IntArray, above: IntArray, draw: Draw | None) -> IntArray:
    """Return the chance that the median of a draw is within, in units of 1 / `CHANCE_SCALE`.

    Of the lower middle value it is that of fewer drawn below than all others and of no more above, of the
    upper one the other way round.
    """
    if draw is None:
        records = below + within + above
        middle = [(records - 1) // 2, records // 2]
        hits = sum((below <= place) & (place < below + within) for place in middle)
        return np.asarray(hits, dtype=np.int64) * (CHANCE_SCALE // 2)
    drawn = CHANCE_SCALE - to_integer_chances(chance_of_none(below + within + above, draw))
    missed = _outnumber(below, within + above, draw) + _outnumber(above, below + within, draw)
    return np.maximum(drawn - missed, 0)


def _outnumber(own: IntArray, others: IntArray, draw: Draw) -> IntArray:
    """Return the chance that more of `own` are drawn than of the others, as many counting by half."""
    surely = lowest_likely(own, draw.chance) > highest_likely(others, draw.chance)
    chances = surely * CHANCE_SCALE
    near = np.flatnonzero(
        ~surely & (highest_likely(own, draw.chance) >= lowest_likely(others, draw.chance)) & (own > 0)
    )
    if len(near):
        more = Fraction(int(others.max()) + 2, 2 * int(others.max()) + 3)  # the next share above a half

        def outnumber(own: IntArray, others: IntArray) -> Floats:
            as_many = chances_to_be_claimed(own, others, Fraction(1, 2), draw.chance)
            half: Floats = (as_many + chances_to_be_claimed(own, others, more, draw.chance)) / 2
            return half

        chances[near] = _chances_of_pairs(own[near], others[near], outnumber)
    return chances


def _chances_of_pairs(
    own: IntArray, others: IntArray, chances: Callable[[IntArray, IntArray], Floats]
) -> IntArray:
    """Return the chances of pairs in units of 1 / `CHANCE_SCALE`, each pair asked for once; 0 of no own."""
    result = np.zeros(len(own), dtype=np.int64)
    present = np.flatnonzero(own > 0)
    if len(present):
        pairs, pair = np.unique(np.stack((own[present], others[present])), axis=1, return_inverse=True)
        result[present] = to_integer_chances(chances(pairs[0], pairs[1]))[pair.reshape(-1)]
    return result
