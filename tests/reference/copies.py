"""SD records that equal a GT record, looked up one by one."""

import math
from collections.abc import Sequence
from fractions import Fraction

Row = tuple[object, ...]


def copies(gt: Sequence[Row], sd: Sequence[Row]) -> dict[str, float]:
    """Percent of SD records, and of GT records for what others show."""
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
    return percent
