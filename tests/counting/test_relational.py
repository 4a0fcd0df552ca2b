"""The relational engine counts what the engine in memory counts, to the last integer, in every database."""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from support.engines_services import BACKENDS
from support.same_counts import assert_same_counts
from support.sampling import examples
from support.services import PASSWORD
from support.strategies import Case, cases, library_exclusions

import disclosure_pipeline as dp
from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, Target
from disclosure_pipeline.counting.memory.engine import count_in_memory
from disclosure_pipeline.counting.relational import cells as cell_queries
from disclosure_pipeline.counting.relational import cells as class_queries
from disclosure_pipeline.counting.relational import cells as exclusion_queries
from disclosure_pipeline.counting.relational import coding
from disclosure_pipeline.counting.relational import database as target_queries
from disclosure_pipeline.counting.relational.database import count_in_database
from disclosure_pipeline.counting.relational.opened_database import fetch_distinct, open_database_tables
from disclosure_pipeline.counting.relational.staging import ReadTables
from disclosure_pipeline.counting.relational.transfer import connect, fetch_integers, open_table
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.exclusions import code_exclusions
from disclosure_pipeline.measures.exclusions import CodedExclusions
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.alignment import Distinct, Tables, check_tables, code_distinct
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import table_names

MANY = 1000  # different values, at most
EXAMPLES = {"duckdb": 4, "postgres": 2}
EXAMPLES_IN_CI = {"duckdb": 100, "pyspark": 5, "postgres": 25}


@pytest.fixture
def duckdb(databases: Callable[[str], Any]) -> Any:
    return databases("duckdb")


NONE = Grouping({}, {}, "pooled")


# What is counted


@dataclass(frozen=True)
class DatabaseCount:
    """Tables in a database, their columns by different values, and what to count of them."""

    tables: list[Any]
    distincts: dict[Any, list[Distinct]]
    keys: list[CodedColumn]
    targets: list[Target]

    def count(self, on_progress: OnProgress = ignore_progress) -> DisclosureCounts:
        read = ReadTables(self.tables, self.distincts, table_names(len(self.tables)))
        [counts] = count_in_database(
            read, [CountRequest(self.keys, self.targets, together=True)], on_progress
        )
        return counts


def there(backend: Any) -> set[str]:
    """The tables and views that the database has."""
    return set(backend.list_tables())


@contextmanager
def brought(backend: Any, frames: Sequence[pd.DataFrame]) -> Iterator[list[Any]]:
    """The frames as tables of the database; nothing else is left tin_memory."""
    before = there(backend)
    tables = []
    try:
        tables = [open_table(backend, frame, "the table") for frame in frames]
        yield tables
        assert there(backend) == before | {table.get_name().split(".")[-1] for table in tables}
    finally:
        drop = backend.drop_view if backend.name == "pyspark" else backend.drop_table
        for table in tables:
            drop(table.get_name().split(".")[-1], force=True)
    assert there(backend) == before


def database_count_of(tables: list[Any], of: Tables, targets: Sequence[Target]) -> DatabaseCount:
    """What `targets` are to be counted over records, to be counted in the database."""
    names = dict.fromkeys([*of.keys, *(target.column.name for target in targets)])
    distincts = {name: [fetch_distinct(table, name, MANY, "it") for table in tables] for name in names}
    columns = {name: of.grouping.apply(code_distinct(name, distincts[name], of.names)) for name in names}
    coded_targets = [
        Target(columns[target.column.name], target.exclusions, target.list_cells_above) for target in targets
    ]
    return DatabaseCount(tables, distincts, [columns[key] for key in of.keys], coded_targets)


def assert_counts_the_same(
    backend: Any, of: Tables, exclusions: Sequence[dp.Exclusions], list_cells_above: float = math.inf
) -> DisclosureCounts:
    """Counts in a database and in memory, of every target with each of the exclusions."""
    keys, columns = of.code(of.keys), of.code(of.targets)
    targets = [
        Target(column, code_exclusions(excluded, column, keys), list_cells_above)
        for excluded in exclusions
        for column in columns
    ]
    with brought(backend, of.frames) as tables:
        database_count = database_count_of(tables, of, targets)
        for in_database, in_memory in zip(
            [*database_count.keys, *(t.column for t in database_count.targets)],
            [*keys, *(target.column for target in targets)],
            strict=True,
        ):
            assert in_database.levels.tolist() == in_memory.levels.tolist()
            assert_same_counts(in_database.counts, in_memory.counts)
        actual = database_count.count()
    assert_same_counts(actual, count_in_memory(keys, targets, together=True))
    return actual


# Random cases


def without_empty_name(frame: pd.DataFrame) -> pd.DataFrame:
    """Databases have no column without a name."""
    return frame.rename(columns={"": "no name"})


def tables_of(case: Case) -> Tables:
    name = {"": "no name"}
    edges: Any = case.edges
    if not isinstance(edges, str):
        edges = {name.get(column, column): edge for column, edge in edges.items()}
    return check_tables(
        without_empty_name(case.ground_truth_frame),
        [without_empty_name(frame) for frame in case.synthetic_frames],
        [name.get(key, key) for key in case.keys],
        [name.get(target, target) for target in case.targets],
        Grouping(
            {name.get(column, column): n for column, n in case.groups.items()},
            {name.get(column, column): values for column, values in case.special_values.items()},
            edges,
        ),
    )


def exclusions_of(case: Case) -> dp.Exclusions:
    actual = library_exclusions(case.exclusions)
    name = {"": "no name"}

    def renamed(names: Any) -> Any:
        return names if isinstance(names, bool) else [name.get(each, each) for each in names]

    return dp.Exclusions(
        target_levels={name.get(key, key): levels for key, levels in actual.target_levels.items()},
        missing_targets=renamed(actual.missing_targets),
        missing_keys=renamed(actual.missing_keys),
        pairs=[
            replace(pair, key=name.get(pair.key, pair.key), target=name.get(pair.target, pair.target))
            for pair in actual.pairs
        ],
        count_over=actual.count_over,
    )


def test_random_tables(database: Any) -> None:
    """Every target without exclusions and with them, of the same tables: bringing these takes the time."""

    @examples(EXAMPLES.get(database.name, 1), EXAMPLES_IN_CI[database.name])
    @given(cases(most_syntheses=3))
    def check(case: Case) -> None:
        both = [dp.Exclusions(), exclusions_of(case)]
        assert_counts_the_same(database, tables_of(case), both, case.two_way[0])

    check()


# Chosen cases


def survey(records: int, seed: int, *, postcodes: int = 0) -> pd.DataFrame:
    """Two keys with missing values, a third that makes most of them unique; targets with missing values."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 30, records)
    frame = pd.DataFrame(
        {
            "age": pd.array(np.where(age == 7, -1, age), dtype="Int64"),
            "sex": rng.choice(np.array(["f", "m", None], dtype=object), records),
            "work": np.array(list("abcde"))[(age // 7 + (rng.random(records) < 0.1)) % 5],
            "income": np.where(rng.random(records) < 0.1, math.nan, rng.integers(0, 40, records) * 0.5),
        }
    )
    frame.loc[age == 7, "age"] = pd.NA
    return frame.assign(postcode=rng.integers(10_000, 10_000 + postcodes, records)) if postcodes else frame


def surveyed(keys: Sequence[str], *, postcodes: int = 0) -> Tables:
    frames = [survey(n, seed, postcodes=postcodes) for seed, n in enumerate((900, 1000, 150))]
    return check_tables(
        frames[0], frames[1:], keys, ["work", "income"], Grouping({"income": 4}, {}, "pooled")
    )


EXCLUSIONS = dp.Exclusions(
    target_levels={"work": ["b"]},
    missing_targets=["income"],
    missing_keys=["sex"],
    pairs=[dp.Pair(key="age", key_level=3, target="work", target_level="a")],
    count_over=12,
)


def test_large_cells_and_their_pairs(database: Any) -> None:
    of = surveyed(["age", "sex"])
    actual = assert_counts_the_same(database, of, [dp.Exclusions(), EXCLUSIONS], 3)
    plain, reduced = 0, len(of.targets)  # the first target with neither and with all of them
    for target in (plain, reduced):
        assert len(actual.targets[target][0].large.t) > 10
        assert all(len(of_key.groups) for of_key in actual.pairs_of_key[target])
    assert actual.targets[plain][0].excluded is None
    excluded = actual.targets[reduced][0].excluded
    assert excluded is not None
    assert (excluded.taken_out[0] > 0).tolist() == [True, False, True, True, True]


def test_most_records_have_a_key_combination_of_their_own(database: Any) -> None:
    of = surveyed(["postcode", "age"], postcodes=400)
    actual = assert_counts_the_same(database, of, [dp.Exclusions()], 0)
    assert actual.keys[0].uniques.in_GT > 800
    assert len(actual.targets[0][0].large.t) > 0


def test_no_key_combination_occurs_twice(duckdb: Any) -> None:
    gt = pd.DataFrame({"k": range(5), "t": list("aabba")})
    sd = pd.DataFrame({"k": range(5, 9), "t": list("abab")})
    of = check_tables(gt, sd, ["k"], ["t"], NONE)
    actual = assert_counts_the_same(duckdb, of, [dp.Exclusions()], 0)
    assert actual.keys[0].uniques.in_both == 0


def test_keys_of_more_combinations_than_a_number_holds(database: Any) -> None:
    """Nine keys of about 200 levels: they need two words."""
    rng = np.random.default_rng(1)
    names = list("abcdefghi")
    gt = pd.DataFrame(rng.integers(0, 300, (300, 9)), columns=names).assign(t=rng.integers(0, 3, 300))
    sd = gt.iloc[:200].assign(t=rng.integers(0, 3, 200))
    of = check_tables(gt, [sd, gt], names, ["t"], NONE)
    assert coding.lay_out_words([column.size for column in of.code(names)])[-1].word > 0
    actual = assert_counts_the_same(database, of, [dp.Exclusions(), dp.Exclusions(count_over=5)], 0)
    assert actual.keys[0].uniques.in_both == 200


def test_unique_records_that_both_tables_have(database: Any) -> None:
    """No key combination is of one record in all, though each table has one of it."""
    gt = pd.DataFrame({"k": list("abc"), "t": list("xyx")})
    of = check_tables(gt, [gt], ["k"], ["t"], NONE)
    actual = assert_counts_the_same(database, of, [dp.Exclusions()], 0)
    assert actual.keys[0].uniques.in_both == 3


def test_a_target_of_one_level_that_every_key_has(duckdb: Any) -> None:
    """The smallest d and d / d_q are not 0 in_memory."""
    gt = pd.DataFrame({"k": list("aaabbcccc"), "t": list("xyxxyxyyy")})
    of = check_tables(gt, [gt, gt.iloc[:5]], ["k"], ["t"], NONE)
    actual = assert_counts_the_same(duckdb, of, [dp.Exclusions()])
    assert actual.targets[0][0].cells.smallest_d == 1
    assert actual.targets[0][0].cells.smallest_share == Fraction(1, 4)


def test_missing_values_in_every_form(database: Any) -> None:
    """NULL, and NaN where the database has it, are one level, in keys and in targets."""
    gt = pa.table(
        {
            "k": pa.array([1.5, None, math.nan, 2.5, math.nan, None], pa.float64(), from_pandas=False),
            "t": pa.array(["a", None, "a", None, "a", "b"]),
        }
    )
    sd = pa.table({"k": pa.array([None, None, 2.5], pa.float64()), "t": pa.array(["a", "a", None])})
    of = check_tables(gt.to_pandas(), sd.to_pandas(), ["k"], ["t"], NONE)
    tables = [open_table(database, table, "it") for table in (gt, sd)]
    database_count = database_count_of(tables, of, [Target(of.coded("t"), CodedExclusions(), 0)])
    assert database_count.distincts["k"][0].counts.tolist()[-1] == 4
    actual = database_count.count()
    expected = count_in_memory([of.coded("k")], [Target(of.coded("t"), CodedExclusions(), 0)], together=True)
    assert_same_counts(actual, expected)
    assert (
        actual.targets[0][0].totals.records.DiSCO == 1 + 2
    )  # the GT records (missing, a) and (2.5, missing)


def test_several_values_of_one_code(database: Any) -> None:
    """As the data dictionary makes them: "m", "M " and a number stand for one level, "n/a" for missing."""
    raw = [
        pd.DataFrame({"k": ["m", "M ", "1", "f", "n/a", None], "t": [1, 2, 2, 3, 3, 4]}),
        pd.DataFrame({"k": ["M", "m", "f ", None], "t": [1, 2, 3, 4]}),
    ]
    meant = {"m": "m", "M ": "m", "1": "m", "M": "m", "f": "f", "f ": "f", "n/a": None}
    of = check_tables(
        raw[0].assign(k=raw[0]["k"].map(meant)), raw[1].assign(k=raw[1]["k"].map(meant)), ["k"], ["t"], NONE
    )
    with brought(database, raw) as tables:
        distincts = {name: [fetch_distinct(table, name, MANY, "it") for table in tables] for name in "kt"}
        aliased = [Distinct(each.values.astype(object).map(meant), each.counts) for each in distincts["k"]]
        target = Target(code_distinct("t", distincts["t"], of.names), CodedExclusions(), 0)
        [actual] = count_in_database(
            ReadTables(tables, distincts, of.names),
            [CountRequest([code_distinct("k", aliased, of.names)], [target])],
        )
    assert_same_counts(
        actual, count_in_memory([of.coded("k")], [Target(of.coded("t"), CodedExclusions(), 0)])
    )


TYPES = {
    "int8": pa.array([1, -1, None, 1], pa.int8()),
    "int64": pa.array([2**53, 2**53 + 1, None, -(2**62)]),
    "float32": pa.array([0.1, math.inf, None, -0.0], pa.float32()),
    "float64": pa.array([0.1 + 0.2, 0.3, None, -math.inf]),
    "zeros": pa.array([0.0, -0.0, None, 1e300]),
    "boolean": pa.array([True, False, None, True]),
    "text": pa.array(["é", "e\u0301", None, " a "]),
    "decimal": pa.array([Decimal("0.10"), Decimal("12.34"), None, Decimal("0.10")], pa.decimal128(10, 2)),
    "date": pa.array(
        [datetime.date(2020, 2, 29), datetime.date(1700, 1, 1), None, datetime.date(2020, 2, 29)]
    ),
    "time": pa.array(
        [datetime.datetime(2020, 2, 29, 1, 2, 3, 456789), None, None, datetime.datetime(1700, 1, 1)],
        pa.timestamp("us"),
    ),
    "zoned": pa.array(
        [datetime.datetime(2020, 2, 29, 1, 2, 3), None, None, datetime.datetime(1970, 1, 1)]
    ).cast(pa.timestamp("us", "UTC")),
    "nothing": pa.array([None] * 4, pa.string()),
}


def test_types(database: Any) -> None:
    """Values of every type that databases have find their code again: each type is counted by itself."""
    gt = pa.table(TYPES)
    tables = [open_table(database, table, "it") for table in (gt, gt.slice(1))]
    frames = [
        pd.DataFrame({name: pd.Series(pd.arrays.ArrowExtensionArray(table[name])) for name in TYPES})
        for table in (gt, gt.slice(1))
    ]
    *names, last = TYPES
    of = check_tables(frames[0], frames[1], names, [last], NONE)
    database_count = database_count_of(tables, of, [Target(of.coded(last), CodedExclusions(), 0)])
    columns = [*database_count.keys, database_count.targets[0].column]
    read = ReadTables(tables, database_count.distincts, of.names)
    actual = count_in_database(read, [CountRequest([column], []) for column in columns])
    for name, counts in zip(TYPES, actual, strict=True):
        assert_same_counts(counts, count_in_memory([of.coded(name)], []), name)


# What is refused


def test_a_table_that_changes_meanwhile_is_refused(database: Any) -> None:
    """By a record more, by another value, and by a value that was not tin_memory."""
    of = check_tables(
        pd.DataFrame({"k": list("aabb"), "t": list("xyxy")}),
        pd.DataFrame({"k": list("ab"), "t": list("xy")}),
        ["k"],
        ["t"],
        NONE,
    )
    changed = (
        {
            "k": [*"aabbb"],
            "t": [*"xyxyx"],
        },
        {"k": [*"abbb"], "t": [*"xyxy"]},
        {"k": [*"aabb"], "t": ["x", "y", "x", "Secret"]},
        {"k": [*"aab", None], "t": [*"xyxy"]},
    )
    with brought(database, [*of.frames, *map(pd.DataFrame, changed)]) as [gt, sd, *changed_tables]:
        database_count = database_count_of([gt, sd], of, [Target(of.coded("t"), CodedExclusions(), 0)])
        database_count.count()
        for table in changed_tables:
            with pytest.raises(
                InputError, match=r"Column '[kt]' of the ground truth does not hold"
            ) as refused:
                replace(database_count, tables=[table, sd]).count()
            assert_tells_nothing(refused.value, "Secret")


def assert_tells_nothing(error: BaseException, secret: str) -> None:
    """Neither the error nor what it carries along."""
    assert error.__cause__ is None
    assert error.__context__ is None
    assert secret not in str(error)


def test_an_interrupt_leaves_nothing(database: Any) -> None:
    of = surveyed(["age", "sex"])
    with brought(database, of.frames) as tables:
        database_count = database_count_of(tables, of, [Target(of.coded("work"), CodedExclusions(), 3)])
        before = there(database)
        for at in (1, 2, 3):

            def on_progress(step: str, completed: int, total: int, at: int = at) -> None:
                if completed == at:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                database_count.count(on_progress)
            assert there(database) == before


def test_too_many_records_for_64_bits(duckdb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    of = surveyed(["age", "sex"])
    with brought(duckdb, of.frames) as tables:
        database_count = database_count_of(tables, of, [Target(of.coded("work"), CodedExclusions(), 3)])
        monkeypatch.setattr(target_queries, "BITS", 12)
        with pytest.raises(InputError, match="Target 'work' has so many levels"):
            database_count.count()
        monkeypatch.setattr(target_queries, "_LARGEST", 1000 * 20)
        with pytest.raises(InputError, match="sums of squares do not fit"):
            database_count.count()


def count_records(table: Any) -> int:
    return int(table.count().execute())


def test_values_of_a_column(database: Any) -> None:
    frame = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [1, 2, 3, 4]})
    with brought(database, [frame]) as [table]:
        actual = fetch_distinct(table, "a", 2, "the table")
        assert dict(zip(actual.values, actual.counts, strict=False)) == {"x": 2, "y": 1}
        assert actual.counts[-1] == 1
        assert count_records(table) == actual.records == 4
        with pytest.raises(InputError, match="Column 'b' of the table has more than 3 different values"):
            fetch_distinct(table, "b", 3, "the table")
        assert len(fetch_distinct(table, "b", 4, "the table").values) == 4
        with pytest.raises(InputError, match=r"Column 'c' is not in the table\. Its columns are 'a', 'b'"):
            fetch_distinct(table, "c", 3, "the table")


def test_columns_that_cannot_be_compared(duckdb: Any) -> None:
    table = duckdb.create_table("lists", pa.table({"a": [[1], [2]]}), temp=True)
    with pytest.raises(InputError, match="Column 'a' is of type array"):
        fetch_distinct(table, "a", 5, "the table")
    duckdb.drop_table("lists")


def test_types_of_postgresql() -> None:
    """An enumeration, which Ibis takes for text, text of fixed length, and identifiers."""
    with BACKENDS["postgres"]() as database:
        database.con.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        database.con.execute("CREATE TABLE people (m mood, c char(5), u uuid, t int)")
        database.con.execute(
            "INSERT INTO people VALUES ('ok', 'a', gen_random_uuid(), 1), ('sad', 'b', NULL, 1), "
            "(NULL, NULL, gen_random_uuid(), 2), ('ok', 'b', gen_random_uuid(), 2)"
        )
        table = database.table("people")
        distincts = {name: [fetch_distinct(table, name, 9, "it")] * 2 for name in "mcut"}
        columns = {name: code_distinct(name, distincts[name], ["GT", "SD"]) for name in "mcut"}
        target = Target(columns["t"], CodedExclusions(), 0)
        assert sorted(distincts["m"][0].values) == ["ok", "sad"]
        for name, uniques in (("m", 2), ("c", 2), ("u", 4)):
            read = ReadTables([table, table], distincts, table_names(2))
            [actual] = count_in_database(read, [CountRequest([columns[name]], [target])])
            assert actual.keys[0].uniques.in_both == uniques
        assert there(database) == {"people"}


def test_what_a_driver_says_of_a_record_is_not_told(duckdb: Any) -> None:
    raw = duckdb.create_table("raw", pa.table({"a": ["1", "Secret"]}), temp=True)
    table = raw.mutate(a=raw["a"].cast("int64"))
    with pytest.raises(InputError, match=r"cannot be fetched \(ConversionException\)") as refused:
        fetch_distinct(table, "a", 5, "the table")
    assert_tells_nothing(refused.value, "Secret")
    good = duckdb.create_table("good", pa.table({"a": [1, 2], "t": [1, 2]}), temp=True)
    distincts = {name: [fetch_distinct(good, name, 5, "it")] * 2 for name in "at"}
    keys, target = (code_distinct(name, distincts[name], ["GT", "SD"]) for name in "at")
    before = there(duckdb)
    with pytest.raises(InputError, match=r"\(ConversionException\)") as refused:
        bad = table.mutate(t=table["a"])
        count_in_database(
            ReadTables([good, bad], distincts, table_names(2)),
            [CountRequest([keys], [Target(target, CodedExclusions(), 0)])],
        )
    assert_tells_nothing(refused.value, "Secret")
    assert there(duckdb) == before
    duckdb.drop_table("raw")
    duckdb.drop_table("good")


# Connections


@pytest.mark.parametrize(
    "url",
    [
        f"postgres://tester:{PASSWORD}@127.0.0.1:1/postgres",
        f"nosuchdatabase://tester:{PASSWORD}@127.0.0.1/x?token={PASSWORD}",
        "duckdb:///no/such/folder/file.duckdb",
        "not a url",
    ],
)
def test_connections_that_fail(url: str) -> None:
    with pytest.raises(InputError) as refused:
        connect(url)
    assert_tells_nothing(refused.value, PASSWORD)


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [
        ("ibis", "duckdb://", "[ibis]"),
        ("pyspark.sql", "pyspark://", "[spark]"),
    ],
)
def test_a_missing_package_names_its_extra(
    package: str, url: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=re.escape(f"install disclosure-pipeline{extra}")):
        connect(url)
    with pytest.raises(InputError, match=re.escape(f"install disclosure-pipeline{extra}")):
        open_database_tables(["people"], url, ["it"]).__enter__()


def test_tables_by_name(database: Any) -> None:
    import ibis

    if database.name == "pyspark":  # a session without a catalog has temporary views only
        database.create_view("people", ibis.memtable({"a": [1, 2]}))
        try:
            assert count_records(open_table(database, "people", "it")) == 2
            with pytest.raises(InputError, match="it: the database has no table 'nobody'"):
                open_table(database, "nobody", "it")
        finally:
            database.drop_view("people")
        return
    database.create_database("office")
    database.create_table("people", pa.table({"a": [1, 2]}), database="office")
    try:
        assert count_records(open_table(database, "office.people", "it")) == 2
        with pytest.raises(InputError, match=r"it: the database has no table 'office\.nobody'") as refused:
            open_table(database, "office.nobody", "it")
        assert_tells_nothing(refused.value, PASSWORD)
    finally:
        database.drop_table("people", database="office")
        database.drop_database("office")


def test_tables_of_files(database: Any, tmp_path: Path) -> None:
    frame = survey(500, 1).astype({"sex": "category"})
    frame.to_parquet(tmp_path / "one.parquet")
    folder = tmp_path / "several"
    folder.mkdir()
    for i in range(3):
        frame.iloc[i * 100 : (i + 1) * 100].to_parquet(folder / f"part-{i}.parquet", index=False)
    counts = frame["sex"].value_counts(dropna=False)
    for path, records in ((tmp_path / "one.parquet", 500), (folder, 300)):
        table = open_table(database, path, "it")
        assert count_records(table) == records
    whole = fetch_distinct(open_table(database, tmp_path / "one.parquet", "it"), "sex", 9, "it")
    assert dict(zip(whole.values, whole.counts, strict=False)) == {"f": counts["f"], "m": counts["m"]}
    assert whole.counts[-1] == counts[None]
    with pytest.raises(InputError, match=r"'none\.parquet' cannot be read"):
        open_table(database, tmp_path / "none.parquet", "it")


def test_tables_of_ibis_stay_as_they_are(duckdb: Any) -> None:
    frame = pd.DataFrame({"a": [1, 2, 2]})
    with brought(duckdb, [frame]) as [table]:
        some = table.filter(table["a"] > 1)
        assert open_table(duckdb, some, "it") is some
        with open_database_tables([some, table], "auto", ["one", "two"]) as opened:
            assert opened[0] is some
            assert opened[1] is table
        with pytest.raises(InputError, match="leave the engine to 'auto'"):
            dp.disclosure(some, some, ["a"], "a", engine="duckdb://")
        with BACKENDS["duckdb"]() as other:
            in_another_database = other.create_table("x", pa.table({"a": [1]}))
            with pytest.raises(InputError, match="several databases"):
                open_database_tables([some, in_another_database], "auto", ["one", "two"]).__enter__()
    with pytest.raises(InputError, match="it must be the name of a table"):
        open_table(duckdb, 1, "it")
    with pytest.raises(InputError, match="it: column 'a' holds values of several kinds") as refused:
        open_table(duckdb, pd.DataFrame({"a": ["Secret", 1]}), "it")
    assert_tells_nothing(refused.value, "Secret")


def test_no_integer_is_made_of_null(duckdb: Any) -> None:
    """NumPy would make a NaN of it, and floats of all its column."""
    table = open_table(duckdb, pa.table({"n": pa.array([1, 2], pa.int64())}), "it")
    with pytest.raises(ValueError, match="NULL"):
        fetch_integers(table.filter(table["n"] > 2).aggregate(n=table["n"].sum()))
    assert fetch_integers(table.aggregate(n=table["n"].sum()))["n"].tolist() == [3]


# Other databases: the queries for them, without one


INTEGER = {"snowflake": "BIGINT", "bigquery": "INT64", "databricks": "BIGINT"}


def coded_cells(tables: int = 2) -> Any:
    """The cells of a key that has only missing values and of a target, as an expression."""
    import ibis

    raw = ibis.table({"a": "float64", "b": "string"}, name="raw")
    mapping = ibis.table({"v1": "string", "m1": "int64"}, name="mapping")
    keys = [coding.ColumnCodes("a", None, 7, 8)]
    targets = [coding.ColumnCodes("b", mapping, 3, 4)]
    return cell_queries.count_cells(coding.code_records(raw, 0, keys, [0], targets), 0, tables)


def plain(table: Any, dialect: str) -> str:
    """The SQL in one line, without quotes."""
    import ibis

    return " ".join(re.sub(r'["`]', "", str(ibis.to_sql(table, dialect=dialect))).split())


@pytest.mark.parametrize("dialect", INTEGER)
def test_queries_for_other_databases(dialect: str) -> None:
    """Counts are 64 bits wide before they are multiplied, and missing is a level before any GROUP BY."""
    packing = cell_queries.Packing(4, 100)
    digits = coding.lay_out_words([8])
    classes = class_queries.classify_keys(coded_cells(), 1, packing, CodedExclusions(), digits)
    sql = plain(classes, dialect)
    assert re.search(rf"CAST\(t\d+\.n1 AS {INTEGER[dialect]}\) \* {1 << packing.bits}", sql)
    assert not re.search(r"(?<!CAST\()\bt\d+\.(d|s|n0|n1) \*", sql)
    missing = re.search(r"t\d+\.c1 IS NULL, 3, COALESCE\(t\d+\.m1, 4\)", sql)
    assert missing
    assert "GROUP BY" not in sql[: missing.end()]
    assert "LEFT OUTER JOIN" in sql
    assert "raw" in sql


@pytest.mark.parametrize("dialect", INTEGER)
def test_every_query_can_be_written_for_other_databases(dialect: str) -> None:
    import ibis

    digits = coding.lay_out_words([8])
    wanted = CodedExclusions((1,), 3, [(0, 7)], [(0, 2, 1)], 5)
    cells, packing = coded_cells(), cell_queries.Packing(4, 100)
    records = ibis.table({"i": "int16", "q0": "int64", "t0": "int32"}, name="records")
    keys = cell_queries.count_key_combinations(records, 2)
    left = exclusion_queries.cells_left(cells, wanted, digits)
    queries = {
        "checked": coding.count_by_code(records, digits, 1),
        "keys": cell_queries.count_keys_by_size(keys, 1),
        "lone": cell_queries.count_lone_keys(keys, 2),
        "several": cell_queries.records_with_shared_keys(records, keys, 2),
        "cells": cell_queries.count_cells(records, 0, 2),
        "larger": cell_queries.list_large_cells(left, keys, 2, 4),
        "pairs": cell_queries.count_pairs(cell_queries.records_as_cells(records, 0), digits),
        "classes": class_queries.classify_keys(cells, 1, packing, wanted, digits),
    }
    sql = {name: plain(table, dialect) for name, table in queries.items()}
    assert all("GROUP BY" in text for name, text in sql.items() if name != "lone")
    assert "UNION ALL" in sql["checked"]
    assert "COALESCE" in sql["lone"]  # the only one whose counts may be of no rows at all
    assert not any("AVG" in text or " / " in text for text in sql.values())
