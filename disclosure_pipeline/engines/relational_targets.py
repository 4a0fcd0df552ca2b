"""What the keys and each target tell, from the sums that a database finds over coded records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from disclosure_pipeline.engines import relational_cells as cells
from disclosure_pipeline.engines import relational_exclusions as exclusions
from disclosure_pipeline.engines.connections import numbers, stored
from disclosure_pipeline.engines.counted import OfKeys, OfTarget, of_keys, settled
from disclosure_pipeline.engines.job import Target
from disclosure_pipeline.engines.relational_cells import Packing
from disclosure_pipeline.engines.relational_coding import BITS, Digits, levels_of
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.cells import CellTotals, LargeCells
from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.totals import KeySums, totals_of_keys

_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Rows:
    """Coded records in a database.

    `keys` are the key combinations with the records of each table, `N` the records of each table, `largest`
    the most of them with one key combination. `several` are the records whose key combination another record
    has too, and `lone` the numbers of the others by table; where that would not help, `several` are all of
    the `records`.
    """

    records: Any
    several: Any
    keys: Any
    digits: tuple[Digits, ...]
    N: tuple[int, ...]
    largest: tuple[int, ...]
    lone: tuple[int, ...]

    @property
    def syntheses(self) -> range:
        """The numbers of the syntheses, which are those of their tables."""
        return range(1, len(self.N))


def counted_keys(
    records: Any, digits: Sequence[Digits], N: Sequence[int], stack: ExitStack
) -> tuple[Rows, tuple[OfKeys, ...]]:
    """Count the key combinations: the records as the targets need them, and what the keys tell.

    What the database keeps for that is there as long as the stack. InputError where sums of squares may not
    fit 64 bits.
    """
    keys = stack.enter_context(stored(cells.keys_of(records, len(N))))
    found, largest = [], [0] * len(N)
    for synthesis in range(1, len(N)):
        sizes = numbers(cells.by_size(keys, synthesis))
        found.append(of_keys(sizes["d_q"], sizes["s_q"], sizes["keys"]))
        largest[0], largest[synthesis] = int(sizes["d_q"].max()), int(sizes["s_q"].max())
    # Sums of d², s² and d·s over keys are at most the records times the most with one key combination.
    if max(N) * max(largest) > _LARGEST:
        raise InputError(
            "The tables have so many records with one key combination that sums of squares do not fit "
            "64 bits: name more keys."
        )
    alone = numbers(cells.lone(keys, len(N)))
    lone = [int(alone["n"][alone["i"] == i].sum()) for i in range(len(N))]
    several = records
    if 2 * sum(lone) > sum(N):  # most records are settled without a look at their targets
        several = stack.enter_context(stored(cells.not_lone(records, keys, len(N))))
    else:
        lone = [0] * len(N)
    return Rows(records, several, keys, tuple(digits), tuple(N), tuple(largest), tuple(lone)), tuple(found)


def measure(rows: Rows, k: int, target: Target) -> tuple[tuple[OfTarget, ...], tuple[Grouped, ...]]:
    """What target k tells, of each synthesis; and its `pairs_of_key`, if there are large cells."""
    packing = Packing(target.column.size, rows.largest[0])
    if packing.bits + max(rows.largest).bit_length() > BITS:
        raise InputError(
            f"Target {target.column.name!r} has so many levels, and the tables so many records with one key "
            "combination, that they do not fit 64 bits together: name more keys, or group the target."
        )
    some = rows.records if target.wanted else rows.several
    with stored(cells.cells_of(some, k, len(rows.N))) as of_target:
        of_synthesis = _with_exclusions if target.wanted else _of_synthesis
        found = tuple(of_synthesis(rows, of_target, i, packing, target) for i in rows.syntheses)
        if not any(len(each.large.t) for each in found):
            return found, ()
        every = of_target if some is rows.records else cells.single(rows.records, k)
        return found, _pairs(every, rows.digits, target.column.size)


def _of_synthesis(rows: Rows, of_target: Any, synthesis: int, packing: Packing, target: Target) -> OfTarget:
    parts, levels = [], target.levels(synthesis)
    if rows.lone[0] or rows.lone[synthesis]:
        parts.append(settled(rows.lone[0], rows.lone[synthesis], len(rows.digits), levels))
    by_key = numbers(cells.key_sums(of_target, synthesis, packing))
    if len(by_key["keys"]):
        totals = totals_of_keys(KeySums(**{field.name: by_key[field.name] for field in fields(KeySums)}))
        both = cells.in_both(of_target, rows.keys, synthesis)
        of_cells = _cell_totals(by_key, numbers(cells.drawn(both)), packing.targets, levels)
        large = LargeCells.nothing(len(rows.digits))
        if totals.largest > target.larger_than:
            large = _large(both, rows, target)
        parts.append(OfTarget(totals, of_cells, large, None))
    return add_up(parts)


def _with_exclusions(
    rows: Rows, of_target: Any, synthesis: int, packing: Packing, target: Target
) -> OfTarget:
    N = (rows.N[0], rows.N[synthesis])
    found = exclusions.measure(of_target, synthesis, packing, target, rows.digits, N)
    assert found.excluded is not None
    left = exclusions.left(of_target, target.wanted, rows.digits)
    large = found.large
    if found.totals.largest > target.larger_than:
        large = _large(cells.in_both(left, rows.keys, synthesis), rows, target)
    pairs = _pairs(left, rows.digits, packing.targets)
    return replace(found, large=large, excluded=replace(found.excluded, pairs_of_key=pairs))


def _large(both: Any, rows: Rows, target: Target) -> LargeCells:
    """The DiSCO cells that are told one by one, of those in both tables."""
    found = numbers(cells.larger(both, math.floor(target.larger_than)))
    words = [found[name] for name in found if name.startswith("q")]
    return LargeCells(levels_of(words, rows.digits), found["t"], found["d"])


def _cell_totals(
    by_key: Mapping[str, IntArray], drawn: Mapping[str, IntArray], targets: int, levels: int
) -> CellTotals:
    groups = drawn["s_q"] * targets + drawn["t"]
    least, least_share = _least(by_key, levels)
    return CellTotals(
        guessed=total(by_key["guessed"]),
        DiSCO_t=Grouped.of(drawn["t"], drawn["DiSCO"]),
        drawn=Grouped.of(groups, drawn["d"]),
        drawn_squares=Grouped.of(groups, drawn["squares"]),
        most=int(by_key["most"].max()),
        least=least,
        least_share=least_share,
    )


def _least(by_key: Mapping[str, IntArray], levels: int) -> tuple[int, Fraction]:
    """The smallest d and the smallest d / d_q, as `CellTotals` defines them."""
    in_GT = by_key["d_q"] > 0
    if not in_GT.any():
        return 0, Fraction(1)
    if (by_key["occupied"][in_GT] < levels).any():
        return 0, Fraction(0)
    d_q, of_size = np.unique(by_key["d_q"][in_GT], return_inverse=True)
    least = d_q.copy()
    np.minimum.at(least, of_size, by_key["least"][in_GT])
    share = min(Fraction(int(d), int(size)) for d, size in zip(least, d_q, strict=True))
    return int(least.min()) if in_GT.all() else 0, share


def _pairs(of_target: Any, digits: Sequence[Digits], targets: int) -> tuple[Grouped, ...]:
    found = numbers(cells.pairs(of_target, digits))
    return tuple(
        Grouped.of((found["code"][here] >> each.shift) * targets + found["t"][here], found["n"][here])
        for k, each in enumerate(digits)
        for here in [found["key"] == k]
    )
