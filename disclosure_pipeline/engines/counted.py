"""What every engine returns: integers that add up over key combinations, whoever counted them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

from disclosure_pipeline.measures.cells import CellTotals, LargeCells, cell_totals
from disclosure_pipeline.measures.checks import large_cells
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.exclusions import STEPS, CodedExclusions, exclude
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.identity import Uniques, uniques
from disclosure_pipeline.measures.overlap import Shared, shared
from disclosure_pipeline.measures.tables import Cells, DisclosureTables, disclosure_tables
from disclosure_pipeline.measures.totals import KeySums, Totals, totals_of_keys, totals_of_tables

TABLES = tuple(field.name for field in fields(DisclosureTables))


@dataclass(frozen=True)
class OfKeys:
    """Of one synthesis, whatever the target."""

    uniques: Uniques
    shared: Shared


@dataclass(frozen=True)
class Excluded:
    """What exclusions took out of the tables, and what they leave of GT and SD.

    `taken`: records of each of TABLES (rows) that each of STEPS took out. `pairs_of_key[k]`: GT records by
    level of key k * targets + target level; `original_t`: by target level.
    """

    taken: IntArray
    uniques: Uniques
    original_t: Grouped
    pairs_of_key: tuple[Grouped, ...]


@dataclass(frozen=True)
class OfTarget:
    """Of one target in one synthesis. `excluded` is None where nothing is asked to be excluded."""

    totals: Totals
    cells: CellTotals
    large: LargeCells
    excluded: Excluded | None


@dataclass(frozen=True)
class Counted:
    """Everything that was counted, of the syntheses in their order.

    `targets[i][j]` is of target i in synthesis j + 1. `pairs_of_key[i][k]` are the GT records by level of
    key k * size of the target + its level; there are none where no cell is large enough to ask.
    """

    keys: tuple[OfKeys, ...]
    targets: tuple[tuple[OfTarget, ...], ...]
    pairs_of_key: tuple[tuple[Grouped, ...], ...]


@dataclass(frozen=True)
class Part:
    """The cells of some q, numbered from 0 in `cells.q`; `levels_of` gives the level of each key in them.

    `levels_of` takes some q and returns an array of shape (keys, q).
    """

    cells: FrequencyTable
    levels_of: Callable[[IntArray], IntArray]


def of_keys(d_q: IntArray, s_q: IntArray, keys: IntArray | int = 1) -> OfKeys:
    """From the counts of each q; an entry can stand for several `keys` that have the same counts."""
    return OfKeys(uniques(d_q, s_q, s_q > 0, keys), shared(d_q * keys, s_q * keys))


def settled(GT: int, SD: int, keys: int, levels: int) -> OfTarget:
    """Of so many q that only one GT record has, and of so many that only one SD record has.

    Nothing is excluded. `keys` is the number of key columns, `levels` that of target levels that occur.
    """
    one, none, number = np.array([1, 0]), np.array([0, 1]), np.array([GT, SD])
    sums = KeySums(d_q=one, s_q=none, dd=one, ss=none, ds=np.zeros(2, np.int64), keys=number)
    nothing = Grouped.nothing()
    cells = CellTotals(
        guessed=0,
        DiSCO_t=nothing,
        drawn=nothing,
        drawn_squares=nothing,
        most=1 if GT else 0,
        least=0 if SD or levels > 1 else 1,
        least_share=Fraction(0 if GT and levels > 1 else 1),
    )
    return OfTarget(totals_of_keys(sums), cells, LargeCells.nothing(keys), None)


def of_target(part: Part, levels: int, larger_than: float, wanted: CodedExclusions) -> OfTarget:
    """Of the cells of a part. `levels` is the number of target levels that occur in GT or in this SD.

    `larger_than`: the DiSCO cells of more records than that are told one by one.
    """
    f = part.cells
    if not wanted:
        d, DiSCO, excluded = f.d, Cells(f.d, (f.d > 0) & (f.s > 0) & (f.s == f.s_q)), None
        totals = totals_of_keys(_sums(f))
    else:
        key_levels = part.levels_of(np.arange(f.keys))
        left, taken = exclude(f, disclosure_tables(f), key_levels, wanted)
        d, DiSCO = left.original.values(), left.DiSCO
        totals = totals_of_tables(f, left)
        excluded = Excluded(
            taken=np.array([[taken[table][step] for step in STEPS] for table in TABLES]),
            uniques=_uniques_left(f, left),
            original_t=Grouped.of(f.t, d),
            pairs_of_key=tuple(Grouped.of(of_key[f.q] * f.targets + f.t, d) for of_key in key_levels),
        )
    return OfTarget(
        totals,
        cell_totals(f, d, DiSCO.where, levels),
        large_cells(f, DiSCO, part.levels_of, larger_than),
        excluded,
    )


def _sums(f: FrequencyTable) -> KeySums:
    def per_key(counts: IntArray) -> IntArray:
        up_to = np.cumsum(counts)[f.first + f.cells_of_q - 1]  # faster than adding up q by q
        return np.diff(up_to, prepend=0)

    return KeySums(
        d_q=f.d_q[f.first],
        s_q=f.s_q[f.first],
        dd=per_key(f.d * f.d),
        ss=per_key(f.s * f.s),
        ds=per_key(f.d * f.s),
    )


def _uniques_left(f: FrequencyTable, left: DisclosureTables) -> Uniques:
    d_q, s_q = f.per_key(left.original.values()), f.per_key(left.synthetic.values())
    return uniques(d_q, s_q, f.per_key(f.s) > 0)
