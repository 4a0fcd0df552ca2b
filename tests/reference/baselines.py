"""The baselines, person by person and in fractions: slow, obvious and exact.

A record is a pair of a key combination and a target level. Of each GT record the others are the list of GT
records without it; a draw of n records is averaged over the number of records that spoil it.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import comb

from reference.cap import Level, Record, chance_of_mode

Units = Sequence[Hashable]
"""The unit of each record."""


def none_drawn(spoiling: int, records: int, n: int) -> Fraction:
    """Return the chance that n of `records` drawn contain none of the `spoiling` ones."""
    if spoiling > records:
        return Fraction(0)
    return Fraction(comb(records - spoiling, n), comb(records, n))


def size(gt: Sequence[Record], sd: Sequence[Record]) -> int:
    """Return the number of records at which SD and the others are compared."""
    return min(len(sd), len(gt) - 1)


def in_draw(person: Record, table: Sequence[Record], n: int) -> Fraction:
    """Return one person's iS: the chance that n records drawn from the table contain the person's key."""
    with_key = sum(q == person[0] for q, _ in table)
    return 1 - none_drawn(with_key, len(table), n)


def disclosed(person: Record, table: Sequence[Record], n: int) -> Fraction:
    """Return one person's DiSCO: the chance that the draw has the key, and only with the person's level."""
    with_key = sum(q == person[0] for q, _ in table)
    with_other_level = sum(q == person[0] and t != person[1] for q, t in table)
    return none_drawn(with_other_level, len(table), n) - none_drawn(with_key, len(table), n)


def attributed(person: Record, kept: Sequence[Record], records: int, n: int) -> Fraction:
    """Return one person's DCAP: the mean share of their level among the drawn records with the key.

    n of `records` are drawn, and only the kept ones among these count.
    """
    with_key = sum(q == person[0] for q, _ in kept)
    if not with_key:
        return Fraction(0)
    with_level = sum(record == person for record in kept)
    return Fraction(with_level, with_key) * (1 - none_drawn(with_key, records, n))


def over_draws(person: Record, table: Sequence[Record], n: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return the iS, DiSCO and DCAP of one person, averaged over every draw of n records."""
    named, certain, share, draws = Fraction(0), Fraction(0), Fraction(0), 0
    for drawn in combinations(table, n):
        levels = Counter(t for q, t in drawn if q == person[0])
        draws += 1
        if levels:
            named += 1
            certain += set(levels) == {person[1]}
            share += Fraction(levels[person[1]], levels.total())
    return named / draws, certain / draws, share / draws


def chance_of_mode_in_draw(t: Level, levels: "Counter[Level]", drawn: Fraction) -> Fraction:
    """Return the chance that t is the mode of a draw, with records drawn independently."""
    if drawn == 1:
        return chance_of_mode(t, levels)
    return chances_in_draw(frozenset(levels.items()), drawn).get(t, Fraction(0))


@cache
def chances_in_draw(levels: frozenset[tuple[Level, int]], drawn: Fraction) -> dict[Level, Fraction]:
    """Return the same for each level, given its number of records."""
    names, records = [t for t, _ in levels], [number for _, number in levels]
    taken, left = drawn.numerator, drawn.denominator - drawn.numerator
    # By the number of modes among which a level is one, in units of 1 / denominator ** records.
    chances: Counter[tuple[Level, int]] = Counter()
    for numbers in product(*(range(number + 1) for number in records)):
        chance = taken ** sum(numbers) * left ** (sum(records) - sum(numbers))
        for number, of_level in zip(numbers, records, strict=True):
            chance *= comb(of_level, number)
        modes = [t for t, number in zip(names, numbers, strict=True) if number == max(numbers) > 0]
        for t in modes:
            chances[t, len(modes)] += chance
    sums = {t: Fraction(0) for t in names}
    for (t, modes_in_all), chance in chances.items():
        sums[t] += Fraction(chance, modes_in_all * drawn.denominator ** sum(records))
    return sums


def share_drawn(table: Sequence[Record], n: int | None) -> Fraction:
    return Fraction(1) if n is None else Fraction(n, len(table))


def guesses(
    person: Record, table: Sequence[Record], n: int | None, no_guess: Sequence[Level]
) -> tuple[Fraction, Fraction]:
    """Return the chances that the strategies are right, each from n drawn records, or from all.

    Guess the mode of the key, or of the table if the key has none; or always guess the mode of the table.
    """
    drawn = share_drawn(table, n)
    by_key, of_table = (
        Counter(t for q, t in table if t not in no_guess and (q == person[0] or not is_by_key))
        for is_by_key in (True, False)
    )
    always = chance_of_mode_in_draw(person[1], of_table, drawn)
    named = chance_of_mode_in_draw(person[1], by_key, drawn)
    return named + (1 - drawn) ** by_key.total() * always, always


def better(chances: Sequence[tuple[Fraction, Fraction]], records: int | Fraction) -> Fraction:
    """Return the percentage of right guesses by the better strategy."""
    return (
        100
        * max((sum(way, Fraction(0)) for way in zip(*chances, strict=True)), default=Fraction(0))
        / records
    )


def others(gt: Sequence[Record], i: int, units: Units | None = None) -> list[Record]:
    """Return all records except those of person i, or of that person's unit."""
    return [record for j, record in enumerate(gt) if (j != i if units is None else units[j] != units[i])]


def figures(
    gt: Sequence[Record],
    sd: Sequence[Record],
    no_guess: Sequence[Level] = (None,),
    kept_gt: Sequence[bool] | None = None,
    kept_sd: Sequence[bool] | None = None,
    units: Units | None = None,
    weights: Sequence[int | Fraction] | None = None,
) -> dict[str, float]:
    """Return every figure, in percent of the GT records or of their weights, counting only kept records.

    All records decide what is disclosive and what is guessed; DCAP uses kept records alone. Each person has
    their own others, and their own number n of compared records.
    """
    N, units, w = len(gt), units or range(len(gt)), weights or [1] * len(gt)
    whole, one_record = sum(w), Fraction(sum(w), N)
    people = [i for i in range(N) if kept_gt is None or kept_gt[i]]
    left_of_sd = [record for i, record in enumerate(sd) if kept_sd is None or kept_sd[i]]
    left, left_units = [gt[i] for i in people], [units[i] for i in people]
    found: dict[str, list[tuple[Fraction, Fraction]]] = {"iS": [], "DiSCO": [], "DCAP": []}
    by_others, by_SD, from_others, from_SD = [], [], [], []
    for place, i in enumerate(people):
        person, of_others = gt[i], others(gt, i, units)
        n, left_others = min(len(sd), len(of_others)), others(left, place, left_units)
        found["iS"].append((w[i] * in_draw(person, sd, n), w[i] * in_draw(person, of_others, n)))
        found["DiSCO"].append((w[i] * disclosed(person, sd, n), w[i] * disclosed(person, of_others, n)))
        by_left = (
            w[i] * attributed(person, left_of_sd, len(sd), n),
            w[i] * attributed(person, left_others, len(of_others), n),
        )
        found["DCAP"].append(by_left)
        from_others.append((i, of_others, n if n < len(of_others) else None))
        from_SD.append((i, sd, n if len(sd) > N else None))
        by_others.append(weigh(w[i], guesses(person, *from_others[-1][1:], no_guess)))
        by_SD.append(weigh(w[i], guesses(person, *from_SD[-1][1:], no_guess)))
    result: dict[str, Fraction] = {}
    errors: dict[str, float] = {}
    for name, pairs in found.items():
        at_n, of_rest = (100 * sum((pair[k] for pair in pairs), Fraction(0)) / whole for k in (0, 1))
        result |= {f"{name}_at_n": at_n, f"{name}_others": of_rest, f"{name}_beyond": at_n - of_rest}
        added = [more - less for more, less in pairs]
        errors[f"{name}_beyond_se"] = standard_error(added, [gt[i][0] for i in people], whole, one_record)
    result["guessed"] = better([weigh(w[i], guesses(gt[i], sd, None, no_guess)) for i in people], whole)
    result["guessed_others"], result["guessed_at_n"] = better(by_others, whole), better(by_SD, whole)
    result["guessed_beyond"] = result["guessed_at_n"] - result["guessed_others"]
    matched = [
        [has_guess(gt[i], table, n_drawn, no_guess) for i, table, n_drawn in of_people]
        for of_people in (from_SD, from_others)
    ]
    persons = [(*gt[i], w[i]) for i in people]
    levels = Counter(t for _, t in [*gt, *sd] if t not in no_guess)
    errors["guessed_beyond_se"] = (
        error_of_guesses(persons, (by_SD, by_others), matched, levels, one_record) / whole
    )
    return {name: float(value) for name, value in result.items()} | errors


def weigh(weight: int | Fraction, chances: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    return weight * chances[0], weight * chances[1]


def standard_error(
    added: Sequence[Fraction], of_key: Sequence[object], whole: int | Fraction, one_record: Fraction
) -> float:
    """Return the root of the summed squares of what each key's records add, in percent; at least 1 record."""
    by_key: dict[object, Fraction] = {}
    for key, more in zip(of_key, added, strict=True):
        by_key[key] = by_key.get(key, Fraction(0)) + more
    squares = sum((x * x for x in by_key.values()), Fraction(0))
    return 100 * max(float(squares) ** 0.5, float(one_record)) / whole


def has_guess(person: Record, table: Sequence[Record], n: int | None, no_guess: Sequence[Level]) -> Fraction:
    """Return the chance that n drawn records, or all, have a level to guess for the person's key."""
    records = sum(q == person[0] and t not in no_guess for q, t in table)
    return 1 - (1 - share_drawn(table, n)) ** records


def error_of_guesses(
    people: Sequence[tuple[object, Level, int | Fraction]],
    ways: Sequence[Sequence[tuple[Fraction, Fraction]]],
    matched: Sequence[Sequence[Fraction]],
    levels: "Counter[Level]",
    one_record: Fraction,
) -> float:
    """Return the jackknife over keys, and of one guess for all who are guessed as a whole table, in percent.

    For SD and the others: `ways`, what `guesses` returns of each person; `matched`, of `has_guess`. `levels`:
    those of all records, whose most frequent ones are guessed where one of the two has nothing to guess from.
    """
    by_key = [
        sum((key for key, _ in of), Fraction(0)) >= sum((mode for _, mode in of), Fraction(0)) for of in ways
    ]
    named = [
        [key - (1 - has) * mode for (key, mode), has in zip(*of, strict=True)]
        for of in zip(ways, matched, strict=True)
    ]
    squares = []
    for guess in [t for t, number in levels.items() if number == max(levels.values())] or [None]:
        added: dict[object, Fraction] = {}
        for i, (q, t, w) in enumerate(people):
            more = named[0][i] - named[1][i] + w * (matched[1][i] - matched[0][i]) * (t == guess)
            added[q] = added.get(q, Fraction(0)) + more
        squares.append(sum((x * x for x in added.values()), Fraction(0)))
    at_once = Fraction(0)
    for i in range(len(people)):
        alike = 1 - sum((of[i] for of, by in zip(matched, by_key, strict=True) if by), Fraction(0)) / 2
        at_once += alike * (ways[0][i][1] - ways[1][i][1])
    variance = Fraction(sum(by_key), 2) * sum(squares, Fraction(0)) / len(squares) + at_once**2
    return 100 * max(float(variance) ** 0.5, float(one_record))


def unique_hits(gt: Sequence[object], sd: Sequence[object]) -> tuple[float, float]:
    """Return the percent of SD records whose key exactly one GT record has, and 2 f2 / N in percent."""
    counts = Counter(gt)
    hits = sum(counts[q] == 1 for q in sd)
    pairs = sum(number == 2 for number in counts.values())
    return float(Fraction(100 * hits, len(sd))), float(Fraction(200 * pairs, len(gt)))


def hits_apart(alone: Iterable[tuple[object, ...]], sd: Sequence[tuple[object, ...]]) -> float:
    """Return the percent of hits on these keys, of one person each, by records drawn column by column.

    0 with a single column, where such records are SD's own.
    """
    expected = Fraction(0)
    for q in set(alone):
        chance = Fraction(len(q) > 1)
        for k, level in enumerate(q):
            chance *= Fraction(sum(record[k] == level for record in sd), len(sd))
        expected += chance
    return float(100 * expected)


def expected_hits(gt: Sequence[tuple[object, ...]], sd: Sequence[tuple[object, ...]]) -> float:
    """Return the percent of hits that tells of nobody: by other people, or by keys drawn apart."""
    alone = [q for q, number in Counter(gt).items() if number == 1]
    return max(unique_hits(gt, sd)[1], hits_apart(alone, sd))
