"""COPY brings to PostgreSQL what was sent, value by value."""

import datetime
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engines_services import postgresql

from disclosure_pipeline.counting.relational.transfer import (
    copy_rows,
    copy_text,
    open_table,
    upload_temporarily,
)
from disclosure_pipeline.errors import InputError


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    with postgresql() as backend:
        yield backend


def stored_values(backend: Any, values: Any) -> list[Any]:
    """The values of a column after they were brought to the database, in their order."""
    rows = pa.table({"a column": values, "order": np.arange(len(values))})
    with upload_temporarily(backend, rows) as table, backend.con.cursor() as cursor:
        cursor.execute(f'SELECT "a column" FROM "{table.op().name}" ORDER BY "order"')
        actual = [value for (value,) in cursor.fetchall()]
    assert not [name for name in backend.list_tables() if name.startswith("disclosure_")]
    return actual


UTC = datetime.timezone.utc
INSTANT = datetime.datetime(2020, 2, 29, 1, 2, 3, 456789, tzinfo=UTC)

VALUES = {
    "text": pa.array(["a\tb", "a\nb", "a\r\nb", "\\", "\\N", "\\.", "a\n\\.\nb", "\\t", '"', "'", ",", ""]),
    "more text": pa.array([None, "N", "NULL", " a ", "é", "e\u0301", "🦊", "\x01", "\u2028", "%s {}"]),
    "large text": pa.array(["a" * 100_000, None, "\\" * 1000], pa.large_string()),
    "integers": pa.array([0, -1, None, 2**63 - 1, -(2**63)]),
    "small integers": pa.array([127, -128, None], pa.int8()),
    "booleans": pa.array([True, False, None]),
    "dates": pa.array(
        [datetime.date(2020, 2, 29), None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]
    ),
    "times": pa.array([INSTANT.replace(tzinfo=None), None, datetime.datetime(1, 1, 1)], pa.timestamp("us")),
    "seconds": pa.array([INSTANT.replace(tzinfo=None, microsecond=0), None], pa.timestamp("s")),
    "decimals": pa.array([Decimal("0.10"), Decimal("-12345678.90"), None], pa.decimal128(12, 2)),
    "bytes": pa.array([b"a\tb\n\\", b"\x00\xff", None, b""]),
    "lists": pa.array([[1, 2], None, []]),
    "nothing": pa.array([None, None], pa.string()),
    "no rows": pa.array([], pa.int64()),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_every_type_arrive(kind: str, postgres: Any) -> None:
    assert stored_values(postgres, VALUES[kind]) == VALUES[kind].to_pylist()


def test_times_with_a_zone_arrive_as_instants(postgres: Any) -> None:
    """Whatever zone the column has, and the session."""
    with postgres.con.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'Asia/Kathmandu'")
        try:
            for zone in ("UTC", "Europe/Berlin", "-05:00"):
                times = pa.array([INSTANT, None]).cast(pa.timestamp("us", zone))
                actual = stored_values(postgres, times)
                assert actual == [INSTANT, None]
        finally:
            cursor.execute("RESET TIME ZONE")


@pytest.mark.parametrize("dtype", [pa.float64(), pa.float32()])
def test_floats_arrive_to_the_last_bit(dtype: Any, postgres: Any) -> None:
    """NaN stays NaN, which is not NULL here; 0.0 and -0.0 keep their sign."""
    numbers = [0.1, 0.1 + 0.2, 1e30, -1e-30, 1e-45, math.inf, -math.inf, 2.0**24 + 1, 0.0, -0.0, 1e22]
    if dtype == pa.float64():
        numbers += [1e300, 5e-324, 2.0**53 + 1]
    expected = np.array(numbers, dtype.to_pandas_dtype())
    actual = stored_values(postgres, pa.array([*expected, math.nan, None], dtype, from_pandas=False))
    assert actual[-1] is None and math.isnan(actual[-2])
    # PostgreSQL writes of a 32-bit float the shortest text that stands for it.
    as_sent = np.array(actual[:-2], expected.dtype)
    np.testing.assert_array_equal(as_sent.view(np.uint8), expected.view(np.uint8))


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=20)
@given(st.lists(st.one_of(st.none(), TEXT, st.text("\\\t\n\rN.", max_size=6)), min_size=1))
def test_any_text_arrives(postgres: Any, texts: list[str | None]) -> None:
    assert stored_values(postgres, pa.array(texts, pa.string())) == texts


def test_more_rows_than_are_sent_at_a_time(postgres: Any) -> None:
    """Also those of a slice of a table in several chunks."""
    chunk = pa.table({"a": pa.array([f"{i}\t" for i in range(50_000)]), "b": np.arange(50_000)})
    rows = pa.concat_tables([chunk, chunk, chunk]).slice(10, 140_000)
    with upload_temporarily(postgres, rows) as table, postgres.con.cursor() as cursor:
        cursor.execute(f'SELECT a, b FROM "{table.op().name}"')
        actual = cursor.fetchall()
    expected = zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True)
    assert sorted(actual) == sorted(expected)


def test_the_encoding_of_the_connection_does_not_matter(postgres: Any) -> None:
    with postgres.con.cursor() as cursor:
        cursor.execute("SET client_encoding TO 'LATIN1'")
        try:
            with upload_temporarily(postgres, pa.table({"a": ["é", "🦊"]})) as table:
                cursor.execute(f'SELECT sum(char_length(a)), max(octet_length(a)) FROM "{table.op().name}"')
                assert cursor.fetchone() == (2, 4)
        finally:
            cursor.execute("RESET client_encoding")


def test_names_that_need_quotes(postgres: Any) -> None:
    with postgres.con.cursor() as cursor:
        cursor.execute('CREATE TEMPORARY TABLE "a ""name" ("größe %s" int, "a, b" text)')
        try:
            copy_rows(postgres.con, 'a "name', pa.table({"a, b": ["x"], "größe %s": [1]}))
            cursor.execute('SELECT * FROM "a ""name"')
            assert cursor.fetchall() == [(1, "x")]
        finally:
            cursor.execute('DROP TABLE "a ""name"')


def test_what_cannot_be_stored_as_it_is_is_refused(postgres: Any) -> None:
    """Neither rounded nor cut; the value is not told, and nothing is left."""
    refused = {"nanoseconds": pa.array([1], pa.timestamp("ns")), "a zero byte": pa.array(["Secret\0"])}
    for kind, values in refused.items():
        with pytest.raises(InputError, match=r"it cannot be uploaded to the database \(") as caught:
            open_table(postgres, pa.table({"a": values}), "it")
        assert "Secret" not in str(caught.value) and caught.value.__context__ is None, kind
        assert not [name for name in postgres.list_tables() if name.startswith("disclosure_")]


def test_no_rows_are_no_text() -> None:
    assert bytes(copy_text(pa.record_batch({"a": pa.array([], pa.int64())}))) == b""
    assert bytes(copy_text(pa.record_batch({"a": [1, None], "b": ["x", "\t"]}))) == b"1\tx\n\\N\t\\t\n"
