"""All syntheses as one table: what they tell together is what their records in one frame tell."""

import pandas as pd
import pytest
from hypothesis import given, reject
from support.sampling import examples, on_some_days
from support.strategies import Case, cases, measured

import disclosure_pipeline as dp
from disclosure_pipeline.tables.levels import widen_column

pytestmark = [pytest.mark.usefixtures("no_guards"), on_some_days]

FIGURES = ("identity", "attribute", "cap", "one_way", "two_way", "excluded", "key_overlap", "target_overlap")


def test_one_synthesis_has_no_stack() -> None:
    gt = pd.DataFrame({"place": ["north", "south"], "illness": ["flu", "cold"]})
    assert dp.disclosure(gt, gt, ["place"]).stacked is None
    assert dp.disclosure(gt, [gt], ["place"]).stacked is None


def as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({name: widen_column(frame[name]).astype(object) for name in frame})


@examples(25)
@given(cases(with_groups=False, fewest_syntheses=2))
def test_the_stack_is_one_table_of_all_records(case: Case) -> None:
    together = pd.concat(map(as_objects, case.synthetic_frames), ignore_index=True)
    try:
        expected = measured(case, [as_objects(case.ground_truth_frame), together])
    except dp.InputError:
        reject()
    result = measured(case)
    assert result.stacked is not None
    for name in FIGURES:
        pd.testing.assert_frame_equal(result.stacked.frame(name), expected.frame(name), check_exact=True)
