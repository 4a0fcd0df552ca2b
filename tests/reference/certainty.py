"""Certainty record by record."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from reference.cap import Record


def counts(gt: Sequence[Record], sd: Sequence[Record], c: Fraction) -> tuple[int, int]:
    """Return the numbers of GT records with a claim, and with a right claim.

    Claimed is what at least a share c of the SD records with the person's key have; missing is no level.
    """
    claimed = right = 0
    for q, t in gt:
        levels = Counter(level for key, level in sd if key == q and level is not None)
        named = [level for level, number in levels.items() if number >= c * levels.total()]
        claimed += bool(named)
        right += t in named
    return claimed, right
