"""The one-way and two-way checks: exact ties at their thresholds, and what exclusions change of them."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
import pytest

import disclosure_pipeline as dp

ENGINES = ["memory", "partitioned", "duckdb://"]


def table(cells: Iterable[tuple[str, str, int]]) -> pd.DataFrame:
    """So many records with each key and job."""
    records = [(key, job) for key, job, count in cells for _ in range(count)]
    return pd.DataFrame(records, columns=["key", "job"])


@pytest.mark.parametrize("engine", ENGINES)
def test_two_way_shares_are_of_all_ground_truth_records_also_after_exclusions(engine: str) -> None:
    ground_truth = table(
        [
            ("a", "COOK", 9),  # 9 of 12: no share above 80 percent, also where no NURSE is looked at
            ("a", "NURSE", 3),
            ("b", "COOK", 9),  # 9 of 10
            ("b", "NURSE", 1),
            ("c", "NURSE", 9),  # 9 of 9, but excluded
        ]
    )
    synthetic = table([("a", "COOK", 2), ("b", "COOK", 2), ("c", "NURSE", 2)])

    def flags(exclude: dp.Exclusions | None) -> list[tuple[object, ...]]:
        result = dp.disclosure(ground_truth, synthetic, ["key"], "job", exclude=exclude, engine=engine)
        columns = ["target_level", "key_level", "npairs", "key_target_total", "key_total"]
        rows = result.two_way[[*columns, "pct_target_key_level"]]
        return sorted(rows.itertuples(index=False, name=None))

    of_b = ("COOK", "b", 9, 9, 10, 90.0)
    assert flags(None) == [of_b, ("NURSE", "c", 9, 9, 9, 100.0)]
    assert flags(dp.Exclusions(target_levels={"job": ["NURSE"]})) == [of_b]
    assert flags(dp.Exclusions(pairs=[dp.Pair("key", "b", "job", "NURSE")])) == flags(None)
    assert flags(dp.Exclusions(pairs=[dp.Pair("key", "b", "job", "COOK")])) == flags(None)[1:]


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
    """Of the disclosed records of a level, and of the records with a level of a key."""
    elsewhere = "b" if check == "one_way" else "a"
    ground_truth = table([("a", "COOK", most), (elsewhere, "NURSE", others), ("c", "NURSE", 1)])
    synthetic = table([("a", "COOK", 1), ("b", "NURSE", 1), ("d", "NURSE", 1)])
    limits: dict[str, Any] = {check: (50, 90)}
    result = dp.disclosure(ground_truth, synthetic, ["key"], "job", **limits)
    share, everyone = 100 * most / (most + others), most + others + 1
    expected = {
        "one_way": ["COOK", everyone, 100 * most / everyone, most + others, most, share],
        "two_way": ["COOK", "key", "a", most, most, most + others, share],
    }
    figures = result.frame(check).drop(columns=["target", "synthesis"])
    assert figures.to_numpy().tolist() == flagged * [expected[check]]
