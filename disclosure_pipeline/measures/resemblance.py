"""Resemblance of GT and SD: distances, renamed levels, renumbered values, missing and shared values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.entry import Default, Figure, Place
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, percent
from disclosure_pipeline.measures.words import (
    BY_FRESH_SAMPLE,
    BY_SYNTHETIC,
    COUNT,
    NONE,
    PMSE,
    POINTS,
    SHARE,
    Words,
    described,
    figure,
    neutral,
    standard_error_of,
    words_of_fields,
)

_DISTANCE = Words.neutral(
    "total variation distance",
    "The share of records that would have to change for both tables to have the same frequencies.",
    SHARE,
    source="total variation distance",
    finding="{value} of the records would have to change for both tables to have the same frequencies",
    beside=BY_SYNTHETIC,
)
_EXPECTED = Words.neutral(
    "total variation distance of a fresh sample",
    "The distance that a fresh sample of the same people would have by chance.",
    SHARE,
    beside=BY_FRESH_SAMPLE,
)
_ERROR = standard_error_of("TVD", SHARE)


@dataclass(frozen=True)
class Resemblance:
    """TVD, TVD_expected and TVD_se are shares of 1; low values mean similar tables.

    TVD: total variation distance. TVD_expected: approximately that of a fresh sample of SD's size.
    pMSE: mean squared error of a propensity score by cell. S_pMSE: its ratio to the expected pMSE of an SD
    drawn from GT's own frequencies, for df + 1 cells. S_pMSE_expected: that of a fresh sample of the
    population, 1 + N_s / N_d. With a single cell, df and pMSE are 0 and S_pMSE equals S_pMSE_expected.
    """

    TVD: float = described(_DISTANCE)
    TVD_expected: float = described(_EXPECTED)
    TVD_se: float = described(_ERROR)
    pMSE: float = neutral(
        "propensity mean squared error",
        "How well these columns distinguish the two tables; 0 if they do not.",
        NONE,
        source=PMSE,
    )
    df: int = neutral(
        "degrees of freedom", "The number of values, or pairs of them, less one.", COUNT, source=PMSE
    )
    S_pMSE: float = neutral(
        "propensity mean squared error, standardised",
        "How well the columns distinguish the tables, relative to chance: about two for a fresh sample; "
        "below ten is useful.",
        NONE,
        source=PMSE,
    )
    S_pMSE_expected: float = neutral(
        "standardised error of a fresh sample", "The same for a fresh sample of the same people.", NONE
    )


def resemblance(o: IntArray, s: IntArray) -> Resemblance:
    """Compute from the counts of all cells; neither table may be empty.

    Sources: Snoke, Raab, Nowok, Dibben & Slavkovic 2018, "General and specific utility measures for synthetic
    data"; Raab, Nowok & Dibben 2021, "Assessing, visualizing and improving the utility of synthetic data"
    (VW: Voas & Williamson 2001).
    """
    occupied = np.flatnonzero((o > 0) | (s > 0))
    o, s = o[occupied].astype(np.float64), s[occupied].astype(np.float64)
    n1, n2 = o.sum(), s.sum()
    c = n2 / (n1 + n2)
    df = len(occupied) - 1
    expected = 1 + n2 / n1
    VW = math.fsum((s - o * c / (1 - c)) ** 2 / (c * (o + s)))
    return Resemblance(
        TVD=distance(o, s),
        TVD_expected=expected_distance(o / n1, n1, n2),
        TVD_se=error_of_distance(o, s),
        pMSE=VW * c * (1 - c) ** 2 / (n1 + n2),
        df=df,
        S_pMSE=VW / df if df else expected,
        S_pMSE_expected=expected,
    )


def distance(o: IntArray | np.ndarray, s: IntArray | np.ndarray) -> float:
    """Return the total variation distance of two tables of counts."""
    return math.fsum(np.abs(o / o.sum() - s / s.sum())) / 2


def distance_relabelled(o: IntArray, s: IntArray) -> float:
    """Return the distance after matching levels by frequency, the most frequent with the most frequent.

    If this is small and `distance` large, levels may only have been renamed.
    """
    return distance(np.sort(o), np.sort(s))


def expected_distance(p: np.ndarray, n1: float, n2: float) -> float:
    """Return the expected distance of two samples from cells of probability p, by the mean of |normal|."""
    return math.fsum(np.sqrt(2 / math.pi * p * (1 - p) * (1 / n1 + 1 / n2))) / 2


def error_of_distance(o: np.ndarray, s: np.ndarray) -> float:
    """Return the standard error of the distance of two tables of counts, at least one record.

    The distance is the difference of two binomial shares: of the records whose level is more frequent in SD.
    Between samples of the same people, whose differences have random signs, the distance varies less.
    """
    n1, n2 = float(o.sum()), float(s.sum())
    more = s * n1 > o * n2
    p, q = float(o[more].sum()) / n1, float(s[more].sum()) / n2
    return max(math.sqrt(p * (1 - p) / n1 + q * (1 - q) / n2), 1 / min(n1, n2))


_MATCHED_SHARE = 0.5


@dataclass(frozen=True)
class Relabelling:
    """Shares of 1. TVD, TVD_expected, TVD_se: see `Resemblance`.

    TVD_relabelled: the distance after matching levels by frequency, and missing with missing.
    looks_renamed: TVD minus the expected one (increased for levels of one GT record) if matching reduces TVD
    to less than half; otherwise 0.
    """

    TVD: float = described(_DISTANCE)
    TVD_expected: float = described(_EXPECTED)
    TVD_se: float = described(_ERROR)
    TVD_relabelled: float = neutral(
        "total variation distance by frequency alone",
        "The distance after matching values by frequency: small if values were only renamed.",
        SHARE,
    )
    looks_renamed: float = figure(
        "looks renamed",
        "The distance of the values from those of the confidential table, if matching by frequency brings "
        "them close; otherwise 0.",
        SHARE,
    )


def relabelling(o: IntArray, s: IntArray) -> Relabelling:
    """Compute from the GT and SD records with each level, missing last; neither table may be empty."""
    apart = resemblance(o, s)
    relabelled = distance(_by_frequency(o), _by_frequency(s))
    # A fresh sample has other levels instead of those of one GT record (Good 1953). The distance of such
    # records is 1, but `expected_distance`, which knows only GT's levels, gives them 1 / sqrt(pi).
    lone = float((o[:-1] == 1).sum() / o.sum()) * (1 - 1 / math.sqrt(math.pi))
    beyond = max(0.0, apart.TVD - apart.TVD_expected - lone)
    renamed = beyond if relabelled < _MATCHED_SHARE * apart.TVD else 0.0
    return Relabelling(apart.TVD, apart.TVD_expected, apart.TVD_se, relabelled, renamed)


def _by_frequency(counts: IntArray) -> IntArray:
    return np.append(np.sort(counts[:-1]), counts[-1])


def missing_beyond(o: IntArray, s: IntArray) -> float:
    """Return the percentage of SD records without a value in a column minus that of GT records.

    `o`, `s`: the GT and SD records with each level, missing last; neither table may be empty.

    >>> import numpy as np
    >>> missing_beyond(np.array([6, 3, 1]), np.array([2, 2, 4]))
    40.0
    """
    return 100 * (float(s[-1] / s.sum()) - float(o[-1] / o.sum()))


@dataclass(frozen=True)
class Overlap:
    """Percent of GT records whose value occurs in SD, and of SD records whose value occurs in GT."""

    GT_in_SD: float = neutral(
        "confidential values found in the synthetic table",
        "Confidential records whose value occurs in the synthetic table.",
        denominator="confidential records with a value",
    )
    SD_in_GT: float = neutral(
        "synthetic values found in the confidential table",
        "Synthetic records whose value occurs in the confidential table.",
        denominator="synthetic records with a value",
    )


def overlap(d: IntArray, s: IntArray) -> Overlap:
    """Compute from the GT and SD records with each value of a column, or of the whole key.

    NaN for a table without records.
    """
    return Overlap(
        GT_in_SD=percent(d[s > 0].sum(), d.sum()),
        SD_in_GT=percent(s[d > 0].sum(), s.sum()),
    )


def overlap_within(d: IntArray, s: IntArray, band: Band) -> Overlap:
    """Compute `overlap` for amounts: GT's that have one of SD in their band, and SD's that lie in one of GT.

    `d`, `s`: the GT and SD records with each value, without missing.
    """
    by_place = band.order[:-1]
    low, high, d, s = band.low[:-1], band.high[:-1], d[by_place], s[by_place]
    below = np.append(0, np.cumsum(s))
    ends = np.zeros(len(s) + 1, dtype=np.int64)
    np.add.at(ends, low[d > 0], 1)
    np.add.at(ends, high[d > 0], -1)
    return Overlap(
        GT_in_SD=percent(d[below[high] > below[low]].sum(), d.sum()),
        SD_in_GT=percent(s[np.cumsum(ends)[:-1] > 0].sum(), s.sum()),
    )


@dataclass(frozen=True)
class SharedCounts:
    """The number of GT records whose value occurs in SD, and of SD records whose value occurs in GT."""

    GT_in_SD: int
    SD_in_GT: int


def count_shared(d: IntArray, s: IntArray) -> SharedCounts:
    """Count from the GT and SD records with each value of a column, or of the whole key."""
    return SharedCounts(int((d * (s > 0)).sum()), int((s * (d > 0)).sum()))


RANK_GROUPS = 20
"""Number of groups into which numbers are put by rank."""

_HEAP = 0.1
_SCALED, _MOVED = 0.1, 0.4


@dataclass(frozen=True)
class JointTables:
    """The records of GT and SD by group of a numeric column and level of another column.

    `d`, `s`: grouped by the ranks within each table. `s_as_is`: SD grouped by GT's ranks.
    """

    d: Floats
    s: Floats
    s_as_is: Floats


@dataclass(frozen=True)
class RankGroups:
    """Groups of equal size by rank; a number whose ranks span several groups is divided among them.

    row: for each number its group, or a row of its own after the groups if it spans several.
    shares: the share of each row in each group (shape: groups, rows).
    """

    row: IntArray
    shares: Floats

    @classmethod
    def from_counts(cls, counts: IntArray) -> RankGroups:
        """Group from the records with each of the ordered numbers.

        >>> groups = RankGroups.from_counts(np.array([1] * 18 + [2]))
        >>> groups.row[-3:].tolist(), groups.shares[-2:, -1].tolist()
        ([16, 17, 20], [0.5, 0.5])
        """
        ends = np.cumsum(counts) * RANK_GROUPS
        starts, total = ends - counts * RANK_GROUPS, max(int(ends[-1]) // RANK_GROUPS, 1)
        row = np.minimum(starts // total, RANK_GROUPS - 1)
        shared = np.flatnonzero((counts > 0) & (ends > (row + 1) * total))
        row[shared] = RANK_GROUPS + np.arange(len(shared))
        lower = np.arange(RANK_GROUPS)[:, np.newaxis] * total
        overlaps = np.minimum(ends[shared], lower + total) - np.maximum(starts[shared], lower)
        dealt = np.maximum(overlaps, 0) / (ends[shared] - starts[shared])
        return cls(row, np.hstack((np.eye(RANK_GROUPS), dealt)))

    def add_up(self, rows: IntArray) -> Floats:
        """Return the records in each group, from those in each row (shape: rows, levels)."""
        return np.asarray(self.shares @ rows)


def find_heaps(d: IntArray, s: IntArray) -> Mask:
    """Mark the numbers that at least a tenth of the records of a table have, and missing, which is last.

    Most of these are codes, which a renumbering does not move with the others.
    """
    heaps: Mask = (d >= _HEAP * d.sum()) | (s >= _HEAP * s.sum())
    heaps[-1] = True
    return heaps


def looks_renumbered(tables: Sequence[JointTables]) -> float:
    """Return the largest TVD of the numbers joint with another column if a map makes it small; otherwise 0.

    Each distance is TVD minus that of a fresh sample. The effect of a map is its average over the columns,
    weighted by their dependence on the number in GT. Using ranks counts as such a map if it reduces the
    average to a tenth: that reveals scaled numbers, while a bad synthesizer's distribution improves less.
    Reversing the groups, or shifting them cyclically, must reduce it to two fifths of what ranks give.
    """
    groups = np.arange(RANK_GROUPS)
    maps = [(turned + shift) % RANK_GROUPS for turned in (groups, groups[::-1]) for shift in groups]
    as_is, largest, mapped = 0.0, 0.0, np.zeros(len(maps))
    for joint in tables:
        d, N_d, N_s = joint.d.ravel(), float(joint.d.sum()), float(joint.s.sum())
        apart = np.outer(joint.d.sum(axis=1), joint.d.sum(axis=0)).ravel()
        dependence = distance(d, apart) - expected_distance(d / N_d, N_d, math.inf)
        if dependence <= 0:
            continue
        expected = expected_distance(d / N_d, N_d, N_s)
        beyond = distance(d, joint.s_as_is.ravel()) - expected
        as_is += dependence * beyond
        largest = max(largest, beyond)
        in_GT, in_SD = joint.d / N_d, joint.s / N_s
        of_maps = np.array([np.abs(in_GT - in_SD[order]).sum() / 2 for order in maps])
        mapped += dependence * (of_maps - expected)
    by_rank, best = (max(beyond, 0.0) for beyond in (mapped[0], mapped[1:].min()))
    return largest if by_rank < _SCALED * as_is or best < _MOVED * by_rank else 0.0


@dataclass(frozen=True)
class LeastShared:
    """The least percent of records of either table whose value must occur in the other one.

    Smaller shares of a key, of all keys together or of a target are a doubt, and in a gate, whose policy can
    change them, a broken clause.
    """

    key: float = 80
    whole_key: float = 5
    target: float = 50


LEAST_SHARED = LeastShared()

_KEY_OVERLAP = Words(
    "shared values of a key",
    "The share of records whose value occurs in the other table, for the table where it is smaller. If it is "
    "low, the tables may be coded differently, and every risk reads too low.",
    denominator="records with a value",
    high_is="safe",
    finding="{value} of the records share their {column} with the other table",
)

_WORDS = words_of_fields(Relabelling)

FIGURES = (
    Figure(
        "relabelled",
        Words(
            "values that look renamed",
            "How far the values of a column are from the confidential table's although their frequencies "
            "match: then comparing values means nothing.",
            SHARE,
            finding="renaming its values would bring a column nearer to the confidential one by {value}",
        ),
        Place("guards", value="relabelled", beyond_chance="relabelled_beyond_chance"),
        "trusted",
        statistics=("at_most",),
        largest=1,
        is_doubt=True,
        meaning="the values of a column look renamed, so that comparing them means nothing",
        by_column="columns_apart.looks_renamed_beyond_chance",
        default=Default(
            "at_most",
            0.15,
            "Share of 1: how much farther than a fresh sample a category may be from GT if matching its "
            "levels by frequency brings it near; or a number or date, beside other columns, if reversing, "
            "shifting or scaling does. Beyond this, a candidate cannot be judged",
            below=1,
        ),
        public="unit",
    ),
    Figure(
        "missing",
        Words(
            "missing values beyond those of the confidential table",
            "This many more of the synthetic than of the confidential records have no value in the column "
            "that differs most: the rest of such a record may be true, and the record still equals none.",
            POINTS,
            finding="{more} synthetic records in 100 lack a value of the column than in the confidential "
            "table",
        ),
        Place("guards", value="missing_beyond", beyond_chance="missing_beyond_chance"),
        "trusted",
        statistics=("at_most",),
        is_doubt=True,
        meaning="values of a column are missing that the ground truth has",
        by_column="columns_apart.missing_beyond_chance",
        default=Default(
            "at_most",
            20,
            "Percentage points by which more SD than GT records may lack the value of a column. Beyond this, "
            "a candidate cannot be judged",
        ),
        public="unit",
    ),
    Figure(
        "key_overlap",
        _KEY_OVERLAP,
        Place("key_overlap", value=("GT_in_SD", "SD_in_GT")),
        "trusted",
        about="key",
        by_column="key_overlap.SD_in_GT",
        statistics=("at_least",),
        is_stacked=False,
        default=Default(
            "at_least",
            LEAST_SHARED.key,
            "Percent of GT records, and of SD records, whose value of a key column must occur in the other "
            "table; with less, the tables cannot be compared",
            below=101,
        ),
        public="unit",
    ),
    Figure(
        "whole_key_overlap",
        replace(
            _KEY_OVERLAP,
            title="shared combinations of keys",
            finding="{value} of the records share their combination of keys with the other table",
        ),
        Place("key_overlap", value=("GT_in_SD", "SD_in_GT")),
        "trusted",
        statistics=("at_least",),
        is_stacked=False,
        default=Default(
            "at_least",
            LEAST_SHARED.whole_key,
            "The same for the combination of all keys. Lower it for keys by which nearly everyone is unique",
            below=101,
        ),
        public="unit",
    ),
    Figure(
        "target_overlap",
        replace(_KEY_OVERLAP, title="shared values of a target"),
        Place("target_overlap", value=("GT_in_SD", "SD_in_GT")),
        "trusted",
        about="target",
        by_column="target_overlap.SD_in_GT",
        statistics=("at_least",),
        is_stacked=False,
        default=Default(
            "at_least",
            LEAST_SHARED.target,
            "The same for each target, after grouping. Values of SD that GT does not have disclose nothing, "
            "so their figures would look safe",
            below=101,
        ),
        public="unit",
    ),
    Figure(
        "TVD",
        _WORDS["TVD"],
        Place("columns_apart", value="TVD", others="TVD_expected"),
        "trusted",
        about="column",
        is_stacked=False,
        public="unit",
    ),
)
