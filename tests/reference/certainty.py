"""Certainty record by record, and the anonymity loss coefficient of it."""

from collections import Counter
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import comb

from reference.baselines import others
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
    claimed = [claims(person, sd, c, no_guess) for person in gt]
    return sum(map(bool, claimed)), sum(t in levels for (_, t), levels in zip(gt, claimed, strict=True))


def counts_of_others(gt: Sequence[Record], c: Fraction) -> tuple[int, int]:
    """The same, told to each from the other GT records."""
    claimed = [claims(person, others(gt, i), c) for i, person in enumerate(gt)]
    return sum(map(bool, claimed)), sum(t in levels for (_, t), levels in zip(gt, claimed, strict=True))


def claims_of_draws(
    person: Record, table: Sequence[Record], n: int, c: Fraction, no_guess: Sequence[Level] = (None,)
) -> tuple[Fraction, Fraction]:
    """The chance that something is claimed, and rightly: each record is drawn by itself, n on average."""
    drawn = Fraction(n, len(table))
    levels = Counter(t for q, t in table if q == person[0] and t not in no_guess)
    claimed, right = Fraction(0), Fraction(0)
    for numbers in product(*(range(number + 1) for number in levels.values())):
        chance = Fraction(1)
        for records, number in zip(levels.values(), numbers, strict=True):
            chance *= comb(records, number) * drawn**number * (1 - drawn) ** (records - number)
        some = [(person[0], t) for t, number in zip(levels, numbers, strict=True) for _ in range(number)]
        claimed_levels = claims(person, some, c)
        claimed += chance * bool(claimed_levels)
        right += chance * (person[1] in claimed_levels)
    return claimed, right


def counts_of_draws(
    gt: Sequence[Record], sd: Sequence[Record], c: Fraction, no_guess: Sequence[Level] = (None,)
) -> tuple[Fraction, Fraction]:
    """`counts` of a draw of as many SD records as there are other people, on average."""
    chances = [claims_of_draws(person, sd, len(gt) - 1, c, no_guess) for person in gt]
    return sum((chance[0] for chance in chances), Fraction(0)), sum(
        (chance[1] for chance in chances), Fraction(0)
    )


def counts_of_drawn_others(gt: Sequence[Record], n: int, c: Fraction) -> tuple[Fraction, Fraction]:
    """`counts_of_others` of a draw of n of them, on average."""
    chances = [claims_of_draws(person, others(gt, i), n, c) for i, person in enumerate(gt)]
    return sum((chance[0] for chance in chances), Fraction(0)), sum(
        (chance[1] for chance in chances), Fraction(0)
    )


def coefficient(claimed: Fraction | int, right: Fraction | int, records: int) -> Decimal:
    """PRC."""
    recall = decimal(claimed) / records
    if recall <= Decimal("1e-4"):
        return recall
    return (1 - (recall.log10() / -4) ** 3) * decimal(right) / decimal(claimed)


def decimal(number: Fraction | int) -> Decimal:
    return Decimal(number.numerator) / number.denominator


def at_n(
    gt: Sequence[Record], sd: Sequence[Record], c: Fraction
) -> tuple[tuple[Fraction | int, Fraction | int], tuple[Fraction | int, Fraction | int]]:
    """The counts from SD and from the others, of which the larger table is drawn from."""
    if len(sd) > len(gt):
        return counts_of_draws(gt, sd, c), counts_of_others(gt, c)
    if len(sd) < len(gt) - 1:
        return counts(gt, sd, c), counts_of_drawn_others(gt, len(sd), c)
    return counts(gt, sd, c), counts_of_others(gt, c)


def anonymity_loss(gt: Sequence[Record], sd: Sequence[Record], certainties: Sequence[Fraction]) -> float:
    """ALC, of fifty digits: PRC can lie next to 1; what others tell for certain is no loss."""
    with localcontext(Context(prec=50)):
        figures = [at_n(gt, sd, c) for c in certainties]
        attack, base = (max(coefficient(*figure[k], len(gt)) for figure in figures) for k in (0, 1))
        return float((attack - base) / (1 - base)) if base < 1 else 0.0
