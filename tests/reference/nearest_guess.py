"""Guessing by the nearest records, person by person and in fractions: slow, obvious and exact."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

Row = tuple[object, ...]


def distance(one: Row, other: Row, ranges: Sequence[Fraction | None]) -> Fraction:
    """Return the number of keys that differ, with the difference divided by the range for a number."""
    apart = Fraction(0)
    for mine, theirs, width in zip(one, other, ranges, strict=True):
        if width is None or mine is None or theirs is None:
            apart += mine != theirs
        elif width:
            apart += abs(Fraction(str(mine)) - Fraction(str(theirs))) / width
    return apart


def outcome(
    person: tuple[Row, object], table: Sequence[tuple[Row, object]], ranges: Sequence[Fraction | None]
) -> tuple[Fraction, Fraction, Fraction | None]:
    """Return the score, the chance of a right guess, and the nearest distance (None without records)."""
    if not table:
        return Fraction(0), Fraction(0), None
    nearest = min(distance(person[0], other, ranges) for other, _ in table)
    votes = Counter(t for other, t in table if distance(person[0], other, ranges) == nearest)
    named = [t for t, number in votes.items() if number == max(votes.values())]
    return (Fraction(votes[person[1]], votes.total()), Fraction(person[1] in named, len(named)), nearest)
