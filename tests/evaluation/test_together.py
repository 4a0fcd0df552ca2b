"""What m syntheses disclose as one release: against the records one by one, and the example data."""

import pandas as pd
import pytest
from hypothesis import given
from reference import disclosure as reference
from reference import together as records
from support.doubts import FEW_SHARED_VALUES
from support.sampling import examples
from support.small_tables import sd2011
from support.strategies import Case, cases, measured

import disclosure_pipeline as dp

pytestmark = FEW_SHARED_VALUES


@examples(10)
@given(cases())
def test_figures_are_those_of_the_records_and_within_their_bounds(case: Case) -> None:
    """With exclusions, groups and missing values; test_engines.py holds every engine to the same."""
    result = measured(case)
    if len(case.synthetics) == 1:
        assert result.together.empty
        assert result.together_identity.empty
        return
    names = [*case.keys, *case.targets]
    gt, sds = reference.all_leveled(
        case.ground_truth, case.synthetics, names, case.groups, case.special_values, case.edges
    )
    for target in case.targets:
        expected = records.together(gt, sds, case.keys, target, case.exclusions)
        row = result.together.loc[target]
        assert (row["any"], row["agreed"]) == tuple(100 * number / len(gt) for number in expected)
    in_any = records.unique_in_any(gt, sds, case.keys)
    assert result.together_identity["repU_any"].to_dict() == {len(sds): 100 * in_any / len(gt)}
    assert_within_bounds(result)


def assert_within_bounds(result: dp.Disclosure) -> None:
    """At least the largest DiSCO, at most their sum; agreed is among any."""
    of_target = result.attribute["DiSCO"].groupby(level="target", sort=False)
    in_any = result.together["any"]
    assert (in_any >= of_target.max()).all()
    assert (in_any <= of_target.sum() + 1e-9).all()
    assert (result.together["agreed"] <= in_any).all()
    repU = result.identity["repU"]
    assert repU.max() <= result.together_identity["repU_any"].item() <= repU.sum() + 1e-9


def test_the_example_data() -> None:
    """Five syntheses, four keys: any 32.7, agreed 5.98 (depress), any 42.5 (ls), 73.5 (marital)."""
    syntheses = [sd2011(f"synthetic_m5_{i}") for i in range(1, 6)]
    keys = ["sex", "age", "region", "placesize"]
    result = dp.disclosure(sd2011("ground_truth"), syntheses, keys, ["depress", "ls", "marital"])
    assert result.together["any"].round(1).to_dict() == {"depress": 32.7, "ls": 42.5, "marital": 73.5}
    assert result.together["agreed"].round(2).to_dict()["depress"] == 5.98
    assert result.together_identity["repU_any"].round(2).to_dict() == {5: 38.84}
    assert "repU in any of them 38.84 %" in str(result)
    assert result.summary()["any"].round(2).to_dict()["ls"] == 42.46


def test_two_that_agree_and_a_third_that_contradicts() -> None:
    gt = pd.DataFrame({"place": ["north", "south"], "illness": ["flu", "cold"]})
    wrong = gt.assign(illness=["cold", "cold"])
    agreed = dp.disclosure(gt, [gt, gt], ["place"]).together
    assert agreed.loc["illness"].tolist() == [100, 100]
    contradicted = dp.disclosure(gt, [gt, gt, wrong], ["place"]).together
    assert contradicted.loc["illness"].tolist() == [100, 50]


def test_one_synthesis_is_no_release_of_several() -> None:
    gt = pd.DataFrame({"place": ["north"], "illness": ["flu"]})
    result = dp.disclosure(gt, gt, ["place"])
    assert result.together.empty
    assert list(result.together.columns) == ["any", "agreed"]
    with pytest.raises(KeyError):
        result.summary()["any"]
