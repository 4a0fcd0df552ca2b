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
    shares["people_copied"] = Fraction(sum(gt.count(row) == 1 and row in sd for row in gt), len(gt))
    shares["copies_beyond"] = shares["copies"] - shares["copies_others"]
    shares["unique_copies_beyond"] = shares["unique_copies"] - shares["unique_copies_others"]
    alone = sum(gt.count(row) == 1 for row in gt)
    fresh = [
        1 - math.exp(-len(sd) * seen_twice / (len(gt) * alone)) if alone else 0.0,  # 2 f2 = seen_twice
        1 - sum(sd.count(row) == 1 for row in sd) / len(sd),
    ]
    percent = {name: float(100 * share) for name, share in shares.items()}
    percent["people_copied_expected"] = 100 * alone / len(gt) * min(fresh)
    percent["people_copied_beyond"] = percent["people_copied"] - percent["people_copied_expected"]
    return percent | errors(gt, sd, fresh)


def errors(gt: Sequence[Row], sd: Sequence[Row], fresh: Sequence[float]) -> dict[str, float]:
    """Return the standard errors of the differences in percentage points, at least one record.

    `fresh`: the shares of the people alone that a fresh table holds, by GT's coverage and by SD's.
    """
    N, n = len(gt), len(sd)
    f1, f2, f3 = (len({row for row in gt if gt.count(row) == k}) for k in (1, 2, 3))
    of_alone = (f1 * (1 - f1 / N) + 2 * f2) / N**2
    of_pairs = (4 * f2 + 6 * f3) / N**2
    variances = {
        "copies_beyond_se": (1 - f1 / N) * f1 / N / n + of_alone,
        "unique_copies_beyond_se": min(2 * f2 / N, 1) * (1 - min(2 * f2 / N, 1)) / n + of_pairs,
    }
    people = 0.0
    if f1:
        found = max(sum(gt.count(row) == 1 and row in sd for row in gt) / f1, min(fresh))
        people = f1 * found * (1 - found)
        if fresh[0] <= fresh[1]:
            people += (n * (1 - fresh[0]) / N) ** 2 * (4 * max(f2, 1) + 6 * f3)
        else:
            single = min(sum(sd.count(row) == 1 for row in sd), n - 2)
            people += (f1 / n) ** 2 * (single * (1 - single / n) + n - single)
    shares = {name: max(math.sqrt(variance), 1 / n) for name, variance in variances.items()}
    shares["people_copied_beyond_se"] = max(math.sqrt(people), 1) / N
    return {name: 100 * share for name, share in shares.items()}
