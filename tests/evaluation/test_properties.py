"""Changes of tables that change no figure, to the last bit: how they are stored, their order, and names.

test_against_reference.py tests the figures themselves.
"""

import copy
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from reference import disclosure as reference
from reference.disclosure import Exclusions, Level, Record
from support.figures import assert_same_frame
from support.sampling import examples
from support.strategies import Case, Column, cases, converted, library_exclusions, measured

import disclosure_pipeline as dp

BY_TARGET = ("attribute", "cap", "identity_after_exclusions", "excluded")
FLAGS = ("one_way", "two_way")
FRAMES = ("identity", *BY_TARGET, *FLAGS)


def assert_equal(left: dp.Disclosure, right: dp.Disclosure) -> None:
    """Every frame equal to the last bit, in the same order."""
    for name in FRAMES:
        assert_same_frame(getattr(left, name), getattr(right, name))


def in_order(flags: pd.DataFrame) -> pd.DataFrame:
    """The rows of a frame of flags, sorted by what they are about."""
    by_text = flags.astype(object).map(repr)
    return flags.loc[by_text.sort_values(list(by_text.columns)).index].reset_index(drop=True)


def shuffled(data: DataObject, frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[data.draw(st.permutations(range(len(frame))))]


def as_text(case: Case, name: str, rename: Callable[[Level], Level]) -> Case:
    """The case with one column as text, its levels renamed."""

    def change(record: Record) -> Record:
        return {**record, name: rename(reference.label(record[name]))}

    def change_column(column: Column) -> Column:
        if column.name != name:
            return column
        return replace(
            column,
            kind="text",
            in_ground_truth=[rename(reference.label(value)) for value in column.in_ground_truth],
            in_synthetic=[rename(reference.label(value)) for value in column.in_synthetic],
        )

    return replace(
        case,
        columns=[change_column(column) for column in case.columns],
        ground_truth=[change(record) for record in case.ground_truth],
        synthetics=[[change(record) for record in records] for records in case.synthetics],
    )


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


def assert_each_synthesis_is_measured_by_itself(case: Case) -> None:
    """Several syntheses together give the rows of several calls, where all calls have the same groups."""
    if len(case.synthetics) == 1:  # the very same call
        return
    exclusions = replace(case.exclusions, target_levels={}, pairs=[])
    case = replace(case, exclusions=exclusions, edges="ground_truth" if case.groups else case.edges)
    together = measured(case)
    for synthesis, frame in enumerate(case.synthetic_frames, start=1):
        alone = measured(replace(case, synthetic_frames=[frame]))
        of_this = together.identity.loc[[synthesis]]
        assert alone.identity.to_numpy().tolist() == of_this.to_numpy().tolist()
        for name in BY_TARGET:
            assert_same_frame(
                getattr(alone, name).xs(1, level="synthesis"),
                getattr(together, name).xs(synthesis, level="synthesis"),
            )
        for name in FLAGS:
            flags = getattr(together, name)
            of_synthesis = (
                flags[flags["synthesis"] == synthesis].drop(columns="synthesis").reset_index(drop=True)
            )
            pd.testing.assert_frame_equal(
                getattr(alone, name).drop(columns="synthesis"),
                of_synthesis,
                check_exact=True,
                check_dtype=False,
            )


@examples(5, 50)
@given(cases(), st.data())
def test_neither_storage_nor_order_nor_other_syntheses_matter(case: Case, data: DataObject) -> None:
    """Drawing tables and measuring them takes most of the time, so that all is asked of the same ones."""
    result = measured_without_a_trace(case)
    # The very same result, in the same order, whichever way the same records are stored and asked for again.
    assert_equal(measured(stored_otherwise(case, data)), result)
    # Every frame equal to the last bit, once its rows are put into one order.
    left = measured(
        replace(
            case, keys=data.draw(st.permutations(case.keys)), targets=data.draw(st.permutations(case.targets))
        )
    )
    assert_same_frame(left.identity, result.identity)
    for name in BY_TARGET:
        assert_same_frame(getattr(left, name).sort_index(), getattr(result, name).sort_index())
    for name in FLAGS:
        assert_same_frame(in_order(getattr(left, name)), in_order(getattr(result, name)))
    assert_each_synthesis_is_measured_by_itself(case)


@examples(5, 50)
@given(cases(with_groups=False), st.data())
def test_other_names_of_levels_change_no_number(case: Case, data: DataObject) -> None:
    """Levels are renamed in both tables; a tie may flag another level. Groups of numbers do not allow it."""
    new_names: dict[str, dict[Level, Level]] = {}
    other = case
    for column in case.columns:
        values = [*column.in_ground_truth, *column.in_synthetic]
        for table in [case.ground_truth, *case.synthetics]:
            values += [record[column.name] for record in table]
        levels = sorted({level for value in values if (level := reference.label(value)) is not None})
        places = data.draw(st.permutations(range(len(levels))))
        names: dict[Level, Level] = {None: None}
        names |= {level: f"level {place}" for level, place in zip(levels, places, strict=True)}
        new_names[column.name] = names
        other = as_text(other, column.name, names.__getitem__)
    target_levels = {
        target: [new_names[target][reference.label(level)] for level in levels]
        for target, levels in case.exclusions.target_levels.items()
    }
    pairs = [
        replace(
            pair,
            key_level=new_names[pair.key][reference.label(pair.key_level)],
            target_level=new_names[pair.target][reference.label(pair.target_level)],
        )
        for pair in case.exclusions.pairs
    ]
    exclusions = replace(case.exclusions, target_levels=target_levels, pairs=pairs)
    before = measured(case)
    after = measured(data.draw(converted(replace(other, exclusions=exclusions))))
    for name in ("identity", "attribute", "identity_after_exclusions", "excluded"):
        assert_same_frame(getattr(after, name), getattr(before, name))
    assert_same_frame(after.cap, before.cap)
    of_any_level = ["target", "synthesis", "level_records", "total_disclosive", "n_level_disclosive"]
    assert_same_frame(after.one_way[of_any_level], before.one_way[of_any_level])
    numbers = [name for name in before.two_way.columns if name not in ("target_level", "key_level")]
    assert_same_frame(in_order(after.two_way[numbers]), in_order(before.two_way[numbers]))


def test_a_result_is_frozen() -> None:
    """Figures cannot be put in the place of others."""
    frame = pd.DataFrame({"age": [18, 19], "job": ["COOK", "NURSE"]})
    result = dp.disclosure(frame, frame, keys=["age"], targets=["job"])
    with pytest.raises(AttributeError):
        result.identity = result.attribute  # type: ignore[misc]
    with pytest.raises(AttributeError):
        library_exclusions(Exclusions()).count_over = 3  # type: ignore[misc]
