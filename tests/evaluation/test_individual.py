"""Record by record: consistent with the totals of disclosure(), and with a reference that counts."""

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from reference import cap as reference
from reference.cap import Record
from support.sampling import examples, on_some_days
from support.small_tables import KEYS, frame, tables
from support.strategies import Case, cases, measured

import disclosure_pipeline as dp

pytestmark = on_some_days


@given(tables(), tables())
def test_every_record_and_weap_equals_the_reference(gt: list[Record], sd: list[Record]) -> None:
    result = dp.individual_attribution(frame(gt), [frame(sd), frame(gt)], KEYS, "t")
    records: Any = result.records["t", 1]
    weap = result.weap["t"].to_dict()
    assert list(records) == ["CAP_GT", "CAP", "DiSCO", "DiSDiO", "repU"]
    assert [str(dtype) for dtype in records.dtypes] == ["float64"] * 2 + ["bool"] * 3
    assert records.to_numpy().tolist() == [
        list(reference.individual(record, gt, sd).values()) for record in gt
    ]
    for synthesis, table in enumerate((sd, gt), start=1):
        expected = [float(reference.cap(record, table)) for record in table]
        assert [weap[synthesis, place] for place in range(len(table))] == expected


@examples(6)
@given(cases(with_exclusions=False))
def test_records_add_up_to_the_totals(case: Case) -> None:
    """With any groups, special values, edges, types, index, and number of syntheses and targets."""
    totals, gt = measured(case), case.ground_truth_frame
    options: Any = {"groups": case.groups, "special_values": case.special_values, "edges": case.edges}
    result = dp.individual_attribution(gt, case.synthetic_frames, case.keys, case.targets, **options)
    assert result.records.index.equals(gt.index)
    rows = totals.attribute.join(totals.cap).join(totals.identity, on="synthesis").to_dict("index")
    for (target, synthesis), row in rows.items():
        records: Any = result.records[target, synthesis]
        weap: Any = result.weap[target].xs(synthesis)
        assert weap.index.equals(case.synthetic_frames[synthesis - 1].index)
        shares = {name: 100 * int(records[name].sum()) / len(gt) for name in ("DiSCO", "DiSDiO", "repU")}
        shares["Dsyn"] = 100 * int((weap == 1).sum()) / len(weap)
        assert shares == {name: row[name] for name in shares}
        means = {"CAPd": records["CAP_GT"].mean(), "DCAP": records["CAP"].mean(), "CAPs": weap.mean()}
        assert {name: 100 * mean for name, mean in means.items()} == pytest.approx(
            {name: row[name] for name in means}, rel=1e-13
        )


def test_names_and_indexes_may_be_anything() -> None:
    gt = pd.DataFrame({"k": list("xxyz"), "t": list("abab"), "u": [1, 2, 3, 3]})
    names = pd.Index([("a", 1), ("a", 2), 0], tupleize_cols=False)
    plain = dp.individual_attribution(gt, [gt, gt], ["k"], ["t", "u"])
    renamed = gt.set_axis(names, axis=1)
    of_places = renamed.set_axis(pd.MultiIndex.from_product([["a", "b"], [1, 2]]), axis=0)
    result = dp.individual_attribution(renamed, [renamed, of_places], [names[0]], list(names[1:]))
    assert list(result.weap.columns) == [("a", 2), 0]
    assert list(result.weap.loc[2].index) == list(of_places.index)
    for actual, expected in ((result.weap, plain.weap), (result.records, plain.records)):
        assert actual.to_numpy().tolist() == expected.to_numpy().tolist()


def test_several_targets_are_those_of_each() -> None:
    gt = pd.DataFrame({"k": list("xxyz"), "t": list("abab"), "u": [1, 2, 3, 3]})
    sd = pd.DataFrame({"k": list("xyy"), "t": list("aab"), "u": [1, 3, 3]})
    both = dp.individual_attribution(gt, [sd, gt], ["k"], ["t", "u"])
    for target in ("t", "u"):
        single = dp.individual_attribution(gt, [sd, gt], ["k"], target)
        pd.testing.assert_frame_equal(both.records[[target]], single.records)
        pd.testing.assert_frame_equal(both.weap[[target]], single.weap)
        assert both.plot(target).to_dict() == single.plot().to_dict()
    with pytest.raises(dp.InputError, match="target must be one of 't', 'u', not NoneType"):
        both.plot_distributions()
    assert "Means over the GT records, in percent" in str(both)
