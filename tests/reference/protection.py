"""Disclosure protection, record by record in plain Python: slow, obvious, and exact.

Every GT record is compared with every SD record, key by key. Shares are fractions and become floats at the
very end. A missing value is None and a level like any other.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Value = str | int | float | bool | None
Record = Mapping[str, Value]


@dataclass(frozen=True)
class Protection:
    """The figures of the library's result, by the same names."""

    scored: int
    distances: tuple[int, ...]
    cap_protection: float
    baseline_protection: float
    score: float
    majority_protection: float
    majority_score: float
    proportional_protection: float
    proportional_score: float


def protection(
    ground_truth: Sequence[Record],
    synthetic: Sequence[Record],
    keys: Sequence[str],
    sensitive: Sequence[str],
    method: str,
    continuous: Sequence[str] = (),
    bins: int = 10,
) -> Protection:
    gt, sd = binned(ground_truth, synthetic, continuous, bins)
    right_guesses: list[Fraction] = []
    distances = [0] * (len(keys) + 1 if method == "generalized_cap" else 1)
    for record in gt:
        neighbours, distance = looked_up(record, sd, keys, method)
        if neighbours:
            distances[distance] += 1
            right = [other for other in neighbours if all(other[name] == record[name] for name in sensitive)]
            right_guesses.append(Fraction(len(right), len(neighbours)))
        elif method == "zero_cap":
            right_guesses.append(Fraction(0))
    cap = 1 - sum(right_guesses, Fraction(0)) / len(right_guesses) if right_guesses else None

    levels = [len({record[name] for record in gt}) for name in sensitive]
    combinations = Counter(tuple(record[name] for name in sensitive) for record in gt)
    shares = [Fraction(count, len(gt)) for count in combinations.values()]
    uniform = 1 - Fraction(1, math.prod(levels))
    majority = 1 - max(shares)
    proportional = 1 - sum((share * share for share in shares), Fraction(0))
    return Protection(
        scored=len(right_guesses),
        distances=tuple(distances),
        cap_protection=rounded(cap),
        baseline_protection=rounded(uniform),
        score=score(cap, uniform),
        majority_protection=rounded(majority),
        majority_score=score(cap, majority),
        proportional_protection=rounded(proportional),
        proportional_score=score(cap, proportional),
    )


def looked_up(
    record: Record, sd: Sequence[Record], keys: Sequence[str], method: str
) -> tuple[list[Record], int]:
    """Return the SD records that the intruder guesses from, and the number of keys in which they differ."""
    different = [sum(record[key] != other[key] for key in keys) for other in sd]
    smallest = min(different) if method == "generalized_cap" else 0
    return [other for other, n in zip(sd, different, strict=True) if n == smallest], smallest


def rounded(share: Fraction | None) -> float:
    """Return a share as a float; NaN if there is none."""
    return math.nan if share is None else float(share)


def score(cap: Fraction | None, baseline: Fraction) -> float:
    """Return the quotient of two shares, each as the float that is reported, and at most 1."""
    if cap is None or baseline == 0:
        return math.nan
    return min(float(cap) / float(baseline), 1.0)


def binned(
    gt: Sequence[Record], sd: Sequence[Record], continuous: Sequence[str], bins: int
) -> tuple[list[Record], list[Record]]:
    """Return both tables with the number of its bin in place of every continuous value."""
    of_column = {
        name: edges([record[name] for record in gt], [record[name] for record in sd], bins)
        for name in continuous
    }

    def with_bins(record: Record) -> Record:
        return {
            name: bin_of(value, of_column[name]) if name in of_column else value
            for name, value in record.items()
        }

    return [with_bins(record) for record in gt], [with_bins(record) for record in sd]


def edges(gt: Sequence[Value], sd: Sequence[Value], bins: int) -> list[Fraction | float]:
    """Return the edges between the bins over GT's range.

    Fractions where both tables hold whole numbers only, else the floats of numpy.linspace.
    """
    numbers, of_SD = ([number(value) for value in table if value is not None] for table in (gt, sd))
    is_whole = all(isinstance(value, int) for value in numbers + of_SD)
    kind: Any = Fraction if is_whole else float
    low, high, thousandth = kind(min(numbers)), kind(max(numbers)), kind("0.001")
    if low == high:
        margin = thousandth * abs(low) or thousandth
        low, high = low - margin, high + margin
    step = (high - low) / bins
    return [k * step + low for k in range(1, bins)]


def bin_of(value: Value, between: Sequence[Fraction | float]) -> int | None:
    """Return the number of edges below a value: bins are closed on the right. Missing stays missing."""
    return None if value is None else sum(1 for edge in between if edge < number(value))


def number(value: Value) -> int | float:
    """Return a value that is known to be a number; whole ones as integers."""
    assert value is not None
    assert not isinstance(value, str)
    return int(value) if float(value).is_integer() else value
