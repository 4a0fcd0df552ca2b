"""Figures for those who may not see them exactly: rounded so that they tell of no single record.

Whoever delivers a candidate, or gets a release, reads of each clause its outcome, and the figure rounded to
so many records as the policy's `smallest_count`. The exact figures are for custodians.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from disclosure_pipeline.measures.words import COUNT, PERCENT, POINTS, RECORDS, SHARE, Words
from disclosure_pipeline.policy.registry import JUDGED

# Of a step: an end of an interval, which is rounded as a float, belongs to that interval.
_NOISE = 1e-9


def has_public_value(measure: str, share_of: str | None) -> bool:
    """Return whether a clause's figure can be rounded to records; a relative bound would tell GT's own risk.

    >>> has_public_value("DiSCO", None), has_public_value("DiSCO", "Dorig"), has_public_value("TCAP", None)
    (True, False, False)
    """
    entry = JUDGED.get(measure)
    return share_of is None and entry is not None and entry.published in {"share", "records"}


def round_records(records: int, smallest_count: int) -> int:
    """A number of records as it may be told: rounded down to a multiple of the smallest count, at least one.

    >>> round_records(1234, 10), round_records(7, 10)
    (1230, 10)
    """
    return max(smallest_count, records - records % smallest_count)


def round_figure(
    value: float, step: float, limits: Collection[float], *, highest: float = math.inf, at_least: bool = False
) -> float:
    """Return a figure as it may be told: the end of the interval that it lies in, never on the safer side.

    The intervals have at least the width `step`, so much as `smallest_count` records are. The `limits` that
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
    """The upper end of an interval: below a limit counted down from it, above the last one counted up."""
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
    """Return the smallest of GT's (first, told rounded) and each synthetic table's number of records."""
    in_GT, *in_SD = records
    return max(1, min(round_records(in_GT, smallest_count), *in_SD))


def step_of_share(fewest: int, smallest_count: int, whole: float = 100.0) -> float:
    """The share of `whole` that the smallest count of so many records is; all of it where they are fewer.

    >>> step_of_share(1230, 10, 123.0), step_of_share(7, 10)
    (1.0, 100.0)
    """
    return min(whole, whole * smallest_count / fewest)


def round_share(value: float, records: int, smallest_count: int) -> float:
    """Return a percentage of a group of so many records as it may be told, never on the safer side.

    >>> round_share(12.0, 153, 10), round_share(0.0, 153, 10)
    (13.333333333333334, 6.666666666666667)
    """
    step = step_of_share(round_records(records, smallest_count), smallest_count)
    return round_figure(value, step, (), highest=100.0)


def round_by_unit(
    value: float, words: Words, fewest: int, smallest_count: int, limits: Collection[float] = ()
) -> float:
    """Round a figure as it may be told, by its unit; one that counts no people stays as it is.

    Shares and numbers of records are rounded as `round_figure` does; what is less than nothing, in
    percentage points, towards nothing; what has no share, to one digit.

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
