"""Distances of records, in fractions, and whether SD is nearer than the others: pair by pair."""

from collections.abc import Sequence
from fractions import Fraction

Row = tuple[object, ...]


def mid_rank(value: object, pooled: Sequence[object]) -> Fraction:
    """The mean of the places that a value has among all of them in order; they count from 1."""
    below = sum(other is not None and other < value for other in pooled)  # type: ignore[operator]
    return below + Fraction(sum(other == value for other in pooled) + 1, 2)


def distance(row: Row, other: Row, pooled: Sequence[Row], ordered: Sequence[bool]) -> Fraction:
    """Sum over the columns."""
    total = Fraction(0)
    for place, (mine, theirs) in enumerate(zip(row, other, strict=True)):
        if ordered[place] and mine is not None and theirs is not None:
            values = [record[place] for record in pooled]
            total += abs(mid_rank(mine, values) - mid_rank(theirs, values)) / len(pooled)
        else:
            total += mine != theirs
    return total


def nearer(gt: Sequence[Row], sd: Sequence[Row], ordered: Sequence[bool]) -> Fraction:
    """The share of GT records that are nearer to SD, which has a record less than GT."""
    assert len(sd) == len(gt) - 1
    share = Fraction(0)
    for i, person in enumerate(gt):
        others = [record for j, record in enumerate(gt) if j != i]
        to_sd, to_others = (
            min(distance(person, record, [*gt, *sd], ordered) for record in table) for table in (sd, others)
        )
        share += Fraction(1, 2) if to_sd == to_others else Fraction(to_sd < to_others)
    return share / len(gt)
