"""Certainty record by record, and the anonymity loss coefficient."""

from collections import Counter
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import comb

from reference.baselines import others
from reference.cap import Record


def claims(
    person: Record, table: Sequence[Record], c: Fraction, n: int | None = None
) -> tuple[Fraction, Fraction]:
    """Return the chances of a claim and of a right claim if records are drawn independently, n on average.

    Claimed is what at least a share c of the records with the person's key have; missing is no level.
    """
    drawn = Fraction(1) if n is None else Fraction(n, len(table))
    levels = Counter(t for q, t in table if q == person[0] and t is not None)
    claimed, right = Fraction(0), Fraction(0)
    draws = product(*(range(number + 1) for number in levels.values()))
    for numbers in [tuple(levels.values())] if n is None else draws:
        chance = Fraction(1)
        for records, number in zip(levels.values(), numbers, strict=True):
            chance *= comb(records, number) * drawn**number * (1 - drawn) ** (records - number)
        named = [
            t for t, number in zip(levels, numbers, strict=True) if number and number >= c * sum(numbers)
        ]
        claimed += chance * bool(named)
        right += chance * (person[1] in named)
    return claimed, right


def counts(
    gt: Sequence[Record], sd: Sequence[Record] | None, c: Fraction, n: int | None = None
) -> tuple[Fraction, Fraction]:
    """Return the numbers of GT records with a claim, and with a right claim, from SD or from the others."""
    tables = [others(gt, i) if sd is None else sd for i in range(len(gt))]
    chances = [claims(person, table, c, n) for person, table in zip(gt, tables, strict=True)]
    claimed, right = (sum(of_all, Fraction(0)) for of_all in zip(*chances, strict=True))
    return claimed, right


def coefficient(claimed: Fraction, right: Fraction, records: int) -> Decimal:
    """Return the precision-recall coefficient, PRC."""
    recall = decimal(claimed) / records
    if recall <= Decimal("1e-4"):
        return recall
    return (1 - (recall.log10() / -4) ** 3) * decimal(right) / decimal(claimed)


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator


def anonymity_loss(gt: Sequence[Record], sd: Sequence[Record], certainties: Sequence[Fraction]) -> float:
    """Return ALC, computed with 50 digits because PRC can be close to 1; 0 if the others' PRC is 1."""
    with localcontext(Context(prec=50)):
        # The larger table is drawn from.
        of_SD = len(gt) - 1 if len(sd) > len(gt) else None
        of_others = len(sd) if len(sd) < len(gt) - 1 else None
        figures = [(counts(gt, sd, c, of_SD), counts(gt, None, c, of_others)) for c in certainties]
        attack, base = (max(coefficient(*figure[k], len(gt)) for figure in figures) for k in (0, 1))
        return float((attack - base) / (1 - base)) if base < 1 else 0.0
