"""Figures to which each record adds something, counted from cells: integers that add up over keys.

    figure = 100 · Σ x_i / N

x_i is what the entry of a figure says that a record adds (`entry.Figure.adds`): the same expression that
`contributions` adds up by weight, by group and by unit. Here nobody has two records, so all records of a cell
add the same. Beside the figure stand those of n records of SD and of other people, their difference, and its
standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.entry import Figure
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, percent
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.rows import Rows
from disclosure_pipeline.measures.samples import standard_error, sum_of_squares, to_integer_chances
from disclosure_pipeline.measures.words import SYNTHETIC

_HALF = 1 << 26
_ONE = _HALF * _HALF


@dataclass(frozen=True)
class Sums:
    """What the records add to a figure, and to it at n records of SD and of the others: in units of 2^-52.

    squares: of what the records of each q add to the difference, in units of 1 / `CHANCE_SCALE`².
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
    d, s = f.d if left is None else left, f.s if left_s is None else left_s
    of_GT, of_SD = (Rows(f, np.flatnonzero(records), d_left=left, s_left=left_s) for records in (d, s))
    return tuple(
        _add_up(figure, of_SD, s) if figure.basis == SYNTHETIC else _add_up(figure, of_GT, d)
        for figure in figures
    )


def _add_up(figure: Figure, rows: Rows, records: IntArray) -> Sums:
    assert figure.adds is not None
    f, counted = rows.f, (records * rows.f.n)[rows.cell]
    value = _sum_exactly(figure.adds(rows), counted)
    if figure.compared is None:
        return Sums(value)
    at_n, others = figure.compared.at_n(rows), figure.compared.others(rows)
    added = np.zeros(len(f.q), dtype=np.int64)
    added[rows.cell] = records[rows.cell] * (to_integer_chances(at_n) - to_integer_chances(others))
    squares = sum_of_squares(f.sum_by_q(added), f.alike)
    return Sums(value, _sum_exactly(at_n, counted), _sum_exactly(others, counted), squares)


def _sum_exactly(x: Floats | Mask, counted: IntArray) -> int:
    """Return the sum of what records add, in units of 2^-52, which is the same in any order."""
    if x.dtype == np.bool_:
        return int(counted[x].sum()) * _ONE
    high = np.floor(x * _HALF)
    low = np.rint((x * _HALF - high) * _HALF)
    return int((high.astype(np.int64) * counted).sum()) * _HALF + int((low.astype(np.int64) * counted).sum())


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
