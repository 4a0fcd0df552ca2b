"""Every source gives the same table; none gives away a record or a password when it cannot be read."""

import bz2
import gzip
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc
from pydantic import ValidationError
from support import gates
from support.refusals import refusal
from support.sampling import on_some_days, some_of
from support.services import PASSWORD, Postgres, postgres, s3

import disclosure_pipeline as dp
from disclosure_pipeline.candidates import arrival, evaluation
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.errors import InputError, StoreError
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.tables.contract import canonical_table
from disclosure_pipeline.tables.dictionary import Column, Contract
from disclosure_pipeline.tables.files import redact_location
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, SqlSource, read_raw

CANARY = "canary-value-4711"

DICTIONARY = {
    "code": Column(type="category"),
    "age": Column(type="integer"),
    "height": Column(type="number"),
    "born": Column(type="date"),
    "seen": Column(type="datetime", time_zone="UTC"),
    "member": Column(type="boolean"),
}


NO_TIME = np.datetime64("NaT", "s")
TIMES = np.array(["2024-05-01T10:00", NO_TIME, "2024-05-01T10:00", "2024-01-01", NO_TIME], "datetime64[ns]")


def example() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "code": ["01", "NA", "1e5", None, "ünï"],
            "age": pd.array([34, 0, None, -8, 34], dtype="Int64"),
            "height": [1.5, 2.0, np.nan, 0.1, 1.5],
            "born": [date(1990, 1, 1), date(1871, 3, 17), None, date(2024, 2, 29), date(1990, 1, 1)],
            "seen": pd.Series(TIMES).dt.tz_localize("UTC"),
            "member": pd.array([True, False, None, True, True], dtype="boolean"),
            "other": [f"{CANARY}-{i}" for i in range(5)],
        }
    )


def canonical(raw: pd.DataFrame) -> pd.DataFrame:
    return canonical_table(raw, Contract(DICTIONARY, "T", list(DICTIONARY), only_known=False)).frame


def assert_is_example(raw: pd.DataFrame) -> None:
    actual = canonical(raw)
    expected = canonical(example())
    for name in DICTIONARY:
        assert (
            actual[name].astype(object).map(repr).tolist() == expected[name].astype(object).map(repr).tolist()
        )


def text(frame: pd.DataFrame) -> pd.DataFrame:
    seen: list[Any] = [None if pd.isna(time) else time.isoformat() for time in frame["seen"]]
    return frame.assign(seen=seen)


def to_arrow(new: Callable[..., Any]) -> Callable[[pd.DataFrame, Path], None]:
    def write(frame: pd.DataFrame, path: Path) -> None:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        with new(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)

    return write


def to_parquet_folder(frame: pd.DataFrame, path: Path) -> None:
    path.mkdir()
    (path / "_SUCCESS").touch()
    (path / ".part.crc").touch()
    for i in range(0, len(frame), 2):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        pq.write_table(table.slice(i, 2), path / f"part-{i}.parquet")


def to_text(
    pack: Callable[[bytes], bytes] = bytes, separator: str = ","
) -> Callable[[pd.DataFrame, Path], Any]:
    return lambda frame, path: path.write_bytes(pack(text(frame).to_csv(index=False, sep=separator).encode()))


FILES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "t.csv": to_text(),
    "t.tsv": to_text(separator="\t"),
    "t.csv.gz": to_text(gzip.compress),
    "t.csv.bz2": to_text(bz2.compress),
    "t.csv.zst": to_text(lambda content: bytes(pa.compress(content, "zstd", asbytes=True))),
    "t.tsv.gz": to_text(gzip.compress, "\t"),
    "t.parquet": lambda frame, path: frame.to_parquet(path, index=False, row_group_size=2),
    "folder": to_parquet_folder,
    "folder.parquet": to_parquet_folder,
    "t.arrow": to_arrow(ipc.new_file),
    "t.feather": to_arrow(ipc.new_stream),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_table(name: str, tmp_path: Path) -> None:
    FILES[name](example(), tmp_path / name)
    for location in (tmp_path / name, str(tmp_path / name), (tmp_path / name).as_uri()):
        assert_is_example(read_raw(location, "T", list(DICTIONARY)))
    assert list(read_raw(tmp_path / name, "T").columns) == list(example().columns)
    assert list(read_raw(tmp_path / name, "T", ["born", "code", "absent"]).columns) == ["code", "born"]


def test_a_declared_format_and_delimiter_win_over_the_name(tmp_path: Path) -> None:
    text(example()).to_csv(tmp_path / "t.data", index=False, sep=";")
    with pytest.raises(InputError, match="unknown format"):
        read_raw(tmp_path / "t.data", "T")
    source = FileSource(path=str(tmp_path / "t.data"), format="csv", delimiter=";")
    assert_is_example(read_raw(source, "T"))


def test_text_stays_what_it_is(tmp_path: Path) -> None:
    fields = ["01", "1e5", "NA", "nan", "null", "True", "0x1F", " a ", '"a,b"', '"line\nbreak"', '"quote"""']
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{field},1\n" for field in fields))
    values = read_raw(tmp_path / "t.csv", "T")["x"].tolist()
    assert values == [*fields[:8], "a,b", "line\nbreak", 'quote"']


def test_a_line_break_within_a_field_is_no_record_wherever_it_falls(tmp_path: Path) -> None:
    # More than one block of the reader, with a quoted line break in every record.
    record = '"first\nsecond",' + "x" * 100 + "\n"
    (tmp_path / "t.csv").write_text("a,b\n" + record * 100_000)
    raw = read_raw(tmp_path / "t.csv", "T")
    assert len(raw) == 100_000
    assert raw["a"].unique().tolist() == ["first\nsecond"]


def test_levels_are_the_same_however_the_table_is_cut(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 300, 2_000)
    frame = pd.DataFrame({"n": values, "t": values.astype(str)})
    for rows in (7, 300, 5_000):
        frame.to_parquet(tmp_path / "t.parquet", row_group_size=rows)
        raw = read_raw(tmp_path / "t.parquet", "T")
        assert raw["n"].tolist() == values.tolist()
        assert raw["t"].tolist() == frame["t"].tolist()


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfcode,age\nx,1\n")
    assert list(read_raw(tmp_path / "t.csv", "T", ["code", "age"]).columns) == ["code", "age"]


def refused(location: Any, columns: list[str] | None = None) -> str:
    """The message of a refusal."""
    return str(refusal(lambda: read_raw(location, "T", columns), CANARY, PASSWORD))


def test_a_column_that_is_there_twice_is_named_if_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,b,age\n1,2,3\n")
    columns = pa.Table.from_arrays([pa.array([CANARY])] * 3, names=["age", "b", "age"])
    pq.write_table(columns, tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        assert "columns 1 and 3 have the same name, 'age'" in refused(tmp_path / name, ["age"])


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no file" in refused(tmp_path / "t.csv")
    (tmp_path / "t.csv").mkdir()
    assert "no file" in refused(tmp_path / "t.csv")


def test_a_folder_must_be_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "no Parquet file" in refused(folder)
    pd.DataFrame({"a": [1]}).to_parquet(folder / "1.parquet")
    pd.DataFrame({"a": [CANARY]}).to_parquet(folder / "2.parquet")
    assert "differ in their columns or types" in refused(folder)
    pd.DataFrame({"a": [1]}).to_parquet(folder / "2.parquet")
    (folder / "notes.txt").write_text(CANARY)
    assert "files that are not Parquet" in refused(folder)


def test_values_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    pd.DataFrame({"a": [[CANARY], [CANARY]], "b": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    assert "column 'a' is of type" in refused(tmp_path / "t.parquet")
    assert list(read_raw(tmp_path / "t.parquet", "T", ["b"])["b"]) == [1, 2]


def test_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as connection:
        member: list[Any] = ["true", "false", None, "true", "true"]
        text(example()).assign(member=member).to_sql("people", connection, index=False)
    url = f"sqlite:///{path}"
    assert_is_example(read_raw(SqlSource(url=url, table="people"), "T"))
    query = SqlSource(url=url, query="SELECT * FROM people WHERE age = 34;")
    assert len(read_raw(query, "T", ["age"])) == 2
    assert "cannot be read" in refused(SqlSource(url=url, table="nobody"))
    assert "cannot be read" in refused(SqlSource(url=url, query=f"SELECT {CANARY!r} FROM WHERE"))


def in_sqlite_columns(path: Path, columns: str, rows: Sequence[tuple[Any, ...]]) -> SqlSource:
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE t ({columns})")
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return SqlSource(url=f"sqlite:///{path}", table="t")


def test_a_column_of_several_kinds_in_sqlite_is_refused(tmp_path: Path) -> None:
    source = in_sqlite_columns(tmp_path / "t.db", "x, y", [(1, 1), (CANARY, 2.5)])
    assert "'x' holds values of several kinds" in refused(source)
    assert read_raw(source, "T", ["y"])["y"].tolist() == [1.0, 2.5]


def test_batches_of_whole_and_of_fractional_numbers_are_one_column(tmp_path: Path) -> None:
    rows = [*((i,) for i in range(70_000)), (0.5,)]
    raw = read_raw(in_sqlite_columns(tmp_path / "t.db", "x", rows), "T")
    assert raw["x"].tolist() == [float(x) for (x,) in rows]


@pytest.fixture(scope="module")
def server() -> Postgres:
    return postgres()


SURVEY = """
CREATE SCHEMA survey;
CREATE TABLE survey.people (
  code text, age integer, height numeric, born date, seen timestamptz, member boolean, other text,
  id uuid DEFAULT gen_random_uuid(), amount numeric(20, 2) DEFAULT 3.50
)
"""


def test_postgresql(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlalchemy as sa

    engine = sa.create_engine(server.url)
    frame = example().astype(object)
    rows: Any = frame.where(frame.notna(), None).to_dict("records")
    with engine.begin() as connection:
        for statement in SURVEY.split(";"):
            connection.execute(sa.text(statement))
        values = ", ".join(f":{name}" for name in frame)
        connection.execute(sa.text(f"INSERT INTO survey.people VALUES ({values})"), rows)
    engine.dispose()
    monkeypatch.setenv("GATE_PASSWORD", PASSWORD)
    url = server.url_with("GATE_PASSWORD")
    source = SqlSource.model_validate({"url": url, "schema": "survey", "table": "people"})
    assert_is_example(read_raw(source, "T"))
    assert PASSWORD not in repr(source) + source.redacted_location
    amounts = read_raw(source, "T", ["amount", "id"])
    assert amounts["amount"].tolist() == [Decimal("3.50")] * 5
    assert amounts["id"].nunique() == 5
    some = SqlSource(url=url, query="SELECT code FROM survey.people WHERE age = 34")
    assert sorted(read_raw(some, "T")["code"]) == ["01", "ünï"]

    monkeypatch.setenv("GATE_PASSWORD", f"{PASSWORD}-wrong")
    assert "cannot be read (OperationalError)" in refused(source)
    monkeypatch.delenv("GATE_PASSWORD")
    assert "needs the environment variable GATE_PASSWORD" in refused(source)


def test_a_time_of_postgresql_is_an_instant(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole URL may come from the environment."""
    monkeypatch.setenv("GATE_URL", server.url)
    summer_and_winter = (
        "SELECT * FROM (VALUES ('2024-07-01 12:00+02'::timestamptz), ('2024-01-01 12:00+01')) AS t (seen)"
    )
    source = SqlSource(url="${GATE_URL}", query=summer_and_winter)
    raw = read_raw(source, "T")
    times = canonical_table(raw, Contract({"seen": DICTIONARY["seen"]}, "T", (), True)).frame["seen"]
    assert list(times) == [datetime(2024, 7, 1, 10), datetime(2024, 1, 1, 11)]
    monkeypatch.setenv("GATE_URL", server.url.replace("127.0.0.1", "127.0.0.2"))
    assert "cannot be read" in refused(source)


def test_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = example()
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        connection.register("frame", pa.Table.from_pandas(frame, preserve_index=False))
        connection.execute('CREATE TABLE "the ""people""" AS SELECT * FROM frame')
    source = DuckDBSource(duckdb=str(tmp_path / "t.duckdb"), table='the "people"')
    assert_is_example(read_raw(source, "T"))
    query = DuckDBSource(duckdb=source.duckdb, query='SELECT age FROM "the ""people""" WHERE age > 0;')
    assert read_raw(query, "T")["age"].tolist() == [34, 34]
    assert "cannot be read" in refused(DuckDBSource(duckdb=source.duckdb, table=CANARY).model_copy(
        update={"table": "nobody"}
    ))  # fmt: skip
    assert "no file" in refused(DuckDBSource(duckdb=str(tmp_path / "absent"), table="t"))


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    pytest.importorskip("s3fs")
    with s3() as address:
        yield address


@pytest.fixture
def credentials(bucket: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return bucket


@on_some_days
@pytest.mark.parametrize("name", some_of(FILES))
def test_s3(name: str, credentials: str, tmp_path: Path) -> None:
    import fsspec

    FILES[name](example(), tmp_path / name)
    fs = fsspec.filesystem("s3", skip_instance_cache=True)
    fs.put(str(tmp_path / name), f"tables/{name}", recursive=(tmp_path / name).is_dir())
    source = FileSource(path=f"s3://tables/{name}")
    assert_is_example(read_raw(source, "T", list(DICTIONARY)))
    state, digest = source.state(), source.sha256()
    assert source.exists()
    if (tmp_path / name).is_file():
        assert digest == FileSource(path=str(tmp_path / name)).sha256()
    FILES[name](example().iloc[::-1], tmp_path / f"again-{name}")
    fs.put(str(tmp_path / f"again-{name}"), f"tables/{name}", recursive=(tmp_path / name).is_dir())
    assert source.state() != state
    assert source.sha256() != digest


def test_a_universal_path_brings_its_own_options(bucket: str, tmp_path: Path) -> None:
    from upath import UPath

    path = UPath(
        "s3://tables/own.csv",
        key="tester",
        secret=PASSWORD,
        endpoint_url=bucket,
        client_kwargs={"region_name": "us-east-1"},
    )
    path.write_bytes(text(example()).to_csv(index=False).encode())
    assert_is_example(read_raw(path, "T"))
    assert "no file" in refused(path.parent / "absent.csv")


def test_s3_that_does_not_answer_is_refused(credentials: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no file" in refused("s3://tables/absent.csv")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    refused("s3://tables/t.csv")


def test_a_file_system_that_is_not_installed_is_told() -> None:
    assert "cannot be opened" in refused(f"nosuch://user:{PASSWORD}@host/t.csv")


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("/data/gt.csv", "/data/gt.csv"),
        ("s3://bucket/gt.csv", "s3://bucket/gt.csv"),
        (f"postgresql://user:{PASSWORD}@host:5432/db?password={PASSWORD}", "postgresql://host:5432/db"),
        (f"https://host/gt.csv?signature={PASSWORD}", "https://host/gt.csv"),
        (f"postgresql://u@x:{PASSWORD}@host/db", "postgresql://host/db"),
        (f"az://c/p?{PASSWORD}#{PASSWORD}", "az://c/p"),
    ],
)
def test_a_location_is_told_without_secrets(location: str, shown: str) -> None:
    assert redact_location(location) == shown


@pytest.mark.parametrize(
    "declared",
    [
        {"path": f"ftp://user:{PASSWORD}@host/t.csv"},
        {"url": f"postgresql://user:{PASSWORD}@host/db", "table": "t"},
        {"url": f"postgresql://user:a@{PASSWORD}@host/db", "table": "t"},
    ],
)
def test_a_password_in_the_definition_is_refused(declared: dict[str, str]) -> None:
    source = FileSource if "path" in declared else SqlSource
    with pytest.raises(ValidationError, match="environment variable"):
        source.model_validate(declared)


def test_a_database_needs_a_table_or_a_query() -> None:
    for both in ({}, {"table": "t", "query": "SELECT 1"}):
        with pytest.raises(ValidationError, match="either a table or a query"):
            SqlSource.model_validate({"url": "sqlite://", **both})


def gate_of(source: Any, home: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> GateFolders:
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return folders_of(gates.resolve(gates.definition(ground_truth=source, **changes)).gate)


def in_sqlite(home: Path) -> dict[str, str]:
    with sqlite3.connect(home / "gt.db") as connection:
        gates.ground_truth().to_sql("people", connection, index=False)
    return {"url": f"sqlite:///{home}/gt.db", "table": "people"}


def in_duckdb(home: Path) -> dict[str, str]:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(home / "gt.duckdb")) as connection:
        connection.register("frame", pa.Table.from_pandas(gates.ground_truth(), preserve_index=False))
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    return {"duckdb": "gt.duckdb", "query": "SELECT * FROM people"}


def in_parquet_folder(home: Path) -> dict[str, str]:
    (home / "gt").mkdir()
    for i in (0, 150):
        gates.ground_truth().iloc[i : i + 150].to_parquet(home / "gt" / f"{i}.parquet", index=False)
    return {"path": "gt", "format": "parquet"}


def in_partitions(home: Path) -> dict[str, str]:
    gates.ground_truth().to_parquet(home / "gt.parquet", partition_cols=["sex"])
    return {"path": "gt.parquet"}


def with_decimal_commas(home: Path) -> dict[str, str]:
    table = gates.ground_truth().astype({"age": float})
    table.to_csv(home / "gt.csv", index=False, sep=";", decimal=",")
    return {"path": "gt.csv", "delimiter": ";", "decimal": ","}


@on_some_days
@pytest.mark.parametrize(
    ("where", "engine"),
    [
        *((where, "auto") for where in (in_sqlite, in_duckdb, in_parquet_folder)),
        *product([in_partitions, with_decimal_commas], ["memory", "partitioned"]),
        (in_partitions, "duckdb://"),
    ],
)
def test_a_gate_reads_its_ground_truth_from_anywhere(
    where: Callable[[Path], dict[str, str]], engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = gate_of(where(tmp_path), tmp_path, monkeypatch, engine=engine)
    actual = gates.evaluate_copy(folders)
    before = arrival.record_ground_truth(folders).sha256
    assert before == actual.dossier["measured"]["ground_truth"]
    assert actual.dossier["decision"] == "refused"
    assert actual.result.identity["repU"][1] == actual.result.identity["UiO"][1] > 0
    if where is in_partitions:
        (tmp_path / "gt.parquet" / "sex=f").rename(tmp_path / "gt.parquet" / "sex=moved")
        assert folders.ground_truth.sha256() != before


def test_a_database_that_changed_is_not_measured_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = gate_of(in_sqlite(tmp_path), tmp_path, monkeypatch)
    gates.evaluate_copy(folders)
    with sqlite3.connect(tmp_path / "gt.db") as connection:
        connection.execute("UPDATE people SET age = age + 1 WHERE rowid = 1")
    with pytest.raises(StoreError, match="differs from the recorded one"):
        evaluation.evaluate(folders, "copy", datetime.now(timezone.utc))


def test_a_ground_truth_that_cannot_be_asked_tells_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATE_PASSWORD", PASSWORD)
    url = "postgresql+psycopg://reader:${GATE_PASSWORD}@127.0.0.1:9/db"
    folders = gate_of({"url": url, "table": "people"}, tmp_path, monkeypatch)
    with pytest.raises(InputError, match="cannot be read") as refused:
        arrival.record_ground_truth(folders)
    assert PASSWORD not in str(refused.value) + folders.ground_truth.redacted_location + repr(folders)


@pytest.mark.parametrize("path", ["a\0b.csv", "x" * 5000, "/x" * 3000], ids=["NUL", "name", "path"])
def test_a_path_that_no_file_can_have_is_an_error(path: str, tmp_path: Path) -> None:
    synthetic = tmp_path / "synthetic.csv"
    synthetic.write_text("a,b\n1,2\n", encoding="utf-8")
    for engine in ("auto", "partitioned"):
        with pytest.raises(dp.InputError, match=r"the ground truth: a path (cannot have|has at most)"):
            dp.disclosure(path, synthetic, ["a"], engine=engine)
    for make in (lambda: dp.FileSource(path=path), lambda: dp.DuckDBSource(duckdb=path, table="t")):
        with pytest.raises(ValueError, match="a path"):
            make()
