"""One-way and two-way checks of DiSCO [R section 4], exclusions of cells [R section 5], and controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.entry import GROUPS, About, Default, Figure, Place, Question, show_column
from disclosure_pipeline.measures.exact import Grouped, IntArray, Mask, percent
from disclosure_pipeline.measures.frequency import FrequencyTable, is_only_level
from disclosure_pipeline.measures.words import (
    COUNT,
    NONE,
    POINTS,
    RECORDS,
    SYNTHPOP,
    Words,
    described,
    figure,
    neutral,
    words_of_fields,
)

_LEVEL = Words.neutral(
    "target level", "The target value that is flagged.", NONE, source=SYNTHPOP, beside="value"
)


@dataclass(frozen=True)
class OneWay:
    """A target level that holds most of the DiSCO records. Counts of GT records, and percent of them.

    level_records: the records of all levels that the exclusions leave; pct_level_all of them have this level.
    total_disclosive: the DiSCO records of all levels; n_level_disclosive have this level.
    """

    level: int = described(_LEVEL)
    level_records: int = neutral(
        "records of all levels", "Confidential records that are looked at.", RECORDS, source=SYNTHPOP
    )
    pct_level_all: float = neutral(
        "share of the level",
        "Records looked at that have the level.",
        source=SYNTHPOP,
        beside="share of all people",
    )
    total_disclosive: int = figure(
        "disclosed records", "People whose target is disclosed.", RECORDS, source=SYNTHPOP
    )
    n_level_disclosive: int = figure(
        "disclosed records with the level",
        "People who are disclosed to have this level.",
        RECORDS,
        source=SYNTHPOP,
        beside="people disclosed with it",
    )
    pct_level_disclosive: float = neutral(
        "share of the level among the disclosed",
        "People with this level, among those whose target is disclosed.",
        denominator="disclosed records",
        source=SYNTHPOP,
        beside="share of those disclosed",
    )


@dataclass(frozen=True)
class TwoWay:
    """A target level that most GT records with one key level have. Counts of GT records, and percent."""

    target_level: int = described(_LEVEL)
    key: int = neutral("key", "The key that goes with it.", NONE, source=SYNTHPOP)
    key_level: int = neutral("key level", "The value of the key that goes with it.", NONE, source=SYNTHPOP)
    npairs: int = figure(
        "disclosed records with the pair",
        "People with both values whose target is disclosed.",
        RECORDS,
        source=SYNTHPOP,
    )
    key_target_total: int = neutral(
        "records with the pair", "Confidential records that have both values.", RECORDS, source=SYNTHPOP
    )
    key_total: int = neutral(
        "records with the key level",
        "Confidential records that have the value of the key.",
        RECORDS,
        source=SYNTHPOP,
    )
    pct_target_key_level: float = neutral(
        "share of the target level",
        "Records with the key's value that have the target's.",
        denominator="confidential records with the key level",
        source=SYNTHPOP,
    )


def one_way(DiSCO_t: Grouped, original_t: Grouped, more_than: tuple[float, float]) -> list[OneWay]:
    """Return the level with the most DiSCO records if it exceeds both limits. [R section 4].

    `DiSCO_t` and `original_t` are the DiSCO records and the GT records by target level, after the exclusions.
    `more_than`: the limits, in records and in percent of all DiSCO records. Of ties, the first level counts.
    """
    records, share = more_than
    disclosed = int(DiSCO_t.sums.sum())
    first = int(DiSCO_t.sums.argmax()) if disclosed else 0
    most = int(DiSCO_t.sums[first]) if disclosed else 0
    if not (most > records and 100 * most > share * disclosed):
        return []
    level = int(DiSCO_t.groups[first])
    level_records = int(original_t.sums.sum())
    return [
        OneWay(
            level=level,
            level_records=level_records,
            pct_level_all=percent(int(original_t.sums[original_t.groups == level].sum()), level_records),
            total_disclosive=disclosed,
            n_level_disclosive=most,
            pct_level_disclosive=percent(most, disclosed),
        )
    ]


def two_way(
    large_pairs: Sequence[Grouped], pairs_of_key: Sequence[Grouped], targets: int, more_than: float
) -> dict[str, npt.NDArray[Any]]:
    """Return the pairs of a key level and a target level that account for large DiSCO cells. [R section 4].

    A pair is flagged if more than `more_than` percent of the GT records with the key level have the target
    level. Returns the columns of `TwoWay` with one entry per flag, in descending order of npairs.

    Args:
        large_pairs: For each key k, the GT records of large DiSCO cells after the exclusions, by level of k *
            `targets` + target level.
        pairs_of_key: The same for all GT records, before the exclusions.
        targets: Number of target levels.
        more_than: Limit in percent.

    >>> pairs = Grouped(np.array([0, 1, 2]), np.array([9, 1, 5]))
    >>> flags = two_way([Grouped(np.array([0, 2]), np.array([3, 5]))], [pairs], 2, 50)
    >>> [flags[name].tolist() for name in ("key_level", "npairs", "pct_target_key_level")]
    [[1, 0], [5, 3], [100.0, 90.0]]
    """
    flags = []
    for k, (npairs, records) in enumerate(zip(large_pairs, pairs_of_key, strict=True)):
        key_total = Grouped.sum_by_group(records.groups // targets, records.sums)
        level, t = np.divmod(npairs.groups, targets)
        part = records.sums[np.searchsorted(records.groups, npairs.groups)]
        whole = key_total.sums[np.searchsorted(key_total.groups, level)]
        pairs = np.array([t, np.full(len(t), k), level, npairs.sums, part, whole])
        flags.append(pairs[:, 100 * part > more_than * whole])
    t, key, level, number, part, whole = np.concatenate(flags, axis=1)
    order = np.lexsort((level, t, key, -number))
    columns = (t, key, level, number, part, whole, 100 * part / whole)  # integers below 2^53: rounded once
    return {field.name: column[order] for field, column in zip(fields(TwoWay), columns, strict=True)}


def find_large_cells(f: FrequencyTable, exclusions: CodedExclusions, more_than: float) -> IntArray:
    """Return the positions of the DiSCO cells of more GT records than that, after the exclusions."""
    large = (f.d > more_than) & is_only_level(f.s, f.s_q)
    return np.flatnonzero(large & mark_remaining(f, f.d, exclusions) if exclusions else large)


def sum_by_pair(key_levels: IntArray, t: IntArray, d: IntArray, targets: int) -> tuple[Grouped, ...]:
    """Add up `d` for each key by key level * targets + target level (shape of key_levels: keys, cells)."""
    return tuple(Grouped.sum_by_group(levels * targets + t, d) for levels in key_levels)


STEPS = ("target_levels", "missing_target", "missing_key", "pairs", "count_over")
_MISSING_KEY, _PAIRS = 1 + STEPS.index("missing_key"), 1 + STEPS.index("pairs")


@dataclass(frozen=True)
class CodedExclusions:
    """The exclusions of one target, as codes. [R section 5].

    `missing_keys` lists (key, its code for missing), `pairs` lists (key, key level, target level). Cells of
    more than `count_over` records are excluded from each table by that table's own count.
    """

    target_levels: Sequence[int] = ()
    missing_target: int | None = None
    missing_keys: Sequence[tuple[int, int]] = ()
    pairs: Sequence[tuple[int, int, int]] = ()
    count_over: int | None = None

    def __bool__(self) -> bool:
        """Return whether anything is excluded."""
        return bool(
            self.target_levels
            or self.missing_target is not None
            or self.missing_keys
            or self.pairs
            or self.count_over is not None
        )


def exclude(f: FrequencyTable, exclusions: CodedExclusions) -> tuple[IntArray, IntArray]:
    """Return the GT and the SD records of each cell that the exclusions leave.

    `f.excluded` says which cells are excluded for the levels of their keys (`find_excluded`).
    """
    return (
        np.where(mark_remaining(f, f.d, exclusions), f.d, 0),
        np.where(mark_remaining(f, f.s, exclusions), f.s, 0),
    )


def count_taken_out(
    f: FrequencyTable, exclusions: CodedExclusions, tables: Mapping[str, IntArray]
) -> IntArray:
    """Count the records that each of `STEPS` takes out of tables (shape: tables, steps).

    `tables`: the records in each cell. A record is counted by the first step that excludes it.
    """
    masks, limit, taken_out = _exclusion_masks(f, exclusions), exclusions.count_over, []
    for records in tables.values():
        is_over = records > limit if limit is not None else np.zeros(len(records), dtype=bool)
        rest, counts = records, []
        for mask in (*masks.values(), is_over):
            counts.append(f.total(rest, mask))
            rest = np.where(mask, 0, rest)
        taken_out.append(counts)
    return np.array(taken_out)


def find_excluded(exclusions: CodedExclusions, t: IntArray, level_of: Callable[[int], IntArray]) -> IntArray:
    """Return `FrequencyTable.excluded` of cells, or records; `level_of(k)`: their levels of key k."""
    excluded = np.zeros(len(t), dtype=np.int64)
    for k, key_level, target_level in exclusions.pairs:
        excluded[(level_of(k) == key_level) & (t == target_level)] = _PAIRS
    for k, missing in exclusions.missing_keys:
        excluded[level_of(k) == missing] = _MISSING_KEY
    return excluded


def mark_remaining(f: FrequencyTable, records: IntArray, exclusions: CodedExclusions) -> Mask:
    """Mark the cells whose `records` the exclusions leave."""
    left: Mask = ~np.any([*_exclusion_masks(f, exclusions).values()], axis=0)
    return left if exclusions.count_over is None else left & (records <= exclusions.count_over)


def _exclusion_masks(f: FrequencyTable, exclusions: CodedExclusions) -> dict[str, Mask]:
    """Mark the cells that each of the first four steps excludes."""
    missing_target = -1 if exclusions.missing_target is None else exclusions.missing_target
    excluded = np.broadcast_to(f.excluded, f.t.shape)
    return {
        "target_levels": np.isin(f.t, list(exclusions.target_levels)),
        "missing_target": f.t == missing_target,
        "missing_key": excluded == _MISSING_KEY,
        "pairs": excluded == _PAIRS,
    }


_LOOKED_AT = "confidential records of the sample"

CONTROL_IDENTITY: dict[str, Words] = {
    "copy_UiO": Words.neutral(
        "control: unique in the confidential table",
        "This many of the sampled people are the only ones with their keys, counted without the engine.",
        denominator=_LOOKED_AT,
    ),
    "copy_repU": Words(
        "control: replicated uniques of a copy",
        "In an exact copy the engine must find everybody who is the only one with their keys.",
        denominator=_LOOKED_AT,
        high_is="safe",
        finding="the engine finds only {value} of the people in an exact copy: its figures cannot be trusted",
    ),
}

CONTROL_ATTRIBUTE: dict[str, Words] = {
    "copy_Dorig": Words.neutral(
        "control: disclosive in the confidential table",
        "The confidential table itself discloses this many sampled people, counted without the engine.",
        denominator=_LOOKED_AT,
    ),
    "copy_DiSCO": Words(
        "control: DiSCO of a copy",
        "In an exact copy the engine must find everybody whom the confidential table discloses.",
        denominator=_LOOKED_AT,
        high_is="safe",
        finding="the engine finds only {value} of the people in an exact copy: its figures cannot be trusted",
    ),
    "copy_difference": Words(
        "control: largest difference",
        "The largest difference between the engine's figures of a copy and independent counts; it must be 0.",
        POINTS,
        finding="a figure of an exact copy is off by {value}: the engine's figures cannot be trusted",
    ),
    "permuted_DCAP": Words.neutral(
        "control: DCAP of a shuffled target",
        "How often a guess is right once the synthetic target is shuffled, as the engine measures it.",
        denominator=_LOOKED_AT,
    ),
    "permuted_DCAP_expected": Words.neutral(
        "control: DCAP of a shuffled target, expected",
        "How often a guess is right once the synthetic target is shuffled, counted without the engine.",
        denominator=_LOOKED_AT,
    ),
    "permuted_deviation": Words(
        "control: deviation of a shuffled target",
        "How far the engine is from chance where the keys tell nothing.",
        "standard errors",
        finding="the engine is {value} off what chance gives: its figures cannot be trusted",
    ),
    "half_DiSCO_beyond": Words.neutral(
        "control: DiSCO_beyond of one half",
        "What one half of the confidential table tells about the other, beyond other people's records.",
        POINTS,
    ),
    "half_deviation": Words(
        "control: deviation of one half",
        "How much more one half of the confidential table, a fresh sample, seems to tell than others do.",
        "standard errors",
        finding="a fresh sample seems to tell {value} more than others do: the figures cannot be trusted",
    ),
}

# The frames that the dossier's appendix shows whole.
_APPENDIX: tuple[tuple[str, Question, About, Mapping[str, Words]], ...] = (
    ("one_way", "learned", "target", words_of_fields(OneWay)),
    ("two_way", "learned", "target", words_of_fields(TwoWay)),
    ("control_identity", "trusted", "", CONTROL_IDENTITY),
    ("control_attribute", "trusted", "target", CONTROL_ATTRIBUTE),
)

FIGURES = (
    Figure(
        "excluded",
        Words(
            "left out of the measures",
            "The gate's exclusions leave this many people out of the measures of this target.",
            finding="{value} of the people are left out of the measures of {column}",
        ),
        Place("doubts", value="excluded"),
        "trusted",
        about="target",
        is_doubt=True,
        public="share",
    ),
    Figure(
        "warnings",
        Words(
            "warnings about the tables",
            "This many warnings say that the two tables may not be coded alike, or that a synthetic table "
            "has real values of a column like an identifier.",
            COUNT,
            finding="warnings that the tables may not be comparable: {value}",
        ),
        Place("warning_counts", value="warnings"),
        "trusted",
        is_stacked=False,
        default=Default("at_most", 0, ""),
        public="exact",
    ),
    Figure(
        "controls",
        Words(
            "controls of the measurement that fail",
            "An exact copy of the confidential table must show all that it discloses, a table with "
            "shuffled targets no more than chance gives, and one half of the confidential table no more "
            "about the other than other people's records do. This many of these controls fail: then no "
            "figure can be trusted.",
            COUNT,
            finding="checks of the measurement itself that fail: {value}",
        ),
        Place("control_identity"),
        "trusted",
        is_stacked=False,
        is_doubt=True,
        default=Default("at_most", 0, ""),
    ),
    *(
        show_column(name, frame, words, question, about)
        for frame, question, about, words in _APPENDIX
        for name in words
        if name not in GROUPS.get(frame, ())
    ),
)
