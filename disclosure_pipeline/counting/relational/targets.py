"""The counts of the keys and of each target, from the sums that a database finds over coded records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from disclosure_pipeline.counting.counts import KeyCounts, TargetCounts, count_keys, count_lone_records
from disclosure_pipeline.counting.relational import cells, exclusions
from disclosure_pipeline.counting.relational.cells import Packing
from disclosure_pipeline.counting.relational.coding import BITS, Digits, levels_of
from disclosure_pipeline.counting.relational.transfer import fetch_integers, store_temporarily
from disclosure_pipeline.counting.targets import Target
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.cells import CellTotals, LargeCells
from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.totals import KeySums, totals_of_keys

_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class CodedRecords:
    """Coded records in a database.

    `keys` are the key combinations with the records of each table, `N` the records of each table, `largest`
    the most of them with one key combination. `shared` are the records whose key combination another record
    has too, and `lone` the numbers of the others by table; where that would not help, `shared` are all of the
    `records`.
    """

    records: Any
    shared: Any
    keys: Any
    digits: tuple[Digits, ...]
    N: tuple[int, ...]
    largest: tuple[int, ...]
    lone: tuple[int, ...]

    @property
    def syntheses(self) -> range:
        """The numbers of the syntheses, which are those of their tables."""
        return range(1, len(self.N))


def count_key_combinations(
    records: Any, digits: Sequence[Digits], N: Sequence[int], stack: ExitStack
) -> tuple[CodedRecords, tuple[KeyCounts, ...]]:
    """The records as the targets need them, and the counts of the keys in each synthesis.

    What the database keeps for that is dropped with the stack. InputError where sums of squares may not fit
    64 bits.
    """
    keys = stack.enter_context(store_temporarily(cells.count_key_combinations(records, len(N))))
    key_counts, largest = [], [0] * len(N)
    for synthesis in range(1, len(N)):
        sizes = fetch_integers(cells.count_keys_by_size(keys, synthesis))
        key_counts.append(count_keys(sizes["d_q"], sizes["s_q"], sizes["keys"]))
        largest[0], largest[synthesis] = int(sizes["d_q"].max()), int(sizes["s_q"].max())
    # Sums of d², s² and d·s over keys are at most the records times the most with one key combination.
    if max(N) * max(largest) > _LARGEST:
        raise InputError(
            "The tables have so many records with one key combination that sums of squares do not fit "
            "64 bits: name more keys."
        )
    lone_keys = fetch_integers(cells.count_lone_keys(keys, len(N)))
    lone = [int(lone_keys["n"][lone_keys["i"] == i].sum()) for i in range(len(N))]
    shared = records
    if 2 * sum(lone) > sum(N):  # most records are counted without a look at their targets
        shared = stack.enter_context(store_temporarily(cells.records_with_shared_keys(records, keys, len(N))))
    else:
        lone = [0] * len(N)
    return CodedRecords(records, shared, keys, tuple(digits), tuple(N), tuple(largest), tuple(lone)), tuple(
        key_counts
    )


def count_target_levels(
    rows: CodedRecords, k: int, target: Target
) -> tuple[tuple[TargetCounts, ...], tuple[Grouped, ...]]:
    """The counts of target k in each synthesis, and its `pairs_of_key` if there are large cells."""
    packing = Packing(target.column.size, rows.largest[0])
    if packing.bits + max(rows.largest).bit_length() > BITS:
        raise InputError(
            f"Target {target.column.name!r} has so many levels, and the tables so many records with one key "
            "combination, that they do not fit 64 bits together: name more keys, or group the target."
        )
    counted = rows.records if target.exclusions else rows.shared
    with store_temporarily(cells.count_cells(counted, k, len(rows.N))) as target_cells:
        count = _count_with_exclusions if target.exclusions else _count_synthesis
        target_counts = tuple(count(rows, target_cells, i, packing, target) for i in rows.syntheses)
        if not any(len(of_synthesis.large.t) for of_synthesis in target_counts):
            return target_counts, ()
        all_cells = target_cells if counted is rows.records else cells.records_as_cells(rows.records, k)
        return target_counts, _fetch_pairs(all_cells, rows.digits, target.column.size)


def _count_synthesis(
    rows: CodedRecords, target_cells: Any, synthesis: int, packing: Packing, target: Target
) -> TargetCounts:
    parts, levels = [], target.occurring_levels(synthesis)
    if rows.lone[0] or rows.lone[synthesis]:
        parts.append(count_lone_records(rows.lone[0], rows.lone[synthesis], len(rows.digits), levels))
    by_key = fetch_integers(cells.sum_by_key(target_cells, synthesis, packing))
    if len(by_key["keys"]):
        totals = totals_of_keys(KeySums(**{field.name: by_key[field.name] for field in fields(KeySums)}))
        both = cells.cells_in_both(target_cells, rows.keys, synthesis)
        cell_totals = _cell_totals(
            by_key, fetch_integers(cells.sum_by_key_size(both)), packing.targets, levels
        )
        large = LargeCells.nothing(len(rows.digits))
        if totals.largest > target.list_cells_above:
            large = _fetch_large_cells(both, rows, target)
        parts.append(TargetCounts(totals, cell_totals, large, None))
    return add_up(parts)


def _count_with_exclusions(
    rows: CodedRecords, target_cells: Any, synthesis: int, packing: Packing, target: Target
) -> TargetCounts:
    N = (rows.N[0], rows.N[synthesis])
    counts = exclusions.count_with_exclusions(target_cells, synthesis, packing, target, rows.digits, N)
    if counts.totals.largest <= target.list_cells_above:
        return counts
    left = exclusions.cells_left(target_cells, target.exclusions, rows.digits)
    both = cells.cells_in_both(left, rows.keys, synthesis)
    return replace(counts, large=_fetch_large_cells(both, rows, target))


def _fetch_large_cells(both: Any, rows: CodedRecords, target: Target) -> LargeCells:
    """The DiSCO cells that are listed one by one, of those in both tables."""
    large = fetch_integers(cells.list_large_cells(both, math.floor(target.list_cells_above)))
    words = [large[name] for name in large if name.startswith("q")]
    return LargeCells(levels_of(words, rows.digits), large["t"], large["d"])


def _cell_totals(
    by_key: Mapping[str, IntArray], by_key_size: Mapping[str, IntArray], targets: int, levels: int
) -> CellTotals:
    groups = by_key_size["s_q"] * targets + by_key_size["t"]
    smallest_d, smallest_share = _smallest_cell(by_key, levels)
    return CellTotals(
        guessed=total(by_key["guessed"]),
        DiSCO_t=Grouped.of(by_key_size["t"], by_key_size["DiSCO"]),
        d_by_s_q_t=Grouped.of(groups, by_key_size["d"]),
        dd_by_s_q_t=Grouped.of(groups, by_key_size["squares"]),
        largest_d=int(by_key["most"].max()),
        smallest_d=smallest_d,
        smallest_share=smallest_share,
    )


def _smallest_cell(by_key: Mapping[str, IntArray], levels: int) -> tuple[int, Fraction]:
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


def _fetch_pairs(target_cells: Any, digits: Sequence[Digits], targets: int) -> tuple[Grouped, ...]:
    pairs = fetch_integers(cells.count_pairs(target_cells, digits))
    return tuple(
        Grouped.of(
            (pairs["code"][is_of_key] >> key_digits.shift) * targets + pairs["t"][is_of_key],
            pairs["n"][is_of_key],
        )
        for k, key_digits in enumerate(digits)
        for is_of_key in [pairs["key"] == k]
    )
