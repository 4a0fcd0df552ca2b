"""The one-way and two-way checks: exact ties at their thresholds, of many records as of few."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
import pytest

import disclosure_pipeline as dp


def table(cells: Iterable[tuple[str, str, int]]) -> pd.DataFrame:
    """Build a table with this number of records of each key and job."""
    records = [(key, job) for key, job, count in cells for _ in range(count)]
    return pd.DataFrame(records, columns=["key", "job"])


@pytest.mark.parametrize("check", ["one_way", "two_way"])
@pytest.mark.parametrize(
    ("most", "others", "flagged"),
    [
        (50, 0, False),  # as many as the first threshold
        (51, 0, True),
        (90, 10, False),  # exactly 90 percent
        (91, 10, True),
        (900, 100, False),
        (901, 100, True),
    ],
)
def test_ties_are_no_flags(check: str, most: int, others: int, flagged: bool) -> None:
    """The rule holds for the disclosed records of a level, and for the records with a level of a key."""
    elsewhere = "b" if check == "one_way" else "a"
    ground_truth = table([("a", "COOK", most), (elsewhere, "NURSE", others), ("c", "NURSE", 1)])
    synthetic = table([("a", "COOK", 1), ("b", "NURSE", 1), ("d", "NURSE", 1)])
    limits: dict[str, Any] = {check: (50, 90)}
    result = dp.disclosure(ground_truth, synthetic, ["key"], "job", flags=limits)
    share, everyone = 100 * most / (most + others), most + others + 1
    expected = {
        "one_way": ["COOK", everyone, 100 * most / everyone, most + others, most, share],
        "two_way": ["COOK", "key", "a", most, most, most + others, share],
    }
    figures = result.frame(check).drop(columns=["target", "synthesis"])
    assert figures.to_numpy().tolist() == flagged * [expected[check]]
