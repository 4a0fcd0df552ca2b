"""The one-way and two-way checks: exact ties at their thresholds, and what exclusions change of them."""

from collections.abc import Iterable

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
def test_one_way_ties_are_no_flags(most: int, others: int, flagged: bool) -> None:
    ground_truth = table([("a", "COOK", most), ("b", "NURSE", others), ("c", "NURSE", 1)])
    synthetic = table([("a", "COOK", 1), ("b", "NURSE", 1), ("d", "NURSE", 1)])
    result = dp.disclosure(ground_truth, synthetic, ["key"], "job", one_way=(50, 90))
    figures = [name for name in result.one_way if name not in {"target", "synthesis"}]
    everyone = most + others + 1
    assert result.one_way[figures].to_dict("records") == flagged * [
        {
            "level": "COOK",
            "level_records": everyone,
            "pct_level_all": 100 * most / everyone,
            "total_disclosive": most + others,
            "n_level_disclosive": most,
            "pct_level_disclosive": 100 * most / (most + others),
        }
    ]


@pytest.mark.parametrize(
    ("large", "others", "flagged"),
    [
        (4, 0, False),  # as many as the first threshold
        (5, 0, True),
        (8, 2, False),  # exactly 80 percent
        (9, 2, True),
        (800, 200, False),
        (801, 200, True),
    ],
)
def test_two_way_ties_are_no_flags(large: int, others: int, flagged: bool) -> None:
    ground_truth = table([("a", "COOK", large), ("a", "NURSE", others), ("b", "NURSE", 4)])
    synthetic = table([("a", "COOK", 1), ("b", "NURSE", 1)])
    result = dp.disclosure(ground_truth, synthetic, ["key"], "job", two_way=(4, 80))
    figures = [name for name in result.two_way if name not in {"target", "synthesis"}]
    assert result.two_way[figures].to_dict("records") == flagged * [
        {
            "target_level": "COOK",
            "key": "key",
            "key_level": "a",
            "npairs": large,
            "key_target_total": large,
            "key_total": large + others,
            "pct_target_key_level": 100 * large / (large + others),
        }
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cell_at_the_threshold_adds_nothing_to_its_pair(engine: str) -> None:
    """Of two key combinations with one level of a key, that with as many records as the threshold."""
    ground_truth = table([("a", "COOK", 5), ("b", "COOK", 4)]).assign(town="X")
    result = dp.disclosure(ground_truth, ground_truth, ["key", "town"], "job", engine=engine)
    of_town = result.two_way[result.two_way["key"] == "town"]
    assert of_town[["npairs", "key_target_total", "key_total"]].to_numpy().tolist() == [[5, 9, 9]]
