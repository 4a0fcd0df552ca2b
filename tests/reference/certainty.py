"""Certainty record by record, and the anonymity loss coefficient of it."""

from collections import Counter
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from reference.baselines import others, undeclared
from reference.cap import Level, Record


def claims(
    person: Record, table: Sequence[Record], c: Fraction, no_guess: Sequence[Level] = (None,)
) -> list[Level]:
    """The levels that at least a share c of the records with the person's key have; missing is no level."""
    levels = Counter(t for q, t in table if q == person[0] and t not in no_guess)
    return [t for t, number in levels.items() if Fraction(number, levels.total()) >= c]


def counts(
    gt: Sequence[Record], sd: Sequence[Record], c: Fraction, no_guess: Sequence[Level] = (None,)
) -> tuple[int, int]:
    """Of how many GT records something is claimed from SD, and of how many rightly."""
    found = [claims(person, sd, c, no_guess) for person in gt]
    return sum(map(bool, found)), sum(t in levels for (_, t), levels in zip(gt, found, strict=True))


def counts_of_others(gt: Sequence[Record], c: Fraction) -> tuple[int, int]:
    """The same, told to each from the other GT records."""
    found = [claims(person, others(gt, i), c) for i, person in enumerate(gt)]
    return sum(map(bool, found)), sum(t in levels for (_, t), levels in zip(gt, found, strict=True))


def coefficient(claimed: int, right: int, records: int) -> Decimal:
    """PRC."""
    recall = Decimal(claimed) / records
    if recall <= Decimal("1e-4"):
        return recall
    return (1 - (recall.log10() / -4) ** 3) * right / claimed


def anonymity_loss(gt: Sequence[Record], sd: Sequence[Record], certainties: Sequence[Fraction]) -> float:
    """ALC, of fifty digits: PRC can lie next to 1; what others tell for certain is no loss."""
    with localcontext(Context(prec=50)):
        no_guess = undeclared(gt, sd)
        attack = max(coefficient(*counts(gt, sd, c, no_guess), len(gt)) for c in certainties)
        base = max(coefficient(*counts_of_others(gt, c), len(gt)) for c in certainties)
        return float((attack - base) / (1 - base)) if base < 1 else 0.0
