"""What is told of a sensitive level, person by person: slow, obvious and exact."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from reference.baselines import Units, none_drawn, size
from reference.cap import Level, Record


def claim(q: object, level: Level, table: Sequence[Record], n: int) -> Fraction:
    """Return the chance that n records drawn from the table have the key, and only with this level."""
    with_key = sum(key == q for key, _ in table)
    with_other_level = sum(key == q and t != level for key, t in table)
    return none_drawn(with_other_level, len(table), n) - none_drawn(with_key, len(table), n)


def claims(
    gt: Sequence[Record], sd: Sequence[Record], level: Level, units: Units | None = None
) -> tuple[list[Fraction], list[Fraction]]:
    """Return the chance that SD, and that the others, tell the level of each person."""
    by_SD, by_others = [], []
    for i, (q, _) in enumerate(gt):
        others = [
            record for j, record in enumerate(gt) if (j != i if units is None else units[j] != units[i])
        ]
        n = min(len(sd), len(others))
        by_SD.append(claim(q, level, sd, n))
        by_others.append(claim(q, level, others, n))
    return by_SD, by_others


def guessed(person: Record, table: Sequence[Record]) -> Fraction:
    """Return the chance that one of the most frequent levels with the person's key is theirs."""
    levels = Counter(t for q, t in table if q == person[0] and t is not None)
    modes = [t for t, number in levels.items() if number == max(levels.values())]
    return Fraction(person[1] in modes, max(len(modes), 1))


def told_by_guess(gt: Sequence[Record], sd: Sequence[Record], level: Level) -> tuple[Fraction, Fraction]:
    """Return the people with the level who are guessed to have it from SD, and from the others."""
    assert len(sd) in (size(gt, sd), len(gt)), "without draws"
    by_SD, by_others = Fraction(0), Fraction(0)
    for i, person in enumerate(gt):
        if person[1] == level:
            by_SD += guessed(person, sd)
            by_others += guessed(person, [*gt[:i], *gt[i + 1 :]])
    return by_SD, by_others
