"""Totals of one target in one synthesis: integers, summed over keys, from which its figures are computed.

Of figures to which each record adds something,

    figure = 100 · Σ x_i / N

x_i is what the entry of a figure says that a record adds (`entry.Figure.adds`): the same expression that
`contributions` adds up by weight, by group and by unit. Here nobody has two records, so all records of a cell
add the same. Beside the figure stand those of n records of SD and of other people, their difference, and its
standard error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce

import numpy as np

from disclosure_pipeline.measures.entry import Figure
from disclosure_pipeline.measures.exact import Floats, Grouped, IntArray, Mask, percent
from disclosure_pipeline.measures.frequency import FrequencyTable, Rows
from disclosure_pipeline.measures.samples import standard_error, sum_of_squares, to_integer_chances
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


_HALF = 1 << 26
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


def count_figures(
    f: FrequencyTable, figures: Sequence[Figure], left: IntArray | None, left_s: IntArray | None
) -> tuple[Sums, ...]:
    """Add up what the records of some or all q add to each figure.

    `left`, `left_s`: the GT and SD records that the exclusions leave in each cell; None if nothing is
    excluded.
    """

    def place(records: IntArray) -> tuple[Rows, IntArray, IntArray]:
        rows = Rows(f, np.flatnonzero(records), d_left=left, s_left=left_s)
        return rows, records[rows.cell], (records * f.n)[rows.cell]

    of_GT, of_SD = place(f.d if left is None else left), place(f.s if left_s is None else left_s)
    return tuple(_add_up(figure, *(of_SD if figure.basis == SYNTHETIC else of_GT)) for figure in figures)


def _add_up(figure: Figure, rows: Rows, records: IntArray, counted: IntArray) -> Sums:
    """Add up a figure of rows that are cells of `records` each; `counted` are those of all cells alike."""
    assert figure.adds is not None
    f = rows.f
    value = _sum_exactly(figure.adds(rows), counted)
    if figure.compared is None:
        return Sums(value)
    at_n, others = figure.compared.at_n(rows), figure.compared.others(rows)
    added = np.zeros(len(f.q), dtype=np.int64)
    added[rows.cell] = records * (to_integer_chances(at_n) - to_integer_chances(others))
    squares = sum_of_squares(f.sum_by_q(added), f.alike)
    return Sums(value, _sum_exactly(at_n, counted), _sum_exactly(others, counted), squares)


def _sum_exactly(x: Floats | Mask, counted: IntArray) -> int:
    """Return the sum of what records add, in units of 2^-52, which is the same in any order."""
    if x.dtype == np.bool_:
        return int(counted[x].sum()) * _ONE
    low = x * _HALF
    high = np.floor(low)
    low -= high
    low *= _HALF
    whole, rest = (int(np.dot(part.astype(np.int64), counted)) for part in (high, np.rint(low)))
    return whole * _HALF + rest


def count_records(figures: Sequence[Figure], sums: Sequence[Sums], name: str) -> int:
    """Return the number of records that add to a figure, each of which adds 1."""
    return next(of.value // _ONE for figure, of in zip(figures, sums, strict=True) if figure.name == name)


def measure_figures(
    figures: Sequence[Figure], sums: Sequence[Sums], N_d: int, N_s: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the figures, and what compares them with other people's records, by their columns."""
    values, compared = dict[str, float](), dict[str, float]()
    for figure, added in zip(figures, sums, strict=True):
        values[figure.name] = percent(added.value, (N_s if figure.basis == SYNTHETIC else N_d) * _ONE)
        if figure.compared is not None:
            at_n, others = (percent(side, N_d * _ONE) for side in (added.at_n, added.others))
            error = standard_error(added.squares, N_d)
            compared |= dict(zip(figure.comparisons, (at_n, others, at_n - others, error), strict=True))
    return values, compared
