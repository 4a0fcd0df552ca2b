"""Disclosure by m syntheses as one release: against the records one by one, and the example data."""

import math
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from reference import disclosure as reference
from reference import together as records
from support.sampling import examples
from support.small_tables import sd2011
from support.strategies import Case, cases, measured

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.frame_columns import COLUMNS

pytestmark = pytest.mark.usefixtures("no_guards")


@examples(10)
@given(cases())
def test_figures_are_those_of_the_records_and_within_their_bounds(case: Case) -> None:
    """With exclusions, groups and missing values; test_conformance.py holds every engine to the same."""
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
        numbers = expected.in_any, expected.agreed
        assert (row["any"], row["agreed"]) == tuple(100 * number / len(gt) for number in numbers)
        others = max(expected.others / len(gt), expected.fresh)
        assert row["DiSCO_any_others"] == pytest.approx(float(100 * others), abs=1e-6)
        beyond = float(100 * (expected.at_n / len(gt) - others))
        assert row["DiSCO_any_beyond"] == pytest.approx(beyond, abs=1e-6)
        error = 100 * max(math.sqrt(expected.squares), 1) / len(gt)
        assert row["DiSCO_any_beyond_se"] == pytest.approx(error, abs=1e-5)
        z = NormalDist().inv_cdf(1 - 1e-4 / len(case.targets))
        by_chance = z * error
        assert row["DiSCO_any_by_chance"] == pytest.approx(by_chance, abs=1e-4)
        beyond = row["DiSCO_any_beyond"]
        assert row["DiSCO_any_beyond_chance"] == (beyond if beyond > by_chance else min(beyond, 0))
    in_any = records.unique_in_any(gt, sds, case.keys)
    assert result.together_identity["repU_any"].to_dict() == {len(sds): 100 * in_any / len(gt)}
    # At least the largest DiSCO, at most their sum; agreed is among any.
    of_target = result.attribute["DiSCO"].groupby(level="target", sort=False)
    disclosed = result.together["any"]
    assert (disclosed >= of_target.max()).all()
    assert (disclosed <= of_target.sum() + 1e-9).all()
    assert (result.together["agreed"] <= disclosed).all()
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
    # Of draws of one record each, so that the people of each key add 0.75.
    error = 50 * math.sqrt(2 * 0.75**2)
    by_chance = NormalDist().inv_cdf(1 - 1e-4) * error
    assert agreed.loc["illness"].tolist() == [100, 100, 0, 75, error, by_chance, 0]
    contradicted = dp.disclosure(gt, [gt, gt, wrong], ["place"]).together
    assert contradicted.loc["illness", ["any", "agreed"]].tolist() == [100, 50]


def test_fresh_samples_disclose_at_most_what_is_expected_of_them() -> None:
    """On average, three of them. Where a third of the people is copied into each, it is more than that."""
    rows, bounded = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        tables = [draw_people(rng, 300) for _ in range(4)]
        fresh = dp.disclosure(tables[0], tables[1:], ["place", "age"], "illness").together
        bounded.append(fresh["DiSCO_any_beyond_chance"].item())
        copied = [
            pd.concat([tables[0].iloc[third::3], table.iloc[:200]]) for third, table in enumerate(tables[1:])
        ]
        leaked = dp.disclosure(tables[0], copied, ["place", "age"], "illness").together
        rows.append([*fresh.loc["illness", ["any", "DiSCO_any_others"]], leaked["any"].item()])
    fresh_any, at_most, leaked_any = np.mean(rows, axis=0)
    assert fresh_any < at_most < leaked_any - 5
    assert max(bounded) <= 0


def test_the_error_is_that_of_fresh_samples() -> None:
    """Five of them are held against one ground truth, whose pairs are many or few for all five alike."""
    rows = []
    for seed in range(60):
        draw = np.random.default_rng(seed)
        places = [draw.integers(0, 5_000, 500) for _ in range(6)]
        truth, *fresh = (pd.DataFrame({"place": of, "illness": of % 7}) for of in places)
        rows.append(dp.disclosure(truth, fresh, ["place"], "illness").together.loc["illness"])
    measured = pd.DataFrame(rows)
    errors = math.sqrt((measured["DiSCO_any_beyond_se"] ** 2).mean())
    assert measured["DiSCO_any_beyond"].std() == pytest.approx(errors, rel=0.2)
    assert measured["DiSCO_any_beyond_chance"].max() <= 0


def draw_people(rng: np.random.Generator, records: int) -> pd.DataFrame:
    age, place = rng.integers(0, 40, records), rng.integers(0, 6, records)
    ill = np.where(rng.random(records) < 0.6, (age + place) % 3, rng.integers(0, 3, records))
    return pd.DataFrame({"place": place, "age": age, "illness": ill})


def test_one_synthesis_is_no_release_of_several() -> None:
    gt = pd.DataFrame({"place": ["north"], "illness": ["flu"]})
    result = dp.disclosure(gt, gt, ["place"])
    assert result.together.empty
    assert list(result.together.columns) == list(COLUMNS["together"])
    with pytest.raises(KeyError):
        result.summary()["any"]
