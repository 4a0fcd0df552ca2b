"""Totals of one target in one synthesis: integers, summed over keys, from which its figures are computed.

Of figures to which each record adds something,

    figure = 100 · Σ x_i / N

x_i is what the entry of a figure says that a record adds (`entry.Figure.adds`): the same expression that
`contributions` adds up by weight, by group and by unit. Here nobody has two records, so all records of a cell
add the same. Beside the figure stand those of n records of SD and of other people, their difference, and its
standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from disclosure_pipeline.measures.entry import Figure
from disclosure_pipeline.measures.exact import Floats, Grouped, IntArray, Mask, percent
from disclosure_pipeline.measures.frequency import CommonGuess, FrequencyTable, Guess, Rows
from disclosure_pipeline.measures.guesses import RightGuesses, error_of_guesses
from disclosure_pipeline.measures.samples import CHANCE_SCALE, sum_of_squares, to_integer_chances
from disclosure_pipeline.measures.words import SYNTHETIC


@dataclass(frozen=True)
class CellTotals:
    """Integers that add up over keys, except the last three: their maximum and minima are taken.

    guessed: GT records whose level is one of the most frequent of their q in SD, by the number of these.
    DiSCO_t: DiSCO records by target level.
    d_by_s_q_t, dd_by_s_q_t: GT records whose q is in SD, and the sum of d², by s_q * targets + t.
    largest_d: the largest d.
    smallest_d, smallest_share: the smallest d, and the smallest d / d_q over the q in GT. Considered are all
        pairs of a q and a t that occur in GT or in this SD; a pair that no GT record has gives 0.
    """

    guessed: Grouped
    DiSCO_t: Grouped
    d_by_s_q_t: Grouped
    dd_by_s_q_t: Grouped
    largest_d: int = field(metadata={"add": max})
    smallest_d: int = field(metadata={"add": min})
    smallest_share: Fraction = field(metadata={"add": min})


def cell_totals(f: FrequencyTable, d: IntArray, DiSCO: Mask, levels: int, guessed: Grouped) -> CellTotals:
    """Count from the cells of some or all q.

    `d` are the GT records that the exclusions leave in each cell, `DiSCO` marks the cells that then count
    towards DiSCO. `guessed` and the smallest d refer to the tables before exclusions. `levels` is the number
    of target levels that occur in GT or in this SD.
    """
    smallest_d, smallest_share = _smallest_cell(f, levels)
    largest_d = int(d.max())
    occupied, disclosed = np.flatnonzero((d > 0) & (f.s_q > 0)), np.flatnonzero(DiSCO)
    s_q_t = f.s_q[occupied] * f.targets + f.t[occupied]
    records = d * f.n
    return CellTotals(
        guessed=guessed,
        DiSCO_t=Grouped.sum_by_group(f.t[disclosed], records[disclosed]),
        d_by_s_q_t=Grouped.sum_by_group(s_q_t, records[occupied]),
        dd_by_s_q_t=Grouped.sum_by_group(s_q_t, (records * d)[occupied]),
        largest_d=largest_d,
        smallest_d=smallest_d,
        smallest_share=smallest_share,
    )


def _smallest_cell(f: FrequencyTable, levels: int) -> tuple[int, Fraction]:
    d_q = f.d_q[f.first]
    in_GT = d_q > 0
    if not in_GT.any():
        return 0, Fraction(1)
    if int(d_q[in_GT].min()) >= levels:  # otherwise some q lacks a level
        occupied = f.sum_by_q(f.d > 0)
        if (occupied[in_GT] >= levels).all():
            cells = np.flatnonzero(f.d)
            smallest = cells[np.argmin(100 * f.d[cells] / f.d_q[cells])]
            smallest_share = Fraction(int(f.d[smallest]), int(f.d_q[smallest]))
            return int(f.d[cells].min()) if in_GT.all() else 0, smallest_share
    return 0, Fraction(0)


@dataclass(frozen=True)
class Totals:
    """Further integers of the figures of a target.

    DiSCO_cells: cells (q, t) that count towards DiSCO. largest: the most GT records in one of them.
    certain: SD records with ps = 1 whose q is in GT.
    CAPd, CAPs, DCAP, TCAP_taub: sums of quotients, with numerators added up by denominator: d² by d_q, s² by
        s_q, d·s by s_q, and d·s of cells with ps = 1 by d_q.
    """

    DiSCO_cells: int
    largest: int = field(metadata={"add": max})
    certain: int
    CAPd: Grouped
    CAPs: Grouped
    DCAP: Grouped
    TCAP_taub: Grouped


def count_totals(f: FrequencyTable, d: IntArray, s: IntArray, told: Mask) -> Totals:
    """Count from the GT and SD records `d` and `s` that the exclusions leave in each cell.

    These also give pd and ps. Whether a q is in the other table, and which cells have ps = 1 (`told`), depend
    on the tables before exclusions: an intruder sees these.
    """
    d_q, s_q = f.sum_by_q(d), f.sum_by_q(s)
    DiSCO, certain = told & (d > 0), told & (s > 0) & (f.d_q > 0)
    guessed = np.flatnonzero(certain & (d > 0))
    return Totals(
        DiSCO_cells=f.total(DiSCO),
        largest=int(d[DiSCO].max(initial=0)),
        certain=f.total(s, certain),
        CAPd=Grouped.sum_by_group(d_q, f.sum_by_q(d * d) * f.alike),
        CAPs=Grouped.sum_by_group(s_q, f.sum_by_q(s * s) * f.alike),
        DCAP=Grouped.sum_by_group(s_q, f.sum_by_q(s * d) * f.alike),
        TCAP_taub=Grouped.sum_by_group(f.at_cells(d_q, guessed), (s * d * f.n)[guessed]),
    )


APART_SCALE = 2**60
"""The chances of different q add up to 1 at most: their sum fits 64 bits in units of 1 / `APART_SCALE`."""


def count_hits_apart(key_levels: Sequence[IntArray] | IntArray, shares: Mapping[int, Floats]) -> int:
    """Return the chance that keys drawn independently from SD give one of these q, times `APART_SCALE`.

    0 for a single key, which has nothing to be drawn apart from: the result would be SD's own hits. Rounding
    each q's chance down makes sums the same in any order, so that parts add up.

    Args:
        key_levels: The level of each key in each q (shape: keys, q); no q twice.
        shares: For each key, by its place, the share of SD's records with each level. They are multiplied in
            this order, which must be the same however the keys are listed.

    >>> shares = {0: np.array([0.25, 0.5]), 1: np.array([0.5])}
    >>> count_hits_apart(np.array([[0, 1], [0, 0]]), shares) / APART_SCALE
    0.375
    """
    if len(shares) == 1:
        return 0
    chances = reduce(np.multiply, (of[key_levels[place]] for place, of in shares.items()))
    return int(np.floor(chances * APART_SCALE).astype(np.int64).sum())


def share_of_levels(counts: IntArray) -> Floats:
    """Return the share of the records with each level, from their number."""
    shares: Floats = counts / np.float64(counts.sum())
    return shares


_HALF_BITS = 26
_HALF = 1 << _HALF_BITS
_ONE = _HALF * _HALF


@dataclass(frozen=True)
class Sums:
    """Sums of what the records add to a figure, and to it at n records of SD and of the others.

    value, at_n, others: in units of 2^-52. squares: of what the records of each q add to the difference, in
        units of 1 / `CHANCE_SCALE`².
    """

    value: int
    at_n: int = 0
    others: int = 0
    squares: int = 0

    @property
    def error(self) -> float:
        """The standard error of the difference, in records."""
        return math.sqrt(self.squares) / CHANCE_SCALE


@dataclass(frozen=True)
class GuessSums:
    """Sums of guesses about GT records, from all of SD, from n of its records, and from n of the others.

    named: right by the records of their q, in units of 2^-52. matched: with a record of their q to guess
        from, by level, in units of 1 / `CHANCE_SCALE`.
    squares: of what the records of each q add to the difference, in units of 1 / `CHANCE_SCALE`², added up
        over the number of `guesses` of all records, one of which stands for both whole tables.
    """

    named: tuple[int, ...]
    matched: tuple[Grouped, ...]
    squares: int
    guesses: int = field(metadata={"add": max})

    def about(self, figure: Figure, levels: Rows, people_t: IntArray) -> tuple[int, int, int, float]:
        """Return right guesses from all of SD, n records, and the others, and the error of their difference.

        In units of 1 / `_FINE`; the error in records. levels: a row for each target level, of the whole
        table. people_t: the GT records that are guessed, by level; the cells do not know that of records
        without others of their q.
        """
        compared = figure.compared
        assert figure.adds is not None and compared is not None
        always = [_guess(add, levels).always for add in (figure.adds, compared.at_n, compared.others)]
        matched = [of_side.by_position(len(people_t)) for of_side in self.matched]
        from_all, at_n, others = (
            RightGuesses(
                named * CHANCE_SCALE,
                _multiply(chances, with_any),
                _multiply(chances, people_t) * CHANCE_SCALE,
            )
            for named, with_any, chances in zip(self.named, matched, always, strict=True)
        )
        unlike = [_multiply(always[1], with_any) - _multiply(always[2], with_any) for with_any in matched[1:]]
        squares = self.squares / max(self.guesses, 1) / CHANCE_SCALE**2
        error = error_of_guesses((at_n, others), unlike, squares, _FINE)
        return from_all.best, at_n.best, others.best, error


_FINE = _ONE * CHANCE_SCALE


def _multiply(chances: Floats, records: IntArray) -> int:
    """Return the sum of the products, in units of 2^-52."""
    units = np.rint(chances * float(_ONE)).astype(np.int64)
    return sum(of_level * number for of_level, number in zip(units.tolist(), records.tolist(), strict=True))


def _guess(add: Callable[[Rows], Any], rows: Rows) -> Guess:
    guess = add(rows)
    assert isinstance(guess, Guess)
    return guess


AnySums = Sums | GuessSums


@dataclass(frozen=True)
class _Asked:
    """The rows that a figure is asked about: cells of `records`, `counted` with all that look the same."""

    rows: Rows
    records: IntArray
    counted: IntArray

    @classmethod
    def of(cls, cells: Rows, records: IntArray) -> _Asked:
        rows = replace(cells, cell=np.flatnonzero(records))
        return cls(rows, records[rows.cell], (records * cells.f.n)[rows.cell])

    def add(self, x: Floats | Mask) -> int:
        return _sum_exactly(x, self.counted)

    def add_guess(self, guess: Guess) -> tuple[int, Grouped]:
        """Return the right guesses, and by level the records that there is a record to guess from."""
        matched = to_integer_chances(guess.matched) * self.counted
        return self.add(guess.named), Grouped.sum_by_group(self.rows.t, matched)

    def subtract(self, x: Floats, y: Floats) -> IntArray:
        """Return what each cell's records add to x - y, in units of 1 / `CHANCE_SCALE` (shape: cells)."""
        of_cells = np.zeros(len(self.rows.f.q), dtype=np.int64)
        of_cells[self.rows.cell] = self.records * (to_integer_chances(x) - to_integer_chances(y))
        return of_cells


def count_figures(cells: Rows, *groups: Sequence[Figure]) -> list[tuple[AnySums, ...]]:
    """Add up what the records of some or all q add to each figure of some groups of figures."""
    f, d, s = cells.f, cells.d_left, cells.s_left
    of_GT, of_SD = (_Asked.of(cells, left) for left in (f.d if d is None else d, f.s if s is None else s))
    return [
        tuple(_add_up(figure, of_SD if figure.basis == SYNTHETIC else of_GT) for figure in figures)
        for figures in groups
    ]


def _add_up(figure: Figure, asked: _Asked) -> AnySums:
    assert figure.adds is not None
    rows, compared, x = asked.rows, figure.compared, figure.adds(asked.rows)
    if compared is None:
        assert not isinstance(x, Guess)
        return Sums(asked.add(x))
    at_n, others = compared.at_n(rows), compared.others(rows)
    if isinstance(x, Guess):
        assert isinstance(at_n, Guess) and isinstance(others, Guess) and compared.all is not None
        common = compared.all(rows)
        squares = _square_guesses(asked, at_n, others, common)
        of_all, of_others = asked.add_guess(x), asked.add_guess(others)
        sides = (of_all, of_all if at_n is x else asked.add_guess(at_n), of_others)
        named, matched = tuple(right for right, _ in sides), tuple(with_any for _, with_any in sides)
        return GuessSums(named, matched, squares, common.number)
    assert not isinstance(at_n, Guess) and not isinstance(others, Guess)
    squares_of_q = rows.f.sum_by_q(asked.subtract(at_n, others))
    return Sums(asked.add(x), asked.add(at_n), asked.add(others), sum_of_squares(squares_of_q, rows.f.alike))


def _square_guesses(asked: _Asked, at_n: Guess, others: Guess, of_all: CommonGuess) -> int:
    """Return the squares of what the records of each q add to the difference, added up over common guesses.

    These are made where one side has no record of their q.
    """
    f = asked.rows.f
    named = asked.subtract(at_n.named, others.named)
    unmatched = asked.subtract(others.matched, at_n.matched)
    if not of_all.of_levels:  # cells that look the same have the same level
        by_guess = unmatched * to_integer_chances(of_all.chances)[f.t] // CHANCE_SCALE
        return sum_of_squares(f.sum_by_q(named + by_guess), f.alike)
    # A q has one cell of each level; cells that look the same may have others.
    of_q, cells = f.sum_by_q(named), np.flatnonzero((unmatched != 0) & (of_all.chances[f.t] > 0))
    keys, by_key = f.n if isinstance(f.n, int) else f.n[cells], f.at_cells(of_q, cells)
    with_guess = sum_of_squares(by_key + unmatched[cells], keys) - sum_of_squares(by_key, keys)
    return of_all.number * sum_of_squares(of_q, f.alike) + with_guess


def _sum_exactly(x: Floats | Mask, counted: IntArray) -> int:
    """Return the sum of what records add, in units of 2^-52, which is the same in any order."""
    if x.dtype == np.bool_:
        return int(counted[x].sum()) * _ONE
    units = np.rint(x * float(_ONE)).astype(np.int64)
    high, low = (int(np.dot(part, counted)) for part in (units >> _HALF_BITS, units & (_HALF - 1)))
    return high * _HALF + low


def count_records(figures: Sequence[Figure], sums: Sequence[AnySums], name: str) -> int:
    """Return the number of records that add to a figure, each of which adds 1."""
    of_figure = next(of for figure, of in zip(figures, sums, strict=True) if figure.name == name)
    assert isinstance(of_figure, Sums)
    return of_figure.value // _ONE


def measure_figures(
    figures: Sequence[Figure],
    sums: Sequence[AnySums],
    N_d: int,
    N_s: int,
    levels: Rows | None = None,
    people_t: IntArray | None = None,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the figures, and what compares them with other people's records, by their columns.

    A standard error is at least one record. `levels`, `people_t`: see `GuessSums.about`.
    """
    values, compared = dict[str, float](), dict[str, float]()
    for figure, added in zip(figures, sums, strict=True):
        if isinstance(added, GuessSums):
            assert levels is not None and people_t is not None
            value, at_n, others, error = added.about(figure, levels, people_t)
            sides = [percent(side, N_d * _FINE) for side in (value, at_n, others, at_n - others)]
        else:
            whole, error = (N_s if figure.basis == SYNTHETIC else N_d) * _ONE, added.error
            sides = [percent(side, whole) for side in (added.value, added.at_n, added.others)]
            sides.append(sides[1] - sides[2])
        values[figure.name] = sides[0]
        if figure.compared is not None:
            compared |= dict(zip(figure.comparisons, (*sides[1:], 100 * max(error, 1) / N_d), strict=True))
    return values, compared
