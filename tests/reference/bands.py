"""Figures within a band, person by person and in fractions: slow, obvious and exact.

A record is a pair of a key combination and an amount (None: missing). A band is a function: does x lie in the
band around v?
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations, product

Amount = Fraction | None
Record = tuple[object, Amount]
Table = Sequence[Record]
Lies = Callable[..., bool]
Hits = Callable[[Record, Table], Fraction]


def band(
    *, share: Fraction | None = None, amount: Fraction = Fraction(0), special: Sequence[Amount] = ()
) -> Lies:
    """Return the test whether x is in the band of v; missing and special values match only themselves."""
    alone = {None, *special}

    def lies(x: Amount, v: Amount, *, is_level: bool = True) -> bool:
        if x is None or v is None or x in alone:
            return is_level and x == v
        if is_level and v in alone:
            return False
        return abs(x - v) <= (amount if share is None else share * abs(v))

    return lies


def fits(values: Sequence[Amount], lies: Lies, size: Fraction) -> bool:
    """Return whether some number's band holds all values: if any does, one with a value at its edge does.

    That number need not occur: it may be one that would be special if it did.
    """
    around: list[Amount] = []
    for x in values:
        if x is not None:
            around += [x, x + size, x - size, x / (1 + size)]
            around += [x / (1 - size)] if size != 1 else []
    return any(all(lies(x, v) for x in values) for v in values) or any(
        all(lies(x, v, is_level=False) for x in values) for v in around
    )


def overlap(gt: Table, sd: Table, lies: Lies) -> dict[str, float | None]:
    """Return the percent of GT's values with one of SD in their band, and of SD's that lie in one of GT."""
    in_GT, in_SD = ([t for _, t in table if t is not None] for table in (gt, sd))
    shared = (
        [v for v in in_GT if any(lies(x, v) for x in in_SD)],
        [x for x in in_SD if any(lies(x, v) for v in in_GT)],
    )
    return {
        "GT_in_SD": 100 * len(shared[0]) / len(in_GT) if in_GT else None,
        "SD_in_GT": 100 * len(shared[1]) / len(in_SD) if in_SD else None,
    }


def with_key(person: Record, table: Table) -> list[Amount]:
    return [t for q, t in table if q == person[0]]


def disclosed(person: Record, table: Table, lies: Lies) -> bool:
    values = with_key(person, table)
    return bool(values) and all(lies(x, person[1]) for x in values)


def claimed(person: Record, table: Table, lies: Lies, size: Fraction) -> bool:
    values = with_key(person, table)
    return bool(values) and fits(values, lies, size)


def over_draws(holds: Callable[[Table], bool], table: Table, n: int) -> Fraction:
    """Return the share of all draws of n records for which a condition holds."""
    draws = list(combinations(table, n))
    return Fraction(sum(map(holds, draws)), len(draws))


def thinned(holds: Callable[[Table], Fraction], table: Table, drawn: Fraction) -> Fraction:
    """Return the mean over draws in which each record is drawn independently with this chance."""
    if drawn == 1:
        return holds(table)
    mean = Fraction(0)
    for marks in product((False, True), repeat=len(table)):
        some = [record for record, mark in zip(table, marks, strict=True) if mark]
        mean += drawn ** len(some) * (1 - drawn) ** (len(table) - len(some)) * holds(some)
    return mean


def certain(person: Record, table: Table, lies: Lies, c: Fraction) -> Fraction:
    """Return 1 if the share c of the values with the person's key lies in the band around their own."""
    values = [x for x in with_key(person, table) if x is not None]
    near = sum(lies(x, person[1]) for x in values)
    return Fraction(near > 0 and near >= c * len(values))


def certainly_claimed(person: Record, table: Table, lies: Lies, size: Fraction, c: Fraction) -> bool:
    """Return whether some number's band holds the share c of the values with the person's key."""
    values = [x for x in with_key(person, table) if x is not None]
    return any(
        fits(some, lies, size)
        for number in range(1, len(values) + 1)
        if number >= c * len(values)
        for some in combinations(values, number)
    )


def is_amount(x: Amount, special: Sequence[Amount]) -> bool:
    return x is not None and x not in special


def densest(amounts: Sequence[Fraction], lies: Lies, size: Fraction) -> list[list[Fraction]]:
    """Return the largest sets of amounts, each all those between two of them, that fit into one band."""
    windows = []
    for low, high in product(sorted(set(amounts)), repeat=2):
        some = [x for x in amounts if low <= x <= high]
        if low <= high and fits(some, lies, size):
            windows.append(some)
    return [some for some in windows if len(some) == max(map(len, windows))]


def centre(amounts: Sequence[Fraction], distance: Callable[[Fraction], Fraction]) -> Fraction:
    """Return the middle of the numbers that lie in the bands of all of the amounts."""
    lowest = max(x - distance(x) for x in amounts)
    highest = min(x + distance(x) for x in amounts)
    return (lowest + highest) / 2


def guess_densest(lies: Lies, size: Fraction, is_share: bool, special: Sequence[Amount]) -> Hits:
    """Return how often the centres of a table's densest windows lie in the band of a person."""

    def distance(x: Fraction) -> Fraction:
        return size * abs(x) if is_share else size

    @lru_cache
    def centres(amounts: tuple[Fraction, ...]) -> list[Fraction]:
        return [centre(some, distance) for some in densest(amounts, lies, size)]

    def hits(person: Record, table: Table) -> Fraction:
        amount = person[1]
        guesses = centres(tuple(sorted(x for _, x in table if x is not None and x not in special)))
        if amount is None or amount in special or not guesses:
            return Fraction(0)
        return Fraction(sum(abs(x - amount) <= distance(amount) for x in guesses), len(guesses))

    return hits


def mean_guess(
    person: Record,
    table: Table,
    hits: Hits,
    special: Sequence[Amount],
    n: int | None,
    *,
    by_key: bool,
) -> Fraction:
    """Return the chance of a right guess by the key, else by the table; or by the table alone."""

    def mean(some: Table) -> tuple[Fraction, Fraction]:
        """Return the chance, and the chance that there is no amount."""
        amounts = [record for record in some if is_amount(record[1], special)]
        drawn = Fraction(1) if n is None else Fraction(n, len(table))
        right = thinned(lambda taken: hits(person, taken), amounts, drawn)
        return right, (1 - drawn) ** len(amounts)

    overall, _ = mean(table)
    if not by_key:
        return overall
    right, none = mean([record for record in table if record[0] == person[0]])
    return right + none * overall


def guessed(
    people: Table,
    tables: Sequence[Table],
    weights: Sequence[int],
    hits: Hits,
    special: Sequence[Amount],
    drawn: Sequence[int | None],
) -> Fraction:
    """Return the right guesses by the better strategy, each person from a table of their own."""
    of_people = list(zip(people, tables, weights, drawn, strict=True))
    return max(
        sum(
            (w * mean_guess(i, table, hits, special, n, by_key=by_key) for i, table, w, n in of_people),
            Fraction(0),
        )
        for by_key in (True, False)
    )


def figures(
    gt: Table,
    sd: Table,
    lies: Lies,
    size: Fraction,
    special: Sequence[Amount] = (),
    certainties: Sequence[Fraction] = (),
    weights: Sequence[int] | None = None,
    units: Sequence[int] | None = None,
    *,
    is_share: bool,
) -> dict[str, float]:
    """Return all figures in percent of the weighted GT records, those of a certainty under its number."""
    weights = weights or [1] * len(gt)
    unit = units or list(range(len(gt)))
    without = [[record for j, record in enumerate(gt) if unit[j] != unit[i]] for i in range(len(gt))]
    n = [min(len(sd), len(rest)) for rest in without]
    of_SD = [of if len(sd) > len(gt) else None for of in n]
    of_GT = [of if of < len(rest) else None for of, rest in zip(n, without, strict=True)]
    own = list(zip(gt, without, n, strict=True))

    def percent(total: Fraction | int) -> float:
        return float(100 * Fraction(total) / sum(weights))

    def weigh(hits_of_people: Sequence[Fraction | bool]) -> Fraction:
        return sum((w * Fraction(x) for w, x in zip(weights, hits_of_people, strict=True)), Fraction(0))

    def mean_of(condition: Callable[[Record, Table], bool]) -> tuple[Fraction, Fraction]:
        of_n = [over_draws(partial(condition, person), sd, of) for person, _, of in own]
        of_others = [over_draws(partial(condition, person), rest, of) for person, rest, of in own]
        return weigh(of_n), weigh(of_others)

    DiS = mean_of(lambda person, table: claimed(person, table, lies, size))
    DiSCO = mean_of(lambda person, table: disclosed(person, table, lies))
    tables = [sd] * len(gt)
    hits = guess_densest(lies, size, is_share, special)
    at_n = guessed(gt, tables, weights, hits, special, of_SD)
    by_others = guessed(gt, without, weights, hits, special, of_GT)
    result = {
        "DiS_within": percent(weigh([claimed(person, sd, lies, size) for person in gt])),
        "DiS_within_others": percent(DiS[1]),
        "DiS_within_beyond": percent(DiS[0] - DiS[1]),
        "DiSCO_within": percent(weigh([disclosed(person, sd, lies) for person in gt])),
        "DiSCO_within_others": percent(DiSCO[1]),
        "DiSCO_within_beyond": percent(DiSCO[0] - DiSCO[1]),
        "guessed_within": percent(guessed(gt, tables, weights, hits, special, [None] * len(gt))),
        "guessed_within_others": percent(by_others),
        "guessed_within_beyond": percent(at_n - by_others),
    }
    for c in certainties:
        people = [person for person in gt if person[1] is not None]

        def drawn(person: Record, table: Table, size_of_draw: int | None, c: Fraction = c) -> Fraction:
            if size_of_draw is None:
                return certain(person, table, lies, c)
            kept = [record for record in table if record[0] == person[0] and record[1] is not None]
            share = Fraction(size_of_draw, len(table))
            return thinned(lambda some: certain(person, some, lies, c), kept, share)

        from_SD = from_GT = Fraction(0)
        for (person, rest, _), n_SD, n_GT in zip(own, of_SD, of_GT, strict=True):
            if person[1] is not None:
                from_SD += drawn(person, sd, n_SD)
                from_GT += drawn(person, rest, n_GT)
        claims = sum(certainly_claimed(p, sd, lies, size, c) for p in gt)
        right = sum((certain(p, sd, lies, c) for p in people), Fraction(0))
        result |= {
            f"DiS_within at {c}": percent(claims),
            f"DiSCO_within at {c}": percent(right),
            f"precision at {c}": float(100 * right / claims) if claims else math.nan,
            f"DiSCO_within_others at {c}": percent(from_GT),
            f"DiSCO_within_beyond at {c}": percent(from_SD - from_GT),
        }
    return result
