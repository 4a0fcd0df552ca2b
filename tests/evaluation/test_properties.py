"""Changes of tables that change no figure, to the last bit: how they are stored, and in which order.

test_against_reference.py tests the figures themselves, whatever the levels are called and the keys' order is.
"""

import copy
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from support.figures import assert_same_frame
from support.sampling import examples
from support.strategies import Case, cases, converted, measured

import disclosure_pipeline as dp

FRAMES = ("identity", "attribute", "cap", "identity_after_exclusions", "excluded", "one_way", "two_way")


def shuffled(data: DataObject, frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[data.draw(st.permutations(range(len(frame))))]


def measured_without_a_trace(case: Case) -> dp.Disclosure:
    """All figures of a case, for which neither the tables nor the options are touched."""
    frames = [case.ground_truth_frame, *case.synthetic_frames]
    frames_before = [frame.copy(deep=True) for frame in frames]
    options = (case.keys, case.targets, case.groups, case.special_values, case.edges, case.exclusions)
    options_before = copy.deepcopy(options)
    result = measured(case)
    dp.replicated_uniques(case.ground_truth_frame, case.synthetic_frames[0], case.keys)
    for frame, before in zip(frames, frames_before, strict=True):
        assert_same_frame(frame, before)
    assert options == options_before
    return result


def stored_otherwise(case: Case, data: DataObject) -> Case:
    """The same values in other types, in other orders of rows; a column nobody asks for is in some table."""
    other = data.draw(converted(case))
    unused = data.draw(st.sampled_from(["unused", "DiSCO", "level_0"]))
    in_gt = data.draw(st.booleans())
    return replace(
        other,
        ground_truth_frame=shuffled(data, other.ground_truth_frame).assign(**{unused: 1} if in_gt else {}),
        synthetic_frames=[
            shuffled(data, frame).assign(**{unused: range(len(frame))} if not in_gt else {})
            for frame in other.synthetic_frames
        ],
    )


@examples(5, 50)
@given(cases(), st.data())
def test_neither_storage_nor_order_matters(case: Case, data: DataObject) -> None:
    """Every frame has the same rows in the same order, those of flags too."""
    result, again = measured_without_a_trace(case), measured(stored_otherwise(case, data))
    for name in FRAMES:
        assert_same_frame(again.frame(name), result.frame(name))


TABLE = pd.DataFrame({"age": [18, 19], "job": ["COOK", "NURSE"]})


def test_a_result_is_frozen() -> None:
    """Figures cannot be put in the place of others."""
    result = dp.disclosure(TABLE, TABLE, keys=["age"], targets=["job"])
    with pytest.raises(AttributeError):
        result.identity = result.attribute  # type: ignore[misc]
    with pytest.raises(AttributeError):
        dp.Exclusions().count_over = 3  # type: ignore[misc]


def test_each_frame_is_its_own() -> None:
    """What is written into one shows in no other, nor in the next result; empty ones are not shared."""
    changed = dp.disclosure(TABLE, TABLE, ["age"], "job")
    names = (*FRAMES, "certainty", "target_overlap")
    expected = {name: changed.frame(name).copy() for name in names}
    changed.attribute.index.names = ["t", "s"]
    changed.attribute.loc[("job", 1), "DiSCO"] = 0.0
    for name in ("cap", "identity_after_exclusions", "target_overlap"):
        assert changed.frame(name).index.names == ["target", "synthesis"]
    for frame in (changed.certainty, changed.one_way):
        assert frame.empty
        frame["more"], frame.index.names = 1, ["other"] * frame.index.nlevels
    again = dp.disclosure(TABLE, TABLE, ["age"], "job")
    for name in names:
        assert_same_frame(again.frame(name), expected[name])
        assert again.frame(name).index.names == expected[name].index.names
