"""The figures that a policy can bound, read from the result's frames and rounded for publication.

Whoever delivers a candidate, or gets a release, reads of each clause its outcome, and the figure rounded to
the policy's `smallest_count` records. The exact figures are for custodians.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.evaluation.catalogue import CATALOGUE
from disclosure_pipeline.evaluation.catalogue_entry import STRICTLY, Measure, Role
from disclosure_pipeline.evaluation.resemblance import WHOLE_KEY
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.words import COUNT, PERCENT, POINTS, RECORDS, SHARE, Words


def _list_judged(*roles: Role) -> dict[str, Measure]:
    return {entry.name: entry for entry in CATALOGUE if entry.role in roles}


# All that a clause can be about.
JUDGED = {entry.name: entry for entry in CATALOGUE if entry.role is not None}
MEASURES = _list_judged("bound")
# The same bounds without leave for chance.
STRICT = _list_judged("strict")
# The figures of the controls, and the number of warnings. Their bounds are fixed: a policy cannot set them.
CONTROLS = _list_judged("control")
# Figures that say whether the others mean anything. Where one is not within its bound, nothing is determined.
DOUBTS = _list_judged("doubt")
# Bounded in every gate: each figure as far as it goes beyond chance (`measures.chance`).
GUARDS = _list_judged("guard")

# The guards that every further confidential table has, too: in the frame `confidential`, index (confidential,
# synthesis), by the same columns.
OF_CONFIDENTIAL = tuple(entry.name for entry in CATALOGUE if entry.of_confidential)
CONFIDENTIAL = "confidential"

# The bound `beyond` of a measure is on the smaller of two figures, so that it is broken where both exceed it.
# Neither what other people's records show nor what chance gives is a disclosure by SD.
BEYOND_BOTH = {"DiSCO": "DiSCO_beyond_both"}
WITH_CHANCE = frozenset(name.removesuffix(STRICTLY) for name in STRICT)
SMALLER_OF = {entry.name: entry.smaller_of for entry in CATALOGUE if entry.smaller_of}

# The bounds that keep the duty to bound identity disclosure.
OF_IDENTITY = ("repU", "unique_hits_beyond")

# The frame of what is told of an amount to within a band, and the bounds that keep the duty to bound that.
BANDS = "bands"
BAND_FIGURES = ("DiSCO_within", "DiSCO_within_beyond")

# A relative bound compares a measure with the same risk without any synthesis.
ORIGINALS = {entry.name: entry.original for entry in CATALOGUE if entry.original is not None}


def find_measure(name: str) -> Measure | None:
    """Return a measure that a policy bounds, a guard or a doubt; None where it is none of these."""
    return MEASURES.get(name) or STRICT.get(name) or GUARDS.get(name) or DOUBTS.get(name)


def values(result: Disclosure, measure: str, column: str | None) -> Sequence[float]:
    """Return the figure for each synthesis, in their order; empty where the result does not have it.

    What `result.stacked` says of all syntheses as one table is asked of that.

    For key_overlap and target_overlap, the smaller of the two shares of that column; for those of SMALLER_OF
    the smaller of two figures.
    """
    entry = find_entry(measure, len(result.N_s))
    if entry.role == "check":
        return _flags(result, entry.frame, column)
    if measure == "key_overlap":
        return smallest_overlap(result.key_overlap, column)
    if entry.role == "overlap":
        return _smallest(result.frame(entry.frame), "target", column)
    if entry.smaller_of:
        columns = [JUDGED[name].column for name in entry.smaller_of]
        return _smallest(result.frame(entry.frame), "target", column, columns)
    against_confidential = measure in OF_CONFIDENTIAL and column is not None
    frame = result.frame(CONFIDENTIAL if against_confidential else entry.frame)
    if entry.column not in frame.columns:
        return []
    figures = frame[entry.column]  # the one column first: frames are slow to filter
    if column is not None:
        level = CONFIDENTIAL if against_confidential else "target"
        figures = figures[frame.index.get_level_values(level) == column]
    return _figure_per_synthesis(figures)


def find_entry(measure: str, files: int) -> Measure:
    """Return the entry of what stands for a measure in a candidate of so many files: see `of_one_file`."""
    entry = JUDGED[measure]
    return JUDGED[entry.of_one_file] if entry.of_one_file and files == 1 else entry


def smallest_overlap(key_overlap: pd.DataFrame, key: str | None) -> Sequence[float]:
    """Return the smaller of GT_in_SD and SD_in_GT of a key (None: of the whole key) for each synthesis.

    NaN where either is.
    """
    return _smallest(key_overlap, "key", WHOLE_KEY if key is None else key)


def _smallest(
    frame: pd.DataFrame, level: str, column: str | None, names: Sequence[str] = ("GT_in_SD", "SD_in_GT")
) -> Sequence[float]:
    if level not in frame.index.names:
        return []
    rows = frame[frame.index.get_level_values(level) == column]
    shares = rows.reindex(columns=list(names)).to_numpy(dtype=float)
    smallest = np.where(np.isfinite(shares).all(axis=1), shares.min(axis=1), np.nan)
    return _figure_per_synthesis(pd.Series(smallest, index=rows.index))


def _figure_per_synthesis(figures: pd.Series[Any]) -> Sequence[float]:
    names = figures.index.names
    if "releases" in names:  # the sum of all of them, not as it grew
        figures = figures.tail(1)
    labels = figures.index.get_level_values("synthesis") if "synthesis" in names else figures.index
    if labels.has_duplicates:
        return []  # none of several is the figure of a synthesis, or of them all
    return [float(value) for value in figures]


def _flags(result: Disclosure, check: str, target: str | None) -> Sequence[float]:
    if target not in result.targets:
        return []
    flags = getattr(result, check)
    of_target = flags[flags["target"] == target]
    syntheses = dict.fromkeys(result.identity.index)
    return [float((of_target["synthesis"] == synthesis).sum()) for synthesis in syntheses]


# In steps: the end of an interval, which is rounded as a float, belongs to that interval.
_NOISE = 1e-9


def has_public_value(measure: str, share_of: str | None) -> bool:
    """Return whether a clause's figure can be rounded to records; a relative bound would tell GT's own risk.

    >>> has_public_value("DiSCO", None), has_public_value("DiSCO", "Dorig"), has_public_value("TCAP", None)
    (True, False, False)
    """
    entry = JUDGED.get(measure)
    return share_of is None and entry is not None and entry.published in {"share", "records"}


def round_records(records: int, smallest_count: int) -> int:
    """Round a number of records down to a multiple of the smallest count, at least to one.

    >>> round_records(1234, 10), round_records(7, 10)
    (1230, 10)
    """
    return max(smallest_count, records - records % smallest_count)


def round_figure(
    value: float, step: float, limits: Collection[float], *, highest: float = math.inf, at_least: bool = False
) -> float:
    """Round a figure for publication: to the end of the interval that it lies in, never to the safer side.

    The intervals are at least `step` wide, the share of `smallest_count` records. The `limits` that
    the figure is held against are ends of intervals, so that the outcome tells nothing more than the figure
    does; two limits that are nearer to each other than `step` are the only exception. 0 and `highest` are the
    ends of all; what is below 0 lies in the lowest interval. With `at_least` high figures are safe.

    >>> round_figure(6.1, 2.0, [8.0]), round_figure(8.1, 2.0, [8.0]), round_figure(0.4, 3.0, [8.0])
    (8.0, 10.0, 5.0)
    >>> round_figure(85.0, 4.0, [80.0], highest=100.0, at_least=True)
    84.0
    """
    if at_least:
        return -_round_up(-value, step, [-limit for limit in limits], -highest, 0.0)
    return _round_up(value, step, limits, 0.0, highest)


def _round_up(value: float, step: float, limits: Collection[float], lowest: float, highest: float) -> float:
    """Return the upper end of an interval: counted down from a limit, or up from the last one."""
    upper = min((limit for limit in limits if value <= limit), default=None)
    lower = max((limit for limit in limits if limit < value), default=lowest)
    if upper is None:
        number = max(1, math.ceil((value - lower) / step - _NOISE))
        if math.isinf(highest):
            return lower + number * step
        return highest if number >= math.floor((highest - lower) / step) else lower + number * step
    if math.isinf(lower):
        return upper - math.floor((upper - value) / step + _NOISE) * step
    last = max(0, math.floor((upper - lower) / step) - 1)
    return upper - min(math.floor((upper - value) / step + _NOISE), last) * step


def count_fewest(records: Sequence[int], smallest_count: int) -> int:
    """Return the smallest number of records of GT (first, rounded) and the synthetic tables."""
    in_GT, *in_SD = records
    return max(1, min(round_records(in_GT, smallest_count), *in_SD))


def step_of_share(fewest: int, smallest_count: int, whole: float = 100.0) -> float:
    """Return the smallest count as a share of the records, in units of `whole`; at most all of it.

    >>> step_of_share(1230, 10, 123.0), step_of_share(7, 10)
    (1.0, 100.0)
    """
    return min(whole, whole * smallest_count / fewest)


def round_share(value: float, records: int, smallest_count: int) -> float:
    """Round a percentage of a group of records for publication, never to the safer side.

    >>> round_share(12.0, 153, 10), round_share(0.0, 153, 10)
    (13.333333333333334, 6.666666666666667)
    """
    step = step_of_share(round_records(records, smallest_count), smallest_count)
    return round_figure(value, step, (), highest=100.0)


def round_by_unit(
    value: float, words: Words, fewest: int, smallest_count: int, limits: Collection[float] = ()
) -> float:
    """Round a figure for publication by its unit; one that counts no people stays as it is.

    Shares and numbers of records are rounded as in `round_figure`, negative percentage points towards 0, and
    figures that are no share to one digit.

    >>> round_by_unit(12.0, Words("a", "b"), 150, 10), round_by_unit(-12.0, Words("a", "b", POINTS), 100, 10)
    (13.333333333333334, -10.0)
    """
    safe = words.high_is == "safe"
    if words.unit == COUNT:
        return value
    if words.unit == RECORDS:
        return round_figure(value, float(smallest_count), limits)
    if words.unit in {PERCENT, POINTS, SHARE}:
        whole = 1.0 if words.unit == SHARE else 100.0
        step = step_of_share(fewest, smallest_count, whole)
        if value < 0:
            return -math.floor(-value / step + _NOISE) * step or 0.0
        return round_figure(value, step, limits, highest=whole, at_least=safe)
    return float(f"{value:.1g}")
