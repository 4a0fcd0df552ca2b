"""Figures rounded for publication, to a number of people and never to the safer side.

Only custodians see exact figures. Whoever delivers a candidate or receives a release sees the outcome of each
clause, and its figure rounded to the policy's `smallest_count` records.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from disclosure_pipeline.measures.words import COUNT, PERCENT, POINTS, RECORDS, SHARE, Words

# Tolerance, in steps: the end of an interval belongs to it despite floating-point error.
_NOISE = 1e-9


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
