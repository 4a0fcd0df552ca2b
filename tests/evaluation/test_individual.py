"""Record by record: consistent with the totals of disclosure(), and with a reference that counts."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import cap as reference
from reference.cap import Record
from support.doubts import FEW_SHARED_VALUES
from support.sampling import examples
from support.small_tables import KEYS, frame, from_counts, measured, sd2011, tables
from support.strategies import Case, cases

import disclosure_pipeline as dp

pytestmark = FEW_SHARED_VALUES

KEYS_2011 = ["sex", "age", "region", "placesize"]
DISCLOSED = ("DiSCO", "DiSDiO", "repU")


@given(tables(), tables())
def test_every_record_equals_the_reference(gt: list[Record], sd: list[Record]) -> None:
    result = dp.individual_attribution(frame(gt), frame(sd), KEYS, "t")
    assert list(result) == ["CAP_GT", "CAP_1", "DiSCO_1", "DiSDiO_1", "repU_1"]
    assert [str(dtype) for dtype in result.dtypes] == ["float64"] * 2 + ["bool"] * 3
    assert result.to_numpy().tolist() == [
        list(reference.individual(record, gt, sd).values()) for record in gt
    ]


@given(tables())
def test_every_weap_equals_the_reference(sd: list[Record]) -> None:
    result = dp.weap(frame(sd), KEYS, "t")
    assert result.name == "WEAP"
    assert result.tolist() == [float(reference.cap(record, sd)) for record in sd]


@examples(6)
@given(cases(with_exclusions=False))
def test_records_add_up_to_the_totals(case: Case) -> None:
    """With any groups, special values, edges, types, and number of syntheses."""
    gt, target = case.ground_truth_frame, case.targets[0]
    measured_columns = [*case.keys, target]
    groups = {name: n for name, n in case.groups.items() if name in measured_columns}
    edges: Any = case.edges
    if not isinstance(edges, str):
        edges = {name: ends for name, ends in edges.items() if name in groups and len(ends) > 2}
        groups = {name: n for name, n in groups.items() if name not in edges}
    options: dict[str, Any] = {"groups": groups, "special_values": case.special_values, "edges": edges}
    totals = dp.disclosure(gt, case.synthetic_frames, case.keys, [target], **options)
    result = dp.individual_attribution(gt, case.synthetic_frames, case.keys, target, **options)
    assert result.index is gt.index or result.index.equals(gt.index)
    for synthesis in range(1, len(case.synthetic_frames) + 1):
        attribute = totals.attribute.iloc[synthesis - 1]
        cap = totals.cap.iloc[synthesis - 1]
        identity = totals.identity.iloc[synthesis - 1]
        share = {name: 100 * int(result[f"{name}_{synthesis}"].sum()) / len(gt) for name in DISCLOSED}
        assert share == {
            "DiSCO": attribute["DiSCO"],
            "DiSDiO": attribute["DiSDiO"],
            "repU": identity["repU"],
        }
        assert 100 * result["CAP_GT"].mean() == pytest.approx(cap["CAPd"], rel=1e-13)
        assert 100 * result[f"CAP_{synthesis}"].mean() == pytest.approx(cap["DCAP"], rel=1e-13)
    [sd, *others] = case.synthetic_frames
    if not others:
        weap = dp.weap(sd, case.keys, target, ground_truth=gt, **options)
        assert weap.index.equals(sd.index)
        assert 100 * weap.mean() == pytest.approx(totals.cap["CAPs"].iloc[0], rel=1e-13)
        assert 100 * int((weap == 1).sum()) / len(sd) == totals.attribute["Dsyn"].iloc[0]


def test_the_example_data_add_up() -> None:
    gt = sd2011("ground_truth")
    syntheses = [sd2011(f"synthetic_m5_{i}") for i in range(1, 6)]
    options: dict[str, Any] = {"groups": {"income": 20}, "special_values": {"income": [-8]}}
    totals = dp.disclosure(gt, syntheses, KEYS_2011, "income", **options)
    result = dp.individual_attribution(gt, syntheses, KEYS_2011, "income", **options)
    disclosed = [100 * int(result[f"DiSCO_{i}"].sum()) / len(gt) for i in range(1, 6)]
    averages = [100 * result[f"CAP_{i}"].mean() for i in range(1, 6)]
    assert disclosed == totals.attribute["DiSCO"].tolist()
    assert averages == pytest.approx(totals.cap["DCAP"].tolist(), rel=1e-13)


def test_the_smoking_example() -> None:
    """Baillargeon & Charest 2020: rows sick and healthy, columns smoking and non-smoking."""
    gt, sd = from_counts([[20, 5], [30, 45]]), from_counts([[8, 7], [25, 60]])
    result = dp.individual_attribution(frame(gt), frame(sd), KEYS, "t")
    sick, healthy = gt.index((("K1", ""), "T1")), gt.index((("K1", ""), "T2"))
    assert result["CAP_GT"].iloc[[sick, healthy]].tolist() == [0.4, 0.6]
    assert result["CAP_1"].iloc[[sick, healthy]].round(4).tolist() == [0.2424, 0.7576]
    assert result["CAP_1"].iloc[sick] == 8 / 33


@examples(15)
@given(tables(), tables())
def test_taub_from_weap(gt: list[Record], sd: list[Record]) -> None:
    """TCAP_taub is what its source says: GT's shares where WEAP is 1 and the key is in GT."""
    certain = dp.weap(frame(sd), KEYS, "t").to_numpy() == 1
    in_gt = np.array([any(q == key for key, _ in gt) for q, _ in sd])
    under_gt = dp.individual_attribution(frame(sd), frame(gt), KEYS, "t")["CAP_1"].to_numpy()
    chosen = under_gt[certain & in_gt]
    expected = 100 * chosen.mean() if len(chosen) else math.nan
    assert measured(gt, sd)["TCAP_taub"] == pytest.approx(expected, nan_ok=True)


def test_any_index_stays() -> None:
    gt = frame([(("x", ""), "a"), (("y", ""), "b"), (("x", ""), "b")])
    gt.index = pd.Index(["one", "two", "two"], name="who")
    result = dp.individual_attribution(gt, gt.iloc[:2], KEYS, "t")
    assert result.index.equals(gt.index)
    assert result.index.name == "who"
    assert result["CAP_1"].tolist() == [1, 1, 0]
    assert dp.weap(gt, KEYS, "t").index.equals(gt.index)


@examples(15)
@given(st.lists(tables(), min_size=1, max_size=3), tables())
def test_weap_of_several_syntheses_is_that_of_each(syntheses: list[list[Record]], gt: list[Record]) -> None:
    frames = [frame(records) for records in syntheses]
    for ground_truth in (None, frame(gt)):
        shares = dp.weap(frames, KEYS, "t", ground_truth=ground_truth)
        assert shares.name == "WEAP"
        assert shares.index.names[0] == "synthesis"
        for synthesis, synthetic in enumerate(frames, start=1):
            single = dp.weap(synthetic, KEYS, "t", ground_truth=ground_truth)
            pd.testing.assert_series_equal(shares.xs(synthesis), single, check_exact=True)


def test_weap_takes_the_groups_of_disclosure_where_it_knows_the_ground_truth() -> None:
    sd = pd.DataFrame({"k": ["x", "x"], "t": [1, 2]})
    gt = pd.DataFrame({"k": ["x"] * 12, "t": [1, 2, 3, 3, 3, 3, 100, 200, 300, 400, 500, 600]})
    groups = {"t": 4}
    assert dp.weap(sd, ["k"], "t", groups=groups).tolist() == [0.5, 0.5]
    assert dp.weap(sd, ["k"], "t", groups=groups, ground_truth=gt).tolist() == [1, 1]
    assert dp.weap(sd, ["k"], "t", groups=groups, ground_truth=gt, edges="ground_truth").tolist() == [1, 1]
    assert dp.weap(sd, ["k"], "t", edges={"t": [0, 10, 20]}).tolist() == [1, 1]


def test_refusals() -> None:
    sd = frame([(("x", ""), "a")])
    with pytest.raises(dp.InputError, match="The sequence of synthetic tables is empty"):
        dp.weap([], KEYS, "t")
    with pytest.raises(dp.InputError, match="Synthetic table 2 has no records"):
        dp.weap([sd, sd.iloc[:0]], KEYS, "t")
    with pytest.raises(dp.InputError, match="Synthetic table 1 has no records") as refused_first:
        dp.weap([sd.iloc[:0], sd], KEYS, "t")
    assert "round" not in str(refused_first.value)
    with pytest.raises(dp.InputError, match="needs the ground truth"):
        dp.weap(sd, KEYS, "t", edges="ground_truth")
    with pytest.raises(dp.InputError, match="Column 'nothing' is not in the synthetic table"):
        dp.weap(sd, KEYS, "nothing")
    with pytest.raises(dp.InputError, match="The synthetic table has no records") as refused:
        dp.weap(sd.iloc[:0], KEYS, "t")
    assert "round" not in str(refused.value)
    assert refused.value.__context__ is None
    with pytest.raises(dp.InputError, match="key and a target"):
        dp.individual_attribution(sd, sd, KEYS, "k1")
    with pytest.raises(dp.InputError, match="is not in the ground truth"):
        dp.individual_attribution(sd, sd, KEYS, None)
    with pytest.raises(dp.InputError, match="is not in the ground truth"):
        dp.individual_attribution(sd, sd, KEYS, ["t"])
