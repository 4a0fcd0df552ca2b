"""Numbers of 16 and 32 bits are the shortest decimals that stand for them, whatever holds them."""

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import disclosure_pipeline as dp
from disclosure_pipeline.tables.coding import code_column, stack_columns
from disclosure_pipeline.tables.encoding import encode, widen_arrow
from disclosure_pipeline.tables.inference import draft
from disclosure_pipeline.tables.levels import level_label, widen_column, widen_floats
from disclosure_pipeline.tables.sources import DuckDBSource, read_raw


def shortest(number: Any) -> float:
    """Return the first decimal, of ever more digits, that is the same number."""
    with np.errstate(over="ignore"):
        for digits in range(20):
            written = float(f"{float(number):.{digits}e}")
            if type(number)(written) == number:
                return written
    raise AssertionError(number)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
@example([float(np.float32(number)) for number in (172.3, -0.0, 123456789, 1e-45, 3.4e38, 2**24 + 2, 1e20)])
def test_any_number_of_32_bits_is_the_shortest_decimal(numbers: list[float]) -> None:
    narrow = np.array(numbers, dtype=np.float32)
    widened = widen_floats(narrow)
    assert widened.tolist() == [shortest(number) for number in narrow]
    assert (widened.astype(np.float32) == narrow).all()
    assert level_label(narrow[0]) == level_label(widened[0])


def test_every_number_of_16_bits_is_the_shortest_decimal() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    assert len(finite) == 63488
    some = finite[:: 7 * 9]
    assert widen_floats(some).tolist() == [shortest(number) for number in some]
    assert [level_label(number) for number in some] == [level_label(shortest(number)) for number in some]
    assert (widen_floats(finite).astype(np.float16) == finite).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_infinite_and_missing_numbers_stay_what_they_are(dtype: type) -> None:
    widened = widen_floats(np.array([math.inf, -math.inf, math.nan, 3, -0.0], dtype=dtype))
    np.testing.assert_array_equal(widened, [math.inf, -math.inf, math.nan, 3.0, 0.0])
    in_arrow = widen_arrow(pa.array(np.array([math.inf, math.nan, 0.1], dtype=dtype)))
    assert in_arrow.type == pa.float64() and in_arrow.null_count == 0
    assert widen_arrow(pa.array([], in_arrow.type)).type == pa.float64()


def test_other_numbers_are_left_alone() -> None:
    for values in (np.array([0.1]), np.array([1]), np.array(["a"], dtype=object)):
        assert widen_floats(values) is values
    for column in (pd.Series([0.1]), pd.Series(pd.Categorical([0.1])), pd.Series(["a"])):
        assert widen_column(column) is column


# Whatever holds the numbers

NUMBERS = [172.3, 0.1, 3.0, 99.95, math.nan, 0.1, 172.3, -12.5, 1e6, 0.333]


IN_16_BITS = [172.2, 0.1, 3.0, 99.9, math.nan, 0.1, 172.2, -12.5, 6e4, 0.333]


def in_arrow(array: pa.Array) -> pd.Series:
    return pd.Series(pd.arrays.ArrowExtensionArray(array))


IN_ARROW = pa.array(np.array(NUMBERS, dtype=np.float32), from_pandas=True)
IN_32_BITS = pd.Series(NUMBERS, dtype="float32")
# Numbers, and a column that holds them.
HOLDERS: dict[str, tuple[list[float], pd.Series]] = {
    "float32": (NUMBERS, IN_32_BITS),
    "Float32": (NUMBERS, IN_32_BITS.astype("Float32")),
    "Arrow": (NUMBERS, in_arrow(IN_ARROW)),
    "Arrow dictionary": (NUMBERS, in_arrow(IN_ARROW.dictionary_encode())),
    "categories": (NUMBERS, IN_32_BITS.astype("category")),
    "objects": (
        NUMBERS,
        pd.Series([None if math.isnan(n) else np.float32(n) for n in NUMBERS], dtype=object),
    ),
    "float16": (IN_16_BITS, pd.Series(IN_16_BITS, dtype="float16")),
    "Arrow halffloat": (IN_16_BITS, in_arrow(pa.array(np.array(IN_16_BITS, dtype=np.float16)))),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_column_is_that_of_64_bits(holder: str) -> None:
    numbers, held = HOLDERS[holder]
    before = held.copy(deep=True)
    wide = pd.Series(numbers)
    for columns in ([wide, held], [held, wide], [held, held]):
        coded = code_column("a", columns, ["GT", "SD"])
        expected = code_column("a", [wide, wide], ["GT", "SD"])
        np.testing.assert_array_equal(coded.levels, expected.levels)
        for codes, expected_codes in zip(coded.codes, expected.codes, strict=True):
            np.testing.assert_array_equal(codes, expected_codes)
    encoded, expected_encoded = encode(held), encode(wide)
    levels = np.append(np.asarray(encoded.levels.to_pylist(), dtype=float), np.nan)
    expected_levels = np.append(np.asarray(expected_encoded.levels.to_pylist(), dtype=float), np.nan)
    np.testing.assert_array_equal(levels[encoded.codes], expected_levels[expected_encoded.codes])
    if holder != "objects":
        np.testing.assert_array_equal(np.asarray(widen_column(held).to_numpy(), dtype=float), numbers)
    pd.testing.assert_series_equal(held, before)


def test_decimals_are_the_numbers_that_they_write() -> None:
    exact = pd.Series([Decimal("172.3"), Decimal("0.10"), Decimal(3)], dtype=object)
    for other in ("float32", "float64"):
        coded = code_column("a", [exact, pd.Series([172.3, 0.1, 3], dtype=other)], ["GT", "SD"])
        assert [list(codes) for codes in coded.codes] == [[2, 0, 1], [2, 0, 1]]
        assert [coded.label(code) for code in range(3)] == ["0.1", "3", "172.3"]


def people(records: int = 500) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a ground truth, and its records in another order with heights of 32 bits."""
    rng = np.random.default_rng(0)
    gt = pd.DataFrame(
        {
            "sex": rng.choice(list("fm"), records),
            "height": np.round(rng.normal(170, 9, records), 1),
            "ill": rng.choice(list("abc"), records),
        }
    )
    copy = gt.sample(frac=1, random_state=1).reset_index(drop=True)
    return gt, copy.assign(height=copy["height"].astype("float32"))


def in_file(write: Callable[[pd.DataFrame, Path], Any], name: str) -> Callable[[pd.DataFrame, Path], Any]:
    def form(frame: pd.DataFrame, folder: Path) -> Path:
        write(frame, folder / name)
        return folder / name

    return form


def in_a_duckdb_file(frame: pd.DataFrame, folder: Path) -> Any:
    import duckdb

    with duckdb.connect(str(folder / "sd.duckdb")) as connection:
        connection.register("frame", pa.Table.from_pandas(frame))
        connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM frame")
    return DuckDBSource(duckdb=str(folder / "sd.duckdb"), table="people")


FORMS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas": lambda frame, _: frame,
    "Arrow": lambda frame, _: pa.Table.from_pandas(frame),
    "Polars": lambda frame, _: pl.from_pandas(frame),
    "Parquet": in_file(pd.DataFrame.to_parquet, "sd.parquet"),
    "Feather": in_file(pd.DataFrame.to_feather, "sd.arrow"),
    "CSV": in_file(partial(pd.DataFrame.to_csv, index=False), "sd.csv"),
    "a file of DuckDB": in_a_duckdb_file,
}
IN_FILES = ("Parquet", "Feather", "CSV", "a file of DuckDB")


@pytest.mark.parametrize(
    ("form", "engine"),
    [*((form, engine) for form in FORMS for engine in ("memory", "partitioned")), ("Parquet", "duckdb://")],
)
def test_a_copy_is_found_whatever_its_numbers_are_stored_in(form: str, engine: str, tmp_path: Path) -> None:
    gt, copy = people()
    is_in_file = form in IN_FILES or engine == "duckdb://"
    original = in_file(pd.DataFrame.to_parquet, "gt.parquet")(gt, tmp_path) if is_in_file else gt
    expected, said = measured_wide()
    assert expected.identity["repU"].iloc[0] == expected.identity["UiO"].iloc[0] > 40
    assert any("78 % of the people are in the synthetic table" in text for text in said)
    actual, said_too = measured(original, FORMS[form](copy, tmp_path), engine)
    is_in_memory = engine == "memory" or form not in IN_FILES
    assert said_too == (said if is_in_memory else [])
    for name in ("identity", "attribute", "key_overlap"):
        pd.testing.assert_frame_equal(actual.frame(name), expected.frame(name))


@cache
def measured_wide() -> tuple[Any, list[str]]:
    gt, copy = people()
    return measured(gt, copy.assign(height=copy["height"].astype(str).astype(float)), "memory")


def measured(gt: Any, sd: Any, engine: str) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = dp.disclosure(gt, sd, ["sex", "height"], ["ill"], engine=engine)
    return result, [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]


@pytest.mark.parametrize("dtype", ["float32", "Float32"])
def test_a_dictionary_is_drafted_as_of_64_bits(dtype: Any, tmp_path: Path) -> None:
    gt, _ = people()
    narrow = gt.assign(height=gt["height"].astype("float32").astype(dtype))
    assert draft(narrow).to_yaml() == draft(gt).to_yaml()
    narrow.to_parquet(tmp_path / "narrow.parquet")
    assert draft(read_raw(tmp_path / "narrow.parquet", "GT")).to_yaml() == draft(gt).to_yaml()


def test_files_of_both_widths_are_one_table(tmp_path: Path) -> None:
    """Columns of 32 and of 64 bits may be stacked: no digit is added."""
    gt, copy = people()
    both = dp.disclosure(gt, [copy, gt], ["sex", "height"], ["ill"])
    assert both.identity["repU"].nunique() == 1
    heights = [copy["height"], gt["height"]]
    for columns in (heights, [column.astype("category") for column in heights]):
        stacked = stack_columns(columns).astype(object)
        assert set(stacked) == set(gt["height"])
    parts = pa.chunked_array([pa.array([0.1], pa.float32()), pa.array([172.3], pa.float32())])
    pq.write_table(pa.table({"a": parts}), tmp_path / "a.parquet")
    levels = read_raw(tmp_path / "a.parquet", "GT")["a"].dropna().astype(str).tolist()
    assert levels == ["0.1", "172.3"]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_numbers_of_16_bits_are_read_from_files(suffix: str, tmp_path: Path) -> None:
    table = pa.table({"a": pa.array(np.array(IN_16_BITS, dtype=np.float16))})
    if suffix == "arrow":
        pa.feather.write_feather(table, tmp_path / "a.arrow")
    else:
        try:
            pq.write_table(table, tmp_path / "a.parquet")
        except pa.ArrowNotImplementedError:
            pytest.skip("this release of Arrow writes no such Parquet")
    levels = read_raw(tmp_path / f"a.{suffix}", "GT")["a"].dropna().astype(str)
    assert levels.astype(float).tolist() == [number for number in IN_16_BITS if not math.isnan(number)]


def test_rounding_changes_as_many_values_as_of_64_bits() -> None:
    gt, copy = people()
    wide = copy.assign(height=copy["height"].astype(str).astype(float))
    applied = [dp.Remedy.top_code("height", at=180), dp.Remedy.round_numbers("height", to=0.1)]
    [narrow, expected] = [
        dp.compare_remedies(gt, sd, ["sex", "height"], ["ill"], applied).figures for sd in (copy, wide)
    ]
    pd.testing.assert_frame_equal(narrow, expected)
