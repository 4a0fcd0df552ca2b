"""The figures that a policy can bound: read from a result's frames, and rounded for publication.

Only custodians see exact figures. Whoever delivers a candidate or receives a release sees the outcome of each
clause, and its figure rounded to the policy's `smallest_count` records.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.evaluation.catalogue import CATALOGUE
from disclosure_pipeline.evaluation.catalogue_entry import STRICT_SUFFIX, Measure, Role
from disclosure_pipeline.evaluation.resemblance import WHOLE_KEY
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.words import COUNT, PERCENT, POINTS, RECORDS, SHARE, Words


def _list_judged(*roles: Role) -> dict[str, Measure]:
    return {entry.name: entry for entry in CATALOGUE if entry.role in roles}


# Everything that a clause can bound.
JUDGED = {entry.name: entry for entry in CATALOGUE if entry.role is not None}
MEASURES = _list_judged("bound")
# The same measures without an allowance for chance.
STRICT = _list_judged("strict")
# The figures of the controls, and the number of warnings. A policy cannot change their bounds.
CONTROLS = _list_judged("control")
# Figures that show whether the others mean anything. Beyond its bound, nothing is determined.
DOUBTS = _list_judged("doubt")
# Bounded in every gate: the part of a figure that is beyond chance (`measures.chance`).
GUARDS = _list_judged("guard")

# The guards that also hold for each further confidential table. Their figures are the same columns of the
# frame `confidential`, with the index (confidential, synthesis).
CONFIDENTIAL_GUARDS = tuple(entry.name for entry in CATALOGUE if entry.is_per_confidential_table)
CONFIDENTIAL = "confidential"

# The bound `beyond` is on the smaller of two excesses, over other people's records and over chance: what
# either of them explains is not disclosed by SD.
BEYOND_BOTH = {"DiSCO": "DiSCO_beyond_both"}
WITH_CHANCE = frozenset(name.removesuffix(STRICT_SUFFIX) for name in STRICT)
SMALLER_OF = {entry.name: entry.smaller_of for entry in CATALOGUE if entry.smaller_of}

# Every policy bounds one of these.
IDENTITY_BOUNDS = ("repU", "unique_hits_beyond")

# They follow from a model of the population that often fails (`measures.survey`).
MODELLED = frozenset({"repU_population", "right_identifications", "DiSCO_population"})

# The frames of figures of all releases together; the last row includes the candidate.
OVER_RELEASES = ("over_releases", "released_targets")

# The frame of DiSCO within a band. Every policy bounds one of these for a target with a band.
BANDS = "bands"
BAND_BOUNDS = ("DiSCO_within", "DiSCO_within_beyond")

# GT's own risk, which a relative bound is a share of.
ORIGINALS = {entry.name: entry.original for entry in CATALOGUE if entry.original is not None}


OVERLAPS = {"key_overlap": "key", "target_overlap": "target"}
"""The clauses on shared values, and the level of their frames' index that names the column."""


def find_measure(name: str) -> Measure | None:
    """Return the measure, guard or doubt of that name, or None."""
    return MEASURES.get(name) or STRICT.get(name) or GUARDS.get(name) or DOUBTS.get(name)


def find_figures(result: Disclosure, measure: str, column: str | None) -> Sequence[float]:
    """Return the figure of each synthesis, in order; empty if the result does not have it.

    For key_overlap and target_overlap that is the smaller of the column's two shares, for measures in
    SMALLER_OF the smaller of the two figures. Pass `result.stacked` for all syntheses as one table.
    """
    entry = find_entry(measure, len(result.N_s))
    if entry.role == "check":
        return _flags(result, entry.frame, column)
    if measure == "key_overlap":
        return find_smallest_overlap(result.key_overlap, column)
    if entry.role == "overlap":
        return _smallest(result.frame(entry.frame), "target", column)
    if entry.smaller_of:
        columns = [JUDGED[name].column for name in entry.smaller_of]
        return _smallest(result.frame(entry.frame), "target", column, columns)
    is_confidential = measure in CONFIDENTIAL_GUARDS and column is not None
    frame = result.frame(CONFIDENTIAL if is_confidential else entry.frame)
    if entry.column not in frame.columns:
        return []
    figures = frame[entry.column]  # select the column first: filtering a whole frame is slow
    if column is not None:
        level = CONFIDENTIAL if is_confidential else "target"
        figures = figures[frame.index.get_level_values(level) == column]
    return _figure_per_synthesis(figures)


def find_entry(measure: str, files: int) -> Measure:
    """Return a measure's entry, or that of its `single_file_measure` if the candidate has one file."""
    entry = JUDGED[measure]
    return JUDGED[entry.single_file_measure] if entry.single_file_measure and files == 1 else entry


def find_smallest_overlap(key_overlap: pd.DataFrame, key: str | None) -> Sequence[float]:
    """Return the smaller of GT_in_SD and SD_in_GT of a key (None: the whole key) for each synthesis.

    NaN if either is not finite.
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
    if "releases" in names:  # cumulative: the last row covers all releases
        figures = figures.tail(1)
    labels = figures.index.get_level_values("synthesis") if "synthesis" in names else figures.index
    if labels.has_duplicates:
        return []  # ambiguous
    return [float(value) for value in figures]


def _flags(result: Disclosure, check: str, target: str | None) -> Sequence[float]:
    if target not in result.targets:
        return []
    flags = getattr(result, check)
    of_target = flags[flags["target"] == target]
    syntheses = dict.fromkeys(result.identity.index)
    return [float((of_target["synthesis"] == synthesis).sum()) for synthesis in syntheses]


# Tolerance, in steps: the end of an interval belongs to it despite floating-point error.
_NOISE = 1e-9


def has_public_value(measure: str, share_of: str | None) -> bool:
    """Return whether a clause's figure is published rounded; that of a relative bound would tell GT's risk.

    >>> has_public_value("DiSCO", None), has_public_value("DiSCO", "Dorig"), has_public_value("TCAP", None)
    (True, False, False)
    """
    entry = JUDGED.get(measure)
    return share_of is None and entry is not None and entry.published in {"share", "records"}


def round_records(records: int, smallest_count: int) -> int:
    """Round a number of records down to a multiple of the smallest count, which is the least returned.

    >>> round_records(1234, 10), round_records(7, 10)
    (1230, 10)
    """
    return max(smallest_count, records - records % smallest_count)


def round_figure(
    value: float, step: float, limits: Collection[float], *, highest: float = math.inf, at_least: bool = False
) -> float:
    """Round a figure for publication to the unsafe end of its interval.

    Intervals are at least `step` wide (the share of `smallest_count` records), unless two `limits` are nearer
    to each other. The `limits` that the figure is judged by are ends of intervals, so that the outcome
    reveals no more than the rounded figure; so are 0 and `highest`. A negative figure is in the lowest
    interval. With `at_least` high figures are safe.

    >>> round_figure(6.1, 2.0, [8.0]), round_figure(8.1, 2.0, [8.0]), round_figure(0.4, 3.0, [8.0])
    (8.0, 10.0, 5.0)
    >>> round_figure(85.0, 4.0, [80.0], highest=100.0, at_least=True)
    84.0
    """
    if at_least:
        return 0.0 - _round_up(-value, step, [-limit for limit in limits], -highest, 0.0)
    return _round_up(value, step, limits, 0.0, highest)


def _round_up(value: float, step: float, limits: Collection[float], lowest: float, highest: float) -> float:
    """Return the upper end of the interval, counted down from the next limit, or up from the last one."""
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


def find_fewest_records(records: Sequence[int], smallest_count: int) -> int:
    """Return the number of records of the smallest table; `records` has GT first, which is rounded."""
    in_GT, *in_SD = records
    return max(1, min(round_records(in_GT, smallest_count), *in_SD))


def compute_rounding_step(fewest: int, smallest_count: int, whole: float = 100.0) -> float:
    """Return the step to round a share by: that of the smallest count, at most `whole`.

    >>> compute_rounding_step(1230, 10, 123.0), compute_rounding_step(7, 10)
    (1.0, 100.0)
    """
    return min(whole, whole * smallest_count / fewest)


def round_share(value: float, records: int, smallest_count: int) -> float:
    """Round a percentage of a group of records for publication, to the unsafe side.

    >>> round_share(12.0, 153, 10), round_share(0.0, 153, 10)
    (13.333333333333334, 6.666666666666667)
    """
    step = compute_rounding_step(round_records(records, smallest_count), smallest_count)
    return round_figure(value, step, (), highest=100.0)


def round_by_unit(
    value: float, words: Words, fewest: int, smallest_count: int, limits: Collection[float] = ()
) -> float:
    """Round a figure for publication by its unit.

    Shares and numbers of records are rounded by `round_figure`, negative percentage points towards 0, other
    figures to one digit. A count of anything but people stays exact.

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
        step = compute_rounding_step(fewest, smallest_count, whole)
        if value < 0:
            return -math.floor(-value / step + _NOISE) * step or 0.0
        return round_figure(value, step, limits, highest=whole, at_least=safe)
    return float(f"{value:.1g}")
