"""The pictures of the individual CAP: the right counts in them, and nothing too large to show."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from reference.cap import Record
from support.sampling import examples
from support.small_tables import KEYS, frame, from_counts, tables

import disclosure_pipeline as dp

MOST_PLACES = 22 * 22
SMOKING = from_counts([[20, 5], [30, 45]])
SMOKING_SD = from_counts([[8, 7], [25, 60]])


def datasets(spec: dict[str, Any]) -> list[pd.DataFrame]:
    return [pd.DataFrame(rows) for rows in spec["datasets"].values()]


def with_columns(spec: dict[str, Any], *columns: str) -> list[pd.DataFrame]:
    return [data for data in datasets(spec) if set(columns) <= set(data)]


@examples(5, 25)
@given(tables(), tables())
def test_every_record_is_in_the_picture(gt: list[Record], sd: list[Record]) -> None:
    [places] = with_columns(dp.plot_individual_cap(frame(gt), frame(sd), KEYS, "t").to_dict(), "GT", "SD")
    assert places["records"].sum() == len(gt)
    assert (places["records"] > 0).all()
    rows = dp.plot_cap_distributions(frame(gt), [frame(sd), frame(gt)], KEYS, "t").to_dict()
    [bins] = with_columns(rows, "CAP")
    assert bins.groupby("synthesis")["records"].sum().tolist() == [len(gt), len(gt)]
    assert bins.groupby("synthesis")["share"].sum().tolist() == pytest.approx([100, 100])


@examples(5, 25)
@given(tables(), tables())
def test_records_stand_at_their_own_cap(gt: list[Record], sd: list[Record]) -> None:
    """Exactly 0 and exactly 1 have places of their own."""
    [places] = with_columns(dp.plot_individual_cap(frame(gt), frame(sd), KEYS, "t").to_dict(), "GT", "SD")
    each = dp.individual_attribution(frame(gt), frame(sd), KEYS, "t")
    for column, name in (("CAP_GT", "GT"), ("CAP_1", "SD")):
        for chance, records in each[column].value_counts().items():
            label = "0" if chance == 0 else "1" if chance == 1 else None
            if label:
                assert places.loc[places[name] == label, "records"].sum() == records
        between = places[~places[name].isin(["0", "1"])]
        low = np.sort(np.repeat(between[f"{name}_from"].to_numpy(), between["records"].to_numpy()))
        inside = each[column][(each[column] > 0) & (each[column] < 1)].sort_values().to_numpy()
        assert ((low <= inside + 1e-12) & (inside < low + 0.05 + 1e-12)).all()


def test_the_smoking_example() -> None:
    chart = dp.plot_individual_cap(frame(SMOKING), frame(SMOKING_SD), KEYS, "t")
    [places] = with_columns(chart.to_dict(), "GT", "SD")
    shown = {(row["GT"], row["SD"]): row["records"] for row in places.to_dict("records")}
    assert shown == {
        ("0.10 to 0.15", "0.10 to 0.15"): 5,
        ("0.40 to 0.45", "0.20 to 0.25"): 20,
        ("0.60 to 0.65", "0.75 to 0.80"): 30,
        ("0.90 to 0.95", "0.85 to 0.90"): 45,
    }


def test_syntheses_are_in_order_of_their_average_and_gt_is_a_line() -> None:
    gt, sd = frame(SMOKING), frame(SMOKING_SD)
    other = frame([(("elsewhere", ""), "T1")])
    spec = dp.plot_cap_distributions(gt, [other, sd, gt], KEYS, "t").to_dict()
    totals = dp.disclosure(gt, [other, sd, gt], KEYS, "t").cap
    [bins] = with_columns(spec, "CAP")
    assert totals["DCAP"].rank().tolist() == [1, 3, 2]
    order = [row.split(":")[0] for row in spec["facet"]["row"]["sort"]]
    assert order == ["Synthesis 2", "Synthesis 3", "Synthesis 1"]
    averages = bins.groupby("synthesis")[["average", "GT_average"]].first()
    assert (100 * averages["average"]).tolist() == pytest.approx(totals["DCAP"].tolist())
    assert (100 * averages["GT_average"]).tolist() == pytest.approx(totals["CAPd"].tolist())
    rules = [layer for layer in spec["spec"]["layer"] if layer["mark"]["type"] == "rule"]
    assert [layer["encoding"]["x"]["field"] for layer in rules] == ["average", "GT_average"]


def test_a_picture_of_many_records_is_as_small_as_one_of_few() -> None:
    random = np.random.default_rng(1)
    gt, sd = (
        pd.DataFrame({"k": random.integers(0, 30_000, 200_000), "t": random.geometric(0.4, 200_000)})
        for _ in range(2)
    )
    [places] = with_columns(dp.plot_individual_cap(gt, sd, ["k"], "t").to_dict(), "GT", "SD")
    assert places["records"].sum() == 200_000
    assert len(places) <= MOST_PLACES
    [bins] = with_columns(dp.plot_cap_distributions(gt, [sd, gt], ["k"], "t").to_dict(), "CAP")
    assert len(bins) <= 2 * 22


def test_no_value_of_a_record_is_in_the_picture() -> None:
    gt = frame([(("secret key", ""), "secret level"), (("another secret", ""), None)])
    for chart in (
        dp.plot_individual_cap(gt, [gt, gt], KEYS, "t"),
        dp.plot_cap_distributions(gt, [gt, gt], KEYS, "t"),
    ):
        assert "secret" not in chart.to_json()


def test_both_can_be_drawn() -> None:
    drawing = pytest.importorskip("vl_convert")
    gt, sd = frame(SMOKING), frame(SMOKING_SD)
    for chart in (
        dp.plot_individual_cap(gt, sd, KEYS, "t"),
        dp.plot_individual_cap(gt, [sd, gt], KEYS, "t"),
        dp.plot_cap_distributions(gt, sd, KEYS, "t"),
        dp.plot_cap_distributions(gt, [sd] * 12, KEYS, "t"),
    ):
        assert len(drawing.vegalite_to_png(chart.to_json())) > 1000


def test_bad_input_is_refused() -> None:
    gt = frame(SMOKING)
    for plot in (dp.plot_individual_cap, dp.plot_cap_distributions):
        with pytest.raises(dp.InputError, match="is not in the ground truth"):
            plot(gt, gt, KEYS, "nothing")
