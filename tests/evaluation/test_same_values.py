"""Figures do not depend on dtypes, the form of missing values, names or size."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow.feather import write_feather
from support.figures import assert_same

import disclosure_pipeline as dp

# Values


def pair_of_tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """GT and a synthesis of every kind of column, with gaps, that share some of their levels."""
    random = np.random.default_rng(3)

    def draw(levels: list[Any], records: int) -> pd.Series:
        position = random.integers(0, len(levels), records)
        return pd.Series([levels[i] for i in position], dtype=object)

    def one(records: int) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "sex": draw(["f", "m", None], records),
                "age": draw([*range(18, 30), None], records).astype("Int64"),
                "work": draw(["office", "field", None], records),
                "income": draw([100, 200, 300, 400, -8, None], records).astype("Int64"),
                "abroad": draw([True, False, None], records),
                "since": pd.to_datetime(draw(["2020-01-01", "2021-06-30", None], records)),
            }
        )

    return one(60), one(70)


ALL_KEYS, ALL_TARGETS = ["sex", "age"], ["work", "income", "abroad", "since"]


def all_figures(gt: pd.DataFrame, sd: Any) -> dict[str, Any]:
    """All figures of the pair of tables, with groups, special values and exclusions."""
    exclude = dp.Exclusions(
        target_levels={"work": ["field"], "abroad": ["False"]},
        missing_keys=["sex"],
        pairs=[dp.Pair("age", 18, "work", "office")],
    )
    result = dp.disclosure(
        gt,
        sd,
        ALL_KEYS,
        ALL_TARGETS,
        groups={"income": 3},
        special_values={"income": [-8]},
        exclude=exclude,
        flags={"one_way": (0, 0), "two_way": (0, 0)},
    )
    names = ("identity", "attribute", "cap", "identity_after_exclusions", "one_way", "two_way", "excluded")
    return {name: getattr(result, name).reset_index().to_dict("list") for name in names}


def as_objects(missing: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The table as Python objects, with one way to write that a value is missing."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        def column(name: str) -> list[Any]:
            return [missing if pd.isna(value) else value for value in frame[name].astype(object)]

        return pd.DataFrame({name: pd.Series(column(str(name)), dtype=object) for name in frame})

    return change


def in_another_order(frame: pd.DataFrame) -> pd.DataFrame:
    """As categories in reversed order, ordered, with a level that does not occur."""
    unused = {"sex": "x", "age": 99, "work": "x", "income": 99, "since": pd.Timestamp("1999-01-01")}
    plain = frame.astype({"age": float, "income": float})

    def change(name: Any) -> pd.Series:
        levels = [*plain[name].astype("category").cat.categories, *([unused[name]] if name in unused else [])]
        return plain[name].astype(pd.CategoricalDtype(levels[::-1], ordered=True))

    return pd.DataFrame({name: change(name) for name in frame})


def arrow_column(values: list[Any], kind: pa.DataType | None) -> Any:
    """The values in a type; older releases of Arrow build no dictionary of large strings from objects."""
    if kind is None or not pa.types.is_dictionary(kind):
        return pa.array(values, type=kind)
    encoded = pa.array(values, kind.value_type).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(kind.index_type), encoded.dictionary)


def as_arrow(types: dict[str, pa.DataType]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        plain = {name: as_objects(None)(frame)[name].tolist() for name in frame}
        plain["since"] = [None if value is None else value.to_pydatetime() for value in plain["since"]]
        return pd.DataFrame(
            {
                name: pd.arrays.ArrowExtensionArray(arrow_column(values, types.get(str(name))))
                for name, values in plain.items()
            }
        )

    return change


def with_missing_level(frame: pd.DataFrame) -> pd.DataFrame:
    """As Arrow dictionaries in which missing is a level; of floats it is NaN."""
    values = {name: column.tolist() for name, column in as_objects(None)(frame).items()}
    arrays = {name: arrow_column(of_column, None) for name, of_column in values.items()}
    arrays["age"] = pa.array(frame["age"].astype(float).to_numpy())
    return pd.DataFrame(
        {
            name: pd.arrays.ArrowExtensionArray(array.dictionary_encode(null_encoding="encode"))
            for name, array in arrays.items()
        }
    )


def with_dates(make: Callable[[pd.Series], Any]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda frame: frame.assign(since=make(frame["since"]))


def in_python(dates: pd.Series, convert: Callable[[Any], object]) -> pd.Series:
    return pd.Series([None if pd.isna(day) else convert(day) for day in dates], dtype=object)


# Beside those that support/strategies.py draws, with gaps, indexes and orders of columns of every kind.
FORMS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "nullable small integers": lambda frame: frame.astype({"age": "UInt8", "income": "Int16"}),
    "objects with NaT": as_objects(pd.NaT),
    "decimals": lambda frame: as_objects(None)(frame).assign(
        age=pd.Series(
            [None if pd.isna(value) else Decimal(int(value)) for value in frame["age"]], dtype=object
        )
    ),
    "ordered categories": in_another_order,
    "Arrow, large and small": as_arrow(
        {"sex": pa.large_string(), "age": pa.uint8(), "income": pa.float32(), "since": pa.date32()}
    ),
    "Arrow dictionaries": as_arrow(
        {"sex": pa.dictionary(pa.int8(), pa.string()), "work": pa.dictionary(pa.int32(), pa.large_string())}
    ),
    "Arrow dictionaries, missing in them": with_missing_level,
    "Arrow decimals": as_arrow({"age": pa.decimal128(10, 2)}),
    **{
        f"dates in {unit}": with_dates(methodcaller("astype", f"datetime64[{unit}]"))
        for unit in ("s", "ms", "us")
    },
    "dates of Python": with_dates(lambda dates: in_python(dates, pd.Timestamp.date)),
    "datetimes of Python": with_dates(lambda dates: in_python(dates, pd.Timestamp.to_pydatetime)),
    "more columns": lambda frame: frame.assign(note=pd.Series([{}] * len(frame), dtype=object), count=1),
}


@pytest.mark.parametrize("change", FORMS.values(), ids=FORMS)
def test_forms_of_the_same_values(change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """In one table, in the other, in both."""
    gt, sd = pair_of_tables()
    wanted = all_figures(gt, sd)
    assert wanted["one_way"]["level"] and wanted["two_way"]["key"]
    for tables in ((change(gt), sd), (gt, change(sd)), (change(gt), change(sd))):
        before = [table.copy(deep=True) for table in tables]
        np.testing.assert_equal(all_figures(*tables), wanted)
        for table, was in zip(tables, before, strict=True):
            pd.testing.assert_frame_equal(table, was)


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_files_in_which_missing_is_a_level(engine: str, tmp_path: Path) -> None:
    values = {"age": [1.5, None, 2.5, 3.5] * 6, "sex": ["m", None, "f"] * 8, "work": ["yes", "no"] * 12}
    arrays = {name: pa.array(column) for name, column in values.items()}
    plain, in_dictionaries = tmp_path / "plain.arrow", tmp_path / "dictionaries.arrow"
    write_feather(pa.table(arrays), plain)
    encoded = {name: array.dictionary_encode(null_encoding="encode") for name, array in arrays.items()}
    write_feather(pa.table(encoded), in_dictionaries)
    wanted = dp.disclosure(plain, plain, ["age", "sex"], "work", engine=engine)
    for tables in ((in_dictionaries, plain), (plain, in_dictionaries)):
        assert_same(dp.disclosure(*tables, ["age", "sex"], "work", engine=engine), wanted)


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
@pytest.mark.parametrize("form", ["Arrow", "pandas", "a file"])
def test_chunks_in_which_missing_is_a_level(form: str, engine: str, tmp_path: Path) -> None:
    """Each has a dictionary of its own, and Arrow unifies none of these."""
    values: dict[str, list[Any]] = {"age": [1.5, None, 2.5, 3.5] * 6, "work": ["yes", "no"] * 12}
    values["sex"] = ["m", None, "f"] * 8
    chunks = [
        pa.table(
            {
                name: pa.array(column[part]).dictionary_encode(null_encoding="encode")
                for name, column in values.items()
            }
        )
        for part in (slice(9), slice(9, None))
    ]
    table: Any = pa.concat_tables(chunks)
    if form == "pandas":
        table = table.to_pandas(types_mapper=pd.ArrowDtype)
    elif form == "a file":
        table = tmp_path / "chunks.arrow"
        with pa.ipc.new_stream(table, chunks[0].schema) as stream:
            for chunk in chunks:
                stream.write_table(chunk)
    plain: Any = pa.table(values)
    if form == "a file":
        write_feather(plain, tmp_path / "plain.arrow")
        plain = tmp_path / "plain.arrow"
    wanted = dp.disclosure(plain, plain, ["age", "sex"], "work", engine=engine)
    assert_same(dp.disclosure(table, plain, ["age", "sex"], "work", engine=engine), wanted)
    if form == "Arrow":
        assert dp.replicated_uniques(plain, table, ["age", "sex"]).remove()[0].shape == (24, 3)


@pytest.mark.parametrize("dtype", ["uint64", "UInt64", object])
def test_integers_beyond_64_bits(dtype: Any) -> None:
    gt = pd.DataFrame({"k": pd.Series([2**64 - 1, 2**63, 1], dtype=dtype), "t": [1, 2, 3]})
    sd = pd.DataFrame({"k": pd.Series([-1, -(2**63), 1], dtype="int64"), "t": [1, 2, 3]})
    assert dp.disclosure(gt, sd, ["k"], "t").identity["repU"][1] == pytest.approx(100 / 3)


@pytest.mark.parametrize("lowest", [1, -1])
def test_integers_that_need_no_sign_beside_others(lowest: int) -> None:
    """They fit no type of integers together, and floats would make one of two."""
    gt = pd.DataFrame({"k": pd.Series([2**63 + 1, 2**63 + 2, lowest], dtype=object), "t": [1, 2, 3]})
    assert dp.disclosure(gt, gt, ["k"], "t").identity["repU"][1] == 100


def test_dates_of_one_zone_and_another() -> None:
    utc = pd.Series(pd.date_range("2020-01-01", periods=4, tz="UTC"))
    gt, sd = pd.DataFrame({"k": utc, "t": 1}), pd.DataFrame({"k": utc.dt.tz_convert("Asia/Tokyo"), "t": 1})
    assert dp.disclosure(gt, sd, ["k"], "t").identity["repU"][1] == 100


UTC = datetime.timezone.utc
SPANS = [datetime.timedelta(hours=1), datetime.timedelta(days=3, microseconds=5), None]
INSTANTS = [datetime.datetime(2020, 1, 1, tzinfo=UTC), datetime.datetime(2021, 6, 30, tzinfo=UTC), None]


@pytest.mark.parametrize("values", [SPANS, INSTANTS], ids=["durations", "instants"])
def test_levels_are_named_by_their_own_values(values: list[Any]) -> None:
    held = pd.Series(values * 4)
    gt = pd.DataFrame({"k": [*"abcd"] * 3, "t": held})
    tokyo = held.dt.tz_convert("Asia/Tokyo")[0] if values is INSTANTS else held.to_numpy()[0]
    for level in (values[0], held[0], tokyo):
        exclude = dp.Exclusions(target_levels={"t": [level]})
        assert dp.disclosure(gt, gt, ["k"], "t", exclude=exclude).excluded["target_levels"].iloc[0] == 4


def test_days_before_nanoseconds_began() -> None:
    """They fit no date in nanoseconds."""
    days = pd.Series(np.array(["0001-01-01", "1492-10-12"], dtype="datetime64[s]"))
    as_python = pd.Series([datetime.date(1, 1, 1), datetime.date(1492, 10, 12)], dtype=object)
    gt, sd = pd.DataFrame({"k": days, "t": 1}), pd.DataFrame({"k": as_python, "t": 1})
    assert dp.disclosure(gt, sd, ["k"], "t").identity["repU"][1] == 100


@pytest.mark.parametrize("kind", [None, pa.timestamp("us"), pa.date32()], ids=str)
@pytest.mark.parametrize("far_in_gt", [True, False])
def test_a_day_beyond_nanoseconds_in_one_table(kind: pa.DataType | None, far_in_gt: bool) -> None:
    """Such as the end of what has none: the other table holds the same type, of which pandas makes these."""
    days = [datetime.date(2020, 1, 1), datetime.date(2021, 6, 30), datetime.date(9999, 12, 31)]
    far, near = (
        pd.DataFrame(
            {
                "k": pd.Series(some, dtype=object)
                if kind is None
                else pd.arrays.ArrowExtensionArray(pa.array(some).cast(kind)),
                "t": 1,
            }
        )
        for some in (days, days[:2])
    )
    gt, sd = (far, near) if far_in_gt else (near, far)
    identity = dp.disclosure(gt, sd, ["k"], "t").identity
    assert identity["repU"][1] == pytest.approx(100 * 2 / len(gt))


# Names

# Beside the texts that support/strategies.py draws.
ODD_NAMES: list[list[Any]] = [
    [0, 1, 2, 3, 4],
    [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)],
    [1.5, True, "1.5", pd.Timestamp("2020-01-01"), datetime.date(2020, 1, 1)],
    ["__class__", "columns", "%s {0}", "x" * 300, "a\nb"],
    [0, "sex", ("a", 1), 2, 1.5],
]


@pytest.mark.parametrize("names", ODD_NAMES)
def test_names_of_columns_do_not_matter(names: list[Any]) -> None:
    plain = ["k1", "k2", "t1", "t2", "t3"]
    source = ["sex", "age", "work", "income", "abroad"]
    gt, sd = (table[source].set_axis(plain, axis=1) for table in pair_of_tables())

    def result(columns: list[Any]) -> dp.Disclosure:
        frames = [table.set_axis(pd.Index(columns, tupleize_cols=False), axis=1) for table in (gt, sd)]
        return dp.disclosure(
            frames[0], frames[1], columns[:2], columns[2:], flags={"one_way": (0, 0), "two_way": (0, 0)}
        )

    wanted, actual = result(plain), result(names)
    assert actual.keys == tuple(names[:2])
    assert actual.targets == tuple(names[2:])
    for frame in ("identity", "attribute", "cap", "identity_after_exclusions", "excluded"):
        np.testing.assert_array_equal(getattr(actual, frame).to_numpy(), getattr(wanted, frame).to_numpy())
    assert list(actual.attribute.index.get_level_values("target")) == names[2:]
    for check, columns in (("one_way", ["target"]), ("two_way", ["target", "key"])):
        renamed = getattr(actual, check)
        assert len(renamed) == len(getattr(wanted, check)) > 0
        for column in columns:
            position = dict(zip(plain, names, strict=True))
            assert renamed[column].to_list() == [position[name] for name in getattr(wanted, check)[column]]
    assert str(actual) and actual._repr_html_()


def test_codes_of_missing_values_beside_names_of_several_parts() -> None:
    gt, sd = (table[["sex", "work"]].fillna({"work": "NA"}) for table in pair_of_tables())
    wanted = dp.disclosure(gt, sd, ["sex"], "work", missing_codes=["NA"])
    names = pd.Index([("a", "sex"), ("a", "work")], tupleize_cols=False)
    gt, sd = (table.set_axis(names, axis=1) for table in (gt, sd))
    actual = dp.disclosure(gt, sd, [names[0]], [names[1]], missing_codes={names[1]: ["NA"]})
    np.testing.assert_array_equal(actual.attribute.to_numpy(), wanted.attribute.to_numpy())


# Size


def test_a_hundred_thousand_levels() -> None:
    """In the key and in the target; half of the synthetic records are those of GT."""
    records = 100_000
    gt = pd.DataFrame({"k": np.arange(records), "t": [f"level {number}" for number in range(records)]})
    sd = gt.copy()
    sd.loc[records // 2 :, "k"] += records
    result = dp.disclosure(gt, sd, ["k"], "t")
    uniques = {"UiO": 100, "UiS": 100, "UiOiS": 50, "repU": 50}
    hits = {"unique_hits": 50.0, "unique_hits_others": 0.0, "unique_hits_apart": 0.0}
    hits |= {"unique_hits_beyond": 50.0}
    hits |= {"unique_hits_beyond_se": 0.001, "unique_hits_beyond_chance": 50}
    assert result.identity.loc[1].to_dict() == uniques | hits
    attribute = result.attribute.iloc[0]
    assert (attribute["Dorig"], attribute["DiSCO"], attribute["DiSDiO"]) == (100, 50, 50)
    assert (attribute["max_denom"], attribute["mean_denom"]) == (1, 1)
