"""Many key sets: the figures of `disclosure()` set by set."""

import itertools
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from support.sampling import examples, on_some_days
from support.surveys import survey

import disclosure_pipeline as dp

pytestmark = pytest.mark.usefixtures("no_guards")

COLUMNS = ("a", "b", "c", "number")


@st.composite
def tables(draw: DrawFn) -> list[pd.DataFrame]:
    """GT and one to three syntheses of few levels, with gaps."""
    texts = st.sampled_from(["x", "y", "z", None])
    record = st.tuples(texts, texts, st.booleans(), st.sampled_from([-8, 0, 1, 2, 5, 7, None]))
    actual = draw(st.lists(st.lists(record, min_size=1, max_size=12), min_size=2, max_size=4))
    kinds = {"a": "category", "b": object, "c": bool, "number": "Int64"}
    return [pd.DataFrame(records, columns=list(COLUMNS)).astype(kinds) for records in actual]


SETS = [keys for size in (1, 2, 3) for keys in itertools.permutations(COLUMNS, size)]


@on_some_days
@examples(15)
@given(
    tables(),
    st.lists(st.sampled_from(SETS), min_size=1, max_size=3, unique_by=frozenset),
    st.booleans(),
)
def test_the_figures_are_those_of_disclosure(
    frames: list[pd.DataFrame], key_sets: list[tuple[str, ...]], grouped: bool
) -> None:
    """Every figure is the very same float as with the keys of a set alone, and nothing else is there."""
    options: dict[str, Any] = {}
    if grouped:
        options = {"groups": {"number": 2}, "special_values": {"number": [-8]}, "edges": "ground_truth"}
    targets = [name for name in COLUMNS if not all(name in keys for keys in key_sets)]
    result = dp.disclosure_of_key_sets(frames[0], frames[1:], key_sets, **options)
    assert result.key_sets == tuple(key_sets)
    assert result.targets == tuple(targets)
    assert (result.N_d, *result.N_s) == tuple(map(len, frames))
    for frame in (result.identity, result.Dorig, result.DiSCO, result.key_overlap):
        assert frame.index.names == ["keys", "synthesis"]
        assert len(frame) == len(key_sets) * len(result.N_s)
    same: Any = partial(pd.testing.assert_frame_equal, check_exact=True)
    for keys in key_sets:
        others = [target for target in targets if target not in keys]
        one, label = dp.disclosure(frames[0], frames[1:], list(keys), others, **options), ", ".join(keys)
        same(result.identity.loc[label], one.identity[list(result.identity.columns)])
        same(result.key_overlap.loc[label], one.key_overlap.loc["(whole key)"])
        for measure, frame in (("Dorig", result.Dorig), ("DiSCO", result.DiSCO)):
            assert frame.columns.tolist() == targets
            figures: Any = frame.loc[label]
            assert figures[[name for name in targets if name in keys]].isna().all(axis=None)
            expected = one.attribute[measure].unstack("target")[others]
            same(figures[others], expected, check_names=False)


def test_a_summary_row_per_set() -> None:
    frames = [survey(1000, seed) for seed in (1, 2, 3)]
    result = dp.disclosure_of_key_sets(
        frames[0],
        frames[1:],
        itertools.combinations(["sex", "age", "postcode"], 2),
        ["sex", "work", "income"],
    )
    summary = result.summary()
    assert summary["DiSCO"].is_monotonic_decreasing
    assert set(summary.index) == {"sex, age", "sex, postcode", "age, postcode"}
    Dorig: Any = result.Dorig
    DiSCO: Any = result.DiSCO
    identity: Any = result.identity
    for keys, row in summary.iterrows():
        assert row["DiSCO"] == DiSCO.loc[keys].max(axis=None)
        assert row["DiSCO"] == DiSCO.loc[keys, row["target"]].max()
        assert row["Dorig"] == Dorig.loc[keys, row["target"]].iloc[0]
        assert row["repU"] == identity.loc[keys, "repU"].max()
        assert row["UiO"] == identity.loc[keys, "UiO"].iloc[0]
    assert str(result) == repr(result)
    assert "sex, postcode" in str(result)


def test_one_synthesis_one_target_and_generators() -> None:
    gt, sd = survey(300, 1), survey(300, 2)
    listed = dp.disclosure_of_key_sets(gt, [sd], [["sex"], ["age", "postcode"]], ["work"])
    lazy = dp.disclosure_of_key_sets(gt, sd, (iter(keys) for keys in listed.key_sets), "work")
    pd.testing.assert_frame_equal(listed.DiSCO, lazy.DiSCO)
    assert lazy.key_sets == (("sex",), ("age", "postcode"))


def test_a_mismatch_is_warned_of() -> None:
    gt = survey(300, 1, postcodes=90_000)
    sd = gt.assign(work=gt["work"].astype(str).str.upper())
    [of_postcodes] = dp.disclosure_of_key_sets(gt, gt, [["age"], ["work"]], "income").warnings
    assert "'postcode' is like an identifier" in of_postcodes  # of everybody, in a copy
    few = survey(300, 1)
    assert dp.disclosure_of_key_sets(few, few, [["age"], ["work"]], "income").warnings == ()
    result = dp.disclosure_of_key_sets(gt, sd, [["age"], ["work"]], "income")
    assert any("'work'" in text and "upper and lower case" in text for text in result.warnings)
    assert any(text.startswith("1 of 2 whole keys") for text in result.warnings)


def test_progress_is_shown_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    gt, sd = survey(300, 1), survey(300, 2)
    dp.disclosure_of_key_sets(gt, sd, [["sex"], ["age"]], "work")
    assert capsys.readouterr() == ("", "")
    dp.disclosure_of_key_sets(gt, sd, [["sex"], ["age"]], "work", progress=True)
    assert "Measuring the key sets: 100 %" in capsys.readouterr().err


REFUSED: list[tuple[Any, Any, str]] = [
    ([], None, "key_sets is empty"),
    (iter([]), None, "key_sets is empty"),
    ("age", None, "key_sets must be a list of lists of column names, not 'age'"),
    (3, None, "key_sets must be a list of lists of column names, not 3"),
    (pd.DataFrame({"age": [42108]}), None, "not DataFrame"),
    (["age", "sex"], None, r"Key set 1 must be a list of column names, not 'age': write \['age'\]"),
    ([["age"], 3], None, "Key set 2 must be a list of column names, not 3"),
    ([["age"], np.array(["sex"])], None, "Key set 2 must be a list of column names, not ndarray"),
    ([["age"], []], None, "Key set 2 is empty"),
    ([["age", ["sex"]]], None, "Key set 1 must hold column names, not list"),
    ([["age"], ["sex", "age", "sex"]], None, "Key set 2 names 'sex' more than once"),
    ([["age", "sex"], ["work"], ["sex", "age"]], None, "Key sets 1 and 3 are the same, sex, age"),
    ([["age"], ["sexe"]], None, r"Column 'sexe' is not in the ground truth. Did you mean 'sex'"),
    ([["age"]], "t9", "Column 't9' is not in the ground truth"),
    ([["age"]], [], "targets is empty"),
    ([["age"]], ["work", "work"], "targets names 'work' more than once"),
    ([["age"], ["age", "sex"]], ["work", "age"], "Target 'age' is in every key set"),
    ([["age"], ["sex"]], pd.Series(["work"]), "targets must be a list of column names, not Series"),
    ([["age", "sex"], ["income"]], ["age", "sex"], "Key set 1, age, sex, contains every target"),
    ([["age"]], ["work", ["income"]], "targets must hold column names, not list"),
]


@pytest.mark.parametrize(("key_sets", "targets", "message"), REFUSED)
def test_refuses_invalid_arguments_before_work_starts(
    key_sets: Any, targets: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the work started")

    monkeypatch.setattr("disclosure_pipeline.families.key_sets._measure", started)
    with pytest.raises(dp.InputError, match=message):
        dp.disclosure_of_key_sets(survey(20, 1), survey(20, 2), key_sets, targets)


def test_tables_without_a_target_are_refused() -> None:
    frame = survey(20, 1)[["sex"]]
    with pytest.raises(dp.InputError, match="contains every target"):
        dp.disclosure_of_key_sets(frame, frame, [["sex"]])
