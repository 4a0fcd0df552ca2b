"""Tables of Polars and Arrow are taken as they are: every figure is that of the same table of pandas."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import disclosure_pipeline as dp
from disclosure_pipeline.tables.frames import as_frame, as_frames, stack_columns


def people(seed: int, records: int = 200) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": random.choice(np.array(["Łódź", "Kraków", None], dtype=object), records),
            "sex": pd.Categorical(random.choice(["f", "m"], records)),
            "height": random.choice([1.5, 1.75, np.nan], records),
            "age": random.integers(20, 25, records),
            "member": random.choice([True, False], records),
            "born": random.choice(pd.to_datetime(["2000-01-01", "2001-06-30"]), records),
        }
    )


class OnlyTheInterface:
    """A table of which nothing is known but that it has the Arrow interface."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._table = pa.Table.from_pandas(frame)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def in_two_chunks(frame: pd.DataFrame) -> pa.Table:
    return pa.concat_tables([pa.Table.from_pandas(frame[:50]), pa.Table.from_pandas(frame[50:])])


def in_polars(frame: pd.DataFrame) -> Any:
    import polars as pl

    return pl.from_pandas(frame)


def in_polars_with_a_categorical(frame: pd.DataFrame) -> Any:
    import polars as pl

    return pl.from_pandas(frame).with_columns(pl.col("region").cast(pl.Categorical))


FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "Polars": in_polars,
    "Polars with a Categorical": in_polars_with_a_categorical,
    "Arrow": pa.Table.from_pandas,
    "Arrow in chunks": in_two_chunks,
    "a batch of Arrow": lambda frame: pa.Table.from_pandas(frame).combine_chunks().to_batches()[0],
    "the Arrow interface": OnlyTheInterface,
}
KEYS, TARGETS = ["region", "sex", "age"], ["height", "member", "born"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_figures_are_those_of_pandas(form: str, engine: str) -> None:
    gt, *syntheses = people(1), people(2), people(3)
    expected = dp.disclosure(gt, syntheses, KEYS, TARGETS)
    measured = dp.disclosure(
        FORMS[form](gt), [FORMS[form](synthetic) for synthetic in syntheses], KEYS, TARGETS, engine=engine
    )
    for name in ("identity", "attribute", "cap", "one_way", "two_way", "key_overlap"):
        pd.testing.assert_frame_equal(measured.frame(name), expected.frame(name))
    assert measured.warnings == expected.warnings


@pytest.mark.parametrize("form", FORMS)
def test_kinds_may_be_mixed(form: str) -> None:
    gt = people(1)
    assert (
        dp.disclosure(gt, FORMS[form](gt), KEYS).identity["UiO"].iloc[0]
        == (dp.disclosure(gt, gt, KEYS).identity["UiO"].iloc[0])
    )
    assert dp.copies(FORMS[form](gt), gt)["copies"].iloc[0] == 100
    assert dp.disclosure(FORMS[form](gt), [gt, FORMS[form](gt)], KEYS).key_overlap["GT_in_SD"].eq(100).all()


def test_nan_of_polars_is_missing() -> None:
    import polars as pl

    gt = pl.DataFrame({"k": ["a", "b"], "t": [1.0, float("nan")]})
    sd = pl.DataFrame({"k": ["a", "b"], "t": [1.0, None]})
    assert dp.disclosure(gt, sd, ["k"], "t").attribute["DiSCO"].tolist() == [100]


def test_a_pandas_frame_is_taken_itself() -> None:
    frame = people(1)
    assert as_frame(frame, "x") is frame
    assert [len(table) for table in as_frames(frame, (frame, frame[:3]))] == [200, 200, 3]


@pytest.mark.parametrize("form", ["Polars", "Arrow", "chunks", "pandas", "number"])
def test_a_column_is_no_table(form: str) -> None:
    import polars as pl

    wrong = {
        "Polars": pl.Series([48151623]),
        "Arrow": pa.array([48151623]),
        "chunks": pa.chunked_array([[48151623]]),
        "pandas": pd.Series([48151623]),
        "number": 3,
    }[form]
    with pytest.raises(dp.InputError, match="The ground truth must be a DataFrame") as caught:
        as_frames(wrong, people(1))
    assert "48151623" not in f"{caught.value} {caught.value.__context__} {caught.value.__cause__}"


def test_a_column_is_no_list_of_names() -> None:
    import polars as pl

    columns = [pl.Series(["48151623"]), pa.array(["48151623"]), pl.DataFrame({"a": [1]})]
    for arguments in [*((keys, "member") for keys in columns), *((["sex"], keys) for keys in columns)]:
        with pytest.raises(dp.InputError, match="must be") as caught:
            dp.disclosure(people(1), people(2), *arguments)
        assert "48151623" not in str(caught.value)


def test_names_are_unique() -> None:
    table = pa.table([pa.array([1])] * 2, names=["a", "a"])
    with pytest.raises(dp.InputError, match="has several columns named 'a'"):
        as_frames(people(1), table)


def test_stacked_categories_of_several_types_keep_every_level() -> None:
    """A type that fits both would lose digits; no level at all is no level of another type."""
    large = 2**53 + 1
    columns = [
        pd.Series([None, None]).astype("category"),
        pd.Series([True, None]).astype("category"),
        pd.Series([large, 7]).astype("category"),
        pd.Series([0.5, 7.0]).astype("category"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stacked = stack_columns(columns)
    assert stacked.cat.categories.tolist() == [True, 7, large, 0.5]
    assert stacked.isna().tolist() == [True, True, False, True, False, False, False, False]
    assert stacked[4] == large
    assert stack_columns(columns[:2]).cat.categories.tolist() == [True]
