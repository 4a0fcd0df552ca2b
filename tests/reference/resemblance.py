"""The distance of two tables, cell by cell."""

import math
from collections import Counter
from collections.abc import Sequence


def figures(gt: Sequence[object], sd: Sequence[object]) -> dict[str, float]:
    """Compare the values (or pairs of values) of all records."""
    o, s = Counter(gt), Counter(sd)
    n1, n2 = len(gt), len(sd)
    cells = set(o) | set(s)
    tvd = sum(abs(o[cell] / n1 - s[cell] / n2) for cell in cells) / 2
    expected = sum(
        math.sqrt(2 / math.pi * (o[cell] / n1) * (1 - o[cell] / n1) * (1 / n1 + 1 / n2)) for cell in cells
    )
    # A propensity score by cells is the share of SD among the records of a cell.
    c = n2 / (n1 + n2)
    pmse = sum((o[cell] + s[cell]) * (s[cell] / (o[cell] + s[cell]) - c) ** 2 for cell in cells) / (n1 + n2)
    df = len(cells) - 1
    ratio = pmse / (df * (1 - c) ** 2 * c / (n1 + n2)) if df else 1 + n2 / n1
    more = [cell for cell in cells if s[cell] * n1 > o[cell] * n2]
    p, q = sum(o[cell] for cell in more) / n1, sum(s[cell] for cell in more) / n2
    return {
        "TVD": tvd,
        "TVD_expected": expected / 2,
        "TVD_se": max(math.sqrt(p * (1 - p) / n1 + q * (1 - q) / n2), 1 / min(n1, n2)),
        "pMSE": pmse,
        "df": df,
        "S_pMSE": ratio,
        "S_pMSE_expected": 1 + n2 / n1,
    }


def relabelled(gt: Sequence[object], sd: Sequence[object]) -> float:
    """Return the distance after matching levels by frequency, the most frequent with the most frequent."""
    o, s = (sorted(Counter(table).values(), reverse=True) for table in (gt, sd))
    longer = max(len(o), len(s))
    o, s = ([*counts, *[0] * (longer - len(counts))] for counts in (o, s))
    return sum(abs(a / len(gt) - b / len(sd)) for a, b in zip(o, s, strict=True)) / 2
