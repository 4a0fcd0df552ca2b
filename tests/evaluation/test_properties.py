"""What must hold for every pair of tables, whatever the figures are."""

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
ALL = 100.0


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


def with_fixed_groups(case: Case) -> Case:
    """The case with groups that do not depend on the syntheses; the case itself, where it is so."""
    if case.groups and case.edges != "ground_truth":
        return replace(case, edges="ground_truth")
    return case


# What holds for any tables and any options


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


def assert_records_are_excluded_or_remain(case: Case, result: dp.Disclosure, plain: dp.Disclosure) -> None:
    """Every record of a table is either taken out by one step or left."""
    sizes = result.excluded.sum(axis=1)
    assert sizes.equals(plain.excluded["remaining"])
    assert (sizes.xs("original", level="table") == len(case.ground_truth)).all()
    for synthesis, records in enumerate(case.synthetics, start=1):
        assert (sizes.xs((synthesis, "synthetic"), level=("synthesis", "table")) == len(records)).all()


def assert_nothing_is_excluded(case: Case, plain: dp.Disclosure) -> None:
    """Without exclusions the figures after the exclusions are those of all records."""
    nothing = Exclusions(missing_targets=[], missing_keys=[], count_over=10**9)
    result = measured(replace(case, exclusions=nothing))
    assert_equal(result, plain)
    for target in case.targets:
        of_target = result.identity_after_exclusions.loc[[target]].droplevel("target")
        assert_same_frame(of_target, result.identity[list(of_target.columns)])
    assert (result.excluded.drop(columns="remaining") == 0).all(axis=None)


def assert_each_synthesis_is_measured_by_itself(case: Case) -> None:
    """Several syntheses together give the rows of several calls, where all calls have the same groups."""
    if len(case.synthetics) == 1:  # the very same call
        return
    exclusions = replace(case.exclusions, target_levels={}, pairs=[])
    case = with_fixed_groups(replace(case, exclusions=exclusions))
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


def assert_an_exact_copy_gives_everything_away(plain_case: Case) -> None:
    """Where SD is GT, every unique is replicated, and every disclosive cell stays so."""
    result = measured(
        replace(
            plain_case, synthetics=[plain_case.ground_truth], synthetic_frames=[plain_case.ground_truth_frame]
        )
    )
    identity = result.identity.loc[1]
    assert identity["repU"] == identity["UiO"] == identity["UiS"] == identity["UiOiS"]
    attribute = result.attribute
    assert (attribute["iS"] == ALL).all()
    for name in ("DiSDiO", "Dorig", "Dsyn", "DiS"):
        assert (attribute["DiSCO"] == attribute[name]).all()
    assert (result.cap["DCAP"] == result.cap["CAPd"]).all()
    assert (result.cap["DCAP"] == result.cap["CAPs"]).all()


def assert_records_that_occur_twice_change_no_share(plain_case: Case, plain: dp.Disclosure) -> None:
    """Of an SD of which every record occurs twice: shares stay as they are, and nobody is unique in it."""
    case = with_fixed_groups(plain_case)
    twice = [pd.concat([frame, frame]) for frame in case.synthetic_frames]
    before = plain if case is plain_case else measured(case)
    after = measured(replace(case, synthetic_frames=twice))
    assert (after.identity[["UiS", "repU"]] == 0).all(axis=None)
    assert_same_frame(after.identity[["UiO", "UiOiS"]], before.identity[["UiO", "UiOiS"]])
    same = ["Dorig", "Dsyn", "iS", "DiS", "DiSCO", "DiSDiO", "max_denom", "mean_denom"]
    assert_same_frame(after.attribute[same], before.attribute[same])
    same = ["baseCAPd", "CAPd", "CAPs", "DCAP", "TCAP"]
    assert_same_frame(after.cap[same], before.cap[same])


@examples(5, 50)
@given(cases(), st.data())
def test_what_holds_for_any_tables(case: Case, data: DataObject) -> None:
    """Drawing tables and measuring them takes most of the time, so that all is asked of the same ones."""
    result = measured_without_a_trace(case)
    # What is a part of something is not larger, and no percentage leaves 0 to 100.
    attribute = result.attribute
    assert (attribute["DiSDiO"] <= attribute["DiSCO"]).all()
    assert (attribute["DiSCO"] <= attribute["DiS"]).all()
    assert (attribute["DiS"] <= attribute["iS"]).all()
    assert (attribute["DiSDiO"] <= attribute["Dorig"]).all()
    assert (attribute["mean_denom"].fillna(0) <= attribute["max_denom"]).all()
    for identity in (result.identity, result.identity_after_exclusions):
        assert (identity["UiOiS"] <= identity["UiO"]).all()
        assert (identity["repU"] <= identity["UiOiS"]).all()
        percentages = identity.filter(regex="^(?!.*beyond)")  # a difference
        assert percentages.ge(0).all(axis=None)
        assert percentages.le(ALL).all(axis=None)
    shares = pd.concat(
        [
            attribute[["Dorig", "Dsyn", "iS", "DiS", "DiSCO", "DiSDiO"]],
            result.cap[["baseCAPd", "CAPd", "CAPs", "DCAP", "TCAP"]],
        ],
        axis=1,
    ).fillna(0)
    assert shares.ge(0).all(axis=None)
    assert shares.le(ALL).all(axis=None)
    # The very same result, in the same order, whichever way the same records are stored and asked for again.
    assert_equal(measured(stored_otherwise(case, data)), result)
    # Every frame equal to the last bit, once its rows are put into one order.
    left = measured(
        replace(
            case,
            keys=data.draw(st.permutations(case.keys)),
            targets=data.draw(st.permutations(case.targets)),
        )
    )
    assert_same_frame(left.identity, result.identity)
    for name in BY_TARGET:
        assert_same_frame(getattr(left, name).sort_index(), getattr(result, name).sort_index())
    for name in FLAGS:
        assert_same_frame(in_order(getattr(left, name)), in_order(getattr(result, name)))
    plain_case = replace(case, exclusions=Exclusions())
    plain = measured(plain_case)
    assert_records_are_excluded_or_remain(case, result, plain)
    assert_nothing_is_excluded(case, plain)
    assert_each_synthesis_is_measured_by_itself(case)
    assert_an_exact_copy_gives_everything_away(plain_case)
    assert_records_that_occur_twice_change_no_share(plain_case, plain)


# What holds where levels are renamed, merged or made apart, which groups of numbers do not allow


def assert_merging_levels_of_a_key_makes_nobody_unique(plain_case: Case, data: DataObject) -> None:
    levels = {
        key: sorted(
            {
                level
                for record in plain_case.ground_truth
                if (level := reference.label(record[key])) is not None
            }
        )
        for key in plain_case.keys
    }
    mergeable = [key for key in plain_case.keys if len(levels[key]) > 1]
    if not mergeable:
        return
    key = data.draw(st.sampled_from(mergeable))
    kept, merged = data.draw(st.permutations(levels[key]))[:2]
    merged_case = as_text(plain_case, key, lambda level: kept if level == merged else level)
    coarser = measured(data.draw(converted(merged_case)))
    finer = measured(plain_case)
    assert (coarser.identity["UiO"] <= finer.identity["UiO"]).all()
    assert (coarser.identity["UiS"] <= finer.identity["UiS"]).all()
    assert (coarser.attribute["iS"] >= finer.attribute["iS"]).all()


def assert_tables_without_a_common_key_give_nothing_away(plain_case: Case, data: DataObject) -> None:
    """Where no key combination is shared, nothing is disclosed, and no share of nothing is computed."""
    key = plain_case.keys[0]
    case = as_text(plain_case, key, lambda level: level)
    synthetics: list[list[Record]] = [
        [{**record, key: "only in SD"} for record in table] for table in case.synthetics
    ]
    case = replace(case, synthetics=synthetics)
    result = measured(data.draw(converted(case)))
    assert (result.identity[["UiOiS", "repU"]] == 0).all(axis=None)
    assert (result.attribute[["iS", "DiS", "DiSCO", "DiSDiO", "max_denom"]] == 0).all(axis=None)
    assert result.attribute["mean_denom"].isna().all()
    assert (result.cap["DCAP"] == 0).all()
    assert result.cap["TCAP"].isna().all()
    assert result.one_way.empty
    assert result.two_way.empty


@examples(5, 50)
@given(cases(with_groups=False), st.data())
def test_what_holds_for_levels_of_other_names(case: Case, data: DataObject) -> None:
    # Renaming the levels of both tables alike changes no number (a tie may flag another level).
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
    plain_case = replace(case, exclusions=Exclusions())
    assert_merging_levels_of_a_key_makes_nobody_unique(plain_case, data)
    assert_tables_without_a_common_key_give_nothing_away(plain_case, data)


def test_a_result_is_frozen() -> None:
    """Figures cannot be put in the place of others."""
    frame = pd.DataFrame({"age": [18, 19], "job": ["COOK", "NURSE"]})
    result = dp.disclosure(frame, frame, keys=["age"], targets=["job"])
    with pytest.raises(AttributeError):
        result.identity = result.attribute  # type: ignore[misc]
    with pytest.raises(AttributeError):
        library_exclusions(Exclusions()).count_over = 3  # type: ignore[misc]
