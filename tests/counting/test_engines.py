"""Every engine gives the very same figures, of frames and of files; what it spills to disk tells nothing."""

from __future__ import annotations

import datetime
import errno
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.doubts import FEW_SHARED_VALUES
from support.figures import assert_same
from support.sampling import examples
from support.services import require_engine
from support.small_batches import small_batches
from support.strategies import Case, cases, measured
from support.surveys import TARGETS, survey

import disclosure_pipeline as dp
from disclosure_pipeline.counting import opening as elsewhere
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.partitioned import engine as record_parts
from disclosure_pipeline.counting.partitioned import opened_files
from disclosure_pipeline.counting.partitioned.engine import count_in_parts
from disclosure_pipeline.counting.partitioned.spill_file import open_spill_file
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.tables.files import FORMATS

pytestmark = FEW_SHARED_VALUES

PATHS = {
    "counted as they come": Limits(),
    "one part": Limits(table=0),
    "a part for every key": Limits(table=0, spill_part=1, threads=2),
    "few parts": Limits(table=0, spill_part=7),
}


def written(folder: Path, frames: Sequence[pd.DataFrame]) -> list[Path]:
    """The frames as Parquet files, which hold the same values; a frame that none can hold is no example."""
    paths = []
    for number, frame in enumerate(frames):
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, OverflowError):
            assume(False)
        paths.append(folder / f"{number}.parquet")
        pq.write_table(table, paths[-1])
    return paths


@examples(6)
@given(case=cases(), path=st.sampled_from(list(PATHS)))
def test_partitioned_frames_and_files(case: Case, path: str) -> None:
    """The figures of files are those of the frames, unless files are read by what their text means."""
    expected = measured(case)
    with tempfile.TemporaryDirectory() as folder, small_batches(PATHS[path], rows=3):
        assert_same(measured(case, engine="partitioned"), expected)
        paths = written(Path(folder), [case.ground_truth_frame, *case.synthetic_frames])
        actual = outcome(lambda: measured(case, paths, "partitioned"))
        in_memory = outcome(lambda: measured(case, paths, "memory"))
        if isinstance(actual, str) or isinstance(in_memory, str):  # an excluded level is written otherwise
            assert actual == in_memory
            return
        assert actual.engine == "partitioned"
        assert_same(actual, in_memory)
        assert sorted(actual.ledger, key=str) == sorted(in_memory.ledger, key=str)
        if not actual.ledger:
            assert_same(actual, expected)


@examples(3, 60)
@given(case=cases())
def test_files_in_a_database(case: Case) -> None:
    """The engines of databases are held to the counts themselves in test_relational.py.

    Every figure of files in a database is compared in tests/evaluation/test_holdout.py, too.
    """
    require_engine("duckdb://")
    assume("" not in case.ground_truth_frame.columns)  # no name in a database
    with tempfile.TemporaryDirectory() as folder:
        paths = written(Path(folder), [case.ground_truth_frame, *case.synthetic_frames])
        result = measured(case, paths, "duckdb://")
    assert_same(result, measured(case))
    assert result.engine == "duckdb, by Ibis"


MISMATCHES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "text for numbers": lambda sd: sd.assign(age=sd["age"].astype(str)),
    "outer blanks": lambda sd: sd.assign(work=sd["work"].astype(str) + " "),
    "upper case": lambda sd: sd.assign(work=sd["work"].astype(str).str.upper()),
    "a time zone": lambda sd: sd.assign(day=sd["day"].dt.tz_localize("UTC")),
    "floats": lambda sd: sd.assign(age=sd["age"].astype(float)),
    "smaller numbers": lambda sd: sd.assign(age=sd["age"].astype("int8")),
    "nothing but gaps": lambda sd: sd.assign(work=pd.Series([None] * len(sd), dtype="category")),
    "no records": lambda sd: sd.head(0),
    "a column less": lambda sd: sd.drop(columns="age"),
}


def outcome(ask: Callable[[], dp.Disclosure]) -> dp.Disclosure | str:
    """The figures, or what was refused."""
    try:
        return ask()
    except dp.InputError as error:
        return str(error)


@pytest.mark.parametrize("engine", ["partitioned", "duckdb://"])
@pytest.mark.parametrize("mismatch", MISMATCHES)
def test_mismatches_are_caught_in_files_as_in_frames(mismatch: str, engine: str, tmp_path: Path) -> None:
    """Refused, measured or warned of in the very same words; but files are read by what their text means."""
    require_engine(engine)
    gt, sd = (
        survey(500, seed).assign(day=pd.Timestamp("2020-02-01") + pd.to_timedelta(np.arange(500) % 7, "D"))
        for seed in (1, 2)
    )
    same_values = sd
    sd = MISMATCHES[mismatch](sd)
    paths = written(tmp_path, [gt, sd])
    keys, targets = ["age", "day"], ["work", "sex"]
    if engine == "partitioned" and mismatch in {"text for numbers", "outer blanks"}:
        sd = same_values
    expected = outcome(lambda: dp.disclosure(gt, sd, keys, targets, engine="memory"))
    actual = outcome(lambda: dp.disclosure(paths[0], paths[1], keys, targets, engine=engine))
    if isinstance(expected, str) or isinstance(actual, str):
        assert actual == expected
    else:
        assert_same(actual, expected)


@pytest.fixture(scope="module")
def surveys() -> list[pd.DataFrame]:
    return [survey(4000, 1), survey(5000, 2), survey(300, 3)]


@pytest.fixture
def paths(surveys: list[pd.DataFrame], tmp_path: Path) -> list[Path]:
    return written(tmp_path, surveys)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".tsv.gz", "/"])
def test_files_of_every_format(suffix: str, surveys: list[pd.DataFrame], tmp_path: Path) -> None:
    """Against the same files read into memory; "/" is a folder of Parquet files."""
    assert suffix == "/" or suffix in FORMATS
    paths = []
    for number, frame in enumerate(surveys[:2]):
        path = tmp_path / f"{number}{suffix.rstrip('/')}"
        if suffix == "/":
            path.mkdir()
            for part in range(3):
                pq.write_table(
                    pa.Table.from_pandas(frame.iloc[part::3], preserve_index=False), path / f"{part}.parquet"
                )
        elif suffix == ".arrow":
            frame.to_feather(path)
        elif suffix == ".parquet":
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False, sep="\t" if "tsv" in suffix else ",")
        paths.append(path)
    ask = partial(dp.disclosure, paths[0], paths[1], ["age", "sex", "postcode"], TARGETS)
    with small_batches(Limits(table=0, spill_part=1000)):
        actual = ask(engine="partitioned")
    assert_same(actual, ask(engine="memory"))


def test_columns_of_many_kinds(tmp_path: Path) -> None:
    """Dates, times with an offset, decimals, durations, true/false, and a column without any value."""
    rng = np.random.default_rng(5)

    def table(records: int) -> pa.Table:
        number = rng.integers(0, 9, records)
        gaps = rng.random(records) < 0.1
        start = datetime.datetime(2024, 2, 28, 23, tzinfo=datetime.timezone.utc)
        whole = number.tolist()
        return pa.table(
            {
                "day": pa.array([start.date() + datetime.timedelta(n) for n in whole], mask=gaps),
                "at": pa.array(
                    [start + datetime.timedelta(hours=n) for n in whole], pa.timestamp("us", "CET")
                ),
                "price": pa.array([f"{n}.50" for n in whole]).cast(pa.decimal128(10, 2)),
                "took": pa.array(number.astype("m8[s]")),
                "yes": pa.array(number > 4, mask=gaps),
                "share": pa.array(np.where(gaps, np.nan, number / 3), from_pandas=False),
                "tiny": pa.array(number.astype("i1") - 100, mask=gaps),
                "nothing": pa.nulls(records),
            }
        )

    both = [tmp_path / "gt.parquet", tmp_path / "sd.parquet"]
    for path in both:
        pq.write_table(table(400), path)
    names = pq.read_schema(both[0]).names
    for target in names:
        keys = [name for name in names if name != target]
        with small_batches(Limits(table=0, spill_part=50)):
            result = dp.disclosure(both[0], both[1], keys, target, engine="partitioned")
        assert_same(result, dp.disclosure(both[0], both[1], keys, target, engine="memory"))


def test_auto_says_what_it_chose(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    ask = partial(dp.disclosure, paths[0], paths[1], ["age", "sex"], TARGETS)
    roomy = ask()
    assert roomy.engine.startswith("memory (about 0.0 GB are needed in memory, ")
    monkeypatch.setattr(elsewhere, "available_memory", lambda: 100_000)
    scarce = ask()
    assert scarce.engine.startswith("partitioned (about 0.0 GB are needed in memory, 0.0 GB are free)")
    assert_same(scarce, roomy)
    assert ask(engine="memory").engine == "memory"


def test_frames_beside_files(paths: list[Path], surveys: list[pd.DataFrame]) -> None:
    """Read into memory beside each other; in parts they are all the one or all the other."""
    result = dp.disclosure(paths[0], surveys[1], ["age"], TARGETS)
    assert_same(result, dp.disclosure(surveys[0], surveys[1], ["age"], TARGETS))
    with pytest.raises(dp.InputError, match="files or data frames"):
        dp.disclosure(paths[0], surveys[1], ["age"], TARGETS, engine="partitioned")


def test_tables_of_ibis_are_counted_where_they_are(surveys: list[pd.DataFrame]) -> None:
    """Beside frames, which are brought there and taken away again."""
    require_engine("duckdb://")
    import ibis

    database = ibis.duckdb.connect()
    gt = database.create_table("gt", surveys[0])
    sd = database.create_table("sd", surveys[1])
    ask = partial(dp.disclosure, keys=["age", "sex", "postcode"], targets=TARGETS)
    expected = ask(surveys[0], surveys[1:])
    for syntheses in ([sd, surveys[2]], [surveys[1], surveys[2]]):
        assert_same(ask(gt, syntheses), expected)
        assert sorted(database.list_tables()) == ["gt", "sd"]
    with pytest.raises(dp.InputError, match="leave the engine to 'auto'"):
        ask(gt, sd, engine="memory")
    with pytest.raises(dp.InputError, match="no table 'nobody'"):
        ask(gt, "nobody")
    with pytest.raises(dp.InputError, match="'kex' is not in the ground truth"):
        dp.disclosure(gt, sd, ["kex"], TARGETS)
    assert sorted(database.list_tables()) == ["gt", "sd"]


def test_names_of_tables_in_a_database(surveys: list[pd.DataFrame], tmp_path: Path) -> None:
    require_engine("duckdb://")
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


# What is spilled to disk.

CANARY = np.frombuffer(b"CANARY-4711-0815", dtype=np.uint8)
RECORD = np.dtype([("0", np.uint8)])


def test_spilled_records_come_back_and_are_sealed() -> None:
    records = np.tile(CANARY, 1000).view(RECORD)
    with open_spill_file(RECORD, len(records)) as spill_file:
        spill_file.add("a", records[:5])
        spill_file.add("b", records)
        spill_file.add("a", records[5:])
        np.testing.assert_array_equal(spill_file.read("a"), records)
        np.testing.assert_array_equal(spill_file.read("b"), records)
        assert len(spill_file.read("c")) == 0
        file = spill_file.file.fileno()
        content = os.pread(file, os.fstat(file).st_size, 0)
        assert len(content) > 2 * len(records)
        assert CANARY.tobytes() not in content
        assert os.fstat(file).st_nlink == 0  # the file has no name


@pytest.mark.parametrize("place", [0, 7, -1])
def test_damage_of_spilled_records_is_found(place: int) -> None:
    with open_spill_file(RECORD, 100) as spill_file:
        spill_file.add(0, np.zeros(100, dtype=RECORD))
        file = spill_file.file.fileno()
        at = place % os.fstat(file).st_size
        os.pwrite(file, bytes([os.pread(file, 1, at)[0] ^ 1]), at)
        with pytest.raises(DisclosurePipelineError, match="damaged") as caught:
            spill_file.read(0)
        assert caught.value.__context__ is None


def test_a_disk_without_room_is_refused_before_work(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with small_batches(Limits(table=0)), pytest.raises(dp.InputError, match="set TMPDIR"):
        dp.disclosure(paths[0], paths[1], ["age", "postcode"], TARGETS, engine="partitioned")


@pytest.mark.parametrize("written", [-1, 3])
def test_a_disk_that_fills_up(written: int, paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it says so or takes only some of the bytes."""

    def full(*_: Any) -> int:
        if written < 0:
            raise OSError(errno.ENOSPC, "full")
        return written

    monkeypatch.setattr(os, "pwrite", full)
    with small_batches(Limits(table=0)), pytest.raises(DisclosurePipelineError, match="is full") as caught:
        dp.disclosure(paths[0], paths[1], ["age", "postcode"], TARGETS, engine="partitioned")
    assert caught.value.__context__ is None


def test_nothing_is_left_behind(paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a file nor a thread, also where the work is interrupted in its middle."""
    folder = tmp_path / "spilled"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    threads = set(threading.enumerate())
    parts = 0

    def interrupted(*_: Any, **__: Any) -> Any:
        nonlocal parts
        parts += 1
        assert not any(folder.iterdir())
        if parts > 2:
            raise KeyboardInterrupt
        return original(*_, **__)

    original = record_parts._measure_part
    monkeypatch.setattr(record_parts, "_measure_part", interrupted)
    with small_batches(Limits(table=0, spill_part=500, threads=2)), pytest.raises(KeyboardInterrupt):
        dp.disclosure(paths[0], paths[1], ["age", "postcode"], TARGETS, engine="partitioned")
    assert parts > 2
    assert not any(folder.iterdir())
    assert set(threading.enumerate()) <= threads


def test_a_file_is_read_once(
    paths: list[Path], surveys: list[pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What becomes of it afterwards makes no difference: every figure is of what was read."""
    expected = dp.disclosure(paths[0], paths[1], ["age", "postcode"], TARGETS, engine="memory")

    def change_first(*arguments: Any) -> Any:
        surveys[0].assign(postcode=99_999).to_parquet(paths[0], index=False)
        paths[1].unlink()
        return count_in_parts(*arguments)

    monkeypatch.setattr(opened_files, "count_in_parts", change_first)
    with small_batches(Limits(table=0, spill_part=500)):
        result = dp.disclosure(paths[0], paths[1], ["age", "postcode"], TARGETS, engine="partitioned")
    assert_same(result, expected)


def test_one_key_that_half_of_the_records_have() -> None:
    """A part that is much larger than the others."""
    gt = survey(3000, 1)
    gt.loc[:1500, ["age", "postcode"]] = [1, 10_000]
    sd = gt.sample(frac=1, random_state=1).reset_index(drop=True).assign(work=gt["work"])
    with small_batches(Limits(table=0, spill_part=100)):
        result = dp.disclosure(gt, sd, ["age", "postcode"], TARGETS, engine="partitioned")
    assert_same(result, dp.disclosure(gt, sd, ["age", "postcode"], TARGETS, engine="memory"))
    assert result.identity["UiO"].iloc[0] < 50
