"""The people whom synthetic records show, record by record."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2, gamma, poisson

Row = tuple[object, ...]
TOLERANCES = (0.0, 0.01, 0.03, 0.1)


def scale_of(column: Sequence[object]) -> tuple[float, float] | None:
    """Return the tenth of the middle nine tenths, and the unit; None for a category."""
    values = sorted(float(value) for value in column if isinstance(value, (int, float)))
    if len(set(values)) <= 12:
        return None
    low, high = (
        next(value for place, value in enumerate(values, start=1) if place >= len(values) * share)
        for share in (0.05, 0.95)
    )
    return (high - low) / 10, 1.0 if all(value == int(value) for value in values) else 0.0


def near(mine: object, theirs: object, scale: tuple[float, float] | None, tolerance: float) -> bool:
    """Return whether two values of a column are near each other."""
    if scale is None or not tolerance or mine is None or theirs is None:
        return mine == theirs
    assert isinstance(mine, (int, float)) and isinstance(theirs, (int, float))
    width = max(tolerance * max(abs(mine), scale[0]), scale[1])
    return abs(mine - theirs) <= width * (1 + 1e-12)


def boxes(
    gt: Sequence[Row],
    sd: Sequence[Row],
    columns: Sequence[int],
    tolerance: float,
    unit: Sequence[object],
    seen: dict[object, set[int]],
    people: Sequence[int] | None = None,
) -> list[tuple[int, bool, float, float]]:
    """Return for each person the other records, whether shown, and the chances by columns and by values.

    `seen`: the rows that are near a value, so far, to be given again with the same tables. `people`: the GT
    records looked at, otherwise all.
    """
    looked_at = range(len(gt)) if people is None else people
    scales = [scale_of([row[k] for row in gt]) for k in range(len(gt[0]))]

    def near_rows(value: object, k: int, wide: float, in_gt: bool) -> set[int]:
        place, table = (value, k, wide, in_gt), gt if in_gt else sd
        if place not in seen:
            seen[place] = {i for i, row in enumerate(table) if near(value, row[k], scales[k], wide)}
        return seen[place]

    def box(person: Row, table: Sequence[Row], at: dict[int, float]) -> list[int]:
        return sorted(
            set.intersection(*(near_rows(person[k], k, wide, table is gt) for k, wide in at.items()))
        )

    at = dict.fromkeys(columns, tolerance)
    numbers = [k for k in columns if scales[k] is not None]
    number = None
    if numbers and len(columns) > 1:
        number = min(numbers, key=lambda k: (sum(len(box(gt[i], gt, {k: tolerance})) for i in looked_at), k))
    result = []
    for i in looked_at:
        person = gt[i]
        others = [j for j in box(person, gt, at) if unit[j] != unit[i]]
        shown = bool(box(person, sd, at))
        by_columns = by_values = 0.0
        if not others:
            counts = sorted(len(box(person, sd, {k: tolerance})) for k in columns)
            by_columns = 1 - (1 - math.prod(c / len(sd) for c in counts[1:])) ** counts[0]
            if number is not None:
                wide = [j for j in box(person, gt, {number: 0.1}) if unit[j] != unit[i]]
                both = [j for j in box(person, gt, at | {number: 0.1}) if unit[j] != unit[i]]
                kept = len(box(person, sd, {number: tolerance}))
                by_values = 1 - (1 - len(both) / max(len(wide), 1)) ** kept
        result.append((len(others), shown, by_columns, by_values))
    return result


def coverage(gt: Sequence[Row], sd: Sequence[Row], columns: Sequence[int], tolerance: float) -> int:
    """Return the number of synthetic records that have another one in their box."""
    scales = [scale_of([row[k] for row in gt]) for k in range(len(gt[0]))]
    return sum(
        sum(all(near(mine[k], other[k], scales[k], tolerance) for k in columns) for other in sd) > 1
        for mine in sd
    )


EULER = [sum(math.comb(12, i) for i in range(k, 13)) / 2**12 for k in range(13)]


def fresh_share(others: Sequence[int], t: float, more_pairs: float = 0.0) -> float:
    """Return the share of people whom t times as many other people show, were there so many more pairs."""
    N = len(others)
    alone, with_k = others.count(0), [others.count(k) for k in range(13)]
    if not alone:
        return 0.0
    terms = [0.0] + [(-1) ** (k + 1) * min(t, 1) ** k * EULER[k] for k in range(1, 13)]
    spread = math.sqrt(sum(terms[k] ** 2 * with_k[k] for k in range(1, 13)))
    per_pair = spread / math.sqrt(with_k[1]) if with_k[1] else max(terms[1], spread)
    fresh = max(sum(terms[k] * with_k[k] for k in range(1, 13)) + per_pair * more_pairs, 0.0) / N
    if t > 1:
        fresh = alone / N * (1 - max(1 - fresh / (alone / N), 0) ** t)
    return min(fresh, alone / N * (1 - math.exp(-t * (with_k[1] + more_pairs) / alone)))


def detection_limit(
    others: Sequence[int],
    expected: float,
    allowed: float,
    N_d: int,
    N_s: int,
    people: int,
    records_per_unit: float,
) -> float:
    """Return the share of people (1: all) whom a table may show and pass in 1 of 20 cases.

    `expected`, `allowed`: the share that the clause expects, and that it allows beyond; `people`: looked at.
    """
    t, drawn = N_s / N_d, min(len(others) / N_d, 1)
    G, most = fresh_share(others, t), others.count(0) / len(others)
    error = fresh_share(others, t, math.sqrt(max(others.count(1), 1) * (1 + drawn))) - G
    start = max(expected - G, 0) + allowed
    low, high = 0.0, max(most - G, 0)
    for _ in range(100):
        limit = (low + high) / 2
        copied = (1 - min(people / N_d, 1)) * limit * (1 - limit)
        deviation = math.sqrt(((G * (1 - G) + copied) / people + error**2) * records_per_unit)
        is_noticed = limit >= start + 1.6448536269514722 * deviation
        low, high = (low, limit) if is_noticed else (limit, high)
    return high


def found_by_chance(
    people: Sequence[tuple[int, bool, float, float]],
    N_d: int,
    N_s: int,
    level: float,
    covered: tuple[int, int] | None,
    per_unit: float,
) -> float:
    """Return the percent of the fewer records that are found beyond those expected with the chance `level`.

    `covered`: SD records that have another one in their box, and those looked at. The pairs are as many as
    counted or more, and their chance times that of the people found is above the level of both.
    """
    others, t, both = [number for number, *_ in people], N_s / N_d, level / (1 - math.log(level))
    alone, looked_at = others.count(0), len(people) / N_d

    def show(pairs: float, share: float) -> float:
        fresh = fresh_share(others, t, pairs - others.count(1))
        return len(people) * min(fresh, share * alone / len(people))

    counted = others.count(1) / per_unit / (1 + looked_at)
    repeated, records = covered or (1, 1)
    highest = 1.0 if covered is None else min(chi2.ppf(1 - level, 2 * repeated + 2) / 2 / records, 1)
    most = 0
    for mean in np.linspace(counted, chi2.ppf(1 - both, 2 * counted + 2) / 2, 49):
        shown = show(mean * per_unit * (1 + looked_at), highest) / per_unit
        while most < math.ceil(alone / per_unit) and (
            gamma.sf(mean, counted + 1) * poisson.sf(most, shown) >= both
        ):
            most += 1
    by_model = max(sum(person[2] for person in people), sum(person[3] for person in people))
    while poisson.sf(most, by_model / per_unit) > level:
        most += 1
    expected = max(show(others.count(1), repeated / records), by_model)
    return 100 * max(min(most * per_unit, alone) - expected, 0) * N_d / len(people) / min(N_d, N_s)


def found(people: Sequence[tuple[int, bool, float, float]], N_s: int) -> tuple[float, float, float]:
    """Return the percent of people shown and expected, and the difference in percent of the fewer records."""
    N = len(people)
    expected = max(
        fresh_share([others for others, *_ in people], N_s / N),
        sum(person[2] for person in people) / N,
        sum(person[3] for person in people) / N,
    )
    shown = sum(others == 0 and is_shown for others, is_shown, *_ in people) / N
    return 100 * shown, 100 * expected, 100 * (shown - expected) * N / min(N, N_s)
