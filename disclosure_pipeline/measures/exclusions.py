"""Taking cells out of the measures, and counting what was taken. [R section 5]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, Mask, total
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.totals import Cells, DisclosureTables

STEPS = ("target_levels", "missing_target", "missing_key", "pairs", "count_over")


@dataclass(frozen=True)
class CodedExclusions:
    """The exclusions of one target, as codes.

    `missing_keys` lists (key, its code for missing), `pairs` lists (key, key level, target level);
    cells of more than `count_over` records are taken out of each table by that table's own count.
    """

    target_levels: Sequence[int] = ()
    missing_target: int | None = None
    missing_keys: Sequence[tuple[int, int]] = ()
    pairs: Sequence[tuple[int, int, int]] = ()
    count_over: int | None = None

    def __bool__(self) -> bool:
        """Return whether anything at all is to be excluded."""
        return bool(
            self.target_levels
            or self.missing_target is not None
            or self.missing_keys
            or self.pairs
            or self.count_over is not None
        )


def exclude(
    f: FrequencyTable, tables: DisclosureTables, key_levels: IntArray, exclusions: CodedExclusions
) -> tuple[DisclosureTables, dict[str, dict[str, int]]]:
    """Return the reduced tables, and for each table the records that each step took out and what remains.

    Whether a cell is disclosive was decided on the untouched tables and stays as it is. A record that one
    step took out is not counted again by a later one. `key_levels` is the level of each key in each q
    (shape: keys, q).
    """
    masks = _exclusion_masks(f, key_levels, exclusions)
    reduced, taken_out = {}, {}
    for field in fields(DisclosureTables):
        cells: Cells = getattr(tables, field.name)
        counts = {}
        for step, mask in masks.items():
            counts[step] = total(cells.counts, cells.where & mask)
            cells = cells.without(mask)
        over = _cells_over(cells, exclusions.count_over)
        counts["count_over"] = total(cells.counts, cells.where & over)
        cells = cells.without(over)
        reduced[field.name] = cells
        taken_out[field.name] = counts | {"remaining": cells.total()}
    return DisclosureTables(**reduced), taken_out


def are_left(
    exclusions: CodedExclusions, t: IntArray, d: IntArray, level_of: Callable[[int], IntArray]
) -> Mask:
    """Return whether the exclusions leave each cell, or each GT record.

    `t` is its target level, `d` the number of GT records of its cell, `level_of` gives its level of a key.
    """
    left = ~np.isin(t, list(exclusions.target_levels))
    if exclusions.missing_target is not None:
        left &= t != exclusions.missing_target
    for k, missing in exclusions.missing_keys:
        left &= level_of(k) != missing
    for k, key_level, target_level in exclusions.pairs:
        left &= (level_of(k) != key_level) | (t != target_level)
    if exclusions.count_over is not None:
        left &= d <= exclusions.count_over
    return left


def _cells_over(cells: Cells, limit: int | None) -> Mask:
    return cells.counts > limit if limit is not None else np.zeros(len(cells.counts), dtype=bool)


def _exclusion_masks(f: FrequencyTable, key_levels: IntArray, exclusions: CodedExclusions) -> dict[str, Mask]:
    """Return the cells that each of the first four steps names, in the order of the steps."""
    missing_key = np.zeros(len(f.q), dtype=bool)
    for k, missing in exclusions.missing_keys:
        missing_key |= (key_levels[k] == missing)[f.q]
    pairs = np.zeros(len(f.q), dtype=bool)
    for k, key_level, target_level in exclusions.pairs:
        pairs |= (key_levels[k] == key_level)[f.q] & (f.t == target_level)
    missing_target = -1 if exclusions.missing_target is None else exclusions.missing_target
    return {
        "target_levels": np.isin(f.t, list(exclusions.target_levels)),
        "missing_target": f.t == missing_target,
        "missing_key": missing_key,
        "pairs": pairs,
    }
