"""SD records that equal a GT record, looked up one by one."""

import math
from collections.abc import Sequence
from fractions import Fraction

Row = tuple[object, ...]


def copies(gt: Sequence[Row], sd: Sequence[Row]) -> dict[str, float]:
    """Return the percent of SD records, and of GT records for the others."""
    repeated = sum(gt.count(row) > 1 for row in gt)
    seen_twice = sum(gt.count(row) == 2 for row in gt)  # 2 f2 records are in the f2 pairs
    shares = {
        "copies": Fraction(sum(row in gt for row in sd), len(sd)),
        "copies_others": Fraction(repeated, len(gt)),
        "unique_copies": Fraction(sum(gt.count(row) == 1 for row in sd), len(sd)),
        "unique_copies_others": Fraction(seen_twice, len(gt)),
    }
    # Columns drawn apart from GT's, by the GT records that are unique.
    unique = [row for row in gt if gt.count(row) == 1]
    shares["unique_copies_apart"] = sum((chance_apart(gt, row) for row in unique), Fraction(0))
    shares["people_copied"] = Fraction(sum(gt.count(row) == 1 and row in sd for row in gt), len(gt))
    shares["copies_beyond"] = shares["copies"] - shares["copies_others"]
    shares["unique_copies_beyond"] = shares["unique_copies"] - max(
        shares["unique_copies_others"], shares["unique_copies_apart"]
    )
    alone = len(unique)
    fresh = [
        1 - math.exp(-len(sd) * seen_twice / (len(gt) * alone)) if alone else 0.0,  # 2 f2 = seen_twice
        1 - sum(sd.count(row) == 1 for row in sd) / len(sd),
    ]
    percent = {name: float(100 * share) for name, share in shares.items()}
    apart = found_apart(gt, unique, len(sd)) / 100 * len(gt)
    percent["people_copied_expected"] = 100 / len(gt) * max(alone * min(fresh), apart)
    percent["people_copied_beyond"] = percent["people_copied"] - percent["people_copied_expected"]
    return percent | errors(gt, sd, fresh, apart, float(shares["unique_copies_apart"]))


def chance_apart(gt: Sequence[Row], row: Row) -> Fraction:
    """Return the chance that a record whose columns are drawn apart from GT's equals this one."""
    return math.prod(
        (Fraction(sum(other[k] == row[k] for other in gt), len(gt)) for k in range(len(row))),
        start=Fraction(1),
    )


def found_apart(gt: Sequence[Row], unique: Sequence[Row], records: int) -> float:
    """Return the percent of GT records, of these, that so many records of columns drawn apart find."""
    return 100 / len(gt) * sum(-math.expm1(-records * float(chance_apart(gt, row))) for row in unique)


def errors(
    gt: Sequence[Row], sd: Sequence[Row], fresh: Sequence[float], apart: float, hits_apart: float
) -> dict[str, float]:
    """Return the standard errors of the differences in percentage points, at least one record.

    `fresh`: the shares of the people alone that a fresh table holds, by GT's coverage and by SD's. `apart`,
    `hits_apart`: people found, and share of the records that hit one, if columns are drawn apart.
    """
    N, n = len(gt), len(sd)
    f1, f2, f3 = (len({row for row in gt if gt.count(row) == k}) for k in (1, 2, 3))
    of_alone = (f1 * (1 - f1 / N) + 2 * f2) / N**2
    of_pairs = (4 * f2 + 6 * f3) / N**2
    variances = {
        "copies_beyond_se": (1 - f1 / N) * f1 / N / n + of_alone,
        "unique_copies_beyond_se": max(
            min(2 * f2 / N, 1) * (1 - min(2 * f2 / N, 1)) / n + of_pairs,
            min(hits_apart, 1) * (1 - min(hits_apart, 1)) / n,
        ),
    }
    people = 0.0
    if f1:
        found = max(sum(gt.count(row) == 1 and row in sd for row in gt) / f1, min(fresh), apart / f1)
        people = f1 * found * (1 - found)
        if apart / f1 > min(fresh):
            pass  # what columns drawn apart find is known
        elif fresh[0] <= fresh[1]:
            people += (n * (1 - fresh[0]) / N) ** 2 * (4 * max(f2, 1) + 6 * f3)
        else:
            single = min(sum(sd.count(row) == 1 for row in sd), n - 2)
            people += (f1 / n) ** 2 * (single * (1 - single / n) + n - single)
    shares = {name: max(math.sqrt(variance), 1 / n) for name, variance in variances.items()}
    shares["people_copied_beyond_se"] = max(math.sqrt(people), 1) / N
    return {name: 100 * share for name, share in shares.items()}
