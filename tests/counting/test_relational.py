"""Databases alone: connections, refusals, what they leave behind, and queries for other dialects."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.chosen_tables import small_survey
from support.engines import list_what_is_there
from support.engines_services import BACKENDS
from support.figures import assert_same
from support.refusals import assert_tells_nothing, refusal
from support.sampling import some_of
from support.services import PASSWORD, require_engine
from support.surveys import TARGETS, survey

import disclosure_pipeline as dp
from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, Target
from disclosure_pipeline.counting.relational import cells as queries
from disclosure_pipeline.counting.relational import coding, staging
from disclosure_pipeline.counting.relational import database as engine
from disclosure_pipeline.counting.relational.opened_database import (
    DatabaseTables,
    fetch_distinct,
    open_database_tables,
    open_in_database,
)
from disclosure_pipeline.counting.relational.transfer import (
    borrow_table,
    connect,
    fetch_integers,
    open_table,
    run_query,
)
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.record_sets import count_record_sets
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of

pytestmark = pytest.mark.usefixtures("no_guards")


@pytest.fixture
def duckdb(databases: Callable[[str], Any]) -> Any:
    return databases("duckdb")


@contextmanager
def brought(backend: Any, frames: Sequence[pd.DataFrame]) -> Iterator[list[Any]]:
    """The frames as tables of the database."""
    with ExitStack() as stack:
        yield [stack.enter_context(borrow_table(backend, frame, "the table")) for frame in frames]


def count(opened: DatabaseTables, on_progress: OnProgress = ignore_progress) -> DisclosureCounts:
    """Count all columns but the last as keys, and the last as target."""
    *keys, target = opened.code(opened.columns[0], grouping_of())
    request = CountRequest(keys, [Target(target, CodedExclusions(), 3)], apart=True)
    [counts] = count_tables(opened, [request], on_progress)
    return counts


# What is refused


def test_a_table_that_changes_meanwhile_is_refused(database: Any) -> None:
    """By a record more, by another value, and by a value that was not there."""
    gt, sd = pd.DataFrame({"k": [*"aabb"], "t": [*"xyxy"]}), pd.DataFrame({"k": [*"ab"], "t": [*"xy"]})
    changed = (
        {"k": [*"aabbb"], "t": [*"xyxyx"]},
        {"k": [*"abbb"], "t": [*"xyxy"]},
        {"k": [*"aabb"], "t": ["x", "y", "x", "Secret"]},
        {"k": [*"aab", None], "t": [*"xyxy"]},
    )
    with (
        brought(database, [gt, sd, *map(pd.DataFrame, changed)]) as [of_gt, of_sd, *changed_tables],
        open_in_database([of_gt, of_sd], "auto") as opened,
    ):
        count(opened)
        for table in changed_tables:
            opened.opened = [table, of_sd]
            with pytest.raises(
                InputError, match=r"Column '[kt]' of the ground truth no longer holds"
            ) as refused:
                count(opened)
            assert_tells_nothing(refused.value, "Secret")


def test_an_interrupt_leaves_nothing(database: Any) -> None:
    frames = [small_survey(records, seed)[["age", "sex", "work"]] for seed, records in enumerate((300, 200))]
    with brought(database, frames) as tables, open_in_database(tables, "auto") as opened:
        before = list_what_is_there(database)
        for at in (1, 2, 3):

            def on_progress(step: str, completed: int, total: int, at: int = at) -> None:
                if step == "Counting in the database" and completed == at:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                count(opened, on_progress)
            assert list_what_is_there(database) == before


def test_an_interrupt_of_a_query_is_one(duckdb: Any) -> None:
    """DuckDB makes an error of its own of it, which would tell a caller to go on with the next table."""
    endless = "SELECT sum(a.range * b.range) FROM range(100000000) a, range(100000000) b"
    threading.Timer(0.2, partial(os.kill, os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt) as interrupted:
        run_query("The database could not count", lambda: duckdb.con.execute(endless).fetchall())
    assert interrupted.value.__context__ is None
    assert duckdb.con.execute("SELECT 1").fetchall() == [(1,)]


def test_too_many_records_for_64_bits(duckdb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [small_survey(records, seed)[["age", "sex", "work"]] for seed, records in enumerate((900, 1000))]
    with brought(duckdb, frames) as tables, open_in_database(tables, "auto") as opened:
        monkeypatch.setattr(engine, "_LARGEST", 1000 * 20)
        with pytest.raises(InputError, match="sums of squares do not fit"):
            count(opened)


def count_records(table: Any) -> int:
    return int(table.count().execute())


def test_values_of_a_column(database: Any) -> None:
    frame = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [1, 2, 3, 4]})
    with brought(database, [frame]) as [table]:
        actual = fetch_distinct(table, "a", 2, "the table")
        assert dict(zip(actual.values, actual.counts, strict=False)) == {"x": 2, "y": 1}
        assert actual.counts[-1] == 1
        assert count_records(table) == actual.records == 4
        with pytest.raises(InputError, match="Column 'b' of the table has more than 3 distinct values"):
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
        assert sorted(fetch_distinct(table, "m", 9, "it").values) == ["ok", "sad"]
        for name, uniques in (("m", 2), ("c", 2), ("u", 4)):
            with open_in_database([table[name, "t"]] * 2, "auto") as opened:
                assert count(opened).keys[0].count("repU") == uniques
        assert list_what_is_there(database) == {"people"}


def test_what_a_driver_says_of_a_record_is_not_told(duckdb: Any) -> None:
    raw = duckdb.create_table("raw", pa.table({"a": ["1", "Secret"]}), temp=True)
    table = raw.mutate(a=raw["a"].cast("int64"))
    with pytest.raises(InputError, match=r"cannot be fetched \(ConversionException\)") as refused:
        fetch_distinct(table, "a", 5, "the table")
    assert_tells_nothing(refused.value, "Secret")
    good = duckdb.create_table("good", pa.table({"a": [1, 2], "t": [1, 2]}), temp=True)
    with open_in_database([good, good], "auto") as opened:
        count(opened)
        before = list_what_is_there(duckdb)
        opened.opened = [good, table.mutate(t=table["a"])]
        with pytest.raises(InputError, match=r"\(ConversionException\)") as refused:
            count(opened)
        assert_tells_nothing(refused.value, "Secret")
        assert list_what_is_there(duckdb) == before
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
    refusal(lambda: connect(url), PASSWORD)


@pytest.mark.parametrize(
    ("package", "url", "extra"), [("ibis", "duckdb://", "[ibis]"), ("pyspark.sql", "pyspark://", "[spark]")]
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

    with ExitStack() as stack:
        if database.name == "pyspark":  # a session without a catalog has temporary views only
            schema = ""
            database.create_view("people", ibis.memtable({"a": [1, 2]}))
            stack.callback(database.drop_view, "people")
        else:
            schema = "office."
            database.create_database("office")
            stack.callback(database.drop_database, "office")
            database.create_table("people", pa.table({"a": [1, 2]}), database="office")
            stack.callback(database.drop_table, "people", database="office")
        assert count_records(open_table(database, f"{schema}people", "it")) == 2
        message = re.escape(f"it: the database has no table '{schema}nobody'")
        with pytest.raises(InputError, match=message) as refused:
            open_table(database, f"{schema}nobody", "it")
        assert_tells_nothing(refused.value, PASSWORD)


def test_tables_of_files(database: Any, tmp_path: Path) -> None:
    frame = survey(500, 1).astype({"sex": "category"})
    frame.to_parquet(tmp_path / "one.parquet")
    folder = tmp_path / "several"
    folder.mkdir()
    for i in range(3):
        frame.iloc[i * 100 : (i + 1) * 100].to_parquet(folder / f"part-{i}.parquet", index=False)
    counts = frame["sex"].value_counts(dropna=False)
    for path, records in ((tmp_path / "one.parquet", 500), (folder, 300)):
        assert count_records(open_table(database, path, "it")) == records
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
        with BACKENDS["duckdb"]() as other:
            in_another_database = other.create_table("x", pa.table({"a": [1]}))
            with pytest.raises(InputError, match="several databases"):
                open_database_tables([some, in_another_database], "auto", ["one", "two"]).__enter__()
    with pytest.raises(InputError, match="it must be the name of a table"):
        open_table(duckdb, 1, "it")
    with pytest.raises(InputError, match="it: column 'a' holds values of several kinds") as refused:
        open_table(duckdb, pd.DataFrame({"a": ["Secret", 1]}), "it")
    assert_tells_nothing(refused.value, "Secret")


def test_tables_of_ibis_are_counted_where_they_are() -> None:
    """Beside frames, which are brought there and taken away again."""
    require_engine("duckdb://")
    surveys = [survey(1000, 1), survey(900, 2), survey(300, 3)]
    import ibis

    database = ibis.duckdb.connect()
    gt = database.create_table("gt", surveys[0])
    sd = database.create_table("sd", surveys[1])
    ask = partial(dp.disclosure, keys=["age", "sex", "postcode"], targets=TARGETS)
    expected = ask(surveys[0], surveys[1:])
    for syntheses in ([sd, surveys[2]], [surveys[1], surveys[2]]):
        assert_same(ask(gt, syntheses), expected)
        assert sorted(database.list_tables()) == ["gt", "sd"]
    with pytest.raises(dp.InputError, match="leave engine at 'auto'"):
        ask(gt, sd, engine="memory")
    with pytest.raises(dp.InputError, match="'kex' is not in the ground truth"):
        dp.disclosure(gt, sd, ["kex"], TARGETS)
    assert sorted(database.list_tables()) == ["gt", "sd"]


def test_names_of_tables_in_a_database(tmp_path: Path) -> None:
    require_engine("duckdb://")
    surveys = [survey(1000, 1), survey(900, 2), survey(300, 3)]
    import duckdb

    path = tmp_path / "tables.duckdb"
    with duckdb.connect(str(path)) as database:
        for name, frame in zip(("gt", "sd"), surveys[:2], strict=True):
            database.register("frame", frame)
            database.execute(f"CREATE SCHEMA of_{name}; CREATE TABLE of_{name}.{name} AS FROM frame")
    ask = partial(dp.disclosure, keys=["age", "sex"], targets=TARGETS, engine=f"duckdb:///{path}")
    expected = dp.disclosure(surveys[0], surveys[1], ["age", "sex"], TARGETS)
    assert_same(ask("of_gt.gt", "of_sd.sd"), expected)
    for source in (
        dp.SqlSource(url="duckdb://", table="gt", schema_="of_gt"),
        dp.DuckDBSource(duckdb=str(path), table="of_gt.gt"),
    ):
        assert_same(ask(source, "of_sd.sd"), expected)
    with pytest.raises(dp.InputError, match="not queries"):
        ask(dp.DuckDBSource(duckdb=str(path), query="SELECT 1"), "of_sd.sd")
    duckdb.connect(str(path)).close()  # nobody holds it any more


def test_no_integer_is_made_of_null(duckdb: Any) -> None:
    """NumPy would make a NaN of it, and floats of all its column."""
    table = open_table(duckdb, pa.table({"n": pa.array([1, 2], pa.int64())}), "it")
    with pytest.raises(ValueError, match="NULL"):
        fetch_integers(table.filter(table["n"] > 2).aggregate(n=table["n"].sum()))
    assert fetch_integers(table.aggregate(n=table["n"].sum()))["n"].tolist() == [3]


# Other databases: the queries for them, without one


INTEGER = {"snowflake": "BIGINT", "bigquery": "INT64", "databricks": "BIGINT"}


def coded_cells() -> Any:
    """The cells of a key that has only missing values and of a target, as an expression."""
    import ibis

    raw = ibis.table({"a": "float64", "b": "string"}, name="raw")
    mapping = ibis.table({"v1": "string", "m1": "int64"}, name="mapping")
    keys = [coding.ColumnCodes("a", None, 7, 8)]
    targets = [coding.ColumnCodes("b", mapping, 3, 4)]
    return queries.count_cells(coding.code_records(raw, 0, keys, [0], targets), 0, 2)


def plain(table: Any, dialect: str) -> str:
    """The SQL in one line, without quotes."""
    import ibis

    return " ".join(re.sub(r'["`]', "", str(ibis.to_sql(table, dialect=dialect))).split())


LAYOUT = dict(zip(("t", "n0", "n1"), coding.lay_out_words([4, 100, 100]), strict=True))


@pytest.mark.parametrize("dialect", INTEGER)
def test_queries_for_other_databases(dialect: str) -> None:
    """Counts are 64 bits wide before they are multiplied, and missing is a level before any GROUP BY."""
    digits = coding.lay_out_words([8])
    sql = plain(queries.classify_keys(coded_cells(), LAYOUT, CodedExclusions(), digits), dialect)
    assert re.search(rf"CAST\(t\d+\.n1 AS {INTEGER[dialect]}\) \* {1 << LAYOUT['n1'].shift}", sql)
    assert not re.search(r"(?<!CAST\()\bt\d+\.(d|s|n0|n1) \*", sql)
    missing = re.search(r"t\d+\.c1 IS NULL, 3, COALESCE\(t\d+\.m1, 4\)", sql)
    assert missing and "GROUP BY" not in sql[: missing.end()]
    assert "LEFT OUTER JOIN" in sql and "raw" in sql


@pytest.mark.parametrize("dialect", INTEGER)
def test_every_query_can_be_written_for_other_databases(dialect: str) -> None:
    import ibis

    digits = coding.lay_out_words([8])
    wanted = CodedExclusions((1,), 3, [(0, 7)], [(0, 2, 1)], 5)
    cells = coded_cells()
    records = ibis.table({"i": "int16", "q0": "int64", "t0": "int32"}, name="records")
    keys = queries.count_key_combinations(records, 2)
    checked, *others = (
        plain(query, dialect)
        for query in (
            coding.count_by_code(records, digits, 1),
            queries.count_keys_by_size(keys, 2),
            queries.records_with_shared_keys(records, keys, 2),
            queries.count_cells(records, 0, 2),
            queries.list_large_cells(queries.cells_left(cells, wanted, digits), keys, 1, 4),
            queries.count_pairs(queries.records_as_cells(records, 0), digits),
            queries.classify_keys(cells, LAYOUT, wanted, digits),
        )
    )
    assert "UNION ALL" in checked
    for sql in (checked, *others):
        assert "GROUP BY" in sql and "AVG" not in sql and " / " not in sql


# Records are coded and numbered once in a database for all that is asked of them, and do not stay there


STEPS = ("stage_records", "check_unchanged", "number_records", "afterwards")


def people(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame({"a": random.integers(0, 9, 80), "b": random.integers(0, 4, 80)})


def look_at_all_columns(opened: DatabaseTables) -> None:
    """Ask what the guards ask, one after the other."""
    for tables in (opened, opened.stack_syntheses()):
        columns = tables.code(["a", "b"], grouping_of())
        count_record_sets(tables, columns, ["b"])
        for most in (1000, 20, 30):
            tables.code_records(columns, most, 0)


def test_they_are_coded_and_numbered_once(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each file by itself, and once for all of them as one table."""
    calls: list[str] = []

    def note_calls(name: str) -> None:
        function = getattr(staging, name)

        def noted(*args: Any) -> Any:
            calls.append(name)
            return function(*args)

        monkeypatch.setattr(staging, name, noted)

    note_calls("stage_records")
    note_calls("number_records")
    before = list_what_is_there(database)
    frames = [people(seed) for seed in range(3)]
    with brought(database, frames) as tables, open_in_database(tables, "auto") as opened:
        look_at_all_columns(opened)
    assert calls == ["stage_records", "number_records"] * 2
    assert list_what_is_there(database) == before


@pytest.mark.parametrize("step", some_of(STEPS, part=2))
def test_nothing_stays_after_an_error(database: Any, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it happens; and what is asked next is answered all the same."""

    def fail(*_: Any) -> None:
        raise dp.InputError("on purpose")

    before = list_what_is_there(database)
    with brought(database, [people(seed) for seed in range(2)]) as tables:
        borrowed = list_what_is_there(database)
        with monkeypatch.context() as patch, pytest.raises(dp.InputError, match="on purpose"):  # noqa: SIM117
            with open_in_database(tables, "auto") as opened:
                if step == "afterwards":
                    look_at_all_columns(opened)
                    fail()
                patch.setattr(staging, step, fail)
                look_at_all_columns(opened)
        assert list_what_is_there(database) == borrowed
        with open_in_database(tables, "auto") as opened:
            look_at_all_columns(opened)
    assert list_what_is_there(database) == before


@pytest.mark.parametrize("bits", some_of([0, 1, 5, 12, 63], part=2))
def test_they_are_numbered_in_the_order_of_their_codes(
    database: Any, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In however many ranges; most records have the same code in the first column."""
    monkeypatch.setattr(coding, "_RANGE_BITS", bits)
    random = np.random.default_rng(bits)
    digits = coding.lay_out_words([1000, 900, 2**40, 7])
    first = np.where(random.random(700) < 0.9, 3, random.integers(0, 1000, 700))
    codes = [first, *(random.integers(0, size, 700) for size in (900, 2**40, 7))]
    words = np.zeros((2, 700), dtype=np.int64)
    for code, place in zip(codes, digits, strict=True):
        words[place.word] += code << place.shift
    records = {"i": random.integers(0, 3, 700).astype(np.int16), "q0": words[0], "q1": words[1]}
    with ExitStack() as stack:
        rows = stack.enter_context(borrow_table(database, pa.table(records), "it"))
        numbered = fetch_integers(coding.number_records(rows, digits, stack))
    assert len(numbered["r"]) == 700
    for table in range(3):
        of_table = {name: values[numbered["i"] == table] for name, values in numbered.items()}
        order = np.lexsort([of_table["q1"], of_table["q0"]])
        assert of_table["r"][order].tolist() == list(range(len(order)))
