"""What is told of a sensitive level, person by person: slow, obvious and exact."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from reference.baselines import Units, disclosed, others, size
from reference.cap import Level, Record, chance_of_mode, with_key


def claims(
    gt: Sequence[Record], sd: Sequence[Record], level: Level, units: Units | None = None
) -> tuple[list[Fraction], list[Fraction]]:
    """Return the chance that SD, and that the others, tell the level of each person."""
    by_SD, by_others = [], []
    for i, (q, _) in enumerate(gt):
        rest = others(gt, i, units)
        n = min(len(sd), len(rest))
        by_SD.append(disclosed((q, level), sd, n))
        by_others.append(disclosed((q, level), rest, n))
    return by_SD, by_others


def guessed(person: Record, table: Sequence[Record]) -> Fraction:
    """Return the chance that one of the most frequent levels with the person's key is theirs."""
    return chance_of_mode(person[1], Counter(t for _, t in with_key(table, person[0]) if t is not None))


def told_by_guess(gt: Sequence[Record], sd: Sequence[Record], level: Level) -> tuple[Fraction, Fraction]:
    """Return the people with the level who are guessed to have it from SD, and from the others."""
    assert len(sd) in (size(gt, sd), len(gt)), "without draws"
    by_SD, by_others = Fraction(0), Fraction(0)
    for i, person in enumerate(gt):
        if person[1] == level:
            by_SD += guessed(person, sd)
            by_others += guessed(person, others(gt, i))
    return by_SD, by_others
