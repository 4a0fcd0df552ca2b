"""Counts for the figures of `bands`: integers of one target that add up over keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.certainty import chances_to_be_claimed, reaches_share
from disclosure_pipeline.measures.densest_bands import SALT, AmountCells, guess_amount_of_all
from disclosure_pipeline.measures.drawn_guesses import (
    Draw,
    DrawnGuessCounts,
    chance_of_none,
    draw_of_others,
    draw_of_synthetic,
)
from disclosure_pipeline.measures.exact import Floats, Grouped, IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.samples import CHANCE_SCALE, Sizes, sum_of_squares, to_integer_chances

_NARROW = 2**31


@dataclass(frozen=True)
class ClaimCounts:
    """Numbers of GT records that add up over keys.

    claimed: records about which something is claimed from SD. right: records about which it is right.
    right_at_n, right_by_others: the expected number of right claims from n records of SD, of the others, in
        units of 1 / `CHANCE_SCALE`.
    squares: squares of what each q adds to the difference of both (`sum_of_squares`).
    """

    claimed: int = 0
    right: int = 0
    right_at_n: int = 0
    right_by_others: int = 0
    squares: int = 0


@dataclass(frozen=True)
class GuessCountsWithin:
    """Guesses of one target by the densest band of each q: integers that add up over keys.

    from_SD: from all of SD. at_n, by_others: from n records of SD, from the others. They are by place instead
    of level.
    squares: squares of what each q adds to the difference of both (`sum_of_squares`).
    """

    from_SD: DrawnGuessCounts
    at_n: DrawnGuessCounts
    by_others: DrawnGuessCounts
    squares: int

    @classmethod
    def empty(cls) -> GuessCountsWithin:
        """Return the counts of no record."""
        nobody = DrawnGuessCounts.empty()
        return cls(nobody, nobody, nobody, 0)


@dataclass(frozen=True)
class BandCounts:
    """Counts of one target in one synthesis: integers that add up over keys.

    disclosed: DiS (claimed) and DiSCO (right). claimed_at_n, claimed_by_others, claimed_squares: for DiS what
    `ClaimCounts` holds for DiSCO. certainty: one entry per certainty. guessed: from all of SD; guesses are by
    place instead of level.
    """

    disclosed: ClaimCounts
    claimed_at_n: int
    claimed_by_others: int
    claimed_squares: int
    certainty: tuple[ClaimCounts, ...]
    guessed: GuessCountsWithin

    @classmethod
    def empty(cls, certainties: int) -> BandCounts:
        """Return the counts of no q, which are also those of q with a single record."""
        claims = (ClaimCounts(),) * certainties
        return cls(ClaimCounts(), 0, 0, 0, claims, GuessCountsWithin.empty())


def band_counts(
    f: FrequencyTable,
    d: IntArray,
    band: Band,
    sizes: Sizes,
    certainties: Sequence[Fraction],
    both_t: IntArray,
) -> BandCounts:
    """Count some or all q; `d`: GT records of each cell that the exclusions leave.

    `both_t`: all records of GT and SD by level (shape: targets).

    Cells of `f` that look the same have the same level.
    """
    if not len(f.q):
        return BandCounts.empty(len(certainties))
    w = _Windows.over(f, d, band, sizes)
    draws = draw_of_synthetic(sizes), draw_of_others(sizes)
    claimed = _chances_of_claims(
        w.select_keys(w.may_fit(w.f.s, sizes.synthetic_left) | w.may_fit(w.f.d, sizes.others_left))
    )
    disclosed = _chances_of_disclosure(w)
    amounts = np.flatnonzero(band.is_amount(w.f.t))
    salt = w.f.d_q[amounts] * SALT + w.f.s_q[amounts]
    of_claims, of_disclosure = claimed.count(), disclosed.count()
    return BandCounts(
        disclosed=replace(of_disclosure, claimed=of_claims.right),
        claimed_at_n=of_claims.right_at_n,
        claimed_by_others=of_claims.right_by_others,
        claimed_squares=of_claims.squares,
        certainty=tuple(_count_certain_claims(w, c, draws) for c in certainties),
        guessed=guess_counts_within(
            AmountCells(w.f.q[amounts], w.f.t[amounts], salt, band),
            w.people[amounts],
            w.f.d[amounts],
            w.f.s[amounts],
            draws,
            guess_amount_of_all(both_t[band.order], band, None, without_self=False),
            w.f.n if isinstance(w.f.n, int) else w.f.n[amounts],
        ),
    )


def chances_within(
    f: FrequencyTable, wanted: Mask, band: Band, sizes: Sizes, certainties: Sequence[Fraction]
) -> dict[str, Floats]:
    """Return what a GT record of each `wanted` cell adds to the figures within the band (shape: cells).

    By the names of the figures, with `_at_n` and `_others`; those at a certainty c are named `… at c`, of
    which DiS is from all of SD alone.
    """
    w = _Windows.over(f, wanted.astype(np.int64), band, sizes)
    draws = draw_of_synthetic(sizes), draw_of_others(sizes)
    chances = {"DiS_within": _chances_of_claims(w), "DiSCO_within": _chances_of_disclosure(w)}
    marks = dict[str, Floats | Mask]()
    for c in certainties:
        chances[f"DiSCO_within at {c}"] = _chances_of_certainty(w, c, draws)
        marks[f"DiS_within at {c}"] = _mark_claims(w, c)
    for name, of_figure in chances.items():
        marks |= {
            name: of_figure.now,
            f"{name}_at_n": of_figure.at_n / CHANCE_SCALE,
            f"{name}_others": of_figure.by_others / CHANCE_SCALE,
        }
    added = {name: np.zeros(len(f.q)) for name in marks}
    for name, x in marks.items():
        added[name][w.order[w.occupied]] = x
    return added


@dataclass(frozen=True)
class _Chances:
    """The chance of a right claim about a GT record of each cell of `occupied`.

    now: whether it is right from all of SD. at_n, by_others: from n records of SD and of the others, in units
    of 1 / `CHANCE_SCALE`.
    """

    w: _Windows
    now: Mask
    at_n: IntArray
    by_others: IntArray

    def count(self) -> ClaimCounts:
        w, added = self.w, np.zeros(len(self.w.f.q), dtype=np.int64)
        added[w.occupied] = w.people[w.occupied] * (self.at_n - self.by_others)
        squares = sum_of_squares(w.f.sum_by_q(added), w.f.alike) if len(w.occupied) else 0
        people = (w.people * w.f.n)[w.occupied]
        right, at_n, by_others = (int((people * x).sum()) for x in (self.now, self.at_n, self.by_others))
        return ClaimCounts(0, right, at_n, by_others, squares)


@dataclass(frozen=True)
class _Windows:
    """The cells of some q in order of place, and the positions at which the band of each begins and ends.

    people: GT records of each cell that are counted. p0, q0: P0(m) and Q0(m) for m = 0, 1, …, in units of
    1 / `CHANCE_SCALE`. order: where each cell is in the table that they are of.
    """

    f: FrequencyTable
    people: IntArray
    band: Band
    p0: IntArray
    q0: IntArray
    order: IntArray

    @classmethod
    def over(cls, f: FrequencyTable, people: IntArray, band: Band, sizes: Sizes) -> _Windows:
        p0, q0 = (
            to_integer_chances(chances(np.arange(int(records.max()) + 1)))
            for chances, records in ((sizes.p0, f.d_q), (sizes.q0, f.s_q))
        )
        if band.is_ordered:
            return cls(f, people, band, p0, q0, np.arange(len(f.q)))
        t = band.place[f.t]
        by_place = np.lexsort((t, f.q))
        return cls(_select(replace(f, t=t), by_place, f.alike), people[by_place], band, p0, q0, by_place)

    def select_keys(self, of_q: Mask) -> _Windows:
        """Return the windows of the marked q (shape: q with cells)."""
        cells, alike = np.flatnonzero(self.f.at_cells(of_q)), self.f.alike
        alike = alike if isinstance(alike, int) else alike[of_q]
        f = _select(self.f, cells, alike)
        return replace(self, f=f, people=self.people[cells], order=self.order[cells])

    @cached_property
    def occupied(self) -> IntArray:
        """The cells with people."""
        return np.flatnonzero(self.people)

    @cached_property
    def low(self) -> IntArray:
        """The first position in the band of each cell of `occupied`."""
        return self._locate(self.occupied, self.band.low)

    @cached_property
    def high(self) -> IntArray:
        """The position after the band of each cell of `occupied`."""
        return self._locate(self.occupied, self.band.high)

    @cached_property
    def reach(self) -> IntArray:
        """The position after the last cell that fits into one band with each cell."""
        return self._locate(np.arange(len(self.f.q)), self.band.reach)

    @cached_property
    def _places(self) -> IntArray:
        """The cells as ascending numbers, in 32 bits if these suffice: they are found faster."""
        dtype = np.int32 if self.f.keys * (self.band.size + 1) < _NARROW else np.int64
        return self.f.q.astype(dtype) * dtype(self.band.size) + self.f.t.astype(dtype)

    def _locate(self, cells: IntArray, ends: IntArray) -> IntArray:
        """Return the position in its q of the place that `ends` gives for the place of each cell."""
        t = self.f.t[cells]
        return np.searchsorted(self._places, self._places[cells] + (ends[t] - t).astype(self._places.dtype))

    def may_fit(self, records: IntArray, left: int) -> Mask:
        """Mark the q whose records, except `left` + 1 of them, may fit into one band.

        If they do, the band holds the middle record, so only records within reach of that are counted.
        """
        f, up_to = self.f, cumulative_sums(records)
        first, end = up_to[f.first], up_to[np.append(f.first[1:], len(f.q))]
        number = end - first
        middle = np.searchsorted(up_to, first + number // 2, side="right") - 1
        middle = np.minimum(middle, len(f.q) - 1)
        back = np.searchsorted(self.band.reach, np.arange(self.band.size), side="right")
        around = up_to[self._locate(middle, self.band.reach)] - up_to[self._locate(middle, back)]
        return (around >= number - left - 1) | (number <= 2 * (left + 1))

    def within(self, records: IntArray) -> IntArray:
        """Return, for each cell of `occupied`, the records of its q within its band."""
        up_to = cumulative_sums(records)
        return up_to[self.high] - up_to[self.low]

    def from_smallest(self, records: IntArray) -> IntArray:
        """Return W_v of each cell."""
        up_to = cumulative_sums(records)
        return up_to[self.reach] - up_to[:-1]


def _select(f: FrequencyTable, cells: IntArray, alike: IntArray | int) -> FrequencyTable:
    names = ["q", "t", "d", "s", "d_q", "s_q", *(() if isinstance(f.n, int) else ("n",))]
    return replace(f, alike=alike, **{name: getattr(f, name)[cells] for name in names})


def cumulative_sums(values: IntArray) -> IntArray:
    """Return the sums of the values before each position, and of all values."""
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64)))


def _chances_of_disclosure(w: _Windows) -> _Chances:
    """Return the chances of DiSCO."""
    d_q, s_q = w.f.d_q[w.occupied], w.f.s_q[w.occupied]
    rest = s_q - w.within(w.f.s)
    by_others = w.p0[d_q - w.within(w.f.d)] - w.p0[d_q - 1]
    return _Chances(w, (rest == 0) & (s_q > 0), w.q0[rest] - w.q0[s_q], by_others)


def _chances_of_claims(w: _Windows) -> _Chances:
    """Return the chances of DiS, whose claim is the same for all people of a q."""
    f = w.f
    if not len(f.q):
        nothing = np.zeros(0, dtype=np.int64)
        return _Chances(w, nothing > 0, nothing, nothing)
    outside = f.s_q - w.from_smallest(f.s)
    claimed = f.at_cells(f.sum_by_q((outside == 0) & (f.s > 0)) > 0, w.occupied)
    at_n = f.at_cells(f.sum_by_q(w.q0[outside] - w.q0[outside + f.s]), w.occupied)
    return _Chances(w, claimed, at_n, _chances_of_common_claim(w))


def _chances_of_common_claim(w: _Windows) -> IntArray:
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


def _count_certain_claims(w: _Windows, c: Fraction, draws: tuple[Draw | None, Draw | None]) -> ClaimCounts:
    claimed = (w.people * w.f.n)[w.occupied][_mark_claims(w, c)]
    return replace(_chances_of_certainty(w, c, draws).count(), claimed=int(claimed.sum()))


def _mark_claims(w: _Windows, c: Fraction) -> Mask:
    """Mark the cells of `occupied` about whose people something is claimed at a certainty."""
    f = w.f
    s = f.s * (f.t != w.band.missing)
    claimed_q = f.sum_by_q(reaches_share(w.from_smallest(s), f.at_cells(f.sum_by_q(s)), c)) > 0
    marked: Mask = f.at_cells(claimed_q, w.occupied)
    return marked


def _chances_of_certainty(w: _Windows, c: Fraction, draws: tuple[Draw | None, Draw | None]) -> _Chances:
    """Return the chances of DiSCO at a certainty."""
    f = w.f
    has_value = f.t != w.band.missing
    s, d, own = f.s * has_value, f.d * has_value, has_value[w.occupied]
    in_q, in_others = (f.at_cells(f.sum_by_q(r), w.occupied) for r in (s, d))
    near, near_others = w.within(s), w.within(d) - own

    def chances(part: IntArray, whole: IntArray, draw: Draw | None) -> IntArray:
        if draw is None:
            return reaches_share(part, whole, c) * CHANCE_SCALE
        chance = draw.chance
        return _chances_of_pairs(part, whole - part, lambda a, b: chances_to_be_claimed(a, b, c, chance))

    now, of_SD, of_others = reaches_share(near, in_q, c), *draws
    return _Chances(w, now, chances(near, in_q, of_SD), chances(near_others, in_others - own, of_others))


def guess_counts_within(
    cells: AmountCells,
    people: IntArray,
    d: IntArray,
    s: IntArray,
    draws: tuple[Draw | None, Draw | None],
    overall: IntArray,
    n: IntArray | int = 1,
) -> GuessCountsWithin:
    """Count guesses about the `people` of each cell from SD, and from the others; `draws`: of both.

    `overall`: the chance that each place is guessed where a side has no amount to guess from. `n`: key
    combinations that have the cell.
    """
    if not people.any():
        return GuessCountsWithin.empty()
    of_SD, of_others = draws
    occupied, all_people = np.flatnonzero(people), people * n
    at_n, matched = _guess(cells, s, None, without_self=False)
    from_SD = counts_at_n = _add_up(cells, all_people, occupied, at_n, matched)
    if of_SD is not None:
        at_n, matched = _guess(cells, s, of_SD, without_self=False)
        counts_at_n = _add_up(cells, all_people, occupied, at_n, matched)
    by_others, matched_others = _guess(cells, d, of_others, without_self=True)
    unmatched = (matched_others - matched) * overall[cells.t] // CHANCE_SCALE
    return GuessCountsWithin(
        from_SD,
        counts_at_n,
        _add_up(cells, all_people, occupied, by_others, matched_others),
        sum_of_squares(
            np.add.reduceat(people * (at_n - by_others + unmatched), cells.first),
            n if isinstance(n, int) else n[cells.first],
        ),
    )


def _guess(
    cells: AmountCells, r: IntArray, draw: Draw | None, *, without_self: bool
) -> tuple[IntArray, IntArray]:
    """Return the chances of a right guess, and that there is a record to guess from (shape: cells)."""
    records = cells.sum_by_q(r) - without_self
    matched = (
        CHANCE_SCALE - to_integer_chances(chance_of_none(records, draw))
        if draw
        else (records > 0) * CHANCE_SCALE
    )
    return cells.chances(r, draw, without_self=without_self), matched


def _add_up(
    cells: AmountCells, people: IntArray, occupied: IntArray, right: IntArray, matched: IntArray
) -> DrawnGuessCounts:
    return DrawnGuessCounts(
        int((people * right).sum()),
        Grouped.sum_by_group(cells.t[occupied], (people * matched)[occupied]),
    )


def _chances_of_pairs(
    own: IntArray, others: IntArray, chances: Callable[[IntArray, IntArray], Floats]
) -> IntArray:
    """Compute each distinct pair once; return chances in units of 1 / `CHANCE_SCALE`, 0 if `own` is 0."""
    result = np.zeros(len(own), dtype=np.int64)
    present = np.flatnonzero(own > 0)
    if len(present):
        pairs, pair = np.unique(np.stack((own[present], others[present])), axis=1, return_inverse=True)
        result[present] = to_integer_chances(chances(pairs[0], pairs[1]))[pair.reshape(-1)]
    return result
