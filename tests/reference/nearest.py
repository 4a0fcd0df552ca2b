"""Distances of records, in fractions, and whether SD is nearer than the others: pair by pair."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Row = tuple[object, ...]

STEPS = 65_536  # resolution of values within the range of their middle nine tenths


def mid_rank(value: object, pooled: Sequence[object]) -> Fraction:
    """Return the mean of the positions, from 1, that a value has among all values in order."""
    below = sum(other is not None and other < value for other in pooled)  # type: ignore[operator]
    return below + Fraction(sum(other == value for other in pooled) + 1, 2)


def is_finite(value: object) -> bool:
    return value is not None and math.isfinite(value)  # type: ignore[arg-type]


def quantiles(column: Sequence[object]) -> tuple[Fraction, Fraction]:
    """Return the 5 and 95 % quantiles of the finite values."""
    values = sorted(map(Fraction, filter(is_finite, column)))  # type: ignore[arg-type]
    low, high = (
        next(
            (value for place, value in enumerate(values, start=1) if place >= len(values) * share),
            Fraction(0),
        )
        for share in (Fraction(1, 20), Fraction(19, 20))
    )
    return low, high


def middle_range(pooled: Sequence[object]) -> tuple[Fraction, Fraction]:
    """Return the 5 and 95 % quantiles of the finite values; if equal, the smallest and the largest."""
    low, high = quantiles(pooled)
    if low < high:
        return low, high
    values = list(map(Fraction, filter(is_finite, pooled)))  # type: ignore[arg-type]
    return min(values), max(values)


def column_distance(
    mine: object, theirs: object, pooled: Sequence[object], of_gt: Sequence[object], is_ordered: bool
) -> tuple[Fraction, Fraction, Fraction]:
    """Return the distance in a column by ranks, by values, and whether they disagree.

    By ranks alone where the middle nine tenths of GT have one value.
    """
    if not is_ordered or mine is None or theirs is None:
        differs = Fraction(mine != theirs)
        return differs, differs, differs
    ranks = abs(mid_rank(mine, pooled) - mid_rank(theirs, pooled)) / len(pooled)
    if not (is_finite(mine) and is_finite(theirs)):  # infinitely far from all but itself
        differs = Fraction(mine != theirs)
        return ranks, differs, differs
    low, high = quantiles(of_gt)
    if low == high:
        return ranks, Fraction(0), Fraction(0)
    low, high = middle_range(pooled)
    places = [
        round((Fraction(value) - low) / ((high - low) or 1) * STEPS)  # type: ignore[call-overload]
        for value in (mine, theirs)
    ]
    apart = Fraction(abs(places[0] - places[1]), STEPS)
    return ranks, min(apart, Fraction(1)), Fraction(apart * STEPS > STEPS // 20)


def distances(
    row: Row, other: Row, gt: Sequence[Row], sd: Sequence[Row], ordered: Sequence[bool]
) -> tuple[Fraction, ...]:
    """Return the sums over the columns: by ranks, by values, and the number of columns that disagree."""
    columns = [
        column_distance(
            mine,
            theirs,
            [record[place] for record in (*gt, *sd)],
            [record[place] for record in gt],
            ordered[place],
        )
        for place, (mine, theirs) in enumerate(zip(row, other, strict=True))
    ]
    return tuple(sum(of_kind, start=Fraction(0)) for of_kind in zip(*columns, strict=True))


@dataclass
class Nearness:
    """The share of GT records nearer to SD, and the share much nearer minus that nearer to the others."""

    nearer: Fraction
    much_nearer: Fraction


def nearness(gt: Sequence[Row], sd: Sequence[Row], ordered: Sequence[bool]) -> list[Nearness]:
    """Return the shares by ranks, by values and by columns, for an SD with one record less than GT."""
    assert len(sd) == len(gt) - 1
    kinds = [Nearness(Fraction(0), Fraction(0)) for _ in range(3)]
    for i, person in enumerate(gt):
        others = [record for j, record in enumerate(gt) if j != i]
        to_sd, to_others = (
            [distances(person, record, gt, sd, ordered) for record in table] for table in (sd, others)
        )
        for kind, of_kind in enumerate(kinds):
            sd_distance, other_distance = (min(each[kind] for each in table) for table in (to_sd, to_others))
            is_nearer = sd_distance < other_distance
            of_kind.nearer += Fraction(1, 2) if sd_distance == other_distance else Fraction(is_nearer)
            of_kind.much_nearer += (2 * sd_distance <= other_distance) - (2 * other_distance <= sd_distance)
    return [Nearness(of_kind.nearer / len(gt), of_kind.much_nearer / len(gt)) for of_kind in kinds]
