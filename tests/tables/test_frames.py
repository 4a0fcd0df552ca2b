"""Tables of Polars and Arrow are taken as they are: every figure is that of the same table of pandas."""

import datetime
import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.refusals import refusal

import disclosure_pipeline as dp
from disclosure_pipeline.tables import levels
from disclosure_pipeline.tables.alignment import as_frame, as_frames
from disclosure_pipeline.tables.coding import (
    ROUNDING_NOISE,
    Distinct,
    code_column,
    code_distinct,
    mark_run_starts,
    stack_columns,
)

pytestmark = pytest.mark.usefixtures("no_guards")


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


FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "Polars": pl.from_pandas,
    "Polars with a Categorical": lambda frame: pl.from_pandas(frame).with_columns(
        pl.col("region").cast(pl.Categorical)
    ),
    "Arrow": pa.Table.from_pandas,
    "Arrow in chunks": in_two_chunks,
    "a batch of Arrow": lambda frame: pa.Table.from_pandas(frame).combine_chunks().to_batches()[0],
    "the Arrow interface": OnlyTheInterface,
}
KEYS, TARGETS = ["region", "sex", "age"], ["height", "member", "born"]


@cache
def measured_in_pandas() -> dp.Disclosure:
    return dp.disclosure(people(1), [people(2), people(3)], KEYS, TARGETS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_figures_are_those_of_pandas(form: str, engine: str) -> None:
    expected = measured_in_pandas()
    gt, *syntheses = (FORMS[form](people(seed)) for seed in (1, 2, 3))
    measured = dp.disclosure(gt, syntheses, KEYS, TARGETS, engine=engine)
    for name in ("identity", "attribute", "cap", "one_way", "two_way", "key_overlap"):
        pd.testing.assert_frame_equal(measured.frame(name), expected.frame(name))
    assert measured.warnings == expected.warnings


@pytest.mark.parametrize("form", FORMS)
def test_kinds_may_be_mixed(form: str) -> None:
    gt = people(1)
    in_pandas = dp.disclosure(gt, FORMS[form](gt), KEYS, TARGETS)
    assert in_pandas.identity["UiO"][1] == measured_in_pandas().identity["UiO"][1]
    mixed = dp.disclosure(FORMS[form](gt), [gt, FORMS[form](gt)], KEYS, TARGETS)
    assert mixed.key_overlap["GT_in_SD"].eq(100).all()
    assert dp.copies(FORMS[form](gt), gt)["copies"].iloc[0] == 100


def test_nan_of_polars_is_missing() -> None:
    gt = pl.DataFrame({"k": ["a", "b"], "t": [1.0, float("nan")]})
    sd = pl.DataFrame({"k": ["a", "b"], "t": [1.0, None]})
    assert dp.disclosure(gt, sd, ["k"], "t").attribute["DiSCO"].tolist() == [100]


def test_a_pandas_frame_is_taken_itself() -> None:
    frame = people(1)
    assert as_frame(frame, "x") is frame
    assert [len(table) for table in as_frames(frame, (frame, frame[:3]))] == [200, 200, 3]


def test_a_column_is_neither_a_table_nor_a_list_of_names() -> None:
    columns = (pl.Series(["48151623"]), pa.array(["48151623"]))
    for wrong in (*columns, pa.chunked_array([["48151623"]]), pd.Series(["48151623"]), 48151623):
        message = str(refusal(partial(as_frames, wrong, people(1)), "48151623"))
        assert message.startswith("The ground truth must be a DataFrame")
    for names in (*columns, pl.DataFrame({"48151623": [1]})):
        for roles in ((names, "member"), (["sex"], names)):
            with pytest.raises(dp.InputError, match="must be") as caught:
                dp.disclosure(people(1), people(2), *roles)
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


def arrow(values: Any, kind: pa.DataType, *, encoded: bool = False) -> pd.Series:
    array = pa.array(values).cast(kind)
    return pd.Series(pd.arrays.ArrowExtensionArray(array.dictionary_encode() if encoded else array))


DAYS = [datetime.date(2020, 1, 1), datetime.date(2021, 6, 30), None]
TIMES = pd.to_datetime(pd.Series(DAYS))
INSTANTS = TIMES.dt.tz_localize("UTC")
AMOUNTS = [Decimal("0.5"), Decimal(2), None]
SAME_VALUES: dict[str, list[pd.Series]] = {
    "dates": [
        TIMES,
        TIMES.astype("category"),
        pd.Series(DAYS, dtype=object).astype("category"),
        arrow(DAYS, pa.date32()),
        arrow(TIMES, pa.timestamp("ns"), encoded=True),
    ],
    "instants": [
        INSTANTS,
        INSTANTS.dt.tz_convert("Asia/Tokyo").astype("category"),
        arrow(INSTANTS, pa.timestamp("us", "UTC"), encoded=True),
        arrow(INSTANTS, pa.timestamp("ns", "UTC"), encoded=True),
    ],
    "decimals": [
        pd.Series(AMOUNTS, dtype=object),
        pd.Series(AMOUNTS, dtype=object).astype("category"),
        arrow(AMOUNTS, pa.decimal128(10, 2)),
        pd.Series([0.5, 2, None]),
        pd.Series([0.5, 2, None], dtype=object),
        pd.Series([0.5, 2, None]).astype("category"),
    ],
    "whole numbers": [
        pd.Series([2**64 - 1, 2**64 - 2, 1], dtype="uint64"),
        pd.Series([2**64 - 1, 2**64 - 2, 1], dtype=object),
        pd.Series([2**64 - 1, 2**64 - 2, 1], dtype="uint64").astype("category"),
    ],
}


@pytest.mark.parametrize("kind", SAME_VALUES)
def test_columns_of_several_types_are_stacked(kind: str) -> None:
    for first, second in product(SAME_VALUES[kind], repeat=2):
        column = code_column("x", (stack_columns([first, second]), first), TABLES)
        stacked, alone = (codes.tolist() for codes in column.codes)
        assert stacked == 2 * alone and len(set(alone)) == len(alone), (first.dtype, second.dtype)


def test_large_categories_beside_fractions_keep_their_digits() -> None:
    columns = [pd.Series([0.5]).astype("category"), pd.Series([2**64 - 2, 2**64 - 1]).astype("category")]
    assert stack_columns(columns).cat.categories.tolist() == [0.5, 2**64 - 2, 2**64 - 1]


# Codes are counted as the table stores them, whatever the type


@given(
    st.lists(st.integers(-128, 127), min_size=1, max_size=50),
    st.sampled_from(["i1", "i2", "i8"]),
    st.booleans(),
)
def test_codes_are_counted_as_they_are_stored(values: list[int], dtype: str, with_missing: bool) -> None:
    """Whole numbers from the lowest on; or codes from 0 on, of which -1 is missing."""
    if with_missing:
        values = [max(value, -1) for value in values]
    lowest = 0 if with_missing else min(values)
    entries = max(0, *values) - lowest + 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "_CHUNK_OF_BYTES", 4)
        patch.setattr(levels, "_MANY", 0)
        counts = levels.count_codes(np.array(values, dtype=dtype), lowest, entries)
    expected = [values.count(lowest + i) for i in range(entries - 1)]
    assert counts.tolist() == [*expected, 0 if lowest else values.count(-1)]


def test_all_values_of_a_byte() -> None:
    counts = levels.count_codes(np.arange(256, dtype=np.uint8).repeat(257), 0, 257)
    assert counts.tolist() == [257] * 256 + [0]


# Floats that differ by rounding noise are one level, and the ledger says of how many records


TABLES = ("the ground truth", "the synthetic table")


def slowly(levels: list[float]) -> list[bool]:
    begins: list[bool] = []
    first, has_whole = math.nan, False
    for level in levels:
        whole = level.is_integer() if math.isfinite(level) else False
        near = math.isfinite(level) and math.isfinite(first) and level <= first + abs(first) * ROUNDING_NOISE
        if near and not (whole and has_whole):
            begins.append(False)
            has_whole = has_whole or whole
        else:
            begins.append(True)
            first, has_whole = level, whole
    return begins


NOISY = [0.0, 1.0, 0.3, -7.5, 1e9, 1e9 + 1, 1e9 + 2, -(1e9), 1e300, 1e-320, math.inf, -math.inf]
VALUES = st.lists(st.tuples(st.sampled_from(NOISY), st.integers(-30, 30)), max_size=60)


@given(VALUES, st.lists(st.floats(allow_nan=False)))
@example([(1.0, noise) for noise in range(30)], [])
@example([(1e9, 0), (1e9 + 1, 0), (1e9 + 2, 0)], [])
def test_runs_are_those_that_are_found_one_by_one(
    values: list[tuple[float, int]], others: list[float]
) -> None:
    noisy = {value * (1 + (0 if math.isinf(value) else noise) * 1e-10) for value, noise in values}
    levels = sorted({*noisy, *others})
    first = mark_run_starts(np.array(levels, dtype=np.float64))
    assert (first is None) == all(slowly(levels))
    assert first is None or first.tolist() == slowly(levels)


def test_a_sum_is_the_number_that_it_stands_for() -> None:
    gt, sd = pd.Series([0.3, 0.5, None, 0.1 + 0.2]), pd.Series([0.1 + 0.2, 0.1 + 0.2, 0.7])
    column = code_column("x", (gt, sd), TABLES)
    assert column.levels.tolist() == [0.3, 0.5, 0.7]
    assert [codes.tolist() for codes in column.codes] == [[0, 1, 3, 0], [0, 0, 2]]
    assert [table.rounded for table in column.tables] == [1, 2]


def test_of_distinct_values_the_records_are_counted() -> None:
    tables = [
        Distinct(pd.Series([0.3, 0.5, 0.1 + 0.2]), np.array([5, 1, 2, 4])),
        Distinct(pd.Series([0.1 + 0.2, 0.7]), np.array([10, 1, 0])),
    ]
    column = code_distinct("x", tables, TABLES)
    assert column.levels.tolist() == [0.3, 0.5, 0.7]
    assert [counts.tolist() for counts in column.counts] == [[7, 1, 0, 4], [10, 0, 1, 0]]
    assert [table.rounded for table in column.tables] == [2, 10]


@pytest.mark.parametrize(
    "values",
    [
        [1_000_000_001, 1_000_000_002],
        [1_000_000_001.0, 1_000_000_002.0],
        [2**53, 2**53 - 1],
        [float(2**53), float(2**53 - 1)],
        [1.0, 1.00000001],
        [0.0, 1e-300],
    ],
)
def test_what_is_no_noise(values: list[float]) -> None:
    column = code_column("x", (pd.Series(values), pd.Series(values)), TABLES)
    assert len(column.levels) == len(values)
    assert [table.rounded for table in column.tables] == [0, 0]
